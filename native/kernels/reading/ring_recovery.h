// ring_recovery.h - what the rings of a process still hold that ended without closing its file: as chunks for that
// file.
#pragma once
#include <stdint.h>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "core/format/span_statistics.h"
#include "core/rings/pending_rows.h"
#include "core/rings/ring.h"
#include "core/spans/location_builder.h"
#include "core/spans/short_spans.h"
#include "kernels/reading/process_file.h"
#include "kernels/reading/recovered_gpu_buffers.h"

namespace strobe {

class RingRecovery {
 public:
  using Positions = std::unordered_map<uint32_t, RingPosition>;  // by location
  // Up to where rows of a ring are in the file, by the ring's location, kind, and the location that they are about.
  using RowsWritten = std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t>;

  // `rings`: the whole file, with a header. Chunks are appended to `chunks`; counters and locations of `file` grow.
  RingRecovery(ProcessFile& file, std::string_view rings, const Positions& positions, const RowsWritten& rows_written,
               std::string& chunks);
  // `gpu_path`: what a killed process left there of GPUs; empty where it still runs.
  void run(const std::string& gpu_path);
  uint64_t records() const { return records_; }
  // Records that were overwritten in their ring are in no block.
  bool overwritten() const { return overwritten_; }

 private:
  struct RowsOfRing {
    const RingHeader* header = nullptr;
    uint64_t at = 0, head = 0;
  };
  const RingHeader* ring_at(uint32_t number) const;
  void read_header();
  void read_part(const RingHeader& ring);
  void read_ring(const RingHeader& ring);
  void resume(LocationBuilder& builder, RecordDecoder& decoder, const Location& location, uint64_t& position) const;
  RowsOfRing rows_of(uint32_t location) const;
  void feed_rows(LocationBuilder& builder, const RingHeader& ring, RowsOfRing& rows, uint64_t first, uint64_t until);
  void emit_rows(LocationBuilder& builder);
  void seal_without_short(LocationBuilder& builder, uint64_t position, uint64_t epoch);
  int64_t ns_of(const RingHeader& ring, uint64_t ticks) const {
    return ring.of_stream ? int64_t(ticks) : line_.at(ticks);
  }

  ProcessFile& file_;
  const std::string_view rings_;
  const RingsHeader& header_;
  const Positions& positions_;
  const RowsWritten& rows_written_;
  std::string& chunks_;
  LateSpans late_;
  PathTable paths_;
  std::unordered_map<uint32_t, std::pair<uint8_t, uint8_t>> kinds_;  // of regions: paradigm and role
  ShortSpans short_spans_;
  StatisticsTable left_out_;
  ClockLine line_;
  std::map<uint32_t, const RingHeader*> row_rings_;  // by location
  uint64_t records_ = 0;
  bool overwritten_ = false;
};

}  // namespace strobe
