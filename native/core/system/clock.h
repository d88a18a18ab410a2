// clock.h - the recorder's clock: cheap ticks on the hot path, CLOCK_MONOTONIC nanoseconds in the trace.
// Ticks are the time stamp counter (14-33 ns in a VM against 31-72 ns for clock_gettime); where it is not invariant
// they are CLOCK_MONOTONIC itself. The drainer takes a ClockPair every round and converts the records of that round on
// the straight line between two pairs, so drift between the two clocks never accumulates.
#pragma once
#include <stdint.h>
#include <time.h>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace strobe {

extern bool ticks_are_tsc;  // decided once by clock_setup()
// For tests: STROBE_CLOCK_SHIFT_NS and STROBE_CLOCK_DRIFT_PPM make this process read t + shift + t * drift / 1e6 when
// the clock of its node reads t.
extern bool clock_is_shifted;
int64_t shifted_ns(int64_t ns);
// Decides; with STROBE_CLOCK_WITHOUT_TSC in the environment ticks are ns of CLOCK_MONOTONIC.
void clock_setup();

inline int64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

inline int64_t monotonic_ns() {
  const int64_t ns = clock_ns(CLOCK_MONOTONIC);
  return __builtin_expect(clock_is_shifted, 0) ? shifted_ns(ns) : ns;
}

inline uint64_t ticks() {
#if defined(__x86_64__)
  if (__builtin_expect(ticks_are_tsc, 1)) return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#endif
  return uint64_t(monotonic_ns());
}

// The same instant on both clocks; the tightest of three readings.
struct ClockPair {
  uint64_t ticks = 0;
  int64_t ns = 0;
};
ClockPair clock_pair();

// The straight line through two pairs.
struct ClockLine {
  ClockPair origin;
  double ns_per_tick = 1.0;
  int64_t at(uint64_t t) const { return origin.ns + int64_t(double(int64_t(t - origin.ticks)) * ns_per_tick); }
};
ClockLine clock_line(const ClockPair& from, const ClockPair& to);

// Straight lines from each pair to the next: the same ticks are the same nanoseconds whenever they are converted, so
// that what a row has of an earlier moment lies inside of the span that was written then. Of a time before the pairs
// that are still known, the oldest line is drawn on.
class ClockCurve {
 public:
  void begin(const ClockPair& first) { pairs_.assign(1, first), next_ = 0, line_ = {first, 1.0}; }
  bool ends_with(const ClockPair& pair) const {
    return !pairs_.empty() && newest().ticks == pair.ticks && newest().ns == pair.ns;
  }
  const ClockPair& newest() const { return pairs_[(next_ + pairs_.size() - 1) % pairs_.size()]; }
  void add(const ClockPair& pair);
  int64_t at(uint64_t t) const { return t >= line_.origin.ticks ? line_.at(t) : before(t); }

 private:
  static constexpr size_t kPairs = 4096;
  const ClockPair& oldest_but(size_t n) const { return pairs_[(next_ + n) % pairs_.size()]; }
  int64_t before(uint64_t t) const;
  std::vector<ClockPair> pairs_;  // the oldest is at next_
  size_t next_ = 0;
  ClockLine line_;  // to the newest pair
};

}  // namespace strobe
