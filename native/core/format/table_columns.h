// table_columns.h - how rows of side tables are written: chunks of columns that describe themselves. Recording and
// imports write the same. docs/format/blocks.md has the bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/format/blocks.h"

namespace strobe {

enum class CellType : uint8_t { integer = 0, real = 1, text = 2 };  // real: the bits of a double; text: its number

struct ColumnLayout {
  std::string name;
  CellType type;
};

// A column of model/schema.py: side_tables.generated.h has them all.
struct SchemaColumn {
  const char* name;
  CellType type;
  uint8_t number;  // among those of its table, which has a number among all tables
  operator ColumnLayout() const { return {name, type}; }
};

struct TableLayout {
  std::string name;
  std::vector<ColumnLayout> columns;
  bool of_spans;        // rows belong to spans: their number comes first
  uint64_t shared = 0;  // one bit a column: many rows share these cells, which are written once a chunk
};

constexpr size_t kMaxColumns = 64;
constexpr size_t kTableChunkRows = 4096;
constexpr uint8_t kHasNulls = 0x80;  // beside a column's type: a column of 0 and 1 comes first
constexpr uint8_t kShared = 0x40;    // its cells are those of shapes, which rows have by number

// Rows of one table in one location, until there are enough for a chunk.
class TableColumns {
 public:
  explicit TableColumns(const TableLayout& layout) : layout_(layout), cells_(layout.columns.size()) {}
  size_t rows() const { return rows_; }
  // present: one bit a column; cells: the present ones only, in order. Rows with the same `shape` have the same cells
  // in the columns that are shared.
  void add(int64_t span_row, uint64_t present, const uint64_t* cells, uint32_t shape = 0);
  // The same for a row of a table without spans; nothing: null.
  void add(std::initializer_list<std::optional<uint64_t>> cells);
  // A chunk, and empties itself. `trailer`: bytes behind the columns, which readers of tables do not look at.
  void append_to(std::string& out, uint32_t location, std::string_view trailer = {});

 private:
  const TableLayout& layout_;
  size_t rows_ = 0;
  std::vector<int64_t> span_row_;
  std::vector<uint64_t> present_;                  // one bit a column, by row
  std::vector<std::vector<uint64_t>> cells_;       // by column: the values of those rows, or shapes, that have one
  std::unordered_map<uint32_t, uint64_t> shapes_;  // their numbers in the chunk
  std::vector<uint64_t> shape_;                    // by row
  std::vector<uint64_t> shape_present_;            // one bit a column, by shape
};

}  // namespace strobe
