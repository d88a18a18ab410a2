#include "structure/phases.h"

#include <algorithm>

namespace strobe::structure {

namespace {

constexpr int64_t kMaxCallNs = 100000;  // before a part begins: the call that leads to it
// Between two operators that change a parameter, where a program updates its parameters itself: `p -= rate * p.grad`.
constexpr size_t kMostBetweenUpdates = 2;

bool zeroes(const Activity& activity) { return activity.change == Change::zeroes; }

// The interval that [from, until) lies in.
const Interval* around(const std::vector<Interval>& intervals, int64_t from, int64_t until) {
  const auto after = std::ranges::upper_bound(intervals, from, {}, &Interval::start_ns);
  if (after == intervals.begin()) return nullptr;
  const Interval& last = *std::prev(after);
  return until <= last.end_ns ? &last : nullptr;
}

// Adds what is left of [from, until) without these calls to `pieces`; returns its length.
int64_t add_without(const std::vector<Interval>& calls, int64_t from_ns, int64_t until_ns,
                    std::vector<Interval>& pieces) {
  int64_t sum = 0;
  const auto add = [&](int64_t start_ns, int64_t end_ns) {
    if (end_ns <= start_ns) return;
    pieces.push_back({start_ns, end_ns});
    sum += end_ns - start_ns;
  };
  for (auto each = std::ranges::lower_bound(calls, from_ns, {}, &Interval::end_ns); each != calls.end(); ++each) {
    if (each->start_ns >= until_ns) break;
    add(from_ns, each->start_ns);
    from_ns = std::max(from_ns, each->end_ns);
  }
  add(from_ns, until_ns);
  return sum;
}

}  // namespace

void enclose(std::vector<Interval>& intervals, Interval outer) {
  while (!intervals.empty() && intervals.back().start_ns >= outer.start_ns) intervals.pop_back();
  intervals.push_back(outer);
}

size_t Work::first_since(int64_t ns) const {
  return size_t(std::ranges::lower_bound(activities, ns, {}, &Activity::start_ns) - activities.begin());
}

Part Work::last_before(size_t at, Part otherwise) const {
  while (at > 0 && (zeroes(activities[at - 1]) || activities[at - 1].part == kForward)) at--;
  return at > 0 ? activities[at - 1].part : otherwise;
}

// Where a run of operators ends that begins at `from` and changes parameters: others may come between, `apart` at most.
size_t Work::updates_end(size_t from, size_t until, size_t apart) const {
  size_t end = from;
  for (size_t i = from; i < until && i - end <= apart; i++)
    if (activities[i].change == Change::in_place) end = i + 1;
  return end;
}

// Calls between two times of functions that only some iterations call, that run no backward pass, and whose operators
// do not lead up to one: they wait for data of their own, or come first after an update.
std::vector<Interval> Work::validations(int64_t from_ns, int64_t until_ns) const {
  std::vector<Interval> found;
  for (auto each = std::ranges::lower_bound(rare, from_ns, {}, &Interval::start_ns); each != rare.end(); ++each) {
    if (each->start_ns >= until_ns) break;
    const size_t begin = first_since(each->start_ns), end = first_since(each->end_ns);
    bool passes = false, waits = false;
    for (size_t i = begin; i < end; i++)
      passes |= activities[i].part == kBackward, waits |= activities[i].part == kDataWait;
    size_t before = begin;  // averages of weights belong to the update
    while (before > 0 && activities[before - 1].change == Change::in_place) before--;
    const bool first =
        (before == 0 || activities[before - 1].part != kForward) && last_before(before, kRest) != kDataWait;
    if (!passes && (waits || first)) found.push_back(*each);
  }
  return found;
}

int64_t Work::in_hand(size_t low, size_t high, int64_t fed_ns, const std::vector<Interval>& validating) const {
  for (size_t i = low; i < high; i++) {
    const Activity& each = activities[i];
    if (around(validating, each.start_ns, each.end_ns) || around(unfed_validations, each.start_ns, each.end_ns))
      continue;
    if (each.part == kBackward || (each.part == kOptimizer && !zeroes(each))) break;
    if (!each.in_model) continue;
    const Interval* module = around(modules, each.start_ns, each.end_ns);
    return std::max(fed_ns, module ? module->start_ns : each.start_ns);
  }
  return fed_ns;
}

size_t Work::end_of_run(size_t from, size_t high) const {
  size_t end = from;
  while (end < high && activities[end].part == activities[from].part) end++;
  return end;
}

// What operators [from, until) are. `high`: the activities of the iteration end there. `before`: what came before them;
// `follows`: what comes after the iteration.
Work::Operators Work::operators(size_t from, size_t until, size_t high, Part before, Part follows) const {
  // Some updates run the backward pass (LBFGS, PyTorch Lightning): what comes after a pass, until gradients are zeroed
  // for the next one or to the end, is the update's own work.
  if (const Interval* closure = around(closures, activities[from].start_ns, activities[from].end_ns))
    if (before == kBackward &&
        (until == high || zeroes(activities[until]) || activities[until].start_ns >= closure->end_ns))
      return {kOptimizer, from};
  size_t next = until;
  while (next < high && (zeroes(activities[next]) || activities[next].part == kForward)) next++;
  const Part after = next < high ? activities[next].part : follows;
  const bool own = before == kBackward;  // no optimizer's step has come
  if (after == kBackward) {
    const bool updated = (own || before == kOptimizer) && !(from > 0 && zeroes(activities[from - 1]));
    return {kForward, updated ? updates_end(from, until, own ? 1 : 0) : from};
  }
  if (before == kDataWait) return {after == kOptimizer ? kForward : kValidation, from};
  if (before != kBackward && before != kOptimizer) return {kRest, from};
  if (own && after == kOptimizer) return {kOptimizer, from};  // gradients are clipped, scaled, reduced
  return {kRest, updates_end(from, until, own ? kMostBetweenUpdates : 0)};
}

std::vector<PartInterval> Work::split(int64_t start_ns, int64_t fed_ns, int64_t end_ns, Part before,
                                      Part follows) const {
  std::vector<PartInterval> found;
  fed_ns = std::min(fed_ns, end_ns);
  const size_t low = first_since(fed_ns), high = first_since(end_ns);
  if (fed_ns > start_ns) before = kDataWait;
  const std::vector<Interval> validating = trains ? validations(fed_ns, end_ns) : std::vector<Interval>();
  if (fed_ns > start_ns) found.push_back({start_ns, fed_ns, kDataWait, true});
  const int64_t in_hand_ns = in_hand(low, high, fed_ns, validating);
  int64_t last_ns = fed_ns;
  Part last = kRest;
  std::vector<Interval> pause;
  const auto add = [&](const Activity& activity, Part part) {
    const bool waits = part == kDataWait && activity.part == kDataWait;
    if (part != kValidation && last_ns < in_hand_ns) {
      const int64_t until_ns = std::min(activity.start_ns, in_hand_ns);
      pause.clear();
      add_without(rare, last_ns, until_ns, pause);
      for (const Interval& each : pause) found.push_back({each.start_ns, each.end_ns, kDataWait});
      last_ns = until_ns;
    }
    const bool whole =
        (part == kBackward && last == kBackward) || (part == kForward && around(modules, last_ns, activity.start_ns));
    pause.clear();
    int64_t pause_ns = activity.start_ns - last_ns;
    if (!whole && pause_ns >= kLeastCallNs)
      pause_ns = add_without(others, last_ns, activity.start_ns, pause);
    else if (pause_ns > 0)
      pause.push_back({last_ns, activity.start_ns});
    if (whole || pause_ns <= (part == last ? kMaxPauseNs : kMaxCallNs))
      for (const Interval& each : pause) found.push_back({each.start_ns, each.end_ns, part, waits});
    last_ns = std::min(activity.end_ns, end_ns);
    last = part;
    found.push_back({activity.start_ns, last_ns, part, waits});
  };
  for (size_t i = low; i < high;) {
    const Part part = activities[i].part;
    const size_t end = end_of_run(i, high);
    Operators run{part, i};
    if (trains && part == kForward) {
      run = operators(i, end, high, before, follows);
    } else if (trains && part == kDataWait && end < high && activities[end].part == kForward) {
      if (operators(end, end_of_run(end, high), high, part, follows).part == kValidation) run.part = kValidation;
    }
    const bool seeded = end < high && activities[end].part == kBackward && activities[end - 1].change == Change::seeds;
    for (; i < end; i++) {
      const bool seed = seeded && i + 1 == end;
      const Activity& each = activities[i];
      const bool validation =
          (part == kForward || part == kDataWait) &&
          (around(validating, each.start_ns, each.end_ns) || around(unfed_validations, each.start_ns, each.end_ns));
      const bool made = each.start_ns < in_hand_ns && part != kOptimizer && run.part != kValidation;
      add(each, validation            ? kValidation
                : seed                ? kBackward
                : i < run.updates_end ? kOptimizer
                : made                ? kDataWait
                                      : run.part);
      if (part != kForward && !zeroes(activities[i])) before = part;
    }
  }
  return found;
}

}  // namespace strobe::structure
