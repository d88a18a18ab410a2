// system_calls.h - the few Linux calls that glibc does not wrap.
#pragma once
#include <linux/futex.h>
#include <stdint.h>
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

}  // namespace strobe
