// hardware_counters.h - counters of the CPU for all threads of this process, in user mode: perf_event_open(2).
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <unordered_map>
#include <vector>

namespace strobe {

constexpr size_t kHardwareCounters = 4;
extern const char* const kHardwareNames[kHardwareCounters];  // instructions, cycles, cache-misses, branch-misses

class HardwareCounters {
 public:
  ~HardwareCounters();
  // Whether the kernel lets this process count it.
  static bool works(size_t counter);
  // Threads that are there now; those that are new are counted from now on.
  void follow(const std::vector<int>& threads);
  // Sums since the first call of follow, ended threads included.
  void read(double (&sums)[kHardwareCounters]);

 private:
  struct Files {
    int fd[kHardwareCounters];
  };
  void retire(const Files& files);
  std::unordered_map<int, Files> threads_;
  double ended_[kHardwareCounters] = {};
};

// The same for the calling thread only.
void count_this_thread(uint64_t* values);

}  // namespace strobe
