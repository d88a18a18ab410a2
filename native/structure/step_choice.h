// step_choice.h - which loop level of a sequence of events is the step, by their structure alone.
//
// The recorder asks while the program runs, about its latest events; the reader asks about the spans of a trace. C++
// because the recorder asks. tests/unit/step_choice_twin.py is the executable description of this file.
#pragma once
#include <stdint.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "structure/levels.h"
#include "structure/source_loops.h"

namespace strobe::structure {

// In the order of strobe.steps.loop_choice.events.KINDS. calls: functions, and what they call but operators and
// kernels. loops: iterations that were recorded themselves, which the others leave out.
enum class SequenceKind : uint8_t { calls, operators, kernels, mpi, loops };
constexpr const char* sequence_kind_name(SequenceKind kind) {
  constexpr const char* names[] = {"calls", "operators", "kernels", "mpi", "loops"};
  return names[int(kind)];
}
// Such a loop is the main one if it lasts for this share of the time, and longer than what the calls have, this share
// of it at most.
constexpr double kLeastOfTime = 0.25, kMostOfIts = 0.8;

struct Sequence {
  SequenceKind kind = SequenceKind::calls;
  std::span<const uint32_t> ids;
  std::span<const int64_t> starts_ns;
  std::span<const int64_t> times_ns;            // starts without silence: what levels are measured in
  std::span<const int64_t> waited_ns;           // of calls of MPI: how long those before each took; of others: empty
  std::span<const int64_t> rows;                // of the events among all spans of the thread, ascending
  std::span<const int64_t> parents;             // of all spans of the thread, -1: none
  bool begins_before = false, goes_on = false;  // whether it was cut out of a longer sequence, at which end
  const Occurrences* items = nullptr;           // all that occurs twice or more often, where that is known already
  std::function<const SourceCode*(int64_t row)> code_of;  // what a span runs, nullptr: unknown
};

// Which calls begin a step: of those that each iteration makes first every so often, or what is called at times in
// front of one of them.
struct StepMarks {
  uint32_t every = 1;
  uint32_t since = 0;  // of the first kind, since a step began
  bool begun = false;  // by one of the second kind; none of the first has come
  bool always() {
    const bool begins = since == 0 && !begun;
    begun = false;
    since = (since + 1) % every;
    return begins;
  }
  bool at_times() {
    const bool begins = since == 0 && !begun;
    begun |= begins;
    return begins;
  }
};

// Where the source of the loop is known: a step is an iteration of it.
struct Beginning {
  int64_t with = 0;               // a span like those that each iteration calls first ...
  std::vector<int64_t> in_front;  // ... and some like those that come before them at times
  std::vector<int64_t> rows;      // the spans that begin a step
  StepMarks marks;                // behind the last of them
  std::string source;             // what of the source tells so
};

// The level that is the step, and why it and not the best-scored one.
struct StepChoice {
  static constexpr uint32_t no_event = 0xFFFFFFFF;
  std::optional<Level> pair;  // two iterations that are nearly all there is: they are the step, and no level is
  size_t level = 0;           // index of the level otherwise
  // Empty if the level with the best score was taken, and nothing is done every so often. Else why; where the step
  // could be something else as well, `other` is one of these events.
  std::string promotion;
  uint32_t other = no_event;
  std::optional<Beginning> beginning;
  bool outermost = false;          // no function around that loop is called in a loop, as far as the source is known
  bool rival = false;              // another level of the nest scores nearly as well
  bool enclosing = false;          // the step is a call of a function, and the loop that it holds varies
  bool below = false;              // the level with the best score lies around it, and does something every so often
  const char* confidence = "low";  // `medium` at most: nothing marks a step here

  const Level& of(std::span<const Level> levels) const { return pair ? *pair : levels[level]; }
};

// `levels`: all of the sequence, best score first. Nothing if none of them looks like a main loop.
std::optional<StepChoice> choose_step(const Sequence& events, std::span<const Level> levels);

// The innermost level that has an anchor (their positions, ascending) in at least 90 % of its iterations, and is not
// more frequent than it. nullptr without any.
const Level* innermost_with(std::span<const uint32_t> anchors, std::span<const Level> levels);

}  // namespace strobe::structure
