// decision.h - which loop of a thread is its main loop: the one that a framework marks, or that the structure of its
// sequences of events shows; where its iterations are marked, how sure that is, and why.
//
// The recorder asks about the latest events while the program runs, the reader about the spans of a trace. How much
// must have been seen before an answer counts is the recorder's own affair (detector.h).
#pragma once
#include <stdint.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "structure/iterations.h"
#include "structure/step_choice.h"

namespace strobe::structure {

// The spans of a thread, in order of start; `row`: the number of one of them.
struct Spans {
  std::span<const int64_t> starts_ns, parents;  // parents: -1: none
  std::function<const SourceCode*(int64_t row)> code_of;
  std::function<std::string(int64_t row)> name_of;
};

// One sequence of events among them; see Sequence.
struct Events {
  SequenceKind kind = SequenceKind::calls;
  std::span<const uint32_t> ids;
  std::span<const int64_t> rows, starts_ns;
  std::span<const int64_t> times_ns;       // empty: starts without silence
  std::span<const int64_t> waited_ns;      // of calls of MPI
  std::span<const uint32_t> without_peer;  // calls of MPI under the names that they have whoever the peer is; or empty
  bool begins_before = false, goes_on = false;
};

// A pause counts as a hundredth of the whole at most: imports leave no events, and do not belong to a loop.
std::vector<int64_t> without_silence(std::span<const int64_t> times_ns);

// The marks of one name that a framework or the program itself sets.
struct Anchor {
  LoopKind kind = LoopKind::hint;
  std::string_view name;
  std::span<const int64_t> rows;    // ascending
  uint64_t before = 0;              // marks that came before these
  std::span<const uint32_t> waits;  // ids of operators that wait for data
};
// What is known of a name; of two of a kind of which the marks alternate, or that follow each other, whether the second
// one is the step: the rarer one, of updates as rare the last one in turn, as it ends the step. Of loaders the one that
// is used for longer: one for validation is rarer, but not the step.
struct AnchorTimes {
  uint64_t count = 0;
  int64_t first_ns = 0, last_ns = 0;
  int64_t lasts_ns() const { return last_ns - first_ns; }
};
bool is_step_rather(LoopKind kind, const AnchorTimes& one, const AnchorTimes& other);

struct Decision {
  static constexpr size_t no_level = SIZE_MAX;
  std::vector<int64_t> rows;  // the spans that mark an iteration, or end it (`optimizer`)
  uint32_t group = 1;         // every so many anchors end an iteration; 0: too few of them to tell
  double per_iteration = 1;   // anchors in one
  SequenceKind sequence = SequenceKind::operators;  // the one that decided
  bool without_peer = false;                        // its events have these names
  std::vector<Level> levels;                        // of it, best score first
  size_t level = no_level;                          // the one chosen
  std::optional<StepChoice> step;                   // where no anchor is
  std::vector<SequenceKind> agreeing;               // with the same steps
  std::string confidence, reason;
};

std::optional<Decision> decide_by_structure(const Spans& spans, std::span<const Events> sequences);
Decision decide_anchored(const Spans& spans, std::span<const Events> sequences, const Anchor& anchor);

}  // namespace strobe::structure
