// thread_samples.h - what a thread of the program notes about itself: its call stack, each time that it has computed
// for a period, and what it waited for. The thread writes, also in the handler of a signal; the collector reads.
#pragma once
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include <atomic>
#include <string>
#include <vector>

#include "adapters/sampling/thread_states.h"
#include "adapters/threads/wait_sums.h"

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
extern void* (*function_around)(void* address);                // where the function begins that holds it, of libgcc
inline void* base_of(uintptr_t address) {                      // nullptr: no object holds it
  FoundObject found{};
  return find_object(reinterpret_cast<void*>(address), &found) == 0 ? found.begin : nullptr;
}

// The function that a preloaded one of the same name stands before.
template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// A function that is looked for when it is first called. A static variable that is made then would have a lock, and who
// waits for that may hold the loader's, which looking needs.
#define STROBE_FOUND(variable, ...)                                                 \
  static std::atomic<void*> variable##_known{nullptr};                              \
  auto variable = reinterpret_cast<decltype(__VA_ARGS__)>(variable##_known.load()); \
  if (!variable) variable##_known.store(reinterpret_cast<void*>(variable = (__VA_ARGS__)))

// What a thread waits in, beside the calls of the kernel.
enum Wait : uint32_t { kRuns, kMutex, kReadLock, kWriteLock, kCondition, kJoin, kBarrier, kSemaphore, kChild };
struct WaitKind {
  const char* function;
  State state;             // of samples
  const char* wait_state;  // of strobe waits
};
constexpr WaitKind kWaits[] = {{"", kNative, ""},
                               {"pthread_mutex_lock", kLock, "lock_contention"},
                               {"pthread_rwlock_rdlock", kLock, "lock_contention"},
                               {"pthread_rwlock_wrlock", kLock, "lock_contention"},
                               {"pthread_cond_wait", kWaiting, "condition_wait"},
                               {"pthread_join", kWaiting, "thread_join"},
                               {"pthread_barrier_wait", kWaiting, "thread_barrier"},
                               {"sem_wait", kWaiting, "semaphore_wait"},
                               {"waitpid (libc.so.6)", kWaiting, ""}};  // "": samples only

constexpr uint32_t kWords = 1u << 15, kFrames = 64, kKinds = 256;
constexpr uint32_t kCutShort = 1u << 31;  // of Stack::frames: there were more

// Who waits, in what, for what object, and for whom: the number of a thread in the system; 0: not known.
struct Waited {
  uint32_t wait, cause;
  uintptr_t object, from, frame;  // return address of the call, and where its frame lies
  bool operator==(const Waited&) const = default;
};

struct Stack {  // innermost first
  uint32_t frames;
  uintptr_t addresses[kFrames];  // of a sample where each function begins, of a wait where it calls the next
  const uintptr_t*
      places[kFrames];  // of a wait: where in the thread's stack that return address lies; nullptr: unknown
};

// Waits that have everything in common.
struct KindOfWait {
  Waited key;
  Stack stack;
  WaitSum sum;
};

struct Note {  // then as many addresses as the stack has
  Waited of;
  uint64_t frames, ticks;
  int64_t cpu_ns;  // of a thread that runs: all until now
  WaitSum sum;     // of one that waited
};
static_assert(sizeof(Note) % 8 == 0);
constexpr uint32_t kNoteWords = sizeof(Note) / 8;

// CLOCK_MONOTONIC, CPU time of a thread, and how long it was ready to run and did not until then.
struct Moment {
  int64_t ns, cpu_ns, delay_ns;
};
Moment moment_of(uint64_t thread);

// How a thread of the program came to be.
struct Creation {
  uint32_t creator = 0;  // its number in the system; 0: unknown
  bool of_mpi = false;   // its waits are not the program's
  uint64_t ticks = 0;    // when; the same of CLOCK_MONOTONIC
  int64_t ns = 0;
  uintptr_t function = 0;  // that it runs
};

struct ThreadSamples {  // begins as zeroes, and lives until the collector has read everything
  std::atomic<uint64_t> head, tail;
  std::atomic<uint32_t> waits;  // a Wait
  std::atomic<bool> over;
  std::atomic<bool> busy;  // it makes a note: the handler of a signal that comes now makes none
  bool armed;
  timer_t timer;
  uint64_t id;
  uint32_t location;
  Creation created;
  Moment began, ended;
  char name[16];  // as of its begin
  pthread_t self;
  uintptr_t stack_begin, stack_end;
  std::atomic<uint64_t> lost_waits;
  uint64_t words[kWords];
  KindOfWait kinds[kKinds];
};

extern thread_local ThreadSamples* mine __attribute__((tls_model("initial-exec")));
// Counts the handler's calls in this thread: whoever got EINTR knows by it whether the program has interrupted him.
extern thread_local volatile uint32_t interruptions __attribute__((tls_model("initial-exec")));

// Calls that no flag of a signal's handler restarts: where it was ours that interrupted, they are made again. A thread
// is interrupted only while it runs, hence before it has waited: what is left of its time is all of it.
template <class Call>
auto again(Call&& call) {
  for (;;) {
    const uint32_t seen = interruptions;
    const auto result = call();
    if (result != -1 || errno != EINTR || seen == interruptions) return result;
  }
}

// Whether the calling thread is in a call of MPI, by libstrobe_mpi.so; nullptr: the program does not call MPI. What MPI
// and its threads wait for is known from its calls.
extern bool (*inside_mpi)();

// Whether the program has told libgcc of code of its own, as compilers at run time do. Older ones then unwind with a
// lock, which a handler must not wait for: stacks have their innermost function only.
extern std::atomic<bool> frames_registered;

// "/usr/bin/solver+0x1139": the address in the file that holds it, for which a name is found after the run.
std::string place_of(uintptr_t address);

// Finds what samples need. False: nothing can be sampled here.
bool prepare();
// The calling thread is sampled from now on, each time that it has computed for `period_ns`; until it ends.
void begin_thread(int64_t period_ns, const Creation& created = {});
// SIGPROF is the program's again: nobody is sampled any more.
void give_way();
bool has_signal();           // SIGPROF is ours, and nobody has taken it since
struct sigaction* before();  // what was done about it before; nullptr: it is not ours
void forked();               // in the child: nothing goes on

// A wait of the calling thread is over.
void add_wait(ThreadSamples& t, const Waited& of, uint64_t ticks, int64_t begin_ns, int64_t ns);
void flush_waits(ThreadSamples& t);               // the calling thread's
uint32_t thread_of(pthread_t thread, bool over);  // its number in the system; 0: nobody follows it, or not yet

// For the collector, which alone forgets threads: those that are over.
std::vector<ThreadSamples*> all_threads();
void forget(ThreadSamples* t);

}  // namespace strobe::threads
