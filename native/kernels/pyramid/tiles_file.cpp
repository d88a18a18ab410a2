#include "kernels/pyramid/tiles_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "core/format/blocks.h"
#include "core/system/descriptors.h"

namespace strobe {

constexpr uint32_t kTilesMagic = 0x4c495453;  // "STIL"
constexpr uint32_t kTilesVersion = 3;

TilesWriter::TilesWriter(const std::string& path) : path_(path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_in_folder(path));
  file_ = fd < 0 ? nullptr : fdopen(fd, "wb");
  if (!file_) throw std::system_error(errno, std::generic_category(), path);
  const Header none{};
  write(&none, sizeof none);  // nobody takes a file without a header for whole
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
  std::ranges::sort(directory_, {}, &Entry::key);
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

const TilesWriter::Header* TilesFile::header() const {
  const auto* found = reinterpret_cast<const TilesWriter::Header*>(file_.bytes().data());
  const bool sound = file_.bytes().size() >= sizeof *found && found->magic == kTilesMagic &&
                     found->version == kTilesVersion && found->header_crc == crc32c(found, sizeof *found - 4);
  return sound ? found : nullptr;
}

bool TilesFile::looks_sound(const std::string& path) try {
  TilesFile file;
  file.file_ = MappedFile(path);
  return file.header() != nullptr;
} catch (const std::system_error&) {
  return false;
}

TilesFile::TilesFile(const std::string& path, const TilesOf& of) {
  try {
    file_ = MappedFile(path);
  } catch (const std::system_error&) {
    return;
  }
  const TilesWriter::Header* h = header();
  const size_t bytes = file_.bytes().size();
  const bool sound = h && h->of == of && h->directory_offset % 8 == 0 && h->directory_offset <= bytes &&
                     h->tiles == (bytes - h->directory_offset) / sizeof(Entry) &&
                     (bytes - h->directory_offset) % sizeof(Entry) == 0 &&
                     crc32c(file_.bytes().data() + h->directory_offset, h->tiles * sizeof(Entry)) == h->directory_crc;
  if (!sound) {
    file_ = {};
    return;
  }
  directory_ = {reinterpret_cast<const Entry*>(file_.bytes().data() + h->directory_offset), h->tiles};
  checksum_ = h->directory_crc ^ h->header_crc;
}

const TilesFile::Entry* TilesFile::entry(const TileKey& key) const {
  const auto found = std::ranges::lower_bound(directory_, key, {}, &Entry::key);
  const size_t bytes = file_.bytes().size();
  if (found == directory_.end() || found->key != key || found->offset > bytes || found->bytes > bytes - found->offset)
    return nullptr;
  return &*found;
}

std::string_view TilesFile::frame(const TileKey& key) const {
  const Entry* found = entry(key);
  return found ? file_.bytes().substr(found->offset, found->bytes) : std::string_view();
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
  const auto found = std::ranges::lower_bound(directory_, above, {}, &Entry::key);
  if (found == directory_.begin()) return -1;
  const TileKey& last = std::prev(found)->key;
  return last.location == location && last.level >> 8 == row_level ? int(last.level & 0xFF) : -1;
}

}  // namespace strobe
