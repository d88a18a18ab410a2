// waits.h - what waits for what: streams and threads for events, threads for streams and contexts. An event is recorded
// by one call and waited for by another: the record of the wait names the event only, and may come before the
// record of where that was.
#pragma once
#include <stdint.h>
#include <map>
#include <utility>
#include <vector>

#include "adapters/gpu/decode/spans.h"

namespace strobe::gpu {

struct Wait {
  const char* kind;  // "Event Sync", as Kineto and Nsight Systems call them
  int64_t start_ns, end_ns;
  uint32_t context, stream, correlation;
  bool has_event;
  uint32_t event;
  uint64_t number;  // of the event's recording; 0: not known
};
// An event, recorded by a call.
struct EventRecording {
  uint32_t event, context, stream, correlation;
  uint64_t number;  // 0: not known
};

class Waits {
 public:
  explicit Waits(Sink& sink) : sink_(sink) {}
  void add(const Wait& wait) { waiting_.push_back({wait}); }
  void add(const EventRecording& recording);
  void set_device(uint32_t context, uint32_t device) { devices_[context] = device; }
  // Appends the waits for what is known by now, and those whose events stay unknown for long. `last`: all of them.
  void take(std::vector<DeviceSpan>& out, bool last);

 private:
  struct Waiting {
    Wait wait;
    int rounds = 0;
  };
  const EventRecording* recorded(const Wait& wait) const;
  DeviceSpan span_of(const Wait& wait, const EventRecording* event);

  Sink& sink_;
  std::vector<Waiting> waiting_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<EventRecording>> events_;  // by event, context
  std::map<uint32_t, uint32_t> devices_;                                         // of contexts
};

}  // namespace strobe::gpu
