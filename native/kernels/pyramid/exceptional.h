// exceptional.h - the rule by which a stretch is marked: rare and long, measured by its own kind.
//
// A stretch is exceptional if it is at least 16 times as long as the median of its region in its location, and at least
// twice as long as the longest usual one: with n stretches of the region, n / 256 + 1 may be unusual, so that is the
// (n / 256 + 2)th longest. A wait that always takes 20 ms has no marks, and neither has one that takes 20 ms in every
// hundredth call; a single one of 20 ms among a million of 10 us has. Gaps between spans are a kind of their own.
//
// Regions with fewer than 16 stretches are measured by all stretches of the location; gaps, where there are fewer than
// 16, are never exceptional, and neither is anything in a location with fewer than 16 stretches. Stretches that reach
// into an iteration that was folded while the program ran are never exceptional: what ran there is unknown.
//
// Lengths are compared after rounding them down to five significant bits (a 16th of their power of two), so that
// counting them is enough. Medians and ranks are those of all stretches where the location has at most 16 blocks (65
// 536 spans), else those of the stretches of 16 blocks spread evenly over it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kernels/pyramid/stretches.h"

namespace strobe {

class Exceptional {
 public:
  Exceptional(const ProcessFile& file, uint32_t location);
  // From what `encoded` gave; everything is usual where that is damaged.
  Exceptional(const ProcessFile& file, std::string_view encoded);
  std::string encoded() const;

  bool operator()(const Stretch& stretch) const {
    return stretch.end_ns - stretch.start_ns >= threshold_ns(stretch.region) && !folded(stretch);
  }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  int64_t threshold_ns(uint32_t region) const {
    if (region == kGap) return gaps_ns_;
    return region < by_region_.size() && by_region_[region] ? by_region_[region] : others_ns_;
  }
  bool folded(const Stretch& stretch) const;
  void read_folded(const ProcessFile& file);
  void set(uint32_t region, int64_t threshold_ns);

  std::vector<int64_t> by_region_;  // 0: measured by all of the location
  int64_t others_ns_ = kNever, gaps_ns_ = kNever;
  std::vector<std::pair<int64_t, int64_t>> folded_;  // begin and end of stretches of folded iterations, in order
};

}  // namespace strobe
