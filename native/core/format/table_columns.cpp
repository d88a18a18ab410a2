#include "core/format/table_columns.h"

namespace strobe {

void TableColumns::add(int64_t span_row, uint64_t present, const uint64_t* cells, uint32_t shape) {
  if (layout_.of_spans) span_row_.push_back(span_row);
  if (cells_.size() < kMaxColumns) present &= (uint64_t(1) << cells_.size()) - 1;
  present_.push_back(present);
  uint64_t written = present;
  if (layout_.shared) {
    const auto [known, fresh] = shapes_.try_emplace(shape, shapes_.size());
    shape_.push_back(known->second);
    if (fresh) shape_present_.push_back(present);
    if (!fresh) written &= ~layout_.shared;
  }
  for (uint64_t left = present; left; left &= left - 1, cells++) {
    const auto i = size_t(__builtin_ctzll(left));
    if (written >> i & 1) cells_[i].push_back(*cells);
  }
  rows_++;
}

void TableColumns::add(std::initializer_list<std::optional<uint64_t>> cells) {
  uint64_t present = 0, bit = 1, values[kMaxColumns];
  size_t n = 0;
  for (const std::optional<uint64_t>& cell : cells) {
    if (cell) present |= bit, values[n++] = *cell;
    bit <<= 1;
  }
  add(-1, present, values);
}

void TableColumns::append_to(std::string& out, uint32_t location, std::string_view trailer) {
  if (!rows_) return;
  Writer head;
  head.text(layout_.name);
  head.u8(layout_.of_spans);
  std::vector<size_t> used;
  for (size_t i = 0; i < cells_.size(); i++)
    if (!cells_[i].empty()) used.push_back(i);
  head.u16(uint16_t(used.size()));
  uint64_t shared = 0;
  for (size_t i : used) shared |= layout_.shared & uint64_t(1) << i;
  const auto present_of = [&](size_t i) -> const std::vector<uint64_t>& {
    return shared >> i & 1 ? shape_present_ : present_;
  };
  auto has_nulls = [&](size_t i) { return cells_[i].size() < present_of(i).size(); };
  for (size_t i : used) {
    head.text(layout_.columns[i].name);
    head.u8(
        uint8_t(uint8_t(layout_.columns[i].type) | (has_nulls(i) ? kHasNulls : 0) | (shared >> i & 1 ? kShared : 0)));
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
  if (shared) append_column(payload, shape_);
  for (size_t i : used) {
    if (has_nulls(i)) {
      numbers.clear();
      for (uint64_t present : present_of(i)) numbers.push_back(present >> i & 1);
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
  payload += trailer;
  append_chunk(out, kTableChunk, location, uint32_t(rows_), payload);
  rows_ = 0;
  span_row_.clear();
  present_.clear();
  shapes_.clear(), shape_.clear(), shape_present_.clear();
  for (auto& column : cells_) column.clear();
}

}  // namespace strobe
