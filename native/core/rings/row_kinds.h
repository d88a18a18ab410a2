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
  bool stays = false;  // whatever comes of the iteration that they are in
};
// By number; nullptr: the kind is unknown.
const RowKind* row_kind(uint32_t kind);

// The text with a number.
using TextOf = std::function<std::string_view(uint32_t)>;

const TableLayout& layout_of(uint32_t kind);

// Adds rows of one kind to a table. Texts that hold numbers are read once.
class RowCells {
 public:
  explicit RowCells(const TextOf& text_of) : text_of_(text_of) {}
  void add(TableColumns& columns, const RowKind& kind, const RowRecord& record, int64_t ns, uint64_t span_row);

 private:
  int64_t number_in(uint32_t text, uint8_t field);
  const TextOf& text_of_;
  std::unordered_map<uint32_t, std::vector<int64_t>> numbers_;
};

}  // namespace strobe
