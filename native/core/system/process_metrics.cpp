#include "core/system/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/system/descriptors.h"

namespace strobe {

namespace {

// X(number, name, unit, group): as the trace numbers them. CPU is in cores: 1.0 is one core busy.
#define STROBE_METRICS(X)                                            \
  X(kMainCpu, "cpu main thread", "cores", "cpu")                     \
  X(kPythonCpu, "cpu python threads", "cores", "cpu")                \
  X(kComputeCpu, "cpu compute threads", "cores", "cpu")              \
  X(kOtherCpu, "cpu other threads", "cores", "cpu")                  \
  X(kOwnCpu, "cpu strobe", "cores", "cpu")                           \
  X(kResident, "resident memory", "bytes", "memory")                 \
  X(kRead, "read", "bytes/s", "io")                                  \
  X(kWritten, "written", "bytes/s", "io")                            \
  X(kVoluntary, "voluntary switches", "1/s", "switches")             \
  X(kInvoluntary, "involuntary switches", "1/s", "switches")         \
  X(kPeakResident, "peak resident memory", "bytes", "memory")        \
  X(kPss, "proportional memory", "bytes", "pss")                     \
  X(kDiskRead, "read from disk", "bytes/s", "io")                    \
  X(kDiskWritten, "written to disk", "bytes/s", "io")                \
  X(kMinorFaults, "minor page faults", "1/s", "faults")              \
  X(kMajorFaults, "major page faults", "1/s", "faults")              \
  X(kReceived, "received by the machine", "bytes/s", "network")      \
  X(kSent, "sent by the machine", "bytes/s", "network")              \
  X(kThrottled, "throttled by the control group", "cores", "cgroup") \
  X(kCgroupMemory, "memory of the control group", "bytes", "cgroup") \
  X(kLoad, "load of the machine", "tasks", "load")                   \
  X(kMainWait, "main thread waits for a core", "cores", "cpu")       \
  X(kReadCalls, "read calls", "1/s", "io")                           \
  X(kWriteCalls, "write calls", "1/s", "io")                         \
  X(kChildrenCpu, "cpu ended child processes", "cores", "cpu")

enum Metric : uint32_t {
#define STROBE_NUMBER(number, ...) number,
  STROBE_METRICS(STROBE_NUMBER)
#undef STROBE_NUMBER
      kHardware  // and those behind it
};

// How threads are called, and what their CPU time counts as. "compute" are the pools of OpenMP, MKL, PyTorch and the
// autograd engine.
constexpr struct {
  std::string_view prefix;
  Metric metric;
} kThreadNames[] = {{"strobe", kOwnCpu},    {"pt_", kComputeCpu},    {"omp", kComputeCpu},
                    {"OMP", kComputeCpu},   {"mkl", kComputeCpu},    {"iomp", kComputeCpu},
                    {"python", kPythonCpu}, {"Thread-", kPythonCpu}, {"QueueFeeder", kPythonCpu}};

double field(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at ? strtod(at + strlen(name), nullptr) : 0.0;
}

constexpr std::string_view kUsual = "cpu,memory,switches,faults,io,network,cgroup,load";

}  // namespace

const std::vector<MetricInfo>& ProcessMetrics::infos() {
  static const std::vector<MetricInfo> all = {
#define STROBE_INFO(number, name, unit, group) {name, unit, group},
      STROBE_METRICS(STROBE_INFO)
#undef STROBE_INFO
          {kHardwareNames[0], "1/s", "hardware"},
      {kHardwareNames[1], "1/s", "hardware"},
      {kHardwareNames[2], "1/s", "hardware"},
      {kHardwareNames[3], "1/s", "hardware"},
  };
  return all;
}

ProcessMetrics::ProcessMetrics(std::string_view groups) : groups_(1, ',') {
  groups_.append(groups.empty() ? kUsual : groups).push_back(',');
  threads_ = has("threads"), hardware_wanted_ = has("hardware");
  if (has("cgroup")) find_cgroup();
  for (size_t i = 0; i < kHardwareCounters; i++) hardware_works_[i] = hardware_wanted_ && HardwareCounters::works(i);
}

bool ProcessMetrics::has(std::string_view group) const {
  std::string word(1, ',');
  word.append(group).push_back(',');
  return groups_.find(word) != std::string::npos;
}

// The files of this process's control group; in a container they often lie at the root, wherever /proc/self/cgroup
// places them.
void ProcessMetrics::find_cgroup() {
  char text[4096];
  if (read_small("/proc/self/cgroup", text, sizeof text) <= 0) return;
  auto first_there = [](std::initializer_list<std::string> paths) {
    for (const std::string& path : paths)
      if (access(path.c_str(), R_OK) == 0) return path;
    return std::string();
  };
  for (char *rest = nullptr, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    const char* controllers = strchr(line, ':');
    const char* path = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (!path) continue;
    std::string names(1, ',');
    names.append(controllers + 1, path).push_back(',');
    const std::string place = path + 1;
    const std::string root = "/sys/fs/cgroup";
    if (names == ",,") {  // version 2
      if (cpu_stat_.empty()) cpu_stat_ = first_there({root + place + "/cpu.stat", root + "/cpu.stat"});
      if (memory_now_.empty()) memory_now_ = first_there({root + place + "/memory.current", root + "/memory.current"});
      throttled_unit_ns_ = 1000;
    } else if (names.find(",cpu,") != names.npos) {
      cpu_stat_ = first_there({root + "/cpu" + place + "/cpu.stat", root + "/cpu/cpu.stat"});
      throttled_unit_ns_ = 1;
    } else if (names.find(",memory,") != names.npos) {
      const std::string file = "/memory.usage_in_bytes";
      memory_now_ = first_there({root + "/memory" + place + file, root + "/memory" + file});
    }
  }
}

void ProcessMetrics::read_threads(Totals& totals) {
  DIR* tasks = open_folder("/proc/self/task");
  if (!tasks) return;
  int main_id = getpid();
  char path[64], text[256];
  thread_cpu_ns_.clear();
  std::vector<int> ids;
  while (dirent* entry = readdir(tasks)) {
    int id = atoi(entry->d_name);
    if (id <= 0) continue;
    ids.push_back(id);
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", id);
    if (read_small(path, text, sizeof text) <= 0) continue;
    char* rest;
    const double cpu_ns = strtod(text, &rest);  // then the time in which it could have run and was not let
    if (id == main_id) totals[kMainWait] = strtod(rest, nullptr);
    if (threads_) thread_cpu_ns_[id] = cpu_ns;
    if (groups_of_threads_.size() > 4096) groups_of_threads_.clear();  // a program that makes threads without end
    auto known = groups_of_threads_.find(id);
    if (known == groups_of_threads_.end()) {
      snprintf(path, sizeof path, "/proc/self/task/%d/comm", id);
      char name[64];
      if (read_small(path, name, sizeof name) <= 0) continue;
      const auto found = std::ranges::find_if(
          kThreadNames, [&](const auto& each) { return std::string_view(name).starts_with(each.prefix); });
      const Metric group = id == main_id ? kMainCpu : found != std::end(kThreadNames) ? found->metric : kOtherCpu;
      known = groups_of_threads_.emplace(id, group).first;
    }
    totals[known->second] += cpu_ns;
  }
  closedir(tasks);
  if (!hardware_wanted_) return;
  hardware_.follow(ids);
  std::ranges::copy(hardware_.sums(), totals.begin() + kHardware);
}

// Of all interfaces but the machine's own; proc(5) does not count bytes per process.
void ProcessMetrics::read_network(Totals& totals) {
  char text[8192];
  if (read_small("/proc/self/net/dev", text, sizeof text) <= 0) return;
  for (char *rest = nullptr, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    char* colon = strchr(line, ':');
    if (!colon || strstr(line, " lo:") || !strncmp(line, "lo:", 3)) continue;
    char* at = colon + 1;
    for (int column = 0; column < 9; column++) {
      const double value = strtod(at, &at);
      if (column == 0) totals[kReceived] += value;
      if (column == 8) totals[kSent] += value;
    }
  }
}

void ProcessMetrics::sample(int64_t now_ns, std::vector<std::pair<uint32_t, double>>& out,
                            const std::function<uint32_t(int)>& metric_of_thread) {
  Totals now{};
  if (has("cpu") || threads_ || hardware_wanted_) read_threads(now);
  char text[4096];
  if (has("io") && read_small("/proc/self/io", text, sizeof text) > 0) {
    now[kRead] = field(text, "rchar: "), now[kWritten] = field(text, "wchar: ") - double(own_written_bytes);
    now[kReadCalls] = field(text, "syscr: "), now[kWriteCalls] = field(text, "syscw: ") - double(own_writes);
    now[kDiskRead] = field(text, "\nread_bytes: "), now[kDiskWritten] = field(text, "\nwrite_bytes: ");
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  rusage children;
  getrusage(RUSAGE_CHILDREN, &children);
  for (const timeval& each : {children.ru_utime, children.ru_stime})
    now[kChildrenCpu] += double(each.tv_sec) * 1e9 + double(each.tv_usec) * 1e3;
  now[kVoluntary] = double(usage.ru_nvcsw), now[kInvoluntary] = double(usage.ru_nivcsw);
  now[kMinorFaults] = double(usage.ru_minflt), now[kMajorFaults] = double(usage.ru_majflt);
  if (has("memory")) {
    out.emplace_back(kPeakResident, double(usage.ru_maxrss) * 1024);
    if (read_small("/proc/self/statm", text, sizeof text) > 0) {
      char* rest;
      strtod(text, &rest);
      out.emplace_back(kResident, strtod(rest, nullptr) * double(sysconf(_SC_PAGESIZE)));
    }
  }
  if (has("pss") && read_small("/proc/self/smaps_rollup", text, sizeof text) > 0)
    out.emplace_back(kPss, field(text, "Pss:") * 1024);
  if (double load = 0; has("load") && read_small("/proc/loadavg", text, sizeof text) > 0) {
    std::from_chars(text, text + strlen(text), load);  // strtod has the program's decimal point
    out.emplace_back(kLoad, load);
  }
  if (has("network")) read_network(now);
  if (!memory_now_.empty() && read_small(memory_now_.c_str(), text, sizeof text) > 0)
    out.emplace_back(kCgroupMemory, strtod(text, nullptr));
  if (!cpu_stat_.empty() && read_small(cpu_stat_.c_str(), text, sizeof text) > 0)
    now[kThrottled] = field(text, throttled_unit_ns_ == 1 ? "throttled_time " : "throttled_usec ") * throttled_unit_ns_;
  if (last_ns_ && now_ns > last_ns_) {
    double wall_ns = double(now_ns - last_ns_), seconds = wall_ns / 1e9;
    for (uint32_t metric = 0; metric < infos().size(); metric++) {
      const MetricInfo& info = infos()[metric];
      const bool in_cores = info.unit == "cores";
      if (!chosen(info) || !(in_cores || info.unit.ends_with("/s"))) continue;
      if (metric == kThrottled && cpu_stat_.empty()) continue;
      if (metric >= kHardware && !hardware_works_[metric - kHardware]) continue;
      // A thread that ended takes its time out of the sum: the rate is then too low, never negative.
      const double more = std::max(0.0, now[metric] - last_[metric]);
      out.emplace_back(metric, more / (in_cores ? wall_ns : seconds));
    }
    for (const auto& [thread, cpu_ns] : thread_cpu_ns_) {
      const auto before = last_thread_cpu_ns_.find(thread);
      if (before == last_thread_cpu_ns_.end() || cpu_ns < before->second) continue;
      if (const uint32_t metric = metric_of_thread(thread); metric != kNoMetric)
        out.emplace_back(metric, (cpu_ns - before->second) / wall_ns);
    }
  }
  last_ = now;
  std::swap(last_thread_cpu_ns_, thread_cpu_ns_);
  last_ns_ = now_ns;
}

}  // namespace strobe
