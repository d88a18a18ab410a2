// openmp_tool.cpp - libstrobe_ompt.so: OpenMP, as a tool of its runtime. OMP_TOOL_LIBRARIES names this library; every
// runtime with OMPT (LLVM's libomp, Intel's libiomp5) loads it when it is first used, and calls it on the thread that
// something happens on. libgomp has no OMPT: threads/gomp.cpp calls us for it.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/mpi/function_names.h"
#include "adapters/ompt/interface.h"
#include "adapters/ompt/team_waits.h"
#include "core/system/threads.h"
#include "include/strobe.h"

namespace strobe::ompt {

namespace {

constexpr uint32_t kMostTeams = 64, kMostLocks = 4096;  // that are told apart
constexpr uint64_t kWaits = uint64_t(1) << 32;          // beside the region of a task: any thread may run it

struct Construct {
  const char* name;
  uint8_t role = STROBE_ROLE_RANGE;
};
constexpr Construct kParallel{"parallel"}, kTask{"task"}, kBarrier{"barrier", STROBE_ROLE_WAIT},
    kImplicitBarrier{"implicit barrier", STROBE_ROLE_WAIT}, kTaskwait{"taskwait", STROBE_ROLE_WAIT},
    kTaskgroup{"taskgroup", STROBE_ROLE_WAIT}, kReduction{"reduction", STROBE_ROLE_WAIT}, kAnyWork{"work"},
    kLoop{"loop"}, kSections{"sections"}, kSingle{"single"}, kWorkshare{"workshare"}, kDistribute{"distribute"},
    kTaskloop{"taskloop"}, kScope{"scope"}, kLockRequest{"wait for lock", STROBE_ROLE_WAIT},
    kCriticalRequest{"wait for critical", STROBE_ROLE_WAIT}, kAtomicRequest{"wait for atomic", STROBE_ROLE_WAIT},
    kOrderedRequest{"wait for ordered", STROBE_ROLE_WAIT}, kLock{"lock"}, kCriticalHold{"critical"},
    kAtomicHold{"atomic"}, kOrderedHold{"ordered"};
// By ompt_sync_region_t, ompt_work_t and ompt_mutex_t.
constexpr const Construct* kSync[] = {&kBarrier,         &kBarrier,         &kImplicitBarrier, &kBarrier,
                                      &kBarrier,         &kTaskwait,        &kTaskgroup,       &kReduction,
                                      &kImplicitBarrier, &kImplicitBarrier, &kImplicitBarrier};
constexpr const Construct* kWorks[] = {&kAnyWork,  &kLoop,  &kSections,  &kSingle, &kSingle, &kWorkshare, &kDistribute,
                                       &kTaskloop, &kScope, &kWorkshare, &kLoop,   &kLoop,   &kLoop,      &kLoop};
constexpr const Construct* kRequests[] = {&kLockRequest, &kLockRequest,     &kLockRequest,   &kLockRequest,
                                          &kLockRequest, &kCriticalRequest, &kAtomicRequest, &kOrderedRequest};
constexpr const Construct* kHolds[] = {&kLock, &kLock,         &kLock,       &kLock,
                                       &kLock, &kCriticalHold, &kAtomicHold, &kOrderedHold};

template <size_t kCount>
const Construct& construct(const Construct* const (&of)[kCount], int number) {
  return *of[number > 0 && size_t(number) < kCount ? number : 0];
}

bool is_barrier(const Construct& sync) { return &sync == &kBarrier || &sync == &kImplicitBarrier; }
bool is_taskwait(const Construct& sync) { return &sync == &kTaskwait || &sync == &kTaskgroup; }
bool is_work(const Construct& construct) { return std::ranges::find(kWorks, &construct) != std::end(kWorks); }

using Site = const void*;
// `number`: of the lock (its address) or team, as the runtime has it; 0: none.
struct Key {
  const Construct* construct;
  Site site;
  uint64_t number;
  bool operator==(const Key&) const = default;
  auto operator<=>(const Key&) const = default;
};

struct Team;
struct Open {
  const Construct* construct;
  uint32_t region;
  const void* of;  // team, task or lock
};
struct Held {
  uint64_t lock, ticks, records;
  uint32_t region;
};
// A construct at a place: its region, and its call stack in rows of waits.
struct Known {
  uint32_t region = 0, call_stack = 0;
};
struct Thread : Waiter {
  void* const recorder = strobe_this_thread();
  std::vector<Open> open;                // outermost first
  std::vector<Held> held;                // locks
  Team* team = nullptr;                  // of its implicit task
  std::atomic<Team*> waits_in{nullptr};  // a worker in an implicit barrier of this team
  std::array<std::pair<Key, Known>, 64> known{};
  Thread() : Waiter(strobe_location(thread_id(), nullptr)) {}
};
struct Team : TeamWaits {
  uint32_t slot;
  Site site;
  Known known;
  std::mutex mutex;
  std::vector<Thread*> workers;
  std::mutex idle_mutex{};
  std::map<const Thread*, int64_t> idle_ns{};  // of threads, in barriers that they have left
};
// waits_in of a worker whose regions its primary thread ends now, and of one that ends them itself.
Team closing{{0, 0, 0}, 0, nullptr, {}, {}, {}}, leaving{{0, 0, 0}, 0, nullptr, {}, {}, {}};

std::mutex mutex;  // of what make_known uses, and of all threads
auto& threads = *new std::vector<Thread*>;

thread_local Thread* mine __attribute__((tls_model("initial-exec")));
Thread& me() {
  if (mine) return *mine;
  mine = new Thread;
  const std::lock_guard lock(mutex);
  threads.push_back(mine);
  return *mine;
}

// At the end of the program: whoever still records then may lose some ms of short waits.
void flush_all() {
  const std::lock_guard lock(mutex);
  for (Thread* thread : threads) thread->flush();
}

std::atomic<uint64_t> teams{0};  // a bit for each slot in use
std::atomic<uint32_t> workers{0};

Known make_known(const Key& key) {
  struct Named {
    std::string site, address;
  };
  static auto& all = *new std::map<Key, Known>;
  static auto& sites = *new std::map<Site, Named>;
  static auto& locks = *new std::map<uint64_t, size_t>;
  const std::lock_guard lock(mutex);
  Known& known = all[key];
  if (known.region) return known;
  auto [site, fresh] = sites.try_emplace(key.site);
  if (fresh && key.site) {
    const mpi::Place place = mpi::find_place(static_cast<const char*>(key.site) - 1);
    char offset[32];
    snprintf(offset, sizeof offset, "+0x%llx\n", (unsigned long long)place.address);
    site->second = {mpi::call_site(place), "@" + place.path + offset};
    strobe_note_call_site(site->second.site.c_str(), place.path.c_str(), place.address);
  }
  // As MPI's peers are: what tells calls apart, then the call site.
  std::string place;
  if (key.construct == &kParallel) {
    if (key.number) place = "team " + std::to_string(key.number) + "; ";
  } else if (key.number && (locks.size() < kMostLocks || locks.contains(key.number))) {
    place = "lock " + std::to_string(locks.try_emplace(key.number, locks.size() + 1).first->second) + "; ";
  }
  const bool is_lock = place.starts_with("lock");
  known.call_stack = strobe_text(
      (site->second.address + key.construct->name + (is_lock ? " (" + place.substr(0, place.size() - 2) + ")" : ""))
          .c_str());
  place += site->second.site;
  strobe_region_info info{};
  info.name = key.construct->name;
  info.file = place.c_str();
  info.paradigm = STROBE_OPENMP;
  info.role = key.construct->role;
  known.region = strobe_region(&info);
  return known;
}

Known known_of(Thread& thread, const Construct& construct, Site site, uint64_t number = 0) {
  const Key key{&construct, site, number};
  const uint64_t hash = (uint64_t(&construct) ^ uint64_t(site) * 31 ^ number * 17) * 0x9E3779B97F4A7C15ull;
  auto& [of, known] = thread.known[hash >> 58];
  if (!known.region || !(of == key)) of = key, known = make_known(key);
  return known;
}

uint32_t region_of(Thread& thread, const Construct& construct, Site site, uint64_t number = 0) {
  return known_of(thread, construct, site, number).region;
}

void enter(Thread& thread, const Construct& construct, uint32_t region, const void* of = nullptr) {
  thread.open.push_back({&construct, region, of});
  strobe_enter(region);
}

// Leave a region, and what is still open inside of it (libiomp5 does not report the end of GCC's `single`). What began
// before the tool did is not known.
void leave(Thread& thread, const Construct& construct, const void* of = nullptr) {
  const auto is = [&](const Open& open) { return open.construct == &construct && open.of == of; };
  if (std::ranges::none_of(thread.open, is)) return;
  for (bool found = false; !found; thread.open.pop_back()) {
    found = is(thread.open.back());
    strobe_leave(thread.open.back().region);
  }
}

void thread_begin(int kind, Data*) {
  if (kind == kWorker) strobe_name_thread(("OpenMP worker " + std::to_string(++workers)).c_str());
}

void thread_end(Data*) {
  if (!mine) return;
  mine->flush();
  const std::lock_guard lock(mutex);
  std::erase(threads, mine);
  delete std::exchange(mine, nullptr);
}

void parallel_begin(Data*, const void*, Data* parallel, unsigned, int, Site site) {
  uint64_t used = teams.load();
  uint32_t slot;
  do {
    slot = uint32_t(std::countr_one(used));
  } while (slot < kMostTeams && !teams.compare_exchange_weak(used, used | uint64_t(1) << slot));
  Thread& thread = me();
  auto* team = new Team{{thread.location, Moment::now().ns, thread.starved()},
                        slot,
                        site,
                        known_of(thread, kParallel, site, slot),
                        {},
                        {}};
  parallel->pointer = team;
  enter(thread, kParallel, team->known.region, team);
}

void parallel_end(Data* parallel, Data*, int, Site) {
  const auto* team = static_cast<Team*>(parallel->pointer);
  if (!team) return;
  leave(me(), kParallel, team);
  if (team->slot < kMostTeams) teams &= ~(uint64_t(1) << team->slot);
  delete team;
}

void close_all(Thread& thread, uint64_t ticks) {
  for (; !thread.open.empty(); thread.open.pop_back())
    strobe_leave_for(thread.recorder, thread.open.back().region, ticks);
}

// LLVM's runtime lets workers know only when the next region begins that the barrier at the end of this one was over:
// until then they wait inside of it. Their primary thread knows, and ends their regions.
void close_workers(Thread& primary, Team& team) {
  const Moment now = Moment::now();
  std::vector<Thread*> workers;
  const std::lock_guard lock(team.mutex);
  for (Thread* worker : team.workers) {
    Team* expected = &team;
    if (worker->waits_in.compare_exchange_strong(expected, &closing)) {
      close_all(*worker, now.ticks);
      worker->retire(now);
      workers.push_back(worker);
      team.idle_ns[worker] = worker->members.back().idle_ns;
    } else {  // it has left by itself, or is about to: it still needs the team
      while (worker->waits_in == &leaving) std::this_thread::yield();
    }
  }
  std::vector<int64_t> idle_ns;
  for (const auto& [thread, ns] : team.idle_ns)
    if (thread != &primary) idle_ns.push_back(ns);
  end_region(primary, idle_ns, team.known.call_stack, now);
  for (Thread* worker : workers) worker->waits_in = nullptr;
}

void implicit_task(int endpoint, Data* parallel, Data* task, unsigned size, unsigned index, int flags) {
  if (!(flags & kImplicit)) return;
  Thread& thread = me();
  if (endpoint == kBegin) {
    auto* team = parallel ? static_cast<Team*>(parallel->pointer) : nullptr;
    task->pointer = nullptr;
    if (!team) return;
    team->size = size;
    if (index) thread.members.clear();  // of a region whose end the runtime did not report
    thread.join(*team, known_of(thread, kParallel, team->site).call_stack);
    if (index) {
      enter(thread, kParallel, team->known.region, team);
      const std::lock_guard lock(team->mutex);
      team->workers.push_back(&thread);
    }
    thread.team = team;
    return;
  }
  const bool primary = !thread.open.empty() && thread.open.back().construct == &kParallel && !index;
  if (primary)
    close_workers(thread, *static_cast<Team*>(const_cast<void*>(thread.open.back().of)));
  else if (index)
    close_all(thread, strobe_ticks());
  if (!thread.members.empty()) thread.members.pop_back();
  thread.team = thread.members.empty() ? nullptr : static_cast<Team*>(thread.members.back().team);
}

void sync_region_wait(int kind, int endpoint, Data*, Data*, Site site) {
  Thread& thread = me();
  const Construct& sync = construct(kSync, kind);
  if (endpoint == kBegin) {
    Team* team = thread.team;
    // No barrier is inside of shared work.
    while (is_barrier(sync) && !thread.open.empty() && is_work(*thread.open.back().construct))
      leave(thread, *thread.open.back().construct);
    const Known known = known_of(thread, sync, site || !team ? site : team->site);
    enter(thread, sync, known.region);
    if (is_barrier(sync) && team) thread.arrive(known.call_stack);
    if (is_taskwait(sync)) thread.wait_for_tasks(known.call_stack);
    if (&sync == &kImplicitBarrier) thread.waits_in = team;
    return;
  }
  Team* team = thread.waits_in;
  while (&sync == &kImplicitBarrier) {
    if (team == &closing)
      std::this_thread::yield(), team = thread.waits_in;
    else if (thread.waits_in.compare_exchange_weak(team, team ? &leaving : nullptr))
      break;
  }
  const bool left = is_barrier(sync) && !thread.members.empty() && thread.leave(Moment::now());
  if (&sync == &kImplicitBarrier && team) {
    if (left) {
      const std::lock_guard lock(team->idle_mutex);
      team->idle_ns[&thread] = thread.members.back().idle_ns;
    }
    thread.waits_in = nullptr;
  }
  if (left && kind != kAtEndOfRegion) thread.resume();
  if (is_taskwait(sync)) thread.wait_for_tasks(0);
  leave(thread, sync);
}

void work(int kind, int endpoint, Data*, Data*, uint64_t, Site site) {
  if (kind == kSingleOther) return;  // the others of a single have no work
  Thread& thread = me();
  const Construct& of = construct(kWorks, kind);
  endpoint == kBegin ? enter(thread, of, region_of(thread, of, site)) : leave(thread, of);
}

const void* pointer(uint64_t lock) { return reinterpret_cast<const void*>(lock); }

void mutex_acquire(int kind, unsigned, unsigned, uint64_t lock, Site site) {
  if (kind == kTestLock || kind == kTestNestedLock) return;  // they do not wait
  Thread& thread = me();
  const Construct& request = construct(kRequests, kind);
  enter(thread, request, region_of(thread, request, site, lock), pointer(lock));
  thread.ask();
}

// Critical sections and their like are spans. A lock may be released anywhere: it is a span if nothing was recorded
// while it was held.
void mutex_acquired(int kind, uint64_t lock, Site site) {
  Thread& thread = me();
  const Construct& request = construct(kRequests, kind);
  if (std::ranges::any_of(thread.open, [&](const Open& open) { return open.of == pointer(lock); }))
    thread.acquired(lock, known_of(thread, request, site, lock).call_stack);
  leave(thread, request, pointer(lock));
  const Construct& hold = construct(kHolds, kind);
  const uint32_t region = region_of(thread, hold, site, lock);
  if (kind >= kCritical) return enter(thread, hold, region, pointer(lock));
  thread.held.push_back({lock, strobe_ticks(), strobe_records(), region});
}

void mutex_released(int kind, uint64_t lock, Site) {
  Thread& thread = me();
  thread.released(lock);
  if (kind >= kCritical) return leave(thread, construct(kHolds, kind), pointer(lock));
  const auto held = std::ranges::find(thread.held, lock, &Held::lock);
  if (held == thread.held.end()) return;
  if (held->records == strobe_records())
    strobe_enter_at(held->region, held->ticks), strobe_leave(held->region);
  else
    strobe_count("openmp_locks_held_across_spans", 1);
  thread.held.erase(held);
}

// A thread has asked for a lock that it holds: it does not wait.
void nest_lock(int endpoint, uint64_t lock, Site) {
  if (endpoint == kBegin) leave(me(), construct(kRequests, kNestedLock), pointer(lock));
}

void task_create(Data*, const void*, Data* task, int flags, int depends, Site site) {
  if (!task) return;
  Thread& thread = me();
  task->value = region_of(thread, kTask, site);
  if (!thread.team || depends || (flags & kUndeferred)) return;
  task->value |= kWaits, thread.team->tasks.add(0, 1, thread.location);
}

// A task that waits for others stays open, and they are inside of it.
void task_schedule(Data* before, int why, Data* next) {
  Thread& thread = me();
  const auto is_open = [&](Data* task) {
    return task && std::ranges::find(thread.open, task, &Open::of) != thread.open.end();
  };
  if ((why == kComplete || why == kCancel || why == kDetach) && is_open(before))
    leave(thread, kTask, before), thread.end_task();
  if (!next || !next->value || is_open(next)) return;
  enter(thread, kTask, uint32_t(next->value), next);
  thread.begin_task(next->value & kWaits);
}

int initialize(Lookup lookup, int, Data*) {
  const auto set = reinterpret_cast<int (*)(int, Callback)>(lookup("ompt_set_callback"));
  if (!set) return 0;
  const auto on = [&](int event, auto* callback) { set(event, reinterpret_cast<Callback>(callback)); };
  atexit(flush_all);
  on(kThreadBegin, thread_begin), on(kThreadEnd, thread_end);
  on(kParallelBegin, parallel_begin), on(kParallelEnd, parallel_end), on(kImplicitTask, implicit_task);
  on(kSyncRegionWait, sync_region_wait), on(kWork, work);
  on(kMutexAcquire, mutex_acquire), on(kMutexAcquired, mutex_acquired), on(kMutexReleased, mutex_released);
  on(kNestLock, nest_lock), on(kTaskCreate, task_create), on(kTaskSchedule, task_schedule);
  return 1;
}

}  // namespace

}  // namespace strobe::ompt

// The runtime asks every tool of its list, and takes the first that wants it.
extern "C" STROBE_API strobe::ompt::StartToolResult* ompt_start_tool(unsigned, const char*) {
  static strobe::ompt::StartToolResult tool{strobe::ompt::initialize, [](strobe::ompt::Data*) {}, {}};
  strobe_begin();  // unless this process records already
  return &tool;
}
