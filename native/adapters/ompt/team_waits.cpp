#include "adapters/ompt/team_waits.h"

#include <algorithm>
#include <utility>

#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe::ompt {

namespace {

constexpr int64_t kBetweenLooksNs = 1000000;  // a look takes 3 us

// Who has a lock, or had it last. Locks that share a place may lack a wait's cause.
struct Owner {
  std::atomic<uint64_t> lock;
  std::atomic<uint32_t> location;
  std::atomic<int64_t> released_ns;  // 0: it still has it
};
Owner owners[4096];
Owner& owner_of(uint64_t lock) { return owners[lock * 0x9E3779B97F4A7C15ull >> 52]; }

auto writer(uint32_t location, const KindOfWait& kind) {
  return [=](const WaitSum& sum) {
    const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(location, kind.call_stack),
                                               STROBE_TWO(strobe_text(kind.state), kind.cause),
                                               STROBE_TWO(sum.waits, 0), sum.wait_ns, sum.max_ns};
    strobe_row_at(STROBE_ROW_THREAD_WAIT, sum.ticks, values);
    return true;
  };
}

}  // namespace

TaskTimes RunningTasks::add(int threads, int waiting, uint32_t location) {
  const std::lock_guard lock(mutex_);
  const int64_t now = Moment::now().ns;
  if (threads_) times_.any_ns += now - since_ns_;
  if (threads_ && waiting_ <= 0) times_.last_ns += now - since_ns_;
  since_ns_ = now, threads_ += threads, waiting_ += waiting;
  if (threads < 0 && !threads_) last = location;
  return times_;
}

Moment Moment::now() { return {strobe_ticks(), clock_ns(CLOCK_MONOTONIC)}; }

void Waiter::add(const KindOfWait& kind, const Moment& begin, int64_t ns) {
  if (ns <= 0) return;
  const uint64_t hash = (uint64_t(kind.state) ^ uint64_t(kind.call_stack) << 20 ^ kind.cause) * 0x9E3779B97F4A7C15ull;
  auto& [known, sum] = sums_[hash >> 58];
  if (known != kind) sum.flush(writer(location, known)), known = kind;
  sum.add(begin.ticks, begin.ns, ns, writer(location, kind));
}

void Waiter::flush() {
  for (auto& [kind, sum] : sums_) sum.flush(writer(location, kind));
}

int64_t Waiter::starved() {
  const int64_t now = Moment::now().ns;
  if (now - looked_ns_ < kBetweenLooksNs) return 0;
  looked_ns_ = now;
  const int64_t before = std::exchange(delay_ns_, delay_ns(id_));
  return delay_ns_ - before;
}

void Waiter::resume() {
  Member& member = members.back();
  member.starved_ns = std::min(starved(), Moment::now().ns - member.phase_ns);
}

void Waiter::join(TeamWaits& team, uint32_t call_stack) {
  if (const int64_t idle = idle_since_.ns ? team.begin_ns - idle_since_.ns : 0; idle > 0) {
    add({"idle_worker", call_stack, team.location}, idle_since_, idle);
    add({"team_serial", call_stack, team.location}, idle_since_, idle - team.starved_ns);
  }
  idle_since_ = {};
  members.push_back({&team});
  members.back().phase_ns = team.begin_ns, members.back().start_ns = Moment::now().ns - team.begin_ns;
  resume();
}

void Waiter::arrive(uint32_t call_stack) {
  Member& member = members.back();
  member.call_stack = call_stack, member.starved_ns += starved();
  member.tasks_ns = member.task_began_ns = 0, member.locked_ns = locked_ns_;
  Arrivals* arrivals = member.team->arrivals;
  const uint32_t turn = member.barriers++ & 1;
  Arrivals& here = arrivals[turn];
  {
    const std::lock_guard lock(here.mutex);
    member.came = Moment::now();
    const int64_t ns = member.came.ns - member.starved_ns;
    if (ns > here.latest_ns) here.latest_ns = ns, here.locked_ns = locked_ns_, here.latest = location;
    if (++here.count == member.team->size) {
      arrivals[!turn].count = 0, arrivals[!turn].complete = false, arrivals[!turn].latest_ns = 0;
      here.ns = member.came.ns, here.start_ns = member.start_ns, here.location = location;
      here.tasks_ns = member.team->tasks.add(0, 0, location).any_ns;
      here.complete = true;
    }
  }
  locked_ns_ = 0;
  member.tasks.clear(), run_or_wait();
  idle(call_stack);
}

void Waiter::begin_task(bool waited) {
  if (members.empty()) return;
  if (waited) members.back().team->tasks.add(0, -1, location);
  members.back().tasks.push_back(0), run_or_wait();
}
void Waiter::end_task() {
  if (!members.empty() && !members.back().tasks.empty()) members.back().tasks.pop_back(), run_or_wait();
}

void Waiter::wait_for_tasks(uint32_t call_stack) {
  if (members.empty()) return;
  const int64_t starved_ns = starved();
  if (call_stack) members.back().starved_ns += starved_ns;  // while it waits it needs no core
  std::vector<uint32_t>& tasks = members.back().tasks;
  if (!tasks.empty())
    tasks.back() += call_stack ? 1 : -1, run_or_wait();
  else if (call_stack)
    idle(call_stack);
  else
    end_idle();
}

void Waiter::idle(uint32_t call_stack) {
  Member& member = members.back();
  member.idle_in = call_stack, member.idle_since = Moment::now();
  member.others_ns = member.early_ns = 0, member.others_began = member.team->tasks.add(0, 0, location);
}

void Waiter::idle_until(const TaskTimes& tasks) {
  Member& member = members.back();
  const Arrivals& here = member.team->arrivals[(member.barriers - 1) & 1];
  const int64_t last = here.complete ? std::min(here.tasks_ns, tasks.any_ns) : tasks.any_ns;
  member.others_ns += tasks.last_ns - member.others_began.last_ns;
  member.early_ns += std::max<int64_t>(0, last - member.others_began.any_ns);
}

// It waits for tasks no more. Returns how long others ran tasks before the last thread came to the barrier.
int64_t Waiter::end_idle() {
  Member& member = members.back();
  if (!member.idle_in) return 0;
  idle_until(member.team->tasks.add(0, 0, location));
  add({"no_task", member.idle_in, member.team->tasks.last}, member.idle_since, member.others_ns);
  member.idle_in = 0;
  return member.early_ns;
}

// Explicit tasks that it runs in a barrier are not part of its wait.
void Waiter::run_or_wait() {
  Member& member = members.back();
  const bool runs = !member.tasks.empty() && !member.tasks.back();
  if (std::exchange(member.runs, runs) == runs) return;
  const TaskTimes tasks = member.team->tasks.add(runs ? 1 : -1, 0, location);
  if (member.idle_in && runs) idle_until(tasks);
  member.others_began = tasks;
  if (!member.call_stack) return;
  const Arrivals& here = member.team->arrivals[(member.barriers - 1) & 1];
  const int64_t now = Moment::now().ns;
  if (runs) {
    member.task_began_ns = now;
  } else if (member.task_began_ns) {
    const int64_t until = here.complete ? std::max(here.ns, member.task_began_ns) : now;
    member.tasks_ns += std::min(now, until) - member.task_began_ns;
    member.idle_ns -= now - member.task_began_ns;
    member.task_began_ns = 0;
  }
}

// The barrier is over: it waited until the last one came.
bool Waiter::leave(const Moment& now) {
  Member& member = members.back();
  if (!member.call_stack) return false;
  const Arrivals& last = member.team->arrivals[(member.barriers - 1) & 1];
  const int64_t ran_ns = member.tasks_ns + end_idle();
  if (last.complete) {
    const auto note = [&](const char* state, uint32_t cause, int64_t ns) {
      add({state, member.call_stack, cause}, member.came, ns);
    };
    const int64_t wait = last.location == location ? 0 : std::min(last.ns, now.ns) - member.came.ns - ran_ns;
    note("thread_barrier", last.location, wait);
    // Work that is handed out goes to who has a core: who waits for nobody loses nothing.
    const int64_t would_wait = last.latest_ns - (member.came.ns - member.starved_ns) - ran_ns;
    const int64_t uneven = std::max<int64_t>(0, std::min(wait, would_wait));
    note("team_imbalance", last.latest, uneven);
    note("team_locks", last.latest, std::min(uneven, last.locked_ns - member.locked_ns));
    note("team_starved", last.location, member.starved_ns + std::max<int64_t>(0, wait) - uneven);
  }
  member.idle_ns += now.ns - member.came.ns, member.phase_ns = last.complete ? last.ns : now.ns;
  member.call_stack = 0;
  return true;
}

void Waiter::retire(const Moment& now) {
  leave(now);
  idle_since_ = now;
}

// Who had it before may be known not to have it any more only later: the runtime reports that after it has let go.
void Waiter::acquired(uint64_t lock, uint32_t call_stack) {
  Owner& owner = owner_of(lock);
  const uint32_t before = owner.location;
  if (owner.lock == lock && before && before != location + 1) {
    const int64_t released = owner.released_ns, wait = (released ? released : Moment::now().ns) - asked_.ns;
    add({"lock_contention", call_stack, before - 1}, asked_, wait);
    locked_ns_ += std::max<int64_t>(wait, 0);
  }
  owner.lock = lock, owner.released_ns = 0, owner.location = location + 1;
}

void Waiter::released(uint64_t lock) {
  Owner& owner = owner_of(lock);
  if (owner.lock == lock && owner.location == location + 1) owner.released_ns = Moment::now().ns;
}

void end_region(Waiter& primary, const std::vector<int64_t>& workers, uint32_t call_stack, const Moment& now) {
  const Member& own = primary.members.back();
  const int64_t size = own.team->size;
  if (size < 2 || size != int64_t(workers.size()) + 1) return;
  int64_t all = own.idle_ns, least = own.idle_ns;
  for (const int64_t idle : workers) all += idle, least = std::min(least, idle);
  const auto add = [&](const char* state, int64_t ns) {
    primary.add({state, call_stack, primary.location}, {strobe_ticks(), now.ns}, ns);
  };
  add("team_regions", now.ns - own.team->begin_ns);
  add("team_workers", (size - 1) * (now.ns - own.team->begin_ns));
  add("team_scheduling", size * least);
  add("team_load_balance", all - size * least);
  // What the region lasts longer than its last thread has it: until that begins, and after it has come to the end.
  const Arrivals& last = own.team->arrivals[(own.barriers - 1) & 1];
  const int64_t tasks_ns = own.team->tasks.add(0, 0, primary.location).any_ns - last.tasks_ns;
  if (last.complete) add("team_start_and_end", now.ns - last.ns - tasks_ns + last.start_ns);
}

}  // namespace strobe::ompt
