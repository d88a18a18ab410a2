// waits.h - what waits for what, as CUPTI tells it: streams and threads for events, threads for streams and contexts.
// An event is recorded by one call and waited for by another: the record of the wait names the event only, and may come
// before the one that says where that was recorded. No CUPTI is called here: the collector and recovery share it.
#pragma once
#include <stdint.h>
#include <map>
#include <utility>
#include <vector>

#include "adapters/cupti/records.h"

namespace strobe::cupti {

class Waits {
 public:
  // `has_number`: recordings of events have numbers of their own (since CUDA 12.8).
  Waits(Sink& sink, bool has_number, bool has_device) : sink_(sink), has_number_(has_number), has_device_(has_device) {}
  // False: the record is of another kind.
  bool add(const Activity& record);
  // Appends the waits for what is known by now, and those whose events are not told for long. `last`: all of them.
  void take(std::vector<DeviceSpan>& out, bool last);

 private:
  struct Waiting {
    SynchronizationRecord record;
    int rounds = 0;
  };
  struct Recorded {  // an event, by a call
    uint32_t correlation, stream;
    uint64_t number;
  };
  const Recorded* recorded(const SynchronizationRecord& wait) const;
  DeviceSpan span_of(const SynchronizationRecord& wait, const Recorded* event);

  Sink& sink_;
  const bool has_number_, has_device_;
  std::vector<Waiting> waiting_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Recorded>> events_;  // by event, context
  std::map<uint32_t, uint32_t> devices_;                                   // of contexts
};

}  // namespace strobe::cupti
