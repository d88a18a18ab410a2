#include "core/session/recorder_cost.h"

#include <algorithm>

#include "core/rings/ring.h"

namespace strobe {

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

}  // namespace strobe
