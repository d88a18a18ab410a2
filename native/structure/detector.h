// detector.h - finds the main loop of a process while it runs: two windows of the latest events of its main thread (the
// operators of PyTorch, and all other calls) are analysed now and then; two analyses that agree are believed.
//
// A framework's own ranges (anchors) decide where there are any, otherwise step_choice.h, as after the run
// (strobe.steps.loop_choice.main_loop).
#pragma once
#include <stdint.h>
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "structure/iterations.h"
#include "structure/levels.h"
#include "structure/step_choice.h"

namespace strobe::structure {

// A loop, and by what its iterations are marked.
struct Choice {
  static constexpr uint32_t no_anchor = 0xFFFFFFFF;
  LoopKind kind = LoopKind::structure;
  uint32_t anchor = no_anchor;     // number of the anchor's name
  double per_iteration = 1;        // anchors in one iteration
  uint32_t group = 1;              // every so many anchors, counted from the first one, end an iteration
  bool by_level = false;           // the level's item marks an iteration, not the anchor: there are several of it
  bool among_operators = false;    // the window that the item belongs to
  Item marker;                     // node or edge between nodes, where by_level
  StepMarks marks;                 // of those occurrences, where no anchor is: which begin an iteration
  std::vector<uint32_t> in_front;  // nodes of calls that begin one in front of it
  uint64_t iterations = 0;         // seen until now
  std::vector<int64_t> times_ns;   // when the latest of them were marked
  int64_t longest_ns = 0;          // longest of the intervals between these
  bool enclosing = false;          // see StepChoice
  bool in_source = false;          // the program's source tells that it is a loop, and no other one lies around it
  double score = 0;
  std::string reason, confidence;
};

class Detector {
 public:
  // What the node of a call runs; nullptr: unknown.
  using CodeOf = std::function<const SourceCode*(uint32_t node)>;
  void ask_for_code(CodeOf code_of) { code_of_ = std::move(code_of); }

  // A new anchor name; anchors of `node` are its occurrences. Returns its number.
  uint32_t add_anchor(LoopKind kind, std::string_view name);
  void set_anchor(uint32_t node, uint32_t anchor);
  // The node of iterations that were recorded themselves.
  void set_iteration(uint32_t node) {
    if (iterations_.size() <= node) iterations_.resize(node + 1, false);
    iterations_[node] = true;
  }
  std::string_view anchor_name(uint32_t anchor) const { return anchors_[anchor].name; }

  // `depth`: how many spans were open.
  void operator_began(uint32_t node, int64_t ns, size_t depth) { add(operators_, node, ns, depth); }
  void call_began(uint32_t node, int64_t ns, size_t depth, bool mpi) {
    const uint32_t at = add(calls_, node, ns, depth);
    if (functions_seen_) return;
    if (at == calls_.waited.size()) calls_.waited.push_back(0);
    calls_.waited[at] = waited_ns_;
    if (!mpi) functions_seen_ = true, calls_.waited = {};
  }
  void mpi_ended(int64_t duration_ns) { waited_ns_ += duration_ns; }
  void anchor_ended(uint32_t anchor, int64_t ns);
  uint64_t anchors_ended(uint32_t anchor) const { return anchors_[anchor].count; }
  // A training is under way: the loader alone is not believed before it has been asked often without an update.
  void training_seen() { training_ = true; }

  bool due() const { return due_; }
  // One analysis. Returns the loop to be believed from now on, if this analysis and the one before agree on one that is
  // not the current one.
  std::optional<Choice> analyse(int64_t now_ns);
  // What has been believed; analyses go on at growing distances. nullptr: nothing is any more, the search is on again.
  void believe(const Choice* choice);

  // In how many of the intervals between the times a node began, by node.
  std::vector<uint32_t> usage(std::span<const int64_t> times_ns);

 private:
  static constexpr uint32_t kWindow = 1u << 17;
  struct Window {
    std::vector<uint32_t> ids;
    std::vector<int64_t> times;
    std::vector<uint16_t> depths;  // they tell what was open, and take less memory; the deepest recursions share one
    std::vector<int64_t> waited;   // in calls of MPI until then; empty once functions have been seen
    uint32_t oldest = 0;           // where the next event goes, once it is full
  };
  // The parents of all that the windows hold, in order of time, -1 where they began before, their nodes and times; and
  // which of these rows the events of each window are.
  struct Nest {
    std::vector<int64_t> parents, times, calls, operators;
    std::vector<uint32_t> nodes;
  };
  struct Anchor {
    LoopKind kind;
    std::string name;
    uint64_t count = 0;
    int64_t first_ns = 0, last_ns = 0;
  };
  // Returns where the event is now.
  uint32_t add(Window& window, uint32_t node, int64_t ns, size_t depth) {
    if (++events_ >= next_events_) due_ = true;
    const auto capped = uint16_t(std::min<size_t>(depth, UINT16_MAX));
    const uint32_t at = window.ids.size() < kWindow ? uint32_t(window.ids.size()) : window.oldest;
    if (at == window.ids.size()) {
      window.ids.push_back(node), window.times.push_back(ns), window.depths.push_back(capped);
    } else {
      window.ids[at] = node, window.times[at] = ns, window.depths[at] = capped;
      window.oldest = (at + 1) & (kWindow - 1);
    }
    return at;
  }
  static const Window& in_order(Window& window);
  uint32_t authority() const;
  std::optional<Choice> choose(int64_t now_ns);
  std::optional<Choice> choose_anchored(const Anchor& anchor, uint32_t number);
  Nest nest() const;
  std::optional<Choice> choose_by_structure();
  // Some of the events of a window; their rows are those of the nest.
  struct Events {
    SequenceKind kind;
    bool begins_before;
    std::span<const uint32_t> ids;
    std::span<const int64_t> times, waited, rows;
    std::vector<uint32_t> some_ids;  // where they are not all of them
    std::vector<int64_t> some_times, some_rows;
  };
  Events some_of(const Window& window, SequenceKind kind, const std::vector<int64_t>& rows) const;
  std::optional<Choice> choose_by_structure(const Events& events, const Nest& nest) const;
  std::vector<uint32_t> occurrences(const Choice& choice) const;  // both windows are in order
  bool agree(const Choice& a, const Choice& b);
  bool decided_earlier(const Choice& believed, const Choice& now);

  Window operators_, calls_;
  std::vector<Anchor> anchors_;
  std::vector<uint32_t> anchor_of_node_;  // anchor + 1
  std::vector<bool> iterations_;          // by node
  uint32_t authority_ = 0;                // anchor that the schedule goes by, + 1
  bool training_ = false, due_ = false;
  bool functions_seen_ = false;  // calls of other things than MPI
  int64_t waited_ns_ = 0;        // in calls of MPI
  uint64_t events_ = 0, next_events_ = 512, next_anchors_ = 5;
  CodeOf code_of_;
  std::optional<Choice> last_, believed_;
};

}  // namespace strobe::structure
