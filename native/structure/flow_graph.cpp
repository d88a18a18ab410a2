#include "structure/flow_graph.h"

#include <algorithm>
#include <numeric>

namespace strobe::structure {
namespace {

uint64_t key_of(uint32_t source, uint32_t target) { return uint64_t{source} << 32 | target; }

}  // namespace

FlowGraph::FlowGraph(GraphLimits limits)
    : limits_(limits),
      nodes_(std::clamp(limits.nodes, 1u, Slots::most)),
      edges_(std::clamp(limits.edges, 1u, Slots::most)),
      partitions_(uint32_t(std::min<size_t>(limits.partition_bytes / sizeof(PartitionRecord), most_partitions))) {
  // Node 0 and edge 0 take what the tables have no room for, so they exist from the start.
  if (!nodes_.push({}) || !edges_.push({})) throw std::bad_alloc();
}

uint32_t FlowGraph::node_of(uint64_t signature) {
  const auto signature_of = [&](uint32_t n) { return nodes_[n].statistics.signature; };
  const uint32_t found = node_slots_.find(signature, [&](uint32_t n) { return signature_of(n) == signature; });
  if (found != Slots::empty) return found;
  NodeRecord record;
  record.statistics.signature = signature;
  const uint32_t number = nodes_.size();
  if (!node_slots_.reserve(signature_of) || !nodes_.push(record)) return 0;
  node_slots_.add(signature, number);
  return number;
}

// no_edge: the table is full.
uint32_t FlowGraph::edge_of(uint32_t source, uint32_t target) {
  if (source == 0 && target == 0) return 0;
  const auto key_at = [&](uint32_t e) { return key_of(edges_[e].source, edges_[e].target); };
  const uint64_t key = key_of(source, target);
  const uint32_t found = edge_slots_.find(key, [&](uint32_t e) { return key_at(e) == key; });
  if (found != Slots::empty) return found;
  EdgeRecord record;
  record.source = source;
  record.target = target;
  const uint32_t number = edges_.size();
  if (!edge_slots_.reserve(key_at) || !edges_.push(record)) return no_edge;
  edge_slots_.add(key, number);
  return number;
}

uint32_t FlowGraph::new_partition(const OpenPartition& open, uint32_t previous) {
  const uint32_t number = partitions_.size();
  return partitions_.push({open, previous}) ? number : not_replayable;
}

// The source has several successors: `edge` is taken at its visit `visit`.
inline void FlowGraph::take_visit(EdgeRecord& edge, uint64_t visit) {
  const uint32_t partition = edge.partition;
  const auto k = uint32_t(visit);
  if (partition < not_replayable && visit <= limits_.visits) {
    const OpenPartition& open = partitions_[partition].open;
    if (!partitions_[partition].open.extend(k)) edge.partition = new_partition(open.next(k), partition);
  } else if (partition == no_partition && visit <= limits_.visits) {
    edge.partition = new_partition(OpenPartition::at(k), no_partition);
  } else {
    edge.partition = not_replayable;
  }
}

// From now on the order of the visits of `source` is kept; so far, all of them took the one edge that it has.
void FlowGraph::keep_order(NodeRecord& source) {
  source.several = true;
  if (source.only == no_edge) return;
  EdgeRecord& only = edges_[source.only];
  if (only.count > limits_.visits) {
    only.partition = not_replayable;
    return;
  }
  const auto visits = uint32_t(only.count);
  only.partition = new_partition({{1, visits, 0, visits}, 1}, no_partition);
}

// The edge from the last node to that of the signature. no_edge: the table is full; last_ has moved on all the same.
uint32_t FlowGraph::follow(uint64_t signature) {
  const uint32_t from = last_;
  last_ = node_of(signature);
  const uint32_t edge = edge_of(from, last_);
  NodeRecord& source = nodes_[from];
  if (edge == no_edge) {
    ++lost_transitions_;
    if (!source.several) keep_order(source);
  } else if (source.only == no_edge) {
    source.only = edge;
  } else if (edge != source.only && !source.several) {
    keep_order(source);
  }
  if (last_edge_ != no_edge) {
    edges_[last_edge_].next = last_ != 0 ? edge : no_edge;  // <other> is not known by a signature
    edges_[last_edge_].next_signature = signature;
  }
  return edge;
}

inline void FlowGraph::pass(EdgeRecord& edge, int64_t ns) {
  const int64_t time = ns - last_ns_;
  last_ns_ = ns;
  edge.min_ns = std::min(edge.min_ns, time);
  edge.max_ns = std::max(edge.max_ns, time);
  edge.sum_ns += time;
  edge.squares_ns2 += double(time) * double(time);
  ++edge.count;
}

uint32_t FlowGraph::enter(uint64_t signature, int64_t ns) {
  if (last_edge_ != no_edge) {
    const EdgeRecord& latest = edges_[last_edge_];
    if (latest.next_signature == signature && latest.next != no_edge) {
      EdgeRecord& edge = edges_[last_edge_ = latest.next];
      const NodeRecord& source = nodes_[last_];
      if (source.several) take_visit(edge, source.statistics.count);
      pass(edge, ns);
      ++nodes_[edge.target].statistics.count;
      ++events_;
      return last_ = edge.target;
    }
  }
  return enter_unexpected(signature, ns);
}

// The same for an event that did not follow here last time, and for the first of all.
uint32_t FlowGraph::enter_unexpected(uint64_t signature, int64_t ns) {
  if (++events_ == 1) {
    first_ = last_ = node_of(signature);
    last_ns_ = ns;
  } else {
    const uint32_t source = last_;
    last_edge_ = follow(signature);
    EdgeRecord& edge = edges_[last_edge_ == no_edge ? 0 : last_edge_];
    if (last_edge_ != no_edge && nodes_[source].several) take_visit(edge, nodes_[source].statistics.count);
    pass(edge, ns);
  }
  Node& entered = nodes_[last_].statistics;
  if (entered.count++ == 0) entered.first_ns = ns;
  return last_;
}

void FlowGraph::leave(uint32_t node, int64_t duration_ns) {
  Node& statistics = nodes_[node].statistics;
  ++statistics.left;
  statistics.sum_ns += duration_ns;
  statistics.min_ns = std::min(statistics.min_ns, duration_ns);
  statistics.max_ns = std::max(statistics.max_ns, duration_ns);
}

size_t FlowGraph::bytes() const {
  return sizeof(*this) + nodes_.bytes() + edges_.bytes() + partitions_.bytes() + node_slots_.bytes() +
         edge_slots_.bytes();
}

// All partitions of an edge from the open one back to its oldest, in order of visits.
void FlowGraph::append_partitions(uint32_t newest, std::vector<Partition>& out) const {
  const size_t begin = out.size();
  for (uint32_t p = newest; p < not_replayable; p = partitions_[p].previous) {
    const OpenPartition& open = partitions_[p].open;
    if (p == newest && open.unfinished()) out.push_back(open.unfinished_block());
    out.push_back(open.finished());
  }
  std::reverse(out.begin() + ptrdiff_t(begin), out.end());
}

GraphTables FlowGraph::tables() const {
  GraphTables tables;
  tables.first = first_;
  tables.last = last_;
  tables.lost_transitions = lost_transitions_;
  tables.nodes.reserve(nodes_.size()), tables.edges.reserve(edges_.size());
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    tables.nodes.push_back(nodes_[n].statistics);
    Node& node = tables.nodes.back();
    if (node.left == 0) node.min_ns = node.max_ns = 0;
  }
  const uint32_t begin = edges_[0].count == 0;  // <other> -> <other> only if it was taken
  tables.out.assign(nodes_.size() + 1, 0);
  for (uint32_t e = begin; e < edges_.size(); ++e) ++tables.out[edges_[e].source + 1];
  std::partial_sum(tables.out.begin(), tables.out.end(), tables.out.begin());
  std::vector<uint32_t> order(edges_.size() - begin), fill(tables.out.begin(), tables.out.end() - 1);
  for (uint32_t e = begin; e < edges_.size(); ++e) order[fill[edges_[e].source]++] = e;
  for (const uint32_t e : order) {
    const EdgeRecord& from = edges_[e];
    Edge edge{from.source, from.target,      from.count, from.sum_ns, from.min_ns,
              from.max_ns, from.squares_ns2, 0,          0,           true};
    edge.replayable = from.partition != not_replayable && (e != 0 || lost_transitions_ == 0);
    edge.partitions_begin = uint32_t(tables.partitions.size());
    if (edge.replayable) append_partitions(from.partition, tables.partitions);
    edge.partitions_end = uint32_t(tables.partitions.size());
    tables.edges.push_back(edge);
  }
  return tables;
}

}  // namespace strobe::structure
