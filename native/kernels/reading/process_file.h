// process_file.h - reads the block file of one process, with what its rings still hold when the process ended without
// closing it.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/format/blocks.h"
#include "core/format/span_statistics.h"
#include "core/rings/pending_rows.h"
#include "kernels/reading/block_index.h"
#include "kernels/reading/clock_map.h"
#include "kernels/reading/open_file.h"
#include "structure/cells.h"
#include "structure/gpu_lanes.h"
#include "structure/iterations.h"

namespace strobe {

// Chunks of the same content have the same number, wherever they are.
inline uint64_t content_of(const ChunkHeader& header) { return uint64_t(header.crc_payload) << 32 | header.crc_header; }

struct Region {
  uint32_t id;
  uint8_t paradigm, role;
  uint32_t line;
  std::string name, file, module;
};

struct Block {
  std::string_view payload;
  uint32_t count;
  uint64_t first_row;
  int64_t first_ns, last_ns;
};

struct Location {
  uint32_t id = 0;
  uint64_t thread_id = 0;
  uint8_t kind = 0;  // of LocationKind
  int64_t device = -1;
  std::string name;
  std::vector<Block> blocks;
  Ends ends;              // of spans that were open when their block was sealed
  uint64_t spans = 0;     // rows, also of spans that are not in the file
  uint64_t left_out = 0;  // of these: what a flight recorder has removed
  int64_t first_ns = 0, last_ns = 0;

  // The first block that begins at this moment or later.
  std::vector<Block>::const_iterator first_block_since(int64_t ns) const {
    return std::ranges::lower_bound(blocks, ns, {}, &Block::first_ns);
  }
};

struct Metric {
  uint32_t id;
  uint32_t location;
  std::string name, unit;
  std::vector<int64_t> time_ns;
  std::vector<double> value;
  bool as_they_are = false;  // of another tool: several at the same time are no repetition
};

struct Spans {  // columns of a window, in start order
  std::vector<int64_t> row, start_ns, duration_ns, parent, self_ns;
  std::vector<uint32_t> path;
  std::vector<uint8_t> complete;
};

// In the ring of a location: behind the records that are in blocks.
struct RingPosition {
  uint64_t records = 0, epoch = 0;
};

class ProcessFile {
 public:
  // Throws std::system_error when a file cannot be read, std::runtime_error when it is not a block file.
  ProcessFile(const std::string& blocks_path, const std::string& rings_path);
  ProcessFile(const ProcessFile&) = delete;

  std::vector<std::string> process_json;  // process chunks, then end chunks
  std::vector<std::string> end_json;
  std::vector<std::string> note_json;
  std::vector<Region> regions;
  std::map<uint32_t, std::string> source_loops;  // what the loops of a function call, by region
  std::vector<uint32_t> path_parent, path_region;
  std::vector<uint32_t> path_depth;
  std::map<uint32_t, Location> locations;
  std::map<uint32_t, Metric> metrics;
  // What was found and folded while the program ran.
  std::vector<structure::LoopRecord> loops;
  std::vector<structure::IterationClass> classes;
  std::vector<structure::ExtraCalls> extra_calls;
  std::vector<structure::IterationRecord> iterations;
  structure::CellColumns cells;  // of the iterations; of fewer where an older recorder wrote some
  // By device: the lanes of the iterations from number `first` on; of fewer where the process was killed.
  std::map<int64_t, structure::GpuLanes::Known> gpu_lanes;
  // Whether no record is missing: the number of one is its place.
  bool has_all_iterations() const { return iterations.size() == next_iteration_; }
  StatisticsTable statistics;
  std::map<uint32_t, std::string> graphs;  // location -> payload of its graph chunk
  // Side tables: where their chunks lie, by name; read when somebody asks.
  struct TableChunk {
    uint32_t location, count;
    std::string_view payload;
  };
  std::map<std::string, std::vector<TableChunk>> tables;
  // The chunks of a table; those of a location in the order of their spans, wherever a disk has put them.
  const std::vector<TableChunk>& table_chunks(const std::string& name) const;
  std::vector<std::string_view> texts;  // by number; views of the file
  int64_t last_ns = 0;                  // the last time stamp in the file
  uint64_t bytes_lost = 0;              // torn or damaged, and nowhere else
  uint64_t chunks_damaged = 0;
  // Spans that are known to be missing from a location. Those in front of a block begin in [begin, end); those behind
  // the last one, or of a location without any, at `begin` or later.
  struct LostSpans {
    uint32_t location;
    int64_t begin_ns, end_ns;
    uint64_t spans;
  };
  std::vector<LostSpans> lost_spans() const;
  // Since when all is there, in a file whose beginning a flight recorder has removed; else 0.
  int64_t kept_from_ns() const { return kept_from_ns_; }
  uint64_t recovered_records = 0;
  uint64_t recovered_executions = 0;         // in statistics
  std::map<std::string, uint64_t> counters;  // of the rings' header, when it was read
  int ring_state = 0;
  std::string failure;    // why recording stopped while the program went on; from the rings
  int64_t failed_ns = 0;  // and when
  // Whether the last recording wrote its end. Then the file has all that is in rings that a kill left behind.
  bool ended() const { return !process_json.empty() && end_json.size() >= process_json.size(); }
  std::string recovered_chunks() const;
  size_t bytes() const { return file_.bytes().size(); }
  void release() const { file_.release(); }
  // In the block file, or its newest part: recovered chunks go here.
  size_t sound_bytes() const { return sound_bytes_ - std::min(sound_bytes_, file_.earlier_bytes()); }
  // Blocks that turned out to be damaged when they were read, in a file that was opened by its index.
  uint64_t damaged_later() const;
  uint64_t damaged_later_bytes() const;
  // Compares all blocks and tables of a file that was opened by its index, once; of a large one, only what is read is.
  void check_blocks() const;

  // Writes the index that the next opening uses, unless this one used it or the file is damaged or still written.
  // False: there is none; nor where it cannot be written.
  bool write_index() const;

  // Whether the checksum of a chunk is right, if that was not seen when the file was opened.
  bool whole(std::string_view payload) const;
  // Where the parts of a block lie; false where it is damaged. Columns that are decoded of it by themselves, and its
  // header, are on the process's clock.
  bool view(const Block& block, SpansView& out) const;
  bool decode(const SpansView& view, uint32_t count, SpanColumns& out) const;

  // The end of a span with this duration in its block, or kOpen. One that never ended lasts as long as the file.
  int64_t end_of(const Location& location, uint64_t row, int64_t start_ns, int64_t duration_ns) const {
    if (duration_ns != kOpen) return start_ns + duration_ns;
    const auto known = location.ends.find(row);
    return known != location.ends.end() ? known->second : std::max(last_ns, start_ns);
  }

  // From now on all times are those of the trace. Once, before anything is read.
  void use_clock(ClockMap clock);
  const ClockMap& clock() const { return clock_; }

  // Spans in blocks that begin before a moment, without reading them: no fewer than those that begin before it.
  uint64_t spans_before(int64_t ns) const;

  void spans(uint32_t location, int64_t start_ns, int64_t end_ns, Spans& out) const;

  // Calls visit(row, start_ns, end_ns, path, complete) for every span that overlaps the window, in start order.
  template <class Visit>
  void each(uint32_t location, int64_t start_ns, int64_t end_ns, Visit&& visit) const;

 private:
  void read_chunks(std::string_view bytes, bool of_file);
  void read_chunk(const ChunkHeader& header, std::string_view payload);
  bool read_index();
  std::vector<Snapshot> map_with_snapshots(const std::string& blocks_path);
  void recover_statistics(const std::vector<Snapshot>& snapshots);
  void recover(const std::string& blocks_path, const std::string& rings_path);
  void note_trailer(const ChunkHeader& header, std::string_view payload, size_t offset);
  void drop_torn_rows();
  void begins_part(std::string_view note);
  ClockMap clock_;
  uint32_t next_iteration_ = 0;
  bool in_parts_ = false;
  int64_t kept_from_ns_ = 0;
  std::string index_path_;
  BlockIndex index_;
  bool indexed_ = false, still_written_ = false;
  FileState state() const { return {bytes(), file_.changed_ns()}; }
  MappedFile file_;
  std::unordered_set<uint64_t> in_file_;  // contents of the chunks of a process that was killed, or runs
  std::vector<uint64_t> others_;          // offsets of the chunks that are neither blocks nor tables, as they are read
  std::map<uint32_t, uint64_t> damaged_spans_;  // by location, in blocks whose header is sound
  bool is_damaged(std::string_view payload) const;
  mutable std::mutex ordered_lock_;
  mutable std::map<std::string, std::vector<TableChunk>> ordered_tables_;
  mutable std::mutex damaged_lock_;
  mutable std::map<const char*, size_t> damaged_later_;  // payloads of an indexed file and their bytes
  mutable std::once_flag checked_;
  size_t sound_bytes_ = 0;        // up to the chunk that was being written when the process was killed
  size_t torn_bytes_ = 0;         // behind the last sound chunk: the beginning of one
  std::string kept_chunks_;       // of the file, behind its sound bytes
  std::string recovered_chunks_;  // both are to be appended to the block file
  std::unordered_map<uint32_t, RingPosition> ring_positions_;  // of each location, as its last block has it
  struct RowChunk {
    RowTrailer trailer;
    uint32_t location;
    size_t offset;  // of the chunk in the file
    std::string table;
  };
  std::vector<RowChunk> row_chunks_;  // of a process that was killed or still runs
};

// Completes the block file of a process that ended without closing it, and removes the rings of any that has ended.
// Returns how many records were recovered; throws as ProcessFile does. `end_state`: how it ended, as far as is known.
uint64_t recover_process(const std::string& blocks_path, const std::string& rings_path,
                         const std::string& end_state = "lost");

// Appends a note (JSON) to the block file of a process that has ended. False: the process still writes, the end of the
// file is damaged, or the disk is full; the file is as it was.
bool append_note(const std::string& blocks_path, const std::string& json);

template <class Visit>
void ProcessFile::each(uint32_t location, int64_t start_ns, int64_t end_ns, Visit&& visit) const {
  auto found = locations.find(location);
  if (found == locations.end()) return;
  const Location& loc = found->second;
  // The last block that starts before the window: spans of earlier blocks that reach into it are in its carry. Not "at
  // or before": the block before may end with a span of no duration, right where the window begins.
  auto at = size_t(loc.first_block_since(start_ns) - loc.blocks.begin());
  if (at > 0) at--;
  SpansView view;
  SpanColumns columns;
  for (size_t first = at; at < loc.blocks.size(); at++) {
    const Block& block = loc.blocks[at];
    if (at > first && block.first_ns >= end_ns) break;
    if (!this->view(block, view) || !decode(view, block.count, columns)) continue;
    auto emit = [&](uint64_t row, int64_t start, int64_t duration, uint32_t path) {
      const bool complete = duration != kOpen || loc.ends.find(row) != loc.ends.end();
      const int64_t end = end_of(loc, row, start, duration);
      // Zero-length spans belong to the window that holds their start.
      if (start < end_ns && (end > start_ns || (end == start && start >= start_ns)) && path < path_region.size())
        visit(row, start, end, path, complete);
    };
    if (at == first)
      for (const OpenSpan& open : view.carry) emit(open.row, open.start_ns, kOpen, open.path);
    for (uint32_t i = 0; i < block.count; i++) {
      if (columns.start_ns[i] >= end_ns) break;
      emit(block.first_row + i, columns.start_ns[i], columns.duration_ns[i], columns.path[i]);
    }
  }
}

}  // namespace strobe
