#include "core/hardware_counters.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

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
  // The CPU has few counters; where they are shared, the kernel says for how long each was on.
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return int(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

double value_of(int fd) {
  uint64_t read_out[3];  // value, time enabled, time running
  if (fd < 0 || ::read(fd, read_out, sizeof read_out) != sizeof read_out || !read_out[2]) return 0;
  return double(read_out[0]) * (double(read_out[1]) / double(read_out[2]));
}

}  // namespace

void count_this_thread(uint64_t* values) {
  struct Mine {
    int fd[kHardwareCounters];
    Mine() {
      for (size_t i = 0; i < kHardwareCounters; i++) fd[i] = open_counter(i, 0);
    }
    ~Mine() {
      for (int each : fd)
        if (each >= 0) close(each);
    }
  };
  static thread_local Mine mine;  // counts from the first question on
  for (size_t i = 0; i < kHardwareCounters; i++) values[i] = uint64_t(value_of(mine.fd[i]));
}

bool HardwareCounters::works(size_t counter) {
  const int fd = open_counter(counter, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

HardwareCounters::~HardwareCounters() {
  for (const auto& [thread, files] : threads_)
    for (int fd : files.fd)
      if (fd >= 0) close(fd);
}

void HardwareCounters::retire(const Files& files) {
  for (size_t i = 0; i < kHardwareCounters; i++) {
    ended_[i] += value_of(files.fd[i]);
    if (files.fd[i] >= 0) close(files.fd[i]);
  }
}

void HardwareCounters::follow(const std::vector<int>& threads) {
  for (int thread : threads) {
    if (threads_.count(thread)) continue;
    Files files;
    for (size_t i = 0; i < kHardwareCounters; i++) files.fd[i] = open_counter(i, thread);
    threads_[thread] = files;
  }
  for (auto at = threads_.begin(); at != threads_.end();) {
    if (std::find(threads.begin(), threads.end(), at->first) != threads.end()) {
      ++at;
      continue;
    }
    retire(at->second);
    at = threads_.erase(at);
  }
}

void HardwareCounters::read(double (&sums)[kHardwareCounters]) {
  for (size_t i = 0; i < kHardwareCounters; i++) {
    sums[i] = ended_[i];
    for (const auto& [thread, files] : threads_) sums[i] += value_of(files.fd[i]);
  }
}

}  // namespace strobe

extern "C" {

int strobe_hardware_counter(const char* name) {
  for (size_t i = 0; i < strobe::kHardwareCounters; i++)
    if (!strcmp(strobe::kHardwareNames[i], name)) return strobe::HardwareCounters::works(i);
  return 0;
}

void strobe_thread_usage(int hardware, uint64_t values[STROBE_USAGE_VALUES]) {
  timespec cpu;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  rusage thread;
  getrusage(RUSAGE_THREAD, &thread);
  values[0] = uint64_t(cpu.tv_sec) * 1000000000 + uint64_t(cpu.tv_nsec);
  values[1] = uint64_t(thread.ru_minflt), values[2] = uint64_t(thread.ru_majflt);
  values[3] = uint64_t(thread.ru_nvcsw), values[4] = uint64_t(thread.ru_nivcsw);
  memset(values + 5, 0, 4 * sizeof *values);
  if (hardware) strobe::count_this_thread(values + 5);
}
}
