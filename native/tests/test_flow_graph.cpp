// Flow graphs of random programs: statistics equal to a count by hand, sums of times equal to the elapsed time, the
// sequence comes back, limits hold.
#include "structure/flow_graph.h"

#include <map>
#include <random>

#include "tests/check.h"

using namespace strobe::structure;

namespace {

// Nested loops with varying trip counts, branches and jumps over few signatures.
std::vector<uint64_t> random_program(std::mt19937& random) {
  const auto events = [&](size_t most) {
    std::vector<uint64_t> ids(random() % (most + 1));
    for (uint64_t& id : ids) id = random() % 17 == 0 ? random() * 0x9E3779B97F4A7C15ull : random() % 12;
    return ids;
  };
  std::vector<uint64_t> ids = events(30);
  const std::vector<uint64_t> outer = events(8), inner = events(5), branch = events(3);
  for (size_t trips = random() % 40; trips > 0; --trips) {
    ids.insert(ids.end(), outer.begin(), outer.end());
    for (size_t k = random() % 5; k > 0; --k) ids.insert(ids.end(), inner.begin(), inner.end());
    if (random() % 4 == 0) ids.insert(ids.end(), branch.begin(), branch.end());
  }
  return ids;
}

void check_statistics(const std::vector<uint64_t>& ids, const std::vector<int64_t>& times, const GraphTables& tables) {
  std::map<uint64_t, uint64_t> counts;
  std::map<std::pair<uint64_t, uint64_t>, Edge> transitions;
  for (size_t i = 0; i < ids.size(); ++i) {
    ++counts[ids[i]];
    if (i == 0) continue;
    const int64_t time = times[i] - times[i - 1];
    Edge& edge = transitions[{ids[i - 1], ids[i]}];
    edge.min_ns = edge.count ? std::min(edge.min_ns, time) : time;
    edge.max_ns = edge.count ? std::max(edge.max_ns, time) : time;
    edge.sum_ns += time;
    edge.squares_ns2 += static_cast<double>(time) * static_cast<double>(time);
    ++edge.count;
  }
  CHECK(tables.nodes.size() == counts.size() + 1 && tables.edges.size() == transitions.size());
  for (size_t n = 1; n < tables.nodes.size(); ++n) {
    CHECK(tables.nodes[n].count == counts.at(tables.nodes[n].signature));
    CHECK(tables.nodes[n].left == 0 && tables.nodes[n].max_ns == 0);
  }
  int64_t elapsed = 0;
  for (const Edge& edge : tables.edges) {
    const Edge& expected = transitions.at({tables.nodes[edge.source].signature, tables.nodes[edge.target].signature});
    CHECK(edge.count == expected.count && edge.sum_ns == expected.sum_ns && edge.min_ns == expected.min_ns);
    CHECK(edge.max_ns == expected.max_ns && edge.squares_ns2 == expected.squares_ns2);
    elapsed += edge.sum_ns;
  }
  CHECK(ids.empty() || elapsed == times.back() - times.front());
}

void random_programs() {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<uint64_t> ids = random_program(random);
    std::vector<int64_t> times(ids.size());
    FlowGraph graph;
    std::vector<uint32_t> nodes;
    int64_t now = random();
    for (size_t i = 0; i < ids.size(); ++i) {
      times[i] = now += random() % 1000;
      nodes.push_back(graph.enter(ids[i], times[i]));
    }
    const GraphTables tables = graph.tables();
    check_statistics(ids, times, tables);
    CHECK(tables.replayable() && replay(tables) == nodes);
    CHECK(decode_graph(encode_graph(graph.tables())) == tables);
    for (size_t i = 0; i < ids.size(); ++i) CHECK(tables.nodes[nodes[i]].signature == ids[i]);
  }
}

void durations() {
  FlowGraph graph;
  const uint32_t a = graph.enter(7, 100), b = graph.enter(9, 110);
  graph.leave(b, 5);
  graph.leave(a, 30);
  graph.leave(graph.enter(9, 140), 2);
  const GraphTables tables = graph.tables();
  const Node expected{9, 2, 2, 7, 2, 5, 110};
  CHECK(tables.nodes[b] == expected && tables.nodes[a].sum_ns == 30 && tables.nodes[a].first_ns == 100);
  CHECK(tables.first == a && tables.last == b);
}

// Signatures, transitions and order beyond the limits: everything is still counted, and what is missing is said.
void limits() {
  FlowGraph few_nodes({.nodes = 3});
  for (uint64_t i = 0; i < 1000; ++i) CHECK(few_nodes.enter(i, static_cast<int64_t>(i)) == (i < 2 ? i + 1 : 0));
  CHECK(few_nodes.other_events() == 998 && few_nodes.events() == 1000);
  GraphTables tables = few_nodes.tables();
  CHECK(tables.nodes.size() == 3 && tables.edges.size() == 3 && tables.lost_transitions == 0);
  CHECK(replay(tables).size() == 1000);

  FlowGraph few_edges({.edges = 3});  // one of them is <other> -> <other>
  for (uint64_t i = 0; i < 1000; ++i) few_edges.enter(i % 10, static_cast<int64_t>(i));
  tables = few_edges.tables();
  CHECK(tables.edges.size() == 3 && !tables.replayable());
  int64_t sum = 0;
  uint64_t count = 0;
  for (const Edge& edge : tables.edges) sum += edge.sum_ns, count += edge.count;
  CHECK(sum == 999 && count == 999 && tables.lost_transitions == 999 - 200);
  CHECK(tables.edges[0].count == tables.lost_transitions && !tables.edges[0].replayable);

  std::mt19937 random(5);
  FlowGraph little_order({.partition_bytes = 1000});
  for (int64_t i = 0; i < 10000; ++i) little_order.enter(random() % 3, i);
  tables = little_order.tables();
  count = 0;
  for (const Edge& edge : tables.edges) count += edge.count;
  CHECK(count == 9999 && !tables.replayable() && decode_graph(encode_graph(little_order.tables())) == tables);

  FlowGraph few_visits({.visits = 100});
  for (int64_t i = 0; i < 1000; ++i) few_visits.enter(i % 2 ? 0 : 1 + (i / 2) % 2, i);  // 0 has two successors
  tables = few_visits.tables();
  size_t replayable = 0;
  for (const Edge& edge : tables.edges) replayable += edge.replayable;
  CHECK(tables.edges.size() == 4 && replayable == 2);
}

// A million distinct signatures, and random transitions between as many as there is room for, stay below 24 MB.
void memory() {
  FlowGraph distinct;
  for (uint64_t i = 0; i < 1000000; ++i) distinct.enter(i * 0x9E3779B97F4A7C15ull, static_cast<int64_t>(i));
  CHECK(distinct.nodes() == 65536 && distinct.other_events() == 1000000 - 65535 && distinct.bytes() < 24000000);
  std::mt19937_64 random(6);
  FlowGraph full;
  for (int64_t i = 0; i < 3000000; ++i) full.enter(random() % 60000 * (random() % 3 == 0 ? 3 : 1), i);
  CHECK(full.edges() == 229376 && full.bytes() < 24000000 && full.bytes() > 20000000);
  FlowGraph one;
  for (int64_t i = 0; i < 1000000; ++i) one.enter(42, 2 * i);
  const GraphTables tables = one.tables();
  CHECK(tables.edges.size() == 1 && tables.edges[0].count == 999999 && tables.edges[0].sum_ns == 2 * 999999);
  CHECK(replay(tables) == std::vector<uint32_t>(1000000, 1) && one.bytes() < 400000);
}

// A payload that is cut off or damaged is refused, or says something else, but harms nobody.
void damage() {
  std::mt19937 random(8);
  FlowGraph graph({.nodes = 20, .edges = 60});
  for (int round = 0; round < 20; ++round)
    for (const uint64_t id : random_program(random)) graph.leave(graph.enter(id, round), 1);
  const std::string sound = encode_graph(graph.tables());
  CHECK(decode_graph(sound) == graph.tables());
  for (size_t size = 0; size < sound.size(); ++size) CHECK(!decode_graph(sound.substr(0, size)));
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = sound;
    for (uint32_t k = 1 + random() % 3; k > 0; --k) damaged[random() % damaged.size()] = static_cast<char>(random());
    const std::optional<GraphTables> tables = decode_graph(damaged);
    if (!tables || !tables->replayable()) continue;
    uint64_t visits = 0;
    for (const Node& node : tables->nodes) visits += node.count % 1000000 == node.count ? node.count : 1000000;
    if (visits < 1000000) try {
        replay(*tables);
      } catch (const std::invalid_argument&) {
      }
  }
}

}  // namespace

int main() {
  random_programs();
  durations();
  damage();
  limits();
  memory();
  CHECK(replay(FlowGraph().tables()).empty() &&
        decode_graph(encode_graph(FlowGraph().tables())) == FlowGraph().tables());
}
