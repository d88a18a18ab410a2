// metric_samples.h - metrics over time: those of the process, which the drainer reads, and the program's own. Readings
// wait in the header of the rings, so that a kill loses none.
#pragma once
#include <stdint.h>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/session/trace_files.h"
#include "core/system/process_metrics.h"

namespace strobe {

constexpr uint32_t kNoLocation = 0xFFFFFFFF;

class MetricSamples {
 public:
  explicit MetricSamples(TraceFiles& files) : files_(files) {}

  // A recording begins, with these groups of process metrics.
  void begin(const std::string& groups);
  // Chunks with the definitions of all metrics; with mutex() held.
  void append_definitions(std::string& chunks) const;
  // The number of a metric of the program's own; UINT32_MAX: there are too many, which is counted.
  uint32_t metric(const char* name, const char* unit);
  void add(uint32_t metric, int64_t now_ns, double value);
  // Reads the metrics of the process. `location_of` gives the location of a thread, or kNoLocation.
  void read_process(int64_t now_ns, const std::function<uint32_t(int thread)>& location_of);
  void save();
  void forked();
  std::mutex& mutex() { return mutex_; }

 private:
  void add_locked(uint32_t metric, int64_t now_ns, double value);
  void save_locked();
  TraceFiles& files_;
  std::mutex mutex_;                                      // before that of the files
  std::vector<std::pair<std::string, std::string>> own_;  // of the program: name, unit
  std::unordered_set<uint32_t> thread_metrics_;           // those of threads that are defined
  std::unique_ptr<ProcessMetrics> of_process_;
};

}  // namespace strobe
