// open_file.h - files of a trace while they are read.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>

namespace strobe {

struct OpenFile {
  int fd = -1;
  size_t bytes = 0;
  int64_t changed_ns = 0;
  // Throws std::system_error.
  OpenFile(const std::string& path, int flags) {
    fd = open(path.c_str(), flags | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
      const int error = errno;
      if (fd >= 0) close(fd);
      throw std::system_error(error, std::generic_category(), path);
    }
    bytes = size_t(info.st_size);
    changed_ns = int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
  ~OpenFile() { close(fd); }
  OpenFile(const OpenFile&) = delete;
};

// The name of a block file with another suffix.
inline std::string beside(const std::string& blocks_path, const char* suffix) {
  return blocks_path.substr(0, blocks_path.rfind(".blocks")) + suffix;
}

// Whether the process that writes it lives.
inline bool is_held(const std::string& blocks_path) {
  const OpenFile file(blocks_path, O_RDONLY);
  return flock(file.fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace strobe
