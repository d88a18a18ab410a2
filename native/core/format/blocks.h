// blocks.h - the trace format: chunks of the append-only block file. docs/format/blocks.md describes it for other
// readers.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/bytes.h"

namespace strobe {

constexpr uint32_t kChunkMagic = 0x4b425253;  // "SRBK"
constexpr uint8_t kFormatVersion = 1;
constexpr uint32_t kBlockSpans = 4096;
constexpr uint32_t kNoPath = 0xFFFFFFFF;
constexpr uint32_t kSamplesAsTheyAre = 1;  // `location` of a samples chunk: none is there twice, in any order of time
constexpr int64_t kOpen = -1;              // duration of a span that was open when its block was sealed

enum ChunkKind : uint8_t {
  kProcessChunk = 1,       // JSON text
  kRegionsChunk = 2,       // region definitions
  kLocationChunk = 3,      // one location definition
  kPathsChunk = 4,         // call paths: (parent, region), numbered in order from `location` on
  kSpansChunk = 5,         // a block
  kMetricChunk = 6,        // one metric definition
  kSamplesChunk = 7,       // metric samples
  kEndChunk = 8,           // JSON text: quality counters, how the process ended
  kLoopsChunk = 9,         // the loops that were found while the program ran
  kClassesChunk = 10,      // classes of iterations, numbered in order from `location` on
  kIterationsChunk = 11,   // iteration records, numbered in order from `location` on
  kStatisticsChunk = 12,   // what was folded
  kGraphChunk = 13,        // event flow graph of one location
  kTextsChunk = 14,        // texts of side tables, numbered in order from `location` on
  kTableChunk = 15,        // rows of a side table of one location
  kSourceLoopsChunk = 16,  // what the loops of functions call, by region
  kGpuLanesChunk = 17,     // lanes of iterations on one GPU, numbered in order from `location` on
  kNoteChunk = 20,         // JSON text: what became known while the process ran (its rank)
  kPaddingChunk = 21,      // nothing: it fills a part of a file
};

struct ChunkHeader {
  uint32_t magic = kChunkMagic;
  uint8_t kind = 0;
  uint8_t version = kFormatVersion;
  uint16_t flags = 0;
  uint32_t payload_bytes = 0;
  uint32_t location = 0;  // spans, location, metric: whose; paths: number of the first
  uint32_t count = 0;     // rows in the payload
  uint32_t crc_payload = 0;
  uint32_t unused = 0;
  uint32_t crc_header = 0;  // of the 28 bytes before it
};
static_assert(sizeof(ChunkHeader) == 32);

struct OpenSpan {  // an entry of the open stack
  uint64_t row;
  int64_t start_ns;
  uint32_t path;
  uint32_t region;
};

struct Close {  // the end of a span whose block was sealed while it was open
  uint64_t row;
  int64_t end_ns;
};

// First bytes of a spans payload; then carry_count x OpenSpan, close_count x Close, then three zstd frames (start,
// duration, path).
struct SpansHeader {
  uint64_t first_row;
  int64_t first_ns;        // start of the first row
  int64_t last_ns;         // the last time stamp seen when the block was sealed
  uint64_t ring_position;  // records of the location's ring that are in the blocks up to this one
  uint64_t ring_epoch;     // upper bits of the ticks at that position
  uint32_t carry_count;
  uint32_t close_count;
  uint32_t frame_bytes[3];
  uint32_t stack;  // the one that the thread is on at that position (greenlets); 0: the one that it began with
};
static_assert(sizeof(SpansHeader) == 64);

uint32_t crc32c(const void* data, size_t size);

// Appends a whole chunk (header and payload) to `out`.
void append_chunk(std::string& out, ChunkKind kind, uint32_t location, uint32_t count, std::string_view payload);

bool sound_header(const ChunkHeader& header);

// The rows of one block, as columns.
struct SpanColumns {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> duration_ns;  // kOpen: open when sealed
  std::vector<uint32_t> path;
  std::vector<uint8_t> raw;  // room for decoding, kept from one block to the next
  size_t size() const { return start_ns.size(); }
  void clear() { start_ns.clear(), duration_ns.clear(), path.clear(); }
};

// A column of numbers: u32 length, then a zstd frame of LEB128 varints. Signed numbers are zigzag-coded by the caller.
void append_column(std::string& out, const std::vector<uint64_t>& values);
bool read_column(ByteReader& in, size_t count, std::vector<uint64_t>& out);  // false: damaged

// Payload of a spans chunk. `header`'s counts and frame sizes are filled in here.
std::string encode_spans(SpansHeader header, const std::vector<OpenSpan>& carry, const std::vector<Close>& closes,
                         const SpanColumns& columns);

struct SpansView {  // a spans payload in place
  SpansHeader header;
  std::vector<OpenSpan> carry;
  std::vector<Close> closes;
  std::string_view frames[3];
};
bool view_spans(std::string_view payload, uint32_t count, SpansView& out);
// False: damaged. Each column for itself, for those who need not all of them.
bool decode_starts(const SpansView& view, uint32_t count, SpanColumns& out);
bool decode_durations(const SpansView& view, uint32_t count, SpanColumns& out);
bool decode_paths(const SpansView& view, uint32_t count, SpanColumns& out);
inline bool decode_spans(const SpansView& view, uint32_t count, SpanColumns& out) {
  return decode_starts(view, count, out) && decode_durations(view, count, out) && decode_paths(view, count, out);
}

}  // namespace strobe
