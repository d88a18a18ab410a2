// A sequence of events as SEQ and LOOP: `A LOOP(100x) SEQ[ B LOOP(20x) SEQ[C B] D ]`. Repetitions that follow each
// other (tandem repeats) are folded while the sequence is read; two iterations are equal if they differ in nothing but
// the trip counts of the loops inside of them, so that loops over data of varying length fold, too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strobe::structure {

// `times` executions in a row of a loop with `trips` iterations each.
struct TripRun {
  uint32_t trips = 0;
  uint32_t times = 0;
  bool operator==(const TripRun&) const = default;
};

// An event, or a loop whose body are the `size` elements after it.
struct Element {
  uint32_t event = 0;
  uint32_t size = 0;        // 0: an event
  uint32_t runs_begin = 0;  // of a loop: its trip counts in order of execution, in Expression::runs
  uint32_t runs_end = 0;
  bool is_loop() const { return size != 0; }
  bool operator==(const Element&) const = default;
};

struct Expression {
  std::vector<Element> elements;  // in the order in which they are written
  std::vector<TripRun> runs;
  bool operator==(const Expression&) const = default;
};

// Bodies of up to 30,000 terms are found. O(n) expected. Written out, an expression is at most twice as long as the
// sequence.
Expression fold(std::span<const uint32_t> events);

// The sequence that was folded. Throws std::invalid_argument if the expression is not sound or is longer than `most`.
std::vector<uint32_t> expand(const Expression& expression, size_t most = SIZE_MAX);

}  // namespace strobe::structure
