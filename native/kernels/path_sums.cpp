#include "kernels/path_sums.h"

#include <algorithm>

namespace strobe {

namespace {

struct Sum {  // one cache line
  int64_t calls = 0, total_ns = 0, inside_ns = 0, min_ns = INT64_MAX, max_ns = INT64_MIN;
  uint32_t parent, depth;
};

struct Open {  // the span that is open at a depth, or was last
  int64_t end_ns;
  uint32_t path;
  bool chosen;
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
      if (!file_.view(block, view) || !decode_spans(view, block.count, columns)) continue;
      if (i == 0)
        for (const OpenSpan& open : view.carry) add(open.row, open.start_ns, kOpen, open.path);
      for (uint32_t k = 0; k < block.count; k++)
        add(block.first_row + k, columns.start_ns[k], columns.duration_ns[k], columns.path[k]);
    }
  }

  PathSums result() const {
    PathSums out;
    for (const Sum& sum : sums_) {
      out.calls.push_back(sum.calls);
      out.total_ns.push_back(sum.total_ns);
      out.own_ns.push_back(sum.total_ns - sum.inside_ns);
      out.min_ns.push_back(sum.calls ? sum.min_ns : 0);
      out.max_ns.push_back(sum.calls ? sum.max_ns : 0);
    }
    return out;
  }

 private:
  // Whether nothing that begins in [begin, end] is chosen, or lies inside of what is.
  bool passed_over(int64_t begin_ns, int64_t end_ns) const {
    if (!chosen_) return false;
    for (size_t i = 0; i < depth_; i++)
      if (open_[i].chosen && open_[i].end_ns >= begin_ns) return false;
    const auto at = std::upper_bound(chosen_->begin(), chosen_->end(), begin_ns,
                                     [](int64_t ns, const TimeRange& range) { return ns < range.end_ns; });
    return at == chosen_->end() || at->begin_ns > end_ns;
  }

  bool begins_chosen(int64_t start_ns) {
    if (!chosen_) return true;
    while (range_ < chosen_->size() && (*chosen_)[range_].end_ns <= start_ns) range_++;
    return range_ < chosen_->size() && (*chosen_)[range_].begin_ns <= start_ns;
  }

  void add(uint64_t row, int64_t start_ns, int64_t duration_ns, uint32_t path) {
    if (path >= sums_.size()) return;
    if (duration_ns == kOpen) {
      const auto known = location_.ends.find(row);
      const int64_t end_ns = known != location_.ends.end() ? known->second : std::max(file_.last_ns, start_ns);
      duration_ns = end_ns - start_ns;
    }
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
    if (!chosen) return;
    sum.calls++;
    sum.total_ns += duration_ns;
    sum.min_ns = std::min(sum.min_ns, duration_ns);
    sum.max_ns = std::max(sum.max_ns, duration_ns);
  }

  const ProcessFile& file_;
  const Location& location_;
  const std::vector<TimeRange>* chosen_;
  std::vector<Sum> sums_;
  std::vector<Open> open_;  // by depth; the first `depth_` of them are known
  size_t depth_ = 0, range_ = 0;
};

}  // namespace

PathSums sum_paths(const ProcessFile& file, uint32_t location, const std::vector<TimeRange>* chosen) {
  static const Location kNone;
  const auto found = file.locations.find(location);
  Summing summing(file, found == file.locations.end() ? kNone : found->second, chosen);
  summing.add_blocks();
  return summing.result();
}

}  // namespace strobe
