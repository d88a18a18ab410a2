#include "kernels/side_tables.h"

namespace strobe {

namespace {
constexpr uint8_t kHasNulls = 0x80;  // beside a column's type: a column of 0 and 1 comes first
}

void TableColumns::add(int64_t span_row, uint32_t present, const uint64_t* cells) {
  if (layout_.of_spans) span_row_.push_back(span_row);
  if (cells_.size() < 32) present &= (1u << cells_.size()) - 1;
  present_.push_back(present);
  for (uint32_t left = present; left; left &= left - 1) cells_[size_t(__builtin_ctz(left))].push_back(*cells++);
  rows_++;
}

void TableColumns::append_to(std::string& out, uint32_t location) {
  if (!rows_) return;
  Writer head;
  head.text(layout_.name);
  head.u8(layout_.of_spans);
  std::vector<size_t> used;
  for (size_t i = 0; i < cells_.size(); i++)
    if (!cells_[i].empty()) used.push_back(i);
  head.u16(uint16_t(used.size()));
  auto has_nulls = [this](size_t i) { return cells_[i].size() < rows_; };
  for (size_t i : used) {
    head.text(layout_.columns[i].name);
    head.u8(uint8_t(uint8_t(layout_.columns[i].type) | (has_nulls(i) ? kHasNulls : 0)));
  }
  std::string payload = std::move(head.bytes);
  // Rows, ids and times grow: their differences are short.
  std::vector<uint64_t> numbers;
  numbers.reserve(rows_);
  if (layout_.of_spans) {
    int64_t before = 0;
    for (int64_t row : span_row_) numbers.push_back(uint64_t(row - before)), before = row;
    append_column(payload, numbers);
  }
  for (size_t i : used) {
    if (has_nulls(i)) {
      numbers.clear();
      for (uint32_t present : present_) numbers.push_back(present >> i & 1);
      append_column(payload, numbers);
    }
    if (layout_.columns[i].type == CellType::integer) {
      numbers.clear();
      uint64_t before = 0;
      for (uint64_t value : cells_[i]) numbers.push_back(zigzag(int64_t(value - before))), before = value;
      append_column(payload, numbers);
    } else {
      append_column(payload, cells_[i]);
    }
  }
  append_chunk(out, kTableChunk, location, uint32_t(rows_), payload);
  rows_ = 0;
  span_row_.clear();
  present_.clear();
  for (auto& column : cells_) column.clear();
}

bool table_name(std::string_view payload, std::string_view& name) {
  Cursor c{payload.data(), payload.data() + payload.size()};
  name = c.text();
  return c.ok;
}

bool decode_table(std::string_view payload, uint32_t location, uint32_t count, Table& out) {
  Cursor c{payload.data(), payload.data() + payload.size()};
  c.text();
  const bool of_spans = c.u8();
  const size_t n = c.u16();
  std::vector<ColumnLayout> columns;
  std::vector<bool> nulls;
  for (size_t i = 0; i < n && c.ok; i++) {
    std::string name(c.text());
    const uint8_t type = c.u8();
    if ((type & ~kHasNulls) > uint8_t(CellType::text)) return false;
    nulls.push_back(type & kHasNulls);
    columns.push_back({std::move(name), CellType(type & ~kHasNulls)});
  }
  if (!c.ok) return false;
  std::vector<uint64_t> numbers, present;
  std::vector<int64_t> rows(count, -1);
  if (of_spans) {
    if (!read_column(c, count, numbers)) return false;
    int64_t row = 0;
    for (size_t i = 0; i < count; i++) rows[i] = row = int64_t(uint64_t(row) + numbers[i]);
  }
  std::vector<Table::Column> read(n);
  for (size_t i = 0; i < n; i++) {
    present.assign(count, 1);
    if (nulls[i] && !read_column(c, count, present)) return false;
    size_t there = 0;
    for (uint64_t bit : present) there += bit != 0;
    if (!read_column(c, there, numbers)) return false;
    Table::Column& column = read[i];
    column.type = columns[i].type;
    column.value.resize(count), column.valid.resize(count);
    uint64_t before = 0;
    for (size_t k = 0, at = 0; k < count; k++) {
      if (!present[k]) continue;
      column.valid[k] = 1;
      const uint64_t number = numbers[at++];
      before += uint64_t(unzigzag(number));
      column.value[k] = int64_t(column.type == CellType::integer ? before : number);
    }
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
