// ideal_network.h - a parallel program on a network that transfers everything at once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace strobe {

// Moments of all ranks in order of time, where a rank meets others: `raises` a meeting, so that those who need it go on
// at this rank's time at the earliest, or `needs` it. Meetings are numbered from 0; -1: none. computed_ns: how long the
// rank has computed until then. All spans are as long as `rank`.
struct Moments {
  std::span<const int64_t> rank;  // numbered from 0
  std::span<const int64_t> computed_ns;
  std::span<const int64_t> meeting;
  std::span<const uint8_t> needs;
};

// When each moment comes: ranks compute as long as they did, and wait for nothing but each other.
std::vector<int64_t> on_ideal_network(const Moments& moments, size_t ranks, size_t meetings);

}  // namespace strobe
