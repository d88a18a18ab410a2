// gomp.cpp - OpenMP of GCC. Its runtime, libgomp, has no interface for tools (OMPT): the functions that compiled code
// calls are interposed, and tell our tool, libstrobe_ompt.so, what a runtime with OMPT would. Runtimes that have it
// export the same functions for GCC's code, and are left alone.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include <array>
#include <atomic>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "adapters/ompt/interface.h"
#include "adapters/threads/thread_samples.h"
#include "include/strobe.h"

namespace strobe::threads {

namespace {

using namespace strobe::ompt;
using Word = intptr_t;  // every argument is an integer or a pointer
using Body = void (*)(void*);
using Site = const void*;

constexpr int kTeamBarrier = 1, kTaskwait = 5, kTaskgroup = 6;  // ompt_sync_region_t
constexpr int kInitial = 1, kLock = 1, kAtomic = 6;             // ompt_thread_t, ompt_mutex_t
constexpr unsigned kHasDependences = 8;                         // GOMP_TASK_FLAG_DEPEND of libgomp's gomp-constants.h
constexpr Site kNoSite = nullptr;
Data* const none = nullptr;

// A function of the runtime. Where none is global, as in a Python whose packages bring runtimes of their own, each
// caller has its own, and nothing is recorded.
struct Callee {
  std::atomic<void*> global;
  struct {
    void *object, *function;
  } of_objects[8];
};
void* find(const char* name, Callee& known, const void* site) {
  if (void* found = known.global) return found;
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  if (void* found = dlsym(RTLD_NEXT, name)) return known.global = found;
  Dl_info caller{};
  dladdr(site, &caller);
  for (auto& [object, function] : known.of_objects) {
    if (object && object != caller.dli_fbase) continue;
    if (object) return function;
    void* handle = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) break;
    object = caller.dli_fbase, function = dlsym(handle, name);
    dlclose(handle);
    return function;
  }
  return nullptr;
}

Callback callbacks[kNestLock + 1];
int (*thread_number)();
int (*team_size)();

template <class... Arguments>
void tell(int event, Arguments... arguments) {
  if (callbacks[event]) reinterpret_cast<void (*)(Arguments...)>(callbacks[event])(arguments...);
}

// The tool as it is named to runtimes that have OMPT; "": nobody wants to record OpenMP.
std::string tool() {
  const char *libraries = getenv("OMP_TOOL_LIBRARIES"), *use = getenv("OMP_TOOL");
  const std::string all = libraries ? libraries : "", name = "libstrobe_ompt.so";
  const size_t end = all.rfind(name);
  if (end == all.npos || (use && std::string(use) == "disabled")) return "";
  const size_t begin = all.rfind(':', end);
  return all.substr(begin == all.npos ? 0 : begin + 1, end + name.size() - (begin == all.npos ? 0 : begin + 1));
}

bool load() {
  const std::string path = dlsym(RTLD_DEFAULT, "__kmpc_fork_call") ? "" : tool();
  void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW);
  if (!library) return false;
  thread_number = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_thread_num"));
  team_size = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_num_threads"));
  auto* start = reinterpret_cast<StartToolResult* (*)(unsigned, const char*)>(dlsym(library, "ompt_start_tool"));
  if (!thread_number || !team_size || !start) return false;
  constexpr int (*set)(int, Callback) = [](int event, Callback callback) {
    callbacks[event] = callback;
    return 1;
  };
  StartToolResult* result = start(201811, "libgomp");  // OpenMP 5.0
  const Lookup lookup = [](const char*) { return reinterpret_cast<Callback>(set); };
  return result && result->initialize(lookup, 0, &result->tool);
}

// Whether what the calling thread does is recorded. If not, the real function is called last, so that the compiler
// makes it a jump: a runtime with OMPT takes its return address for the place of the call.
bool on() {
  if (!mine || (inside_mpi && inside_mpi())) return false;
  static const bool loaded = load();
  return loaded;
}

struct Worker {
  bool begun = false, waits = false;  // at the end of a region that is over when the next one begins
  Data thread{}, task{};
  ~Worker() {
    if (begun) tell(kThreadEnd, &thread);
  }
};
thread_local Worker worker;

struct Region {
  Body body;
  void* data;
  Data parallel{};
};

// What each thread of a team runs instead of the body of the region.
void run_region(void* argument) {
  auto& region = *static_cast<Region*>(argument);
  const auto number = unsigned(thread_number());
  if (!std::exchange(worker.begun, true)) tell(kThreadBegin, number ? kWorker : kInitial, &worker.thread);
  if (number && std::exchange(worker.waits, false)) {
    tell(kSyncRegionWait, kAtEndOfRegion, kEnd, none, none, kNoSite);
    tell(kImplicitTask, kEnd, none, &worker.task, 0u, number, kImplicit);
  }
  Data task{};
  tell(kImplicitTask, kBegin, &region.parallel, number ? &worker.task : &task, unsigned(team_size()), number,
       kImplicit);
  region.body(region.data);
  tell(kSyncRegionWait, kAtEndOfRegion, kBegin, &region.parallel, number ? &worker.task : &task, kNoSite);
  if (number) worker.waits = true;
}

template <class Call>
[[gnu::always_inline]] inline void parallel(Body body, void* data, Site site, Call&& call) {
  if (!on()) return call(body, data);
  Region region{body, data};
  tell(kParallelBegin, none, kNoSite, &region.parallel, 0u, 0, site);
  call(run_region, &region);
  Data task{};
  tell(kSyncRegionWait, kAtEndOfRegion, kEnd, &region.parallel, none, kNoSite);
  tell(kImplicitTask, kEnd, none, &task, 0u, 0u, kImplicit);
  tell(kParallelEnd, &region.parallel, none, 0, site);
}

template <class Call>
[[gnu::always_inline]] inline void wait(int kind, Site site, Call&& call) {
  if (!on()) return call();
  tell(kSyncRegionWait, kind, kBegin, none, none, site);
  call();
  tell(kSyncRegionWait, kind, kEnd, none, none, site);
}

template <class Call>
[[gnu::always_inline]] inline void lock(int kind, uint64_t number, Site site, Call&& call) {
  if (!on()) return call();
  tell(kMutexAcquire, kind, 0u, 0u, number, site);
  call();
  tell(kMutexAcquired, kind, number, site);
}

template <class Call>
[[gnu::always_inline]] inline void unlock(int kind, uint64_t number, Site site, Call&& call) {
  if (!on()) return call();
  call();
  tell(kMutexReleased, kind, number, site);
}

// Tasks of one construct have one body: it is known by a function of ours that runs instead. That leaves the data of
// the task as they are, which libgomp copies.
struct TaskKind {
  std::atomic<Body> body;
  std::atomic<uint64_t> created;  // what the tool knows of it
};
TaskKind task_kinds[64];

template <size_t number>
void run_task(void* data) {
  Data task{task_kinds[number].created};
  tell(kTaskSchedule, none, 0, &task);
  task_kinds[number].body.load()(data);
  tell(kTaskSchedule, &task, kComplete, none);
}
template <size_t... numbers>
constexpr std::array<Body, sizeof...(numbers)> run_tasks(std::index_sequence<numbers...>) {
  return {run_task<numbers>...};
}

Body task(Body body, int flags, int depends, Site site) {
  static constexpr auto run = run_tasks(std::make_index_sequence<std::size(task_kinds)>());
  if (!on()) return body;
  for (size_t i = 0; i < std::size(task_kinds); i++) {
    Body known = nullptr;
    if (!task_kinds[i].body.compare_exchange_strong(known, body) && known != body) continue;
    Data created{};
    tell(kTaskCreate, none, kNoSite, &created, flags, depends, site);
    task_kinds[i].created = created.value;
    return run[i];
  }
  return body;
}

uint64_t number_of(const void* lock) { return uint64_t(lock); }
const uint64_t unnamed = 1, atomics = 2;  // of locks that have no address of the program's

}  // namespace

}  // namespace strobe::threads

using namespace strobe::threads;

#define SITE __builtin_return_address(0)
#define REAL(name, ...)       \
  static Callee known_##name; \
  auto real = reinterpret_cast<void (*)(__VA_ARGS__)>(find(#name, known_##name, SITE))

#define PARALLEL(name)                                                                            \
  STROBE_API void name(Body body, void* data, Word a, Word b, Word c, Word d, Word e, Word f) {   \
    REAL(name, Body, void*, Word, Word, Word, Word, Word, Word);                                  \
    parallel(body, data, SITE, [&](Body run, void* with) { real(run, with, a, b, c, d, e, f); }); \
  }
#define WAIT(name, kind)                                \
  STROBE_API void name() {                              \
    REAL(name);                                         \
    strobe::threads::wait(kind, SITE, [&] { real(); }); \
  }
#define LOCK(verb, name, kind, number)            \
  STROBE_API void name(void* key) {               \
    REAL(name, void*);                            \
    verb(kind, number, SITE, [&] { real(key); }); \
  }

extern "C" {

PARALLEL(GOMP_parallel)
PARALLEL(GOMP_parallel_loop_static)
PARALLEL(GOMP_parallel_loop_dynamic)
PARALLEL(GOMP_parallel_loop_guided)
PARALLEL(GOMP_parallel_loop_runtime)
PARALLEL(GOMP_parallel_loop_nonmonotonic_dynamic)
PARALLEL(GOMP_parallel_loop_nonmonotonic_guided)
PARALLEL(GOMP_parallel_loop_nonmonotonic_runtime)
PARALLEL(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
PARALLEL(GOMP_parallel_sections)

WAIT(GOMP_barrier, kTeamBarrier)
WAIT(GOMP_loop_end, kTeamBarrier)
WAIT(GOMP_sections_end, kTeamBarrier)
WAIT(GOMP_taskwait, kTaskwait)
WAIT(GOMP_taskgroup_end, kTaskgroup)

LOCK(lock, GOMP_critical_start, kCritical, unnamed)
LOCK(unlock, GOMP_critical_end, kCritical, unnamed)
LOCK(lock, GOMP_critical_name_start, kCritical, number_of(key))
LOCK(unlock, GOMP_critical_name_end, kCritical, number_of(key))
LOCK(lock, GOMP_atomic_start, kAtomic, atomics)
LOCK(unlock, GOMP_atomic_end, kAtomic, atomics)
LOCK(lock, omp_set_lock, kLock, number_of(key))
LOCK(unlock, omp_unset_lock, kLock, number_of(key))

STROBE_API int omp_test_lock(void* key) {
  static Callee known;
  auto real = reinterpret_cast<int (*)(void*)>(find("omp_test_lock", known, SITE));
  if (!on()) return real(key);
  const int taken = real(key);
  if (taken) tell(kMutexAcquired, kTestLock, number_of(key), Site(SITE));
  return taken;
}

STROBE_API void GOMP_task(Body body, void* data, void* copy, Word size, Word alignment, Word at_once, unsigned flags,
                          void* depends, Word priority, void* detach) {
  REAL(GOMP_task, Body, void*, void*, Word, Word, Word, unsigned, void*, Word, void*);
  real(task(body, 0, (flags & kHasDependences) != 0, SITE), data, copy, size, alignment, at_once, flags, depends,
       priority, detach);
}

// How many tasks it makes is not known here: none of them counts as one that waits for a thread.
STROBE_API void GOMP_taskloop(Body body, void* data, void* copy, Word size, Word alignment, unsigned flags, Word tasks,
                              Word priority, Word begin, Word end, Word step) {
  REAL(GOMP_taskloop, Body, void*, void*, Word, Word, unsigned, Word, Word, Word, Word, Word);
  real(task(body, kUndeferred, 0, SITE), data, copy, size, alignment, flags, tasks, priority, begin, end, step);
}

}  // extern "C"
