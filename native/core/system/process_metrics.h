// process_metrics.h - what the operating system counts for this process, sampled by the drainer: CPU time by kind, also
// of threads and of the machine, memory, context switches, page faults, I/O, network, control groups, load, and
// hardware counters. Sources: proc(5), getrusage(2),
// cgroups(7), perf_event_open(2).
#pragma once
#include <stdint.h>
#include <array>
#include <functional>
#include <optional>
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
  // `groups`: words of --counters with commas; "": all but pss and hardware.
  explicit ProcessMetrics(std::string_view groups = {});
  static const std::vector<MetricInfo>& infos();
  bool chosen(const MetricInfo& info) const { return has(info.group); }
  // In a forked child, before this is left as it is: the parent's files of counters.
  void forked() { hardware_.close_all(); }
  // Appends (metric, value) for now. Rates are per second since the call before; the first call gives none.
  // `metric_of_thread` gives the number of the metric of a thread's time of a kind, kNoMetric where the thread is not
  // recorded.
  static constexpr uint32_t kNoMetric = 0xFFFFFFFF;
  void sample(int64_t now_ns, std::vector<std::pair<uint32_t, double>>& out,
              const std::function<uint32_t(int thread, uint32_t kind)>& metric_of_thread);
  // What the metric of a kind of time of a thread is called; kind < kThreadKinds.
  static const MetricInfo& thread_info(uint32_t kind);
  static constexpr uint32_t kThreadKinds = 4;

 private:
  static constexpr size_t kMost = 64;
  using Totals = std::array<double, kMost>;  // by metric: what has been counted until now, of those that are rates
  bool has(std::string_view group) const;
  enum ThreadKind : uint32_t { kCpuTime, kSystemTime, kCoreWait, kBlockIo };
  static constexpr double kUnknown = -1;
  using ThreadTimes = std::array<double, kThreadKinds>;  // ns, or kUnknown
  struct Thread {
    uint32_t group;           // the metric of its CPU time; follows from its name, which is read once
    ThreadTimes times, more;  // until now; since the reading before
  };
  std::optional<ThreadTimes> read_thread(int id) const;
  void read_threads(Totals& totals);
  bool read_machine(Totals& totals, double& cores) const;
  double usable_cores() const;
  void read_network(Totals& totals);
  void find_cgroup();
  std::string groups_;  // each between commas
  bool threads_ = false, hardware_wanted_ = false;
  bool counts_delays_ = false;
  double tick_ns_ = 1e7, core_limit_ = 0;  // of the control group; 0: none
  std::unordered_map<int, Thread> threads_seen_;
  uint64_t groups_read_ = 0;  // bit of each metric of a group of threads that was ever read
  HardwareCounters hardware_;
  bool hardware_works_[kHardwareCounters] = {};
  std::string cpu_stat_, memory_now_;  // files of the control group, empty: none
  double throttled_unit_ns_ = 1;
  int64_t last_ns_ = 0;
  Totals last_{};
};

}  // namespace strobe
