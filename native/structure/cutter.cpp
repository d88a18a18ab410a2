#include "structure/cutter.h"

#include <algorithm>

namespace strobe::structure {

void Cutter::begin(LoopKind kind, const Mark& before) {
  kind_ = kind;
  before_ = before;
  asked_.reset(), fed_.reset();
  usual_forward_ = 0;
  early_ = unfed_ = false;
}

void Cutter::add(const Activity& activity) {
  if (activity.part == kBackward) work_.trains = backward_here_ = true;
  if (activities_.size() >= kMost) {
    Activity& last = activities_.back();
    if (last.part == activity.part && activity.part != kDataWait) {
      last.end_ns = activity.end_ns;
      return;
    }
    drop(kMost / 2);
  }
  activities_.push_back(activity);
}

void Cutter::add_elsewhere(int64_t start_ns, int64_t end_ns) {
  work_.trains = true;
  if (!backward_here_ && elsewhere_.size() < kMost) elsewhere_.push_back({start_ns, end_ns});
}

void Cutter::add_call(Interval call, uint32_t path, bool of_module) {
  if (call.end_ns - call.start_ns < kLeastCallNs) return;
  if (calls_.size() < kMost) calls_.emplace_back(call, path);
  const bool idle = activities_.empty() || activities_.back().end_ns <= call.start_ns;
  if (!idle && !of_module) return;
  std::vector<Interval>& calls = of_module ? work_.modules : work_.others;
  if (calls.size() < kMost) enclose(calls, call);
}

void Cutter::add_closure(Interval update) {
  if (work_.closures.size() < kMost) enclose(work_.closures, update);
}

void Cutter::drop(size_t count) {
  dropped_ = work_.last_before(count, dropped_);
  activities_.erase(activities_.begin(), activities_.begin() + std::ptrdiff_t(count));
}

// Puts the backward pass of other threads into the pauses of this one; several threads at once count once.
void Cutter::merge_elsewhere() {
  std::ranges::sort(elsewhere_, {}, &Interval::start_ns);
  for (const Interval& each : elsewhere_) {
    const size_t at =
        size_t(std::ranges::upper_bound(activities_, each.start_ns, {}, &Activity::start_ns) - activities_.begin());
    const int64_t start = at ? std::max(each.start_ns, activities_[at - 1].end_ns) : each.start_ns;
    const int64_t end = at < activities_.size() ? std::min(each.end_ns, activities_[at].start_ns) : each.end_ns;
    if (end > start && activities_.size() < kMost)
      activities_.insert(activities_.begin() + std::ptrdiff_t(at), {start, end, UINT64_MAX, 0xFFFFFFFF, kBackward});
  }
  elsewhere_.clear();
}

size_t Cutter::forward_between(size_t low, size_t high) const {
  size_t n = 0;
  for (size_t i = low; i < high; i++) n += activities_[i].part == kForward;
  return n;
}

// At the end of an epoch, before the first batch of the next, a few operators run, too: those of the sampler and seed.
bool Cutter::like_a_forward(size_t operators) const {
  return usual_forward_ > 0 ? 3.0 * double(operators) >= usual_forward_ : operators > 0;
}

// First of the consecutive waits at the same place in the program that end with the one that feeds the iteration: at
// the end of an epoch the loader is asked in vain, and then asked again.
size_t Cutter::run_of_waits(size_t feeding, size_t lowest, bool anything) const {
  size_t first = feeding;
  for (size_t i = feeding; i-- > lowest;) {
    if (activities_[i].part != kDataWait) continue;
    const bool worked = anything ? first - i > 1 : like_a_forward(forward_between(i + 1, first));
    if (activities_[i].path != activities_[feeding].path || worked) break;
    first = i;
  }
  return first;
}

Cut Cutter::asked(size_t first, size_t feeding, int64_t since_ns) {
  feeding_path_ = activities_[feeding].path;
  const int64_t latest =
      feeding + 1 < activities_.size() ? activities_[feeding + 1].start_ns : activities_[feeding].end_ns;
  Cut cut = asking_(activities_[first], since_ns, latest);
  cut.fed_ns = activities_[feeding].end_ns;
  return cut;
}

// Iterations that end with an update: each begins at the data wait that feeds its first backward pass.
Cut Cutter::cut_at_waits(int64_t until_ns) {
  const size_t low = first_since(before_.end_ns), high = first_since(until_ns);
  size_t backward = low;
  while (backward < high && activities_[backward].part != kBackward) backward++;
  if (backward == high && high > low) backward = high - 1;
  size_t feeding = backward;
  while (feeding > low && activities_[feeding - 1].part != kDataWait) feeding--;
  unfed_ = feeding == low;
  if (unfed_) return {before_.end_ns, before_.end_ns, before_.end_position};
  feeding--;
  const Cut cut = asked(run_of_waits(feeding, low, false), feeding, before_.end_ns);
  const double operators = double(forward_between(feeding + 1, backward));
  usual_forward_ = usual_forward_ > 0 ? (7 * usual_forward_ + operators) / 8 : operators;
  return cut;
}

// Iterations that begin where a loader is asked, twice at the end of an epoch, before the usual work follows. `now` is
// the first activity after that work.
std::optional<Cut> Cutter::cut_at_feeds(size_t now) {
  const size_t feeding = first_since(fed_->start_ns), first = first_since(asked_->start_ns);
  const size_t operators = now - std::min(feeding + 1, now);
  if (!like_a_forward(operators) && usual_forward_ > 0) return {};
  const Cut cut = asked(first, feeding, fed_before_ns_);
  fed_before_ns_ = fed_->end_ns;
  return cut;
}

std::optional<Cut> Cutter::cut_at_ask(const Mark& mark) {
  const size_t now = first_since(mark.start_ns);
  if (now == activities_.size()) return {};  // the loader is a part of something else
  std::optional<Cut> cut;
  if (fed_ && !early_) cut = cut_at_feeds(now);
  if (cut || early_) {
    const double operators = double(now - std::min(first_since(fed_->start_ns) + 1, now));
    usual_forward_ = usual_forward_ > 0 ? (7 * usual_forward_ + operators) / 8 : operators;
  }
  if (cut || early_ || !asked_) asked_ = activities_[now];
  fed_ = activities_[now];
  early_ = false;
  return cut;
}

// Iterations with one mark somewhere in them: each begins at the run of waits before its mark, or at the mark.
Cut Cutter::cut_before(const Mark& mark) {
  const size_t low = first_since(before_.start_ns);
  for (size_t i = first_since(mark.start_ns); i-- > low;)
    if (activities_[i].part == kDataWait) return asked(run_of_waits(i, low, true), i, before_.start_ns);
  return {mark.start_ns, mark.start_ns, mark.start_position};
}

std::optional<Cut> Cutter::cut(const Mark& mark) {
  merge_elsewhere();
  std::optional<Cut> cut;
  switch (kind_) {
    case LoopKind::optimizer:
      if (!early_) cut = cut_at_waits(mark.end_ns);
      early_ = false;
      break;
    case LoopKind::zero_grad:
      cut = cut_before(mark);
      break;
    case LoopKind::data_wait:
      cut = cut_at_ask(mark);
      break;
    case LoopKind::hint:
      cut = Cut{mark.end_ns, mark.end_ns, mark.end_position};
      break;
    case LoopKind::range:
    case LoopKind::structure:
      cut = Cut{mark.start_ns, mark.start_ns, mark.start_position};
  }
  before_ = mark;
  return cut;
}

std::optional<Cut> Cutter::cut_early(bool hurry) {
  merge_elsewhere();
  std::optional<Cut> cut;
  if (early_) return cut;
  if (kind_ == LoopKind::optimizer) {
    const size_t low = first_since(before_.end_ns), high = activities_.size();
    size_t fed = high, backward = low;  // the last wait before the first backward pass
    for (; backward < high && activities_[backward].part != kBackward; backward++)
      if (activities_[backward].part == kDataWait) fed = backward;
    // A validation asks for data, too, but more than once: what follows the first wait alone is the next iteration.
    const bool begun = hurry && fed < high && like_a_forward(forward_between(fed + 1, high)) &&
                       forward_between(low, run_of_waits(fed, low, false)) == 0;
    const double usual = usual_forward_;
    if (backward < high || begun || (unfed_ && fed == high)) cut = cut_at_waits(INT64_MAX);
    if (backward == high) usual_forward_ = usual;  // it is not over yet
  } else if (kind_ == LoopKind::data_wait && fed_ && usual_forward_ > 0) {
    cut = cut_at_feeds(activities_.size());
  }
  early_ = cut.has_value();
  return cut;
}

Cut Cutter::earliest(const Cut& open_wait) const {
  if (early_) return kNowhere;
  switch (kind_) {
    case LoopKind::optimizer:
    case LoopKind::zero_grad:
      for (size_t i = first_since(before_.end_ns); i < activities_.size(); i++)
        if (activities_[i].part == kDataWait) return {activities_[i].start_ns, 0, activities_[i].position};
      return open_wait;
    case LoopKind::data_wait:
      return asked_ ? Cut{asked_->start_ns, 0, asked_->position} : open_wait;
    default:
      return kNowhere;
  }
}

void Cutter::split(const Cut& from, int64_t end_ns, const std::function<bool(uint32_t path)>& rare,
                   int64_t (&parts_ns)[kParts]) {
  work_.rare.clear();
  for (const auto& [call, path] : calls_)
    if (call.start_ns >= from.fed_ns && call.end_ns <= end_ns && rare(path)) enclose(work_.rare, call);
  const Part before = work_.last_before(first_since(from.fed_ns), dropped_);
  work_.split(from.ns, from.fed_ns, end_ns, before, kind_ == LoopKind::structure ? kBackward : kRest, parts_ns);
}

std::optional<Activity> Cutter::validation(const Cut& from, int64_t end_ns) const {
  const size_t low = first_since(from.ns), high = first_since(end_ns);
  size_t at = high;
  while (at > low && activities_[at - 1].part != kOptimizer) at--;
  if (at == low) return {};
  while (at < high && activities_[at].part != kDataWait) at++;
  if (at == high || forward_between(at, high) == 0) return {};
  return activities_[at];
}

void Cutter::forget(int64_t before_ns) {
  drop(first_since(before_ns));
  const auto over = [&](const Interval& each) { return each.end_ns <= before_ns; };
  std::erase_if(work_.modules, over);
  std::erase_if(work_.others, over);
  std::erase_if(calls_, [&](const auto& each) { return over(each.first); });
  std::erase_if(work_.closures, over);
}

}  // namespace strobe::structure
