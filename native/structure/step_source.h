// step_source.h - what the source of a program tells about the levels of a sequence: which function holds what marks
// one, in which of its loops, and what each iteration of that loop does first.
#pragma once
#include <stdint.h>

#include <optional>
#include <vector>

#include "structure/step_choice.h"

namespace strobe::structure {

using Rows = std::vector<int64_t>;  // of spans, ascending
// An iteration around a loop that only repeats something is a step if it holds so many of it at most.
constexpr uint32_t most_repeated = 64;
void sort_unique(Rows& rows);

// The spans that mark a level, `most` at most.
Rows rows_of(const Sequence& events, const Level& level, size_t most = SIZE_MAX);
// The calls of the outermost function called as often as some marks, and those (-1: none) that hold all of these.
struct Held {
  Rows calls, holders;
};
Held held(const Sequence& events, Rows rows);

// Of levels. Without a source the answer is no.
bool is_of_items(const Sequence& events, const Level& level);
bool follow_each_other(const Sequence& events, const Level& level);
// Whether inner iterations only ask whether there is something to do, and what marks the outer level is what is done.
bool is_only_asked(const Sequence& events, const Level& inner, const Level& outer);
bool is_loop_in_loop(const Sequence& events, const Level& inner, const Level& outer);
bool is_done_by_a_library(const Sequence& events, const Level& inner, const Level& outer);
// Whether iterations that take so long each may be rows of something.
bool is_short(std::vector<int64_t> each_ns);
bool is_only_repeated(const Sequence& events, const Level& inner, const Level& outer);
bool is_called_back(const Sequence& events, const Level& inner, const Level& outer);
bool is_done_at_times(const Sequence& events, const Level& inner, const Level& outer);
bool is_resumed_for_several(const Sequence& events, const Level& inner, const Level& outer);
bool is_held_by_an_iteration(const Sequence& events, const Level& inner);
// Whether the source shows a loop, however little repeats in it: it calls one function, and at times another one.
bool is_in_source(const Sequence& events, const Level& level);

bool lies_in_a_loop(const Sequence& events, int64_t row);
bool trains(const Sequence& events);
std::optional<Beginning> beginning_of_repeated(const Sequence& events, const Level& inner, const Level& outer);
std::optional<Beginning> beginning_of(const Sequence& events, const Level& chosen);

}  // namespace strobe::structure
