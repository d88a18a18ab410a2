// short_spans.h - `--min-duration`: executions of functions that are shorter are counted, not kept in detail. The
// drainer and recovery ask here, so that both leave out the same.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "core/format/span_statistics.h"
#include "include/strobe.h"

namespace strobe {

class ShortSpans {
 public:
  using KindOf = std::function<std::pair<uint8_t, uint8_t>(uint32_t region)>;  // paradigm and role

  // `min_ns` 0: none is short.
  ShortSpans(uint64_t min_ns, KindOf kind_of)
      : min_ns_(int64_t(std::min<uint64_t>(min_ns, INT64_MAX))), kind_of_(std::move(kind_of)) {}
  bool on() const { return min_ns_ > 0; }
  int64_t min_ns() const { return min_ns_; }
  // Only functions go. Ranges and steps are what the program's author asked for; operators, waits and communication are
  // what analyses are made of.
  bool may_go(uint32_t region) {
    if (region >= known_.size()) known_.resize(region + 1, kUnknown);
    uint8_t& known = known_[region];
    if (known == kUnknown) {
      const auto [paradigm, role] = kind_of_(region);
      known = role == STROBE_ROLE_FUNCTION && paradigm != STROBE_MPI ? kGoes : kStays;
    }
    return known == kGoes;
  }
  bool is_short(uint32_t region, int64_t duration_ns) { return duration_ns < min_ns_ && may_go(region); }

 private:
  enum : uint8_t { kUnknown, kGoes, kStays };
  int64_t min_ns_;
  KindOf kind_of_;
  std::vector<uint8_t> known_;  // by region
};

}  // namespace strobe
