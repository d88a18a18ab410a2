#include "structure/detector.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "structure/occurrences.h"
#include "structure/update_groups.h"

namespace strobe::structure {

namespace {

constexpr uint64_t kFirstAnchors = 5;     // occurrences of an anchor before the first analysis; then times 1.4
constexpr uint64_t kLoaderAlone = 64;     // batches without an update after which a loader is believed in a training
constexpr uint32_t kLeastIterations = 5;  // of a level
constexpr double kLeastCoverage = 0.3;    // share of the window's time
constexpr int64_t kLeastNs = 5000000000;  // that a loop without anchors lasts before it is believed ...
constexpr int64_t kLeastInSourceNs = 1000000000;  // ... if its source shows that none is around it ...
constexpr int64_t kPause = 10;      // ... where a longer interval than so many usual ones counts as so many
constexpr double kSame = 0.9;       // share of a level's intervals in which the mark of the same level lies once
constexpr int kAliveIntervals = 3;  // longest intervals since the last iteration

std::vector<int64_t> without_silence(std::span<const int64_t> times) {
  // A pause counts as a hundredth of the whole at most: imports leave no events, and do not belong to a loop.
  std::vector<int64_t> out(times.size());
  if (times.empty()) return out;
  const int64_t most = (times.back() - times.front()) / 100;
  for (size_t i = 1; i < times.size(); i++) out[i] = out[i - 1] + std::min(times[i] - times[i - 1], most);
  return out;
}

template <class Positions>
std::vector<int64_t> times_at(const Positions& positions, std::span<const int64_t> times) {
  std::vector<int64_t> out;
  for (auto at : positions) out.push_back(times[at]);
  return out;
}

int64_t longest_interval(const std::vector<int64_t>& times) {
  int64_t longest = 0;
  for (size_t i = 1; i < times.size(); i++) longest = std::max(longest, times[i] - times[i - 1]);
  return longest;
}

// How long a loop has been running: an import between two iterations is not a part of it.
int64_t lasted_ns(const std::vector<int64_t>& times) {
  std::vector<int64_t> intervals;
  for (size_t i = 1; i < times.size(); i++) intervals.push_back(times[i] - times[i - 1]);
  const auto half = intervals.begin() + std::ptrdiff_t(intervals.size() / 2);
  std::ranges::nth_element(intervals, half);
  const int64_t most = kPause * *half;
  int64_t sum = 0;
  for (const int64_t each : intervals) sum += std::min(each, most);
  return sum;
}

std::string number(double value) {
  char text[32];
  snprintf(text, sizeof text, value == std::floor(value) ? "%.0f" : "%.1f", value);
  return text;
}

}  // namespace

uint32_t Detector::add_anchor(LoopKind kind, std::string_view name) {
  for (uint32_t i = 0; i < anchors_.size(); i++)
    if (anchors_[i].kind == kind && anchors_[i].name == name) return i;
  anchors_.push_back({kind, std::string(name)});
  return uint32_t(anchors_.size() - 1);
}

void Detector::set_anchor(uint32_t node, uint32_t anchor) {
  if (anchor_of_node_.size() <= node) anchor_of_node_.resize(node + 1, 0);
  anchor_of_node_[node] = anchor + 1;
}

void Detector::anchor_ended(uint32_t number, int64_t ns) {
  Anchor& anchor = anchors_[number];
  if (anchor.count++ == 0) anchor.first_ns = ns;
  anchor.last_ns = ns;
  if (anchor.kind == LoopKind::zero_grad || anchor.kind == LoopKind::optimizer) training_ = true;
  const uint32_t now = authority();
  if (!now) return;
  const bool stronger = !authority_ || anchors_[now - 1].kind < anchors_[authority_ - 1].kind;
  if (stronger) next_anchors_ = kFirstAnchors;  // what was learnt from a weaker anchor does not count
  authority_ = now;
  if (anchors_[now - 1].count >= next_anchors_) due_ = true;
}

// The anchor that decides, + 1; 0 without any: the first kind of which a name has been seen often enough.
uint32_t Detector::authority() const {
  // An update that is under way zeroes gradients each time that it looks at the loss (LBFGS).
  const bool updates = std::ranges::any_of(anchors_, [](const Anchor& a) { return a.kind == LoopKind::optimizer; });
  uint32_t best = 0;
  for (uint32_t i = 0; i < anchors_.size(); i++) {
    const Anchor& a = anchors_[i];
    const uint64_t least = a.kind == LoopKind::data_wait && training_ ? kLoaderAlone : kFirstAnchors;
    if (a.count < least || (a.kind == LoopKind::zero_grad && updates)) continue;
    if (!best || a.kind < anchors_[best - 1].kind) {
      best = i + 1;
    } else if (a.kind == anchors_[best - 1].kind) {
      const Anchor& b = anchors_[best - 1];
      // A loader of its own for validation is rarer, but not the step. Of two updates in turn the last one ends it.
      const bool better = a.kind == LoopKind::data_wait ? a.last_ns - a.first_ns > b.last_ns - b.first_ns
                                                        : a.count < b.count + (a.kind == LoopKind::optimizer);
      if (better) best = i + 1;
    }
  }
  return best;
}

// The window with its oldest event first: it is turned in place, not copied.
const Detector::Window& Detector::in_order(Window& window) {
  const auto turn = [&](auto& column) {
    if (!column.empty()) std::rotate(column.begin(), column.begin() + std::ptrdiff_t(window.oldest), column.end());
  };
  turn(window.ids), turn(window.times), turn(window.depths), turn(window.waited);
  window.oldest = 0;
  return window;
}

std::optional<Choice> Detector::choose(int64_t now_ns) {
  std::optional<Choice> choice;
  if (const uint32_t anchor = authority()) {
    choice = choose_anchored(anchors_[anchor - 1], anchor - 1);
  } else if (training_) {
    return {};  // updates are on their way
  } else {
    choice = choose_by_structure();
  }
  if (!choice || choice->times_ns.size() < kLeastIterations) return {};
  choice->longest_ns = longest_interval(choice->times_ns);
  if (now_ns - choice->times_ns.back() > kAliveIntervals * choice->longest_ns) return {};
  return choice;
}

std::optional<Choice> Detector::choose_anchored(const Anchor& anchor, uint32_t number_of_anchor) {
  Choice choice;
  choice.kind = anchor.kind;
  choice.anchor = number_of_anchor;
  choice.iterations = anchor.count;
  choice.among_operators = true;
  auto is_anchor = [&](uint32_t node) {
    return node < anchor_of_node_.size() && anchor_of_node_[node] == number_of_anchor + 1;
  };
  auto positions_in = [&](const Window& events) {
    std::vector<uint32_t> at;
    for (uint32_t i = 0; i < events.ids.size(); i++)
      if (is_anchor(events.ids[i])) at.push_back(i);
    return at;
  };
  const Window& events = in_order(operators_);
  const std::vector<uint32_t> at = positions_in(events);
  choice.times_ns = times_at(at, events.times);
  if (anchor.kind == LoopKind::hint || anchor.kind == LoopKind::range) {
    if (at.empty()) {
      const Window& calls = in_order(calls_);
      choice.times_ns = times_at(positions_in(calls), calls.times);
    }
    choice.confidence = "high";
    choice.reason = "the program marks its steps itself (" + anchor.name + ")";
    return choice;
  }
  choice.confidence = "medium";
  std::vector<uint32_t> waits;
  for (uint32_t node = 0; node < anchor_of_node_.size(); node++)
    if (anchor_of_node_[node] && anchors_[anchor_of_node_[node] - 1].kind == LoopKind::data_wait) waits.push_back(node);
  choice.group = anchor.kind == LoopKind::optimizer ? updates_per_step(events.ids, at, waits) : 1;
  if (choice.group == 0) return {};
  if (choice.group > 1) {
    choice.per_iteration = choice.group;
    choice.iterations = anchor.count / choice.group;
    std::vector<int64_t> times;
    for (size_t i = 0; i < at.size(); i++)
      if ((anchor.count + i + 1 - at.size()) % choice.group == 0) times.push_back(choice.times_ns[i]);
    choice.times_ns = std::move(times);
    choice.reason = number(choice.group) + " updates of " + anchor.name + " in turn make a step";
    return choice;
  }
  const std::vector<Level> levels = find_levels(events.ids, without_silence(events.times), {3, 64});
  const Level* level = innermost_with(at, levels);
  if (!level) {
    choice.reason = "one step per " + anchor.name + "; nothing else repeats with it";
    return choice;
  }
  const auto first = std::ranges::lower_bound(at, level->positions.front());
  const auto last = std::ranges::upper_bound(at, level->positions.back());
  const double seen = double(last - first), count = level->count;
  if (std::abs(seen - count) <= std::max(1.0, 0.1 * seen)) {
    if (std::abs(seen - count) <= 1) choice.confidence = "high";
    choice.reason = "one step per " + anchor.name + "; " + number(std::floor(level->spine)) +
                    " other events and transitions repeat with it";
    return choice;
  }
  choice.by_level = true;
  choice.marker = level->marker;
  choice.per_iteration = seen / count;
  choice.iterations = level->count;
  choice.times_ns = times_at(level->positions, events.times);
  char times[32];
  snprintf(times, sizeof times, "%.1f", choice.per_iteration);
  choice.reason = anchor.name + " runs " + times + " times in each iteration of the innermost loop around it";
  return choice;
}

// Both windows are in order.
Detector::Nest Detector::nest() const {
  const size_t calls = calls_.ids.size(), operators = operators_.ids.size();
  Nest nest;
  nest.parents.reserve(calls + operators);
  nest.nodes.reserve(calls + operators);
  nest.times.reserve(calls + operators);
  nest.calls.reserve(calls);
  nest.operators.reserve(operators);
  const auto is_call = [&](size_t call, size_t other) {
    if (call == calls || other == operators) return call < calls;
    const int64_t ns = calls_.times[call], other_ns = operators_.times[other];
    return ns != other_ns ? ns < other_ns : calls_.depths[call] < operators_.depths[other];
  };
  std::vector<std::pair<uint16_t, int64_t>> open;  // depth, row
  while (nest.parents.size() < calls + operators) {
    const bool call = is_call(nest.calls.size(), nest.operators.size());
    std::vector<int64_t>& rows = call ? nest.calls : nest.operators;
    const uint16_t depth = (call ? calls_ : operators_).depths[rows.size()];
    nest.nodes.push_back((call ? calls_ : operators_).ids[rows.size()]);
    nest.times.push_back((call ? calls_ : operators_).times[rows.size()]);
    while (!open.empty() && open.back().first >= depth) open.pop_back();
    rows.push_back(int64_t(nest.parents.size()));
    nest.parents.push_back(open.empty() ? -1 : open.back().second);
    open.emplace_back(depth, rows.back());
  }
  return nest;
}

std::optional<Choice> Detector::choose_by_structure() {
  const Window &calls = in_order(calls_), &operators = in_order(operators_);
  const Nest nested = nest();
  const SequenceKind of_calls = functions_seen_ ? SequenceKind::calls : SequenceKind::mpi;
  auto choice = choose_by_structure(some_of(calls, of_calls, nested.calls), nested);
  auto other = choose_by_structure(some_of(operators, SequenceKind::operators, nested.operators), nested);
  // Calls of MPI alone know less.
  const auto rank = [&](const Choice& c) {
    return std::tuple(c.enclosing, c.among_operators || functions_seen_, c.score);
  };
  if (other && (!choice || rank(*other) > rank(*choice))) choice = std::move(other);
  if (!functions_seen_) return choice;
  auto loop = choose_by_structure(some_of(calls, SequenceKind::loops, nested.calls), nested);
  const auto lasted = [](const Choice& c) { return double(c.times_ns.back() - c.times_ns.front()); };
  if (loop && (!choice || lasted(*choice) < kMostOfIts * lasted(*loop))) choice = std::move(loop);
  return choice;
}

Detector::Events Detector::some_of(const Window& window, SequenceKind kind, const std::vector<int64_t>& rows) const {
  Events events{kind, window.ids.size() == kWindow, {}, {}, {}, {}, {}, {}, {}};
  const auto is_iteration = [&](uint32_t node) { return node < iterations_.size() && iterations_[node]; };
  const bool of_loops = kind == SequenceKind::loops;
  if (std::ranges::none_of(window.ids, is_iteration)) {
    if (of_loops) return events;
    events.ids = window.ids, events.times = window.times, events.rows = rows;
    if (kind == SequenceKind::mpi) events.waited = window.waited;
    return events;
  }
  for (size_t i = 0; i < window.ids.size(); ++i) {
    if (is_iteration(window.ids[i]) != of_loops) continue;
    events.some_ids.push_back(window.ids[i]), events.some_times.push_back(window.times[i]);
    events.some_rows.push_back(rows[i]);
  }
  events.ids = events.some_ids, events.times = events.some_times, events.rows = events.some_rows;
  return events;
}

std::optional<Choice> Detector::choose_by_structure(const Events& events, const Nest& nest) const {
  if (events.ids.empty()) return {};
  const std::vector<int64_t> times = without_silence(events.times);
  const Occurrences items(events.ids, 2);
  const std::vector<Level> levels = find_levels(items, times, {});
  const bool operators = events.kind == SequenceKind::operators;
  const auto step =
      choose_step({.kind = events.kind,
                   .ids = events.ids,
                   .starts_ns = events.times,
                   .times_ns = times,
                   .waited_ns = events.waited,
                   .rows = events.rows,
                   .parents = nest.parents,
                   .begins_before = events.begins_before,
                   .goes_on = true,
                   .items = &items,
                   .code_of = [&](int64_t row) { return code_of_ ? code_of_(nest.nodes[size_t(row)]) : nullptr; }},
                  levels);
  if (!step) return {};
  const Level& chosen = step->of(levels);
  if (chosen.coverage < kLeastCoverage) return {};
  if (events.kind == SequenceKind::loops) {
    const std::vector<int64_t> all = without_silence(nest.times);
    const auto at = [&](uint32_t position) { return double(all[size_t(events.rows[position])]); };
    if (at(chosen.positions.back()) - at(chosen.positions.front()) < kLeastOfTime * double(all.back())) return {};
  }
  Choice choice;
  choice.by_level = true;
  choice.among_operators = operators;
  choice.marker = chosen.marker;
  choice.iterations = chosen.count;
  choice.times_ns = times_at(chosen.positions, events.times);
  if (const auto& beginning = step->beginning) {
    choice.marker = {.target = nest.nodes[size_t(beginning->with)]};
    choice.among_operators = std::ranges::binary_search(nest.operators, beginning->with);
    choice.marks = beginning->marks;
    for (const int64_t row : beginning->in_front) choice.in_front.push_back(nest.nodes[size_t(row)]);
    choice.iterations = beginning->rows.size();
    choice.times_ns = times_at(beginning->rows, nest.times);
  }
  choice.enclosing = step->enclosing;
  choice.score = chosen.score;
  choice.confidence = step->confidence;
  choice.reason = "no framework marks steps here; " + number(std::floor(chosen.spine)) +
                  " events and transitions repeat " + std::to_string(chosen.count) + " times";
  choice.in_source = step->outermost;
  if (step->beginning) choice.reason = "no framework marks steps here; " + step->beginning->source;
  if (!step->promotion.empty()) choice.reason += " (" + step->promotion + ")";
  return choice;
}

std::vector<uint32_t> Detector::occurrences(const Choice& choice) const {
  const Window& events = choice.among_operators ? operators_ : calls_;
  const Item& item = choice.marker;
  std::vector<uint32_t> at;
  for (uint32_t i = 0; i < events.ids.size(); i++)
    if (events.ids[i] == item.target && (item.is_node() || (i > 0 && events.ids[i - 1] == item.source)))
      at.push_back(i);
  return at;
}

// Levels are compared by what marks them: the one's item occurs once in nearly each iteration of the other, too.
bool Detector::agree(const Choice& a, const Choice& b) {
  if (a.kind != b.kind || a.anchor != b.anchor || a.by_level != b.by_level || a.group != b.group ||
      a.marks.every != b.marks.every)
    return false;
  if (!a.by_level) return true;
  if (std::abs(a.per_iteration - b.per_iteration) > 0.1 * b.per_iteration || a.among_operators != b.among_operators)
    return false;
  const auto earlier = occurrences(a), later = occurrences(b);
  if (later.size() < 2) return false;
  const auto counts = trips<uint32_t>(later, earlier);
  return double(std::ranges::count(counts, 1u)) >= kSame * double(counts.size());
}

// Which of two nested levels is the step is often known from where their loop begins: what was decided then stays,
// while each iteration of the one holds the same number of the other and the beginning has left the window.
bool Detector::decided_earlier(const Choice& believed, const Choice& now) {
  if (!believed.by_level || !now.by_level || believed.among_operators != now.among_operators) return false;
  auto outer = occurrences(believed), inner = occurrences(now);
  if (outer.size() > inner.size()) std::swap(outer, inner);
  if (outer.size() < 2 || (now.among_operators ? operators_ : calls_).ids.size() < kWindow) return false;
  uint32_t longest = 0;
  for (size_t i = 0; i + 1 < inner.size(); i++) longest = std::max(longest, inner[i + 1] - inner[i]);
  const auto [fewest, most] = std::ranges::minmax(trips<uint32_t>(outer, inner));
  return inner.front() <= longest && fewest > 0 && most - fewest <= 1;
}

std::optional<Choice> Detector::analyse(int64_t now_ns) {
  due_ = false;
  // At 512 * 1.5^i events, later every two windows: the cost per event stays bounded. A loop that is believed in
  // already is looked at at growing distances.
  const uint64_t step = std::min<uint64_t>(std::max<uint64_t>(events_ / 2, 256), 2 * uint64_t{kWindow});
  next_events_ = events_ + (believed_ ? std::max(events_, step) : step);
  if (const uint32_t anchor = authority(); anchor && anchors_[anchor - 1].count >= next_anchors_) {
    const double growth = believed_ ? 4.0 : 1.4;
    next_anchors_ = std::max(next_anchors_ + 2, uint64_t(double(anchors_[anchor - 1].count) * growth));
  } else if (anchor && !believed_) {
    return {};  // the next anchors decide when
  }
  std::optional<Choice> now = choose(now_ns);
  const bool agreed = now && last_ && agree(*last_, *now);
  last_ = now;
  const int64_t least_ns = !now || now->anchor != Choice::no_anchor ? 0 : now->in_source ? kLeastInSourceNs : kLeastNs;
  if (agreed && lasted_ns(now->times_ns) < least_ns) return {};
  if (!agreed || (believed_ && (agree(*believed_, *now) || decided_earlier(*believed_, *now)))) return {};
  return now;
}

void Detector::believe(const Choice* choice) {
  believed_ = choice ? std::optional(*choice) : std::nullopt;
  if (choice) return;
  last_.reset();
  next_events_ = events_ + 512;
  if (authority_) next_anchors_ = anchors_[authority_ - 1].count + 2;
}

std::vector<uint32_t> Detector::usage(std::span<const int64_t> times_ns) {
  std::vector<uint32_t> used, seen;
  for (Window* window : {&operators_, &calls_}) {
    const Window& events = in_order(*window);
    for (size_t i = 0; i < events.ids.size(); i++) {
      const auto interval = std::ranges::upper_bound(times_ns, events.times[i]) - times_ns.begin();
      if (interval == 0 || size_t(interval) == times_ns.size()) continue;
      const uint32_t node = events.ids[i];
      if (used.size() <= node) used.resize(node + 1, 0), seen.resize(node + 1, 0);
      if (seen[node] == uint32_t(interval)) continue;
      seen[node] = uint32_t(interval);
      used[node]++;
    }
  }
  return used;
}

}  // namespace strobe::structure
