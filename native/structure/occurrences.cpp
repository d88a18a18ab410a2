#include "structure/occurrences.h"

#include <algorithm>
#include <numeric>

#include "core/spans/growing_tables.h"

namespace strobe::structure {
namespace {

constexpr uint32_t none = 0xFFFFFFFFu;

std::unique_ptr<uint32_t[]> uninitialized(size_t size) { return std::make_unique_for_overwrite<uint32_t[]>(size); }

}  // namespace

Occurrences::Occurrences(std::span<const uint32_t> ids, uint32_t min_count) {
  if (ids.empty()) return;
  std::span<const uint32_t> nodes = ids;
  uint32_t largest = std::ranges::max(ids);
  std::vector<uint32_t> numbers;
  if (largest > 2 * ids.size() + 1024) {  // tables by id would be larger than the sequence
    Slots known;
    const auto id_of = [this](uint32_t number) { return id_of_node_[number]; };
    numbers.reserve(ids.size());
    for (const uint32_t id : ids) {  // numbered in order of first occurrence
      uint32_t number = known.find(id, [&](uint32_t n) { return id_of(n) == id; });
      if (number == Slots::empty) {
        number = uint32_t(id_of_node_.size());
        known.add(id, number, id_of);
        id_of_node_.push_back(id);
      }
      numbers.push_back(number);
    }
    nodes = numbers;
    largest = uint32_t(id_of_node_.size()) - 1;
  }
  std::vector<uint32_t> first_of_node(size_t{largest} + 2, 0);
  for (const uint32_t node : nodes) ++first_of_node[node + 1];
  std::partial_sum(first_of_node.begin(), first_of_node.end(), first_of_node.begin());
  by_node_ = uninitialized(nodes.size());
  auto next = uninitialized(nodes.size());  // the node after each of them, none after the last event
  {
    std::vector<uint32_t> fill(first_of_node.begin(), first_of_node.end() - 1);
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      const uint32_t at = fill[nodes[i]]++;
      by_node_[at] = i;
      next[at] = i + 1 < nodes.size() ? nodes[i + 1] : none;
    }
  }
  for (uint32_t node = 0; node <= largest; ++node) {
    const uint32_t count = first_of_node[node + 1] - first_of_node[node];
    if (count >= min_count)
      candidates_.push_back({{Item::no_source, id_of(node)}, {&by_node_[first_of_node[node]], count}});
  }
  of_edges_ = uninitialized(nodes.size());
  add_edges(first_of_node, next.get(), min_count);
  next.reset();
  sort(nodes.size());
}

void Occurrences::add_edges(std::span<const uint32_t> first_of_node, const uint32_t* next, uint32_t min_count) {
  struct Target {
    uint32_t count = 0;
    uint32_t fill = none;  // where its next position goes; none: it is too rare
  };
  const auto nodes = uint32_t(first_of_node.size() - 1);
  std::vector<Target> targets(nodes);
  std::vector<uint32_t> seen;
  uint32_t end = 0;
  for (uint32_t source = 0; source < nodes; ++source) {
    const uint32_t first = first_of_node[source], last = first_of_node[source + 1];
    if (last - first < min_count) continue;
    seen.clear();
    for (uint32_t i = first; i < last; ++i)
      if (next[i] != none && targets[next[i]].count++ == 0) seen.push_back(next[i]);
    const uint32_t begin = end;
    for (const uint32_t node : seen) {
      Target& target = targets[node];
      target.fill = target.count < min_count ? none : end;
      if (target.fill == none) continue;
      candidates_.push_back({{id_of(source), id_of(node)}, {&of_edges_[end], target.count}});
      end += target.count;
    }
    if (end > begin)
      for (uint32_t i = first; i < last; ++i)
        if (next[i] != none && targets[next[i]].fill != none) of_edges_[targets[next[i]].fill++] = by_node_[i] + 1;
    for (const uint32_t node : seen) targets[node].count = 0;
  }
}

// No two nodes and no two edges begin at the same position: two counting sorts, by position and by count.
void Occurrences::sort(size_t events) {
  std::vector<uint32_t> beginning(2 * events, none);
  size_t most = 0;
  for (uint32_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    beginning[2 * candidate.at[0] + !candidate.item.is_node()] = i;
    most = std::max(most, candidate.at.size());
  }
  std::vector<uint32_t> fill(most + 2, 0);
  for (const Candidate& candidate : candidates_) ++fill[candidate.at.size() + 1];
  std::partial_sum(fill.begin(), fill.end(), fill.begin());
  std::vector<Candidate> sorted(candidates_.size());
  for (const uint32_t i : beginning)
    if (i != none) sorted[fill[candidates_[i].at.size()]++] = candidates_[i];
  candidates_ = std::move(sorted);
}

}  // namespace strobe::structure
