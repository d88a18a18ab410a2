#include "adapters/gpu/launch_lines.h"

#include "core/rings/ring_sums.h"

namespace strobe::gpu {

namespace {
constexpr size_t kMostOpen = 64;  // different lines of one thread
}

const LaunchLines::Lines* LaunchLines::open() {
  const strobe_open_lines ask = open_lines.load(std::memory_order_relaxed);
  if (!ask) return nullptr;
  strobe_line* lines[kMostOpen];
  const size_t count = ask(lines, kMostOpen);
  if (!count) return nullptr;
  any_ = true;
  std::lock_guard lock(mutex_);
  return &known_.try_emplace({strobe_lines_epoch, {lines, lines + count}}).first->first;
}

void LaunchLines::begin(uint32_t correlation) {
  const Lines* lines = open();
  if (!lines) return;
  std::lock_guard lock(mutex_);
  if (latest_.size() >= kRemembered) before_.swap(latest_), latest_.clear();
  latest_[correlation] = lines;
}

void LaunchLines::keep(uint32_t correlation) {
  const Lines* lines = open();
  if (!lines) return;
  std::lock_guard lock(mutex_);
  captured_[correlation] = lines;
}

void LaunchLines::add_time(uint32_t correlation, uint32_t captured_by, int64_t ns, bool kernel) {
  if (!any_) return;
  std::lock_guard lock(mutex_);
  const Lines* found = nullptr;
  for (const Numbered* each : {&latest_, &before_, &captured_}) {
    if ((each == &captured_) != (captured_by != 0)) continue;
    if (const auto known = each->find(captured_by ? captured_by : correlation); known != each->end())
      found = known->second;
    if (found) break;
  }
  if (!found || found->epoch != strobe_lines_epoch || ns < 0) return;
  for (strobe_line* line : found->lines) line->gpu_ns += uint64_t(ns), line->kernels += kernel;
}

}  // namespace strobe::gpu
