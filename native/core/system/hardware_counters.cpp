#include "core/system/hardware_counters.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/system/clock.h"
#include "core/system/descriptors.h"
#include "include/strobe.h"

namespace strobe {

const char* const kHardwareNames[kHardwareCounters] = {"instructions", "cycles", "cache-misses", "branch-misses"};

namespace {

constexpr uint64_t kEvents[kHardwareCounters] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
                                                 PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_BRANCH_MISSES};

int open_counter(size_t counter, int thread) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof attributes;
  attributes.config = kEvents[counter];
  attributes.exclude_kernel = 1;  // what perf_event_paranoid 2, the usual setting, allows
  attributes.exclude_hv = 1;
  // The CPU has few counters; where they are shared, the kernel reports for how long each was on.
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return int(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

// Threads whose own use is counted (count_this_thread), in the whole process.
std::atomic<int> counted_threads{0};

// No more than a quarter of the descriptors that the program may have.
size_t most_threads() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return std::min<rlim_t>(limit.rlim_cur / 4 / kHardwareCounters, HardwareCounters::kMostThreads);
}

}  // namespace

void PerfFile::open(size_t counter, int thread) {
  counted_ = {};
  const int low = open_counter(counter, thread);
  if (low < 0) return;
  fd = move_away(low);
  if (ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0) return;
  ::close(fd);
  fd = -1;
}

bool PerfFile::ours() const {
  uint64_t there = 0;
  return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &there) == 0 && there == id;
}

double PerfFile::value() {
  uint64_t read_out[3];
  if (!ours() || ::read(fd, read_out, sizeof read_out) != sizeof read_out) return counted_.sum();
  return counted_.after(read_out);
}

void PerfFile::close() {
  if (ours()) ::close(fd);
  fd = -1;
}

void count_this_thread(uint64_t* values) {
  struct Mine {
    PerfFiles files;
    pid_t process = 0;  // a forked child's thread is another one than its parent's
    ~Mine() { leave(); }
    void leave() {
      for (PerfFile& each : files) each.close();
      if (process == getpid() && counts) counted_threads--;
    }
    void begin() {
      leave();
      if (process) counted_threads = 0;  // forked: this thread is alone
      process = getpid();
      counts = counted_threads++ < int(most_threads());
      if (!counts) counted_threads--, strobe_count("threads_without_hardware_counters", 1);
      for (size_t i = 0; i < kHardwareCounters && counts; i++) files[i].open(i, 0);
    }
    bool counts = false;
  };
  static thread_local Mine mine;  // counts from the first question on
  if (mine.process != getpid()) mine.begin();
  for (size_t i = 0; i < kHardwareCounters; i++) values[i] = uint64_t(mine.files[i].value());
}

bool HardwareCounters::works(size_t counter) {
  const int fd = open_counter(counter, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

void HardwareCounters::close_all() {
  for (Followed& each : followed_)
    for (PerfFile& file : each.files) file.close();
}

void HardwareCounters::follow(const std::vector<int>& threads) {
  const auto there = [&threads](int thread) {
    return std::find(threads.begin(), threads.end(), thread) != threads.end();
  };
  for (Followed& each : followed_) {
    if (!each.thread || there(each.thread)) continue;
    for (size_t i = 0; i < kHardwareCounters; i++) {
      ended_[i] += each.files[i].value();
      each.files[i].close();
    }
    each.thread = 0;
  }
  std::erase_if(not_followed_, [&there](int thread) { return !there(thread); });
  const auto end = followed_.begin() + ptrdiff_t(most_threads());
  const auto of = [&](int thread) {
    return std::find_if(followed_.begin(), followed_.end(), [=](const Followed& f) { return f.thread == thread; });
  };
  for (int thread : threads) {
    if (of(thread) != followed_.end()) continue;
    const auto free = of(0);
    if (free >= end) {
      if (not_followed_.insert(thread).second) strobe_count("threads_without_hardware_counters", 1);
      continue;
    }
    for (size_t i = 0; i < kHardwareCounters; i++) free->files[i].open(i, thread);
    free->thread = thread;
  }
}

std::array<double, kHardwareCounters> HardwareCounters::sums() {
  std::array<double, kHardwareCounters> sums = ended_;
  for (Followed& each : followed_)
    for (size_t i = 0; i < kHardwareCounters && each.thread; i++) sums[i] += each.files[i].value();
  return sums;
}

}  // namespace strobe

extern "C" {

int strobe_hardware_counter(const char* name) {
  for (size_t i = 0; i < strobe::kHardwareCounters; i++)
    if (!strcmp(strobe::kHardwareNames[i], name)) return strobe::HardwareCounters::works(i);
  return 0;
}

void strobe_thread_usage(int hardware, uint64_t values[STROBE_USAGE_VALUES]) {
  rusage thread;
  getrusage(RUSAGE_THREAD, &thread);
  values[0] = uint64_t(strobe::clock_ns(CLOCK_THREAD_CPUTIME_ID));
  values[1] = uint64_t(thread.ru_minflt), values[2] = uint64_t(thread.ru_majflt);
  values[3] = uint64_t(thread.ru_nvcsw), values[4] = uint64_t(thread.ru_nivcsw);
  memset(values + 5, 0, 4 * sizeof *values);
  if (hardware) strobe::count_this_thread(values + 5);
}
}
