#include "structure/temporal_graph.h"

#include <stdexcept>

#include "structure/flow_graph.h"

namespace strobe::structure {

bool GraphTables::replayable() const {
  for (const Edge& edge : edges)
    if (!edge.replayable) return false;
  return lost_transitions == 0;
}

std::vector<uint32_t> replay(const GraphTables& tables) {
  if (!tables.replayable()) throw std::invalid_argument("the graph does not hold the order of its events");
  if (tables.first == GraphTables::none) return {};
  uint64_t events = 1;
  for (const Edge& edge : tables.edges) events += edge.count;

  // next[begin[u] + k - 1]: where visit k of node u leads; only for nodes with several successors.
  std::vector<uint64_t> begin(tables.nodes.size(), 0);
  std::vector<uint32_t> next;
  for (size_t u = 0; u < tables.nodes.size(); ++u) {
    const auto edges = tables.successors(u);
    if (edges.size() < 2) continue;
    begin[u] = next.size();
    next.resize(next.size() + tables.nodes[u].count, GraphTables::none);
    for (const Edge& edge : edges)
      for (const Partition& p : tables.partitions_of(edge))
        for (uint64_t block = p.first; block <= p.last; block += p.stride ? p.stride : p.last)
          for (uint64_t k = block; k < block + p.block; ++k) {
            if (k == 0 || k > tables.nodes[u].count) throw std::invalid_argument("a visit is not one of its node's");
            next[begin[u] + k - 1] = edge.target;
          }
  }

  std::vector<uint32_t> sequence;
  sequence.reserve(events);
  std::vector<uint64_t> visits(tables.nodes.size(), 0);
  for (uint32_t u = tables.first; sequence.size() < events;) {
    sequence.push_back(u);
    if (sequence.size() == events) break;
    const auto edges = tables.successors(u);
    const uint64_t k = visits[u]++;
    if (edges.empty() || k >= tables.nodes[u].count) throw std::invalid_argument("the partitions have a gap");
    u = edges.size() == 1 ? edges[0].target : next[begin[u] + k];
    if (u >= tables.nodes.size()) throw std::invalid_argument("the partitions have a gap");
  }
  return sequence;
}

}  // namespace strobe::structure
