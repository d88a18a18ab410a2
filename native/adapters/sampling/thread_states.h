// thread_states.h - what a thread is doing, as samples have it, and how the kernel shows what it sleeps in.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include <iterator>
#include <string>

#include "core/system/descriptors.h"

namespace strobe {

enum State : uint8_t { kPython, kNative, kCollecting, kReady, kGil, kLock, kFile, kSocket, kSleep, kWaiting, kThreads };
constexpr const char* kStateNames[] = {"python", "native", "collecting", "ready",   "gil",    "lock",
                                       "file",   "socket", "sleep",      "waiting", "threads"};
constexpr size_t kStates = std::size(kStateNames);

constexpr bool ran(State state) { return state <= kCollecting; }

// What a thread that sleeps in this call of the kernel waits for; `file`: whether its first argument is one.
inline State waited_for(long call, bool file) {
  switch (call) {
    case SYS_futex:
    case SYS_flock:
    case SYS_semop:
    case SYS_semtimedop:
      return kLock;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return kSleep;
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
      return file ? kFile : kSocket;
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_sync_file_range:
    case SYS_msync:
    case SYS_ftruncate:
    case SYS_openat:
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_getdents64:
#ifdef SYS_open  // calls that 64-bit ARM has no more
    case SYS_open:
    case SYS_rename:
    case SYS_unlink:
    case SYS_stat:
#endif
      return kFile;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
      return kSocket;
    default:
      return kWaiting;
  }
}

inline int64_t cpu_ns(clockid_t clock) {  // -1: the thread is gone
  timespec t;
  return clock_gettime(clock, &t) == 0 ? int64_t(t.tv_sec) * 1000000000 + t.tv_nsec : -1;
}

inline clockid_t clock_of_thread(uint64_t id) {
  return clockid_t((~unsigned(id) << 3) | 6);
}  // as pthread_getcpuclockid

inline std::string small_file(uint64_t id, const char* what) {
  char path[64], bytes[512];
  snprintf(path, sizeof path, "/proc/self/task/%llu/%s", (unsigned long long)id, what);
  const ssize_t n = read_small(path, bytes, sizeof bytes);
  return n > 0 ? std::string(bytes, size_t(n)) : std::string();
}

// How long it was ready to run and did not: 0 where the kernel does not count it.
inline int64_t delay_ns(uint64_t id) { return atoll(strchr((small_file(id, "schedstat") + " 0").c_str(), ' ')); }

inline std::string name_of(uint64_t id) {
  std::string name = small_file(id, "comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

// Whether a descriptor is a file, not a pipe or a socket.
inline bool is_file_of_program(int fd) {
  struct stat facts;
  return fstat(fd, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISBLK(facts.st_mode));
}

// Of a thread that is on no processor: whether it wants one or the lock there, or for what it sleeps in a call of the
// kernel. `call`: what the kernel has in the file `syscall` of the thread; `is_file`: of a descriptor.
template <class IsFile>
State state_of_call(const std::string& call, uintptr_t gil, size_t gil_bytes, IsFile is_file) {
  if (call.compare(0, 7, "running") == 0) return kReady;
  char* end;
  const long number = strtol(call.c_str(), &end, 10);
  if (end == call.c_str()) return kWaiting;  // the kernel does not tell
  if (number == -1) return kFile;            // in no call: a page fault, whose page comes from a file
  const auto first = uintptr_t(strtoull(end, nullptr, 16));
  if (number == SYS_futex && first >= gil && first < gil + gil_bytes) return kGil;
  const bool moves = number == SYS_read || number == SYS_write || number == SYS_readv || number == SYS_writev;
  return waited_for(number, moves && is_file(int(first)));
}

inline State state_of_sleeper(uint64_t id, uintptr_t gil, size_t gil_bytes) {
  return state_of_call(small_file(id, "syscall"), gil, gil_bytes, is_file_of_program);
}

}  // namespace strobe
