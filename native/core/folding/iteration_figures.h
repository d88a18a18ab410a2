// iteration_figures.h - what the main thread does in one iteration, row by row: events, transitions, and the functions
// that it calls, compared with what is usual in the iterations before.
#pragma once
#include <stdint.h>
#include <span>
#include <vector>

#include "core/folding/path_facts.h"
#include "structure/cutter.h"
#include "structure/step_classes.h"

namespace strobe {

class IterationFigures {
 public:
  explicit IterationFigures(PathFactsTable& facts) : facts_(facts) {}

  // A loop was accepted: in so many of `iterations` each node was seen.
  void begin_loop(uint64_t iterations, std::span<const uint32_t> usage);
  void begin(const structure::Cut& begun, size_t first_row);
  // Adds the rows of the main thread before row `until`.
  void scan(const LocationBuilder& main, size_t until, int64_t end_ns);
  void continue_at(size_t row) { next_row_ = row; }
  // A span of the main thread has ended: a function that was open when its row was scanned counts now.
  void closed(uint32_t path, int64_t start_ns, uint64_t start_position, int64_t end_ns) {
    if (open_functions_.empty() || open_functions_.back() != start_position) return;
    open_functions_.pop_back();
    touch(path, start_ns, end_ns);
  }
  void end() { iterations_++; }

  uint32_t events() const { return events_; }
  uint64_t path_hash() const { return path_hash_; }
  const std::vector<structure::FunctionCalls>& touched() const { return touched_; }
  bool touches(uint32_t path) const { return path < touch_of_path_.size() && touch_of_path_[path]; }
  uint64_t iterations() const { return iterations_; }  // with those before the loop was accepted
  // In how many of these a path was seen; 0: never, or its node is not known.
  uint64_t usage(uint32_t path) const {
    const uint32_t node = facts_.of(path).node;
    return node && node - 1 < node_usage_.size() ? node_usage_[node - 1] : 0;
  }
  // In how many since the loop was accepted.
  uint64_t recorded_usage(uint32_t path) const {
    const uint32_t node = facts_.of(path).node;
    return usage(path) - (node && node - 1 < node_usage_before_.size() ? node_usage_before_[node - 1] : 0);
  }
  // Whether one of the iterations before this one has seen it.
  bool is_known(uint32_t path) const {
    const uint32_t node = facts_.of(path).node;
    const bool now = node && node - 1 < node_seen_.size() && node_seen_[node - 1] == number_;
    return usage(path) > uint64_t{now};
  }

 private:
  void add_transition(uint32_t node);
  void touch(uint32_t path, int64_t start_ns, int64_t end_ns);

  PathFactsTable& facts_;
  structure::Cut begun_{};
  size_t next_row_ = 0;  // rows of the main thread before this one are in the figures
  uint32_t events_ = 0;
  uint64_t path_hash_ = 0;
  uint32_t previous_node_ = 0;
  std::vector<structure::FunctionCalls> touched_;
  std::vector<uint32_t> touch_of_path_;   // index in touched_ + 1
  std::vector<uint64_t> open_functions_;  // positions of those that had not ended when they were scanned
  struct Edge {
    uint64_t key = 0;
    uint64_t iteration = 0;
  };
  std::vector<Edge> edges_;  // transitions taken, open addressing; those of earlier iterations count as empty
  size_t edges_used_ = 0;
  std::vector<uint64_t> node_seen_;          // iteration in which a node was seen last, + 1
  std::vector<uint64_t> node_usage_;         // iterations in which it was
  std::vector<uint32_t> node_usage_before_;  // the loop was accepted
  uint64_t iterations_ = 0;
  uint64_t number_ = 0;  // of the iteration, from 1 on
};

}  // namespace strobe
