// row_kinds.h - the kinds of rows: the table of each, and where in the six values of a row its columns lie. Each kind
// is declared once, in row_kinds.cpp; the drainer and recovery encode all alike.
#pragma once
#include <stdint.h>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/format/table_columns.h"
#include "core/rings/row_ring.h"
#include "include/strobe.h"

namespace strobe {

// A column of a kind: where in the six values its cells lie. A cell is null where its bits are the smallest number of
// their width (STROBE_NOTHING, STROBE_NOTHING_32, STROBE_NOTHING_21); of texts where they are 0. Numbers of texts fit
// into 21 bits (text_table.h).
struct RowColumn {
  SchemaColumn column;
  uint8_t value, shift, bits;
  // Of a text that holds numbers with commas, so that what many rows share takes room once: which one, from 1 on; the
  // column has that number. 0: the column has the value itself.
  uint8_t field = 0;
};
struct RowKind {
  const char* table;  // of model/schema.py
  bool of_spans;
  bool names_location;  // the lower half of the first value is the location that the row is about
  std::span<const RowColumn> columns;
  bool stays = false;      // whatever comes of the iteration that they are in
  bool with_path = false;  // behind its columns the call path of the innermost span
  // Of rows whose span is folded: where they go, with start, duration and call path of the span; nullptr: nowhere.
  const char* folded = nullptr;
  uint8_t lengths = kRowValues;  // the values from here on are ticks until what the row is of was complete
};
// By number; nullptr: the kind is unknown.
const RowKind* row_kind(uint32_t kind);

// A row with its lengths in ns: by the curve that its time and spans are converted by, so that both of their ends lie
// in the calls that they lie in.
template <class At>
RowRecord with_lengths_in_ns(RowRecord record, At&& at_ns) {
  const RowKind* kind = row_kind(record.kind());
  if (!kind || kind->lengths == kRowValues) return record;
  auto& values = record.values;
  uint64_t end = record.ticks;
  if (record.since_begin()) end += uint64_t(values[5] != STROBE_NOTHING ? values[5] : values[4]);
  for (int i = kind->lengths; i < kRowValues; i++)
    if (values[i] != STROBE_NOTHING) values[i] = at_ns(end) - at_ns(end - uint64_t(values[i]));
  return record;
}

// Rows of one ring while its thread's records are fed: rows(position) gives a builder's rows all that were made before
// the record there.
template <class Builder, class At>
uint64_t feed_rows(const RowRecord* data, uint64_t mask, uint64_t from, uint64_t head, uint64_t position,
                   Builder& builder, At&& at_ns) {
  for (; from < head; from++) {
    const RowRecord& record = data[from & mask];
    if (record.position() > position) break;
    builder.attached.add(with_lengths_in_ns(record, at_ns), at_ns(record.ticks), builder.innermost(),
                         builder.innermost_path());
  }
  return from;
}

// The text with a number.
using TextOf = std::function<std::string_view(uint32_t)>;

const TableLayout& layout_of(uint32_t kind);
const TableLayout& folded_layout_of(uint32_t kind);

// What a row takes from the span that it belongs to.
struct SpanOfRow {
  int64_t start_ns, duration_ns;
  uint32_t path;
};

// Adds rows of one kind to a table. Texts that hold numbers are read once.
class RowCells {
 public:
  explicit RowCells(const TextOf& text_of) : text_of_(text_of) {}
  void add(TableColumns& columns, const RowKind& kind, const RowRecord& record, int64_t ns, uint64_t span_row,
           uint32_t path);
  void add_folded(TableColumns& columns, const RowKind& kind, const RowRecord& record, const SpanOfRow& span);

 private:
  struct Cells {
    uint64_t values[kMaxColumns];
    uint64_t present = 0;
    size_t columns = 0, cells = 0;
    uint32_t shape = 0;
    void add(uint64_t value, bool there = true) {
      if (there) values[cells++] = value, present |= uint64_t(1) << columns;
      columns++;
    }
  };
  void add_columns(Cells& cells, const RowKind& kind, const RowRecord& record);
  int64_t number_in(uint32_t text, uint8_t field);
  const TextOf& text_of_;
  std::unordered_map<uint32_t, std::vector<int64_t>> numbers_;
};

}  // namespace strobe
