// process_metrics.h - what the operating system says about this process, sampled by the drainer: CPU per thread group,
// resident memory, I/O, context switches. Sources: proc(5), getrusage(2).
#pragma once
#include <stdint.h>
#include <string>
#include <unordered_map>
#include <vector>

namespace strobe {

struct MetricInfo {
  const char* name;
  const char* unit;
};

class ProcessMetrics {
 public:
  static const std::vector<MetricInfo>& infos();
  // Appends (metric, value) for now. Rates are per second since the call before; the first call gives none.
  void sample(int64_t now_ns, std::vector<std::pair<uint32_t, double>>& out);

 private:
  struct Totals {
    double main_cpu_ns = 0, python_cpu_ns = 0, compute_cpu_ns = 0, other_cpu_ns = 0, own_cpu_ns = 0;
    double read_bytes = 0, write_bytes = 0, voluntary = 0, involuntary = 0;
  };
  void read_threads(Totals& totals);
  // A thread's group follows from its name, which is read once: reading /proc is most of what sampling costs.
  std::unordered_map<int, double Totals::*> groups_;
  int64_t last_ns_ = 0;
  Totals last_;
};

}  // namespace strobe
