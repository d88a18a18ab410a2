// handles.h - what is known about MPI's handles (communicators, windows, files, data types), found at the price of a
// few loads.
//
// A handle is a number that MPI uses again once it is freed, so whoever frees one drops it here before it does.
#pragma once
#include <stdint.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "adapters/mpi/mpi_library.h"

namespace strobe::mpi {

// `kTable` distinguishes tables with equal values: each has its own cache in every thread.
template <class Value, int kTable>
class Handles {
 public:
  // What is known about a handle; `make()` finds it out for one that is new. Called from any thread.
  template <class Make>
  Value find(Word handle, Make&& make) {
    Cached& cached = cache_[(uint64_t(handle) ^ uint64_t(handle) >> 5) % kCached];
    uint64_t generation = generation_.load(std::memory_order_acquire);
    if (cached.handle == handle && cached.generation == generation) return cached.value;
    Value value;
    bool known;
    {
      std::lock_guard lock(mutex_);
      auto at = all_.find(handle);
      if ((known = at != all_.end())) value = at->second;
    }
    if (!known) {
      value = make();
      std::lock_guard lock(mutex_);
      value = all_.try_emplace(handle, value).first->second;
    }
    cached = {handle, generation, value};
    return value;
  }
  void put(Word handle, Value value) {
    std::lock_guard lock(mutex_);
    all_[handle] = value;
    generation_.fetch_add(1, std::memory_order_release);
  }
  // Returns what was known, or 0.
  Value drop(Word handle) {
    std::lock_guard lock(mutex_);
    const auto known = all_.extract(handle);
    if (!known) return {};
    generation_.fetch_add(1, std::memory_order_release);
    return known.mapped();
  }

 private:
  static constexpr int kCached = 32;
  struct Cached {
    Word handle;
    uint64_t generation;  // 0: nothing
    Value value;
  };
  static inline thread_local Cached cache_[kCached] __attribute__((tls_model("initial-exec"))) = {};
  std::mutex mutex_;
  std::unordered_map<Word, Value> all_;
  std::atomic<uint64_t> generation_{1};
};

}  // namespace strobe::mpi
