// already_recorded.h - what was recorded around the moment at which GPUs go from one profiler to another: both may
// have it.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <unordered_map>

namespace strobe::gpu {

class AlreadyRecorded {
 public:
  static constexpr int64_t kClocksNs = 1'000'000;  // between the clocks of two profilers
  static constexpr size_t kMost = 1 << 18;

  void add(uint32_t device, uint32_t stream, uint32_t correlation, int64_t start_ns) {
    if (correlation && known_.size() < kMost) known_.emplace(Key{device, stream, correlation}, start_ns);
  }
  // Whether this one is among them. Each of them stands for one only: all kernels of a graph have its correlation.
  bool take(uint32_t device, uint32_t stream, uint32_t correlation, int64_t start_ns) {
    const auto [begin, end] = known_.equal_range({device, stream, correlation});
    for (auto each = begin; each != end; ++each)
      if (llabs(each->second - start_ns) <= kClocksNs) return known_.erase(each), true;
    return false;
  }
  void clear() { known_.clear(); }

 private:
  struct Key {
    uint32_t device, stream, correlation;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return (uint64_t(key.device) << 48 ^ uint64_t(key.stream) << 32 ^ key.correlation) * 0x9E3779B97F4A7C15ull;
    }
  };
  std::unordered_multimap<Key, int64_t, Hash> known_;
};

}  // namespace strobe::gpu
