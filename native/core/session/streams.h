// streams.h - locations beside the threads: streams of a device, tasks of the program. One thread at a time reports
// what ran there, when it is over. Their records go through rings as those of threads do, so that a kill loses nothing
// that was reported.
#pragma once
#include <stdint.h>
#include <deque>
#include <string>

#include "core/rings/ring.h"
#include "core/rings/row_ring.h"

namespace strobe {

// One location of a stream: a stream whose spans overlap has several.
struct StreamLane {
  std::string name;
  Producer spans;
  RowProducer rows;
  int64_t last_ns = INT64_MIN;  // the last span's end

  bool open(uint32_t generation) const { return spans.header && spans.generation == generation; }
};

// Before the recording rests or ends, and when it goes on: see strobe_streams_turn_with.
void turn_streams(int what);

}  // namespace strobe

struct strobe_stream {
  static constexpr size_t kMostLanes = 64;  // what overlaps more is counted, and left out
  std::string name;
  strobe::RingKind kind, shown;  // how it is reported, and what the trace calls it
  int64_t device;
  uint64_t number;
  std::deque<strobe::StreamLane> lanes;
};
