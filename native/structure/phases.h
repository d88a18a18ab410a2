// phases.h - what an iteration is made of: waiting for data, forward, backward, optimizer, and the rest. Decided by the
// order of what its thread did, never by where a helper call stands. The one place of these rules; Python asks here.
#pragma once
#include <stdint.h>
#include <vector>

#include "structure/cells.h"
#include "structure/iterations.h"

namespace strobe::structure {

// An outermost span of the main thread that is a part of a step; they do not overlap.
struct Activity {
  int64_t start_ns, end_ns;
  uint64_t position;  // of its enter in the ring, or its row in a stream; kNoPosition: another thread ran it
  uint32_t path, region;
  Part part;
  Change change = Change::none;
  bool in_model = false;  // in the call of a module that is no loss
};

constexpr uint64_t kNoPosition = UINT64_MAX;

struct Interval {
  int64_t start_ns, end_ns;
};

constexpr int64_t kMaxPauseNs = 1000000;  // between two operators of a part the interpreter works for that part
// Shorter calls of functions without any activity are taken for a part of what is around them.
constexpr int64_t kLeastCallNs = 250000;

// Adds an interval in the place of those inside of it; intervals come in order of end.
void enclose(std::vector<Interval>& intervals, Interval outer);

// What the thread of a loop did, in order of start.
struct Work {
  bool trains = false;  // there are backward passes
  std::vector<Activity> activities;
  std::vector<Interval> modules;   // calls of modules: what is done in them is forward, also between operators
  std::vector<Interval> others;    // calls of functions without any activity: what is done in them is no part of it
  std::vector<Interval> rare;      // calls of functions that only some iterations call
  std::vector<Interval> closures;  // updates that run backward passes themselves
  std::vector<Interval> unfed_validations;  // forward passes without a backward pass, between iterations

  size_t first_since(int64_t ns) const;  // the first activity that starts then or later

  // Splits the iteration [start_ns, end_ns), whose data had come at `fed_ns`; in order, what no part holds is rest.
  // `before`: what came before its first activity. `follows`: kBackward where it may end between the operators that
  // lead up to a pass and the pass, else kRest.
  std::vector<PartInterval> split(int64_t start_ns, int64_t fed_ns, int64_t end_ns, Part before, Part follows) const;
  // What came last before activity `at`; gradients that are zeroed do not count.
  Part last_before(size_t at, Part otherwise) const;

 private:
  struct Operators {
    Part part;
    size_t updates_end;  // those before this one update parameters instead
  };
  std::vector<Interval> validations(int64_t from_ns, int64_t until_ns) const;
  // When the batch of an iteration is at hand, which begins with the activity `low`: until its model is called for the
  // first time it is made. `fed_ns` where no model is called before anything is learned from the batch.
  int64_t in_hand(size_t low, size_t high, int64_t fed_ns, const std::vector<Interval>& validating) const;
  Operators operators(size_t from, size_t until, size_t high, Part before, Part follows) const;
  size_t end_of_run(size_t from, size_t high) const;
  size_t updates_end(size_t from, size_t until, size_t apart) const;
};

}  // namespace strobe::structure
