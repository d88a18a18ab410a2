// cutter.h - where one iteration ends and the next begins, and what each is made of, decided mark by mark. The rules
// are those of strobe.steps.finding.cuts: marks count the iterations, which are cut where the loop asks for data.
#pragma once
#include <stdint.h>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "structure/phases.h"

namespace strobe::structure {

struct Mark {
  int64_t start_ns, end_ns;
  uint64_t start_position, end_position;
};

struct Cut {
  int64_t ns;
  int64_t fed_ns;     // when the data had come: what lies before belongs to getting them
  uint64_t position;  // the first row that lies there or later begins the iteration
};

constexpr Cut kNowhere{INT64_MAX, 0, UINT64_MAX};

class Cutter {
 public:
  // When the program asked for the data that the wait at `position` brought: there, or where a function was called
  // after `since_ns` that does nothing else and ended until `latest_ns`.
  using Asking = std::function<Cut(const Activity& wait, int64_t since_ns, int64_t latest_ns)>;

  explicit Cutter(Asking asking) : asking_(std::move(asking)) {}
  void begin(LoopKind kind, const Mark& before);
  void add(const Activity& activity);
  // The backward pass of another thread: on a GPU it leaves no operators in the main thread.
  void add_elsewhere(int64_t start_ns, int64_t end_ns);
  // Calls of functions, and updates that ran backward passes, once they have ended.
  void add_call(Interval call, uint32_t path, bool of_module);
  void add_closure(Interval update);
  // Where the iteration of this mark has begun; nothing where the mark does not begin one.
  std::optional<Cut> cut(const Mark& mark);
  // The next cut before its mark has come, where what is known by now leaves no doubt, or little doubt if `hurry`; the
  // mark then makes no cut.
  std::optional<Cut> cut_early(bool hurry);
  // Whether an iteration was cut early that only a mark still to come can end.
  bool unmarked() const { return early_ && kind_ == LoopKind::optimizer; }
  // Where the next cut may lie, at the earliest, as far as is known by now. `open_wait`: the one that has not ended
  // yet.
  Cut earliest(const Cut& open_wait) const;

  // Whether the loop's own data are waited for at this call path.
  bool feeds(uint32_t path) const { return path == feeding_path_; }
  // `rare`: whether only some iterations call the function at a call path.
  void split(const Cut& from, int64_t end_ns, const std::function<bool(uint32_t path)>& rare,
             int64_t (&parts_ns)[kParts]);
  // The first wait of a validation: data are waited for and run forward after the last update.
  std::optional<Activity> validation(const Cut& from, int64_t end_ns) const;
  void forget(int64_t before_ns);

 private:
  static constexpr size_t kMost = 1u << 15;
  void merge_elsewhere();
  void drop(size_t count);
  size_t first_since(int64_t ns) const { return work_.first_since(ns); }
  size_t forward_between(size_t low, size_t high) const;
  bool like_a_forward(size_t operators) const;
  size_t run_of_waits(size_t feeding, size_t lowest, bool anything) const;
  Cut asked(size_t first, size_t feeding, int64_t since_ns);
  Cut cut_at_waits(int64_t until_ns);
  std::optional<Cut> cut_at_feeds(size_t now);
  std::optional<Cut> cut_at_ask(const Mark& mark);
  Cut cut_before(const Mark& mark);

  const Asking asking_;
  LoopKind kind_ = LoopKind::structure;
  Mark before_{};       // the last mark
  bool early_ = false;  // the iteration of the next mark has begun already
  bool unfed_ = false;  // the last one began at its mark: no data were waited for
  Work work_;
  std::vector<std::pair<Interval, uint32_t>> calls_;  // of functions, with their call paths, in order of end
  std::vector<Activity>& activities_ = work_.activities;
  Part dropped_ = kRest;  // what came last before the activities
  std::vector<Interval> elsewhere_;
  double usual_forward_ = 0;  // operators of a usual forward pass
  bool backward_here_ = false;
  uint32_t feeding_path_ = 0xFFFFFFFF;
  // Loaders as marks: the first and the last wait of the run that feeds the next iteration, and the one before.
  std::optional<Activity> asked_, fed_;
  int64_t fed_before_ns_ = 0;
};

}  // namespace strobe::structure
