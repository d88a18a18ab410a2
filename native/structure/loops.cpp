#include "structure/loops.h"

#include <algorithm>

namespace strobe::structure {
namespace {

class Search {
 public:
  explicit Search(const Successors& graph)
      : graph_(graph), position_(graph.out.size() - 1, 0), seen_(position_.size(), 0) {
    nest_.header.assign(position_.size(), LoopNest::none);
    nest_.is_header.assign(position_.size(), 0);
    nest_.irreducible.assign(position_.size(), 0);
  }

  LoopNest run(uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      const uint32_t from = path_.back().node;
      if (path_.back().next < graph_.out[from + 1]) {
        follow(from, path_.back().next++);
        continue;
      }
      position_[from] = 0;
      path_.pop_back();
      if (!path_.empty()) tag(path_.back().node, nest_.header[from]);
    }
    std::ranges::sort(nest_.re_entries);
    return std::move(nest_);
  }

 private:
  struct Step {
    uint32_t node;
    uint32_t next;  // edge
  };

  bool on_path(uint32_t node) const { return position_[node] != 0; }

  void enter(uint32_t node) {
    path_.push_back({node, graph_.out[node]});
    position_[node] = uint32_t(path_.size());
    seen_[node] = 1;
  }

  void follow(uint32_t from, uint32_t edge) {
    const uint32_t to = graph_.targets[edge];
    if (!seen_[to]) {
      enter(to);
    } else if (on_path(to)) {
      nest_.is_header[to] = 1;
      tag(from, to);
    } else if (nest_.header[to] != LoopNest::none) {
      uint32_t header = nest_.header[to];
      if (!on_path(header)) nest_.re_entries.push_back(edge);
      // Loops that were left already are entered again, past their headers.
      for (; header != LoopNest::none && !on_path(header); header = nest_.header[header]) nest_.irreducible[header] = 1;
      tag(from, header);
    }
  }

  // `node` is in the loop of `header`: weaves it into the chain of headers around the node, the deepest on the path
  // first.
  void tag(uint32_t node, uint32_t header) {
    if (node == header || header == LoopNest::none) return;
    while (true) {
      const uint32_t inner = nest_.header[node];
      if (inner == header) return;
      if (inner == LoopNest::none) {
        nest_.header[node] = header;
        return;
      }
      if (position_[inner] < position_[header]) {
        nest_.header[node] = header;
        node = header;
        header = inner;
      } else {
        node = inner;
      }
    }
  }

  const Successors& graph_;
  std::vector<uint32_t> position_;  // on the path of the search, from 1; 0: not on it
  std::vector<uint8_t> seen_;
  std::vector<Step> path_;
  LoopNest nest_;
};

}  // namespace

LoopNest find_loops(const Successors& graph, uint32_t root) { return Search(graph).run(root); }

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
    chains.begin.push_back(uint32_t(chains.nodes.size()));
  }
  return chains;
}

}  // namespace strobe::structure
