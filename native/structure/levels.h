// Loop levels of an event sequence: which events and transitions alternate strictly, and how the loops nest.
//
// C++ because the analysis walks every position list several times: a numpy version is 10 to 100 times slower on
// sequences with many items (tests/unit/levels_twin.py is that version, and the executable description of this file).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace strobe::structure {

// A node (an event signature) or an edge (a transition between two signatures) of the event flow graph.
struct Item {
  static constexpr uint32_t no_source = 0xFFFFFFFFu;
  uint32_t source = no_source;  // no_source: the item is the node `target`
  uint32_t target = 0;
  bool is_node() const { return source == no_source; }
};

// One alternation class: items that occur equally often and strictly in turn, hence once per iteration of the same
// loop.
struct Level {
  uint32_t count = 0;      // occurrences of each strict member = iterations seen
  double spine = 0;        // strict members + half of the soft members
  double coverage = 0;     // share of the sequence's time that the loop spans, 0..1
  double cvn = 0;          // coefficient of variation of the number of events per iteration
  double score = 0;        // ln(1 + spine) * coverage / (1 + cvn^2) * count / (count + 2)
  int32_t parent = -1;     // index of the enclosing level, -1: none
  uint32_t trips_min = 0;  // iterations of this level per iteration of its parent (0 without a parent)
  double trips_median = 0;
  uint32_t trips_max = 0;
  Item marker;                      // earliest node of the class, or its earliest edge when it has no node
  std::vector<uint32_t> positions;  // where the marker occurs, as indices into the sequence (an edge: of its target)
};

// How many of `inner` lie in each interval between two of `outer`; both ascending.
template <class T>
std::vector<uint32_t> trips(std::span<const T> outer, std::span<const T> inner) {
  std::vector<uint32_t> counts(outer.size() - 1, 0);
  size_t at = size_t(std::ranges::lower_bound(inner, outer[0]) - inner.begin());
  for (size_t i = 0; i < counts.size(); ++i)
    for (; at < inner.size() && inner[at] < outer[i + 1]; ++at) ++counts[i];
  return counts;
}
inline std::vector<uint32_t> trips(const Level& outer, const Level& inner) {
  return trips<uint32_t>(outer.positions, inner.positions);
}

struct LevelOptions {
  uint32_t min_count = 3;    // rarer items are not looked at
  uint32_t max_levels = 64;  // levels returned, best score first
  // An item is compared with so many classes of its count at most, the latest ones. In a program with loops few begin
  // within one iteration; if more did, members of one loop would be in several classes, but none is lost.
  uint32_t most_open = 1024;
  uint32_t max_count = 0xFFFFFFFFu;  // items that are more frequent are not looked at
  double least_score = 0;            // where no level could have it, none is looked for
};

// `ids` are event signatures, `times` their nanoseconds in ascending order; both of the same length.
// O(n) plus the prefixes that are compared: 10 to 25 ns per event in programs with loops, 50 to 75 where nothing
// repeats.
// A sequence of more than `most_events` is judged by so many from its middle.
constexpr size_t most_events = size_t{1} << 21;
std::vector<Level> find_levels(std::span<const uint32_t> ids, std::span<const int64_t> times,
                               const LevelOptions& options);

// The same with what has been counted already; `items` may hold rarer ones, too.
class Occurrences;
std::vector<Level> find_levels(const Occurrences& items, std::span<const int64_t> times, const LevelOptions& options);

}  // namespace strobe::structure
