// waits.cpp - what threads wait for each other in: functions of pthreads, interposed. A lock that is free costs one
// attempt to take it, and nothing is noted.
#include <errno.h>
#include <pthread.h>

#include "adapters/threads/thread_samples.h"
#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe::threads {

namespace {

template <class Call>
[[gnu::always_inline]] inline int wait_in(Wait wait, const void* object, uint32_t cause, Call&& call) {
  ThreadSamples* t = mine;
  if (!t) return call();
  const Waited of{wait, cause, uintptr_t(object), uintptr_t(__builtin_return_address(0)),
                  uintptr_t(__builtin_frame_address(0))};
  const uint64_t ticks = strobe_ticks();
  const int64_t begin = clock_ns(CLOCK_MONOTONIC);
  t->waits = wait;
  const int result = call();
  add_wait(*t, of, ticks, begin, clock_ns(CLOCK_MONOTONIC) - begin);
  t->waits = kRuns;
  return result;
}

// Who has a lock, as glibc notes it for itself; 0: nobody any more, or not known.
uint32_t holder(const pthread_mutex_t& lock) { return uint32_t(lock.__data.__owner); }
uint32_t holder(const pthread_rwlock_t& lock) { return uint32_t(lock.__data.__cur_writer); }

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
#define LOCK(name, attempt, Lock, wait)                                    \
  STROBE_API int name(Lock* lock) noexcept {                               \
    static const auto real = next<decltype(&::name)>(#name);               \
    static const auto at_once = next<decltype(&::attempt)>(#attempt);      \
    const int result = at_once(lock);                                      \
    if (__builtin_expect(result != EBUSY, 1)) return result;               \
    return wait_in(wait, lock, holder(*lock), [&] { return real(lock); }); \
  }

extern "C" {

LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t, kMutex)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, kReadLock)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, kWriteLock)

STROBE_API int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* lock) {
  static const auto real = next_condition<decltype(&::pthread_cond_wait)>("pthread_cond_wait");
  return wait_in(kCondition, condition, 0, [&] { return real(condition, lock); });
}

STROBE_API int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* lock, const timespec* until) {
  static const auto real = next_condition<decltype(&::pthread_cond_timedwait)>("pthread_cond_timedwait");
  return wait_in(kCondition, condition, 0, [&] { return real(condition, lock, until); });
}

STROBE_API int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* lock, clockid_t clock,
                                      const timespec* until) {
  static const auto real = next<decltype(&::pthread_cond_clockwait)>("pthread_cond_clockwait");
  return wait_in(kCondition, condition, 0, [&] { return real(condition, lock, clock, until); });
}

STROBE_API int pthread_join(pthread_t thread, void** result) {
  static const auto real = next<decltype(&::pthread_join)>("pthread_join");
  return wait_in(kJoin, nullptr, thread_of(thread), [&] { return real(thread, result); });
}

STROBE_API int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  static const auto real = next<decltype(&::pthread_barrier_wait)>("pthread_barrier_wait");
  return wait_in(kBarrier, barrier, 0, [&] { return real(barrier); });
}

}  // extern "C"
