#include "core/process_metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

namespace strobe {

namespace {

enum Metric : uint32_t {
  kMainCpu,
  kPythonCpu,
  kComputeCpu,
  kOtherCpu,
  kOwnCpu,
  kResident,
  kRead,
  kWritten,
  kVoluntary,
  kInvoluntary
};

bool read_small(const char* path, char* buffer, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, buffer, size - 1);
  close(fd);
  if (n <= 0) return false;
  buffer[n] = 0;
  return true;
}

double field(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at ? strtod(at + strlen(name), nullptr) : 0.0;
}

}  // namespace

const std::vector<MetricInfo>& ProcessMetrics::infos() {
  // CPU is in cores: 1.0 is one core busy. "compute" are the pools of OpenMP, MKL, PyTorch and the autograd engine.
  static const std::vector<MetricInfo> all = {
      {"cpu main thread", "cores"},
      {"cpu python threads", "cores"},
      {"cpu compute threads", "cores"},
      {"cpu other threads", "cores"},
      {"cpu strobe", "cores"},
      {"resident memory", "bytes"},
      {"read", "bytes/s"},
      {"written", "bytes/s"},
      {"voluntary switches", "1/s"},
      {"involuntary switches", "1/s"},
  };
  return all;
}

void ProcessMetrics::read_threads(Totals& totals) {
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return;
  int main_id = getpid();
  char path[64], text[256];
  while (dirent* entry = readdir(tasks)) {
    int id = atoi(entry->d_name);
    if (id <= 0) continue;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", id);
    if (!read_small(path, text, sizeof text)) continue;
    double cpu_ns = strtod(text, nullptr);
    if (groups_.size() > 4096) groups_.clear();  // a program that makes threads without end
    auto known = groups_.find(id);
    if (known == groups_.end()) {
      snprintf(path, sizeof path, "/proc/self/task/%d/comm", id);
      char name[64];
      if (!read_small(path, name, sizeof name)) continue;
      auto begins = [&](const char* prefix) { return !strncmp(name, prefix, strlen(prefix)); };
      double Totals::* group = &Totals::other_cpu_ns;
      if (id == main_id)
        group = &Totals::main_cpu_ns;
      else if (begins("strobe"))
        group = &Totals::own_cpu_ns;
      else if (begins("pt_") || begins("omp") || begins("OMP") || begins("mkl") || begins("iomp"))
        group = &Totals::compute_cpu_ns;
      else if (begins("python") || begins("Thread-") || begins("QueueFeeder"))
        group = &Totals::python_cpu_ns;
      known = groups_.emplace(id, group).first;
    }
    totals.*(known->second) += cpu_ns;
  }
  closedir(tasks);
}

void ProcessMetrics::sample(int64_t now_ns, std::vector<std::pair<uint32_t, double>>& out) {
  Totals now;
  read_threads(now);
  char text[1024];
  if (read_small("/proc/self/io", text, sizeof text)) {
    now.read_bytes = field(text, "rchar: ");
    now.write_bytes = field(text, "wchar: ");
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  now.voluntary = double(usage.ru_nvcsw);
  now.involuntary = double(usage.ru_nivcsw);
  if (read_small("/proc/self/statm", text, sizeof text)) {
    char* rest;
    strtod(text, &rest);
    out.emplace_back(kResident, strtod(rest, nullptr) * double(sysconf(_SC_PAGESIZE)));
  }
  if (last_ns_ && now_ns > last_ns_) {
    double wall_ns = double(now_ns - last_ns_), seconds = wall_ns / 1e9;
    // A thread that ended takes its time out of the sum: the rate is then unknown low, never negative.
    auto rate = [&](uint32_t metric, double a, double b, double per) {
      out.emplace_back(metric, b > a ? (b - a) / per : 0.0);
    };
    rate(kMainCpu, last_.main_cpu_ns, now.main_cpu_ns, wall_ns);
    rate(kPythonCpu, last_.python_cpu_ns, now.python_cpu_ns, wall_ns);
    rate(kComputeCpu, last_.compute_cpu_ns, now.compute_cpu_ns, wall_ns);
    rate(kOtherCpu, last_.other_cpu_ns, now.other_cpu_ns, wall_ns);
    rate(kOwnCpu, last_.own_cpu_ns, now.own_cpu_ns, wall_ns);
    rate(kRead, last_.read_bytes, now.read_bytes, seconds);
    rate(kWritten, last_.write_bytes, now.write_bytes, seconds);
    rate(kVoluntary, last_.voluntary, now.voluntary, seconds);
    rate(kInvoluntary, last_.involuntary, now.involuntary, seconds);
  }
  last_ = now;
  last_ns_ = now_ns;
}

}  // namespace strobe
