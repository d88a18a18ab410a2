#include "core/session/budget.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "core/rings/ring.h"
#include "core/system/descriptors.h"

namespace strobe {

// Shares of max_bytes at which detail is given up: the rest of the way costs less and less.
constexpr double kSteps[] = {0.5, 0.7, 0.85};
constexpr int64_t kLookEveryNs = 20000000, kWindowNs = 1000000000;
constexpr uint64_t kLooksBySize = 32;  // also whenever one of so many parts of max_bytes was written
// Of functions that are left out at the second step: called so often, and shorter.
constexpr uint64_t kHotCalls = 1000;
constexpr int64_t kHotNs = 10000;
constexpr double kLeastProgramNs = 5e7;  // less CPU time than that in a window does not make a share
constexpr const char* kGivenUp[] = {"budget_fewer_iterations", "budget_hot_functions", "budget_statistics_only",
                                    "budget_no_functions"};

// ns of one put() on this machine: the same work on a buffer of our own.
static double measure_put() {
  uint64_t buffer[256];
  std::atomic<uint64_t> head{0};
  double best = 1e9;
  for (int pass = 0; pass < 5; pass++) {
    const int64_t begin = monotonic_ns();
    for (uint64_t i = 0; i < 256; i++) {
      buffer[i & 255] = make_record(kEnter, 2, ticks());
      head.store(i, std::memory_order_release);
    }
    best = std::min(best, double(monotonic_ns() - begin) / 256);
    asm volatile("" : : "r"(buffer) : "memory");
  }
  return best;
}

void RecorderCost::begin() {
  records_ = 0;
  if (put_ns_ == 0) put_ns_ = measure_put();
  set_hook(hook_times_, hook_ns_);
}

void RecorderCost::set_hook(const uint64_t* times, double ns) {
  hook_ns_ = ns;
  hook_times_before_ = times ? __atomic_load_n(times, __ATOMIC_RELAXED) : 0;
  hook_times_ = times;
}

double RecorderCost::of_hooks_ns() const {
  const uint64_t* times = hook_times_;
  return times ? hook_ns_ * double(__atomic_load_n(times, __ATOMIC_RELAXED) - hook_times_before_) : 0;
}

void Budget::begin(const strobe_options& options, const std::string& folder, Collector* collector) {
  folder_ = folder;
  collector_ = wanted(options) ? collector : nullptr;
  max_bytes_ = options.max_bytes, max_overhead_ = options.max_overhead;
  level_ = 0;
  seen_bytes_ = 0;
  spent_ns_ = 0;
  next_look_ns_ = next_folder_ns_ = monotonic_ns();
  next_overhead_ns_ = next_look_ns_ + kWindowNs;
}

uint64_t Budget::bytes_of_others() const {
  uint64_t sum = 0;
  const std::string& blocks = files_.blocks_name();
  const std::string_view own = std::string_view(blocks).substr(blocks.rfind('/') + 1);
  DIR* entries = open_folder(folder_.c_str());
  if (!entries) return 0;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    struct stat facts;
    if (!name.ends_with(".blocks") || name == own) continue;
    if (fstatat(dirfd(entries), entry->d_name, &facts, 0) == 0) sum += uint64_t(facts.st_size);
  }
  closedir(entries);
  return sum;
}

// Whether the recorder took more than its share of CPU time since the last look: its own thread, and what its records
// and hooks cost the program's threads.
bool Budget::exceeds_overhead(int64_t now) {
  next_overhead_ns_ = now + kWindowNs;
  const double spent = double(files_.header()->own_cpu_ns.load()) + cost_.of_records_ns() + cost_.of_hooks_ns();
  const double program = std::max(0.0, double(clock_ns(CLOCK_PROCESS_CPUTIME_ID)) - spent);
  const double spent_now = spent - spent_ns_, program_now = program - program_cpu_ns_;
  spent_ns_ = spent, program_cpu_ns_ = program;
  return program_now > kLeastProgramNs && spent_now > max_overhead_ * program_now;
}

void Budget::keep(int64_t now) {
  if (!collector_ || files_.failed()) return;
  // Also soon after much was written: a program that calls faster than that would be past all steps at the first look.
  const bool grown = max_bytes_ && files_.bytes() - seen_bytes_ >= max_bytes_ / kLooksBySize;
  if (now < next_look_ns_ && !grown) return;
  next_look_ns_ = now + kLookEveryNs;
  seen_bytes_ = files_.bytes();
  uint32_t level = level_;
  if (max_bytes_) {
    if (now >= next_folder_ns_) {
      other_bytes_ = bytes_of_others();
      next_folder_ns_ = now + 1000000000;
    }
    const double used = double(files_.bytes() + other_bytes_) / double(max_bytes_);
    for (uint32_t step = 0; step < 3; step++)
      if (used >= kSteps[step]) level = std::max(level, step + 1);
    if (used >= 1) return files_.fail("the trace is as large as --max-size allows", EFBIG);
  }
  if (looks_at_overhead(now) && exceeds_overhead(now)) level = std::max(level, std::min(level_ + 1, 4u));
  while (level_ < level) give_up(level_ + 1, now);
}

void Budget::give_up(uint32_t level, int64_t now) {
  level_ = level;
  const bool of_functions = level % 2 == 0;
  if (of_functions && !throttle_.on()) return;  // --throttle off: all functions are wanted
  if (level == 2) throttle_.tighten(kHotCalls, kHotNs);
  if (level == 4) throttle_.give_up();
  files_.count(kGivenUp[level - 1], 1);
  if (!of_functions) collector_->shed(level == 1 ? 1 : 0);
  samples_.add(samples_.metric("detail given up for the budget", "steps of 4"), now, double(level));
}

}  // namespace strobe
