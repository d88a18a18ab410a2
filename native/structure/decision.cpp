#include "structure/decision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "structure/occurrences.h"
#include "structure/step_source.h"
#include "structure/update_groups.h"

namespace strobe::structure {

namespace {

// Marks of the same steps alternate: so many of the intervals between two of one hold exactly one of the other ...
constexpr double kAlternate = 0.9;
// ... while both are there, and all but so many of the first are.
constexpr double kOutside = 0.1;
// So many iterations around a loop that only repeats something are the steps.
constexpr size_t kFewestAround = 8;
constexpr double kAsMany = 0.1;  // anchors are as many as the iterations around them, give or take this share

std::string text(const char* format, auto... values) {
  char out[256];
  snprintf(out, sizeof out, format, values...);
  return out;
}

// The loop of one sequence by its structure alone.
struct Found {
  const Events* events;
  bool without_peer;
  std::vector<Level> levels;
  StepChoice step;
  Rows rows;  // that mark a step
  const Level& level() const { return levels[step.level]; }
};

// Starts without silence, and where they are if they are not known yet.
std::span<const int64_t> times_of(const Events& events, std::vector<int64_t>& own) {
  if (!events.times_ns.empty()) return events.times_ns;
  own = without_silence(events.starts_ns);
  return own;
}

Rows marks_of(const Events& events, std::span<const uint32_t> ids, const Item& item) {
  Rows rows;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == item.target && (item.is_node() || (i > 0 && ids[i - 1] == item.source)))
      rows.push_back(events.rows[i]);
  return rows;
}

// Whether the function that makes a call makes such calls in a loop only, as far as its source is known.
bool is_called_in_loop_only(const Spans& spans, int64_t row) {
  const int64_t holder = spans.parents[size_t(row)];
  const SourceCode* code = spans.code_of ? spans.code_of(row) : nullptr;
  const SourceCode* holders = code && holder >= 0 ? spans.code_of(holder) : nullptr;
  if (!holders) return false;
  const SourceLoops::Calls calls = holders->loops.calls_of(code->name);
  return calls.loop && !calls.before;
}

// Where an iteration has begun and not ended yet, what comes first in each has come once more than all else in it: lets
// the level be marked by the earliest of that. What was called before the loop, too, may as well come last in each.
void mark_by_first(const Spans& spans, const Events& events, const Occurrences& items, Level& level) {
  for (const Candidate& each : items.candidates()) {
    if (each.at.size() < level.positions.size() + 1) continue;
    if (each.at.size() > level.positions.size() + 1) return;  // they are in order of count
    bool in_turn = each.item.is_node();
    for (size_t i = 0; in_turn && i < level.positions.size(); ++i)
      in_turn = each.at[i] < level.positions[i] && level.positions[i] < each.at[i + 1];
    if (!in_turn || !is_called_in_loop_only(spans, events.rows[each.at[0]])) continue;
    level.marker = each.item;  // the earliest one comes first
    level.positions.assign(each.at.begin(), each.at.end());
    level.count++;
    return;
  }
}

std::optional<Found> found_in(const Spans& spans, const Events& events, bool without_peer) {
  const std::span<const uint32_t> ids = without_peer ? events.without_peer : events.ids;
  std::vector<int64_t> own_times;
  const auto times = times_of(events, own_times);
  Sequence sequence{.kind = events.kind,
                    .ids = ids,
                    .starts_ns = events.starts_ns,
                    .times_ns = times,
                    .waited_ns = events.waited_ns,
                    .rows = events.rows,
                    .parents = spans.parents,
                    .begins_before = events.begins_before,
                    .goes_on = events.goes_on,
                    .code_of = spans.code_of};
  std::optional<Occurrences> items;
  std::vector<Level> levels;
  if (ids.size() <= most_events) {
    items.emplace(ids, 2);
    sequence.items = &*items;
    levels = find_levels(*items, times, {});
  } else {
    levels = find_levels(ids, times, {});
  }
  auto step = choose_step(sequence, levels);
  if (!step) return {};
  if (step->pair) levels.insert(levels.begin(), *step->pair), step->level = 0;
  if (step->other != StepChoice::no_event)
    step->promotion += ": " + spans.name_of(events.rows[step->other]) + ", the other choice";
  if (items && !step->beginning && events.goes_on && !events.begins_before)
    mark_by_first(spans, events, *items, levels[step->level]);
  Rows rows = step->beginning ? step->beginning->rows : marks_of(events, ids, levels[step->level].marker);
  return Found{&events, without_peer, std::move(levels), std::move(*step), std::move(rows)};
}

// The loop of each sequence; calls of MPI with their peers or without, the better one.
std::vector<Found> all_found(const Spans& spans, std::span<const Events> sequences) {
  std::vector<Found> all;
  for (const Events& events : sequences) {
    if (events.ids.empty()) continue;
    auto found = found_in(spans, events, false);
    if (!events.without_peer.empty()) {
      auto other = found_in(spans, events, true);
      if (other && (!found || other->level().score > found->level().score)) found = std::move(other);
    }
    if (found) all.push_back(std::move(*found));
  }
  return all;
}

std::vector<int64_t> starts_of(const Spans& spans, const Rows& rows) {
  std::vector<int64_t> times;
  for (const int64_t row : rows) times.push_back(spans.starts_ns[size_t(row)]);
  return times;
}

// Whether two lists of rows mark the same iterations: the same number, give or take one, over their common time.
bool agree(const Spans& spans, const Rows& marks, const Found& found) {
  std::vector<int64_t> one = starts_of(spans, marks);
  const std::vector<int64_t> other = starts_of(spans, found.rows);
  if (found.events->begins_before)  // what came before it is not known
    std::erase_if(one, [&](int64_t ns) { return ns < found.events->starts_ns.front(); });
  if (one.size() < 2 || other.size() < 2) return false;
  const int64_t low = std::max(one.front(), other.front()), high = std::min(one.back(), other.back());
  const auto between = [&](const std::vector<int64_t>& times) {
    return std::ranges::subrange(std::ranges::lower_bound(times, low), std::ranges::upper_bound(times, high));
  };
  const auto common = low <= high ? between(one) : std::ranges::subrange(one.end(), one.end());
  const auto of_other = low <= high ? between(other) : std::ranges::subrange(other.end(), other.end());
  const auto outside = double(one.size() - common.size());
  if (outside > std::max(2.0, kOutside * double(one.size()))) return false;
  if (std::abs(int64_t(common.size()) - int64_t(of_other.size())) > 1) return false;
  if (common.size() < 2) return true;
  const auto inside = trips<int64_t>(std::span(common.begin(), common.end()), other);
  return double(std::ranges::count(inside, 1u)) >= kAlternate * double(inside.size());
}

int64_t lasts_ns(const Spans& spans, const Rows& rows) {
  return spans.starts_ns[size_t(rows.back())] - spans.starts_ns[size_t(rows.front())];
}

// Whether a loop of which the iterations were recorded takes as much of the time as a main loop does.
bool lasts(const Spans& spans, const Found& found) {
  const std::vector<int64_t> times = without_silence(spans.starts_ns);
  return double(times[size_t(found.rows.back())] - times[size_t(found.rows.front())]) >=
         kLeastOfTime * double(times.back());
}

// Where a loop only repeats what it does (`for _ in range(substeps)`), the iterations of the loop around it are the
// steps. That one calls nothing else; the recorder has marked its iterations (python/loops).
std::optional<Beginning> beginning_around(const Spans& spans, const Found& found, std::span<const Events> sequences) {
  if (!spans.code_of) return {};
  int64_t holder = spans.parents[size_t(found.rows.front())];
  const SourceCode* code = spans.code_of(found.rows.front());
  // What marks the steps may lie in iterations of the inner loop that were recorded themselves.
  for (; holder >= 0 && code; holder = spans.parents[size_t(holder)]) {
    const SourceCode* around = spans.code_of(holder);
    if (!around || !around->is_loop) break;
    code = around;
  }
  if (!code) return {};
  const auto events = std::ranges::find(sequences, SequenceKind::loops, &Events::kind);
  if (events == sequences.end()) return {};
  const uint32_t own = code->is_loop ? code->loops.own() : 0;
  std::vector<int64_t> each_ns = starts_of(spans, found.rows);
  std::adjacent_difference(each_ns.begin(), each_ns.end(), each_ns.begin());
  each_ns.erase(each_ns.begin());  // a moment
  const bool short_rows = is_short(std::move(each_ns));
  bool short_items = false;
  const auto is_around = [&](int64_t row) {
    const SourceCode* loop = spans.code_of(row);
    if (!loop || loop == code || spans.parents[size_t(row)] != holder) return false;
    const SourceLoops::Inner inner = loop->loops.inner_of(loop->loops.own(), code->name, own);
    short_items |= inner == SourceLoops::Inner::unpacks && short_rows;
    return inner == SourceLoops::Inner::repeats || short_items;
  };
  Beginning beginning;
  std::ranges::copy_if(events->rows, std::back_inserter(beginning.rows), is_around);
  if (beginning.rows.size() < kFewestAround) return {};
  const auto repeated = trips<int64_t>(beginning.rows, found.rows);
  const uint32_t most_of_it = short_items ? UINT32_MAX : most_repeated;
  const auto fits = std::ranges::count_if(repeated, [=](uint32_t n) { return n > 1 && n <= most_of_it; });
  if (double(fits) < kAlternate * double(repeated.size())) return {};
  beginning.with = beginning.rows.front();
  // The first iteration is marked within the loop: before, nobody knows what that does.
  const auto [fewest, most] = std::ranges::minmax(std::span(repeated).subspan(1));
  beginning.source = "each is an iteration of the " + spans.code_of(beginning.with)->name +
                     (short_items ? ", which goes through " : ", which repeats something ") + std::to_string(fewest) +
                     (most > fewest ? " to " + std::to_string(most) : std::string()) +
                     (short_items ? " items" : " times");
  return beginning;
}

// Whether another sequence has the same steps and marks each of them earlier: calls that make a batch come before the
// first operator that works with it. Where the beginning is not known, each mark is before one and behind another.
bool begins_earlier(const Spans& spans, const Found& found, const Found& than) {
  return !found.events->begins_before && !than.events->begins_before && found.rows.front() < than.rows.front() &&
         !than.step.beginning && agree(spans, than.rows, found);
}

// Whether the steps of one loop are calls of a model, each of which holds several iterations of another loop: these are
// its layers, or the tokens that it makes, and never steps.
bool are_calls_of_a_model(const Spans& spans, const Found& found, const Found& inner) {
  const std::string name = spans.name_of(found.rows.front());
  if (found.rows.size() < kFewestAround || !(name.starts_with("nn.Module: ") || name.ends_with(".forward")))
    return false;
  const auto inside = trips<int64_t>(found.rows, inner.rows);
  const auto several = std::ranges::count_if(inside, [](uint32_t n) { return n > 1; });
  if (double(several) < kAlternate * double(inside.size())) return false;
  const auto held = std::ranges::count_if(inner.rows, [&](int64_t row) {
    while (row >= 0 && !std::ranges::binary_search(found.rows, row)) row = spans.parents[size_t(row)];
    return row >= 0;
  });
  return double(held) >= kAlternate * double(inner.rows.size());
}

// The anchors of a loop of which nothing else is known, and the level around them.
void find_level_around(const Events& events, const Anchor& anchor, Decision& decision) {
  std::vector<uint32_t> at;
  for (const int64_t row : anchor.rows)
    at.push_back(uint32_t(std::ranges::lower_bound(events.rows, row) - events.rows.begin()));
  if (anchor.kind == LoopKind::optimizer) {
    decision.group = updates_per_step(events.ids, at, anchor.waits);
    if (const uint32_t group = decision.group; group > 1) {
      decision.per_iteration = group;
      decision.rows.clear();
      for (size_t i = 0; i < anchor.rows.size(); ++i)
        if ((anchor.before + i + 1) % group == 0) decision.rows.push_back(anchor.rows[i]);
      return;
    }
  }
  const Level* level = innermost_with(at, decision.levels);
  if (!level) return;
  decision.level = size_t(level - decision.levels.data());
  const auto within = trips<uint32_t>(std::vector{level->positions.front(), level->positions.back() + 1}, at);
  const double seen = within[0], count = level->count;
  if (std::abs(seen - count) <= std::max(1.0, kAsMany * seen)) return;
  decision.per_iteration = seen / count;
  // The last anchor of each iteration ends it.
  decision.rows.clear();
  size_t next = 0;
  for (const uint32_t begin : level->positions) {
    const size_t before = next;
    while (next < at.size() && at[next] < begin) ++next;
    if (next > before) decision.rows.push_back(anchor.rows[next - 1]);
  }
  if (next < at.size()) decision.rows.push_back(anchor.rows.back());
}

// A loop that the program marks itself: the structure only confirms it or not.
void explain_marked(const Anchor& anchor, std::span<const Found> all, Decision& decision) {
  std::string name(anchor.name);
  while (name.ends_with('#')) name.pop_back();
  decision.confidence = "high";
  decision.reason = "the program marks its steps itself (" + name + ")";
  if (!decision.agreeing.empty() || all.empty() || decision.rows.empty()) return;
  const Found& best = *std::ranges::max_element(all, {}, [](const Found& each) { return each.level().score; });
  const auto inside = std::ranges::count_if(
      best.rows, [&](int64_t row) { return row >= decision.rows.front() && row <= decision.rows.back(); });
  if (inside)
    decision.reason +=
        text("; by its structure alone the loop has %lld iteration%s where %zu %s marked", (long long)inside,
             inside == 1 ? "" : "s", decision.rows.size(), decision.rows.size() == 1 ? "is" : "are");
  else
    decision.reason += "; by its structure alone the loop lies outside of the marks";
  if (anchor.kind != LoopKind::hint) decision.confidence = "medium";
}

}  // namespace

std::vector<int64_t> without_silence(std::span<const int64_t> times_ns) {
  std::vector<int64_t> out(times_ns.size());
  if (times_ns.empty()) return out;
  const int64_t most = (times_ns.back() - times_ns.front()) / 100;
  for (size_t i = 1; i < times_ns.size(); i++) out[i] = out[i - 1] + std::min(times_ns[i] - times_ns[i - 1], most);
  return out;
}

bool is_step_rather(LoopKind kind, const AnchorTimes& one, const AnchorTimes& other) {
  if (kind == LoopKind::data_wait || other.first_ns >= one.last_ns || one.first_ns >= other.last_ns)
    return other.lasts_ns() > one.lasts_ns();
  return other.count < one.count + (kind == LoopKind::optimizer);
}

Decision decide_anchored(const Spans& spans, std::span<const Events> sequences, const Anchor& anchor) {
  Decision decision;
  decision.rows.assign(anchor.rows.begin(), anchor.rows.end());
  std::vector<Found> all = all_found(spans, sequences);
  const auto own = std::ranges::find(sequences, SequenceKind::operators, &Events::kind);
  const bool marked = anchor.kind == LoopKind::hint || anchor.kind == LoopKind::range;
  if (own != sequences.end()) {
    const auto same = std::ranges::find(all, SequenceKind::operators, [](const Found& f) { return f.events->kind; });
    // A pair of iterations is no level of the sequence.
    std::vector<int64_t> own_times;
    decision.levels =
        same != all.end() && !same->step.pair ? same->levels : find_levels(own->ids, times_of(*own, own_times), {});
    if (!marked) find_level_around(*own, anchor, decision);
  }
  for (const Found& found : all)
    if (agree(spans, decision.rows, found)) decision.agreeing.push_back(found.events->kind);
  if (marked) {
    explain_marked(anchor, all, decision);
    return decision;
  }
  decision.confidence = "medium";
  const std::string name(anchor.name);
  if (decision.group > 1) {
    decision.reason = text("%u updates of ", decision.group) + name + " in turn make a step";
  } else if (decision.level == Decision::no_level) {
    decision.reason = "one step per " + name + "; nothing else repeats with it";
  } else if (decision.per_iteration != 1) {
    decision.reason =
        name + text(" runs %.1f times in each iteration of the innermost loop around it", decision.per_iteration);
  } else {
    decision.reason = "one step per " + name +
                      text("; %.0f other events and transitions repeat with it", decision.levels[decision.level].spine);
    // Only where two sequences agree is a step certain.
    const auto other = std::ranges::find_if(all, [&](const Found& found) {
      return found.events->kind != SequenceKind::operators && !found.step.below && agree(spans, decision.rows, found);
    });
    if (other != all.end()) {
      decision.confidence = "high";
      decision.reason +=
          std::string(", and the ") + sequence_kind_name(other->events->kind) + " alone have the same steps";
    }
  }
  return decision;
}

std::optional<Decision> decide_by_structure(const Spans& spans, std::span<const Events> sequences) {
  std::vector<Found> choices, loops;
  for (Found& found : all_found(spans, sequences)) {
    if (found.events->kind != SequenceKind::loops)
      choices.push_back(std::move(found));
    else if (lasts(spans, found))
      loops.push_back(std::move(found));
  }
  if (choices.empty() && loops.empty()) return {};
  const auto best_of = [](std::vector<Found>& all) {
    // Calls of MPI are also among those of functions, where functions were recorded: alone they know less.
    const auto rank = [](const Found& f) {
      return std::tuple(f.step.enclosing, f.events->kind != SequenceKind::mpi, f.level().score);
    };
    return std::ranges::max_element(all, [&](const Found& a, const Found& b) { return rank(a) < rank(b); });
  };
  if (!loops.empty() && (choices.empty() || double(lasts_ns(spans, best_of(choices)->rows)) <
                                                kMostOfIts * double(lasts_ns(spans, loops[0].rows))))
    choices = std::move(loops);
  auto best = best_of(choices);
  for (auto each = choices.begin(); each != choices.end(); ++each)
    if (begins_earlier(spans, *each, *best) || are_calls_of_a_model(spans, *each, *best)) best = each;
  if (auto around = beginning_around(spans, *best, sequences)) {
    best->rows = around->rows;
    best->step.beginning = std::move(around);
    best->step.promotion.clear();
    best->step.confidence = "medium";
    Sequence sequence;
    sequence.parents = spans.parents, sequence.code_of = spans.code_of;
    const int64_t holder = spans.parents[size_t(best->rows.front())];
    best->step.outermost = holder >= 0 && !lies_in_a_loop(sequence, holder);
  }
  Decision decision;
  for (const Found& found : choices)
    if (&found == &*best || agree(spans, best->rows, found)) decision.agreeing.push_back(found.events->kind);
  const bool disagree = decision.agreeing.size() < choices.size();
  const std::string source = best->step.beginning ? best->step.beginning->source : std::string();
  decision.reason = "no framework marks steps here; ";
  decision.reason += source.empty() ? text("%.0f events and transitions repeat %zu times, beginning with ",
                                           best->level().spine, best->rows.size()) +
                                          spans.name_of(best->rows.front())
                                    : source;
  if (!best->step.promotion.empty()) decision.reason += " (" + best->step.promotion + ")";
  if (disagree) decision.reason += "; another sequence of events has other steps";
  decision.confidence = disagree && source.empty() ? "low" : best->step.confidence;
  decision.sequence = best->events->kind;
  decision.without_peer = best->without_peer;
  decision.level = best->step.level;
  decision.rows = std::move(best->rows);
  decision.levels = std::move(best->levels);
  decision.step = std::move(best->step);
  return decision;
}

}  // namespace strobe::structure
