// detector.h - finds the main loop of a process while it runs: two windows of the latest events of its main thread (the
// operators of PyTorch, and all other calls) are analysed now and then; two analyses that agree are believed.
//
// Which loop that is, decision.h decides, as after the run (strobe.steps.loop_choice.main_loop); here is when its
// answer counts.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "structure/decision.h"

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
  bool without_peer = false;       // nodes of MPI calls are those that they have whoever the peer is
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
  // Whether the calls of a node are no longer recorded.
  using IsThrottled = std::function<bool(uint32_t node)>;
  void ask_for_throttled(IsThrottled is_throttled) { is_throttled_ = std::move(is_throttled); }
  using NameOf = std::function<std::string(uint32_t node)>;
  void ask_for_names(NameOf name_of) { name_of_ = std::move(name_of); }

  // A new anchor name; anchors of `node` are its occurrences. Returns its number.
  uint32_t add_anchor(LoopKind kind, std::string_view name);
  void set_anchor(uint32_t node, uint32_t anchor);
  // The node of iterations that were recorded themselves.
  void set_iteration(uint32_t node) { known_of(node).iteration = true; }
  // The node of a call of MPI; `any_peer`: the first node of this call, whoever the peer is.
  void set_mpi(uint32_t node, uint32_t any_peer) { known_of(node).mpi = true, known_of(node).any_peer = any_peer; }
  uint32_t any_peer(uint32_t node) const {
    return node < nodes_.size() && nodes_[node].mpi ? nodes_[node].any_peer : node;
  }
  std::string_view anchor_name(uint32_t anchor) const { return anchors_[anchor].name; }

  // `depth`: how many spans were open.
  void operator_began(uint32_t node, int64_t ns, size_t depth) { add(operators_, node, ns, depth); }
  void call_began(uint32_t node, int64_t ns, size_t depth) {
    const uint32_t at = add(calls_, node, ns, depth);
    if (!waited_ns_ && calls_.waited.empty()) return;
    calls_.waited.resize(calls_.ids.size());
    calls_.waited[at] = waited_ns_;
  }
  void mpi_ended(int64_t duration_ns) { waited_ns_ += duration_ns; }
  void anchor_ended(uint32_t anchor, int64_t ns);
  uint64_t anchors_ended(uint32_t anchor) const { return anchors_[anchor].times.count; }
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
  static constexpr int64_t kLeastNs = 5000000000;  // that a loop without anchors lasts before it is believed
  struct Window {
    std::vector<uint32_t> ids;
    std::vector<int64_t> times;
    std::vector<uint16_t> depths;  // they tell what was open, and take less memory; the deepest recursions share one
    std::vector<int64_t> waited;   // in calls of MPI until then; empty: in none
    uint32_t oldest = 0;           // where the next event goes, once it is full
  };
  // The parents of all that the windows hold, in order of time, -1 where they began before, their nodes and times; and
  // which of these rows the events of each window are.
  struct Nest {
    std::vector<int64_t> parents, times, calls, operators;
    std::vector<uint32_t> nodes;
  };
  // What is known of a node.
  struct Node {
    uint32_t anchor = 0;  // its number + 1
    bool iteration = false, mpi = false;
    uint32_t any_peer = 0;
  };
  struct NamedAnchor {
    LoopKind kind;
    std::string name;
    AnchorTimes times;
  };
  Node& known_of(uint32_t node) {
    if (nodes_.size() <= node) nodes_.resize(node + 1);
    return nodes_[node];
  }
  Node node(uint32_t number) const { return number < nodes_.size() ? nodes_[number] : Node{}; }
  // Returns where the event is now.
  uint32_t add(Window& window, uint32_t node, int64_t ns, size_t depth) {
    if (!began_ns_) began_ns_ = ns, next_ns_ = ns + kLeastNs;
    if (++events_ >= next_events_ || ns >= next_ns_) due_ = true;
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
  Nest nest() const;
  Spans spans(const Nest& nest) const;
  // A sequence of events, as one of a trace (strobe.steps.loop_choice.events), and what it does not share with a
  // window.
  struct OwnEvents {
    Events events;
    std::vector<uint32_t> ids, without_peer;
    std::vector<int64_t> rows, starts, waited;
  };
  std::deque<OwnEvents> sequences(const Nest& nest) const;
  Choice choose_anchored(uint32_t anchor, const Nest& nest, std::span<const Events> sequences) const;
  std::optional<Choice> choose_by_structure(const Nest& nest, std::span<const Events> sequences) const;
  std::vector<uint32_t> occurrences(const Choice& choice) const;  // both windows are in order
  bool agree(const Choice& a, const Choice& b);
  bool decided_earlier(const Choice& believed, const Choice& now);

  Window operators_, calls_;
  std::vector<NamedAnchor> anchors_;
  std::vector<Node> nodes_;
  uint32_t authority_ = 0;  // anchor that the schedule goes by, + 1
  bool training_ = false, due_ = false;
  int64_t waited_ns_ = 0;  // in calls of MPI
  uint64_t events_ = 0, next_events_ = 512, next_anchors_ = 5;
  int64_t began_ns_ = 0, next_ns_ = 0;  // of the search; a slow loop has few events
  CodeOf code_of_;
  NameOf name_of_;
  IsThrottled is_throttled_;
  std::optional<Choice> last_, believed_;
  int64_t lasted_ns_ = 0;  // how long what last_ chose has been running, as far as it was seen
};

}  // namespace strobe::structure
