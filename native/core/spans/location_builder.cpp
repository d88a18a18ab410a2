#include "core/spans/location_builder.h"

namespace strobe {

uint32_t PathTable::find_or_add(uint32_t parent, uint32_t region) {
  const uint64_t key = key_of(parent, region);
  const uint32_t found = slots_.find(key, [&](uint32_t path) { return paths_[path].key == key; });
  if (found != Slots::empty) return found;
  slots_.add(key, size(), [this](uint32_t path) { return paths_[path].key; });
  paths_.push_back({key, 0, 0});
  return size() - 1;
}

uint32_t PathTable::look_up(uint32_t parent, uint32_t region) {
  if (__builtin_expect(paths_.size() >= kLimit, 0)) {
    folded_++;
    parent = kNoPath;
  }
  const uint32_t path = find_or_add(parent, region);
  uint32_t& last = last_of(parent);
  paths_[last].next = path;
  return last = path;
}

void PathTable::add(uint32_t parent, uint32_t region) {
  find_or_add(parent, region);
  saved_ = size();
}

std::string PathTable::unsaved(uint32_t& count) {
  count = size() - saved_;
  Writer w;
  for (uint32_t i = saved_; i < size(); i++) w.u32(parent(i)), w.u32(region(i));
  return std::move(w.bytes);
}

void LocationBuilder::leave_outer(uint32_t region, int64_t ns, uint64_t position) {
  // A range that was pushed in one function and popped in another: what it encloses ends with it.
  size_t at = stack_.size();
  while (at > 0 && stack_[at - 1].region != region) at--;
  if (at == 0) {
    if (!forked) unmatched++;
    return;
  }
  while (stack_.size() > at) close_top(ns, position), cut++;
  close_top(ns, position);
}

void LocationBuilder::switch_to(uint32_t stack, int64_t ns, uint64_t position) {
  if (ns < last_ns_) ns = last_ns_;
  if (stack == current_stack_) return;
  if (observer_) switches_.push_back({position + 1, stack});
  if (!stack_.empty()) {
    std::vector<uint32_t>& left = other_stacks_[current_stack_];
    for (const OpenSpan& open : stack_) left.push_back(open.region);
    while (!stack_.empty()) close_top(ns, position + 1);
  }
  last_ns_ = ns;
  current_stack_ = stack;
  const auto found = other_stacks_.find(stack);
  if (found == other_stacks_.end()) return;
  const std::vector<uint32_t> regions = std::move(found->second);
  other_stacks_.erase(found);
  for (uint32_t region : regions) enter(region, ns, position);
}

void LocationBuilder::end_open(int64_t ns, uint64_t position) {
  last_ns_ = std::max(last_ns_, ns);
  while (!stack_.empty()) close_top(last_ns_, position);
  forked = true;
  other_stacks_.clear();
}

// What is fewer moves: the rows behind to the front, or those before them to the back.
void LocationBuilder::take_out(size_t n, size_t removed) {
  const auto move = [this](size_t from, size_t to) {
    change_columns([=](auto& column) { column[to] = column[from]; });
  };
  const size_t behind = columns_.size() - n, before = settled_ + stay_.size();
  if (before < behind) {
    size_t to = n;
    for (size_t i = stay_.size(); i-- > 0;) move(stay_[i], --to);
    for (size_t i = settled_; i-- > 0;) move(i, --to);
    change_columns([=](auto& column) { column.drop_front(removed, false); });
  } else {
    size_t to = settled_;
    for (const uint32_t row : stay_) move(row, to++);
    for (size_t i = n; i < n + behind; i++) move(i, to++);
    change_columns([=](auto& column) { column.resize(to); });
  }
}

void LocationBuilder::save_paths(std::string& out) {
  uint32_t new_paths = 0;
  std::string paths = paths_.unsaved(new_paths);
  if (new_paths) append_chunk(out, kPathsChunk, paths_.size() - new_paths, new_paths, paths);
  paths_.mark_saved();
}

SpanColumns LocationBuilder::first_rows(size_t n) const {
  SpanColumns rows;
  const auto copy = [n](auto& to, const auto& from) { to.assign(from.begin(), from.begin() + n); };
  copy(rows.start_ns, columns_.start_ns), copy(rows.duration_ns, columns_.duration_ns);
  copy(rows.path, columns_.path);
  return rows;
}

void LocationBuilder::seal(std::string& out, uint64_t ring_position, uint64_t ring_epoch) {
  save_paths(out);
  SpansHeader header{};
  header.first_row = base_row_;
  header.first_ns = columns_.size() ? columns_.start_ns[0] : last_ns_;
  header.last_ns = last_ns_;
  header.ring_position = ring_position;
  header.ring_epoch = ring_epoch;
  header.stack = current_stack_;
  const SpanColumns block = first_rows(columns_.size());
  append_chunk(out, kSpansChunk, location_, uint32_t(block.size()), encode_spans(header, carry_, closes_, block));
  sealed_position_ = ring_position;
  base_row_ += columns_.size();
  change_columns([](auto& column) { column.clear(); });
  closes_.clear();
  carry_ = stack_;
  if (observer_) {
    settled_ = 0;
    base_position_ = ring_position;
    epochs_.assign(1, {ring_position, ring_epoch});
    switches_.clear();
    base_stack_ = current_stack_;
  }
}

void LocationBuilder::seal_prefix(std::string& out, size_t n, uint64_t ring_position, uint64_t ring_epoch) {
  if (n == columns_.size()) return seal(out, ring_position, ring_epoch);
  save_paths(out);
  ancestors_of(n, stay_);
  // Open spans of earlier blocks that have ended before row n: it took the place of the outermost of them.
  const size_t still_open = columns_.depth[n] - stay_.size();
  const size_t ended = carry_.size() - still_open;
  SpanColumns block = first_rows(n);
  // What is open at row n is open in the block, and ends in a later one: innermost first, before those around it.
  std::vector<OpenSpan> open(carry_.begin(), carry_.begin() + ptrdiff_t(still_open));
  std::vector<Close> later;
  for (uint32_t row : stay_) {
    open.push_back({base_row_ + row, block.start_ns[row], block.path[row], paths_.region(block.path[row])});
    if (block.duration_ns[row] != kOpen)
      later.push_back({base_row_ + row, block.start_ns[row] + block.duration_ns[row]});
    block.duration_ns[row] = kOpen;
  }
  std::reverse(later.begin(), later.end());
  later.insert(later.end(), closes_.begin() + ptrdiff_t(ended), closes_.end());
  closes_.resize(ended);
  SpansHeader header{};
  header.first_row = base_row_;
  header.last_ns = columns_.start_ns[n];
  header.first_ns = n ? columns_.start_ns[0] : header.last_ns;
  header.ring_position = position_of(n);
  header.ring_epoch = epoch_at(header.ring_position);
  header.stack = stack_at(header.ring_position);
  append_chunk(out, kSpansChunk, location_, uint32_t(n), encode_spans(header, carry_, closes_, block));
  sealed_position_ = header.ring_position;
  base_row_ += n;
  carry_ = std::move(open);
  closes_ = std::move(later);
  change_columns([n](auto& column) { column.drop_front(n, true); });
  const auto gone = uint32_t(header.ring_position - base_position_);
  for (uint32_t& offset : columns_.offset) offset -= gone;
  base_position_ = header.ring_position;
  while (epochs_.size() > 1 && epochs_[1].position <= base_position_) epochs_.erase(epochs_.begin());
  std::erase_if(switches_, [this](const Switch& s) { return s.position <= base_position_; });
  base_stack_ = header.stack;
  settled_ = settled_ > n ? settled_ - n : 0;
}

uint64_t LocationBuilder::seal_settled(std::string& out, uint64_t ring_position, uint64_t ring_epoch) {
  while (settled_ > kBlockSpans) seal_prefix(out, kBlockSpans, ring_position, ring_epoch);
  seal_prefix(out, settled_, ring_position, ring_epoch);
  return base_position_;
}

// Rows that are open where row n begins, in order. Behind the last row those are the open spans themselves.
void LocationBuilder::ancestors_of(size_t n, std::vector<uint32_t>& rows) const {
  rows.clear();
  if (n == columns_.size()) {
    for (const OpenSpan& open : stack_)
      if (open.row >= base_row_) rows.push_back(uint32_t(open.row - base_row_));
    return;
  }
  int64_t wanted = int64_t(columns_.depth[n]) - 1;
  for (size_t i = n; i-- > 0 && wanted >= 0;)
    if (columns_.depth[i] == wanted) rows.push_back(uint32_t(i)), wanted--;
  std::reverse(rows.begin(), rows.end());
}

size_t LocationBuilder::first_since(int64_t ns) const {
  const auto& start = columns_.start_ns;
  return size_t(std::lower_bound(start.begin() + ptrdiff_t(settled_), start.end(), ns) - start.begin());
}

size_t LocationBuilder::first_from(uint64_t position) const {
  if (position <= base_position_) return settled_;
  const auto wanted = position - base_position_;
  return size_t(std::lower_bound(columns_.offset.begin() + ptrdiff_t(settled_), columns_.offset.end(), wanted) -
                columns_.offset.begin());
}

int64_t LocationBuilder::enclosing(size_t row) const {
  if (columns_.depth[row] == 0) return -1;
  for (size_t i = row; i-- > 0;)
    if (columns_.depth[i] == columns_.depth[row] - 1) return int64_t(i);
  return -1;
}

uint64_t LocationBuilder::epoch_at(uint64_t position) const {
  uint64_t epoch = 0;
  for (const Epoch& e : epochs_)
    if (e.position <= position) epoch = e.epoch;
  return epoch;
}

uint32_t LocationBuilder::stack_at(uint64_t position) const {
  const auto later = std::upper_bound(switches_.begin(), switches_.end(), position,
                                      [](uint64_t at, const Switch& s) { return at < s.position; });
  return later == switches_.begin() ? base_stack_ : std::prev(later)->stack;
}

void LocationBuilder::resume(uint64_t next_row, std::vector<OpenSpan> stack, int64_t last_ns, uint32_t current,
                             uint64_t ring_position, uint64_t ring_epoch) {
  base_row_ = next_row;
  stack_ = std::move(stack);
  carry_ = stack_;
  last_ns_ = last_ns;
  current_stack_ = base_stack_ = current;
  base_position_ = next_position_ = ring_position;
  epochs_.assign(1, {ring_position, ring_epoch});
}

}  // namespace strobe
