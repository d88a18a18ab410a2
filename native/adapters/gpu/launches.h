// launches.h - which call launched what a GPU did, and up to when everything that was launched has been reported.
//
// Threads of the program write, the collector's thread reads; neither waits for the other. Numbers of calls
// (correlations) only grow, so that the low bits of one find its place.
#pragma once
#include <stdint.h>
#include <atomic>
#include <memory>

namespace strobe::gpu {

class Launches {
 public:
  static constexpr uint32_t kPlaces = 1u << 18;  // calls that are remembered
  static constexpr int64_t kLostNs = 3'000'000'000;

  // A call that makes a GPU do something begins.
  void begin(uint32_t correlation, int64_t ns) {
    Place& place = places_[correlation % kPlaces];
    place.state.store(0, std::memory_order_relaxed);
    place.ns.store(ns, std::memory_order_relaxed);
    place.state.store(uint64_t(correlation) << 1, std::memory_order_release);
    const uint64_t at = head_.load(std::memory_order_relaxed);
    if (at - tail_.load(std::memory_order_acquire) >= kPlaces) return;  // nobody reads: nobody waits for it either
    order_[head_.fetch_add(1) % kPlaces].store(correlation, std::memory_order_release);
  }
  // It has failed, or was captured into a graph: nothing will come of it.
  void cancel(uint32_t correlation) { reported(correlation); }

  // When the call with this number began; 0: not known.
  int64_t ns_of(uint32_t correlation) const {
    const Place& place = places_[correlation % kPlaces];
    if (place.state.load(std::memory_order_acquire) >> 1 != correlation) return 0;
    return place.ns.load(std::memory_order_relaxed);
  }
  void reported(uint32_t correlation) {
    Place& place = places_[correlation % kPlaces];
    uint64_t waits = uint64_t(correlation) << 1;
    place.state.compare_exchange_strong(waits, waits | 1);
  }
  // What was launched before this moment has been reported, given that everything that was over at `now_ns` has been.
  // What waits much longer than anything else will not come any more.
  int64_t reported_until(int64_t now_ns) {
    uint64_t at = tail_.load(std::memory_order_relaxed);
    for (const uint64_t head = head_.load(std::memory_order_acquire); at < head; at++) {
      std::atomic<uint32_t>& next = order_[at % kPlaces];
      const uint32_t correlation = next.load(std::memory_order_acquire);
      if (!correlation) break;  // on its way
      const Place& place = places_[correlation % kPlaces];
      if (place.state.load(std::memory_order_acquire) == uint64_t(correlation) << 1) {
        const int64_t ns = place.ns.load(std::memory_order_relaxed);
        if (now_ns - ns < kLostNs) {
          now_ns = ns < now_ns ? ns : now_ns;
          break;
        }
        lost_++;
      }
      next.store(0, std::memory_order_relaxed);
    }
    tail_.store(at, std::memory_order_release);
    if (now_ns > until_ns_) until_ns_ = now_ns;
    return until_ns_;
  }
  uint64_t lost() const { return lost_; }

 private:
  struct Place {
    std::atomic<uint64_t> state{0};  // correlation << 1 | reported
    std::atomic<int64_t> ns{0};
  };
  std::unique_ptr<Place[]> places_{new Place[kPlaces]};
  std::unique_ptr<std::atomic<uint32_t>[]> order_{new std::atomic<uint32_t>[kPlaces]()};
  std::atomic<uint64_t> head_{0}, tail_{0};
  int64_t until_ns_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace strobe::gpu
