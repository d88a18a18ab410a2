#include "core/folding/kept_iterations.h"

namespace strobe {

constexpr uint32_t kKeptAtOnce = 4;  // of --keep N, at the beginning; the others at growing distances
constexpr uint64_t kKeptPerClass = 2;
constexpr double kOutlier = 3;           // times the running median of its class
constexpr uint64_t kMostOutliers = 64;   // that are kept by this rule ...
constexpr uint64_t kOutlierEvery = 256;  // ... and one more for so many iterations
constexpr uint64_t kOutlierMembers = 5;  // a class with fewer has no usual duration

void KeptIterations::begin_loop() {
  outliers_ = 0;
  outlier_factor_ = kOutlier;
}

bool KeptIterations::planned(uint64_t ordinal) const {
  if (keep_ == kAll) return true;
  if (ordinal < std::min(keep_, kKeptAtOnce)) return true;
  uint64_t at = kKeptAtOnce - 1, distance = 4;
  for (uint32_t i = kKeptAtOnce; i < keep_ && at < ordinal; i++, distance *= 4) at += distance;
  return keep_ > kKeptAtOnce && at == ordinal;
}

bool KeptIterations::keeps(bool wanted, uint64_t ordinal, int64_t duration_ns,
                           const structure::RunningMedian& of_class) {
  bool kept = keep_ > 0 && (wanted || planned(ordinal) || of_class.count() < kKeptPerClass);
  if (!kept && keep_ > 0 && of_class.count() >= kOutlierMembers &&
      double(duration_ns) > outlier_factor_ * double(of_class.median())) {
    kept = true;
    outliers_++;
  }
  // Where many iterations are slow it takes more to be kept: noise must not hide a stall, nor fill the disk.
  if (outliers_ > kMostOutliers + ordinal / kOutlierEvery)
    outlier_factor_ *= kept ? 1.1 : 1;
  else
    outlier_factor_ = std::max(kOutlier, outlier_factor_ * 0.99);
  return kept;
}

}  // namespace strobe
