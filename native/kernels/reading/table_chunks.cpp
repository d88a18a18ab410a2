#include "kernels/reading/table_chunks.h"

#include <algorithm>

namespace strobe {

namespace {

// The cells of one column of a chunk: of its rows, or of the shapes that they have.
struct Cells {
  CellType type;
  std::vector<uint64_t> value;
  std::vector<uint64_t> present;  // by cell; empty if all are there

  bool read(ByteReader& from, size_t count, bool nulls) {
    present.clear();
    if (nulls && !read_column(from, count, present)) return false;
    const auto there = nulls ? count - size_t(std::count(present.begin(), present.end(), 0u)) : count;
    if (!read_column(from, there, value)) return false;
    if (type == CellType::integer) {
      uint64_t before = 0;
      for (uint64_t& each : value) each = before += uint64_t(unzigzag(each));
    }
    if (there == count) return present.clear(), true;
    value.resize(count);
    for (size_t k = count, at = there; k--;) value[k] = present[k] ? value[--at] : 0;  // none moves to the left
    return true;
  }
  bool has(size_t cell) const { return present.empty() || present[cell]; }
};

// One chunk, column by column.
class Chunk {
 public:
  struct Column {
    std::string_view name;
    CellType type;
    bool nulls, shared;
  };
  std::vector<Column> columns;
  std::vector<int64_t> rows;

  Chunk(std::string_view payload, uint32_t count) : from_{payload}, count_(count) {}

  bool read_layout() {
    from_.text();
    const bool of_spans = from_.u8();
    columns.resize(from_.u16());
    bool any_shared = false;
    for (Column& each : columns) {
      each.name = from_.text();
      const uint8_t type = from_.u8(), cells = type & ~(kHasNulls | kShared);
      if (!from_.ok || cells > uint8_t(CellType::text)) return false;
      each.type = CellType(cells), each.nulls = type & kHasNulls, each.shared = type & kShared;
      any_shared |= each.shared;
    }
    if (!from_.ok) return false;
    std::vector<uint64_t> numbers;
    rows.assign(count_, -1);
    if (of_spans) {
      if (!read_column(from_, count_, numbers)) return false;
      uint64_t row = 0;
      for (size_t i = 0; i < count_; i++) rows[i] = int64_t(row += numbers[i]);
    }
    if (!any_shared) return true;
    if (!read_column(from_, count_, shape_)) return false;
    for (const uint64_t number : shape_) {
      if (number >= count_) return false;
      shapes_ = std::max(shapes_, size_t(number) + 1);
    }
    return true;
  }
  // The next column.
  bool read(const Column& column, Cells& cells) {
    cells.type = column.type;
    return cells.read(from_, column.shared ? shapes_ : count_, column.nulls);
  }
  bool skip(const Column& column) {
    if (column.nulls) from_.long_text();
    from_.long_text();
    return from_.ok;
  }
  // Where the cell of a row is among those of its column.
  template <class Each>
  void each_row(const Column& column, Each each) const {
    if (column.shared)
      for (size_t i = 0; i < count_; i++) each(i, size_t(shape_[i]));
    else
      for (size_t i = 0; i < count_; i++) each(i, i);
  }

 private:
  ByteReader from_;
  size_t count_, shapes_ = 0;
  std::vector<uint64_t> shape_;  // by row, where cells are shared
};

}  // namespace

bool table_name(std::string_view payload, std::string_view& name) {
  ByteReader c{payload};
  name = c.text();
  return c.ok;
}

std::optional<int64_t> first_row(std::string_view payload, uint32_t count) {
  Chunk chunk(payload, count);
  if (!count || !chunk.read_layout() || chunk.rows[0] < 0) return {};
  return chunk.rows[0];
}

bool decode_table(std::string_view payload, uint32_t location, uint32_t count, Table& out) {
  Chunk chunk(payload, count);
  if (!chunk.read_layout()) return false;
  std::vector<Cells> read(chunk.columns.size());
  for (size_t i = 0; i < read.size(); i++)
    if (!chunk.read(chunk.columns[i], read[i])) return false;
  // All or nothing: only what was read whole is added.
  const size_t had = out.location.size();
  out.location.insert(out.location.end(), count, location);
  out.row.insert(out.row.end(), chunk.rows.begin(), chunk.rows.end());
  for (size_t i = 0; i < read.size(); i++) {
    auto at = out.columns.begin();
    while (at != out.columns.end() && at->first != chunk.columns[i].name) ++at;
    if (at == out.columns.end())
      at = out.columns.insert(at, {std::string(chunk.columns[i].name), {read[i].type, {}, {}}});
    Table::Column& column = at->second;
    if (column.type != read[i].type) continue;  // of another writer: nulls below
    column.value.resize(had + count), column.valid.resize(had + count);
    int64_t* const value = column.value.data() + had;
    uint8_t* const valid = column.valid.data() + had;
    chunk.each_row(chunk.columns[i], [&](size_t row, size_t cell) {
      value[row] = int64_t(read[i].value[cell]), valid[row] = read[i].has(cell);
    });
  }
  for (auto& [name, column] : out.columns) column.value.resize(had + count), column.valid.resize(had + count);
  return true;
}

bool decode_numbers(std::string_view payload, uint32_t location, uint32_t count, uint32_t first, uint32_t end,
                    Numbers& out) {
  Chunk chunk(payload, count);
  if (!chunk.read_layout()) return false;
  const size_t had = out.location.size();
  Cells cells;
  bool sound = true;
  for (auto& [name, column] : out.columns) column.value.resize(had + end - first, -1);
  for (const Chunk::Column& of : chunk.columns) {
    const auto at = std::ranges::find(out.columns, of.name, &std::pair<std::string, Numbers::Column>::first);
    if (at == out.columns.end()) {
      if (!(sound = chunk.skip(of))) break;
      continue;
    }
    if (!(sound = chunk.read(of, cells))) break;
    Numbers::Column& column = at->second;
    if (!column.type) column.type = of.type;
    if (*column.type != of.type) continue;  // of another writer
    int64_t* const value = column.value.data() + had;
    chunk.each_row(of, [&](size_t row, size_t cell) {
      if (row >= first && row < end) value[row - first] = cells.has(cell) ? int64_t(cells.value[cell]) : -1;
    });
  }
  if (sound)
    out.location.insert(out.location.end(), end - first, location);
  else
    for (auto& [name, column] : out.columns) column.value.resize(had);
  return sound;
}

template <class T>
static void move_first(std::vector<T>& from, size_t count, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.begin() + ptrdiff_t(count));
  from = std::vector<T>(from.begin() + ptrdiff_t(count), from.end());  // what it does not need any more is freed
}

void move_rows(Numbers& from, size_t rows, Numbers& to) {
  rows = std::min(rows, from.location.size());  // none of a damaged chunk
  move_first(from.location, rows, to.location);
  for (size_t i = 0; i < to.columns.size(); i++) {
    Numbers::Column &own = from.columns[i].second, &column = to.columns[i].second;
    if (own.type && !column.type) column.type = own.type;
    if (own.type && *column.type != *own.type) own.value.assign(own.value.size(), -1);
    move_first(own.value, rows, column.value);
  }
}

}  // namespace strobe
