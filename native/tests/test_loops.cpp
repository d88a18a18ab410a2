// Loops of random graphs against their definition by brute force: after a depth-first search, x is in the loop of h if
// h is an ancestor of x in the tree and x reaches h without leaving h's subtree.
#include "structure/loops.h"

#include <algorithm>
#include <random>

#include "tests/check.h"

using namespace strobe::structure;

namespace {

struct Graph {
  std::vector<uint32_t> out{0}, targets;
  size_t nodes() const { return out.size() - 1; }
  std::span<const uint32_t> successors(size_t u) const {
    return std::span(targets).subspan(out[u], out[u + 1] - out[u]);
  }
};

Graph random_graph(std::mt19937& random) {
  Graph graph;
  const size_t nodes = 1 + random() % 20, degree = 1 + random() % 4;
  for (size_t u = 0; u < nodes; ++u) {
    for (size_t k = 1 + random() % degree; k > 0; --k) {
      const uint32_t v = random() % nodes;
      if (std::ranges::find(graph.targets.begin() + graph.out[u], graph.targets.end(), v) == graph.targets.end())
        graph.targets.push_back(v);
    }
    graph.out.push_back(static_cast<uint32_t>(graph.targets.size()));
  }
  return graph;
}

// Sets of nodes are bit masks.
struct Tree {
  std::vector<uint32_t> parent, subtree;
  uint32_t seen = 0;
  Tree(const Graph& graph) : parent(graph.nodes(), LoopNest::none), subtree(graph.nodes(), 0) { visit(graph, 0); }
  void visit(const Graph& graph, uint32_t u) {
    seen |= 1u << u;
    subtree[u] = 1u << u;
    for (const uint32_t v : graph.successors(u)) {
      if (seen >> v & 1) continue;
      parent[v] = u;
      visit(graph, v);
      subtree[u] |= subtree[v];
    }
  }
};

// The nodes, h among them, that reach h by at least one edge inside its subtree; 0 if h is no header.
uint32_t loop_of(const Graph& graph, const Tree& tree, uint32_t h) {
  uint32_t members = 0;
  for (bool grown = true; grown;) {
    grown = false;
    for (uint32_t u = 0; u < graph.nodes(); ++u) {
      if (!(tree.subtree[h] >> u & 1) || members >> u & 1) continue;
      for (const uint32_t v : graph.successors(u))
        if (v == h || members >> v & 1) members |= 1u << u, grown = true;
    }
  }
  return members;
}

void compare(const Graph& graph) {
  const LoopNest nest = find_loops({graph.out, graph.targets}, 0);
  const Tree tree(graph);
  std::vector<uint32_t> loops;
  for (uint32_t h = 0; h < graph.nodes(); ++h) loops.push_back(loop_of(graph, tree, h));
  std::vector<uint32_t> re_entries;
  for (uint32_t u = 0; u < graph.nodes(); ++u) {
    uint32_t innermost = tree.parent[u];
    while (innermost != LoopNest::none && !(loops[innermost] >> u & 1)) innermost = tree.parent[innermost];
    CHECK(nest.header[u] == innermost);
    CHECK(nest.is_header[u] == (loops[u] != 0));
    bool entered = false;  // elsewhere than at the header
    for (uint32_t from = 0; from < graph.nodes(); ++from)
      for (const uint32_t to : graph.successors(from))
        entered |= to != u && loops[u] >> to & 1 && tree.seen >> from & 1 && !(tree.subtree[u] >> from & 1);
    CHECK(nest.irreducible[u] == entered);
  }
  for (uint32_t from = 0; from < graph.nodes(); ++from)
    for (uint32_t e = graph.out[from]; e < graph.out[from + 1]; ++e) {
      const uint32_t header = nest.header[graph.targets[e]];
      if (tree.seen >> from & 1 && header != LoopNest::none && !(tree.subtree[header] >> from & 1))
        re_entries.push_back(e);
    }
  CHECK(nest.re_entries == re_entries);
}

// A path of many nodes, with loops inside of each other, must not exhaust the stack.
void deep() {
  constexpr uint32_t nodes = 200000;
  Graph graph;
  for (uint32_t u = 0; u < nodes; ++u) {
    if (u + 1 < nodes) graph.targets.push_back(u + 1);
    if (u == nodes - 1) graph.targets.push_back(0);
    if (u % 1000 == 999) graph.targets.push_back(u - 500);
    graph.out.push_back(static_cast<uint32_t>(graph.targets.size()));
  }
  const LoopNest nest = find_loops({graph.out, graph.targets}, 0);
  CHECK(nest.is_header[499] && nest.header[499] == 0 && nest.header[999] == 499 && nest.header[1000] == 0);
}

}  // namespace

int main() {
  std::mt19937 random(17);
  for (int round = 0; round < 20000; ++round) compare(random_graph(random));
  deep();
}
