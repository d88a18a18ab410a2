// budget.h - what a recording costs, and its budget: bytes on disk, and CPU time of the recorder compared with the
// program's. To stay within it the recording gives up detail, in this order: most iterations in detail; hot short
// functions; everything but statistics; and, where CPU time is the limit, all functions.
#pragma once
#include <stdint.h>
#include <atomic>
#include <string>

#include "core/folding/collector.h"
#include "core/session/metric_samples.h"
#include "core/session/trace_files.h"
#include "core/spans/throttle.h"
#include "include/strobe.h"

namespace strobe {

// What recording costs the program: the time of its records, and of hooks that run even where nothing is recorded.
class RecorderCost {
 public:
  void begin();  // of a recording
  // A hook that costs the program `ns` each time that `times` grows by one.
  void set_hook(const uint64_t* times, double ns);
  double of_hooks_ns() const;
  void add_records(uint64_t n) { records_ += n; }
  double of_records_ns() const { return put_ns_ * double(records_); }
  double put_ns() const { return put_ns_; }  // one record, on this machine

 private:
  uint64_t records_ = 0;
  double put_ns_ = 0;
  std::atomic<const uint64_t*> hook_times_{nullptr};
  uint64_t hook_times_before_ = 0;  // this recording
  double hook_ns_ = 0;
};

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
  uint64_t other_bytes_ = 0, seen_bytes_ = 0;  // seen: of the block file, at the last look
  double spent_ns_ = 0, program_cpu_ns_ = 0;
};

}  // namespace strobe
