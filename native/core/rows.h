// rows.h - the row stream: what one event knows beside its time, 64 bytes in a second ring of the thread, and the
// tables that rows become. Each kind of row is declared once, in rows.cpp; the drainer and recovery encode all alike.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ring.h"
#include "core/table_columns.h"

namespace strobe {

constexpr int kRowValues = 6;  // as strobe.h says

struct RowRecord {
  uint64_t ticks;
  uint64_t where;  // kind << 48 | records in the thread's ring of spans when the row was made
  int64_t values[kRowValues];
  uint32_t kind() const { return uint32_t(where >> 48); }
  uint64_t position() const { return where & ((uint64_t(1) << 48) - 1); }
};
static_assert(sizeof(RowRecord) == 64);

constexpr uint32_t kRowRingMagic = 0x32474e52;  // "RNG2": a slot of the rings file that holds rows

// What a thread needs to write a row; as Producer.
struct RowProducer {
  RowRecord* data = nullptr;
  uint64_t mask = 0;
  uint64_t head = 0;
  std::atomic<uint64_t> limit{0};
  RingHeader* header = nullptr;
  uint32_t generation = 0;
};
extern thread_local RowProducer row_producer __attribute__((tls_model("initial-exec")));

// `at_ticks` 0: now. Row_producer.cpp.
void put_row_slowly(uint32_t kind, uint64_t at_ticks, const int64_t* values);

inline void write_row(RowProducer& r, uint32_t kind, uint64_t at_ticks, uint64_t position, const int64_t* values) {
  RowRecord& record = r.data[r.head & r.mask];
  record.ticks = at_ticks;
  record.where = uint64_t(kind) << 48 | position;
  for (int i = 0; i < kRowValues; i++) record.values[i] = values[i];
  r.head++;
  r.header->head.store(r.head, std::memory_order_release);
}

// A column of a kind: where in the six values its cells lie. Nothing is there where all bits say the smallest number of
// their width (STROBE_NOTHING, STROBE_NOTHING_32, STROBE_NOTHING_21); of texts where they are 0. Numbers of texts fit
// into 21 bits (texts.h).
struct RowColumn {
  const char* name;
  CellType type;
  uint8_t value, shift, bits;
  // Of a text that holds numbers with commas, so that what many rows share takes room once: which one, from 1 on; the
  // column has that number. 0: the column has the value itself.
  uint8_t field = 0;
};
// The text with a number.
using TextOf = std::function<std::string_view(uint32_t)>;

struct RowKind {
  const char* table;
  bool of_spans;
  bool names_location;  // the lower half of the first value is the location that the row is about
  std::span<const RowColumn> columns;
  bool stays = false;  // whatever comes of the iteration that they are in
};
// By number; null: there is no such kind.
const RowKind* row_kind(uint32_t kind);

// Behind the columns of a chunk of recorded rows, for recovery: rows of the ring before row_position that have this
// kind and the chunk's location are decided; the chunk belongs to a block that ends at span_position.
struct RowTrailer {
  uint64_t row_position, span_position;
  uint32_t ring_location, kind, unused, magic;
};
constexpr uint32_t kRowTrailerMagic = 0x53574f52;  // "ROWS"

// Rows of one location's ring that are not written yet: each waits until it is known whether its span stays. They leave
// in their order, so that one position says what is written.
class PendingRows {
 public:
  static constexpr uint64_t kNoSpan = ~uint64_t(0);

  // `span_row`: of the innermost span open at the row's position; kNoSpan: none is.
  void add(const RowRecord& record, int64_t ns, uint64_t span_row);
  bool empty() const { return first_ == rows_.size(); }
  uint64_t next_position() const { return next_; }  // in the ring: behind the last row added
  uint64_t tail() const { return next_ - (rows_.size() - first_); }
  // Spans [from, to) of the location are folded, but for those in `stays` (ascending, from base_row on); later spans
  // get numbers that are `removed` smaller.
  void fold(uint64_t base_row, uint64_t from, uint64_t to, const std::vector<uint32_t>& stays, uint64_t removed);
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
  // Since the last call: rows left out with their iteration; rows of spans that came while no span was open.
  std::pair<uint64_t, uint64_t> take_counts() { return {std::exchange(folded_, 0), std::exchange(outside_, 0)}; }
  void resume(uint64_t position) { next_ = position; }

 private:
  enum class Fate : uint8_t { waits, stays, goes };
  struct Pending {
    RowRecord record;
    int64_t ns;
    uint64_t span_row;
    Fate fate;
  };
  bool ready(const Pending& row, uint64_t final_row) const {
    return row.fate != Fate::waits || (row.span_row != kNoSpan && row.span_row < final_row);
  }
  std::vector<Pending> rows_;
  size_t first_ = 0;    // rows before it are written
  size_t settled_ = 0;  // no fold changes rows before it any more
  size_t decided_ = 0;  // of no row before it decide() has still to say anything
  uint64_t next_ = 0;
  uint64_t folded_ = 0, outside_ = 0;
};

// Rows of one ring while its thread's records are fed: rows(position) gives a builder's rows all that were made before
// the record there.
template <class Builder, class At>
uint64_t feed_rows(const RowRecord* data, uint64_t mask, uint64_t from, uint64_t head, uint64_t position,
                   Builder& builder, At&& at_ns) {
  for (; from < head; from++) {
    const RowRecord& record = data[from & mask];
    if (record.position() > position) break;
    builder.attached.add(record, at_ns(record.ticks), builder.innermost());
  }
  return from;
}

}  // namespace strobe
