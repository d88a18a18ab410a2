// pending_rows.h - rows of one location that are not written yet: each waits until it is known whether its span stays.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/format/blocks.h"
#include "core/rings/row_kinds.h"
#include "core/spans/row_columns.h"

namespace strobe {

// Behind the columns of a chunk of recorded rows, for recovery: rows of the ring before row_position that have this
// kind and the chunk's location are decided; the chunk belongs to a block that ends at span_position.
struct RowTrailer {
  uint64_t row_position, span_position;
  uint32_t ring_location, kind, unused, magic;
};
constexpr uint32_t kRowTrailerMagic = 0x53574f52;  // "ROWS"

// They leave in their order, so that one position separates what is written from what is not.
class PendingRows {
 public:
  static constexpr uint64_t kNoSpan = ~uint64_t(0);

  // `span_row`, `path`: of the innermost span open at the row's position; kNoSpan: none is.
  void add(const RowRecord& record, int64_t ns, uint64_t span_row, uint32_t path = kNoPath);
  bool empty() const { return first_ == rows_.size(); }
  uint64_t next_position() const { return next_; }  // in the ring: behind the last row added
  uint64_t tail() const { return next_ - (rows_.size() - first_); }
  // Spans [from, to) of the location are folded, but for those in `stays` (ascending, from base_row on); later spans
  // get numbers that are `removed` smaller. `spans`: from base_row on, before any is taken out.
  void fold(uint64_t base_row, uint64_t from, uint64_t to, const std::vector<uint32_t>& stays, uint64_t removed,
            const RowColumns& spans);
  // Calls each(span_row) for the spans in [from, to) that rows belong to.
  template <class Each>
  void each_span(uint64_t from, uint64_t to, Each&& each) const {
    for (size_t i = std::max(first_, settled_); i < rows_.size(); i++)
      if (rows_[i].span_row >= from && rows_[i].span_row < to) each(rows_[i].span_row);
  }
  // Rows that have a time of their own and are older than `ns`: they stay, or are left out.
  void decide(int64_t ns, bool keep);
  // Whether the next row can be written, with spans before `final_row` written or about to be.
  bool ready(uint64_t final_row) const;
  // Appends chunks with all rows up to the first that has to wait.
  void emit(std::string& out, uint64_t final_row, uint64_t span_position, uint32_t ring_location,
            const TextOf& text_of);
  // Of the rows of a stream: the first span from `from` on that was launched at `ns` or later; kNoSpan: none was.
  uint64_t span_since(int64_t ns, uint64_t from) const;
  // Of the rows of a stream: when its span of this number was launched, if it is the last that rows are of.
  int64_t launched_ns(uint64_t span_row, int64_t unknown) const {
    return !rows_.empty() && rows_.back().span_row == span_row ? rows_.back().ns : unknown;
  }
  // Since the last call: rows left out with their iteration; rows of spans that came while no span was open.
  std::pair<uint64_t, uint64_t> take_counts() { return {std::exchange(folded_, 0), std::exchange(outside_, 0)}; }
  void resume(uint64_t position) { next_ = position; }

  // Of a stream: whether a kernel of this call path communicates. A row of such a one that is folded is a collective's.
  std::function<bool(uint32_t path)> communicates;

 private:
  enum class Fate : uint8_t { waits, stays, folded, goes };  // folded: into a table of their own
  struct Pending {
    RowRecord record;
    int64_t ns;
    uint64_t span_row;
    Fate fate;
    uint32_t path;            // of the innermost span, or of the one that was folded
    int64_t duration_ns = 0;  // of a span that was folded, which began at `ns`
  };
  bool ready(const Pending& row, uint64_t final_row) const {
    return row.fate != Fate::waits || (row.span_row != kNoSpan && row.span_row < final_row);
  }
  std::vector<Pending> rows_;
  size_t first_ = 0;    // rows before it are written
  size_t settled_ = 0;  // no fold changes rows before it any more
  size_t decided_ = 0;  // decide() is through with the rows before it
  uint64_t next_ = 0;
  uint64_t folded_ = 0, outside_ = 0;
};

}  // namespace strobe
