// node_clock.h - how the clock of this node differs from that of the trace.
//
// All processes of a node share CLOCK_MONOTONIC; those on another node than `strobe run` ask it for its time, in
// datagrams: when the recording begins, ever more rarely while it goes on, and at its end. The recorder's own thread
// does so, without the program's communication. The bytes: docs/format/blocks.md.
#pragma once
#include <stdint.h>

#include <string>
#include <vector>

namespace strobe {

// CLOCK_MONOTONIC of this node counts differently from every node's of another name: the boot and the time namespace.
std::string node_name();

// The time of day when the monotonic clock reads monotonic_ns. `error_ns`: the kernel's own estimate, -1 where the time
// of day is not synchronised.
struct WallClock {
  int64_t monotonic_ns, unix_ns, error_ns;
};
WallClock wall_clock();

// When this process's clock reads local_ns, that of the trace reads local_ns + offset_ns, at most error_ns more or
// less.
struct ClockReading {
  int64_t local_ns = 0, offset_ns = 0, error_ns = 0;
};

class NodeClock {
 public:
  // `server`: port, 16 characters that prove that we are asked for, node name, and its IPv4 addresses; with spaces.
  void ask(const std::string& server);
  // A recording begins.
  void begin();
  bool due(int64_t now_ns) const { return !addresses_.empty() && now_ns >= next_ns_; }
  // The reading of a few that had the shortest way. False: there is nobody to be asked, or nobody answers; it takes
  // 50 ms at most.
  bool measure(ClockReading& reading);

 private:
  bool measure_at(const std::string& address, ClockReading& reading) const;

  std::vector<std::string> addresses_;
  int answered_ = -1;  // which of them: the others are asked no more
  std::string proof_;
  uint16_t port_ = 0;
  int64_t next_ns_ = 0, pause_ns_ = 0;
};

}  // namespace strobe
