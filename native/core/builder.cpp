#include "core/builder.h"

#include <string.h>

namespace strobe {

namespace {
uint64_t hash_path(uint32_t parent, uint32_t region) {
  uint64_t h = (uint64_t(parent) << 32 | region) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}
}  // namespace

void PathTable::grow() {
  std::vector<uint32_t> slots(slots_.empty() ? 1024 : slots_.size() * 2, 0);
  for (uint32_t i = 0; i < paths_.size(); i++) {
    size_t at = hash_path(paths_[i].parent, paths_[i].region) & (slots.size() - 1);
    while (slots[at]) at = (at + 1) & (slots.size() - 1);
    slots[at] = i + 1;
  }
  slots_.swap(slots);
}

uint32_t PathTable::find_or_add(uint32_t parent, uint32_t region) {
  if (paths_.size() * 2 >= slots_.size()) grow();
  size_t at = hash_path(parent, region) & (slots_.size() - 1);
  while (slots_[at]) {
    const Path& p = paths_[slots_[at] - 1];
    if (p.parent == parent && p.region == region) return slots_[at] - 1;
    at = (at + 1) & (slots_.size() - 1);
  }
  paths_.push_back({parent, region, 0, 0});
  slots_[at] = uint32_t(paths_.size());
  return uint32_t(paths_.size() - 1);
}

uint32_t PathTable::look_up(uint32_t parent, uint32_t region) {
  if (__builtin_expect(paths_.size() >= kLimit, 0)) {
    folded_++;
    parent = kNoPath;
  }
  uint32_t path = find_or_add(parent, region);
  if (parent != kNoPath) paths_[parent].last_region = region, paths_[parent].last_child = path;
  return path;
}

void PathTable::add(uint32_t parent, uint32_t region) {
  find_or_add(parent, region);
  saved_ = size();
}

std::string PathTable::unsaved(uint32_t& count) {
  count = size() - saved_;
  Writer w;
  for (uint32_t i = saved_; i < size(); i++) w.u32(paths_[i].parent), w.u32(paths_[i].region);
  return std::move(w.bytes);
}

void LocationBuilder::enter(uint32_t region, int64_t ns) {
  if (ns < last_ns_) ns = last_ns_;
  last_ns_ = ns;
  uint32_t path = paths_.child(stack_.empty() ? kNoPath : stack_.back().path, region);
  stack_.push_back({base_row_ + columns_.size(), ns, path, region});
  columns_.start_ns.push_back(ns);
  columns_.duration_ns.push_back(kOpen);
  columns_.path.push_back(path);
}

void LocationBuilder::close_top(int64_t ns) {
  const OpenSpan& top = stack_.back();
  if (top.row >= base_row_)
    columns_.duration_ns[top.row - base_row_] = ns - top.start_ns;
  else
    closes_.push_back({top.row, ns});
  stack_.pop_back();
}

void LocationBuilder::leave(uint32_t region, int64_t ns) {
  if (ns < last_ns_) ns = last_ns_;
  last_ns_ = ns;
  if (!stack_.empty() && stack_.back().region == region) return close_top(ns);
  // A range that was pushed in one function and popped in another: what it encloses ends with it.
  size_t at = stack_.size();
  while (at > 0 && stack_[at - 1].region != region) at--;
  if (at == 0) {
    if (!forked) unmatched++;
    return;
  }
  while (stack_.size() > at) close_top(ns), cut++;
  close_top(ns);
}

void LocationBuilder::seal(std::string& out, uint64_t ring_position, uint64_t ring_epoch) {
  uint32_t new_paths = 0;
  std::string paths = paths_.unsaved(new_paths);
  if (new_paths) append_chunk(out, kPathsChunk, paths_.size() - new_paths, new_paths, paths);
  paths_.mark_saved();
  SpansHeader header{};
  header.first_row = base_row_;
  header.first_ns = columns_.size() ? columns_.start_ns[0] : last_ns_;
  header.last_ns = last_ns_;
  header.ring_position = ring_position;
  header.ring_epoch = ring_epoch;
  append_chunk(out, kSpansChunk, location_, uint32_t(columns_.size()), encode_spans(header, carry_, closes_, columns_));
  base_row_ += columns_.size();
  columns_.clear();
  closes_.clear();
  carry_ = stack_;
}

void LocationBuilder::resume(uint64_t next_row, std::vector<OpenSpan> stack, int64_t last_ns) {
  base_row_ = next_row;
  stack_ = std::move(stack);
  carry_ = stack_;
  last_ns_ = last_ns;
}

}  // namespace strobe
