// hardware_counters.h - counters of the CPU for all threads of this process, in user mode: perf_event_open(2).
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <array>
#include <unordered_set>
#include <vector>

namespace strobe {

constexpr size_t kHardwareCounters = 4;
extern const char* const kHardwareNames[kHardwareCounters];  // instructions, cycles, cache-misses, branch-misses

// The CPU has few counters: where they are shared, the kernel lets each count for a part of the time. What it would
// have counted in all of it is estimated from one reading to the next, so that sums never go back.
class SharedCount {
 public:
  // The sum since the first time, given what perf_event_open(2) returns: value, ns enabled, ns on the CPU.
  double after(const uint64_t (&now)[3]) {
    if (now[2] <= last_[2]) return sum_;  // it was not on since: what it missed is estimated when it was
    sum_ += double(now[0] - last_[0]) * (double(now[1] - last_[1]) / double(now[2] - last_[2]));
    for (int i = 0; i < 3; i++) last_[i] = now[i];
    return sum_;
  }
  double sum() const { return sum_; }

 private:
  uint64_t last_[3] = {};
  double sum_ = 0;
};

// One counter of one thread. Programs close descriptors that are not theirs. The number may then be a file of their
// own, which must not be read: the kernel's number of the counter identifies ours.
struct PerfFile {
  int fd = -1;
  uint64_t id = 0;
  void open(size_t counter, int thread);  // 0: the calling thread
  double value();                         // where it cannot be read: what it was
  void close();

 private:
  SharedCount counted_;
  bool ours() const;
};
using PerfFiles = std::array<PerfFile, kHardwareCounters>;

class HardwareCounters {
 public:
  ~HardwareCounters() { close_all(); }
  // Whether the kernel lets this process count it.
  static bool works(size_t counter);
  // The threads that exist now; new ones are counted from now on. Each takes four of the program's descriptors, so
  // that only some are followed; the quality table counts the others.
  void follow(const std::vector<int>& threads);
  // Sums since the first call of follow, ended threads included.
  std::array<double, kHardwareCounters> sums();
  // A forked child may call it in whatever state this is.
  void close_all();
  static constexpr size_t kMostThreads = 64;

 private:
  struct Followed {
    int thread = 0;  // 0: nobody
    PerfFiles files;
  };
  std::array<Followed, kMostThreads> followed_;
  std::unordered_set<int> not_followed_;
  std::array<double, kHardwareCounters> ended_{};
};

// The same for the calling thread only.
void count_this_thread(uint64_t* values);

}  // namespace strobe
