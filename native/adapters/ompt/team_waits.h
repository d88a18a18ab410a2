// team_waits.h - what threads of OpenMP waited for each other, decided while it is recorded, so that it is known of
// every step: at barriers, for locks, and workers outside of parallel regions. Times are ns of CLOCK_MONOTONIC.
#pragma once
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "adapters/sampling/thread_states.h"
#include "adapters/threads/wait_sums.h"
#include "core/system/threads.h"

namespace strobe::ompt {

struct Moment {
  uint64_t ticks = 0;
  int64_t ns = 0;
  static Moment now();
};

struct KindOfWait {
  const char* state;  // of strobe waits
  uint32_t call_stack, cause;
  bool operator==(const KindOfWait&) const = default;
};

// A barrier of a team. Two in turn are enough: nobody comes to the next but one before all have left this one.
struct Arrivals {
  std::mutex mutex;
  uint32_t count = 0;
  std::atomic<bool> complete{false};
  // Of the last one that came: when, who, and how long tasks had run by then.
  int64_t ns = 0, tasks_ns = 0;
  int64_t start_ns = 0;  // how long it took to begin, from the begin of the region
  uint32_t location = 0;
  // Who would have come last if each thread had always had a core: when, and how long it had waited for locks since the
  // barrier before.
  int64_t latest_ns = 0, locked_ns = 0;
  uint32_t latest = 0;
};

// How long any thread of a team has run explicit tasks; and how long of that no other task was left to begin.
struct TaskTimes {
  int64_t any_ns = 0, last_ns = 0;
};
class RunningTasks {
 public:
  // So many more threads run tasks, of which the calling one is at `location`, and so many more wait for a thread.
  TaskTimes add(int threads, int waiting, uint32_t location);
  std::atomic<uint32_t> last{0};  // the location of who ran the last one

 private:
  std::mutex mutex_;
  int64_t since_ns_ = 0;
  TaskTimes times_;
  int threads_ = 0, waiting_ = 0;
};

struct TeamWaits {
  const uint32_t location;  // of the primary thread
  const int64_t begin_ns;
  const int64_t starved_ns;  // how long the primary thread had no core in the serial part before
  std::atomic<uint32_t> size{0};
  Arrivals arrivals[2]{};
  RunningTasks tasks{};
};

// A thread in a team.
struct Member {
  TeamWaits* team;
  uint32_t barriers = 0, call_stack = 0;  // the latter of the barrier that it is in; 0: in none
  Moment came{};
  int64_t start_ns = 0;                     // how long it took to begin, from the begin of the region
  int64_t phase_ns = 0, starved_ns = 0;     // since when it could run, and how long of that it had no core
  int64_t locked_ns = 0;                    // until it came
  int64_t tasks_ns = 0, task_began_ns = 0;  // what it ran in the barrier
  int64_t idle_ns = 0;                      // in barriers of this region
  std::vector<uint32_t> tasks{};            // that it is in, the innermost last: in how many waits for others
  bool runs = false;                        // the innermost task does not wait
  // In a barrier or a wait for tasks, that is none of a task: its call stack, and the time of others' tasks meanwhile:
  // when it last began to be idle, and that without another task, and that before the last thread came to the barrier.
  uint32_t idle_in = 0;
  Moment idle_since{};
  TaskTimes others_began{};
  int64_t others_ns = 0, early_ns = 0;
};

class Waiter {
 public:
  const uint32_t location;
  std::vector<Member> members;  // of nested teams, the innermost last

  explicit Waiter(uint32_t own) : location(own) {}
  // Enters a team; `call_stack`: that of the parallel region, for which a worker was idle until now.
  void join(TeamWaits& team, uint32_t call_stack);
  void arrive(uint32_t call_stack);
  // `waited`: for a thread, since it was made.
  void begin_task(bool waited);
  void end_task();
  // A taskwait or taskgroup, at the end of which `call_stack` is 0.
  void wait_for_tasks(uint32_t call_stack);
  // False: its primary thread has noted that already.
  bool leave(const Moment& now);
  // It goes on, behind a barrier or at the begin of a region.
  void resume();
  // How long the thread has been ready to run without a core since it was last looked at; once per ms at most.
  int64_t starved();
  // Worker and barrier are over.
  void retire(const Moment& now);
  void ask() { asked_ = Moment::now(); }
  void acquired(uint64_t lock, uint32_t call_stack);
  void released(uint64_t lock);
  void add(const KindOfWait& kind, const Moment& begin, int64_t ns);
  void flush();

 private:
  void run_or_wait();
  void idle(uint32_t call_stack);
  void idle_until(const TaskTimes& tasks);
  int64_t end_idle();

  std::array<std::pair<KindOfWait, WaitSum>, 64> sums_{};
  const uint64_t id_ = thread_id();
  Moment asked_, idle_since_;
  int64_t locked_ns_ = 0, looked_ns_ = 0, delay_ns_ = 0;
};

// A region of a team is over: TALP's times, of all threads (DLB, src/talp/talp_openmp.c). workers: how long each was
// idle in barriers.
void end_region(Waiter& primary, const std::vector<int64_t>& workers, uint32_t call_stack, const Moment& now);

}  // namespace strobe::ompt
