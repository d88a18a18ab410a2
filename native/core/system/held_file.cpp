#include "core/system/held_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace strobe {

int HeldFile::open_new(const std::string& path, int flags) {
  const int low = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (low < 0) return errno;
  fd = move_away(low);
  name = path;
  id = file_id(fd);
  return 0;
}

bool HeldFile::ours() {
  if (is_file(fd, id)) return true;
  fd = open(name.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd >= 0 && is_file(fd = move_away(fd), id)) return true;
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
  close_file(fd, id);
  fd = -1;
}

}  // namespace strobe
