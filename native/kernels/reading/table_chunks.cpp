#include "kernels/reading/table_chunks.h"

#include <algorithm>

namespace strobe {

bool table_name(std::string_view payload, std::string_view& name) {
  ByteReader c{payload};
  name = c.text();
  return c.ok;
}

bool decode_table(std::string_view payload, uint32_t location, uint32_t count, Table& out) {
  ByteReader c{payload};
  c.text();
  const bool of_spans = c.u8();
  const size_t n = c.u16();
  std::vector<ColumnLayout> columns;
  std::vector<bool> nulls, shared;
  for (size_t i = 0; i < n && c.ok; i++) {
    std::string name(c.text());
    const uint8_t type = c.u8();
    const uint8_t cells = type & ~(kHasNulls | kShared);
    if (cells > uint8_t(CellType::text)) return false;
    nulls.push_back(type & kHasNulls), shared.push_back(type & kShared);
    columns.push_back({std::move(name), CellType(cells)});
  }
  if (!c.ok) return false;
  std::vector<uint64_t> numbers, present;
  std::vector<int64_t> rows(count, -1);
  if (of_spans) {
    if (!read_column(c, count, numbers)) return false;
    int64_t row = 0;
    for (size_t i = 0; i < count; i++) rows[i] = row = int64_t(uint64_t(row) + numbers[i]);
  }
  // Of each row, the shape that its shared cells are of.
  std::vector<uint64_t> shape;
  size_t shapes = 0;
  if (std::find(shared.begin(), shared.end(), true) != shared.end()) {
    if (!read_column(c, count, shape)) return false;
    for (const uint64_t number : shape) {
      if (number >= count) return false;
      shapes = std::max(shapes, size_t(number) + 1);
    }
  }
  std::vector<Table::Column> read(n);
  for (size_t i = 0; i < n; i++) {
    const size_t cells = shared[i] ? shapes : count;
    present.assign(cells, 1);
    if (nulls[i] && !read_column(c, cells, present)) return false;
    size_t there = 0;
    for (uint64_t bit : present) there += bit != 0;
    if (!read_column(c, there, numbers)) return false;
    Table::Column& column = read[i];
    column.type = columns[i].type;
    column.value.resize(cells), column.valid.resize(cells);
    uint64_t before = 0;
    for (size_t k = 0, at = 0; k < cells; k++) {
      if (!present[k]) continue;
      column.valid[k] = 1;
      const uint64_t number = numbers[at++];
      before += uint64_t(unzigzag(number));
      column.value[k] = int64_t(column.type == CellType::integer ? before : number);
    }
    if (!shared[i]) continue;
    Table::Column of_rows{column.type, std::vector<int64_t>(count), std::vector<uint8_t>(count)};
    for (size_t k = 0; k < count; k++)
      of_rows.value[k] = column.value[shape[k]], of_rows.valid[k] = column.valid[shape[k]];
    column = std::move(of_rows);
  }
  // All or nothing: only what was read whole is added.
  const size_t had = out.location.size();
  out.location.insert(out.location.end(), count, location);
  out.row.insert(out.row.end(), rows.begin(), rows.end());
  for (size_t i = 0; i < n; i++) {
    auto at = out.columns.begin();
    while (at != out.columns.end() && at->first != columns[i].name) ++at;
    if (at == out.columns.end())
      at = out.columns.insert(at,
                              {columns[i].name, {read[i].type, std::vector<int64_t>(had), std::vector<uint8_t>(had)}});
    if (at->second.type != read[i].type) continue;  // of another writer: nulls below
    at->second.value.insert(at->second.value.end(), read[i].value.begin(), read[i].value.end());
    at->second.valid.insert(at->second.valid.end(), read[i].valid.begin(), read[i].valid.end());
  }
  for (auto& [name, column] : out.columns) column.value.resize(had + count), column.valid.resize(had + count);
  return true;
}

}  // namespace strobe
