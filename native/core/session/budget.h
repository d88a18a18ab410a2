// budget.h - the budget of a recording: bytes on disk, and CPU time of the recorder beside the program's. What would
// exceed it makes the recording give up detail, in this order: fewer iterations in detail; hot short functions;
// everything but statistics; and, where CPU time is the limit, functions altogether.
#pragma once
#include <stdint.h>
#include <string>

#include "core/folding/collector.h"
#include "core/session/metric_samples.h"
#include "core/session/recorder_cost.h"
#include "core/session/trace_files.h"
#include "core/spans/throttle.h"
#include "include/strobe.h"

namespace strobe {

class Budget {
 public:
  Budget(TraceFiles& files, MetricSamples& samples, Throttle& throttle, RecorderCost& cost)
      : files_(files), samples_(samples), throttle_(throttle), cost_(cost) {}
  static bool wanted(const strobe_options& options) { return options.max_bytes || options.max_overhead > 0; }
  // A recording begins, whose trace lies in this folder. `collector`: who gives up iterations; nullptr without limits.
  void begin(const strobe_options& options, const std::string& folder, Collector* collector);
  // Whether the CPU time in the files' header will be looked at.
  bool looks_at_overhead(int64_t now_ns) const { return max_overhead_ > 0 && now_ns >= next_overhead_ns_; }
  void keep(int64_t now_ns);

 private:
  uint64_t bytes_of_others() const;
  bool exceeds_overhead(int64_t now_ns);
  void give_up(uint32_t level, int64_t now_ns);
  TraceFiles& files_;
  MetricSamples& samples_;
  Throttle& throttle_;
  RecorderCost& cost_;
  Collector* collector_ = nullptr;
  std::string folder_;
  uint64_t max_bytes_ = 0;
  double max_overhead_ = 0;
  uint32_t level_ = 0;  // of detail that is given up
  int64_t next_look_ns_ = 0, next_folder_ns_ = 0, next_overhead_ns_ = 0;
  uint64_t other_bytes_ = 0;
  double spent_ns_ = 0, program_cpu_ns_ = 0;
};

}  // namespace strobe
