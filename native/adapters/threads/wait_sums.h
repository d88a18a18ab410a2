// wait_sums.h - waits of one thread that have state, call stack and cause in common. Long ones stand alone, so that
// they have their place in time; short ones that are close to each other become one row, so that a million costs no
// more.
#pragma once
#include <stdint.h>

#include <algorithm>

namespace strobe {

constexpr int64_t kLongWaitNs = 50000, kTogetherNs = 1000000;

struct WaitSum {
  uint64_t ticks = 0;  // when the first one began; the same of CLOCK_MONOTONIC
  int64_t begin_ns = 0, wait_ns = 0, max_ns = 0;
  uint32_t waits = 0;

  // One more. `write` takes the sums that are complete; what it has no room for (false) stays in the next one.
  template <class Write>
  void add(uint64_t at_ticks, int64_t begin, int64_t ns, Write&& write) {
    const bool is_long = ns >= kLongWaitNs;
    if (waits && (is_long || begin + ns - begin_ns > kTogetherNs) && write(*this)) waits = 0;
    if (is_long && write(WaitSum{at_ticks, begin, ns, ns, 1})) return;
    if (!waits) *this = {at_ticks, begin, 0, 0, 0};
    waits++, wait_ns += ns, max_ns = std::max(max_ns, ns);
  }
  template <class Write>
  void flush(Write&& write) {
    if (waits && write(*this)) waits = 0;
  }
};

}  // namespace strobe
