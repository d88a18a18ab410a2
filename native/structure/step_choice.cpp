#include "structure/step_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "structure/step_source.h"

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
// A compiled program's call of MPI from one place is a loop where it comes so often, and is this share of them.
constexpr uint32_t fewest_of_one = 5;
constexpr double most_of_all = 0.5;
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

constexpr double anchored = 0.9;  // share of a level's intervals that hold an anchor
constexpr double as_often = 1.1;  // levels that differ by less in count are iterations of one loop
constexpr double as_many_of = 0.9;

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

// Whether a level can be a main loop at all.
bool is_eligible(const Sequence& events, const Level& level) {
  return !is_of_items(events, level) && (events.kind != SequenceKind::loops || follow_each_other(events, level));
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
  if (is_loop_in_loop(events, inner, outer) || is_done_by_a_library(events, inner, outer)) return false;
  if (is_only_repeated(events, inner, outer) || is_called_back(events, inner, outer)) return false;
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
    if (is_resumed_for_several(events, inner, outer)) continue;
    const std::vector<uint32_t> inside = trips(outer, inner);
    const auto [mean, deviation] = spread(inside);
    if (outer.count >= fewest_outer && is_called_back(events, inner, outer)) {
      choice.enclosing = false;
      choice.promotion = "a library calls it back";
      return each;
    }
    if (mean < 2) continue;
    if ((answers || (is_part && outer.count >= fewest_calls)) && encloses(events, inner, outer)) {
      choice.enclosing = true;
      choice.promotion = text("a function that holds %.0f iterations of a loop", mean);
      return each;
    }
    if (outer.count >= fewest_outer && is_only_repeated(events, inner, outer)) {
      choice.enclosing = false;
      choice.promotion = text("each repeats something %.0f times", mean);
      return each;
    }
    if (outer.count >= fewest_outer && is_done_by_a_library(events, inner, outer)) {
      choice.enclosing = false;
      choice.promotion = text("in each, a library calls something %.0f times", mean);
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
  for (const Level* inner : by_count(levels, true)) {
    if (!inner->marker.is_node()) continue;
    if (is_every_so_often(events, *inner, outer) || is_resumed_for_several(events, *inner, outer)) return inner;
    // Few rounds of a loop of many iterations, as of one over epochs; while they go on there may be more of them.
    const bool few = !events.goes_on && outer.count < fewer_outer && inner->count >= fewest_calls;
    if (few && inner->coverage >= as_long * outer.coverage && is_loop_in_loop(events, *inner, outer)) return inner;
    // In as many each time: what is asked for again and again, until there is something to do, is no step.
    const bool more = inner->count > outer.count && inner->coverage >= as_long * outer.coverage;
    if (more && usual_trips(*inner, outer) > 1 && is_done_at_times(events, *inner, outer)) return inner;
  }
  return nullptr;
}

// The loop in which this level is one of several branches: now one is taken, now another.
//
// An iteration with the branch is about as long (in events) as one without; and it is taken twice in a row, or again
// after some others: the numbers follow no rule.
const Level* taken_at_times(const Sequence& events, const Level& branch, std::span<const Level> levels) {
  for (const Level* inner : by_count(levels, true)) {
    if (inner->count < some_of_them * branch.count || inner->cvn >= branch.cvn || !inner->marker.is_node()) continue;
    if (is_only_asked(events, *inner, branch)) continue;
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

// Whether little but one call is repeated: by a loop, as its region is one place in the code if no function is known.
bool is_of_one_call(const Sequence& events, const Level& level) {
  return events.kind == SequenceKind::mpi && level.marker.is_node() && level.count >= fewest_of_one &&
         level.count > most_of_all * double(events.ids.size()) && level.coverage >= strict_coverage &&
         events.parents[size_t(events.rows[level.positions[0]])] < 0;
}

// Whether the source shows a loop, and it takes as much of the time.
bool is_long_enough_in_source(const Sequence& events, const Level& level) {
  return level.count >= strict_count && level.coverage >= strict_coverage && is_in_source(events, level);
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
      return (is_short_loop(events, level) || is_of_one_call(events, level) ||
              is_long_enough_in_source(events, level)) &&
             is_eligible(events, level);
    });
    best = loop == levels.end() ? nullptr : &*loop;
  }
  if (!best) return {};
  const Level* chosen = best;
  const auto inside = [&] {
    const Level* inner = demoted(events, *chosen, levels);
    return inner ? inner : taken_at_times(events, *chosen, levels);
  };
  while (const Level* inner = inside()) chosen = inner;
  choice.below = chosen != best;
  const Level* within = nullptr;
  if (!choice.below)
    while (const Level* outer = promoted(events, *chosen, levels, choice)) within = chosen, chosen = outer;
  const bool within_only = within && is_only_repeated(events, *within, *chosen);
  if (within_only) choice.beginning = beginning_of_repeated(events, *within, *chosen);
  if (!choice.beginning) choice.beginning = beginning_of(events, *chosen);
  // Why this level was taken holds for no other iterations.
  if (choice.beginning && (within_only || choice.beginning->rows.size() > chosen->count + 1)) choice.promotion.clear();
  if (choice.beginning) {
    choice.confidence = "medium";
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
