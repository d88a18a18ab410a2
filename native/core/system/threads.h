// threads.h - threads of the recorder inside the program, signals, and the Linux calls that glibc does not wrap.
#pragma once
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace strobe {

inline uint64_t thread_id() { return uint64_t(syscall(SYS_gettid)); }

// Sleeps until futex_wake(word), at most `timeout_us`, and not at all if `word` is not `value` any more.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t value, uint32_t timeout_us) {
  timespec t = {time_t(timeout_us / 1000000), long(timeout_us % 1000000) * 1000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &t, nullptr, 0);
}

inline void futex_wake(std::atomic<uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Start a thread that gets none of the program's signals. SIGBUS alone stays open: one that a store causes while it is
// blocked ends the process (mapping_guard.h). 0, or an errno value.
inline int start_own_thread(pthread_t& thread, size_t stack_bytes, void* (*run)(void*), void* argument) {
  sigset_t all, old;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

// /proc/self/stat counts a joined thread for a moment longer. Before a fork this moment must have passed.
inline void wait_until_gone(uint32_t thread_id) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%u", thread_id);
  for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++) sched_yield();
}

// For what must not be left half done: a handler of the program may leave by siglongjmp, and then a lock that was held
// where it came in is never given back. Signals that others send wait meanwhile. Those that an instruction causes do
// not: blocked, they end the process.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int number : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, number);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace strobe
