#include "structure/step_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "structure/region_names.h"

namespace strobe::structure {
namespace {

// Below, nobody would call a level without an anchor the main loop: in a single forward pass, and where a model is
// loaded, the best level scores up to 0.7.
constexpr double least_score = 0.75;
// Where little but start-up was recorded beside it, a loop takes a small part of the time. It must then be perfectly
// regular (variation at most) and run so often, take this share of the time, and hold that of the events that would
// make the score.
constexpr double strict_variation = 0.05, strict_coverage = 0.25, strict_score = 0.65;
constexpr uint32_t strict_count = 20;
// Of this score, and with no rival around it or inside of it, a level is more than a guess.
constexpr double good_score = 1.0, rival_score = 0.8;
// Two iterations are a loop where so much repeats (events and transitions), and nothing else stands out half as much.
constexpr double pair_spine = 50, pair_score = 1.5;
// What is done once in more iterations than these is nobody's step.
constexpr int64_t most_often = 64;

// An outer level spans this share of the inner one's time; all its iterations hold the same number of inner ones if
// that varies so little (coefficient of variation).
constexpr double as_long = 0.8, equal_trips = 0.05;

// An outer level is the step if all its iterations (so many at least, or fewer of a loop with much in it: spine) hold
// the same, small number of inner ones, and are regular (coefficient of variation) ...
constexpr double most_trips = 64, regular = 0.15, much_in_it = 10;
constexpr uint32_t fewest_outer = 8, fewer_outer = 5;
// ... and it is as much of a loop (share of the inner one's spine), or what it does besides the inner loop is a good
// part of it (share of its events) and done nowhere in the inner loop (share of these): an update after micro-batches.
constexpr double like_inner = 0.5, own_work = 0.1, unlike_inner = 0.1;

// A function (called so often at least) that holds a loop whose number of iterations varies so much is the step: how
// many tokens a request takes, how many iterations a solver needs, depends on the data; how many batches an epoch has
// does not. So many of the inner iterations must lie inside of that function.
constexpr double varying_trips = 0.15, enclosed = 0.9;
constexpr uint32_t fewest_calls = 20;

// On the other hand, what is done every so often (output, statistics, new neighbours) is not a step, but the loop
// inside of it is. The same call of a function must hold both, and its own work takes less than this share of the time.
constexpr double most_of_the_time = 0.5;
// It comes once in so many inner iterations, or in so many where functions are unknown; fewer are parts of a step.
constexpr uint32_t every_so_often = 5, often_without_functions = 8;
// It brings little (spine), and next to nothing where functions are unknown.
constexpr double little_more = 10, no_more = 3;
// A branch of a loop is taken in fewer than one of so many iterations, in this share of the cases in two in a row, and
// makes an iteration no longer than so many of the others.
constexpr double some_of_them = 1.5, in_a_row = 0.05, as_many = 1.5, nearly_all = 0.9;
// Done first after the first of so many, it is done where a counter from zero is a multiple.
constexpr int64_t from_zero = 4;

// So many marks tell which function calls what marks a level.
constexpr size_t marks_of_a_function = 64;

constexpr double anchored = 0.9;  // share of a level's intervals that hold an anchor
constexpr double as_often = 1.1;  // levels that differ by less in count are iterations of one loop
constexpr double as_many_of = 0.9;

using Rows = std::vector<int64_t>;

template <class T>
double median(std::vector<T> values) {
  const auto half = values.begin() + ptrdiff_t(values.size() / 2);
  std::ranges::nth_element(values, half);
  return values.size() % 2 ? double(*half) : (double(*std::max_element(values.begin(), half)) + double(*half)) / 2;
}

struct Spread {
  double mean, deviation;
};
Spread spread(std::span<const uint32_t> counts) {
  const double n = double(counts.size()), mean = double(std::accumulate(counts.begin(), counts.end(), uint64_t{0})) / n;
  double squares = 0;
  for (const uint32_t count : counts) squares += (count - mean) * (count - mean);
  return {mean, std::sqrt(squares / n)};
}

double share(auto& values, auto&& holds) {
  return double(std::ranges::count_if(values, holds)) / double(values.size());
}

std::vector<const Level*> by_count(std::span<const Level> levels, bool rarest_first) {
  std::vector<const Level*> sorted;
  for (const Level& level : levels) sorted.push_back(&level);
  std::ranges::stable_sort(
      sorted, [=](const Level* a, const Level* b) { return rarest_first ? a->count < b->count : a->count > b->count; });
  return sorted;
}

bool functions_known(const Sequence& events) {
  return events.kind == SequenceKind::calls || events.kind == SequenceKind::mpi || events.kind == SequenceKind::loops;
}

// The number of inner iterations that every outer one holds, 0 if it varies. The first mark may lie before the loop:
// what is done every so often is often done once to begin with.
uint32_t usual_trips(const Level& inner, const Level& outer) {
  const std::vector<uint32_t> inside = trips(outer, inner);
  for (const size_t first : {0, 1}) {
    const auto counts = std::span(inside).subspan(first);
    if (counts.empty()) continue;
    const auto [mean, deviation] = spread(counts);
    if (deviation < equal_trips * mean) return uint32_t(std::lrint(mean));
  }
  return 0;
}

// The lengths in events of the inner iterations, or other differences between their marks: those with an outer mark in
// them, and all others.
struct MarkedOrNot {
  std::vector<int64_t> with, without;
};
MarkedOrNot intervals(const Level& inner, const Level& outer, const std::function<int64_t(uint32_t)>& value) {
  MarkedOrNot out;
  const std::vector<uint32_t> marked = trips(inner, outer);
  for (size_t i = 0; i < marked.size(); ++i)
    (marked[i] ? out.with : out.without).push_back(value(inner.positions[i + 1]) - value(inner.positions[i]));
  return out;
}
int64_t itself(uint32_t position) { return position; }

void sort_unique(Rows& rows) {
  if (!std::ranges::is_sorted(rows)) std::ranges::sort(rows);  // parents of ascending rows mostly are
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
}

// The spans around some others, each once, and -1 first where one has none.
Rows around(const Sequence& events, const Rows& rows) {
  Rows above;
  for (const int64_t row : rows)
    if (const int64_t parent = events.parents[size_t(row)]; above.empty() || above.back() != parent)
      above.push_back(parent);
  sort_unique(above);
  return above;
}

Rows rows_of(const Sequence& events, const Level& level, size_t most = SIZE_MAX) {
  Rows rows;
  for (const uint32_t at : std::span(level.positions).first(std::min(most, level.positions.size())))
    rows.push_back(events.rows[at]);
  return rows;
}

// The calls of the outermost function called as often as some marks, and those (-1: none) that hold all of these.
struct Held {
  Rows calls, holders;
};
Held held(const Sequence& events, Rows rows) {
  for (;;) {
    Rows above = around(events, rows);
    if (above.size() < rows.size() || above[0] < 0) return {std::move(rows), std::move(above)};
    rows = std::move(above);
  }
}

// Whether a level is the items of a generator expression that call nothing recorded: a part of one expression, however
// often it comes.
bool is_of_items(const Sequence& events, const Level& level) {
  if (!events.code_of) return false;
  Rows rows = rows_of(events, level, marks_of_a_function);
  return std::ranges::all_of(held(events, std::move(rows)).calls, [&](int64_t row) {
    const SourceCode* code = events.code_of(row);
    const bool calls = size_t(row) + 1 < events.parents.size() && events.parents[size_t(row) + 1] == row;
    return code && code->name == "<genexpr>" && !calls;
  });
}

// Whether iterations that were recorded themselves follow each other for most of the time that their level spans: those
// of a helper function do not, nor those of which few were seen.
bool follow_each_other(const Sequence& events, const Level& level) {
  int64_t in_turn_ns = 0;
  for (size_t i = 0; i + 1 < level.positions.size(); ++i) {
    const uint32_t at = level.positions[i], next = level.positions[i + 1];
    if (events.parents[size_t(events.rows[at])] == events.parents[size_t(events.rows[next])])
      in_turn_ns += events.starts_ns[next] - events.starts_ns[at];
  }
  const auto all_ns = double(events.starts_ns[level.positions.back()] - events.starts_ns[level.positions.front()]);
  return double(in_turn_ns) >= most_of_the_time * all_ns;
}

// Whether a level can be a main loop at all.
bool is_eligible(const Sequence& events, const Level& level) {
  return !is_of_items(events, level) && (events.kind != SequenceKind::loops || follow_each_other(events, level));
}

// What some calls run, if it is the same and known.
const SourceCode* code_of_all(const Sequence& events, const Rows& calls) {
  if (calls[0] < 0) return nullptr;
  const SourceCode* code = events.code_of(calls[0]);
  const bool same = std::ranges::all_of(calls, [&](int64_t row) { return events.code_of(row) == code; });
  return same ? code : nullptr;
}

// Whether the same function calls what marks two levels, the inner one in a loop that lies in that of the outer one.
bool is_loop_in_loop(const Sequence& events, const Level& inner, const Level& outer) {
  if (!events.code_of) return false;
  const auto called = [&](const Level& level) -> std::pair<const SourceCode*, const SourceCode*> {
    const Held found = held(events, rows_of(events, level, marks_of_a_function));
    return {events.code_of(found.calls[0]), code_of_all(events, found.holders)};
  };
  const auto [inside, holder] = called(inner);
  const auto [outside, other_holder] = called(outer);
  if (!inside || !outside || !holder || holder != other_holder) return false;
  const uint32_t loop = holder->loops.calls_of(inside->name).loop, around = holder->loops.calls_of(outside->name).loop;
  return around && loop != around && holder->loops.is_within(loop, around);
}

// Whether a loop is seen to begin and to end: what lies before its first mark or behind its last one is more than what
// lies between two of them, or the sequence begins and ends there, too.
struct Ends {
  bool first, last;
};
Ends seen_ends(const Sequence& events, const Level& level) {
  uint32_t longest = 0;
  for (size_t i = 0; i + 1 < level.positions.size(); ++i)
    longest = std::max(longest, level.positions[i + 1] - level.positions[i]);
  return {!events.begins_before || level.positions.front() > longest,
          !events.goes_on || events.ids.size() - level.positions.back() > longest};
}

// Whether the inner iterations before the first outer mark and behind the last one are less than a whole loop.
//
// Those of a function that is called before and after what marks the outer level are one together. Something done first
// after one of many is done where a counter that began at zero is a multiple.
bool leaves_some_over(const Sequence& events, const Level& inner, const Level& outer) {
  const std::vector<uint32_t> inside = trips(outer, inner);
  const int64_t usual = std::lrint(median(inside));
  const auto until = [&](uint32_t at) { return std::ranges::lower_bound(inner.positions, at); };
  int64_t before = until(outer.positions.front()) - inner.positions.begin();
  const int64_t behind = inner.positions.end() - until(outer.positions.back());
  if (before == 0 && inside[0] < usual) before = inside[0];  // the first mark lies before the loop
  if (std::max(before, behind) > usual) return false;        // it runs elsewhere, too
  const Ends seen = seen_ends(events, inner);
  if (seen.first && before == 1 && usual >= from_zero) return true;
  return seen.first && seen.last && (before + behind) % usual != 0;
}

// The share of an outer iteration's time that its inner iterations do not take.
//
// An inner iteration takes as long as one usually does, and so does one with the outer mark in it: the load of the
// machine lengthens some of both. Calls of MPI take as long as the slowest rank makes all others wait: that is nobody's
// work.
double own_time(const Sequence& events, const Level& inner, const Level& outer) {
  const auto took = intervals(inner, outer, [&](uint32_t at) {
    return events.starts_ns[at] - (events.waited_ns.empty() ? 0 : events.waited_ns[at]);
  });
  if (took.with.empty() || took.without.empty()) return 0;
  const double each_ns = median(took.without), own_ns = std::max(0.0, median(took.with) - each_ns);
  return own_ns / std::max(1.0, own_ns + each_ns * double(inner.positions.size()) / outer.count);
}

// Whether what the outer level does between two runs of the inner loop makes it a loop around that one.
//
// It does if something in it is done as often as the inner loop runs: both go through the same things. Or if an end of
// it opens the first iteration, and what is missing there ends the last one.
bool is_a_loop_around(const Sequence& events, const Level& inner, const Level& outer) {
  using Ids = std::span<const uint32_t>;
  const auto lengths = intervals(inner, outer, itself);
  if (lengths.with.empty() || lengths.without.empty()) return false;
  const auto body = size_t(median(lengths.without));
  std::vector<Ids> gaps;
  const std::vector<uint32_t> marked = trips(inner, outer);
  for (size_t i = 0; i < marked.size(); ++i) {
    const size_t end = inner.positions[i + 1], begin = std::min(inner.positions[i] + body, end);
    if (marked[i]) gaps.push_back(events.ids.subspan(begin, end - begin));
  }
  const Ids own = gaps[gaps.size() / 2];
  const uint32_t usual = usual_trips(inner, outer);
  const auto done_as_often = [&](Ids gap) {
    std::vector<uint32_t> sorted(gap.begin(), gap.end());
    std::ranges::sort(sorted);
    for (auto at = sorted.begin(); at != sorted.end();) {
      const auto next = std::upper_bound(at, sorted.end(), *at);
      if (size_t(next - at) == usual) return true;
      at = next;
    }
    return false;
  };
  if (done_as_often(gaps.front()) && done_as_often(own) && done_as_often(gaps.back())) return true;
  const Ids before = events.ids.first(inner.positions.front());
  const Ids behind = events.ids.subspan(std::min(inner.positions.back() + body, events.ids.size()));
  // How much of its end stands before the first iteration, and how much of its beginning behind the last one.
  const auto opens =
      size_t(std::mismatch(own.rbegin(), own.rend(), before.rbegin(), before.rend()).first - own.rbegin());
  const auto ends = size_t(std::ranges::mismatch(own, behind).in1 - own.begin());
  if (opens == own.size() || ends == own.size()) return false;
  const Ends seen = seen_ends(events, inner);
  return (seen.first && opens > 0 && !seen.last) || (seen.last && ends > 0 && !seen.first) ||
         (seen.first && seen.last && opens + ends >= own.size());
}

// Whether the outer level is something that is done once in a fixed number of iterations of the inner one.
//
// The events of two nested loops can be the same. The difference: a loop within a loop runs to its end, so that
// iterations left over before the first mark, or behind the last one, belong to no inner loop; and work both before the
// inner loop and behind it is an outer loop's. Where neither is seen, a large number speaks against an inner loop.
bool is_every_so_often(const Sequence& events, const Level& inner, const Level& outer) {
  const uint32_t usual = usual_trips(inner, outer);
  if (usual < 2) return false;
  if (is_loop_in_loop(events, inner, outer)) return false;
  const bool functions = functions_known(events);
  if (!functions || !leaves_some_over(events, inner, outer)) {
    if (outer.spine > (functions ? little_more : no_more)) return false;
    if (usual < (functions ? every_so_often : often_without_functions)) return false;
    if (own_time(events, inner, outer) >= most_of_the_time) return false;
    if (functions && is_a_loop_around(events, inner, outer)) return false;
  }
  return held(events, rows_of(events, inner)).holders == held(events, rows_of(events, outer)).holders;
}

// Whether an outer iteration does much that its inner iterations never do.
bool does_something_else(const Sequence& events, const Level& inner, const Level& outer) {
  const uint32_t low = outer.positions.front(), high = outer.positions.back();
  std::vector<uint32_t> marks;
  std::ranges::copy_if(inner.positions, std::back_inserter(marks), [=](uint32_t at) { return at >= low && at < high; });
  std::vector<uint32_t> lengths;
  for (size_t i = 0; i + 1 < marks.size(); ++i) lengths.push_back(marks[i + 1] - marks[i]);
  // An inner iteration is as long as most are; what follows until the next begins is outer.
  const auto usual = uint32_t(median(lengths));
  std::vector<bool> known(size_t{std::ranges::max(events.ids)} + 1);
  std::vector<uint32_t> own(events.ids.begin() + low, events.ids.begin() + marks.front());
  marks.push_back(high);
  for (size_t i = 0; i + 1 < marks.size(); ++i) {
    const uint32_t end = std::min(marks[i] + usual, marks[i + 1]);
    for (uint32_t at = marks[i]; at < end; ++at) known[events.ids[at]] = true;
    own.insert(own.end(), events.ids.begin() + end, events.ids.begin() + marks[i + 1]);
  }
  return double(own.size()) >= own_work * (high - low) &&
         share(own, [&](uint32_t id) { return !known[id]; }) >= unlike_inner;
}

// Whether each outer iteration has one call of a function that holds its inner iterations.
bool encloses(const Sequence& events, const Level& inner, const Level& outer) {
  const Rows marks = rows_of(events, outer);
  for (Rows at = rows_of(events, inner);;) {
    for (int64_t& row : at) row = events.parents[size_t(row)];
    std::erase_if(at, [](int64_t row) { return row < 0; });
    Rows calls = at;
    sort_unique(calls);
    if (calls.size() + 1 < outer.count || calls.empty()) return false;
    const auto inside = trips<int64_t>(marks, calls);
    if (share(inside, [](uint32_t n) { return n == 1; }) >= enclosed && calls.size() <= size_t{outer.count} + 1 &&
        double(at.size()) >= enclosed * inner.count)
      return true;
  }
}

// Whether a function that holds the iterations of a level in a loop is itself called once in each iteration of a loop:
// by whom is told by the source.
bool is_held_by_an_iteration(const Sequence& events, const Level& inner) {
  if (!events.code_of) return false;
  Rows rows = rows_of(events, inner, marks_of_a_function);
  const int64_t call = held(events, std::move(rows)).holders[0];
  const int64_t caller = call < 0 ? -1 : events.parents[size_t(call)];
  if (caller < 0) return false;
  const SourceCode *code = events.code_of(call), *callers = events.code_of(caller);
  return code && callers && code->loops.any() && callers->loops.calls_of(code->name).times == 1;
}

// Whether a span lies in a loop of a function around it.
bool lies_in_a_loop(const Sequence& events, int64_t row) {
  for (int64_t above = events.parents[size_t(row)]; above >= 0; row = above, above = events.parents[size_t(row)]) {
    const SourceCode *code = events.code_of(row), *callers = events.code_of(above);
    if (code && callers && callers->loops.calls_of(code->name).loop) return true;
  }
  return false;
}

bool trains(const Sequence& events) {
  std::vector<bool> seen(size_t{std::ranges::max(events.ids)} + 1);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    if (seen[events.ids[i]]) continue;
    seen[events.ids[i]] = true;
    if (const SourceCode* code = events.code_of(events.rows[i]); code && is_backward(code->name)) return true;
  }
  return false;
}

std::string text(const char* format, auto... values) {
  char out[128];
  snprintf(out, sizeof out, format, values...);
  return out;
}

// The next outer level that is the step rather than this one, and why; nullptr without any.
const Level* promoted(const Sequence& events, const Level& inner, std::span<const Level> levels, StepChoice& choice) {
  // Requests, sweeps, time steps: what a function does in a loop is a part of them. Epochs are few, and train.
  const bool is_part = is_held_by_an_iteration(events, inner);
  const bool answers = is_part && events.kind == SequenceKind::operators && !trains(events);
  for (const Level* each : by_count(levels, false)) {
    const Level& outer = *each;
    const uint32_t least = answers || outer.spine >= much_in_it ? fewer_outer : fewest_outer;
    if (outer.count < least || outer.count >= inner.count || outer.coverage < as_long * inner.coverage) continue;
    const std::vector<uint32_t> inside = trips(outer, inner);
    const auto [mean, deviation] = spread(inside);
    if (mean < 2) continue;
    if ((answers || (is_part && outer.count >= fewest_calls)) && encloses(events, inner, outer)) {
      choice.enclosing = true;
      choice.promotion = text("a function that holds %.0f iterations of a loop", mean);
      return each;
    }
    if (usual_trips(inner, outer)) {
      if (mean > most_trips || outer.cvn > std::max(regular, inner.cvn)) continue;
      if (functions_known(events) && is_every_so_often(events, inner, outer)) continue;
      const char* why = "each holds %.0f equal iterations of a loop";
      if (outer.spine < like_inner * inner.spine) {
        const bool calls = events.kind == SequenceKind::calls;
        const bool is_loop = calls ? mean >= every_so_often && is_a_loop_around(events, inner, outer)
                                   : does_something_else(events, inner, outer);
        if (!is_loop) continue;
        why = calls ? "each holds %.0f equal iterations of a loop, and work around them"
                    : "each ends %.0f equal iterations with work of its own";
      }
      choice.enclosing = false;
      choice.promotion = text(why, mean);
      return each;
    }
    if (deviation > varying_trips * mean && outer.count >= fewest_calls && encloses(events, inner, outer)) {
      const auto [fewest, most] = std::ranges::minmax(inside);
      choice.enclosing = true;
      choice.promotion = text("a function that holds %u to %u iterations of a loop", fewest, most);
      return each;
    }
  }
  return nullptr;
}

// The inner level that is the step rather than this one, where something is only done every so often.
const Level* demoted(const Sequence& events, const Level& outer, std::span<const Level> levels) {
  for (const Level* inner : by_count(levels, true))
    if (inner->marker.is_node() && is_every_so_often(events, *inner, outer)) return inner;
  return nullptr;
}

// The loop in which this level is one of several branches: now one is taken, now another.
//
// An iteration with the branch is about as long (in events) as one without; and it is taken twice in a row, or again
// after some others: the numbers follow no rule.
const Level* taken_at_times(const Level& branch, std::span<const Level> levels) {
  for (const Level* inner : by_count(levels, true)) {
    if (inner->count < some_of_them * branch.count || inner->cvn >= branch.cvn || !inner->marker.is_node()) continue;
    if (inner->coverage < as_long * branch.coverage) continue;
    const std::vector<uint32_t> inside = trips(branch, *inner);
    std::vector<uint32_t> times(size_t{std::ranges::max(inside)} + 2, 0);  // by number of iterations
    for (const uint32_t n : inside) ++times[n];
    const double once = times[1] / double(inside.size());
    std::ranges::nth_element(times, times.begin() + 1, std::greater());
    if (times[0] + times[1] > nearly_all * double(inside.size()) || once < in_a_row) continue;
    const auto length = intervals(*inner, branch, itself);
    if (!length.with.empty() && !length.without.empty() && median(length.with) <= as_many * median(length.without))
      return inner;
  }
  return nullptr;
}

// What is done every so often and could be the step as well, unless that is out of the question.
void find_other(const Sequence& events, const Level& chosen, std::span<const Level> levels, StepChoice& choice) {
  for (const Level* outer : by_count(levels, false)) {
    if (outer->count >= chosen.count || !is_every_so_often(events, chosen, *outer)) continue;
    const int64_t often = std::lrint(median(trips(*outer, chosen)));
    if (!choice.below && (often > most_often || leaves_some_over(events, chosen, *outer))) continue;
    choice.promotion = text("each does the same, and something else is done every %lld", (long long)often);
    choice.other = outer->positions[0];
    return;
  }
}

// Iterations that were recorded themselves are the steps, whatever in them marks the level.
void begin_with_iterations(const Sequence& events, const Held& found, const SourceCode& loop, StepChoice& choice) {
  Beginning beginning;
  for (int64_t row = found.holders.front() + 1; row < int64_t(events.parents.size()); ++row)
    if (std::ranges::binary_search(found.holders, events.parents[size_t(row)]) && events.code_of(row) == &loop)
      beginning.rows.push_back(row);
  beginning.with = beginning.rows.front();
  beginning.source = "each is an iteration of the " + loop.name;
  choice.beginning = std::move(beginning);
  choice.confidence = "medium";
}

// Where the source of the function that runs the loop is known, a step is an iteration of that loop: it begins with
// what each iteration calls first, and is one however often an iteration calls that.
void find_beginning(const Sequence& events, const Level& chosen, StepChoice& choice) {
  if (!events.code_of) return;
  const Held found = held(events, rows_of(events, chosen));
  if (found.holders.front() < 0) return;
  const SourceCode* holder = code_of_all(events, found.holders);
  const SourceCode* marked = code_of_all(events, found.calls);
  if (marked && marked->is_loop) return begin_with_iterations(events, found, *marked, choice);
  marked = events.code_of(found.calls[0]);
  if (!holder || !marked || !holder->loops.any()) return;
  struct Called {
    int64_t first, last;
    size_t count = 0;
  };
  std::map<const SourceCode*, Called> called;  // by these calls of the function
  for (int64_t row = found.holders.front(); row < int64_t(events.parents.size()); ++row)
    if (std::ranges::binary_search(found.holders, events.parents[size_t(row)])) {
      Called& each = called.try_emplace(events.code_of(row), Called{row, row}).first->second;
      each.last = row, ++each.count;
    }
  // What marks the level may be called by something that the source calls: then any loop of the function may hold it.
  const SourceLoops::Calls marks = holder->loops.calls_of(marked->name);
  const auto all =
      marks.times ? (double(called[marked].count) - marks.before) / marks.times : double(found.calls.size());
  for (const uint32_t loop : marks.loop ? std::vector{marks.loop} : holder->loops.outermost())
    for (const std::string& name : holder->loops.in_each_iteration(loop)) {
      const SourceLoops::Calls calls = holder->loops.calls_of(name);
      const auto of_name = [&](const auto& each) { return each.first && each.first->is_called(name); };
      const auto it = std::ranges::find_if(called, of_name);
      if (!calls.times || it == called.end() || std::ranges::count_if(called, of_name) > 1) continue;
      if (calls.before && (found.holders.size() > 1 || events.begins_before)) continue;
      const auto& [code, each] = *it;
      const double iterations = (double(each.count) - calls.before) / calls.times;
      if (marks.times ? std::abs(iterations - all) > 2 : iterations < all) continue;
      const auto inside = [&](int64_t row) { return row >= each.first && row <= each.last; };
      if (!marks.loop && share(found.calls, inside) < nearly_all) continue;
      Beginning beginning;
      beginning.with = each.first;
      beginning.marks.every = calls.times;
      beginning.source = "the loop in " + holder->name + " calls " + code->name +
                         (calls.times == 1 ? " once" : text(" %u times", calls.times)) + " in each iteration";
      std::vector<const SourceCode*> in_front;
      for (const std::string& before : holder->loops.in_front_of(name, loop)) {
        const auto at =
            std::ranges::find_if(called, [&](const auto& c) { return c.first && c.first->is_called(before); });
        if (at == called.end() || holder->loops.calls_of(before).before) continue;
        in_front.push_back(at->first), beginning.in_front.push_back(at->second.first);
      }
      uint32_t skipped = 0;
      for (int64_t row = found.holders.front(); row <= each.last; ++row) {
        if (!std::ranges::binary_search(found.holders, events.parents[size_t(row)])) continue;
        const SourceCode* one = events.code_of(row);
        const bool begins = one == code
                                ? skipped++ >= calls.before && beginning.marks.always()
                                : std::ranges::find(in_front, one) != in_front.end() && beginning.marks.at_times();
        if (begins) beginning.rows.push_back(row);
      }
      choice.beginning = std::move(beginning);
      choice.confidence = "medium";
      return;
    }
}

// Whether the source tells that a level is a loop, however little repeats in it: it calls one function, and at times
// another one.
bool is_in_source(const Sequence& events, const Level& level) {
  if (!events.code_of || level.count < strict_count || level.coverage < strict_coverage) return false;
  const Held found = held(events, rows_of(events, level, marks_of_a_function));
  const SourceCode *marked = events.code_of(found.calls[0]), *holder = code_of_all(events, found.holders);
  if (!marked || !holder || (!marked->is_loop && !holder->loops.calls_of(marked->name).loop)) return false;
  StepChoice choice;
  find_beginning(events, level, choice);
  return choice.beginning.has_value();
}

// The level of two iterations that are nearly all there is.
std::optional<Level> pair_of(const Sequence& events, const Level* best) {
  const double least = std::max(pair_score, best ? 2 * best->score : 0);
  const LevelOptions options{.min_count = 2, .max_levels = 1, .max_count = 2, .least_score = least};
  std::vector<Level> found = events.items ? find_levels(*events.items, events.times_ns, options)
                                          : find_levels(events.ids, events.times_ns, options);
  if (found.empty() || found[0].spine < pair_spine || found[0].score < least) return {};
  return std::move(found[0]);
}

// Whether a level is a loop without doubt, but takes a small part of the time.
bool is_short_loop(const Sequence& events, const Level& level) {
  if (level.cvn > strict_variation || level.count < strict_count || level.coverage < strict_coverage) return false;
  const double spanned = double(level.positions.back() - level.positions.front()) * level.count;
  const double held = spanned / (level.count - 1) / double(events.ids.size());
  return level.score / level.coverage * std::min(1.0, std::max(held, level.coverage)) >= strict_score;
}

bool has_rival(const Level& chosen, std::span<const Level> levels) {
  return std::ranges::any_of(levels, [&](const Level& level) {
    const double times = double(level.count) / chosen.count;
    return level.score >= rival_score * chosen.score && (times < as_many_of || times > as_often) && &level != &chosen;
  });
}

}  // namespace

std::optional<StepChoice> choose_step(const Sequence& events, std::span<const Level> levels) {
  const auto first = std::ranges::find_if(levels, [&](const Level& level) { return is_eligible(events, level); });
  const Level* best = first == levels.end() ? nullptr : &*first;
  StepChoice choice;
  if (!best || best->score < 2 * pair_score) choice.pair = pair_of(events, best);
  if (choice.pair) return choice;
  if (best && best->score < least_score) {
    const auto loop = std::ranges::find_if(levels, [&](const Level& level) {
      return (is_short_loop(events, level) || is_in_source(events, level)) && is_eligible(events, level);
    });
    best = loop == levels.end() ? nullptr : &*loop;
  }
  if (!best) return {};
  const Level* chosen = best;
  const auto inside = [&] {
    const Level* inner = demoted(events, *chosen, levels);
    return inner ? inner : taken_at_times(*chosen, levels);
  };
  while (const Level* inner = inside()) chosen = inner;
  choice.below = chosen != best;
  if (!choice.below)
    while (const Level* outer = promoted(events, *chosen, levels, choice)) chosen = outer;
  find_beginning(events, *chosen, choice);
  if (choice.beginning) {
    const int64_t holder = events.parents[size_t(choice.beginning->with)];
    choice.outermost = holder >= 0 && !lies_in_a_loop(events, holder);
  }
  if (choice.promotion.empty() && !choice.beginning) find_other(events, *chosen, levels, choice);
  choice.level = size_t(chosen - levels.data());
  choice.rival = has_rival(*chosen, levels);
  if (choice.promotion.empty() && !choice.rival && chosen->score >= good_score && chosen->count > 2)
    choice.confidence = "medium";
  return choice;
}

const Level* innermost_with(std::span<const uint32_t> anchors, std::span<const Level> levels) {
  std::vector<const Level*> fitting;
  uint32_t most = 0;
  for (const Level& level : levels) {
    if (level.count > as_often * double(anchors.size())) continue;
    const auto held = trips<uint32_t>(level.positions, anchors);
    if (share(held, [](uint32_t n) { return n > 0; }) < anchored) continue;
    fitting.push_back(&level);
    most = std::max(most, level.count);
  }
  const Level* best = nullptr;
  for (const Level* level : fitting)
    if (level->count >= as_many_of * most && (!best || level->score > best->score)) best = level;
  return best;
}

}  // namespace strobe::structure
