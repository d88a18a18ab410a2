#include "kernels/pyramid/tiles_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "core/format/blocks.h"

namespace strobe {

namespace {

constexpr uint32_t kTilesMagic = 0x4c495453;  // "STIL"
constexpr uint32_t kTilesVersion = 3;

}  // namespace

TilesWriter::TilesWriter(const std::string& path) : path_(path), file_(fopen(path.c_str(), "wbe")) {
  if (!file_) throw std::system_error(errno, std::generic_category(), path);
  const Header none{};
  write(&none, sizeof none);  // a file without a header is no tiles file: nobody takes it for whole
}

TilesWriter::~TilesWriter() {
  if (!file_) return;
  fclose(file_);
  unlink(path_.c_str());
}

void TilesWriter::write(const void* bytes, size_t size) {
  if (size > 0 && fwrite(bytes, 1, size, file_) != size)
    throw std::system_error(errno ? errno : EIO, std::generic_category(), path_);
}

void TilesWriter::add(const TileKey& key, uint64_t spans, std::string_view frame) {
  write(frame.data(), frame.size());
  directory_.push_back({key, offset_, uint32_t(frame.size()), uint32_t(std::min<uint64_t>(spans, UINT32_MAX))});
  offset_ += frame.size();
}

void TilesWriter::finish(const TilesOf& of) {
  std::sort(directory_.begin(), directory_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  const char padding[8] = {};
  const size_t pad = (8 - offset_ % 8) % 8;
  write(padding, pad);
  write(directory_.data(), directory_.size() * sizeof(Entry));
  Header header{kTilesMagic, kTilesVersion, directory_.size(), offset_ + pad, of, 0, 0};
  header.directory_crc = crc32c(directory_.data(), directory_.size() * sizeof(Entry));
  header.header_crc = crc32c(&header, sizeof header - 4);
  if (fseek(file_, 0, SEEK_SET) != 0) throw std::system_error(errno, std::generic_category(), path_);
  write(&header, sizeof header);
  const int failed = fclose(file_);
  file_ = nullptr;
  if (failed) {
    const int error = errno;
    unlink(path_.c_str());
    throw std::system_error(error, std::generic_category(), path_);
  }
}

bool TilesFile::read_header(int fd, TilesWriter::Header& header) {
  return pread(fd, &header, sizeof header, 0) == ssize_t(sizeof header) && header.magic == kTilesMagic &&
         header.version == kTilesVersion && header.header_crc == crc32c(&header, sizeof header - 4);
}

bool TilesFile::looks_sound(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  TilesWriter::Header header;
  const bool sound = read_header(fd, header);
  close(fd);
  return sound;
}

TilesFile::TilesFile(const std::string& path, const TilesOf& of) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info;
  TilesWriter::Header header;
  const bool readable = fstat(fd, &info) == 0 && read_header(fd, header);
  const auto bytes = readable ? uint64_t(info.st_size) : 0;
  const bool sound = readable && header.of == of && header.directory_offset % 8 == 0 &&
                     header.directory_offset <= bytes &&
                     header.tiles == (bytes - header.directory_offset) / sizeof(Entry) &&
                     (bytes - header.directory_offset) % sizeof(Entry) == 0;
  void* map = sound ? mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (map == MAP_FAILED) return;
  map_ = map, map_bytes_ = bytes;
  const auto* directory = static_cast<const char*>(map) + header.directory_offset;
  if (crc32c(directory, header.tiles * sizeof(Entry)) != header.directory_crc) {
    munmap(map_, map_bytes_);
    map_ = nullptr;
    return;
  }
  directory_ = reinterpret_cast<const Entry*>(directory), tiles_ = header.tiles;
  checksum_ = header.directory_crc ^ header.header_crc;
}

TilesFile::~TilesFile() {
  if (map_) munmap(map_, map_bytes_);
}

const TilesFile::Entry* TilesFile::entry(const TileKey& key) const {
  const Entry* end = directory_ + tiles_;
  const Entry* found = std::lower_bound(directory_, end, key,
                                        [](const Entry& each, const TileKey& wanted) { return each.key < wanted; });
  if (found == end || found->key != key || found->offset > map_bytes_ || found->bytes > map_bytes_ - found->offset)
    return nullptr;
  return found;
}

std::string_view TilesFile::frame(const TileKey& key) const {
  const Entry* found = entry(key);
  return found ? std::string_view(static_cast<const char*>(map_) + found->offset, found->bytes) : std::string_view();
}

bool TilesFile::find(const TileKey& key, uint32_t parts, Tile& out) const {
  const std::string_view found = frame(key);
  return !found.empty() && decode_tile(found, parts, out);
}

uint64_t TilesFile::spans(const TileKey& key) const {
  const Entry* found = entry(key);
  return found ? found->spans : 0;
}

int TilesFile::top_level(uint32_t location, uint32_t row_level) const {
  const TileKey above{location, row_level << 8 | kThresholds, INT64_MIN};
  const Entry* found = std::lower_bound(directory_, directory_ + tiles_, above,
                                        [](const Entry& each, const TileKey& wanted) { return each.key < wanted; });
  if (found == directory_) return -1;
  const TileKey& last = (found - 1)->key;
  return last.location == location && last.level >> 8 == row_level ? int(last.level & 0xFF) : -1;
}

}  // namespace strobe
