// stretches.h - a location as time without overlap: which span is the innermost, from when to when.
//
// A *stretch* is time in which one span is the innermost without interruption, or in which nothing ran between two
// spans (a gap). Every beginning and every end of a span ends the stretch before it. So every stretch begins in exactly
// one block, from the start of that block's first span up to the start of the next block's, and is known from that
// block alone: whole, wherever a window cuts it.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/reading/process_file.h"

namespace strobe {

constexpr uint32_t kNothing = 0xFFFFFFFF;
constexpr uint32_t kGap = 0xFFFFFFFE;

struct Stretch {
  int64_t start_ns, end_ns;
  uint32_t region;  // kGap: nothing ran
};

// Amounts by region. There are a handful of regions, so that a search along them beats any map.
template <class Amount>
class AmountsByRegion {
 public:
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }
  void add(uint32_t region, Amount amount) {
    const auto known = std::ranges::find(all_, region, &std::pair<uint32_t, Amount>::first);
    if (known != all_.end())
      known->second += amount;
    else
      all_.emplace_back(region, amount);
  }
  // Of equal ones the one with the smallest number.
  std::pair<uint32_t, Amount> largest() const {
    std::pair<uint32_t, Amount> best{kNothing, 0};
    for (const auto& [region, amount] : all_)
      if (amount > best.second || (amount == best.second && region < best.first)) best = {region, amount};
    return best;
  }
  Amount sum() const {
    Amount sum = 0;
    for (const auto& [region, amount] : all_) sum += amount;
    return sum;
  }

 private:
  std::vector<std::pair<uint32_t, Amount>> all_;
};

// What decoding needs, kept from one block to the next.
struct BlockScratch {
  SpansView view;
  SpanColumns columns;
  struct Open {
    int64_t end_ns;
    uint32_t region;
  };
  std::vector<Open> stack;
};

// Calls on_start(start_ns, region) for every span that begins in the block, and on_stretch(stretch) for every stretch
// that does, both in order of time; what begins at `until_ns` or later may be left out. False: the block is damaged.
template <class OnStart, class OnStretch>
bool visit_block(const ProcessFile& file, const Location& location, size_t index, int64_t until_ns,
                 BlockScratch& scratch, OnStart&& on_start, OnStretch&& on_stretch) {
  const Block& block = location.blocks[index];
  auto& [view, columns, stack] = scratch;
  if (!file.view(block, view) || !file.decode(view, block.count, columns)) return false;
  const bool last = index + 1 == location.blocks.size();
  const int64_t block_end = last ? INT64_MAX : location.blocks[index + 1].first_ns;
  stack.clear();
  int64_t now = block.first_ns;
  auto run_until = [&](int64_t until, uint32_t region) {
    until = std::min(until, block_end);
    if (until <= now) return;
    on_stretch(Stretch{now, until, region});
    now = until;
  };
  auto close_until = [&](int64_t time) {
    for (; !stack.empty() && stack.back().end_ns <= time; stack.pop_back())
      run_until(stack.back().end_ns, stack.back().region);
  };
  auto push = [&](int64_t end, uint32_t path) {
    // A child that outlives its parent (a damaged block) is cut at the parent's end.
    if (!stack.empty()) end = std::min(end, stack.back().end_ns);
    stack.push_back({end, file.path_region[path]});
  };
  for (const OpenSpan& open : view.carry) {
    const int64_t end = file.end_of(location, open.row, open.start_ns, kOpen);
    if (open.path < file.path_region.size() && end > now) push(end, open.path);
  }
  for (uint32_t i = 0; i < block.count; i++) {
    const int64_t start = columns.start_ns[i];
    close_until(start);
    run_until(start, stack.empty() ? kGap : stack.back().region);
    if (start >= until_ns) return true;
    if (columns.path[i] >= file.path_region.size()) continue;
    on_start(start, file.path_region[columns.path[i]]);
    push(file.end_of(location, block.first_row + i, start, columns.duration_ns[i]), columns.path[i]);
  }
  close_until(block_end);
  if (!last) run_until(block_end, stack.empty() ? kGap : stack.back().region);
  return true;
}

// The same for a window: spans that begin in [start_ns, end_ns), and all stretches that overlap it, as long as they
// are.
template <class OnStart, class OnStretch>
void visit_window(const ProcessFile& file, uint32_t location, int64_t start_ns, int64_t end_ns, BlockScratch& scratch,
                  OnStart&& on_start, OnStretch&& on_stretch) {
  const auto found = file.locations.find(location);
  if (found == file.locations.end()) return;
  const std::vector<Block>& blocks = found->second.blocks;
  // The last block that starts before the window. Not "at or before": the block before may end with spans that have no
  // duration, right where the window begins.
  auto at = size_t(found->second.first_block_since(start_ns) - blocks.begin());
  if (at > 0) at--;
  for (; at < blocks.size() && blocks[at].first_ns < end_ns; at++)
    visit_block(
        file, found->second, at, end_ns, scratch,
        [&](int64_t start, uint32_t region) {
          if (start >= start_ns) on_start(start, region);
        },
        [&](const Stretch& stretch) {
          if (stretch.end_ns > start_ns && stretch.start_ns < end_ns) on_stretch(stretch);
        });
}

}  // namespace strobe
