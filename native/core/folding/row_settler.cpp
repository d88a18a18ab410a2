#include "core/folding/row_settler.h"

#include <algorithm>

namespace strobe {

using structure::Cut;

LocationRows& RowSettler::add(LocationBuilder& builder, LocationRole kind, const SpanReaders& readers, int64_t device) {
  auto& rows = locations_[builder.location()];
  rows = std::make_unique<LocationRows>(builder, kind, readers, device);
  rows->followed = gone_;
  return *rows;
}

void RowSettler::settle(const Cut& until, bool keep, uint32_t class_id) {
  decide_pending(class_id);
  decisions_.push_back({until.ns, keep, class_id});
  for (auto& [location, rows] : locations_) {
    if (rows->stream()) continue;
    settle_rows(*rows, rows_until(*rows, until), keep, false, class_id);
    rows->builder.attached.decide(until.ns, keep);
  }
}

bool RowSettler::settle_streams() {
  uint64_t sure = gone_;
  for (const Decision& decision : decisions_) {
    if (decision.until_ns > streams_complete_ns_) break;
    sure++;
  }
  if (sure == gone_) return false;
  for (auto& [location, rows] : locations_)
    if (rows->stream()) settle_stream(*rows, sure);
  decisions_.erase(decisions_.begin(), decisions_.begin() + ptrdiff_t(sure - gone_));
  gone_ = sure;
  return true;
}

// A stream follows the first so many decisions.
void RowSettler::settle_stream(LocationRows& rows, uint64_t decisions) {
  const LocationBuilder& builder = rows.builder;
  rows.followed = std::max(rows.followed, gone_);
  for (; rows.followed < decisions; rows.followed++) {
    const Decision& decision = decisions_[size_t(rows.followed - gone_)];
    if (!builder.rows()) continue;
    size_t n = builder.rows();
    if (rows.task()) {
      n = builder.first_since(decision.until_ns);
    } else if (const uint64_t row =
                   builder.attached.span_since(decision.until_ns, builder.base_row() + builder.settled());
               row != PendingRows::kNoSpan) {
      n = size_t(row - builder.base_row());
    }
    settle_rows(rows, n, decision.keep, false, decision.class_id);
  }
}

void RowSettler::keep(LocationRows& rows, size_t n, bool pending, uint32_t class_id) {
  LocationBuilder& builder = rows.builder;
  if (n <= builder.settled()) return;
  if (!short_.on()) builder.keep(n);
  while (builder.settled() < n) {
    // A kill cuts between two blocks: what is left out must not lie behind the first one of a commit.
    const size_t waiting = n - builder.settled();
    if (builder.settled() >= kBlockSpans) commit_();
    const size_t left = leave_out_short(rows, builder.settled() + waiting, pending, class_id);
    n = builder.settled() + left;
  }
  rows.kept = true;
}

// Rows before row n are settled, the short ones are summed up; up to where a block is full. Returns how many are left.
size_t RowSettler::leave_out_short(LocationRows& rows, size_t n, bool pending, uint32_t class_id) {
  LocationBuilder& builder = rows.builder;
  const uint32_t location = builder.location(), left_out = short_class(class_id);
  const uint64_t before = short_spans_;
  const size_t left = builder.fold_short(
      n, kBlockSpans - builder.settled(),
      [&](uint32_t path, int64_t duration) { return short_.is_short(paths_.region(path), duration); },
      [&](uint32_t path, int64_t duration, int64_t own) {
        statistics_.add(pending, {location, path, left_out}, duration, own);
        short_spans_++;
      },
      [&](uint32_t path, int64_t duration) { statistics_.add_own(pending, {location, path, left_out}, -duration); });
  if (short_spans_ == before) return left;
  rows.folded_until = rows.position_behind(builder.settled());
  rows.folded = folded_ = true;
  return left;
}

void RowSettler::fold(LocationRows& rows, size_t n, bool pending, uint32_t class_id) {
  LocationBuilder& builder = rows.builder;
  if (n <= builder.settled()) return;
  // A block may not hold rows that were kept before others were folded: a kill after it would lose the latter.
  if (rows.kept) {
    const size_t waiting = n - builder.settled();
    commit_();
    n = builder.settled() + waiting;
  }
  const uint32_t location = builder.location();
  rows.folded_until = rows.position_behind(n);
  builder.fold(
      n,
      [&](uint32_t path, int64_t duration, int64_t own) {
        statistics_.add(pending, {location, path, class_id}, duration, own);
      },
      [&](uint32_t path, int64_t duration) { statistics_.add_own(pending, {location, path, class_id}, -duration); });
  rows.folded = folded_ = true;
}

bool RowSettler::has_block() const {
  return std::any_of(locations_.begin(), locations_.end(),
                     [](const auto& each) { return each.second->builder.settled() >= kBlockSpans; });
}

void RowSettler::committed() {
  for (auto& [location, rows] : locations_) rows->folded = rows->kept = false;
  folded_ = false;
}

}  // namespace strobe
