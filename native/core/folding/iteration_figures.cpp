#include "core/folding/iteration_figures.h"

#include <algorithm>

namespace strobe {

namespace {

constexpr size_t kMostTransitions = 1u << 14;  // of one iteration that its hash is of
constexpr size_t kMostTouched = 1u << 14;      // functions of one iteration that may decide its class

uint64_t mix(uint64_t v) {
  v = (v ^ v >> 31) * 0x9E3779B97F4A7C15ull;
  return v ^ v >> 29;
}

}  // namespace

void IterationFigures::begin_loop(uint64_t iterations, std::span<const uint32_t> usage) {
  iterations_ = iterations;
  node_usage_.assign(usage.begin(), usage.end());
  node_usage_before_.assign(usage.begin(), usage.end());
}

void IterationFigures::begin(const structure::Cut& begun, size_t first_row) {
  begun_ = begun;
  events_ = 0;
  path_hash_ = 0;
  next_row_ = first_row;
  number_++;
  for (const structure::FunctionCalls& touch : touched_) touch_of_path_[touch.path] = 0;
  touched_.clear();
  open_functions_.clear();
  edges_used_ = 0;
}

void IterationFigures::scan(const LocationBuilder& main, size_t until, int64_t end_ns) {
  const RowColumns& columns = main.columns();
  for (size_t row = std::max(next_row_, main.settled()); row < until; row++) {
    const uint32_t path = columns.path[row];
    const PathFacts& f = facts_.of(path);
    const uint32_t node = f.node ? f.node - 1 : 0;
    events_++;
    if (node >= node_seen_.size()) node_seen_.resize(node + 1, 0);
    if (node >= node_usage_.size()) node_usage_.resize(node + 1, 0);
    if (node_seen_[node] != number_) node_seen_[node] = number_, node_usage_[node]++;
    add_transition(node);

    const int64_t start = columns.start_ns[row], duration = columns.duration_ns[row];
    if (!f.function || start < begun_.fed_ns) continue;
    if (duration == kOpen)
      open_functions_.push_back(main.position_of(row));
    else if (start + duration <= end_ns)
      touch(path, start, start + duration);
  }
  next_row_ = std::max(next_row_, until);
}

void IterationFigures::add_transition(uint32_t node) {
  const uint64_t key = uint64_t(previous_node_) << 32 | node;
  previous_node_ = node;
  if (edges_used_ < kMostTransitions && (edges_used_ + 1) * 2 > edges_.size()) {
    std::vector<Edge> old(std::max<size_t>(256, edges_.size() * 2));
    old.swap(edges_);
    for (const Edge& e : old) {
      if (e.iteration != number_) continue;
      size_t at = mix(e.key) & (edges_.size() - 1);
      while (edges_[at].iteration == number_) at = (at + 1) & (edges_.size() - 1);
      edges_[at] = e;
    }
  }
  const uint64_t hash = mix(key);
  size_t at = hash & (edges_.size() - 1);
  while (edges_[at].iteration == number_ && edges_[at].key != key) at = (at + 1) & (edges_.size() - 1);
  if (edges_[at].iteration == number_ || edges_used_ >= kMostTransitions) return;
  edges_[at] = {key, number_};
  edges_used_++;
  path_hash_ += mix(hash + 1);
}

void IterationFigures::touch(uint32_t path, int64_t start_ns, int64_t end_ns) {
  if (path >= touch_of_path_.size()) touch_of_path_.resize(path + 1, 0);
  if (!touch_of_path_[path]) {
    if (touched_.size() >= kMostTouched) return;
    touched_.push_back({path, 0, start_ns, 0});
    touch_of_path_[path] = uint32_t(touched_.size());
  }
  structure::FunctionCalls& touch = touched_[touch_of_path_[path] - 1];
  touch.total_ns += end_ns - start_ns;
  touch.last_ns = end_ns;
}

}  // namespace strobe
