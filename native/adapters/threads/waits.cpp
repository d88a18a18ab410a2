// waits.cpp - what threads wait for each other in: functions of pthreads, interposed. A lock that is free costs one
// attempt to take it, and nothing is noted.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <atomic>

#include "adapters/threads/thread_samples.h"
#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe::threads {

namespace {

// `cause` is looked at when the wait is over.
template <class Call>
[[gnu::always_inline]] inline int wait_in(Wait wait, const void* object, const std::atomic<uint32_t>& cause,
                                          Call&& call) {
  ThreadSamples* t = mine;
  if (!t || t->created.of_mpi || (inside_mpi && inside_mpi())) return call();
  const uint64_t ticks = strobe_ticks();
  const int64_t begin = clock_ns(CLOCK_MONOTONIC);
  t->waits = wait;
  const int result = call(), error = errno;
  const int64_t ns = clock_ns(CLOCK_MONOTONIC) - begin;
  const auto from = uintptr_t(__builtin_return_address(0)), frame = uintptr_t(__builtin_frame_address(0));
  add_wait(*t, {wait, cause.load(std::memory_order_relaxed), uintptr_t(object), from, frame}, ticks, begin, ns);
  t->waits = kRuns;
  errno = error;
  return result;
}

// Who has a lock, as glibc notes it for itself; 0: nobody any more, or not known.
uint32_t holder(const pthread_mutex_t& lock) { return uint32_t(lock.__data.__owner); }
uint32_t holder(const pthread_rwlock_t& lock) { return uint32_t(lock.__data.__cur_writer); }

// Who signalled a condition or posted a semaphore last, or came last to the two newest rounds of a barrier: nobody
// comes to the next but one before all have left this one. What shares a place with another one has no cause.
struct Meeting {
  std::atomic<uint64_t> key;
  std::atomic<uint32_t> arrived, last[2];
};
Meeting meetings[1024];
const std::atomic<uint32_t> nobody{0};

Meeting* meeting_of(const void* object, uint32_t size) {
  const uint64_t key = uintptr_t(object) ^ uint64_t(size) << 48;
  Meeting& meeting = meetings[key * 0x9E3779B97F4A7C15ull >> 54];
  uint64_t known = meeting.key;
  return known == key || (!known && (meeting.key.compare_exchange_strong(known, key) || known == key)) ? &meeting
                                                                                                       : nullptr;
}

const std::atomic<uint32_t>& signaller(const void* object) {
  const Meeting* meeting = meeting_of(object, 0);
  return meeting ? meeting->last[0] : nobody;
}

void signals(const void* object) {
  if (Meeting* meeting = mine ? meeting_of(object, 0) : nullptr) meeting->last[0] = uint32_t(mine->id);
}

// As a lock: only who does not get it at once waits.
template <class Call>
[[gnu::always_inline]] inline int wait_for(sem_t* semaphore, Call&& call) {
  STROBE_FOUND(at_once, next<decltype(&::sem_trywait)>("sem_trywait"));
  const int error = errno;
  if (at_once(semaphore) == 0) return 0;
  errno = error;
  return wait_in(kSemaphore, semaphore, signaller(semaphore), [&] { return again(call); });
}

const std::atomic<uint32_t>& last_at(const pthread_barrier_t* barrier) {
  uint32_t size;  // in glibc's structure, behind `in` and `current_round`
  memcpy(&size, reinterpret_cast<const uint32_t*>(barrier) + 2, sizeof size);
  Meeting* meeting = mine && size ? meeting_of(barrier, size) : nullptr;
  if (!meeting) return nobody;
  const uint32_t before = meeting->arrived++;
  std::atomic<uint32_t>& last = meeting->last[before / size & 1];
  if (before % size == size - 1) last = uint32_t(mine->id);
  return last;
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
#define LOCK(name, attempt, Lock, wait)                                                           \
  STROBE_API int name(Lock* lock) noexcept {                                                      \
    STROBE_FOUND(real, next<decltype(&::name)>(#name));                                           \
    STROBE_FOUND(at_once, next<decltype(&::attempt)>(#attempt));                                  \
    const int result = at_once(lock);                                                             \
    if (__builtin_expect(result != EBUSY, 1)) return result;                                      \
    return wait_in(wait, lock, std::atomic<uint32_t>(holder(*lock)), [&] { return real(lock); }); \
  }

extern "C" {

LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t, kMutex)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, kReadLock)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, kWriteLock)

STROBE_API int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* lock) {
  STROBE_FOUND(real, next_condition<decltype(&::pthread_cond_wait)>("pthread_cond_wait"));
  return wait_in(kCondition, condition, signaller(condition), [&] { return real(condition, lock); });
}

STROBE_API int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* lock, const timespec* until) {
  STROBE_FOUND(real, next_condition<decltype(&::pthread_cond_timedwait)>("pthread_cond_timedwait"));
  return wait_in(kCondition, condition, signaller(condition), [&] { return real(condition, lock, until); });
}

STROBE_API int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* lock, clockid_t clock,
                                      const timespec* until) {
  STROBE_FOUND(real, next<decltype(&::pthread_cond_clockwait)>("pthread_cond_clockwait"));
  return wait_in(kCondition, condition, signaller(condition), [&] { return real(condition, lock, clock, until); });
}

STROBE_API int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  STROBE_FOUND(real, next_condition<decltype(&::pthread_cond_signal)>("pthread_cond_signal"));
  signals(condition);
  return real(condition);
}

STROBE_API int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  STROBE_FOUND(real, next_condition<decltype(&::pthread_cond_broadcast)>("pthread_cond_broadcast"));
  signals(condition);
  return real(condition);
}

STROBE_API int pthread_join(pthread_t thread, void** result) {
  STROBE_FOUND(real, next<decltype(&::pthread_join)>("pthread_join"));
  std::atomic<uint32_t> cause(thread_of(thread, false));
  return wait_in(kJoin, nullptr, cause, [&] {
    const int error = real(thread, result);
    if (!cause) cause = thread_of(thread, true);  // one that had not begun to run
    return error;
  });
}

STROBE_API int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  STROBE_FOUND(real, next<decltype(&::pthread_barrier_wait)>("pthread_barrier_wait"));
  return wait_in(kBarrier, barrier, last_at(barrier), [&] { return real(barrier); });
}

STROBE_API int sem_wait(sem_t* semaphore) {
  STROBE_FOUND(real, next<decltype(&::sem_wait)>("sem_wait"));
  return wait_for(semaphore, [&] { return real(semaphore); });
}

STROBE_API int sem_timedwait(sem_t* semaphore, const timespec* until) {
  STROBE_FOUND(real, next<decltype(&::sem_timedwait)>("sem_timedwait"));
  return wait_for(semaphore, [&] { return real(semaphore, until); });
}

STROBE_API int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  STROBE_FOUND(real, next<decltype(&::sem_clockwait)>("sem_clockwait"));
  return wait_for(semaphore, [&] { return real(semaphore, clock, until); });
}

// Of child processes. What the C library calls itself is not seen: hence system and pclose.
STROBE_API pid_t waitpid(pid_t child, int* status, int options) {
  STROBE_FOUND(real, next<decltype(&::waitpid)>("waitpid"));
  if (options & WNOHANG) return real(child, status, options);
  return wait_in(kChild, nullptr, nobody, [&] { return real(child, status, options); });
}

STROBE_API pid_t wait(int* status) {
  STROBE_FOUND(real, next<pid_t (*)(int*)>("wait"));
  return wait_in(kChild, nullptr, nobody, [&] { return real(status); });
}

STROBE_API int system(const char* command) {
  STROBE_FOUND(real, next<decltype(&::system)>("system"));
  return wait_in(kChild, nullptr, nobody, [&] { return real(command); });
}

STROBE_API int pclose(FILE* stream) {
  STROBE_FOUND(real, next<decltype(&::pclose)>("pclose"));
  return wait_in(kChild, nullptr, nobody, [&] { return real(stream); });
}

STROBE_API int sem_post(sem_t* semaphore) noexcept {
  STROBE_FOUND(real, next<decltype(&::sem_post)>("sem_post"));
  signals(semaphore);
  return real(semaphore);
}

}  // extern "C"
