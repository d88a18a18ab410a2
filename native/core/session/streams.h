// streams.h - locations beside the threads (streams of a device, tasks of the program): what ran there is told by one
// thread at a time when it is over, and goes through rings as what threads record does, so that a kill loses nothing
// that was told.
#pragma once
#include <stdint.h>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>

#include "core/rings/ring.h"
#include "core/rings/row_ring.h"

namespace strobe {

// One location of a stream: a stream whose spans overlap has several.
struct StreamProducer {
  std::string name;
  RingKind kind = kOfStream, shown = kOfStream;  // how it is told, and what the trace calls it
  int64_t device = -1;
  uint64_t number = 0;
  Producer spans;
  RowProducer rows;
  int64_t last_ns = INT64_MIN;  // the last span's end

  bool open(uint32_t generation) const { return spans.header && spans.generation == generation; }
};

// Who is called before the recording rests or ends, and when it goes on: see strobe_streams_turn_with.
class StreamTurns {
 public:
  void add(void (*turn)(int what));  // nullptr: none any more
  void turn(int what) const;

 private:
  std::atomic<void (*)(int)> turns_[4]{};
};

}  // namespace strobe

// A stream, and the lanes beside it.
struct strobe_stream {
  static constexpr size_t kMostLanes = 64;  // what overlaps more is counted, and left out
  std::string name;
  strobe::RingKind kind, shown;
  int64_t device;
  uint64_t number;
  std::deque<strobe::StreamProducer> lanes;
};
