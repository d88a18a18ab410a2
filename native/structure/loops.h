// Loops of a flow graph after Wei, Mao, Zou, Chen: A New Algorithm for Identifying Loops in Decompilation (SAS 2007):
// one depth-first search; irreducible loops (with several entries) are found, too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace strobe::structure
