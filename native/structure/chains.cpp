#include "structure/chains.h"

#include "structure/flow_graph.h"

namespace strobe::structure {

Chains find_chains(const GraphTables& graph) {
  const size_t nodes = graph.nodes.size();
  std::vector<uint32_t> in(nodes, 0);
  for (const Edge& edge : graph.edges) ++in[edge.target];
  if (graph.first != GraphTables::none) ++in[graph.first];
  const auto follower = [&](uint32_t node) {
    const auto edges = graph.successors(node);
    const bool only = edges.size() == 1 && node != graph.last && in[edges[0].target] == 1;
    return only ? edges[0].target : GraphTables::none;
  };
  std::vector<bool> follows(nodes, false);
  for (uint32_t u = 0; u < nodes; ++u)
    if (const uint32_t v = follower(u); v != GraphTables::none) follows[v] = true;
  // Every node is reached from START, which is one more edge into the first one: no chain is a circle.
  Chains chains;
  for (uint32_t head = 0; head < nodes; ++head) {
    if (follows[head] || graph.nodes[head].count == 0) continue;
    for (uint32_t u = head; u != GraphTables::none; u = follower(u)) chains.nodes.push_back(u);
    chains.begin.push_back(static_cast<uint32_t>(chains.nodes.size()));
  }
  return chains;
}

}  // namespace strobe::structure
