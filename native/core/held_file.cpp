#include "core/held_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace strobe {

int HeldFile::open_new(const std::string& path, int flags) {
  int low = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (low < 0) return errno;
  // Far from the numbers that the program's own files get.
  fd = fcntl(low, F_DUPFD_CLOEXEC, 900);
  if (fd >= 0)
    close(low);
  else
    fd = low;
  name = path;
  struct stat info;
  if (fstat(fd, &info) == 0) device = info.st_dev, inode = info.st_ino;
  return 0;
}

bool HeldFile::ours() {
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode) return true;
  // The program closed our descriptor (daemons close all), and the number may be a file of its own by now.
  fd = open(name.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode) return true;
  if (fd >= 0) close(fd);
  fd = -1;
  errno = ENOENT;
  return false;
}

bool HeldFile::removed() const {
  struct stat info;
  return fd >= 0 && fstat(fd, &info) == 0 && info.st_nlink == 0;
}

void HeldFile::release() {
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode) close(fd);
  fd = -1;
}

}  // namespace strobe
