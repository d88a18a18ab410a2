#include "core/system/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace strobe {

FileId file_id(int fd) {
  struct stat info;
  return fd >= 0 && fstat(fd, &info) == 0 ? FileId{info.st_dev, info.st_ino} : FileId{};
}

bool is_file(int fd, const FileId& id) { return id != FileId{} && file_id(fd) == id; }

void close_file(int fd, const FileId& id) {
  if (is_file(fd, id)) close(fd);
}

int move_away(int fd) {
  const FileId id = file_id(fd);
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, int(known ? std::min<rlim_t>(limit.rlim_cur * 7 / 8, 900) : 900));
  if (high < 0) return fd;
  if (!is_file(high, id)) return close(high), fd;
  close_file(fd, id);
  return high;
}

ssize_t read_small(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const FileId id = file_id(fd);
  const ssize_t n = pread(fd, buffer, size - 1, 0);  // not read: it moves no file of the program, should this be one
  close_file(fd, id);
  buffer[n > 0 ? n : 0] = 0;
  return n;
}

DIR* open_folder(const char* path) {
  const int low = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (low < 0) return nullptr;
  const int fd = move_away(low);
  DIR* folder = fdopendir(fd);
  if (!folder) close(fd);
  return folder;
}

}  // namespace strobe
