#include "structure/levels.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "structure/alternation.h"

namespace strobe::structure {
namespace {

constexpr size_t soft_classes = 24;        // classes whose soft members are counted
constexpr uint32_t soft_min_count = 5;     // fewer iterations are too few for "almost always once"
constexpr double soft_count_slack = 0.05;  // a soft member's count may differ by this share (or by 2)
constexpr double soft_once_share = 0.95;   // of the intervals must hold exactly one occurrence
constexpr double nest_min_trips = 1.5;     // mean inner iterations per outer one that make it "inside"

// Whether p[i] lies in the interval that begins with q[i], for the next `step` of both.
template <size_t step>
bool in_step(const uint32_t* q, const uint32_t* p) {
  int32_t outside = 0;  // signed: what every processor compares side by side
  for (size_t i = 0; i < step; ++i) {
    const auto at = int32_t(p[i]);
    outside |= (at < int32_t(q[i])) | (at >= int32_t(q[i + 1]));
  }
  return outside == 0;
}

// Does p occur exactly once in the intervals between the q, but for so many?
bool almost_always_once(Positions q, Positions p, size_t most_misses) {
  constexpr size_t step = 16;
  const size_t intervals = q.size() - 1;
  size_t misses = 0, at = 0;
  while (at < p.size() && p[at] < q[0]) ++at;
  size_t singly = 2;  // intervals to be looked at one by one before whole steps are tried
  for (size_t i = 0; i < intervals;) {
    if (singly == 0) {
      if (i + step <= intervals && at + step < p.size() && p[at + step] >= q[i + step] &&
          in_step<step>(&q[i], &p[at])) {
        i += step, at += step;
        continue;
      }
      singly = step;
    }
    --singly;
    const uint32_t end = q[++i];
    const size_t begin = at;
    while (at < p.size() && p[at] < end) ++at;
    if (at - begin == 1) continue;
    if (++misses > most_misses) return false;
    singly = 0;
  }
  return true;
}

// By class: how many other items occur about as often as the class, and almost always once per iteration.
std::vector<uint32_t> soft_members(const Alternation& alternation, std::span<const Candidate> candidates) {
  const auto& [classes, class_of] = alternation;
  std::vector<uint32_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto end = order.begin() + ptrdiff_t(std::min(soft_classes, order.size()));
  std::ranges::partial_sort(order, end, [&](uint32_t a, uint32_t b) {
    return classes[a].members != classes[b].members ? classes[a].members > classes[b].members : a < b;
  });
  struct Loop {
    uint32_t number;
    Positions q;
    size_t most_misses;
  };
  std::vector<Loop> largest, comparable;  // comparable: those that occur about as often as the items looked at
  for (const uint32_t k : std::span(order.begin(), end)) {
    const Positions q = candidates[classes[k].first].at;
    if (q.size() < soft_min_count) continue;
    const size_t intervals = q.size() - 1;
    largest.push_back({k, q, intervals - size_t(std::ceil(soft_once_share * double(intervals)))});
  }
  std::vector<uint32_t> soft(classes.size(), 0);
  size_t count = 0;
  for (size_t c = 0; c < candidates.size(); ++c) {  // item by item: its positions stay in the cache
    const Positions p = candidates[c].at;
    prefetch(candidates, c);
    if (p.size() != count) {
      count = p.size();
      comparable.clear();
      std::ranges::copy_if(largest, std::back_inserter(comparable), [&](const Loop& loop) {
        const auto iterations = double(loop.q.size());
        return std::abs(double(count) - iterations) <= std::max(2.0, soft_count_slack * iterations);
      });
    }
    for (const Loop& loop : comparable)
      if (class_of[c] != loop.number && almost_always_once(loop.q, p, loop.most_misses)) ++soft[loop.number];
  }
  return soft;
}

double variation_of_intervals(Positions q) {
  const double intervals = double(q.size() - 1);
  const double mean = double(q.back() - q.front()) / intervals;
  double squares = 0;
  for (size_t i = 0; i + 1 < q.size(); ++i) {
    const double difference = double(q[i + 1] - q[i]) - mean;
    squares += difference * difference;
  }
  return std::sqrt(squares / intervals) / mean;
}

// The level of a class, without its positions: most levels are dropped.
struct Measured {
  Level level;
  uint32_t marker;  // candidate
};

// A level's score if it spans the whole sequence and all iterations are equally long: no score is higher.
double highest_score(double spine, size_t count) { return std::log1p(spine) * double(count) / double(count + 2); }

Measured measure(const AlternationClass& chosen, double spine, std::span<const Candidate> candidates,
                 std::span<const int64_t> times) {
  const Positions q = candidates[chosen.first].at;
  const double count = double(q.size());
  const double total = double(times.back() - times.front());
  Level level;
  level.count = uint32_t(q.size());
  level.spine = spine;
  const double spanned = double(times[q.back()] - times[q.front()]) * count / (count - 1);
  level.coverage = total > 0 ? std::min(1.0, spanned / total) : 0.0;
  level.cvn = variation_of_intervals(q);
  level.score = std::log1p(level.spine) * level.coverage / (1 + level.cvn * level.cvn) * count / (count + 2);
  const uint32_t marker = chosen.node != AlternationClass::no_node ? chosen.node : chosen.first;
  level.marker = candidates[marker].item;
  return {std::move(level), marker};
}

// The levels with the best scores, the best first; of equal ones those that come first.
std::vector<Measured> best_levels(const Alternation& alternation, std::span<const Candidate> candidates,
                                  std::span<const int64_t> times, size_t most) {
  const auto better = [](const Measured& a, const Measured& b) { return a.level.score > b.level.score; };
  const std::vector<uint32_t> soft = soft_members(alternation, candidates);
  std::vector<Measured> best;
  double least = -1;  // what a score must be above to be among the best
  const auto sort = [&] {
    std::ranges::stable_sort(best, better);
    if (best.size() <= most) return;
    best.resize(most);
    least = most > 0 ? best.back().level.score : INFINITY;
  };
  for (size_t k = 0; k < alternation.classes.size(); ++k) {
    const AlternationClass& each = alternation.classes[k];
    const double spine = each.members + soft[k] / 2.0;
    if (highest_score(spine, candidates[each.first].at.size()) <= least) continue;
    best.push_back(measure(each, spine, candidates, times));
    if (best.size() >= 2 * most) sort();
  }
  sort();
  return best;
}

// Occurrences of `inner` from the first to the last of `outer`.
size_t inside(Positions outer, Positions inner) {
  return size_t(std::ranges::lower_bound(inner, outer.back()) - std::ranges::lower_bound(inner, outer.front()));
}

// The parent is the level with the largest smaller count that holds at least 1.5 iterations of the child on average.
void nest(std::vector<Level>& levels) {
  for (Level& child : levels) {
    const Level* parent = nullptr;
    for (const Level& outer : levels) {
      if (outer.count >= child.count || (parent && outer.count <= parent->count)) continue;
      const double intervals = double(outer.positions.size() - 1);
      if (double(inside(outer.positions, child.positions)) >= nest_min_trips * intervals) parent = &outer;
    }
    if (!parent) continue;
    child.parent = int32_t(parent - levels.data());
    std::vector<uint32_t> counts = trips(*parent, child);
    const auto half = counts.begin() + ptrdiff_t(counts.size() / 2);
    std::ranges::nth_element(counts, half);
    child.trips_min = *std::min_element(counts.begin(), half + 1);
    child.trips_max = *std::max_element(half, counts.end());
    child.trips_median = counts.size() % 2 ? *half : (*std::max_element(counts.begin(), half) + *half) / 2.0;
  }
}

}  // namespace

std::vector<Level> find_levels(const Occurrences& items, std::span<const int64_t> times, const LevelOptions& options) {
  const auto rarer = [&](uint64_t count) {  // they are in order of their count
    return size_t(std::ranges::lower_bound(items.candidates(), count, {}, [](auto& c) { return c.at.size(); }) -
                  items.candidates().begin());
  };
  // Two occurrences are the least that have an interval.
  const size_t first = rarer(std::max(options.min_count, 2u)), last = rarer(uint64_t{options.max_count} + 1);
  const auto candidates = items.candidates().subspan(first, std::max(first, last) - first);
  if (candidates.empty() || highest_score(double(candidates.size()), candidates.back().at.size()) < options.least_score)
    return {};
  const Alternation alternation = alternation_classes(candidates, std::max(options.most_open, 1u));
  std::vector<Level> levels;
  for (Measured& each : best_levels(alternation, candidates, times, options.max_levels)) {
    const Positions at = candidates[each.marker].at;
    levels.push_back(std::move(each.level));
    levels.back().positions.assign(at.begin(), at.end());
  }
  nest(levels);
  return levels;
}

std::vector<Level> find_levels(std::span<const uint32_t> ids, std::span<const int64_t> times,
                               const LevelOptions& options) {
  const size_t events = std::min(ids.size(), most_events), first = (ids.size() - events) / 2;
  const Occurrences items(ids.subspan(first, events), std::max(options.min_count, 2u));
  std::vector<Level> levels = find_levels(items, times.subspan(first, events), options);
  for (Level& level : levels)
    for (uint32_t& position : level.positions) position += uint32_t(first);
  return levels;
}

}  // namespace strobe::structure
