#include "python/recording/window_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/system/threads.h"

namespace strobe {

void* shared_page(const char* file, bool leads) {
  const int fd = open(file, leads ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  // A page of a hole that finds no room on the disk is a SIGBUS: who leads has its page from the beginning.
  int error = leads ? posix_fallocate(fd, 0, kPageBytes) : 0;
  void* map = MAP_FAILED;
  if (!error) {
    map = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  close(fd);
  if (map != MAP_FAILED) return map;
  if (leads) unlink(file);
  errno = error;
  return nullptr;
}

void release_page(void* page) { munmap(page, kPageBytes); }

bool read_page(const char* file, WindowPage& state) {
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = pread(fd, static_cast<void*>(&state), sizeof state, 0);
  const int error = size < 0 ? errno : ENODATA;
  close(fd);
  errno = error;
  return size == ssize_t(sizeof state);
}

void request_window(WindowPage& page, int64_t number, int64_t begin_step, int64_t step_count, int64_t for_ns) {
  page.begin_step = begin_step, page.step_count = step_count, page.for_ns = for_ns;
  page.request = number;
  syscall(SYS_futex, &page.word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace strobe
