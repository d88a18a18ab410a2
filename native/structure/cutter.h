// cutter.h - where one iteration ends and the next begins, and what each is made of, decided mark by mark: marks count
// the iterations, which are cut where the loop asks for data. The one place of these rules: the recorder adds
// activities while the program runs, strobe.steps.finding.cuts all of them after the run.
#pragma once
#include <stdint.h>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "structure/phases.h"

namespace strobe::structure {

struct Mark {
  int64_t start_ns, end_ns;
  uint64_t start_position, end_position;
};

constexpr Mark kNoMark{INT64_MIN, INT64_MIN, 0, 0};  // before the first one

// A span around another.
struct Around {
  int64_t start_ns, end_ns;  // INT64_MAX: it has not ended yet
  uint64_t position;
};

struct Cut {
  int64_t ns;
  int64_t fed_ns;     // when the data had come: what lies before belongs to getting them
  uint64_t position;  // the first row that lies there or later begins the iteration
};

constexpr Cut kNowhere{INT64_MAX, 0, UINT64_MAX};

class Cutter {
 public:
  // What lies around the span at a position.
  using Surroundings = std::function<std::optional<Around>(uint64_t position)>;

  // `bounded`: of a very long iteration, and of what was usual long ago, something is forgotten.
  Cutter(Surroundings around, bool bounded) : around_(std::move(around)), bounded_(bounded) {}
  void begin(LoopKind kind, const Mark& before);
  // What iterations usually do, from those that are known already: where their marks began, at `marks_ns`.
  void learn(std::span<const int64_t> marks_ns);
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
  std::vector<PartInterval> split(const Cut& from, int64_t end_ns, const std::function<bool(uint32_t path)>& rare);
  // When forward passes were run without a backward pass between two iterations that wait for no data.
  const std::vector<Interval>& unfed_validations() const { return work_.unfed_validations; }
  // The first wait of a validation.
  std::optional<Activity> validation(const Cut& from, int64_t end_ns) const;
  void forget(int64_t before_ns);

 private:
  static constexpr size_t kMost = 1u << 15, kFirstMarks = 5;
  struct Use {
    uint32_t iterations = 0;
    uint64_t lesson = 0;  // the last one in which it ran
  };
  void merge_elsewhere();
  void drop(size_t count);
  void note_first(size_t end);
  bool is_first(uint32_t path) const { return path < first_paths_.size() && first_paths_[path]; }
  size_t first_since(int64_t ns) const { return work_.first_since(ns); }
  void learn_from(size_t low, size_t high);
  bool like_a_forward(size_t low, size_t high) const;
  size_t run_of_waits(size_t feeding, size_t lowest) const;
  Cut called(size_t at, int64_t since_ns, int64_t latest_ns) const;
  Cut asked(size_t first, size_t feeding, int64_t since_ns);
  std::pair<size_t, size_t> lead(size_t low, size_t high) const;
  Cut unfed(size_t low, size_t backward, const Mark& mark);
  std::vector<size_t> openings(size_t low, size_t high) const;
  void learn_openings(std::span<const int64_t> marks_ns);
  Cut cut_at_waits(const Mark& mark);
  std::optional<Cut> cut_at_feeds(size_t now);
  std::optional<Cut> cut_at_ask(const Mark& mark);
  Cut cut_before(const Mark& mark);

  const Surroundings around_;
  const bool bounded_;
  LoopKind kind_ = LoopKind::structure;
  Mark before_{};       // the last mark
  bool early_ = false;  // the iteration of the next mark has begun already
  bool unfed_ = false;  // the last one began at its mark: no data were waited for
  Work work_;
  std::vector<std::pair<Interval, uint32_t>> calls_;  // of functions, with their call paths, in order of end
  std::vector<Activity>& activities_ = work_.activities;
  Part dropped_ = kRest;  // what came last before the activities
  std::vector<Interval> elsewhere_;
  // What leads up to a backward pass, or follows a loader as a mark: in how many of `iterations_` each region ran, and
  // the regions that ran in nearly all, in order.
  std::unordered_map<uint32_t, Use> uses_;
  uint32_t iterations_ = 0;
  uint64_t lesson_ = 0;
  std::vector<uint32_t> usual_;
  // By call path, whether it was done before the first backward pass of all; what opens an iteration, and how often it
  // is done until the backward pass, 0 where that varies.
  std::vector<bool> first_paths_;
  int64_t first_backward_ns_ = INT64_MAX;
  std::vector<uint32_t> lead_paths_;  // of what leads up to the backward pass of others
  uint32_t opening_path_ = 0xFFFFFFFF;
  size_t openings_ = 0;
  bool backward_here_ = false;
  uint32_t feeding_path_ = 0xFFFFFFFF;
  // Loaders as marks: the first and the last wait of the run that feeds the next iteration, and the one before.
  std::optional<Activity> asked_, fed_;
  int64_t fed_before_ns_ = 0;
};

}  // namespace strobe::structure
