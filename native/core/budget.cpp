// The budget of a recording: bytes on disk, and CPU time of the recorder beside the program's. What would exceed it
// makes the recording give up detail, in this order: fewer iterations in detail; hot short functions; everything but
// statistics; and, where CPU time is the limit, functions altogether.
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <string_view>

#include "core/descriptors.h"
#include "core/session.h"

namespace strobe {

namespace {

// Shares of max_bytes at which detail is given up: the rest of the way costs less and less.
constexpr double kSteps[] = {0.5, 0.7, 0.85};
constexpr int64_t kLookEveryNs = 20000000, kOverheadWindowNs = 1000000000;
// Of functions that are left out at the second step: called so often, and shorter.
constexpr uint64_t kHotCalls = 1000;
constexpr int64_t kHotNs = 10000;
constexpr double kLeastProgramNs = 5e7;  // less CPU time than that in a window says nothing about a share
constexpr const char* kShed[] = {"budget_fewer_iterations", "budget_hot_functions", "budget_statistics_only",
                                 "budget_no_functions"};

double clock_now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return double(now.tv_sec) * 1e9 + double(now.tv_nsec);
}

}  // namespace

uint64_t Session::bytes_of_others() const {
  uint64_t sum = 0;
  const std::string_view own = std::string_view(blocks_.name).substr(blocks_.name.rfind('/') + 1);
  DIR* entries = open_folder(folder_.c_str());
  if (!entries) return 0;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    struct stat facts;
    if (name.size() < 8 || name.substr(name.size() - 7) != ".blocks" || name == own) continue;
    if (fstatat(dirfd(entries), entry->d_name, &facts, 0) == 0) sum += uint64_t(facts.st_size);
  }
  closedir(entries);
  return sum;
}

void Session::hook_costs(const uint64_t* times, double ns) {
  hook_ns_ = ns;
  hook_times_before_ = times ? __atomic_load_n(times, __ATOMIC_RELAXED) : 0;
  hook_times_ = times;
}

double Session::hook_cost_ns() const {
  const uint64_t* times = hook_times_;
  return times ? hook_ns_ * double(__atomic_load_n(times, __ATOMIC_RELAXED) - hook_times_before_) : 0;
}

// Whether the recorder took more than its share of CPU time since the last look: its own thread, and what its records
// and hooks cost the program's threads.
bool Session::too_dear(int64_t now) {
  if (now < next_overhead_ns_) return false;
  next_overhead_ns_ = now + kOverheadWindowNs;
  note_own_cpu();
  const double own = double(header()->own_cpu_ns.load());
  const double spent = own + put_ns_ * double(records_seen_) + hook_cost_ns();
  const double program = std::max(0.0, clock_now(CLOCK_PROCESS_CPUTIME_ID) - spent);
  const double spent_now = spent - spent_ns_, program_now = program - program_cpu_ns_;
  spent_ns_ = spent, program_cpu_ns_ = program;
  return program_now > kLeastProgramNs && spent_now > options_.max_overhead * program_now;
}

void Session::keep_budget(int64_t now) {
  if ((!options_.max_bytes && !(options_.max_overhead > 0)) || failed_ || now < next_budget_ns_) return;
  next_budget_ns_ = now + kLookEveryNs;
  uint32_t level = shed_;
  if (options_.max_bytes) {
    if (now >= next_folder_ns_) {
      other_bytes_ = bytes_of_others();
      next_folder_ns_ = now + 1000000000;
    }
    const double used = double(file_bytes_ + other_bytes_) / double(options_.max_bytes);
    for (uint32_t step = 0; step < 3; step++)
      if (used >= kSteps[step]) level = std::max(level, step + 1);
    if (used >= 1) {
      std::lock_guard lock(file_mutex_);
      return fail("the trace is as large as --max-size allows", EFBIG);
    }
  }
  if (options_.max_overhead > 0 && too_dear(now)) level = std::max(level, std::min(shed_ + 1, 4u));
  while (shed_ < level) shed(shed_ + 1, now);
}

void Session::shed(uint32_t level, int64_t now) {
  shed_ = level;
  const bool of_functions = level % 2 == 0;
  if (of_functions && !throttle_.on()) return;  // --throttle off: all functions are wanted
  if (level == 2) throttle_.tighten(kHotCalls, kHotNs);
  if (level == 4) throttle_.give_up();
  count(kShed[level - 1], 1);
  if (!of_functions) collector_->shed(level == 1 ? 1 : 0);
  const uint32_t metric = this->metric("detail given up for the budget", "steps of 4");
  std::lock_guard lock(samples_mutex_);
  stage(metric, now, double(level));
}

}  // namespace strobe
