// side_tables.h - attributes that only some spans have, and rows that are no spans: chunks of columns that describe
// themselves. docs/format/blocks.md has the bytes.
#pragma once
#include <stdint.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/blocks.h"

namespace strobe {

enum class CellType : uint8_t { integer = 0, real = 1, text = 2 };  // real: the bits of a double; text: its number

struct ColumnLayout {
  std::string name;
  CellType type;
};

struct TableLayout {
  std::string name;
  std::vector<ColumnLayout> columns;
  bool of_spans;  // rows belong to spans: their number comes first
};

constexpr size_t kMaxColumns = 32;

// Rows of one table in one location, until there are enough for a chunk.
class TableColumns {
 public:
  explicit TableColumns(const TableLayout& layout) : layout_(layout), cells_(layout.columns.size()) {}
  size_t rows() const { return rows_; }
  // present: one bit a column; cells: the present ones only, in order.
  void add(int64_t span_row, uint32_t present, const uint64_t* cells);
  void append_to(std::string& out, uint32_t location);  // a chunk, and empties itself

 private:
  const TableLayout& layout_;
  size_t rows_ = 0;
  std::vector<int64_t> span_row_;
  std::vector<uint32_t> present_;             // one bit a column, by row
  std::vector<std::vector<uint64_t>> cells_;  // by column: the values of those rows that have one
};

// A table of a process as its chunks hold it, put together.
struct Table {
  struct Column {
    CellType type;
    std::vector<int64_t> value;  // integers; bits of reals; numbers of texts
    std::vector<uint8_t> valid;
  };
  std::vector<uint32_t> location;
  std::vector<int64_t> row;  // of the span; -1 in tables whose rows are no spans
  std::vector<std::pair<std::string, Column>> columns;
};

bool table_name(std::string_view payload, std::string_view& name);
// Appends the rows of one chunk; columns that the table has not get nulls, new ones are added. False: damaged.
bool decode_table(std::string_view payload, uint32_t location, uint32_t count, Table& out);

}  // namespace strobe
