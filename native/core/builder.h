// builder.h - from records to blocks: pairs enters with leaves, interns call paths, seals blocks. Used by the drainer
// while the program runs and by recovery after it died, so that both give the same blocks.
#pragma once
#include <stdint.h>
#include <functional>
#include <vector>

#include "core/blocks.h"

namespace strobe {

// Call paths of a process, numbered in order of first use: (parent path, region). Open addressing, load at most one
// half.
class PathTable {
 public:
  static constexpr uint32_t kLimit = 1u << 20;  // then paths fold into one root path per region: memory stays bounded
  uint32_t child(uint32_t parent, uint32_t region) {
    // A loop calls the same again: most look-ups end here.
    const Path* p = parent < paths_.size() ? &paths_[parent] : nullptr;
    if (p && p->last_region == region) return p->last_child;
    return look_up(parent, region);
  }
  void add(uint32_t parent, uint32_t region);  // recovery: the path that the file numbers next
  uint32_t size() const { return uint32_t(paths_.size()); }
  uint32_t region(uint32_t path) const { return paths_[path].region; }
  uint64_t folded() const { return folded_; }
  // Payload of a paths chunk for the paths that no chunk holds yet; `count` of them.
  std::string unsaved(uint32_t& count);
  void mark_saved() { saved_ = size(); }

 private:
  struct Path {
    uint32_t parent, region;
    uint32_t last_region = 0, last_child = 0;  // the child looked up last; no region is 0
  };
  uint32_t look_up(uint32_t parent, uint32_t region);
  uint32_t find_or_add(uint32_t parent, uint32_t region);
  void grow();
  std::vector<Path> paths_;
  std::vector<uint32_t> slots_;  // path + 1, 0 empty
  uint32_t saved_ = 0;
  uint64_t folded_ = 0;
};

class LocationBuilder {
 public:
  LocationBuilder(uint32_t location, PathTable& paths) : location_(location), paths_(paths) {}

  void enter(uint32_t region, int64_t ns);
  void leave(uint32_t region, int64_t ns);
  bool full() const { return columns_.size() >= kBlockSpans; }
  bool dirty() const { return columns_.size() > 0 || !closes_.empty(); }
  // Appends the block (and the paths it needs) to `out` and starts the next one.
  void seal(std::string& out, uint64_t ring_position, uint64_t ring_epoch);
  // Recovery: continue behind the last sealed block.
  void resume(uint64_t next_row, std::vector<OpenSpan> stack, int64_t last_ns);

  uint64_t spans() const { return base_row_ + columns_.size(); }
  size_t depth() const { return stack_.size(); }
  int64_t last_ns() const { return last_ns_; }
  uint32_t location() const { return location_; }
  // Leaves without an enter; spans ended by the end of a span that encloses them.
  uint64_t unmatched = 0, cut = 0;
  bool forked = false;  // leaves of the parent's open spans are expected and not counted

 private:
  void close_top(int64_t ns);
  uint32_t location_;
  PathTable& paths_;
  SpanColumns columns_;
  std::vector<OpenSpan> stack_, carry_;
  std::vector<Close> closes_;
  uint64_t base_row_ = 0;
  int64_t last_ns_ = 0;
};

// Converts records to builder calls; `epoch` is the decoder's state.
struct RecordDecoder {
  uint64_t epoch = 0;
  template <class At>
  void feed(uint64_t record, LocationBuilder& builder, At&& at_ns) {
    // at_ns: ticks -> ns
    uint64_t kind = record >> 62;
    if (kind == 2) {
      epoch = record & ((uint64_t(1) << 40) - 1);
      return;
    }
    uint64_t t = (epoch << 40) | (record & ((uint64_t(1) << 40) - 1));
    uint32_t region = uint32_t(record >> 40) & ((1u << 22) - 1);
    if (kind == 0)
      builder.enter(region, at_ns(t));
    else if (kind == 1)
      builder.leave(region, at_ns(t));
  }
};

}  // namespace strobe
