#include "kernels/reading/path_sums.h"

#include <algorithm>

namespace strobe {

namespace {

struct Sum {  // one cache line
  int64_t calls = 0, total_ns = 0, inside_ns = 0, min_ns = INT64_MAX, max_ns = INT64_MIN;
  uint32_t parent, depth;
  void add(int64_t duration_ns) {
    calls++;
    total_ns += duration_ns;
    min_ns = std::min(min_ns, duration_ns);
    max_ns = std::max(max_ns, duration_ns);
  }
};

struct Open {  // the span that is open at a depth, or was last
  int64_t end_ns;
  uint32_t path;
  bool chosen;
};

PathSums columns_of(const std::vector<Sum>& sums) {
  PathSums out;
  for (const Sum& sum : sums) {
    out.calls.push_back(sum.calls);
    out.total_ns.push_back(sum.total_ns);
    out.own_ns.push_back(sum.total_ns - sum.inside_ns);
    out.min_ns.push_back(sum.calls ? sum.min_ns : 0);
    out.max_ns.push_back(sum.calls ? sum.max_ns : 0);
  }
  return out;
}

// All spans of a location without a missing block. What encloses a span then has the path above its own, so that the
// time directly inside of a path is that of the paths below it. Which span is inside of which need not be found out,
// and starts matter only for spans that were open when their block was sealed. The next block has those.
class SummingAll {
 public:
  SummingAll(const ProcessFile& file, const Location& location)
      : file_(file), location_(location), sums_(file.path_region.size()) {}

  // False: something is missing, and what encloses what must be looked at.
  bool add_blocks() {
    if (!file_.clock().empty()) return false;  // on another clock durations need starts, too
    for (size_t path = 0; path < sums_.size(); path++)
      if (!sound(path)) return false;
    uint64_t row = location_.blocks.empty() ? 0 : location_.blocks[0].first_row;
    for (const Block& block : location_.blocks) {
      std::swap(view_, before_);
      if (block.first_row != row || !file_.view(block, view_)) return false;
      if (row == location_.blocks[0].first_row)
        for (const OpenSpan& open : view_.carry) add_open(open.row, open.start_ns, open.path);
      else if (!add_open_before())
        return false;
      if (!add(block)) return false;
      row += block.count, count_before_ = block.count;
    }
    std::swap(view_, before_), view_.carry.clear();
    if (!add_open_before()) return false;
    for (size_t path = 0; path < sums_.size(); path++)
      if (file_.path_parent[path] != kNoPath) sums_[file_.path_parent[path]].inside_ns += sums_[path].total_ns;
    return true;
  }

  const std::vector<Sum>& result() const { return sums_; }

 private:
  bool sound(size_t path) const {
    const uint32_t parent = file_.path_parent[path], depth = file_.path_depth[path];
    return parent == kNoPath ? depth == 0 : parent < path && depth == file_.path_depth[parent] + 1u;
  }

  bool add(const Block& block) {
    if (!decode_durations(view_, block.count, columns_) || !decode_paths(view_, block.count, columns_)) return false;
    const int64_t* const durations = columns_.duration_ns.data();
    const uint32_t* const paths = columns_.path.data();
    for (uint32_t i = 0; i < block.count; i++) {
      if (paths[i] >= sums_.size()) return false;
      if (durations[i] == kOpen)
        open_.push_back({block.first_row + i, 0, paths[i], i});
      else
        sums_[paths[i]].add(durations[i]);
    }
    return true;
  }

  void add_open(uint64_t row, int64_t start_ns, uint32_t path) {
    if (path < sums_.size()) sums_[path].add(file_.end_of(location_, row, start_ns, kOpen) - start_ns);
  }

  // Those that were open when the block before was sealed: the carry of this one has their starts.
  bool add_open_before() {
    bool decoded = false;
    auto carried = view_.carry.begin();  // in order of rows, as `open_` is
    for (const OpenSpan& each : open_) {
      while (carried != view_.carry.end() && carried->row < each.row) carried++;
      if (carried != view_.carry.end() && carried->row == each.row) {
        add_open(each.row, carried->start_ns, each.path);
        continue;
      }
      if (!decoded && !decode_starts(before_, count_before_, columns_)) return false;
      decoded = true;
      add_open(each.row, columns_.start_ns[each.region], each.path);
    }
    open_.clear();
    return true;
  }

  const ProcessFile& file_;
  const Location& location_;
  std::vector<Sum> sums_;
  std::vector<OpenSpan> open_;  // of the block before; `region` is its place in the block
  SpansView view_, before_;
  uint32_t count_before_ = 0;
  SpanColumns columns_;
};

class Summing {
 public:
  Summing(const ProcessFile& file, const Location& location, const std::vector<TimeRange>* chosen)
      : file_(file), location_(location), chosen_(chosen), sums_(file.path_region.size()) {
    for (size_t i = 0; i < sums_.size(); i++)
      sums_[i].parent = file.path_parent[i], sums_[i].depth = file.path_depth[i];
  }

  void add_blocks() {
    const std::vector<Block>& blocks = location_.blocks;
    SpansView view;
    SpanColumns columns;
    for (size_t i = 0; i < blocks.size(); i++) {
      const Block& block = blocks[i];
      if (i > 0 && passed_over(block.first_ns, i + 1 < blocks.size() ? blocks[i + 1].first_ns : INT64_MAX)) {
        depth_ = 0;  // what begins in it is not chosen, and so is nobody's parent
        continue;
      }
      if (!file_.view(block, view) || !file_.decode(view, block.count, columns)) continue;
      if (i == 0)
        for (const OpenSpan& open : view.carry) add(open.row, open.start_ns, kOpen, open.path);
      for (uint32_t k = 0; k < block.count; k++)
        add(block.first_row + k, columns.start_ns[k], columns.duration_ns[k], columns.path[k]);
    }
  }

  const std::vector<Sum>& result() const { return sums_; }

 private:
  // Whether nothing that begins in [begin, end] is chosen, or lies inside of what is.
  bool passed_over(int64_t begin_ns, int64_t end_ns) const {
    if (!chosen_) return false;
    for (size_t i = 0; i < depth_; i++)
      if (open_[i].chosen && open_[i].end_ns >= begin_ns) return false;
    const auto at = std::ranges::upper_bound(*chosen_, begin_ns, {}, &TimeRange::end_ns);
    return at == chosen_->end() || at->begin_ns > end_ns;
  }

  bool begins_chosen(int64_t start_ns) {
    if (!chosen_) return true;
    while (range_ < chosen_->size() && (*chosen_)[range_].end_ns <= start_ns) range_++;
    return range_ < chosen_->size() && (*chosen_)[range_].begin_ns <= start_ns;
  }

  void add(uint64_t row, int64_t start_ns, int64_t duration_ns, uint32_t path) {
    if (path >= sums_.size()) return;
    duration_ns = file_.end_of(location_, row, start_ns, duration_ns) - start_ns;
    Sum& sum = sums_[path];
    const size_t depth = sum.depth;
    if (depth > 0 && depth <= depth_) {
      const Open& around = open_[depth - 1];
      // What encloses it is missing only where its block is damaged.
      if (around.path == sum.parent && around.end_ns >= start_ns && around.chosen)
        sums_[around.path].inside_ns += duration_ns;
    }
    if (open_.size() <= depth) open_.resize(depth + 1);
    for (; depth_ < depth; depth_++) open_[depth_] = {INT64_MIN, kNoPath, false};
    depth_ = depth + 1;
    const bool chosen = begins_chosen(start_ns);
    open_[depth] = {start_ns + duration_ns, path, chosen};
    if (chosen) sum.add(duration_ns);
  }

  const ProcessFile& file_;
  const Location& location_;
  const std::vector<TimeRange>* chosen_;
  std::vector<Sum> sums_;
  std::vector<Open> open_;  // by depth; the first `depth_` of them are known
  size_t depth_ = 0, range_ = 0;
};

void add(std::vector<Sum>& whole, const std::vector<Sum>& part) {
  for (size_t path = 0; path < whole.size(); path++) {
    Sum& sum = whole[path];
    const Sum& added = part[path];
    sum.calls += added.calls, sum.total_ns += added.total_ns, sum.inside_ns += added.inside_ns;
    sum.min_ns = std::min(sum.min_ns, added.min_ns), sum.max_ns = std::max(sum.max_ns, added.max_ns);
  }
}

void add_location(const ProcessFile& file, const Location& location, const std::vector<TimeRange>* chosen,
                  std::vector<Sum>& whole) {
  if (!chosen) {
    SummingAll all(file, location);
    if (all.add_blocks()) return add(whole, all.result());
  }
  Summing summing(file, location, chosen);
  summing.add_blocks();
  add(whole, summing.result());
}

}  // namespace

PathSums sum_paths(const ProcessFile& file, const std::vector<uint32_t>& locations,
                   const std::vector<TimeRange>* chosen) {
  std::vector<Sum> whole(file.path_region.size());
  for (const uint32_t id : locations)
    if (const auto found = file.locations.find(id); found != file.locations.end())
      add_location(file, found->second, chosen, whole);
  return columns_of(whole);
}

}  // namespace strobe
