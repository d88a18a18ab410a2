#include "adapters/foreign_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace strobe {

bool ForeignMemory::open() {
  int fd = memfd_create("strobe", MFD_CLOEXEC);
  if (fd < 0) return false;
  // A high number: should the program close every file, then none that it opens later gets this number, and with it
  // what we write.
  rlimit most{};
  if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur > 64) {
    const rlim_t wanted = (most.rlim_cur < 4096 ? most.rlim_cur : 4096) - 32;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, int(wanted));
    if (high >= 0) ::close(fd), fd = high;
  }
  struct stat info;
  void* map = MAP_FAILED;
  if (ftruncate(fd, kBytes) == 0 && fstat(fd, &info) == 0)
    map = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (map == MAP_FAILED) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return false;
  }
  fd_ = fd, map_ = static_cast<char*>(map), device_ = info.st_dev, inode_ = info.st_ino;
  return true;
}

void ForeignMemory::close() {
  if (!map_) return;
  munmap(map_, kBytes);
  if (ours()) ::close(fd_);
  map_ = nullptr, fd_ = -1;
}

bool ForeignMemory::ours() const {
  struct stat info;
  return fd_ >= 0 && fstat(fd_, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
}

const char* ForeignMemory::read(const Part* parts, size_t n) {
  iovec from[kParts];
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++)
    from[i] = {reinterpret_cast<void*>(parts[i].at), parts[i].bytes}, bytes += parts[i].bytes;
  if (n > kParts || bytes > kBytes || bytes == 0) return nullptr;
  return pwritev(fd_, from, int(n), 0) == ssize_t(bytes) ? map_ : nullptr;
}

}  // namespace strobe
