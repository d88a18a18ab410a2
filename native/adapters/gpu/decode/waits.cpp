#include "adapters/gpu/decode/waits.h"

#include <algorithm>
#include <string>

namespace strobe::gpu {

namespace {

constexpr size_t kMostEvents = 1 << 16;
constexpr size_t kRecordings = 8;  // of an event that are kept for waits that come later
constexpr int kMostRounds = 3;     // that a wait waits for the record of its event: a GPU may be late

}  // namespace

void Waits::add(const EventRecording& recording) {
  if (events_.size() >= kMostEvents) events_.erase(events_.begin(), std::next(events_.begin(), kMostEvents / 2));
  events_[{recording.event, recording.context}].push_back(recording);
}

// The recording that a wait is for: the one with its number, which may be of another context; before there were
// numbers, the last one before it.
const EventRecording* Waits::recorded(const Wait& wait) const {
  const EventRecording* found = nullptr;
  for (auto at = events_.lower_bound({wait.event, 0}); at != events_.end() && at->first.first == wait.event; ++at)
    for (const EventRecording& each : at->second) {
      if (wait.number && each.number == wait.number) return &each;
      const bool before = at->first.second == wait.context && each.correlation < wait.correlation;
      if (!wait.number && before && (!found || each.correlation > found->correlation)) found = &each;
    }
  return found;
}

DeviceSpan Waits::span_of(const Wait& wait, const EventRecording* event) {
  const auto known = devices_.find(wait.context);
  const uint32_t device = known == devices_.end() ? 0 : known->second;
  const std::string shared = std::to_string(device) + ',' + std::to_string(wait.context) + ',' +
                             (wait.stream == kNoStream ? "" : std::to_string(wait.stream)) + ',' +
                             std::to_string(sink_.text(wait.kind));
  DeviceSpan out{device, 0, kWaitsStream, wait.correlation, {}};
  out.span.region = sink_.region(wait.kind, STROBE_ROLE_SYNC), out.span.row_kind = STROBE_ROW_SYNC;
  out.span.start_ns = out.span.launched_ns = wait.start_ns, out.span.end_ns = wait.end_ns;
  const int32_t number = wait.has_event ? int32_t(wait.event) : STROBE_NOTHING_32;
  out.span.values[0] = STROBE_TWO(wait.correlation, sink_.text(shared.c_str()));
  out.span.values[1] = STROBE_TWO(event ? int32_t(event->stream) : STROBE_NOTHING_32, number);
  out.span.values[2] = STROBE_TWO(event ? int32_t(event->correlation) : STROBE_NOTHING_32, STROBE_NOTHING_32);
  return out;
}

void Waits::take(std::vector<DeviceSpan>& out, bool last) {
  const size_t first = out.size();
  std::erase_if(waiting_, [&](Waiting& each) {
    const EventRecording* event = each.wait.has_event ? recorded(each.wait) : nullptr;
    if (each.wait.has_event && !event && !last && ++each.rounds < kMostRounds) return false;
    out.push_back(span_of(each.wait, event));
    return true;
  });
  for (auto& [key, all] : events_)
    if (all.size() > kRecordings) {
      std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.correlation < b.correlation; });
      all.erase(all.begin(), all.end() - kRecordings);
    }
  std::vector<DeviceSpan> taken(out.begin() + ptrdiff_t(first), out.end());
  sort_by_start(taken);
  std::copy(taken.begin(), taken.end(), out.begin() + ptrdiff_t(first));
}

}  // namespace strobe::gpu
