// thread_samples.h - what a thread of the program notes about itself: its call stack, each time that it has computed
// for a period, and what it waited for. The thread writes, also in the handler of a signal; the collector reads.
#pragma once
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include <atomic>
#include <string>
#include <vector>

#include "adapters/sampling/thread_states.h"

namespace strobe::threads {

// Of glibc 2.35: finds the object that holds an address without a lock, so that code in a signal's handler may ask. The
// layout is that of <dlfcn.h>, which older systems that strobe is built on do not have.
struct FoundObject {
  unsigned long long flags;
  void *begin, *end;
  struct link_map* map;
  void *eh_frame, *reserved[8];
};
extern int (*find_object)(void* address, FoundObject* found);  // nullptr: an older glibc, where nothing is sampled
inline void* base_of(uintptr_t address) {                      // nullptr: no object holds it
  FoundObject found{};
  return find_object(reinterpret_cast<void*>(address), &found) == 0 ? found.begin : nullptr;
}

// The function that a preloaded one of the same name stands before.
template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// What a thread waits in, beside the calls of the kernel.
enum Wait : uint32_t { kRuns, kMutex, kReadLock, kWriteLock, kCondition, kJoin, kBarrier };
struct WaitKind {
  const char* function;
  State state;
};
constexpr WaitKind kWaits[] = {{"", kNative},
                               {"pthread_mutex_lock", kLock},
                               {"pthread_rwlock_rdlock", kLock},
                               {"pthread_rwlock_wrlock", kLock},
                               {"pthread_cond_wait", kWaiting},
                               {"pthread_join", kWaiting},
                               {"pthread_barrier_wait", kWaiting}};

constexpr uint32_t kWords = 1u << 15, kFrames = 64;
constexpr uint32_t kCutShort = 1u << 31;  // of Note::frames: there were more

struct Note {  // then so many functions, innermost first: where each begins, or an address in it
  uint32_t frames, wait;
  uint64_t ticks;
  int64_t ns;        // CPU time of the thread until now; of a wait, how long it took
  uintptr_t object;  // that was waited for; 0: none
};
constexpr uint32_t kNoteWords = sizeof(Note) / 8;

// CLOCK_MONOTONIC, CPU time of a thread, and how long it was ready to run and did not until then.
struct Moment {
  int64_t ns, cpu_ns, delay_ns;
};
Moment moment_of(uint64_t thread);

struct ThreadSamples {  // begins as zeroes, and lives until the collector has read everything
  std::atomic<uint64_t> head, tail;
  std::atomic<uint32_t> waits;  // a Wait
  std::atomic<bool> over;
  std::atomic<bool> busy;  // it makes a note: the handler of a signal that comes now makes none
  bool armed;
  timer_t timer;
  uint64_t id;
  uint32_t location;
  Moment began, ended;
  char name[16];  // as of its begin
  uint64_t words[kWords];
};

extern thread_local ThreadSamples* mine __attribute__((tls_model("initial-exec")));
// Counts the handler's calls in this thread: whoever got EINTR knows by it whether the program has interrupted him.
extern thread_local volatile uint32_t interruptions __attribute__((tls_model("initial-exec")));

// Whether the program has told libgcc of code of its own, as compilers at run time do. Older ones then unwind with a
// lock, which a handler must not wait for: stacks have their innermost function only.
extern std::atomic<bool> frames_registered;

// "/usr/bin/solver+0x1139": the address in the file that holds it, for which a name is found after the run.
std::string place_of(uintptr_t address);

// Finds what samples need. False: nothing can be sampled here.
bool prepare();
// The calling thread is sampled from now on, each time that it has computed for `period_ns`; until it ends.
void begin_thread(int64_t period_ns);
// SIGPROF is the program's again: nobody is sampled any more.
void give_way();
bool has_signal();           // SIGPROF is ours, and nobody has taken it since
struct sigaction* before();  // what was done about it before; nullptr: it is not ours
void forked();               // in the child: nothing goes on

// `from`: the address at which the innermost function of the stack is.
void note(ThreadSamples& t, Wait wait, int64_t ns, uintptr_t object, uintptr_t from);

// For the collector, which alone forgets threads: those that are over.
std::vector<ThreadSamples*> all_threads();
void forget(ThreadSamples* t);

}  // namespace strobe::threads
