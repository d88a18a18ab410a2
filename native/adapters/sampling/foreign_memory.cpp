#include "adapters/sampling/foreign_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace strobe {

bool ForeignMemory::open() {
  int fd = memfd_create("strobe", MFD_CLOEXEC);
  if (fd < 0) return false;
  fd = move_away(fd);
  void* map = MAP_FAILED;
  if (ftruncate(fd, kBytes) == 0) map = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (map == MAP_FAILED) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return false;
  }
  fd_ = fd, map_ = static_cast<char*>(map), id_ = file_id(fd);
  return true;
}

bool ForeignMemory::open(pid_t process) {
  void* map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return false;
  process_ = process, map_ = static_cast<char*>(map);
  return true;
}

void ForeignMemory::close() {
  if (!map_) return;
  munmap(map_, kBytes);
  if (!process_) close_file(fd_, id_);
  map_ = nullptr, fd_ = -1;
}

bool ForeignMemory::ours() const { return is_file(fd_, id_); }

const char* ForeignMemory::read(const Part* parts, size_t n) {
  iovec from[kParts];
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++)
    from[i] = {reinterpret_cast<void*>(parts[i].at), parts[i].bytes}, bytes += parts[i].bytes;
  if (n > kParts || bytes > kBytes || bytes == 0) return nullptr;
  if (process_) {
    const iovec to{map_, bytes};
    return process_vm_readv(process_, &to, 1, from, n, 0) == ssize_t(bytes) ? map_ : nullptr;
  }
  return pwritev(fd_, from, int(n), 0) == ssize_t(bytes) ? map_ : nullptr;
}

}  // namespace strobe
