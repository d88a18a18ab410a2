// opened_file.h - a file as long as it is looked at, and where those beside a block file lie.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>

namespace strobe {

// Throws std::system_error where it cannot be opened.
struct OpenedFile {
  int fd = -1;
  size_t bytes = 0;
  int64_t changed_ns = 0;
  OpenedFile(const std::string& path, int flags) {
    fd = open(path.c_str(), flags | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
      int error = errno;
      if (fd >= 0) close(fd);
      throw std::system_error(error, std::generic_category(), path);
    }
    bytes = size_t(info.st_size);
    changed_ns = int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
  OpenedFile(const OpenedFile&) = delete;
  ~OpenedFile() { close(fd); }
};

inline std::string beside(const std::string& blocks_path, const char* suffix) {
  return blocks_path.substr(0, blocks_path.rfind(".blocks")) + suffix;
}

inline std::string statistics_path(const std::string& blocks_path) { return beside(blocks_path, ".statistics"); }

}  // namespace strobe
