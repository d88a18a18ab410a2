// Nodes and edges of an event sequence with their positions: what levels are made of.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "structure/levels.h"

namespace strobe::structure {

using Positions = std::span<const uint32_t>;

struct Candidate {
  Item item;
  Positions at;  // ascending; an edge occurs where its target does
};

// Candidates are walked in another order than their positions lie: asks for those of one that comes soon.
inline void prefetch(std::span<const Candidate> candidates, size_t now) {
  constexpr size_t ahead = 8;
  if (now + ahead < candidates.size()) __builtin_prefetch(candidates[now + ahead].at.data());
}

// All nodes and edges that occur often enough. Two counting sorts, one of the events by node and one of each node's
// successors: no hashing of transitions, and memory is walked in order.
class Occurrences {
 public:
  // `min_count` is 1 at least.
  Occurrences(std::span<const uint32_t> ids, uint32_t min_count);

  // In order of (count, first position), nodes before edges. Valid as long as this object is.
  std::span<const Candidate> candidates() const { return candidates_; }

 private:
  void add_edges(std::span<const uint32_t> first_of_node, const uint32_t* next, uint32_t min_count);
  void sort(size_t events);
  uint32_t id_of(uint32_t node) const { return id_of_node_.empty() ? node : id_of_node_[node]; }

  std::vector<uint32_t> id_of_node_;      // empty: nodes are called by their ids
  std::unique_ptr<uint32_t[]> by_node_;   // positions of the events, node by node
  std::unique_ptr<uint32_t[]> of_edges_;  // positions of frequent edges, one after the other
  std::vector<Candidate> candidates_;
};

}  // namespace strobe::structure
