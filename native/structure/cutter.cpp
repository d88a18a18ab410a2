#include "structure/cutter.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "structure/step_classes.h"

namespace strobe::structure {

namespace {

constexpr double kUsual = 0.9;  // an operator is usual if it runs in this share of the iterations ...
// ... and operators between two waits are a forward pass if they hold one in so many of the usual ones. Between the end
// of one epoch and the first batch of the next run a few operators too: those of the sampler and the seed.
constexpr size_t kLikeAForward = 3;
constexpr uint32_t kRemembered = 64;  // iterations; then those until now count half
constexpr Mark kNotYet{INT64_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX};

}  // namespace

void Cutter::begin(LoopKind kind, const Mark& before) {
  kind_ = kind;
  before_ = before;
  asked_.reset(), fed_.reset();
  early_ = unfed_ = false;
  fed_before_ns_ = before.end_ns;
}

void Cutter::add(const Activity& activity) {
  if (activity.part == kBackward) {
    work_.trains = backward_here_ = true;
    first_backward_ns_ = std::min(first_backward_ns_, activity.start_ns);
  }
  if (bounded_ && activities_.size() >= kMost) {
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
  first_backward_ns_ = std::min(first_backward_ns_, start_ns);
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

// What was done before the first backward pass of all is noted before it is forgotten.
void Cutter::note_first(size_t end) {
  for (size_t i = 0; i < end && activities_[i].start_ns < first_backward_ns_; i++) {
    const uint32_t path = activities_[i].path;
    if (path >= first_paths_.size()) first_paths_.resize(path + 1);
    first_paths_[path] = true;
  }
}

void Cutter::drop(size_t count) {
  note_first(count);
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
      activities_.insert(activities_.begin() + std::ptrdiff_t(at),
                         {start, end, kNoPosition, 0xFFFFFFFF, 0xFFFFFFFF, kBackward});
  }
  elsewhere_.clear();
}

void Cutter::learn_from(size_t low, size_t high) {
  if (bounded_ && iterations_ == kRemembered) {
    iterations_ /= 2;
    for (auto& [region, use] : uses_) use.iterations /= 2;
    std::erase_if(uses_, [](const auto& each) { return each.second.iterations == 0; });
  }
  iterations_++, lesson_++;
  for (size_t i = low; i < high; i++) {
    if (activities_[i].position == kNoPosition) continue;
    Use& use = uses_[activities_[i].region];
    if (std::exchange(use.lesson, lesson_) != lesson_) use.iterations++;
  }
  usual_.clear();
  for (const auto& [region, use] : uses_)
    if (use.iterations >= kUsual * iterations_) usual_.push_back(region);
  std::ranges::sort(usual_);
}

void Cutter::learn(std::span<const int64_t> marks_ns) {
  merge_elsewhere();
  uses_.clear(), usual_.clear(), lead_paths_.clear(), iterations_ = 0;
  const bool updates = kind_ == LoopKind::optimizer;
  if (!updates && kind_ != LoopKind::data_wait) return;
  if (updates && !marks_ns.empty()) learn_openings(marks_ns);
  for (size_t i = 1; i < marks_ns.size(); i++) {
    if (activities_.empty() || activities_.front().start_ns > marks_ns[i - 1]) continue;  // forgotten already
    const size_t low = first_since(marks_ns[i - 1] + 1), high = first_since(marks_ns[i] + updates);
    const auto [first, end] = updates ? lead(low, high) : std::pair(low, high);
    learn_from(first, end);
  }
}

bool Cutter::like_a_forward(size_t low, size_t high) const {
  if (usual_.empty()) return high > low;
  std::set<uint32_t> found;
  for (size_t i = low; i < high && found.size() * kLikeAForward < usual_.size(); i++)
    if (const uint32_t region = activities_[i].region; std::ranges::binary_search(usual_, region)) found.insert(region);
  return found.size() * kLikeAForward >= usual_.size();
}

// First of the consecutive waits at the same place in the program that end with the one that feeds the iteration: at
// the end of an epoch the loader is asked in vain, and then asked again.
size_t Cutter::run_of_waits(size_t feeding, size_t lowest) const {
  size_t first = feeding;
  for (size_t i = feeding; i-- > lowest;) {
    if (activities_[i].part != kDataWait) continue;
    const bool of_loop = activities_[i].path == activities_[feeding].path || activities_[i].change == Change::iterator;
    if (!of_loop || like_a_forward(i + 1, first)) break;
    first = i;
  }
  return first;
}

// Where the outermost function around an activity was called that was called since then, ends until then, and runs no
// forward pass before the activity, as a validation does.
Cut Cutter::called(size_t at, int64_t since_ns, int64_t latest_ns) const {
  const Activity& activity = activities_[at];
  Cut cut{activity.start_ns, activity.start_ns, activity.position};
  for (auto above = around_(cut.position); above; above = around_(cut.position)) {
    if (above->start_ns < since_ns || above->end_ns > latest_ns) break;
    if (like_a_forward(first_since(above->start_ns), at)) break;
    cut = {above->start_ns, above->start_ns, above->position};
  }
  return cut;
}

// When the program asked for data: at the first wait, or where a function was called since then that does nothing else,
// and ends before the next activity begins: a generator over epochs, a prefetcher. It also makes the iterator and
// starts the workers.
Cut Cutter::asked(size_t first, size_t feeding, int64_t since_ns) {
  feeding_path_ = activities_[feeding].path;
  const int64_t latest_ns =
      feeding + 1 < activities_.size() ? activities_[feeding + 1].start_ns : activities_[feeding].end_ns;
  Cut cut = called(first, since_ns, latest_ns);
  cut.fed_ns = activities_[feeding].end_ns;
  return cut;
}

// What leads up to the first backward pass of an iteration, since its data had come: [first, backward). To its last
// activity where there is no pass.
std::pair<size_t, size_t> Cutter::lead(size_t low, size_t high) const {
  size_t backward = low;
  while (backward < high && activities_[backward].part != kBackward) backward++;
  if (backward == high && high > low) backward--;
  size_t first = backward;
  while (first > low && activities_[first - 1].part != kDataWait) first--;
  return {first, backward};
}

void Cutter::learn_openings(std::span<const int64_t> marks_ns) {
  openings_ = 0;
  note_first(first_since(marks_ns[0] + 1));
  // The first few marks: the recorder knows no more when it believes in a loop.
  std::map<std::pair<uint32_t, size_t>, size_t> seen;  // by path and how often
  const size_t most = std::min(marks_ns.size(), kFirstMarks);
  for (size_t i = 1; i < most; i++) {
    const size_t low = first_since(marks_ns[i - 1] + 1);
    const size_t high = first_since(marks_ns[i] + 1), backward = lead(low, high).second;
    for (size_t at = low; at < backward; at++) lead_paths_.push_back(activities_[at].path);
    const std::vector<size_t> found = openings(low, std::min(backward + 1, high));
    if (!found.empty()) seen[{activities_[found[0]].path, found.size()}]++;
  }
  std::ranges::sort(lead_paths_);
  for (const auto& [opens, times] : seen)
    if (times + 2 >= most) std::tie(opening_path_, openings_) = opens;
}

// Where the first thing is done that was also done before the first backward pass of all, and where it is done again.
std::vector<size_t> Cutter::openings(size_t low, size_t high) const {
  std::vector<size_t> found;
  for (size_t i = low; i < high; i++)
    if (found.empty() ? is_first(activities_[i].path) : activities_[i].path == activities_[found[0]].path)
      found.push_back(i);
  return found;
}

// An iteration without a wait for data begins with what opens it; the first one with the usual operators. What lies
// between an update and that belongs to the iteration of the update: the loss is logged, the model is evaluated.
Cut Cutter::unfed(size_t low, size_t backward, const Mark& mark) {
  if (before_.end_ns > kNoMark.end_ns) {
    const std::vector<size_t> opens = openings(low, std::min(backward + 1, first_since(mark.end_ns)));
    const bool known = openings_ && !opens.empty() && activities_[opens[0]].path == opening_path_;
    const size_t again = known && opens.size() > openings_ ? opens.size() - openings_ : 0;
    if (opens.empty()) return {before_.end_ns, before_.end_ns, before_.end_position};
    const int64_t since_ns = opens[again] > low ? activities_[opens[again] - 1].end_ns : before_.end_ns;
    const Cut cut = called(opens[again], since_ns, INT64_MAX);
    if (again && work_.unfed_validations.size() < kMost)
      work_.unfed_validations.push_back({activities_[opens[0]].start_ns, cut.ns});
    return cut;
  }
  if (backward == activities_.size()) return {mark.start_ns, mark.start_ns, mark.start_position};
  const auto leads_up = [&](const Activity& each, const Activity& next) {
    return usual_.empty() ? next.start_ns - each.end_ns <= kMaxPauseNs
                          : std::ranges::binary_search(usual_, each.region) &&
                                (lead_paths_.empty() || std::ranges::binary_search(lead_paths_, each.path));
  };
  size_t first = backward;
  while (first > low && leads_up(activities_[first - 1], activities_[first])) first--;
  return {activities_[first].start_ns, activities_[first].start_ns, activities_[first].position};
}

// Iterations that end with an update: each begins at the data wait that feeds its first backward pass.
Cut Cutter::cut_at_waits(const Mark& mark) {
  const size_t low = first_since(before_.end_ns), high = first_since(mark.end_ns);
  const auto [first, backward] = lead(low, high);
  unfed_ = first == low;
  const Cut cut = unfed_ ? unfed(low, backward, mark) : asked(run_of_waits(first - 1, low), first - 1, before_.end_ns);
  const bool over = mark.end_ns < kNotYet.end_ns || (backward < high && activities_[backward].part == kBackward);
  if (over && before_.end_ns > kNoMark.end_ns) learn_from(first, backward);
  return cut;
}

// Iterations that begin where a loader is asked, twice at the end of an epoch, before the usual work follows. `now` is
// the first activity after that work. Where what is done with the data leaves no operators, each wait begins one.
std::optional<Cut> Cutter::cut_at_feeds(size_t now) {
  const size_t feeding = first_since(fed_->start_ns), first = first_since(asked_->start_ns);
  if (!uses_.empty() && !like_a_forward(feeding + 1, now)) return {};
  const Cut cut = asked(first, feeding, fed_before_ns_);
  fed_before_ns_ = fed_->end_ns;
  return cut;
}

std::optional<Cut> Cutter::cut_at_ask(const Mark& mark) {
  const size_t now = first_since(mark.start_ns);
  if (now == activities_.size() || activities_[now].position != mark.start_position) {  // a part of something else
    if (fed_) return {};
    return Cut{mark.start_ns, mark.start_ns, mark.start_position};
  }
  std::optional<Cut> cut;
  if (fed_) {
    if (!early_) cut = cut_at_feeds(now);
    learn_from(first_since(fed_->start_ns) + 1, now);
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
    if (activities_[i].part == kDataWait) return asked(run_of_waits(i, low), i, before_.start_ns);
  return {mark.start_ns, mark.start_ns, mark.start_position};
}

std::optional<Cut> Cutter::cut(const Mark& mark) {
  merge_elsewhere();
  std::optional<Cut> cut;
  switch (kind_) {
    case LoopKind::optimizer:
      if (!early_) cut = cut_at_waits(mark);
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
    // A validation may ask at the same place, but more than once: what follows the first wait alone is the next
    // iteration.
    const bool begun =
        hurry && fed < high && feeds(activities_[fed].path) && like_a_forward(fed + 1, high) &&
        std::none_of(
            activities_.begin() + std::ptrdiff_t(low), activities_.begin() + std::ptrdiff_t(run_of_waits(fed, low)),
            [&](const Activity& each) { return each.path == activities_[fed].path; });
    const bool opened =
        first_paths_.empty() || std::any_of(activities_.begin() + std::ptrdiff_t(low), activities_.end(),
                                            [&](const Activity& each) { return is_first(each.path); });
    if (backward < high || begun || (unfed_ && fed == high && opened && (hurry || !openings_)))
      cut = cut_at_waits(kNotYet);
  } else if (kind_ == LoopKind::data_wait && fed_ && (hurry || !usual_.empty())) {
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
      // What opens the next one may be under way.
      if (unfed_ && kind_ == LoopKind::optimizer) return {before_.end_ns, 0, before_.end_position};
      return open_wait;
    case LoopKind::data_wait:
      return asked_ ? Cut{asked_->start_ns, 0, asked_->position} : open_wait;
    default:
      return kNowhere;
  }
}

std::vector<PartInterval> Cutter::split(const Cut& from, int64_t end_ns,
                                        const std::function<bool(uint32_t path)>& rare) {
  work_.rare.clear();
  for (const auto& [call, path] : calls_)
    if (call.start_ns >= from.fed_ns && call.end_ns <= end_ns && rare(path)) enclose(work_.rare, call);
  const Part before = work_.last_before(first_since(from.fed_ns), dropped_);
  return work_.split(from.ns, from.fed_ns, end_ns, before, kind_ == LoopKind::structure ? kBackward : kRest);
}

std::optional<Activity> Cutter::validation(const Cut& from, int64_t end_ns) const {
  return validation_of(work_, from.ns, end_ns);
}

void Cutter::forget(int64_t before_ns) {
  drop(first_since(before_ns));
  const auto over = [&](const Interval& each) { return each.end_ns <= before_ns; };
  std::erase_if(work_.modules, over);
  std::erase_if(work_.others, over);
  std::erase_if(calls_, [&](const auto& each) { return over(each.first); });
  std::erase_if(work_.closures, over);
  std::erase_if(work_.unfed_validations, over);
}

}  // namespace strobe::structure
