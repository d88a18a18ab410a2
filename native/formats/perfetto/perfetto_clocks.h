// perfetto_clocks.h - the clocks of a Perfetto trace: snapshots have what several of them showed at one moment, and
// packets give times of any of them. As Perfetto's own importer does, a time is translated with the snapshots that came
// before it in the file (protos/perfetto/trace/clock_snapshot.proto; docs/concepts/clock-sync.md of the project).
#pragma once
#include <stdint.h>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/encoding/protobuf_wire.h"

namespace strobe {

class PerfettoClocks {
 public:
  static constexpr uint32_t kRealtime = 1, kBootTime = 6;

  void snapshot(uint32_t sequence, std::string_view message);
  // A packet's time in nanoseconds of the trace's clock; false where no snapshot leads there.
  bool translate(uint32_t sequence, uint32_t clock, uint64_t time, int64_t& out_ns);
  uint32_t trace_clock() const { return trace_clock_; }
  // Unix time of the zero of the trace's clock, false where no snapshot has it.
  bool unix_base(int64_t& out_ns) const;

 private:
  static bool of_sequence(uint32_t clock) { return clock >= 64 && clock < 128; }
  static uint64_t key(uint32_t sequence, uint32_t clock) { return uint64_t(sequence) << 32 | clock; }
  struct Local {  // a clock that only one sequence of packets has
    bool incremental = false;
    int64_t unit_ns = 1;
    int64_t at_ns = 0;        // incremental: of the packet before
    int64_t snapshot_ns = 0;  // of the newest snapshot, and what others showed then
    std::vector<std::pair<uint32_t, int64_t>> together;
  };
  using Offsets = std::vector<std::pair<int64_t, int64_t>>;  // moments of one clock, what the other showed, in order
  bool to_trace_clock(uint32_t clock, int64_t ns, int64_t& out_ns);
  const std::vector<uint32_t>& path(uint32_t clock);

  uint32_t trace_clock_ = kBootTime;
  bool known_ = false, any_snapshot_ = false;
  std::unordered_map<uint64_t, Local> locals_;
  std::unordered_map<uint32_t, int64_t> unit_ns_;
  std::map<std::pair<uint32_t, uint32_t>, Offsets> offsets_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> paths_;  // clocks on the way to the trace's, itself first
};

}  // namespace strobe
