// table_chunks.h - attributes that only some spans have, and rows without spans, read from their chunks. What
// writes them: core/format/table_columns.h.
#pragma once
#include <stdint.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format/table_columns.h"

namespace strobe {

// A table of a process as its chunks hold it, put together.
struct Table {
  struct Column {
    CellType type;
    std::vector<int64_t> value;  // integers; bits of reals; numbers of texts
    std::vector<uint8_t> valid;
  };
  std::vector<uint32_t> location;
  std::vector<int64_t> row;  // of the span; -1 in tables without spans
  std::vector<std::pair<std::string, Column>> columns;
};

bool table_name(std::string_view payload, std::string_view& name);
// The span of the first row of a chunk of `count`; none in tables without spans, and of a damaged one.
std::optional<int64_t> first_row(std::string_view payload, uint32_t count);
// Appends the rows of one chunk; columns that the table has not get nulls, new ones are added. False: damaged.
bool decode_table(std::string_view payload, uint32_t location, uint32_t count, Table& out);

// Some columns of a table, as numbers only: -1 is null.
struct Numbers {
  struct Column {
    std::optional<CellType> type;  // none: no chunk has it
    std::vector<int64_t> value;
  };
  std::vector<int64_t> location;
  std::vector<std::pair<std::string, Column>> columns;  // the wanted ones
};
// Appends the rows [first, end) of one chunk of `count`. False: damaged.
bool decode_numbers(std::string_view payload, uint32_t location, uint32_t count, uint32_t first, uint32_t end,
                    Numbers& out);
// Moves the first rows of some numbers behind others of the same columns; a column of another type has nulls there.
void move_rows(Numbers& from, size_t rows, Numbers& to);

}  // namespace strobe
