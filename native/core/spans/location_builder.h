// location_builder.h - from records to blocks: pairs enters with leaves, interns call paths, seals blocks. Used by the
// drainer while the program runs and by recovery after it died, so that both give the same blocks.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/format/blocks.h"
#include "core/rings/pending_rows.h"
#include "core/spans/growing_tables.h"
#include "core/spans/row_columns.h"
#include "core/spans/throttle.h"

namespace strobe {

// Call paths of a process, numbered in order of first use: (parent path, region).
class PathTable {
 public:
  static constexpr uint32_t kLimit = 1u << 20;  // then paths fold into one root path per region: memory stays bounded
  uint32_t child(uint32_t parent, uint32_t region) {
    // A loop calls the same again, or what it called next the last time: most look-ups end here. A guess is checked.
    const uint64_t key = key_of(parent, region);
    if (!paths_.empty()) {
      uint32_t& last = last_of(parent);
      if (paths_[last].key == key) return last;
      const uint32_t next = paths_[last].next;
      if (paths_[next].key == key) return last = next;
    }
    return look_up(parent, region);
  }
  void add(uint32_t parent, uint32_t region);  // recovery: the path that the file numbers next
  uint32_t size() const { return uint32_t(paths_.size()); }
  uint32_t region(uint32_t path) const { return uint32_t(paths_[path].key); }
  uint32_t parent(uint32_t path) const { return uint32_t(paths_[path].key >> 32); }
  uint64_t folded() const { return folded_; }
  // Payload of a paths chunk for the paths that no chunk holds yet; `count` of them.
  std::string unsaved(uint32_t& count);
  void mark_saved() { saved_ = size(); }

 private:
  struct Path {
    uint64_t key;             // parent and region
    uint32_t last_child = 0;  // the child looked up last
    uint32_t next = 0;        // what was looked up after it, beside it
  };
  static uint64_t key_of(uint32_t parent, uint32_t region) { return uint64_t(parent) << 32 | region; }
  uint32_t& last_of(uint32_t parent) { return parent < paths_.size() ? paths_[parent].last_child : last_root_; }
  uint32_t look_up(uint32_t parent, uint32_t region);
  uint32_t find_or_add(uint32_t parent, uint32_t region);
  std::vector<Path> paths_;
  Slots slots_;
  uint32_t last_root_ = 0;
  uint32_t saved_ = 0;
  uint64_t folded_ = 0;
};

// Follows all spans of a location while the program runs.
class SpanObserver {
 public:
  virtual void entered(uint32_t path, int64_t ns, uint64_t position) = 0;
  // `depth` spans are still open around it. `position` is where the next record lies in the ring.
  virtual void closed(uint32_t path, size_t depth, int64_t start_ns, int64_t end_ns, uint64_t position) = 0;

 protected:
  ~SpanObserver() = default;
};

class LocationBuilder {
 public:
  LocationBuilder(uint32_t location, PathTable& paths) : location_(location), paths_(paths) {}

  // `position`: of the record in its ring.
  void enter(uint32_t region, int64_t ns, uint64_t position = 0);
  void leave(uint32_t region, int64_t ns, uint64_t position = 0);
  // The thread goes on with another stack: what is open ends, what was open there begins anew.
  void switch_to(uint32_t stack, int64_t ns, uint64_t position = 0);
  // The throttle gets the duration of each execution; recovery has none.
  void count_for(Throttle* throttle) { throttle_ = throttle; }
  bool full() const { return columns_.size() >= kBlockSpans; }
  bool dirty() const { return columns_.size() > 0 || !closes_.empty(); }
  // Appends the block (and the paths it needs) to `out` and starts the next one.
  void seal(std::string& out, uint64_t ring_position, uint64_t ring_epoch);
  // The recording rests from now on: what is open ends here, and its later ends are expected.
  void end_open(int64_t ns, uint64_t position);
  // Recovery: continue behind the last sealed block, which ends at `ring_position`, where the thread was on stack
  // `current`.
  void resume(uint64_t next_row, std::vector<OpenSpan> stack, int64_t last_ns, uint32_t current = 0,
              uint64_t ring_position = 0, uint64_t ring_epoch = 0);

  // --- what a collector needs: rows that wait until it is decided whether they are kept or folded

  // Rows [0, settled) are decided and stay; those behind them wait. A block ends at the *enter* of a row: what is open
  // there are exactly that row's ancestors, even if spans begin and end at equal times. From this call on, which comes
  // before the first span, rows have their depth and their place in the ring.
  void observe(SpanObserver* observer) { observer_ = observer; }
  size_t rows() const { return columns_.size(); }
  size_t settled() const { return settled_; }
  const RowColumns& columns() const { return columns_; }  // durations of open spans are kOpen
  uint32_t depth_of(size_t row) const { return columns_.depth[row]; }
  uint64_t position_of(size_t row) const { return base_position_ + columns_.offset[row]; }
  size_t first_since(int64_t ns) const;                      // first waiting row that starts at `ns` or later
  size_t first_from(uint64_t position) const;                // first waiting row whose record lies there or later
  int64_t enclosing(size_t row) const;                       // the row around it, -1 if that row is in a block
  uint64_t next_position() const { return next_position_; }  // behind the last record that opened or closed a span
  void keep(size_t n) { settled_ = n > settled_ ? n : settled_; }  // rows [0, n) stay
  // Takes the waiting rows before row n out, but for those that are open where row n begins: they stay. For each:
  // folded(path, duration_ns, own_ns); and inside(path, duration_ns) for each that lay directly inside of a row that
  // stays, with the path of the latter.
  template <class Folded, class Inside>
  void fold(size_t n, Folded&& folded, Inside&& inside);
  // The same for the short ones of them, the others are settled: those that have ended, of which
  // is_short(path, duration_ns) is true, that no row of a side table belongs to, and that nothing lies inside of but
  // such. Ends before what would be the `most` + 1st row that stays; returns how many rows before row n still wait.
  template <class IsShort, class Folded, class Inside>
  size_t fold_short(size_t n, size_t most, IsShort&& is_short, Folded&& folded, Inside&& inside);
  // The first waiting row before row n of which it is not known yet whether it lasts `min_ns`; n if there is none.
  // may_go(region): only of such it matters.
  template <class MayGo>
  size_t first_undecided(size_t n, int64_t min_ns, MayGo&& may_go) const;
  // Appends blocks with all settled rows; returns the position in the ring up to which records are in blocks then.
  // `ring_position` and `ring_epoch` are those behind the last record fed.
  uint64_t seal_settled(std::string& out, uint64_t ring_position, uint64_t ring_epoch);
  void note_epoch(uint64_t position, uint64_t epoch) {
    if (observer_) epochs_.push_back({position, epoch});
  }

  uint64_t spans() const { return base_row_ + columns_.size(); }
  size_t depth() const { return stack_.size(); }
  int64_t last_ns() const { return last_ns_; }
  // Spans that stay open reach up to there.
  void last_at(int64_t ns) { last_ns_ = std::max(last_ns_, ns); }
  uint32_t location() const { return location_; }
  // The row of the innermost open span, PendingRows::kNoSpan if there is none.
  uint64_t innermost() const { return stack_.empty() ? PendingRows::kNoSpan : stack_.back().row; }
  uint32_t innermost_path() const { return stack_.empty() ? kNoPath : stack_.back().path; }
  uint64_t base_row() const { return base_row_; }                // spans before it are in blocks and keep their numbers
  uint64_t sealed_position() const { return sealed_position_; }  // in the ring: where the last block ends
  PendingRows attached;                                          // rows of side tables that were made meanwhile
  // Leaves without an enter; spans ended by the end of a span that encloses them.
  uint64_t unmatched = 0, cut = 0;
  bool forked = false;  // leaves of the parent's open spans are expected and not counted

 private:
  template <class Folded, class Inside>
  void fold_others(size_t n, Folded&& folded, Inside&& inside);  // than those in stay_
  void take_out(size_t n, size_t removed);  // those before row n that are neither settled nor in stay_
  void close_top(int64_t ns, uint64_t position);
  void leave_outer(uint32_t region, int64_t ns, uint64_t position);
  SpanColumns first_rows(size_t n) const;
  void save_paths(std::string& out);
  void seal_prefix(std::string& out, size_t n, uint64_t ring_position, uint64_t ring_epoch);
  void ancestors_of(size_t n, std::vector<uint32_t>& rows) const;
  template <class Change>
  void change_columns(Change&& change) {  // all that have an entry per row
    change(columns_.start_ns), change(columns_.duration_ns), change(columns_.path);
    change(columns_.depth), change(columns_.offset);
  }
  uint64_t epoch_at(uint64_t position) const;
  uint32_t stack_at(uint64_t position) const;
  uint32_t location_;
  PathTable& paths_;
  RowColumns columns_;
  std::vector<OpenSpan> stack_, carry_;
  std::vector<Close> closes_;
  uint64_t base_row_ = 0;
  int64_t last_ns_ = 0;
  Throttle* throttle_ = nullptr;
  uint32_t current_stack_ = 0;
  std::map<uint32_t, std::vector<uint32_t>> other_stacks_;  // regions that are open there
  uint64_t sealed_position_ = 0;
  // Only with an observer:
  SpanObserver* observer_ = nullptr;
  size_t settled_ = 0;
  uint64_t base_position_ = 0, next_position_ = 0;
  struct Epoch {
    uint64_t position, epoch;
  };
  std::vector<Epoch> epochs_;  // of the clock, since base_position_
  struct Switch {
    uint64_t position;  // behind the record of the switch
    uint32_t stack;
  };
  std::vector<Switch> switches_;           // since base_position_
  uint32_t base_stack_ = 0;                // at base_position_
  std::vector<uint32_t> stay_, at_depth_;  // scratch of fold
  std::vector<int64_t> own_;
  std::vector<uint8_t> stays_, around_;  // ... and of fold_short
};

// The drainer does one of these for each record: they are part of its loop, which saves a third of its instructions.
[[gnu::always_inline]] inline void LocationBuilder::enter(uint32_t region, int64_t ns, uint64_t position) {
  if (ns < last_ns_) ns = last_ns_;
  last_ns_ = ns;
  const uint32_t path = paths_.child(stack_.empty() ? kNoPath : stack_.back().path, region);
  stack_.push_back({base_row_ + columns_.size(), ns, path, region});
  columns_.start_ns.push_back(ns);
  columns_.duration_ns.push_back(kOpen);
  columns_.path.push_back(path);
  if (!observer_) return;
  columns_.depth.push_back(uint32_t(stack_.size() - 1));
  columns_.offset.push_back(uint32_t(position - base_position_));
  next_position_ = position + 1;
  observer_->entered(path, ns, position);
}

[[gnu::always_inline]] inline void LocationBuilder::close_top(int64_t ns, uint64_t position) {
  const OpenSpan top = stack_.back();
  if (__builtin_expect(top.row >= base_row_, 1))
    columns_.duration_ns[top.row - base_row_] = ns - top.start_ns;
  else
    closes_.push_back({top.row, ns});
  stack_.pop_back();
  if (throttle_) throttle_->closed(top.region, ns - top.start_ns);
  if (!observer_) return;
  next_position_ = position;
  observer_->closed(top.path, stack_.size(), top.start_ns, ns, position);
}

[[gnu::always_inline]] inline void LocationBuilder::leave(uint32_t region, int64_t ns, uint64_t position) {
  if (ns < last_ns_) ns = last_ns_;
  last_ns_ = ns;
  if (__builtin_expect(!stack_.empty() && stack_.back().region == region, 1)) return close_top(ns, position);
  leave_outer(region, ns, position);
}

template <class Folded, class Inside>
void LocationBuilder::fold(size_t n, Folded&& folded, Inside&& inside) {
  if (n <= settled_) return;
  ancestors_of(n, stay_);
  std::erase_if(stay_, [this](uint32_t row) { return row < settled_; });
  fold_others(n, folded, inside);
}

template <class IsShort, class Folded, class Inside>
size_t LocationBuilder::fold_short(size_t n, size_t most, IsShort&& is_short, Folded&& folded, Inside&& inside) {
  if (n <= settled_) return 0;
  stays_.assign(n - settled_, 0);
  attached.each_span(base_row_ + settled_, base_row_ + n,
                     [this](uint64_t row) { stays_[row - base_row_ - settled_] = 1; });
  ancestors_of(n, stay_);
  for (uint32_t row : stay_)
    if (row >= settled_) stays_[row - settled_] = 1;
  // From the end on: around a row is the last one before it that is one level less deep.
  around_.clear();
  for (size_t i = n; i-- > settled_;) {
    const size_t depth = columns_.depth[i];
    if (around_.size() <= depth) around_.resize(depth + 1, 0);
    const bool holds = std::exchange(around_[depth], uint8_t(0));  // something that stays
    const int64_t duration = columns_.duration_ns[i];
    uint8_t& stays = stays_[i - settled_];
    if (holds || duration == kOpen || !is_short(columns_.path[i], duration)) stays = 1;
    if (stays && depth > 0) around_[depth - 1] = 1;
  }
  stay_.clear();
  size_t end = settled_;
  for (; end < n; end++) {
    if (!stays_[end - settled_]) continue;
    if (stay_.size() == most) break;
    stay_.push_back(uint32_t(end));
  }
  const size_t left = n - end;
  if (stay_.size() == end - settled_)
    settled_ = end;
  else
    fold_others(end, folded, inside);
  return left;
}

template <class MayGo>
size_t LocationBuilder::first_undecided(size_t n, int64_t min_ns, MayGo&& may_go) const {
  for (const OpenSpan& open : stack_) {
    if (open.row < base_row_ + settled_) continue;
    const size_t row = size_t(open.row - base_row_);
    if (row >= n) break;
    if (last_ns_ - open.start_ns < min_ns && may_go(open.region)) return row;
  }
  return n;
}

template <class Folded, class Inside>
void LocationBuilder::fold_others(size_t n, Folded&& folded, Inside&& inside) {
  own_.resize(n);
  at_depth_.clear();
  constexpr uint32_t kNone = 0xFFFFFFFF;
  auto stays = stay_.begin();
  for (size_t i = settled_; i < n; i++) {
    const size_t depth = columns_.depth[i];
    if (at_depth_.size() <= depth) at_depth_.resize(depth + 1, kNone);
    if (stays != stay_.end() && *stays == i) {
      at_depth_[depth] = kNone;
      ++stays;
      continue;
    }
    at_depth_[depth] = uint32_t(i);
    const int64_t duration = columns_.duration_ns[i];
    own_[i] = duration;
    const uint32_t above = paths_.parent(columns_.path[i]);
    if (above == kNoPath || depth == 0) continue;
    const uint32_t parent = at_depth_[depth - 1];
    if (parent != kNone && columns_.path[parent] == above)
      own_[parent] -= duration;
    else
      inside(above, duration);
  }
  stays = stay_.begin();
  for (size_t i = settled_; i < n; i++) {
    if (stays != stay_.end() && *stays == i)
      ++stays;
    else
      folded(columns_.path[i], columns_.duration_ns[i], own_[i]);
  }
  const size_t first_left = settled_ + stay_.size(), removed = n - first_left;
  attached.fold(base_row_, base_row_ + settled_, base_row_ + n, stay_, removed, columns_);
  take_out(n, removed);
  // Open spans know their rows, which have new numbers.
  for (OpenSpan& open : stack_) {
    if (open.row < base_row_ + settled_) continue;
    if (open.row >= base_row_ + n) {
      open.row -= removed;
    } else {
      const auto at = std::lower_bound(stay_.begin(), stay_.end(), uint32_t(open.row - base_row_));
      open.row = base_row_ + settled_ + uint64_t(at - stay_.begin());
    }
  }
  settled_ = first_left;
}

// Converts the records of a ring to calls of a builder. `at_ns` converts ticks.
struct RecordDecoder {
  uint64_t epoch = 0;  // upper bits of the ticks
  template <class At>
  void feed(uint64_t record, LocationBuilder& builder, At&& at_ns, uint64_t position = 0) {
    const RecordKind kind = record_kind(record);
    const uint32_t region = record_region(record);
    const uint64_t ticks = epoch << kTimeBits | (record & kTimeMask);
    if (kind == kEnter)
      builder.enter(region, at_ns(ticks), position);
    else if (kind == kLeave)
      builder.leave(region, at_ns(ticks), position + 1);
    else if (kind == kSwitch)
      builder.switch_to(region, at_ns(ticks), position);
    else
      builder.note_epoch(position + 1, epoch = record & kTimeMask);
  }
};

}  // namespace strobe
