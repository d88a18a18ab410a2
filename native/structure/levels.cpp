#include "structure/levels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

namespace strobe::structure {
namespace {

constexpr size_t soft_classes = 24;        // classes whose soft members are counted
constexpr uint32_t soft_min_count = 5;     // fewer iterations say nothing about "almost always once"
constexpr double soft_count_slack = 0.05;  // a soft member's count may differ by this share (or by 2)
constexpr double soft_once_share = 0.95;   // of the intervals must hold exactly one occurrence
constexpr double nest_min_trips = 1.5;     // mean inner iterations per outer one that make it "inside"

using Positions = std::span<const uint32_t>;

// Position lists of all keys in one array: the list of key k is flat[offsets[k] .. offsets[k + 1]).
struct PositionLists {
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> flat;
  size_t keys() const { return offsets.size() - 1; }
  Positions operator[](size_t key) const {
    return Positions(flat).subspan(offsets[key], offsets[key + 1] - offsets[key]);
  }
};

PositionLists gather(std::span<const uint32_t> key_of_event, size_t keys, uint32_t first_event) {
  PositionLists lists;
  lists.offsets.assign(keys + 1, 0);
  for (uint32_t key : key_of_event) ++lists.offsets[key + 1];
  std::partial_sum(lists.offsets.begin(), lists.offsets.end(), lists.offsets.begin());
  lists.flat.resize(key_of_event.size());
  std::vector<uint32_t> fill(lists.offsets.begin(), lists.offsets.end() - 1);
  for (uint32_t i = 0; i < key_of_event.size(); ++i) lists.flat[fill[key_of_event[i]]++] = first_event + i;
  return lists;
}

// Numbers the distinct 64-bit keys in order of first occurrence. Linear probing, load at most one half.
class Numbering {
 public:
  static constexpr uint32_t empty = 0xFFFFFFFFu;

  explicit Numbering(size_t expected) : slots_(std::bit_ceil(std::max<size_t>(expected * 2, 64))) {}

  uint32_t operator()(uint64_t key) {
    if ((keys_.size() + 1) * 2 > slots_.size()) grow();
    Slot& slot = find(key);
    if (slot.number == empty) {
      slot = {key, static_cast<uint32_t>(keys_.size())};
      keys_.push_back(key);
    }
    return slot.number;
  }
  const std::vector<uint64_t>& keys() const { return keys_; }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t number = empty;
  };

  Slot& find(uint64_t key) {
    const size_t mask = slots_.size() - 1;
    size_t at = (key * 0x9E3779B97F4A7C15ull >> 32) & mask;
    while (slots_[at].number != empty && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    slots_.assign(slots_.size() * 2, Slot{});
    for (uint32_t number = 0; number < keys_.size(); ++number) find(keys_[number]) = {keys_[number], number};
  }

  std::vector<Slot> slots_;
  std::vector<uint64_t> keys_;
};

struct Candidate {
  Item item;
  Positions at;
};

struct Class {
  std::vector<uint32_t> members;  // indices of candidates; the first is the earliest, the class's representative
  double spine = 0;
};

// q[i] <= p[i] <= q[i + 1] for all i.
bool alternates(Positions q, Positions p) {
  const size_t last = q.size() - 1;
  if (p[last] < q[last]) return false;
  for (size_t i = 0; i < last; ++i)
    if (p[i] < q[i] || p[i] > q[i + 1]) return false;
  return true;
}

// The classes of one count that may still take an item, in order of their first positions. Three occurrences of each
// representative lie side by side, so that almost all of the others are ruled out by a scan of plain arrays.
class OpenClasses {
 public:
  void clear() {
    for (auto& column : columns_) column.clear();
    classes_.clear();
  }

  void add(Positions q, uint32_t number) {
    for (size_t k = 0; k < 3; ++k) columns_[k].push_back(static_cast<int32_t>(q[probe(k, q.size())]));
    classes_.push_back(number);
  }

  // The first class with fits(class) among those that can have it: their occurrence i lies between p[i - 1] and p[i].
  template <class Fits>
  std::optional<uint32_t> find(Positions p, Fits fits) {
    forget_those_before(static_cast<int32_t>(p[0]));
    std::array<int32_t, 3> low, high;
    for (size_t k = 0; k < 3; ++k) {
      const size_t i = probe(k, p.size());
      low[k] = static_cast<int32_t>(p[i - 1]), high[k] = static_cast<int32_t>(p[i]);
    }
    const auto possible = [&](size_t at) {
      bool all = true;
      for (size_t k = 0; k < 3; ++k) all &= (columns_[k][at] >= low[k]) & (columns_[k][at] <= high[k]);
      return all;
    };
    constexpr size_t block = 32;
    for (size_t begin = 0; begin < classes_.size(); begin += block) {
      const size_t end = std::min(begin + block, classes_.size());
      if (end - begin == block && !any_possible<block>(begin, low, high)) continue;
      for (size_t at = begin; at < end; ++at)
        if (possible(at) && fits(classes_[at])) return classes_[at];
    }
    return {};
  }

 private:
  // Which occurrence is looked at: the second, one in the middle, the last.
  static size_t probe(size_t k, size_t count) { return k == 0 ? 1 : k == 1 ? (count + 1) / 2 : count - 1; }

  template <size_t block>
  bool any_possible(size_t begin, const std::array<int32_t, 3>& low, const std::array<int32_t, 3>& high) const {
    const int32_t *a = &columns_[0][begin], *b = &columns_[1][begin], *c = &columns_[2][begin];
    int32_t any = 0;
    for (size_t i = 0; i < block; ++i)
      any |= (a[i] >= low[0]) & (a[i] <= high[0]) & (b[i] >= low[1]) & (b[i] <= high[1]) & (c[i] >= low[2]) &
             (c[i] <= high[2]);
    return any != 0;
  }

  // A class whose second occurrence is over takes no item that begins now or later.
  void forget_those_before(int32_t first) {
    if (++asked_ * 8 < classes_.size()) return;
    asked_ = 0;
    size_t kept = 0;
    for (size_t at = 0; at < classes_.size(); ++at) {
      if (columns_[0][at] < first) continue;
      for (auto& column : columns_) column[kept] = column[at];
      classes_[kept++] = classes_[at];
    }
    for (auto& column : columns_) column.resize(kept);
    classes_.resize(kept);
  }

  std::array<std::vector<int32_t>, 3> columns_;
  std::vector<uint32_t> classes_;
  size_t asked_ = 0;  // since classes were forgotten
};

// Items in order of (count, first position), nodes before edges.
std::vector<Class> alternation_classes(std::span<const Candidate> candidates) {
  std::vector<Class> classes;
  OpenClasses open;
  size_t count = 0;
  for (uint32_t i = 0; i < candidates.size(); ++i) {
    const Positions p = candidates[i].at;
    if (p.size() != count) open.clear();
    count = p.size();
    const auto home = open.find(p, [&](uint32_t k) { return alternates(candidates[classes[k].members[0]].at, p); });
    if (home) {
      classes[*home].members.push_back(i);
    } else {
      open.add(p, static_cast<uint32_t>(classes.size()));
      classes.push_back({{i}, 0});
    }
  }
  return classes;
}

// Does p occur exactly once in at least 95 % of the intervals between the q?
bool almost_always_once(Positions q, Positions p) {
  const auto intervals = static_cast<double>(q.size() - 1);
  size_t misses = 0, at = 0;
  while (at < p.size() && p[at] < q[0]) ++at;
  for (size_t i = 0; i + 1 < q.size(); ++i) {
    const uint32_t end = q[i + 1];
    if (at + 1 < p.size() && p[at] < end && end <= p[at + 1]) {  // once, and it is not the last of all
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < p.size() && p[at] < end) ++at;
    if (at - begin == 1) continue;
    ++misses;
    if (intervals - static_cast<double>(misses) < soft_once_share * intervals) return false;
  }
  return true;
}

// Item by item, so that its positions stay in the cache while all classes look at them.
void add_soft_members(std::span<Class> classes, std::span<const Candidate> candidates) {
  std::vector<uint32_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(
      order, [&](uint32_t a, uint32_t b) { return classes[a].members.size() > classes[b].members.size(); });
  if (order.size() > soft_classes) order.resize(soft_classes);
  const auto count_of = [&](uint32_t k) { return candidates[classes[k].members[0]].at.size(); };
  std::erase_if(order, [&](uint32_t k) { return count_of(k) < soft_min_count; });

  std::vector<uint32_t> class_of(candidates.size());
  for (uint32_t k = 0; k < classes.size(); ++k)
    for (const uint32_t member : classes[k].members) class_of[member] = k;
  for (size_t c = 0; c < candidates.size(); ++c) {
    const Positions p = candidates[c].at;
    for (const uint32_t k : order) {
      const double count = static_cast<double>(count_of(k)), slack = std::max(2.0, soft_count_slack * count);
      if (class_of[c] == k || std::abs(static_cast<double>(p.size()) - count) > slack) continue;
      if (almost_always_once(candidates[classes[k].members[0]].at, p)) classes[k].spine += 0.5;
    }
  }
}

double variation_of_intervals(Positions q) {
  const double intervals = static_cast<double>(q.size() - 1);
  const double mean = static_cast<double>(q.back() - q.front()) / intervals;
  double squares = 0;
  for (size_t i = 0; i + 1 < q.size(); ++i) {
    const double difference = static_cast<double>(q[i + 1] - q[i]) - mean;
    squares += difference * difference;
  }
  return std::sqrt(squares / intervals) / mean;
}

// A level whose positions are not copied yet: most levels are dropped.
struct Measured {
  Level level;
  Positions at;
};

Measured measure(const Class& chosen, std::span<const Candidate> candidates, std::span<const int64_t> times) {
  const Positions q = candidates[chosen.members[0]].at;
  const double count = static_cast<double>(q.size());
  const double total = static_cast<double>(times.back() - times.front());
  Level level;
  level.count = static_cast<uint32_t>(q.size());
  level.spine = chosen.spine;
  const double spanned = static_cast<double>(times[q.back()] - times[q.front()]) * count / (count - 1);
  level.coverage = total > 0 ? std::min(1.0, spanned / total) : 0.0;
  level.cvn = variation_of_intervals(q);
  level.score = std::log1p(level.spine) * level.coverage / (1 + level.cvn * level.cvn) * count / (count + 2);
  const auto node = std::ranges::find_if(chosen.members, [&](uint32_t m) { return candidates[m].item.is_node(); });
  const Candidate& marker = candidates[node != chosen.members.end() ? *node : chosen.members[0]];
  level.marker = marker.item;
  return {std::move(level), marker.at};
}

// How often `inner` occurs in each interval of `outer`.
std::vector<uint32_t> trips(Positions outer, Positions inner) {
  std::vector<uint32_t> counts(outer.size() - 1, 0);
  size_t at = std::ranges::lower_bound(inner, outer[0]) - inner.begin();
  for (size_t i = 0; i < counts.size(); ++i)
    for (; at < inner.size() && inner[at] < outer[i + 1]; ++at) ++counts[i];
  return counts;
}

// Occurrences of `inner` from the first to the last of `outer`.
size_t inside(Positions outer, Positions inner) {
  return static_cast<size_t>(std::ranges::lower_bound(inner, outer.back()) -
                             std::ranges::lower_bound(inner, outer.front()));
}

// The parent is the level with the largest smaller count that holds at least 1.5 iterations of the child on average.
void nest(std::vector<Level>& levels) {
  for (Level& child : levels) {
    const Level* parent = nullptr;
    for (const Level& outer : levels) {
      if (outer.count >= child.count || (parent && outer.count <= parent->count)) continue;
      const double intervals = static_cast<double>(outer.positions.size() - 1);
      if (static_cast<double>(inside(outer.positions, child.positions)) >= nest_min_trips * intervals) parent = &outer;
    }
    if (!parent) continue;
    child.parent = static_cast<int32_t>(parent - levels.data());
    std::vector<uint32_t> counts = trips(parent->positions, child.positions);
    const auto half = counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2);
    std::ranges::nth_element(counts, half);
    child.trips_min = *std::min_element(counts.begin(), half + 1);
    child.trips_max = *std::max_element(half, counts.end());
    child.trips_median = counts.size() % 2 ? *half : (*std::max_element(counts.begin(), half) + *half) / 2.0;
  }
}

// Nodes and edges with at least min_count occurrences, in order of (count, first position), nodes before edges.
std::vector<Candidate> frequent_items(const PositionLists& nodes, std::span<const uint64_t> node_ids,
                                      const PositionLists& edges, std::span<const uint64_t> edge_nodes,
                                      uint32_t min_count) {
  std::vector<Candidate> candidates;
  const auto id = [&](uint64_t node) { return static_cast<uint32_t>(node_ids[node]); };
  for (size_t k = 0; k < nodes.keys(); ++k)
    if (nodes[k].size() >= min_count) candidates.push_back({{Item::no_source, id(k)}, nodes[k]});
  for (size_t k = 0; k < edges.keys(); ++k)
    if (edges[k].size() >= min_count)
      candidates.push_back({{id(edge_nodes[k] >> 32), id(edge_nodes[k] & 0xFFFFFFFFu)}, edges[k]});
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.at.size() != b.at.size() ? a.at.size() < b.at.size() : a.at[0] < b.at[0];
  });
  return candidates;
}

}  // namespace

std::vector<Level> find_levels(std::span<const uint32_t> ids, std::span<const int64_t> times,
                               const LevelOptions& options) {
  if (ids.size() < 2) return {};
  Numbering node_numbers(1024), edge_numbers(1024);
  std::vector<uint32_t> node_of_event(ids.size()), edge_of_event(ids.size() - 1);
  std::vector<uint32_t> taken;  // per node: the edge to its last successor, which is often the next one, too
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t source = i > 0 ? node_of_event[i - 1] : Numbering::empty;
    if (i > 0 && taken[source] != Numbering::empty) {
      const auto target = static_cast<uint32_t>(edge_numbers.keys()[taken[source]]);
      if (node_numbers.keys()[target] == ids[i]) {
        node_of_event[i] = target;
        edge_of_event[i - 1] = taken[source];
        continue;
      }
    }
    node_of_event[i] = node_numbers(ids[i]);
    if (node_of_event[i] == taken.size()) taken.push_back(Numbering::empty);
    if (i > 0)
      taken[source] = edge_of_event[i - 1] = edge_numbers(static_cast<uint64_t>(source) << 32 | node_of_event[i]);
  }
  const PositionLists nodes = gather(node_of_event, node_numbers.keys().size(), 0);
  const PositionLists edges = gather(edge_of_event, edge_numbers.keys().size(), 1);
  // Two occurrences are the least that have an interval.
  const std::vector<Candidate> candidates =
      frequent_items(nodes, node_numbers.keys(), edges, edge_numbers.keys(), std::max(options.min_count, 2u));

  std::vector<Class> classes = alternation_classes(candidates);
  for (Class& each : classes) each.spine = static_cast<double>(each.members.size());
  add_soft_members(classes, candidates);

  std::vector<Measured> measured;
  measured.reserve(classes.size());
  for (const Class& each : classes) measured.push_back(measure(each, candidates, times));
  std::ranges::stable_sort(measured,
                           [](const Measured& a, const Measured& b) { return a.level.score > b.level.score; });
  if (measured.size() > options.max_levels) measured.resize(options.max_levels);
  std::vector<Level> levels;
  for (Measured& each : measured) {
    levels.push_back(std::move(each.level));
    levels.back().positions.assign(each.at.begin(), each.at.end());
  }
  nest(levels);
  return levels;
}

}  // namespace strobe::structure
