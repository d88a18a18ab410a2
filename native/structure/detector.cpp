#include "structure/detector.h"
#include "structure/region_names.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace strobe::structure {

namespace {

constexpr uint64_t kFirstAnchors = 5;     // occurrences of an anchor before the first analysis; then times 1.4
constexpr uint64_t kLoaderAlone = 64;     // batches without an update after which a loader is believed in a training
constexpr uint32_t kLeastIterations = 5;  // of a level
constexpr double kLeastCoverage = 0.3;    // share of the window's time
constexpr int64_t kLeastInSourceNs = 1000000000;  // as kLeastNs, if its source shows that none is around it ...
constexpr int64_t kPause = 10;      // ... where a longer interval than so many usual ones counts as so many
constexpr double kSame = 0.9;       // share of a level's intervals in which the mark of the same level lies once
constexpr int kAliveIntervals = 3;  // longest intervals since the last iteration

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
int64_t lasted_ns(std::span<const int64_t> times) {
  if (times.size() < 2) return 0;
  std::vector<int64_t> intervals;
  for (size_t i = 1; i < times.size(); i++) intervals.push_back(times[i] - times[i - 1]);
  const auto half = intervals.begin() + std::ptrdiff_t(intervals.size() / 2);
  std::ranges::nth_element(intervals, half);
  const int64_t most = kPause * *half;
  int64_t sum = 0;
  for (const int64_t each : intervals) sum += std::min(each, most);
  return sum;
}

}  // namespace

uint32_t Detector::add_anchor(LoopKind kind, std::string_view name) {
  for (uint32_t i = 0; i < anchors_.size(); i++)
    if (anchors_[i].kind == kind && anchors_[i].name == name) return i;
  anchors_.push_back({kind, std::string(name), {}});
  return uint32_t(anchors_.size() - 1);
}

void Detector::set_anchor(uint32_t node, uint32_t anchor) { known_of(node).anchor = anchor + 1; }

void Detector::anchor_ended(uint32_t number, int64_t ns) {
  NamedAnchor& anchor = anchors_[number];
  if (anchor.times.count++ == 0) anchor.times.first_ns = ns;
  anchor.times.last_ns = ns;
  if (anchor.kind == LoopKind::zero_grad || anchor.kind == LoopKind::optimizer) training_ = true;
  const uint32_t now = authority();
  if (!now) return;
  const bool stronger = !authority_ || anchors_[now - 1].kind < anchors_[authority_ - 1].kind;
  if (stronger) next_anchors_ = kFirstAnchors;  // what was learnt from a weaker anchor does not count
  authority_ = now;
  if (anchors_[now - 1].times.count >= next_anchors_) due_ = true;
}

// The anchor that decides, + 1; 0 without any: the first kind of which a name has been seen often enough.
uint32_t Detector::authority() const {
  // An update that is under way zeroes gradients each time that it looks at the loss (LBFGS).
  const bool updates =
      std::ranges::any_of(anchors_, [](const NamedAnchor& a) { return a.kind == LoopKind::optimizer; });
  const bool engine = std::ranges::any_of(
      anchors_, [](const NamedAnchor& a) { return a.kind == LoopKind::range && !is_profiler_step(a.name); });
  uint32_t best = 0;
  for (uint32_t i = 0; i < anchors_.size(); i++) {
    const NamedAnchor& a = anchors_[i];
    const uint64_t least = a.kind == LoopKind::data_wait && training_ ? kLoaderAlone : kFirstAnchors;
    if (a.times.count < least || (a.kind == LoopKind::zero_grad && updates)) continue;
    if (engine && is_profiler_step(a.name)) continue;  // what an engine calls a step counts more
    const NamedAnchor* b = best ? &anchors_[best - 1] : nullptr;
    if (!b || a.kind < b->kind || (a.kind == b->kind && is_step_rather(a.kind, b->times, a.times))) best = i + 1;
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
  const uint32_t anchor = authority();
  if (!anchor && training_) return {};  // updates are on their way
  in_order(calls_), in_order(operators_);
  const Nest nested = nest();
  const std::deque<OwnEvents> own = sequences(nested);
  std::vector<Events> all;
  for (const OwnEvents& each : own) all.push_back(each.events);
  auto choice = anchor ? choose_anchored(anchor - 1, nested, all) : choose_by_structure(nested, all);
  if (!choice || choice->group == 0 || choice->times_ns.size() < kLeastIterations) return {};
  choice->longest_ns = longest_interval(choice->times_ns);
  if (now_ns - choice->times_ns.back() > kAliveIntervals * choice->longest_ns) return {};
  return choice;
}

Choice Detector::choose_anchored(uint32_t number, const Nest& nest, std::span<const Events> sequences) const {
  const NamedAnchor& anchor = anchors_[number];
  const auto is_anchor = [&](int64_t row) { return node(nest.nodes[size_t(row)]).anchor == number + 1; };
  std::vector<int64_t> rows;
  std::ranges::copy_if(nest.operators, std::back_inserter(rows), is_anchor);
  if (rows.empty()) std::ranges::copy_if(nest.calls, std::back_inserter(rows), is_anchor);
  std::vector<uint32_t> waits;
  for (uint32_t node = 0; node < nodes_.size(); node++)
    if (nodes_[node].anchor && anchors_[nodes_[node].anchor - 1].kind == LoopKind::data_wait) waits.push_back(node);
  const uint64_t before = anchor.times.count - std::min<uint64_t>(anchor.times.count, rows.size());
  const Decision decision = decide_anchored(spans(nest), sequences, {anchor.kind, anchor.name, rows, before, waits});
  Choice choice;
  choice.kind = anchor.kind;
  choice.anchor = number;
  choice.among_operators = true;
  choice.group = decision.group;
  choice.per_iteration = decision.per_iteration;
  choice.iterations = anchor.times.count / std::max(1u, decision.group);
  choice.times_ns = times_at(decision.rows, nest.times);
  choice.confidence = decision.confidence;
  choice.reason = decision.reason;
  if (decision.group == 1 && decision.per_iteration != 1) {
    const Level& level = decision.levels[decision.level];
    choice.by_level = true;
    choice.marker = level.marker;
    choice.iterations = level.count;
    const auto operators = std::ranges::find(sequences, SequenceKind::operators, &Events::kind);
    choice.times_ns = times_at(level.positions, operators->starts_ns);
  }
  return choice;
}

Spans Detector::spans(const Nest& nest) const {
  return {.starts_ns = nest.times,
          .parents = nest.parents,
          .code_of = [&](int64_t row) { return code_of_ ? code_of_(nest.nodes[size_t(row)]) : nullptr; },
          .name_of = [&](int64_t row) { return name_of_ ? name_of_(nest.nodes[size_t(row)]) : std::string(); }};
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

std::deque<Detector::OwnEvents> Detector::sequences(const Nest& nest) const {
  std::deque<OwnEvents> all;
  const auto add = [&](const Window& window, SequenceKind kind, const std::vector<int64_t>& rows, const auto& chosen) {
    std::vector<bool> chosen_ids(window.ids.empty() ? 0 : size_t{std::ranges::max(window.ids)} + 1);
    for (uint32_t id = 0; id < chosen_ids.size(); ++id) chosen_ids[id] = chosen(id);
    const auto is_chosen = [&](uint32_t id) { return bool(chosen_ids[id]); };
    if (std::ranges::none_of(window.ids, is_chosen)) return;
    OwnEvents& own = all.emplace_back();
    Events& events = own.events;
    const bool mpi = kind == SequenceKind::mpi;
    events = {kind, window.ids, rows, window.times, {}, {}, {}, window.ids.size() == kWindow, true};
    if (mpi) events.waited_ns = window.waited;  // of all, or none
    if (!std::ranges::all_of(window.ids, is_chosen)) {
      for (size_t i = 0; i < window.ids.size(); ++i) {
        if (!is_chosen(window.ids[i])) continue;
        own.ids.push_back(window.ids[i]), own.starts.push_back(window.times[i]), own.rows.push_back(rows[i]);
        if (mpi && !window.waited.empty()) own.waited.push_back(window.waited[i]);
      }
      events.ids = own.ids, events.rows = own.rows, events.starts_ns = own.starts, events.waited_ns = own.waited;
    }
    if (mpi) {
      for (const uint32_t id : events.ids) own.without_peer.push_back(any_peer(id));
      if (!std::ranges::equal(own.without_peer, events.ids)) events.without_peer = own.without_peer;
    }
  };
  // Calls of MPI are also among those of functions, where functions were recorded.
  const bool functions = std::ranges::any_of(calls_.ids, [&](uint32_t id) { return !node(id).mpi; });
  if (functions)
    add(calls_, SequenceKind::calls, nest.calls,
        [&](uint32_t id) { return !node(id).iteration && !(is_throttled_ && is_throttled_(id)); });
  add(operators_, SequenceKind::operators, nest.operators, [](uint32_t) { return true; });
  add(calls_, SequenceKind::mpi, nest.calls, [&](uint32_t id) { return node(id).mpi; });
  add(calls_, SequenceKind::loops, nest.calls, [&](uint32_t id) { return node(id).iteration; });
  return all;
}

std::optional<Choice> Detector::choose_by_structure(const Nest& nest, std::span<const Events> sequences) const {
  const auto decision = decide_by_structure(spans(nest), sequences);
  if (!decision || decision->levels[decision->level].coverage < kLeastCoverage) return {};
  const StepChoice& step = *decision->step;
  Choice choice;
  choice.by_level = true;
  choice.among_operators = decision->sequence == SequenceKind::operators;
  choice.without_peer = decision->without_peer;
  choice.marker = decision->levels[decision->level].marker;
  choice.iterations = decision->rows.size();
  choice.times_ns = times_at(decision->rows, nest.times);
  if (const auto& beginning = step.beginning) {
    const uint32_t node = nest.nodes[size_t(beginning->with)];
    choice.marker = {.target = choice.without_peer ? any_peer(node) : node};
    choice.among_operators = std::ranges::binary_search(nest.operators, beginning->with);
    choice.marks = beginning->marks;
    for (const int64_t row : beginning->in_front) choice.in_front.push_back(nest.nodes[size_t(row)]);
  }
  choice.enclosing = step.enclosing;
  choice.score = decision->levels[decision->level].score;
  choice.confidence = decision->confidence;
  choice.reason = decision->reason;
  choice.in_source = step.outermost;
  return choice;
}

std::vector<uint32_t> Detector::occurrences(const Choice& choice) const {
  const Window& events = choice.among_operators ? operators_ : calls_;
  const Item& item = choice.marker;
  const auto is = [&](uint32_t id, uint32_t wanted) { return (choice.without_peer ? any_peer(id) : id) == wanted; };
  std::vector<uint32_t> at;
  for (uint32_t i = 0; i < events.ids.size(); i++)
    if (is(events.ids[i], item.target) && (item.is_node() || (i > 0 && is(events.ids[i - 1], item.source))))
      at.push_back(i);
  return at;
}

// Levels are compared by what marks them: the one's item occurs once in nearly each iteration of the other, too.
bool Detector::agree(const Choice& a, const Choice& b) {
  if (a.kind != b.kind || a.anchor != b.anchor || a.by_level != b.by_level || a.group != b.group ||
      a.marks.every != b.marks.every || a.without_peer != b.without_peer)
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
  // At 512 * 1.5^i events, later every two windows: the cost per event stays bounded. Where few events come, at 5 s
  // * 1.25^i. A loop that is believed in already is looked at at growing distances.
  const uint64_t step = std::min<uint64_t>(std::max<uint64_t>(events_ / 2, 256), 2 * uint64_t{kWindow});
  next_events_ = events_ + (believed_ ? std::max(events_, step) : step);
  next_ns_ = believed_ ? INT64_MAX : std::max(began_ns_ + kLeastNs, now_ns + (now_ns - began_ns_) / 4);
  if (const uint32_t anchor = authority(); anchor && anchors_[anchor - 1].times.count >= next_anchors_) {
    const double growth = believed_ ? 4.0 : 1.4;
    next_anchors_ = std::max(next_anchors_ + 2, uint64_t(double(anchors_[anchor - 1].times.count) * growth));
  } else if (anchor && !believed_) {
    return {};  // the next anchors decide when
  }
  std::optional<Choice> now = choose(now_ns);
  const bool agreed = now && last_ && agree(*last_, *now);
  if (now) {
    // A window holds but milliseconds of a fast loop: it adds to those before, with what lay between and was not seen.
    const auto& times = now->times_ns;
    const auto fresh = agreed ? std::ranges::upper_bound(times, last_->times_ns.back()) : times.begin();
    const int64_t seen = lasted_ns({fresh, times.end()});
    const int64_t between = agreed && fresh != times.end() ? *fresh - last_->times_ns.back() : 0;
    lasted_ns_ = (agreed ? lasted_ns_ : 0) + seen + std::min(between, 2 * seen);
  }
  last_ = now;
  const int64_t least_ns = !now || now->anchor != Choice::no_anchor ? 0 : now->in_source ? kLeastInSourceNs : kLeastNs;
  if (agreed && lasted_ns_ < least_ns) return {};
  if (!agreed || (believed_ && (agree(*believed_, *now) || decided_earlier(*believed_, *now)))) return {};
  return now;
}

void Detector::believe(const Choice* choice) {
  believed_ = choice ? std::optional(*choice) : std::nullopt;
  if (choice) return;
  last_.reset();
  began_ns_ = 0;
  next_events_ = events_ + 512;
  if (authority_) next_anchors_ = anchors_[authority_ - 1].times.count + 2;
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
