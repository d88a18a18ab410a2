// Chains of a flow graph: nodes that can only follow each other, folded into one. What is left is the graph's shape.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strobe::structure {

struct GraphTables;

// Chain c holds nodes[begin[c]] to nodes[begin[c + 1]], in order. Chains are in order of their first nodes; every node
// that occurred is in one.
struct Chains {
  std::vector<uint32_t> begin{0};
  std::vector<uint32_t> nodes;
};

// An edge u -> v is folded if it is the only one out of u and the only one into v; START and END count as edges there.
Chains find_chains(const GraphTables& graph);

}  // namespace strobe::structure
