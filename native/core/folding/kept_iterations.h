// kept_iterations.h - `--keep N`: which iterations stay in detail; the others are folded into statistics.
#pragma once
#include <stdint.h>
#include <algorithm>

#include "structure/step_classes.h"

namespace strobe {

class KeptIterations {
 public:
  static constexpr uint32_t kAll = 0x7FFFFFFF;
  explicit KeptIterations(uint32_t keep) : keep_(keep) {}
  void shed(uint32_t keep) { keep_ = std::min(keep_, keep); }
  bool any() const { return keep_ > 0; }
  // Whether this iteration of the loop is kept whatever it is like: the first few, later ones at growing distances.
  bool planned(uint64_t ordinal) const;
  // Whether an iteration that has ended is kept: because it is planned (`wanted`), its class is new, or it is slow.
  bool keeps(bool wanted, uint64_t ordinal, int64_t duration_ns, const structure::RunningMedian& of_class);
  void begin_loop();

 private:
  uint32_t keep_;
  uint64_t outliers_ = 0;      // kept because they are slow
  double outlier_factor_ = 0;  // times the median of its class that an iteration takes to be one
};

}  // namespace strobe
