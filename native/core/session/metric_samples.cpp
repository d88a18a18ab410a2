#include "core/session/metric_samples.h"

namespace strobe {

namespace {

constexpr uint32_t kThreadMetrics = 1u << 20;  // + kinds of time * location + kind
constexpr size_t kMostOwnMetrics = 4096;       // of the program; later ones are not recorded, and counted

std::string definition(std::string_view name, std::string_view unit, uint32_t location) {
  Writer w;
  w.text(name), w.text(unit), w.u32(location);
  return std::move(w.bytes);
}

}  // namespace

void MetricSamples::begin(const std::string& groups) {
  of_process_ = std::make_unique<ProcessMetrics>(groups);
  thread_metrics_.clear();
}

void MetricSamples::forked() {  // what the drainer was changing may be half changed here: it is left, not destroyed
  if (of_process_) of_process_->forked();
  (void)of_process_.release();
}

void MetricSamples::append_definitions(std::string& chunks) const {
  const auto& infos = ProcessMetrics::infos();
  const auto first = uint32_t(infos.size());
  for (uint32_t i = 0; i < first; i++)
    if (of_process_->chosen(infos[i]))
      append_chunk(chunks, kMetricChunk, i, 1, definition(infos[i].name, infos[i].unit, kNoLocation));
  for (uint32_t i = 0; i < own_.size(); i++)
    append_chunk(chunks, kMetricChunk, first + i, 1, definition(own_[i].first, own_[i].second, kNoLocation));
}

uint32_t MetricSamples::metric(const char* name, const char* unit) {
  std::lock_guard lock(mutex_);
  const auto first = uint32_t(ProcessMetrics::infos().size());
  for (uint32_t i = 0; i < own_.size(); i++)
    if (own_[i].first == name && own_[i].second == unit) return first + i;
  if (own_.size() >= kMostOwnMetrics) {
    files_.count("metrics_folded", 1);
    return UINT32_MAX;
  }
  own_.emplace_back(name, unit);
  const uint32_t number = first + uint32_t(own_.size()) - 1;
  if (files_.active()) files_.append_chunk(kMetricChunk, number, 1, definition(name, unit, kNoLocation));
  return number;
}

void MetricSamples::add(uint32_t metric, int64_t now_ns, double value) {
  std::lock_guard lock(mutex_);
  add_locked(metric, now_ns, value);
}

void MetricSamples::add_locked(uint32_t metric, int64_t now_ns, double value) {
  RingsHeader* header = files_.header();
  if (!header) return;
  if (header->staged_count.load() >= kStagedSamples) save_locked();
  const uint32_t at = header->staged_count.load();
  if (at >= kStagedSamples) return;  // the disk is full
  header->staged[at] = {metric, 0, now_ns, value};
  header->staged_count.store(at + 1, std::memory_order_release);
}

void MetricSamples::read_process(int64_t now_ns, const std::function<uint32_t(int)>& location_of) {
  std::vector<std::pair<uint32_t, double>> values;
  of_process_->sample(now_ns, values, [&](int thread, uint32_t kind) {
    const uint32_t location = location_of(thread);
    if (location == kNoLocation) return ProcessMetrics::kNoMetric;
    const uint32_t metric = kThreadMetrics + ProcessMetrics::kThreadKinds * location + kind;
    const MetricInfo& info = ProcessMetrics::thread_info(kind);
    if (thread_metrics_.insert(metric).second)
      files_.append_chunk(kMetricChunk, metric, 1, definition(info.name, info.unit, location));
    return metric;
  });
  std::lock_guard lock(mutex_);
  for (const auto& [metric, value] : values) add_locked(metric, now_ns, value);
}

void MetricSamples::save() {
  std::lock_guard lock(mutex_);
  save_locked();
}

void MetricSamples::save_locked() {
  RingsHeader* header = files_.header();
  const uint32_t n = header->staged_count.load();
  if (!n) return;
  files_.append_chunk(kSamplesChunk, 0, n, encode_staged_samples(*header, n));
  if (!files_.failed()) header->staged_count.store(0);
}

}  // namespace strobe
