// process_metrics.h - what the operating system counts for this process, sampled by the drainer: CPU, memory, context
// switches, page faults, I/O, network, control groups, load, and hardware counters. Sources: proc(5), getrusage(2),
// cgroups(7), perf_event_open(2).
#pragma once
#include <stdint.h>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/system/hardware_counters.h"

namespace strobe {

struct MetricInfo {
  std::string_view name, unit;
  std::string_view group;  // which word of --counters asks for it
};

class ProcessMetrics {
 public:
  // `groups`: words of --counters with commas; "": cpu, memory, switches, faults, io, network, cgroup, load.
  explicit ProcessMetrics(std::string_view groups = {});
  static const std::vector<MetricInfo>& infos();
  bool chosen(const MetricInfo& info) const { return has(info.group); }
  // In a forked child, before this is left as it is: the parent's files of counters.
  void forked() { hardware_.close_all(); }
  // Appends (metric, value) for now. Rates are per second since the call before; the first call gives none.
  // `metric_of_thread` gives the number of the metric "cpu" of a thread, kNoMetric for one that is not recorded.
  static constexpr uint32_t kNoMetric = 0xFFFFFFFF;
  void sample(int64_t now_ns, std::vector<std::pair<uint32_t, double>>& out,
              const std::function<uint32_t(int thread)>& metric_of_thread);

 private:
  static constexpr size_t kMost = 32;
  using Totals = std::array<double, kMost>;  // by metric: what has been counted until now, of those that are rates
  bool has(std::string_view group) const;
  void read_threads(Totals& totals);
  void read_network(Totals& totals);
  void find_cgroup();
  std::string groups_;  // each between commas
  bool threads_ = false, hardware_wanted_ = false;
  // A thread's group follows from its name, which is read once: reading /proc is most of what sampling costs.
  std::unordered_map<int, uint32_t> groups_of_threads_;
  std::unordered_map<int, double> thread_cpu_ns_, last_thread_cpu_ns_;
  HardwareCounters hardware_;
  bool hardware_works_[kHardwareCounters] = {};
  std::string cpu_stat_, memory_now_;  // files of the control group, empty: none
  double throttled_unit_ns_ = 1;
  int64_t last_ns_ = 0;
  Totals last_{};
};

}  // namespace strobe
