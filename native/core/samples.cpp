// Metrics over time: those of the process, which the drainer samples, and the program's own.
#include <string.h>

#include "core/session.h"

namespace strobe {

namespace {
constexpr uint32_t kThreadMetrics = 1u << 20;  // + location: its CPU
constexpr size_t kMostOwnMetrics = 4096;       // of the program; later ones are not recorded, and counted
}  // namespace

void Session::write_metric(uint32_t metric, const char* name, const char* unit, uint32_t location) {
  Writer w;
  w.text(name), w.text(unit), w.u32(location);
  std::string chunk;
  append_chunk(chunk, kMetricChunk, metric, 1, w.bytes);
  append(chunk);
}

uint32_t Session::metric(const char* name, const char* unit) {
  std::lock_guard lock(samples_mutex_);
  const uint32_t first = uint32_t(ProcessMetrics::infos().size());
  for (uint32_t i = 0; i < own_metrics_.size(); i++)
    if (own_metrics_[i].first == name && own_metrics_[i].second == unit) return first + i;
  if (own_metrics_.size() >= kMostOwnMetrics) {
    count("metrics_folded", 1);
    return UINT32_MAX;
  }
  own_metrics_.emplace_back(name, unit);
  const uint32_t number = first + uint32_t(own_metrics_.size()) - 1;
  if (active()) write_metric(number, name, unit, 0xFFFFFFFF);
  return number;
}

void Session::sample(uint32_t metric, double value) {
  if (metric == UINT32_MAX || muted_) return;
  const Inside inside;
  if (state_.load() == kForked) make_recordable(producer);
  if (!active()) return;
  std::lock_guard lock(samples_mutex_);
  stage(metric, monotonic_ns(), value);
}

// With samples_mutex_ held.
void Session::stage(uint32_t metric, int64_t now_ns, double value) {
  RingsHeader* to = header();
  if (!to) return;
  if (to->staged_count.load() >= kStagedSamples) save_staged();
  uint32_t at = to->staged_count.load();
  if (at >= kStagedSamples) return;  // the disk is full
  to->staged[at] = {metric, 0, now_ns, value};
  to->staged_count.store(at + 1, std::memory_order_release);
}

void Session::sample_metrics(int64_t now) {
  note_own_cpu();
  std::vector<std::pair<uint32_t, double>> values;
  metrics_->sample(now, values, [this](int thread) {
    uint32_t location = 0xFFFFFFFF;
    {
      std::lock_guard lock(slots_mutex_);
      for (const auto& slot : slots_)
        if (slot->owner && slot->header->thread_id == uint64_t(thread)) location = slot->header->location;
    }
    if (location == 0xFFFFFFFF) return ProcessMetrics::kNoMetric;
    if (!thread_metrics_[location]) {
      thread_metrics_[location] = true;
      write_metric(kThreadMetrics + location, "cpu", "cores", location);
    }
    return kThreadMetrics + location;
  });
  std::lock_guard lock(samples_mutex_);
  for (const auto& [metric, value] : values) stage(metric, now, value);
}

void Session::save_samples() {
  std::lock_guard lock(samples_mutex_);
  save_staged();
}

void Session::save_staged() {
  uint32_t n = header()->staged_count.load();
  if (!n) return;
  Writer w;
  for (uint32_t i = 0; i < n; i++) {
    const MetricSample& s = header()->staged[i];
    uint64_t bits;
    memcpy(&bits, &s.value, 8);
    w.u32(s.metric), w.u64(uint64_t(s.time_ns)), w.u64(bits);
  }
  std::string chunk;
  append_chunk(chunk, kSamplesChunk, 0, n, w.bytes);
  append(chunk);
  if (!failed_) header()->staged_count.store(0);
}

}  // namespace strobe
