// waits.cpp - what threads wait for each other in: functions of pthreads, interposed. A lock that is free costs one
// attempt to take it, and nothing is noted. Of waits that last, so much is noted as of what runs: one for each period
// of waiting, with all that was waited since the one before.
#include <errno.h>
#include <pthread.h>

#include "adapters/threads/thread_samples.h"
#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe::threads {

namespace {

constexpr int64_t kPeriodNs = 1000000;
thread_local int64_t not_noted_ns __attribute__((tls_model("initial-exec"))) = 0;

template <class Call>
[[gnu::always_inline]] inline int wait_in(Wait wait, const void* object, Call&& call) {
  ThreadSamples* t = mine;
  if (!t) return call();
  const int64_t begin = clock_ns(CLOCK_MONOTONIC);
  t->waits = wait;
  const int result = call();
  not_noted_ns += clock_ns(CLOCK_MONOTONIC) - begin;
  if (not_noted_ns >= kPeriodNs) {
    note(*t, wait, not_noted_ns, uintptr_t(object), uintptr_t(__builtin_return_address(0)));
    not_noted_ns = 0;
  }
  t->waits = kRuns;
  return result;
}

// Of this function there is an older version with other structures, which dlsym may find.
template <class Function>
Function next_condition(const char* name) {
  void* newer = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return newer ? reinterpret_cast<Function>(newer) : next<Function>(name);
}

}  // namespace

}  // namespace strobe::threads

using namespace strobe::threads;

// A lock: only who does not get it at once waits.
#define LOCK(name, attempt, Lock, wait)                               \
  STROBE_API int name(Lock* lock) noexcept {                          \
    static const auto real = next<decltype(&::name)>(#name);          \
    static const auto at_once = next<decltype(&::attempt)>(#attempt); \
    const int result = at_once(lock);                                 \
    if (__builtin_expect(result != EBUSY, 1)) return result;          \
    return wait_in(wait, lock, [&] { return real(lock); });           \
  }

extern "C" {

LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t, kMutex)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, kReadLock)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, kWriteLock)

STROBE_API int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* lock) {
  static const auto real = next_condition<decltype(&::pthread_cond_wait)>("pthread_cond_wait");
  return wait_in(kCondition, condition, [&] { return real(condition, lock); });
}

STROBE_API int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* lock, const timespec* until) {
  static const auto real = next_condition<decltype(&::pthread_cond_timedwait)>("pthread_cond_timedwait");
  return wait_in(kCondition, condition, [&] { return real(condition, lock, until); });
}

STROBE_API int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* lock, clockid_t clock,
                                      const timespec* until) {
  static const auto real = next<decltype(&::pthread_cond_clockwait)>("pthread_cond_clockwait");
  return wait_in(kCondition, condition, [&] { return real(condition, lock, clock, until); });
}

STROBE_API int pthread_join(pthread_t thread, void** result) {
  static const auto real = next<decltype(&::pthread_join)>("pthread_join");
  return wait_in(kJoin, nullptr, [&] { return real(thread, result); });
}

STROBE_API int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  static const auto real = next<decltype(&::pthread_barrier_wait)>("pthread_barrier_wait");
  return wait_in(kBarrier, barrier, [&] { return real(barrier); });
}

}  // extern "C"
