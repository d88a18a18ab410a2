#include "adapters/cupti/waits.h"

#include <algorithm>
#include <string>

namespace strobe::cupti {

namespace {

constexpr size_t kMostEvents = 1 << 16;
constexpr size_t kRecordings = 8;  // of an event that are kept for waits that come later
constexpr int kMostRounds = 3;     // that a wait waits for the record of its event: a GPU may be late

const char* kind_name(SynchronizationType type) {  // as Kineto and Nsight Systems call them
  switch (type) {
    case kEventSynchronize:
      return "Event Sync";
    case kStreamWaitEvent:
      return "Stream Wait Event";
    case kStreamSynchronize:
      return "Stream Sync";
    case kContextSynchronize:
      return "Context Sync";
    default:
      return "Unknown";
  }
}

bool names_event(const SynchronizationRecord& wait) {
  return (wait.type == kEventSynchronize || wait.type == kStreamWaitEvent) && wait.event != kNoEvent;
}

}  // namespace

bool Waits::add(const Activity& record) {
  switch (record.kind) {
    case kSynchronization:
      waiting_.push_back({reinterpret_cast<const SynchronizationRecord&>(record)});
      return true;
    case kCudaEvent: {
      const auto& r = reinterpret_cast<const CudaEventRecord&>(record);
      if (has_device_) devices_[r.context] = r.device;
      if (events_.size() >= kMostEvents) events_.erase(events_.begin(), std::next(events_.begin(), kMostEvents / 2));
      events_[{r.event, r.context}].push_back({r.correlation, r.stream, has_number_ ? r.event_sync : 0});
      return true;
    }
    case kContext: {
      const auto& r = reinterpret_cast<const ContextRecord&>(record);
      devices_[r.context] = r.device;
      return true;
    }
    default:
      return false;
  }
}

// The recording that a wait is for: the one with its number, which may be of another context; before there were
// numbers, the last one before it.
const Waits::Recorded* Waits::recorded(const SynchronizationRecord& wait) const {
  const Recorded* found = nullptr;
  const uint64_t number = has_number_ ? wait.event_sync : 0;
  for (auto at = events_.lower_bound({wait.event, 0}); at != events_.end() && at->first.first == wait.event; ++at)
    for (const Recorded& each : at->second) {
      if (number && each.number == number) return &each;
      const bool before = at->first.second == wait.context && each.correlation < wait.correlation;
      if (!number && before && (!found || each.correlation > found->correlation)) found = &each;
    }
  return found;
}

DeviceSpan Waits::span_of(const SynchronizationRecord& wait, const Recorded* event) {
  const auto known = devices_.find(wait.context);
  const uint32_t device = known == devices_.end() ? 0 : known->second;
  const char* kind = kind_name(wait.type);
  const std::string shared = std::to_string(device) + ',' + std::to_string(wait.context) + ',' +
                             (wait.stream == kNoStream ? "" : std::to_string(wait.stream)) + ',' +
                             std::to_string(sink_.text(kind));
  DeviceSpan out{device, 0, kWaitsStream, wait.correlation, {}};
  out.span.region = sink_.region(kind, STROBE_ROLE_SYNC), out.span.row_kind = STROBE_ROW_SYNC;
  out.span.start_ns = out.span.launched_ns = int64_t(wait.start), out.span.end_ns = int64_t(wait.end);
  const int32_t number = names_event(wait) ? int32_t(wait.event) : STROBE_NOTHING_32;
  out.span.values[0] = STROBE_TWO(wait.correlation, sink_.text(shared.c_str()));
  out.span.values[1] = STROBE_TWO(event ? int32_t(event->stream) : STROBE_NOTHING_32, number);
  out.span.values[2] = STROBE_TWO(event ? int32_t(event->correlation) : STROBE_NOTHING_32, STROBE_NOTHING_32);
  return out;
}

void Waits::take(std::vector<DeviceSpan>& out, bool last) {
  const size_t first = out.size();
  std::erase_if(waiting_, [&](Waiting& each) {
    const Recorded* event = names_event(each.record) ? recorded(each.record) : nullptr;
    if (names_event(each.record) && !event && !last && ++each.rounds < kMostRounds) return false;
    out.push_back(span_of(each.record, event));
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

}  // namespace strobe::cupti
