#include "core/system/process_metrics.h"

#include <dirent.h>
#include <sched.h>
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

// X(number, name, unit, group): as the trace numbers them. Rates of CPU time and of waiting are in cores: 1.0 is one
// core busy, or one thread that waits. The first ones are of groups of threads, kThreadGroups of each kind of time; the
// system time of a group is part of its CPU time.
#define STROBE_METRICS(X)                                                  \
  X(kMainCpu, "cpu main thread", "cores", "cpu")                           \
  X(kPythonCpu, "cpu python threads", "cores", "cpu")                      \
  X(kComputeCpu, "cpu compute threads", "cores", "cpu")                    \
  X(kOtherCpu, "cpu other threads", "cores", "cpu")                        \
  X(kOwnCpu, "cpu strobe", "cores", "cpu")                                 \
  X(kMainSystem, "system time main thread", "cores", "cpu")                \
  X(kPythonSystem, "system time python threads", "cores", "cpu")           \
  X(kComputeSystem, "system time compute threads", "cores", "cpu")         \
  X(kOtherSystem, "system time other threads", "cores", "cpu")             \
  X(kOwnSystem, "system time strobe", "cores", "cpu")                      \
  X(kMainWait, "main thread waits for a core", "cores", "cpu")             \
  X(kPythonWait, "python threads wait for a core", "cores", "cpu")         \
  X(kComputeWait, "compute threads wait for a core", "cores", "cpu")       \
  X(kOtherWait, "other threads wait for a core", "cores", "cpu")           \
  X(kOwnWait, "strobe waits for a core", "cores", "cpu")                   \
  X(kMainBlockIo, "main thread waits for block I/O", "cores", "cpu")       \
  X(kPythonBlockIo, "python threads wait for block I/O", "cores", "cpu")   \
  X(kComputeBlockIo, "compute threads wait for block I/O", "cores", "cpu") \
  X(kOtherBlockIo, "other threads wait for block I/O", "cores", "cpu")     \
  X(kOwnBlockIo, "strobe waits for block I/O", "cores", "cpu")             \
  X(kUser, "cpu user", "cores", "cpu")                                     \
  X(kSystem, "cpu system", "cores", "cpu")                                 \
  X(kCores, "cores of the process", "cores", "cpu")                        \
  X(kMachineUser, "machine user", "cores", "machine")                      \
  X(kMachineSystem, "machine system", "cores", "machine")                  \
  X(kMachineIoWait, "machine I/O wait", "cores", "machine")                \
  X(kMachineIdle, "machine idle", "cores", "machine")                      \
  X(kMachineStolen, "machine stolen", "cores", "machine")                  \
  X(kMachineCores, "cores of the machine", "cores", "machine")             \
  X(kResident, "resident memory", "bytes", "memory")                       \
  X(kRead, "read", "bytes/s", "io")                                        \
  X(kWritten, "written", "bytes/s", "io")                                  \
  X(kVoluntary, "voluntary switches", "1/s", "switches")                   \
  X(kInvoluntary, "involuntary switches", "1/s", "switches")               \
  X(kPeakResident, "peak resident memory", "bytes", "memory")              \
  X(kPss, "proportional memory", "bytes", "pss")                           \
  X(kDiskRead, "read from disk", "bytes/s", "io")                          \
  X(kDiskWritten, "written to disk", "bytes/s", "io")                      \
  X(kMinorFaults, "minor page faults", "1/s", "faults")                    \
  X(kMajorFaults, "major page faults", "1/s", "faults")                    \
  X(kReceived, "received by the machine", "bytes/s", "network")            \
  X(kSent, "sent by the machine", "bytes/s", "network")                    \
  X(kThrottled, "throttled by the control group", "cores", "cgroup")       \
  X(kCgroupMemory, "memory of the control group", "bytes", "cgroup")       \
  X(kLoad, "load of the machine", "tasks", "load")                         \
  X(kReadCalls, "read calls", "1/s", "io")                                 \
  X(kWriteCalls, "write calls", "1/s", "io")                               \
  X(kChildrenCpu, "cpu ended child processes", "cores", "cpu")

enum Metric : uint32_t {
#define STROBE_NUMBER(number, ...) number,
  STROBE_METRICS(STROBE_NUMBER)
#undef STROBE_NUMBER
      kHardware  // and those behind it
};
constexpr uint32_t kThreadGroups = kMainSystem;
// Kinds of time that a metric of a thread has, or several of threads in a group, in this order.
constexpr MetricInfo kThreadMetrics[] = {{"cpu", "cores", "threads"},
                                         {"system time", "cores", "threads"},
                                         {"waits for a core", "cores", "threads"},
                                         {"waits for block I/O", "cores", "threads"}};
static_assert(std::size(kThreadMetrics) == ProcessMetrics::kThreadKinds &&
              kUser == kThreadGroups * ProcessMetrics::kThreadKinds);

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

constexpr std::string_view kUsual = "cpu,threads,machine,memory,switches,faults,io,network,cgroup,load";

constexpr size_t kMachineBytes = 1 << 18;  // more than the lines of 1000 processors

double ns_of(const timeval& time) { return double(time.tv_sec) * 1e9 + double(time.tv_usec) * 1e3; }

// The numbers of a line of proc(5) from `text` on.
template <size_t count>
std::array<double, count> numbers_in(const char* text) {
  std::array<double, count> found{};
  char* at = const_cast<char*>(text);
  for (double& each : found) each = strtod(at, &at);
  return found;
}

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
  static_assert(kHardware + kHardwareCounters <= kMost);
  return all;
}

const MetricInfo& ProcessMetrics::thread_info(uint32_t kind) { return kThreadMetrics[kind]; }

ProcessMetrics::ProcessMetrics(std::string_view groups) : groups_(1, ',') {
  groups_.append(groups.empty() ? kUsual : groups).push_back(',');
  threads_ = has("threads"), hardware_wanted_ = has("hardware");
  tick_ns_ = 1e9 / double(sysconf(_SC_CLK_TCK));
  char text[16];
  // Without this the kernel counts no delays: fields of them are 0, whatever threads wait for.
  counts_delays_ = read_small("/proc/sys/kernel/task_delayacct", text, sizeof text) > 0 && text[0] == '1';
  if (has("cgroup") || has("cpu")) find_cgroup();
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
  char text[4096], text_of_limit[64];
  static constexpr const char* kLimits[] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
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
      const std::string limit = first_there({root + place + "/cpu.max", root + "/cpu.max"});
      if (!limit.empty() && read_small(limit.c_str(), text_of_limit, sizeof text_of_limit) > 0) {
        const auto quota_period = numbers_in<2>(text_of_limit);  // "max" is not a number: no limit
        if (quota_period[1] > 0) core_limit_ = quota_period[0] / quota_period[1];
      }
      throttled_unit_ns_ = 1000;
    } else if (names.find(",cpu,") != names.npos) {
      cpu_stat_ = first_there({root + "/cpu" + place + "/cpu.stat", root + "/cpu/cpu.stat"});
      const std::string folder = cpu_stat_.substr(0, cpu_stat_.rfind('/') + 1);
      double quota_period[2] = {};
      for (int i = 0; i < 2; i++)
        if (read_small((folder + kLimits[i]).c_str(), text_of_limit, sizeof text_of_limit) > 0)
          quota_period[i] = strtod(text_of_limit, nullptr);
      if (quota_period[0] > 0 && quota_period[1] > 0) core_limit_ = quota_period[0] / quota_period[1];
      throttled_unit_ns_ = 1;
    } else if (names.find(",memory,") != names.npos) {
      const std::string file = "/memory.usage_in_bytes";
      memory_now_ = first_there({root + "/memory" + place + file, root + "/memory" + file});
    }
  }
}

// What a thread's time went into until now, ns. A kernel without schedstat has it in ticks, and no waits for a core.
std::optional<ProcessMetrics::ThreadTimes> ProcessMetrics::read_thread(int id) const {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
  if (read_small(path, text, sizeof text) <= 0) return {};
  const char* name_end = strrchr(text, ')');  // a name may hold anything
  if (!name_end || strlen(name_end) < 4) return {};
  // proc(5) counts from 1: field 3, the state, is a letter; 14 and 15 are user and system time, 42 delays of block I/O.
  const auto fields = numbers_in<39>(name_end + 3);
  const double user = fields[14 - 4] * tick_ns_, system = fields[15 - 4] * tick_ns_;
  ThreadTimes times{user + system, system, kUnknown, counts_delays_ ? fields[42 - 4] * tick_ns_ : kUnknown};
  snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", id);
  // CPU time, and the time in which it could have run and was not let.
  if (read_small(path, text, sizeof text) > 0) {
    const auto counted = numbers_in<2>(text);
    times[kCpuTime] = counted[0], times[kCoreWait] = counted[1];
  }
  return times;
}

void ProcessMetrics::read_threads(Totals& totals) {
  DIR* tasks = open_folder("/proc/self/task");
  if (!tasks) return;
  int main_id = getpid();
  std::unordered_map<int, Thread> threads;
  std::vector<int> ids;
  while (dirent* entry = readdir(tasks)) {
    int id = atoi(entry->d_name);
    if (id <= 0) continue;
    ids.push_back(id);
    const std::optional<ThreadTimes> times = read_thread(id);
    if (!times) continue;
    auto known = threads_seen_.find(id);
    if (known != threads_seen_.end() && (*times)[kCpuTime] < known->second.times[kCpuTime]) known = threads_seen_.end();
    Thread now{0, *times, {}};
    if (known == threads_seen_.end()) {
      char path[64], name[64];
      snprintf(path, sizeof path, "/proc/self/task/%d/comm", id);
      if (read_small(path, name, sizeof name) <= 0) continue;
      const auto found = std::ranges::find_if(
          kThreadNames, [&](const auto& each) { return std::string_view(name).starts_with(each.prefix); });
      now.group = id == main_id ? kMainCpu : found != std::end(kThreadNames) ? found->metric : kOtherCpu;
    } else {
      now.group = known->second.group;
    }
    for (uint32_t kind = 0; kind < kThreadKinds; kind++) {
      // One that was not there at the last reading began since.
      const double before = known == threads_seen_.end() ? 0 : known->second.times[kind];
      const double more = (*times)[kind] == kUnknown ? kUnknown : std::max(0.0, (*times)[kind] - before);
      now.more[kind] = more;
      if (more == kUnknown) continue;
      totals[kind * kThreadGroups + now.group] += more;
      groups_read_ |= uint64_t(1) << (kind * kThreadGroups + now.group);
    }
    threads.emplace(id, now);
  }
  closedir(tasks);
  threads_seen_ = std::move(threads);
  if (!hardware_wanted_) return;
  hardware_.follow(ids);
  std::ranges::copy(hardware_.sums(), totals.begin() + kHardware);
}

// Of all processors that are online, those that this process may not use, too. In a container they are the machine's.
bool ProcessMetrics::read_machine(Totals& totals, double& cores) const {
  const std::string text = read_parts("/proc/stat", kMachineBytes);
  if (!text.starts_with("cpu ")) return false;
  // user, nice, system, idle, iowait, irq, softirq, steal; time of guests is part of user and nice.
  const auto ticks = numbers_in<8>(text.c_str() + 4);
  totals[kMachineUser] = (ticks[0] + ticks[1]) * tick_ns_;
  totals[kMachineSystem] = (ticks[2] + ticks[5] + ticks[6]) * tick_ns_;
  totals[kMachineIdle] = ticks[3] * tick_ns_;
  totals[kMachineIoWait] = ticks[4] * tick_ns_;
  totals[kMachineStolen] = ticks[7] * tick_ns_;
  cores = 0;
  for (size_t at = 0; (at = text.find("\ncpu", at)) != text.npos; at++) cores++;
  return ticks[0] + ticks[2] + ticks[3] > 0;
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

// Those that the process may use: of its main thread, by its affinity and the limit of its control group.
double ProcessMetrics::usable_cores() const {
  cpu_set_t allowed;
  const bool known = sched_getaffinity(getpid(), sizeof allowed, &allowed) == 0;  // not known of more than 1024
  const double cores = known ? CPU_COUNT(&allowed) : double(sysconf(_SC_NPROCESSORS_ONLN));
  return core_limit_ > 0 ? std::min(cores, core_limit_) : cores;
}

void ProcessMetrics::sample(int64_t now_ns, std::vector<std::pair<uint32_t, double>>& out,
                            const std::function<uint32_t(int, uint32_t)>& metric_of_thread) {
  Totals now{};
  std::copy_n(last_.begin(), kUser, now.begin());  // of threads: what is counted is added
  if (has("cpu") || threads_ || hardware_wanted_) read_threads(now);
  if (has("cpu")) out.emplace_back(kCores, usable_cores());
  double machine_cores = 0;
  const bool of_machine = has("machine") && read_machine(now, machine_cores);
  if (of_machine)
    out.emplace_back(kMachineCores, machine_cores);
  else
    std::copy_n(&last_[kMachineUser], kMachineCores - kMachineUser, &now[kMachineUser]);
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
  now[kChildrenCpu] = ns_of(children.ru_utime) + ns_of(children.ru_stime);
  now[kUser] = ns_of(usage.ru_utime), now[kSystem] = ns_of(usage.ru_stime);
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
  if (has("cgroup") && !memory_now_.empty() && read_small(memory_now_.c_str(), text, sizeof text) > 0)
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
      if (metric == kCores || metric == kMachineCores || (info.group == "machine" && !of_machine)) continue;
      // A group without threads has CPU time 0; of what its threads wait for, nothing is known.
      if (metric >= kMainSystem && metric < kUser && !(groups_read_ >> metric & 1)) continue;
      if (metric >= kHardware && !hardware_works_[metric - kHardware]) continue;
      // What a thread that ended used since the last reading is in the sum of the process only.
      const double more = std::max(0.0, now[metric] - last_[metric]);
      out.emplace_back(metric, more / (in_cores ? wall_ns : seconds));
    }
    for (const auto& [id, thread] : threads_seen_) {
      for (uint32_t kind = 0; threads_ && kind < kThreadKinds; kind++) {
        if (thread.more[kind] == kUnknown) continue;
        if (const uint32_t metric = metric_of_thread(id, kind); metric != kNoMetric)
          out.emplace_back(metric, thread.more[kind] / wall_ns);
      }
    }
  }
  last_ = now;
  last_ns_ = now_ns;
}

}  // namespace strobe
