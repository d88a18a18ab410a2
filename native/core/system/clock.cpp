#include "core/system/clock.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace strobe {

bool ticks_are_tsc = false;
bool clock_is_shifted = false;

static int64_t shift_ns = 0;
static double drift = 0;

int64_t shifted_ns(int64_t ns) { return ns + shift_ns + int64_t(double(ns) * drift); }

void clock_setup() {
  if (const char* text = getenv("STROBE_CLOCK_SHIFT_NS")) shift_ns = strtoll(text, nullptr, 10);
  if (const char* text = getenv("STROBE_CLOCK_DRIFT_PPM")) drift = strtod(text, nullptr) / 1e6;
  clock_is_shifted = shift_ns != 0 || drift != 0;
  if (getenv("STROBE_CLOCK_WITHOUT_TSC")) return;
#if defined(__x86_64__)
  // Invariant TSC: CPUID 0x80000007, EDX bit 8 (AMD64 Architecture Programmer's Manual vol. 3; Intel SDM vol. 2A).
  unsigned a, b, c, d;
  ticks_are_tsc = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#endif
}

ClockPair clock_pair() {
  ClockPair best;
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 3; i++) {
    uint64_t before = ticks();
    int64_t ns = monotonic_ns();
    uint64_t after = ticks();
    if (after - before < best_width) {
      best_width = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

ClockLine clock_line(const ClockPair& from, const ClockPair& to) {
  ClockLine line;
  line.origin = from;
  if (to.ticks > from.ticks && to.ns > from.ns)
    line.ns_per_tick = double(to.ns - from.ns) / double(to.ticks - from.ticks);
  return line;
}

void ClockCurve::add(const ClockPair& pair) {
  const ClockPair last = newest();
  if (pair.ticks <= last.ticks || pair.ns <= last.ns) return;
  line_ = clock_line(last, pair);
  if (pairs_.size() < kPairs)
    pairs_.push_back(pair);
  else
    pairs_[next_] = pair, next_ = (next_ + 1) % kPairs;
}

int64_t ClockCurve::before(uint64_t t) const {
  // Searched from the end: what is asked for is mostly recent.
  size_t n = pairs_.size() - 1;
  while (n > 1 && t < oldest_but(n - 1).ticks) n--;
  return n ? clock_line(oldest_but(n - 1), oldest_but(n)).at(t) : line_.at(t);
}

}  // namespace strobe
