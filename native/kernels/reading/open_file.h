// open_file.h - files of a trace while they are read.
#pragma once
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace strobe {

struct OpenFile {
  int fd = -1;
  size_t bytes = 0;
  int64_t changed_ns = 0;
  ino_t inode = 0;
  size_t stored = 0;  // bytes, without holes
  // Throws std::system_error.
  OpenFile(const std::string& path, int flags) {
    fd = open(path.c_str(), flags | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
      const int error = errno;
      if (fd >= 0) close(fd);
      throw std::system_error(error, std::generic_category(), path);
    }
    bytes = size_t(info.st_size), inode = info.st_ino, stored = size_t(info.st_blocks) * 512;
    changed_ns = int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
  ~OpenFile() { close(fd); }
  OpenFile(const OpenFile&) = delete;
};

// A file in place. Empty where there is nothing in it.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws std::system_error.
  explicit MappedFile(const std::string& path, int sharing = MAP_PRIVATE) {
    const OpenFile file(path, O_RDONLY);
    changed_ns_ = file.changed_ns;
    if (file.bytes == 0) return;
    void* map = mmap(nullptr, file.bytes, PROT_READ, sharing, file.fd, 0);
    if (map == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
    data_ = {static_cast<const char*>(map), Unmap{file.bytes}};
    if (file.bytes <= file.stored + kHoles) {
      stored_.push_back({0, file.bytes});
      return;
    }
    for (off_t at = 0, end; (at = lseek(file.fd, at, SEEK_DATA)) >= 0; at = end) {
      if ((end = lseek(file.fd, at, SEEK_HOLE)) <= at) break;
      stored_.push_back({size_t(at), size_t(end)});
    }
  }
  // Where a text is, from a byte on: holes of a sparse file are not read. npos: nowhere.
  size_t find(std::string_view text, size_t from) const {
    for (const auto& [begin, end] : stored_) {
      if (end <= from) continue;
      const size_t at = bytes().substr(0, end + text.size() - 1).find(text, std::max(from, begin));
      if (at != std::string_view::npos) return at;
    }
    return std::string_view::npos;
  }
  // A block file behind its earlier parts, if it has any (core/session/file_parts.h).
  static MappedFile joined(const std::string& blocks_path);
  size_t earlier_bytes() const { return earlier_bytes_; }  // of these parts
  std::string_view bytes() const { return {data_.get(), data_.get_deleter().bytes}; }
  int64_t changed_ns() const { return changed_ns_; }
  // Gives the memory of what has been read back; who reads it again gets it from the system's cache.
  void release() const {
    if (data_) madvise(const_cast<char*>(data_.get()), data_.get_deleter().bytes, MADV_DONTNEED);
  }

 private:
  struct Unmap {
    size_t bytes;
    void operator()(const char* data) const { munmap(const_cast<char*>(data), bytes); }
  };
  std::unique_ptr<const char, Unmap> data_;
  static constexpr size_t kHoles = 1 << 20;        // bytes: fewer are read as fast as they are skipped
  std::vector<std::pair<size_t, size_t>> stored_;  // all but the holes of a sparse file
  int64_t changed_ns_ = 0;
  size_t earlier_bytes_ = 0;
};

// The name of a block file with another suffix.
inline std::string beside(const std::string& blocks_path, const char* suffix) {
  return blocks_path.substr(0, blocks_path.rfind(".blocks")) + suffix;
}

// Whether the process that writes the block file still lives.
inline bool is_held(const std::string& blocks_path) {
  const OpenFile file(blocks_path, O_RDONLY);
  return flock(file.fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace strobe
