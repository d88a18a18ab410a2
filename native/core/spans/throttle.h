// throttle.h - which functions are called so often, and are so short, that recording them costs more than it is worth.
//
// The rule of TAU and Score-P: after so many calls with a mean duration below a limit, a function is not recorded any
// more. The drainer counts (it knows durations), the hooks that record functions (of Python, of C) look at one byte per
// region and decide when to stop; what was recorded until then is kept.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace strobe {

class Throttle {
 public:
  static constexpr uint32_t kRegions = 1u << 16;  // later ones are never throttled: memory stays bounded

  // `calls` 0: never.
  void begin(uint64_t calls, int64_t mean_ns) {
    calls_ = calls;
    mean_ns_ = mean_ns;
    given_up_.store(false);
    entries_.clear();
    for (auto& flag : flags_) flag.store(0, std::memory_order_relaxed);
    for (uint32_t region : throttled()) raise(region);
  }
  bool on() const { return calls_ != 0; }
  // The drainer: from now on sooner, and longer ones, too.
  void tighten(uint64_t calls, int64_t mean_ns) {
    if (!on()) return;
    calls_ = std::min(calls_, calls);
    mean_ns_ = std::max(mean_ns_, mean_ns);
  }
  // The drainer: from now on no function is recorded.
  void give_up() {
    given_up_.store(true);
    for (uint32_t region = 0; region < kRegions; region++) raise(region);
  }
  bool given_up() const { return given_up_.load(); }
  const std::atomic<uint8_t>* flags() const { return flags_; }

  // The drainer: a span has ended.
  void closed(uint32_t region, int64_t duration_ns) {
    if (region >= entries_.size()) {
      if (region >= kRegions) return;
      entries_.resize(region + 1);
    }
    Entry& e = entries_[region];
    e.total_ns += duration_ns;
    if (++e.calls < calls_ || (e.calls & (e.calls - 1) && e.calls != calls_)) return;
    // Looked at again whenever the calls have doubled: a function may become short later.
    if (e.total_ns / int64_t(e.calls) < mean_ns_) raise(region);
  }
  uint64_t calls(uint32_t region) const { return region < entries_.size() ? entries_[region].calls : 0; }

  // A hook: this region is not recorded from now on; in a forked child: it was not in the parent. Returns whether that
  // is new: threads come one after the other, and functions that are made again and again share a region.
  bool note(uint32_t region) {
    if (given_up()) return false;
    raise(region);
    std::lock_guard lock(mutex_);
    if (std::find(throttled_.begin(), throttled_.end(), region) != throttled_.end()) return false;
    throttled_.push_back(region);
    return true;
  }
  std::vector<uint32_t> throttled() {
    std::lock_guard lock(mutex_);
    return throttled_;
  }
  void forget() {
    std::lock_guard lock(mutex_);
    throttled_.clear();
  }

  std::mutex& mutex() { return mutex_; }

 private:
  void raise(uint32_t region) {
    if (region < kRegions) flags_[region].store(1, std::memory_order_relaxed);
  }
  struct Entry {
    uint64_t calls = 0;
    int64_t total_ns = 0;
  };
  uint64_t calls_ = 0;
  int64_t mean_ns_ = 0;
  std::vector<Entry> entries_;
  std::mutex mutex_;
  std::vector<uint32_t> throttled_;
  std::atomic<bool> given_up_{false};
  std::atomic<uint8_t> flags_[kRegions] = {};
};

}  // namespace strobe
