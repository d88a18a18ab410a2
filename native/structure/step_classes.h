// step_classes.h - classes of steps: by what a step does beyond the usual. The one place of these rules.
//
// What a step does beyond the usual are its extras: outermost functions that few of the steps until then call and that
// cost something, and a validation. `ExtraSets` takes them when a step has ended: the recorder folds by their sets, and
// the reader adds the steps of a trace in the same way. Which extras make a class is decided over the whole run, of
// recorded steps and others alike: `decide_classes`.
#pragma once
#include <stdint.h>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "structure/iterations.h"
#include "structure/phases.h"

namespace strobe::structure {

// Something that a step does beyond the usual. The number is the call path of the function; of a validation, that of an
// extra around it, or kNoFunction; of what an older recorder has written, the region.
struct Extra {
  enum Kind : uint8_t { function, validation, other, of_region };
  Kind kind;
  uint32_t number;
  auto operator<=>(const Extra&) const = default;
};
using ExtraSet = std::vector<Extra>;  // in the order in which they begin

// Whether so few of some steps call a function that it is not usual: half of them at most.
inline bool is_rare(uint64_t calling, uint64_t steps) { return calling > 0 && 2 * calling <= steps + 1; }

// Of the latest durations that were added.
class RunningMedian {
 public:
  static constexpr size_t kLatest = 101;
  void add(int64_t duration_ns);
  uint64_t count() const { return count_; }
  int64_t median() const { return sorted_ns_.empty() ? 0 : sorted_ns_[sorted_ns_.size() / 2]; }

 private:
  uint64_t count_ = 0;
  std::vector<int64_t> latest_ns_, sorted_ns_;  // a ring, and the same by size
  size_t oldest_ = 0;                           // in the ring
};

// All calls of a function at one call path in a step.
struct FunctionCalls {
  uint32_t path = 0;
  int64_t total_ns = 0, first_ns = 0, last_ns = 0;  // first_ns: when the first one began; last_ns: the last one ended
};

constexpr uint32_t kNoFunction = 0xFFFFFFFF;
struct EndedStep {
  int64_t duration_ns = 0;
  std::span<const FunctionCalls> calls;
  std::optional<Activity> validation;                     // its first wait
  uint64_t steps = 0;                                     // that are known by now
  std::function<uint64_t(uint32_t path)> calling;         // how many of these call the function at a call path
  std::function<bool(uint32_t path)> called;              // whether this one has called it
  std::function<uint32_t(uint32_t path)> function_above;  // the nearest one, kNoFunction where none is
};

class ExtraSets {
 public:
  // Another loop begins whose latest steps took so long.
  void begin_loop(std::span<const int64_t> durations_ns);
  // The number of the set of what a step did beyond the usual; kMostClasses for all sets after so many.
  uint32_t add(const EndedStep& step);
  const std::vector<ExtraSet>& all() const { return sets_; }
  // The functions of this loop that are in its sets, and those that are usual when it begins.
  const std::set<uint32_t>& functions() const { return functions_; }
  // In how many of its steps one of them costs enough for a class, and in how many there is a validation.
  uint64_t worth(uint32_t path) const { return path < worth_.size() ? worth_[path] : 0; }
  uint64_t validations() const { return validations_; }

 private:
  std::vector<ExtraSet> sets_;
  std::map<ExtraSet, uint32_t> number_of_;  // in ascending order
  std::set<uint32_t> functions_;
  std::vector<uint64_t> worth_;  // by call path
  RunningMedian durations_;
  uint64_t steps_ = 0, validations_ = 0;  // of this loop
};

// The first wait of a validation in a step: data are waited for and run forward after the last update; or of one
// without data.
std::optional<Activity> validation_of(const Work& work, int64_t from_ns, int64_t end_ns);

// The spans of a thread, in order of start.
struct CallSpans {
  std::span<const int64_t> starts_ns, durations_ns, paths;
  std::span<const int64_t> path_parents, path_regions;  // by call path; a parent of -1: none
  std::span<const uint8_t> is_function;                 // by region
};
struct StepTimes {
  int64_t start_ns, fed_ns, end_ns;
};
// How many steps do what is an extra in some of them at all, and how many at such a cost that it makes a class.
struct ExtraUse {
  uint64_t steps = 0, worth = 0;
};
struct StepExtras {
  std::vector<uint32_t> set_of_step;
  std::vector<ExtraSet> sets;
  std::map<Extra, ExtraUse> uses;
  std::vector<int64_t> rare;  // rows of the outermost calls of functions that few steps call
};
// The extras of steps that follow each other; validations are looked for in `work`.
StepExtras extras_of_steps(const CallSpans& spans, std::span<const StepTimes> steps, const Work& work);

// What is known of the steps of a loop.
struct LoopExtras {
  std::vector<ExtraSet> sets;
  std::vector<uint64_t> steps;     // how many have each set
  std::map<Extra, ExtraUse> uses;  // of what is not among them, nothing but the sets is known
};
struct ExtraNames {
  static constexpr int64_t left_out = -1;  // of what makes no class
  std::map<Extra, int64_t> of;
  int64_t known = 0;  // what is named by a smaller number need not recur
};
// Takes out of all sets what makes no class: what most steps of its loop do, what mostly costs nothing, what does not
// recur, and what lies in something that makes one. `first`: the set of the first step, in the first loop. It also
// starts things up: what it does has not recurred.
void decide_classes(std::span<LoopExtras> loops, size_t first, const ExtraNames& names,
                    std::span<const int64_t> path_parents);

}  // namespace strobe::structure
