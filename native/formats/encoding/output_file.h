// output_file.h - a file that is appended to in large pieces, and one for what memory has no room for.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <system_error>

#include "core/system/descriptors.h"

namespace strobe {

[[noreturn]] inline void throw_errno(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

inline void write_all(int fd, const std::string& path, const char* data, size_t size) {
  while (size) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = ENOSPC;
      throw_errno(path);
    }
    data += n, size -= size_t(n);
  }
}

// Throws std::system_error wherever it cannot be written.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_in_folder(path_));
    if (fd_ < 0) throw_errno(path_);
  }
  ~OutputFile() { close(fd_); }
  OutputFile(const OutputFile&) = delete;
  std::string bytes;
  void flush(size_t more_than = 0) {
    if (bytes.size() <= more_than) return;
    write_all(fd_, path_, bytes.data(), bytes.size());
    bytes.clear();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
};

// Has no name any more once it is there. Throws as above.
class SpillFile {
 public:
  explicit SpillFile(std::string path) : path_(std::move(path)) {}
  ~SpillFile() {
    if (fd_ >= 0) close(fd_);
  }
  SpillFile(const SpillFile&) = delete;
  uint64_t size() const { return size_; }
  void append(std::string_view bytes) {
    if (fd_ < 0) {
      fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (fd_ < 0) throw_errno(path_);
      unlink(path_.c_str());
    }
    write_all(fd_, path_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void read(uint64_t offset, char* to, size_t n) const {
    while (n) {
      const ssize_t got = pread(fd_, to, n, off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) errno = EIO;
      if (got <= 0) throw_errno(path_);
      to += got, offset += uint64_t(got), n -= size_t(got);
    }
  }

 private:
  std::string path_;
  uint64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace strobe
