#include "structure/step_classes.h"

#include <algorithm>
#include <utility>

namespace strobe::structure {

namespace {

// Whether what so many of the steps until now do may turn out to be rare: what is done at random in half of them is
// done in more for a while.
bool may_be_rare(uint64_t calling, uint64_t steps) { return calling > 0 && 10 * calling <= 7 * steps; }

constexpr double kWorthAClass = 0.02;  // share of a usual step that an extra costs, half of the times at least ...
constexpr double kWorthNoting = 0.01;  // ... and in a step that is of its class
// Of the first so many steps it is known together what is usual: the recorder has seen as many when it believes in a
// loop.
constexpr size_t kFirstSteps = 5;
constexpr uint64_t kHabit = 2;  // what is done in so many steps recurs

constexpr Extra kAnyValidation{Extra::validation, kNoFunction};
Extra any_of(const Extra& extra) { return extra.kind == Extra::validation ? kAnyValidation : extra; }

}  // namespace

void RunningMedian::add(int64_t duration_ns) {
  count_++;
  if (latest_ns_.size() < kLatest) {
    latest_ns_.push_back(duration_ns);
  } else {
    const int64_t gone = std::exchange(latest_ns_[oldest_], duration_ns);
    oldest_ = (oldest_ + 1) % kLatest;
    sorted_ns_.erase(std::ranges::lower_bound(sorted_ns_, gone));
  }
  sorted_ns_.insert(std::ranges::upper_bound(sorted_ns_, duration_ns), duration_ns);
}

void ExtraSets::begin_loop(std::span<const int64_t> durations_ns) {
  functions_.clear(), worth_.clear();
  steps_ = validations_ = 0;
  durations_ = {};
  for (const int64_t each : durations_ns) durations_.add(each);
}

uint32_t ExtraSets::add(const EndedStep& step) {
  const auto usual_ns = double(durations_.median());
  const auto below_rare = [&](uint32_t path) {
    for (uint32_t above = step.function_above(path); above != kNoFunction; above = step.function_above(above))
      if (is_rare(step.calling(above), step.steps) && step.called(above)) return true;
    return false;
  };
  std::vector<std::pair<int64_t, Extra>> found;
  uint32_t around = kNoFunction;  // the validation
  const bool first = steps_++ < kFirstSteps;
  for (const FunctionCalls& calls : step.calls) {
    if (double(calls.total_ns) < kWorthNoting * usual_ns) continue;
    if (calls.path >= worth_.size()) worth_.resize(calls.path + 1);
    worth_[calls.path] += double(calls.total_ns) >= kWorthAClass * usual_ns;
    const bool candidate = may_be_rare(step.calling(calls.path), step.steps);
    if ((!candidate && !first) || below_rare(calls.path)) continue;
    functions_.insert(calls.path);
    if (!candidate) continue;
    found.push_back({calls.first_ns, {Extra::function, calls.path}});
    const auto& validation = step.validation;
    if (validation && calls.first_ns <= validation->start_ns && calls.last_ns >= validation->end_ns)
      around = calls.path;
  }
  if (step.validation && may_be_rare(++validations_, step.steps))
    found.push_back({step.validation->start_ns, {Extra::validation, around}});
  durations_.add(step.duration_ns);

  std::ranges::sort(found);
  ExtraSet extras;
  for (const auto& [ns, extra] : found) extras.push_back(extra);
  ExtraSet key = extras;
  std::ranges::sort(key);
  const auto known = number_of_.find(key);
  if (known != number_of_.end()) return known->second;
  if (sets_.size() > kMostClasses) return kMostClasses;
  const auto number = uint32_t(sets_.size());
  if (number == kMostClasses) {
    sets_.push_back({{Extra::other, kNoFunction}});
  } else {
    sets_.push_back(std::move(extras));
    number_of_.emplace(std::move(key), number);
  }
  return number;
}

std::optional<Activity> validation_of(const Work& work, int64_t from_ns, int64_t end_ns) {
  const std::vector<Activity>& activities = work.activities;
  const auto unfed = std::ranges::lower_bound(work.unfed_validations, from_ns, {}, &Interval::start_ns);
  if (unfed != work.unfed_validations.end() && unfed->end_ns <= end_ns)
    return activities[work.first_since(unfed->start_ns)];
  const size_t low = work.first_since(from_ns), high = work.first_since(end_ns);
  size_t at = high;
  while (at > low && activities[at - 1].part != kOptimizer) at--;
  if (at == low) return {};
  while (at < high && activities[at].part != kDataWait) at++;
  for (size_t i = at; i < high; i++)
    if (activities[i].part == kForward) return activities[at];
  return {};
}

StepExtras extras_of_steps(const CallSpans& spans, std::span<const StepTimes> steps, const Work& work) {
  // Functions with the same caller count together, as in the graph of the recorder.
  constexpr uint32_t kNoNode = 0xFFFFFFFF;
  std::map<std::pair<int64_t, int64_t>, uint32_t> nodes;
  std::vector<uint32_t> node_of, above;  // by call path
  for (size_t path = 0; path < spans.path_parents.size(); path++) {
    const int64_t parent = spans.path_parents[path], region = spans.path_regions[path];
    const int64_t caller = parent < 0 ? -1 : spans.path_regions[size_t(parent)];
    const bool function = spans.is_function[size_t(region)];
    node_of.push_back(function ? nodes.try_emplace({region, caller}, uint32_t(nodes.size())).first->second : kNoNode);
    above.push_back(parent < 0                          ? kNoFunction
                    : node_of[size_t(parent)] < kNoNode ? uint32_t(parent)
                                                        : above[size_t(parent)]);
  }

  const size_t rows = spans.starts_ns.size(), first_steps = std::min(kFirstSteps, steps.size());
  std::vector<size_t> first_row, last_step(nodes.size(), SIZE_MAX);
  std::vector<uint64_t> of_first(nodes.size()), of_all(nodes.size()), until_now(nodes.size());
  const auto count = [&](size_t step, size_t row, std::vector<uint64_t>& calling) {
    const uint32_t node = node_of[size_t(spans.paths[row])];
    if (node < kNoNode && std::exchange(last_step[node], step) != step) calling[node]++;
  };
  for (size_t step = 0, row = 0; step < steps.size(); step++) {
    while (row < rows && spans.starts_ns[row] < steps[step].start_ns) row++;
    first_row.push_back(row);
    for (; row < rows && spans.starts_ns[row] < steps[step].end_ns; row++) count(step, row, of_all);
    if (step + 1 == first_steps) of_first = of_all;
  }

  StepExtras found;
  ExtraSets sets;
  std::vector<int64_t> durations_ns;
  for (size_t step = 0; step < std::min(steps.size(), RunningMedian::kLatest); step++)
    durations_ns.push_back(steps[step].end_ns - steps[step].start_ns);
  sets.begin_loop(durations_ns);
  std::ranges::fill(last_step, SIZE_MAX);
  std::vector<FunctionCalls> calls;
  std::vector<std::pair<size_t, size_t>> calls_of(node_of.size(), {SIZE_MAX, 0});  // by call path: the step, and where
  std::vector<size_t> whole;                                                       // rows that lie in the step
  size_t now = 0;
  EndedStep ended;
  ended.calling = [&](uint32_t path) { return (now < first_steps ? of_first : until_now)[node_of[path]]; };
  ended.called = [&](uint32_t path) { return calls_of[path].first == now; };
  ended.function_above = [&](uint32_t path) { return above[path]; };
  const auto rare = [&](uint32_t path) {
    return is_rare(ended.calling(path), ended.steps) && is_rare(of_all[node_of[path]], steps.size());
  };
  for (; now < steps.size(); now++) {
    const StepTimes& times = steps[now];
    calls.clear(), whole.clear();
    for (size_t row = first_row[now]; row < rows && spans.starts_ns[row] < times.end_ns; row++) {
      const auto path = uint32_t(spans.paths[row]);
      if (node_of[path] == kNoNode) continue;
      count(now, row, until_now);
      const int64_t start_ns = spans.starts_ns[row], end_ns = start_ns + spans.durations_ns[row];
      if (start_ns < times.fed_ns || end_ns > times.end_ns) continue;
      whole.push_back(row);
      if (std::exchange(calls_of[path].first, now) != now) {
        calls_of[path].second = calls.size();
        calls.push_back({path, 0, start_ns, 0});
      }
      FunctionCalls& all = calls[calls_of[path].second];
      all.total_ns += spans.durations_ns[row];
      all.last_ns = std::max(all.last_ns, end_ns);
    }
    ended.duration_ns = times.end_ns - times.start_ns;
    ended.calls = calls;
    ended.validation = validation_of(work, times.start_ns, times.end_ns);
    ended.steps = std::max(now + 1, first_steps);
    found.set_of_step.push_back(sets.add(ended));
    for (const size_t row : whole) {
      auto path = uint32_t(spans.paths[row]);
      if (!rare(path)) continue;
      for (path = above[path]; path != kNoFunction && !(rare(path) && ended.called(path));) path = above[path];
      if (path == kNoFunction) found.rare.push_back(int64_t(row));
    }
  }
  found.sets = sets.all();
  found.uses[kAnyValidation] = {sets.validations(), sets.validations()};
  for (const uint32_t path : sets.functions())
    found.uses[{Extra::function, path}] = {of_all[node_of[path]], sets.worth(path)};
  return found;
}

namespace {

// Whether few steps of a loop do what an extra is, half of them at a cost: by extra.
std::map<Extra, bool> rare_extras(const LoopExtras& loop) {
  std::map<Extra, uint64_t> having;
  uint64_t steps = 0;
  for (size_t set = 0; set < loop.sets.size(); set++) {
    steps += loop.steps[set];
    for (const Extra& extra : loop.sets[set]) having[any_of(extra)] += loop.steps[set];
  }
  std::map<Extra, bool> rare;
  for (const auto& [extra, count] : having) {
    const auto known = loop.uses.find(extra);
    const ExtraUse use = known == loop.uses.end() ? ExtraUse{count, count} : known->second;
    rare[extra] = extra.kind == Extra::other || (is_rare(use.steps, steps) && 2 * use.worth >= use.steps);
  }
  return rare;
}

}  // namespace

void decide_classes(std::span<LoopExtras> loops, size_t first, const ExtraNames& names,
                    std::span<const int64_t> path_parents) {
  const auto name_of = [&](const Extra& extra) {
    const auto known = names.of.find(extra);
    return known == names.of.end() ? ExtraNames::left_out : known->second;
  };
  std::map<int64_t, uint64_t> steps_of;  // by name
  for (size_t at = 0; at < loops.size(); at++) {
    LoopExtras& loop = loops[at];
    const std::map<Extra, bool> rare = rare_extras(loop);
    for (size_t set = 0; set < loop.sets.size(); set++) {
      std::erase_if(loop.sets[set], [&](const Extra& extra) {
        return name_of(extra) == ExtraNames::left_out || !rare.at(any_of(extra));
      });
      std::set<int64_t> once;
      for (const Extra& extra : loop.sets[set]) once.insert(name_of(extra));
      for (const int64_t name : once) steps_of[name] += loop.steps[set] - (at == 0 && set == first);
    }
  }
  for (LoopExtras& loop : loops) {
    for (ExtraSet& set : loop.sets) {
      std::erase_if(set, [&](const Extra& extra) {
        const int64_t name = name_of(extra);
        return name >= names.known && steps_of[name] < kHabit;
      });
      const ExtraSet all = set;
      std::erase_if(set, [&](const Extra& extra) {
        if (extra.kind != Extra::function && extra.kind != Extra::validation) return false;
        const bool validation = extra.kind == Extra::validation;
        if (extra.number == kNoFunction) return false;
        int64_t above = validation ? int64_t(extra.number) : path_parents[extra.number];
        for (; above >= 0; above = path_parents[size_t(above)])
          if (std::ranges::find(all, Extra{Extra::function, uint32_t(above)}) != all.end()) return true;
        return false;
      });
    }
  }
}

}  // namespace strobe::structure
