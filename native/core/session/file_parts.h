// file_parts.h - the block file of a flight recorder in parts, of which the oldest are removed while the program runs.
// A part begins with all definitions so far, so that the last parts of a process, one behind the other, are a block
// file. docs/decisions/0023-jobs-that-run-already.md has the reasons.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <unordered_set>

#include "core/format/blocks.h"
#include "include/strobe.h"

namespace strobe {

// Parts that have ended are whole pages of any machine, so that a reader maps them one behind the other.
constexpr uint64_t kPartAlignment = 64 << 10;

// The chunks that later ones refer to: each is repeated at the begin of a part.
class LastingChunks {
 public:
  void forget() { chunks_.clear(), ended_.clear(), clock_.clear(); }
  void note(std::string_view chunks);  // whole chunks that were written
  // What part `number` begins with; what is of threads that have ended is left out, there and from now on.
  std::string begin_part(uint32_t number, int64_t begin_ns);

 private:
  bool of_ended(const ChunkHeader& header, std::string_view payload) const;
  std::string chunks_, clock_;  // clock_: the last reading of the trace's clock
  std::unordered_set<uint32_t> ended_;
};

// A chunk without meaning that fills a file of so many bytes up to kPartAlignment.
std::string padding(uint64_t bytes);

// When a part is full: after an eighth of the time, or of this process's share of the bytes.
class PartPlan {
 public:
  void begin(const strobe_options& options, const std::string& folder);
  bool wanted() const { return part_ns_ > 0; }
  bool full(uint64_t bytes, int64_t now_ns);
  void part_begins(uint64_t bytes, int64_t now_ns) { begun_bytes_ = bytes, begun_ns_ = now_ns; }

 private:
  std::string folder_;
  int64_t part_ns_ = 0, begun_ns_ = 0, next_count_ns_ = 0;
  uint64_t all_bytes_ = 0, part_bytes_ = 0, begun_bytes_ = 0;  // begun: of definitions
};

}  // namespace strobe
