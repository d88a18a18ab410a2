#include "core/folding/iteration_classes.h"

#include <utility>

#include "core/rings/ring.h"

namespace strobe {

using structure::IterationClass;

constexpr size_t kLatest = 101;        // iterations that the running median is of
constexpr double kUnusual = 0.5;       // share of the iterations that call an unusual function at most
constexpr double kWorthAClass = 0.02;  // share of a usual iteration that it costs at least

void Durations::add(int64_t duration_ns) {
  count_++;
  if (latest_ns_.size() < kLatest) {
    latest_ns_.push_back(duration_ns);
  } else {
    const int64_t gone = std::exchange(latest_ns_[oldest_], duration_ns);
    oldest_ = (oldest_ + 1) % kLatest;
    sorted_ns_.erase(std::lower_bound(sorted_ns_.begin(), sorted_ns_.end(), gone));
  }
  sorted_ns_.insert(std::upper_bound(sorted_ns_.begin(), sorted_ns_.end(), duration_ns), duration_ns);
}

void IterationClasses::begin_loop(const std::vector<int64_t>& times_ns) {
  validations_ = 0;
  of_all_ = {};
  for (size_t i = 1; i < times_ns.size(); i++) of_all_.add(times_ns[i] - times_ns[i - 1]);
}

void IterationClasses::add_duration(uint32_t class_id, int64_t duration_ns) {
  durations_[class_id].add(duration_ns);
  of_all_.add(duration_ns);
}

bool IterationClasses::is_rare(const IterationFigures& figures, uint32_t path) {
  const uint64_t usage = figures.usage(path);
  return usage && double(usage) <= kUnusual * double(figures.iterations());
}

uint32_t IterationClasses::of(const IterationFigures& figures, const structure::Cutter& cutter,
                              const structure::Cut& from, int64_t end_ns) {
  const double least_ns = kWorthAClass * double(of_all_.median());
  const auto unusual = [&](uint32_t path) { return is_rare(figures, path); };
  const auto validation = cutter.validation(from, end_ns);
  bool enclosed = false;
  std::vector<std::pair<int64_t, uint32_t>> extras;
  for (const IterationFigures::Touch& touch : figures.touched()) {
    if (!unusual(touch.path)) continue;
    bool below = false;
    for (uint32_t above = facts_.of(touch.path).function_above; above != kNoPath && !below;
         above = facts_.of(above).function_above)
      below = unusual(above) && figures.touches(above);
    if (below || double(touch.total_ns) < least_ns) continue;
    extras.emplace_back(touch.first_ns, paths_.region(touch.path));
    enclosed |= validation && touch.first_ns <= validation->start_ns && touch.last_ns >= validation->end_ns;
  }
  if (validation && double(++validations_) <= std::max(1.0, kUnusual * double(figures.iterations())) && !enclosed)
    extras.emplace_back(validation->start_ns, 0);
  std::sort(extras.begin(), extras.end());
  IterationClass regions;
  for (const auto& [ns, region] : extras)
    if (std::find(regions.begin(), regions.end(), region) == regions.end()) regions.push_back(region);
  return number_of(std::move(regions));
}

uint32_t IterationClasses::number_of(IterationClass regions) {
  IterationClass key = regions;
  std::sort(key.begin(), key.end());
  const auto known = number_of_.find(key);
  if (known != number_of_.end()) return known->second;
  if (classes_.size() > structure::kMostClasses) return structure::kMostClasses;
  const auto number = uint32_t(classes_.size());
  durations_.emplace_back();
  if (number == structure::kMostClasses) {
    classes_.push_back(IterationClass{kOverflowRegion});
  } else {
    classes_.push_back(std::move(regions));
    number_of_.emplace(std::move(key), number);
  }
  return number;
}

}  // namespace strobe
