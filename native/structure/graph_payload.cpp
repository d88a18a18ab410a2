// A flow graph as bytes, described in docs/format/graph.md.
#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "core/format/bytes.h"
#include "structure/expression.h"
#include "structure/flow_graph.h"

namespace strobe::structure {
namespace {

constexpr uint8_t version = 1;
// How the order of an edge is written.
constexpr uint64_t not_replayable = 0, what_is_left = 1, elements = 2;
// What an element of that order is.
constexpr uint64_t one_visit = 0, one_block = 1, blocks = 2, loop = 3;
// A node with more visits has no edge that takes what the others leave: finding its visits would cost a reader too
// much.
constexpr uint64_t most_visits_left = 1u << 20;

// The first visit counts from the first visit of the partition before, so that periodic partitions are equal.
using Token = std::array<uint32_t, 4>;

std::vector<Token> tokens_of(std::span<const Partition> partitions) {
  std::vector<Token> tokens;
  uint32_t before = 0;
  for (const Partition& p : partitions) {
    tokens.push_back({p.first - before, p.last - p.first, p.stride, p.block});
    before = p.first;
  }
  return tokens;
}

std::vector<Partition> partitions_from(std::span<const Token> tokens) {
  std::vector<Partition> partitions;
  uint32_t before = 0;
  for (const Token& t : tokens) {
    before += t[0];
    partitions.push_back({before, before + t[1], t[2], t[3]});
  }
  return partitions;
}

void write_token(Writer& out, const Token& token) {
  const auto [ahead, length, stride, block] = token;
  const uint64_t kind = length == 0 ? one_visit : stride == 0 ? one_block : blocks;
  out.number(uint64_t{ahead} << 2 | kind);
  if (kind != one_visit) out.number(length);
  if (kind == blocks) out.number(stride), out.number(block);
}

Token read_token(ByteReader& in, uint64_t head) {
  const uint64_t kind = head & 3;
  if (head >> 2 > UINT32_MAX) in.ok = false;
  Token token{uint32_t(head >> 2), 0, 0, 1};
  if (kind != one_visit) token[1] = in.number32();
  if (kind == one_block) token[3] = token[1] + 1;
  if (kind == blocks) token[2] = in.number32(), token[3] = in.number32();
  return token;
}

void write_partitions(Writer& out, std::span<const Partition> partitions, bool folded) {
  std::map<Token, uint32_t> numbers;
  std::vector<Token> distinct;
  std::vector<uint32_t> sequence;
  for (const Token& token : tokens_of(partitions)) {
    const auto [at, is_new] = numbers.try_emplace(token, uint32_t(distinct.size()));
    if (is_new) distinct.push_back(token);
    sequence.push_back(at->second);
  }
  Expression expression;
  if (folded) {
    expression = fold(sequence);
  } else {
    for (const uint32_t token : sequence) expression.elements.push_back({token, 0, 0, 0});
  }
  out.number(expression.elements.size() + elements);
  for (const Element& element : expression.elements) {
    if (!element.is_loop()) {
      write_token(out, distinct[element.event]);
      continue;
    }
    const auto runs = std::span(expression.runs).subspan(element.runs_begin, element.runs_end - element.runs_begin);
    out.number(uint64_t{element.size} << 2 | loop);
    out.number(runs.size());
    for (const TripRun& run : runs) {
      out.number(run.trips);
      if (runs.size() > 1) out.number(run.times);
    }
  }
}

std::vector<Partition> read_partitions(ByteReader& in, uint64_t count) {
  if (count > in.bytes.size()) in.ok = false;  // an element has a byte at least
  Expression expression;
  std::vector<Token> tokens;
  for (uint64_t i = 0; i < count && in.ok; ++i) {
    const uint64_t head = in.number();
    if ((head & 3) != loop) {
      expression.elements.push_back({uint32_t(tokens.size()), 0, 0, 0});
      tokens.push_back(read_token(in, head));
      continue;
    }
    const uint64_t runs = in.number();
    if (head >> 2 == 0 || head >> 2 > count || runs > in.bytes.size()) in.ok = false;
    const auto begin = uint32_t(expression.runs.size());
    for (uint64_t r = 0; r < runs && in.ok; ++r) {
      const uint32_t trips = in.number32();
      expression.runs.push_back({trips, runs > 1 ? in.number32() : UINT32_MAX});
    }
    expression.elements.push_back({0, uint32_t(head >> 2), begin, uint32_t(expression.runs.size())});
  }
  if (!in.ok) return {};
  std::vector<Token> sequence;
  for (const uint32_t token : expand(expression, FlowGraph::most_partitions)) sequence.push_back(tokens[token]);
  return partitions_from(sequence);
}

// The visits 1..visits that no other edge takes.
std::vector<Partition> partitions_left(std::span<const std::vector<Partition>> others, uint64_t visits) {
  std::vector<bool> taken(visits + 1);
  for (const auto& partitions : others)
    for (const Partition& p : partitions) {
      if (p.last > visits) throw std::invalid_argument("a visit is not one of its node's");
      for (uint32_t k = p.first; k <= p.last; ++k)
        if (p.contains(k)) taken[k] = true;
    }
  std::vector<Partition> left;
  OpenPartition open;
  bool any = false;
  for (uint32_t k = 1; k <= visits; ++k) {
    if (taken[k]) continue;
    if (any && open.extend(k)) continue;
    if (any) left.push_back(open.finished());
    open = any ? open.next(k) : OpenPartition::at(k);
    any = true;
  }
  if (any) left.push_back(open.finished());
  if (any && open.unfinished()) left.push_back(open.unfinished_block());
  return left;
}

// Whether the order of its edges has to be written.
bool has_order(const GraphTables& tables, size_t node) {
  return tables.successors(node).size() > 1 || tables.lost_transitions > 0;
}

// Visits of a node that were left again: all but the last one of the whole sequence.
uint64_t visits_left(const GraphTables& tables, size_t node) {
  return tables.nodes[node].count - (node == tables.last);
}

void write_order(Writer& out, const GraphTables& tables, size_t node, bool folded) {
  const auto edges = tables.successors(node);
  const bool all = std::ranges::all_of(edges, &Edge::replayable);
  const Edge* longest = nullptr;  // need not be written if the others are
  if (all && tables.lost_transitions == 0 && tables.nodes[node].count <= most_visits_left)
    longest = &*std::ranges::max_element(edges, {},
                                         [](const Edge& edge) { return edge.partitions_end - edge.partitions_begin; });
  for (const Edge& edge : edges) {
    if (!edge.replayable)
      out.number(not_replayable);
    else if (&edge == longest)
      out.number(what_is_left);
    else
      write_partitions(out, tables.partitions_of(edge), folded);
  }
}

void read_order(ByteReader& in, GraphTables& tables, size_t node) {
  std::vector<std::vector<Partition>> by_edge(tables.out[node + 1] - tables.out[node]);
  size_t left = by_edge.size();
  for (size_t i = 0; i < by_edge.size() && in.ok; ++i) {
    const uint64_t head = in.number();
    tables.edges[tables.out[node] + i].replayable = head != not_replayable;
    if (head == what_is_left) {
      if (left != by_edge.size() || tables.nodes[node].count > most_visits_left) in.ok = false;
      left = i;
    } else if (head >= elements) {
      by_edge[i] = read_partitions(in, head - elements);
    }
  }
  if (left < by_edge.size() && in.ok) by_edge[left] = partitions_left(by_edge, visits_left(tables, node));
  for (size_t i = 0; i < by_edge.size(); ++i) {
    Edge& edge = tables.edges[tables.out[node] + i];
    edge.partitions_begin = uint32_t(tables.partitions.size());
    tables.partitions.insert(tables.partitions.end(), by_edge[i].begin(), by_edge[i].end());
    edge.partitions_end = uint32_t(tables.partitions.size());
  }
}

void write_structure(Writer& out, const GraphTables& tables, bool folded) {
  for (size_t n = 0; n < tables.nodes.size(); ++n) {
    const auto edges = tables.successors(n);
    out.number(edges.size());
    for (const Edge& edge : edges) {
      out.difference(int64_t{edge.target} - int64_t{edge.source});
      out.number(edge.count);
    }
    if (has_order(tables, n)) write_order(out, tables, n, folded);
  }
}

bool read_structure(ByteReader& in, GraphTables& tables) {
  tables.out.push_back(0);
  for (size_t n = 0; n < tables.nodes.size() && in.ok; ++n) {
    const uint64_t edges = in.number();
    if (edges > in.bytes.size()) return false;
    for (uint64_t i = 0; i < edges; ++i) {
      Edge edge;
      edge.source = uint32_t(n);
      const int64_t target = int64_t(n) + in.difference();
      if (target < 0 || target >= int64_t(tables.nodes.size())) return false;
      edge.target = uint32_t(target);
      edge.count = in.number();
      edge.partitions_begin = edge.partitions_end = uint32_t(tables.partitions.size());
      tables.edges.push_back(edge);
    }
    tables.out.push_back(uint32_t(tables.edges.size()));
    if (has_order(tables, n)) read_order(in, tables, n);
    if (tables.partitions.size() > FlowGraph::most_partitions) return false;
  }
  return in.ok;
}

// Sum, smallest, largest.
void write_times(Writer& out, int64_t sum, int64_t min, int64_t max) {
  out.difference(sum);
  out.difference(min);
  out.number(uint64_t(max) - uint64_t(min));
}
void read_times(ByteReader& in, int64_t& sum, int64_t& min, int64_t& max) {
  sum = in.difference();
  min = in.difference();
  max = int64_t(uint64_t(min) + in.number());
}

std::optional<GraphTables> decode(ByteReader in) {
  GraphTables tables;
  if (in.raw<uint8_t>() != version) return {};
  const uint64_t nodes = in.number();
  tables.first = in.number32() - 1;
  tables.last = in.number32() - 1;
  tables.lost_transitions = in.number();
  if (nodes == 0 || nodes > in.bytes.size() / sizeof(uint64_t)) return {};
  if (tables.first != GraphTables::none && (tables.first >= nodes || tables.last >= nodes)) return {};
  int64_t before = 0;
  for (uint64_t n = 0; n < nodes; ++n) {
    Node node;
    node.signature = in.raw<uint64_t>();
    node.count = in.number();
    node.left = in.number();
    read_times(in, node.sum_ns, node.min_ns, node.max_ns);
    before = node.first_ns = int64_t(uint64_t(before) + uint64_t(in.difference()));
    tables.nodes.push_back(node);
  }
  if (!in.ok || !read_structure(in, tables)) return {};
  for (Edge& edge : tables.edges) {
    read_times(in, edge.sum_ns, edge.min_ns, edge.max_ns);
    edge.squares_ns2 = in.raw<double>();
  }
  if (!in.ok || !in.bytes.empty()) return {};
  return tables;
}

}  // namespace

std::string encode_graph(const GraphTables& tables) {
  Writer out;
  out.raw(version);
  out.number(tables.nodes.size());
  out.number(uint64_t{tables.first + 1});
  out.number(uint64_t{tables.last + 1});
  out.number(tables.lost_transitions);
  int64_t before = 0;
  for (const Node& node : tables.nodes) {
    out.raw(node.signature);
    out.number(node.count);
    out.number(node.left);
    write_times(out, node.sum_ns, node.min_ns, node.max_ns);
    out.difference(node.first_ns - before);
    before = node.first_ns;
  }
  write_structure(out, tables, true);
  for (const Edge& edge : tables.edges) {
    write_times(out, edge.sum_ns, edge.min_ns, edge.max_ns);
    out.raw(edge.squares_ns2);
  }
  return std::move(out.bytes);
}

std::optional<GraphTables> decode_graph(std::string_view payload) try {
  return decode({payload});
} catch (const std::invalid_argument&) {  // an order that cannot be
  return {};
}

size_t structure_bytes(const GraphTables& tables, bool folded) {
  Writer out;
  write_structure(out, tables, folded);
  return out.bytes.size();
}

}  // namespace strobe::structure
