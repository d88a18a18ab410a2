// loops.h - the shape of a flow graph: its loops, and chains of nodes that can only follow each other.
//
// Loops are found after Wei, Mao, Zou, Chen: A New Algorithm for Identifying Loops in Decompilation (SAS 2007):
// one depth-first search; irreducible loops (with several entries) are found, too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "structure/flow_graph.h"

namespace strobe::structure {

// Successors of node u: targets[out[u]] to targets[out[u + 1]]. The nest of irreducible loops depends on their order.
struct Successors {
  std::span<const uint32_t> out;
  std::span<const uint32_t> targets;
};

struct LoopNest {
  static constexpr uint32_t none = UINT32_MAX;
  // Per node: the header of the innermost loop around it; of a header: around its own loop. none: in no loop.
  std::vector<uint32_t> header;
  std::vector<uint8_t> is_header;
  std::vector<uint8_t> irreducible;  // of headers: the loop can be entered elsewhere
  std::vector<uint32_t> re_entries;  // the edges that do so, as indices into targets, ascending
};

// Loops of what can be reached from `root`. Nearly linear in the edges, constant stack.
LoopNest find_loops(const Successors& graph, uint32_t root);

// Chain c holds nodes[begin[c]] to nodes[begin[c + 1]], in order. Chains are in order of their first nodes; every node
// that occurred is in one.
struct Chains {
  std::vector<uint32_t> begin{0};
  std::vector<uint32_t> nodes;
};

// An edge u -> v is folded if it is the only one out of u and the only one into v; START and END count as edges there.
Chains find_chains(const GraphTables& graph);

}  // namespace strobe::structure
