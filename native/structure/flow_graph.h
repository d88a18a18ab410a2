// Event flow graph of one location: nodes are kinds of events (signatures), edges are "was followed by". It is built
// event by event while the program runs, in constant memory, and is a profile with order: statistics of every
// transition, and (see temporal_graph.h) the whole sequence of events as long as its memory suffices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spans/growing_tables.h"
#include "structure/temporal_graph.h"

namespace strobe::structure {

// What a graph may grow to. The defaults add up to less than 24 MB; what is not used is not allocated.
struct GraphLimits {
  uint32_t nodes = 65536;             // later signatures become node 0, <other>
  uint32_t edges = 229376;            // later transitions are counted in the edge <other> -> <other>
  size_t partition_bytes = 2u << 20;  // for the order of events; then edges become "not replayable"
  uint32_t visits = UINT32_MAX;       // visits of one node whose order is kept, if it has several successors
};

struct Node {
  uint64_t signature = 0;  // 0 for <other>
  uint64_t count = 0;      // events
  uint64_t left = 0;       // those that have ended: the durations below are theirs
  int64_t sum_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  int64_t first_ns = 0;  // when its first event began
  bool operator==(const Node&) const = default;
};

// The time of an edge is enter(target) - enter(source), so the sums of all edges add up to the time between the first
// and the last event.
struct Edge {
  uint32_t source = 0;
  uint32_t target = 0;
  uint64_t count = 0;
  int64_t sum_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  double squares_ns2 = 0;         // sum of the squared times
  uint32_t partitions_begin = 0;  // in GraphTables::partitions
  uint32_t partitions_end = 0;
  bool replayable = true;  // the partitions are all visits of the source that took this edge
  bool operator==(const Edge&) const = default;
};

// A finished graph as tables. Node 0 is <other>, always there. Edges are in order of (source, first occurrence); those
// of node u are edges[out[u]] to edges[out[u + 1]]. The edges START -> first and last -> END are the two node numbers.
struct GraphTables {
  static constexpr uint32_t none = UINT32_MAX;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<uint32_t> out;
  std::vector<Partition> partitions;
  uint32_t first = none;  // none: no event
  uint32_t last = none;
  uint64_t lost_transitions = 0;  // in the edge <other> -> <other> because the table of edges was full
  bool operator==(const GraphTables&) const = default;

  std::span<const Edge> successors(size_t node) const {
    return std::span(edges).subspan(out[node], out[node + 1] - out[node]);
  }
  // Empty for the only edge of a node: it takes every visit.
  std::span<const Partition> partitions_of(const Edge& edge) const {
    return std::span(partitions).subspan(edge.partitions_begin, edge.partitions_end - edge.partitions_begin);
  }
  // All events in order can be had from replay().
  bool replayable() const;
};

class FlowGraph {
 public:
  static constexpr uint32_t most_partitions = 1u << 24;  // whatever the limits are

  explicit FlowGraph(GraphLimits limits = {});

  // One event; times must not decrease. Returns the number of its node: dense, from 1 in order of first occurrence;
  // 0 when there are too many signatures. Never throws; without memory the limits are reached earlier.
  uint32_t enter(uint64_t signature, int64_t ns);
  // The event of `node` that began last (or an earlier one) has ended.
  void leave(uint32_t node, int64_t duration_ns);

  uint32_t nodes() const { return nodes_.size(); }
  uint32_t edges() const { return edges_.size(); }
  uint64_t events() const { return events_; }
  uint64_t other_events() const { return nodes_[0].statistics.count; }
  size_t bytes() const;  // memory held

  GraphTables tables() const;

 private:
  static constexpr uint32_t no_edge = UINT32_MAX, no_partition = UINT32_MAX, not_replayable = UINT32_MAX - 1;
  struct NodeRecord {
    Node statistics{.min_ns = INT64_MAX, .max_ns = INT64_MIN};
    uint32_t only = no_edge;  // its first outgoing edge
    bool several = false;     // it has more than one outgoing edge, and these have partitions
  };
  struct EdgeRecord {
    uint32_t source = 0, target = 0;
    uint64_t count = 0;
    int64_t sum_ns = 0, min_ns = INT64_MAX, max_ns = INT64_MIN;
    double squares_ns2 = 0;
    uint32_t partition = no_partition;  // the open one, or not_replayable
    uint32_t next = no_edge;            // the edge that was taken after this one last time: probably again, namely
    uint64_t next_signature = 0;        // if this comes, which is known without a look at that edge
  };
  struct PartitionRecord {
    OpenPartition open;
    uint32_t previous = no_partition;  // the older ones of the same edge are finished
  };

  uint32_t node_of(uint64_t signature);
  uint32_t edge_of(uint32_t source, uint32_t target);
  [[gnu::noinline]] uint32_t enter_unexpected(uint64_t signature, int64_t ns);
  uint32_t follow(uint64_t signature);
  void pass(EdgeRecord& edge, int64_t ns);
  void take_visit(EdgeRecord& edge, uint64_t visit);
  void keep_order(NodeRecord& source);
  [[gnu::noinline]] uint32_t new_partition(const OpenPartition& open, uint32_t previous);
  void append_partitions(uint32_t newest, std::vector<Partition>& out) const;

  GraphLimits limits_;
  Growing<NodeRecord> nodes_;
  Growing<EdgeRecord> edges_;
  Growing<PartitionRecord> partitions_;
  Slots node_slots_, edge_slots_;
  uint32_t first_ = GraphTables::none, last_ = GraphTables::none;
  uint32_t last_edge_ = no_edge;  // that led to last_
  int64_t last_ns_ = 0;
  uint64_t events_ = 0, lost_transitions_ = 0;
};

// The payload of a `graph` chunk (docs/format/graph.md). Decoded: nothing if it is damaged.
std::string encode_graph(const GraphTables& tables);
std::optional<GraphTables> decode_graph(std::string_view payload);
// How many bytes of a payload hold the graph and the order of its events: successors, counts, partitions (`folded`:
// their tandem repeats as loops), without statistics and signatures.
size_t structure_bytes(const GraphTables& tables, bool folded);

// The node of every event, in order. Throws std::invalid_argument unless the graph is replayable() and its partitions
// are sound.
std::vector<uint32_t> replay(const GraphTables& tables);

}  // namespace strobe::structure
