#include "core/rows.h"

#include <string.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <unordered_map>

#include "include/strobe.h"

namespace strobe {

static_assert(kRowValues == STROBE_ROW_VALUES);

namespace {

constexpr uint8_t kWhole = 64, kHalf = 32, kThird = 21;
constexpr auto kNumber = CellType::integer, kText = CellType::text;

// The layouts of strobe.h, value by value.
constexpr RowColumn kMessageColumns[] = {
    {"direction", kText, 0, 0, kHalf},   {"communicator", kText, 0, 32, kHalf},
    {"peer_rank", kNumber, 1, 0, kHalf}, {"communicator_rank", kNumber, 1, 32, kHalf},
    {"tag", kNumber, 2, 0, kWhole},      {"size_bytes", kNumber, 3, 0, kWhole},
    {"request", kNumber, 4, 0, kWhole},  {"pending_ns", kNumber, 5, 0, kWhole},
};
constexpr RowColumn kCollectiveColumns[] = {
    {"collective", kText, 0, 0, kHalf},    {"communicator", kText, 0, 32, kHalf},
    {"root", kNumber, 1, 0, kHalf},        {"group_size", kNumber, 1, 32, kHalf},
    {"sent_bytes", kNumber, 2, 0, kWhole}, {"received_bytes", kNumber, 3, 0, kWhole},
    {"rank", kNumber, 4, 0, kHalf},        {"request", kNumber, 4, 32, kHalf},
    {"pending_ns", kNumber, 5, 0, kWhole},
};
constexpr RowColumn kGroupColumns[] = {
    {"collective", kText, 0, 0, kThird},   {"dtype", kText, 0, 21, kThird},
    {"group", kText, 0, 42, kThird},       {"group_ranks", kText, 1, 0, kThird},
    {"root", kNumber, 1, 21, kThird},      {"bucket", kNumber, 1, 42, kThird},
    {"sequence", kNumber, 2, 0, kHalf},    {"group_size", kNumber, 2, 32, kHalf},
    {"sent_bytes", kNumber, 3, 0, kWhole}, {"received_bytes", kNumber, 4, 0, kWhole},
    {"pending_ns", kNumber, 5, 0, kWhole},
};
constexpr RowColumn kSampleColumns[] = {
    {"call_stack", kText, 0, 32, kHalf}, {"state", kText, 1, 0, kHalf},  {"cpu", kNumber, 1, 32, kHalf},
    {"weight", kNumber, 2, 0, kWhole},   {"line", kNumber, 3, 0, kHalf}, {"period_ns", kNumber, 4, 0, kWhole},
    {"cpu_ns", kNumber, 5, 0, kWhole},
};
constexpr RowColumn kCallColumns[] = {
    {"correlation", kNumber, 0, 0, kHalf},
    {"callback_id", kNumber, 0, 32, kHalf},
    {"return_value", kNumber, 1, 0, kHalf},
};
constexpr RowColumn of_text(const char* name, uint8_t field, CellType type = kNumber, uint8_t value = 0) {
  return {name, type, value, 32, kHalf, field};
}
constexpr RowColumn kKernelColumns[] = {
    {"correlation", kNumber, 0, 0, kHalf},
    {"graph", kNumber, 1, 0, kHalf},
    {"captured_by", kNumber, 1, 32, kHalf},
    {"graph_node", kNumber, 2, 0, kWhole},
    {"queued_ns", kNumber, 3, 0, kWhole},
    of_text("device", 1),
    of_text("context", 2),
    of_text("stream", 3),
    of_text("grid_x", 4),
    of_text("grid_y", 5),
    of_text("grid_z", 6),
    of_text("block_x", 7),
    of_text("block_y", 8),
    of_text("block_z", 9),
    of_text("registers_per_thread", 10),
    of_text("shared_memory_bytes", 11),
    of_text("static_shared_bytes", 12),
    of_text("dynamic_shared_bytes", 13),
    of_text("executed_shared_bytes", 14),
    of_text("local_bytes_per_thread", 15),
    of_text("local_bytes", 16),
    of_text("priority", 17),
    of_text("launch_type", 18, kText),
    of_text("cache_config", 19, kText),
};
constexpr RowColumn kCopyColumns[] = {
    {"correlation", kNumber, 0, 0, kHalf},
    {"graph", kNumber, 1, 0, kHalf},
    {"set_value", kNumber, 1, 32, kHalf},
    {"graph_node", kNumber, 2, 0, kWhole},
    {"size_bytes", kNumber, 3, 0, kWhole},
    {"captured_by", kNumber, 4, 0, kHalf},
    of_text("device", 1),
    of_text("context", 2),
    of_text("stream", 3),
    of_text("copy_kind", 4, kText),
    of_text("source_kind", 5, kText),
    of_text("destination_kind", 6, kText),
    of_text("source_device", 7),
    of_text("source_context", 8),
    of_text("destination_device", 9),
    of_text("destination_context", 10),
    of_text("migration_cause", 11, kText),
    {"address", kNumber, 5, 0, kWhole},
};
constexpr RowColumn kAllocationColumns[] = {
    {"address", kNumber, 0, 0, kWhole},
    {"size_bytes", kNumber, 1, 0, kWhole},
    {"total_allocated_bytes", kNumber, 2, 0, kWhole},
    {"total_reserved_bytes", kNumber, 3, 0, kWhole},
    {"correlation", kNumber, 4, 0, kHalf},
    of_text("device_type", 1, kNumber, 4),
    of_text("device", 2, kNumber, 4),
    of_text("context", 3, kNumber, 4),
    of_text("memory_kind", 4, kText, 4),
    of_text("name", 5, kText, 4),
    {"program_counter", kNumber, 5, 0, kWhole},
};
constexpr RowColumn kSyncColumns[] = {
    {"correlation", kNumber, 0, 0, kHalf},
    of_text("device", 1),
    of_text("context", 2),
    of_text("stream", 3),
    of_text("sync_kind", 4, kText),
    {"wait_on_stream", kNumber, 1, 0, kHalf},
    {"wait_on_event", kNumber, 1, 32, kHalf},
    {"wait_on_correlation", kNumber, 2, 0, kHalf},
};
constexpr RowKind kKinds[STROBE_ROW_KINDS] = {
    {nullptr, false, false, {}},
    {"messages", false, false, kMessageColumns},
    {"collective_spans", true, false, kCollectiveColumns},
    {"collective_spans", true, false, kGroupColumns},
    {"samples", false, true, kSampleColumns},
    {"call_spans", true, false, kCallColumns},
    {"kernel_spans", true, false, kKernelColumns},
    {"copy_spans", true, false, kCopyColumns},
    {"allocations", false, false, kAllocationColumns, true},
    {"sync_spans", true, false, kSyncColumns},
};

const TableLayout& layout_of(uint32_t kind) {
  static const auto* layouts = [] {
    auto* all = new std::vector<TableLayout>;
    for (const RowKind& k : kKinds) {
      TableLayout layout{k.table ? k.table : "", {}, k.of_spans};
      if (!k.of_spans) layout.columns.push_back({"time_ns", kNumber});
      for (const RowColumn& column : k.columns) {
        if (column.field) layout.shared |= uint64_t(1) << layout.columns.size();
        layout.columns.push_back({column.name, column.type});
      }
      all->push_back(std::move(layout));
    }
    return all;
  }();
  return (*layouts)[kind];
}

// Texts that hold numbers, read once for each chunk.
class Fields {
 public:
  explicit Fields(const TextOf& text_of) : text_of_(text_of) {}
  int64_t of(uint32_t text, uint8_t field) {
    const auto [known, fresh] = numbers_.try_emplace(text);
    std::vector<int64_t>& numbers = known->second;
    if (fresh && text) {
      const std::string_view all = text_of_(text);
      for (size_t at = 0; at <= all.size();) {
        const size_t end = std::min(all.find(',', at), all.size());
        int64_t number = STROBE_NOTHING;
        std::from_chars(all.data() + at, all.data() + end, number);
        numbers.push_back(number);
        at = end + 1;
      }
    }
    return field <= numbers.size() ? numbers[field - 1u] : STROBE_NOTHING;
  }

 private:
  const TextOf& text_of_;
  std::unordered_map<uint32_t, std::vector<int64_t>> numbers_;
};

void add_cells(TableColumns& columns, const RowKind& kind, const RowRecord& record, int64_t ns, uint64_t span_row,
               Fields& fields) {
  uint64_t cells[kMaxColumns];
  uint64_t present = 0, bit = 0;
  size_t n = 0;
  uint32_t shape = 0;
  if (!kind.of_spans) cells[n++] = uint64_t(ns), present |= uint64_t(1) << bit++;
  for (const RowColumn& column : kind.columns) {
    int64_t value = record.values[column.value];
    int64_t nothing = STROBE_NOTHING;
    if (column.bits != kWhole) {
      const int unused = kWhole - column.bits;
      const uint64_t part = uint64_t(value) >> column.shift << unused;
      value = column.type == kText ? int64_t(part >> unused) : int64_t(part) >> unused;
      nothing = -(int64_t(1) << (column.bits - 1));
    }
    if (column.field) {
      shape = uint32_t(uint64_t(record.values[column.value]) >> column.shift);
      value = fields.of(shape, column.field);
      nothing = STROBE_NOTHING;
      if (column.type == kText && value == nothing) value = 0;
    }
    if (value != (column.type == kText ? 0 : nothing)) cells[n++] = uint64_t(value), present |= uint64_t(1) << bit;
    bit++;
  }
  columns.add(int64_t(span_row), present, cells, shape);
}

// What is left of samples whose iteration was folded: sums by location, call stack and state.
class SampleSums {
 public:
  void add(const RowRecord& record) {
    const auto& v = record.values;
    Sum& sum = sums_[{uint32_t(v[0]), uint32_t(uint64_t(v[0]) >> 32), uint32_t(v[1])}];
    sum.samples++;
    sum.total_ns += uint64_t(std::max<int64_t>(v[4], 0));
    sum.cpu_ns += uint64_t(std::max<int64_t>(v[5], 0));
  }
  template <class Write>
  void write(Write&& write) const {
    static const auto* layout = new TableLayout{
        "sample_totals",
        {{"call_stack", kText}, {"state", kText}, {"samples", kNumber}, {"total_ns", kNumber}, {"cpu_ns", kNumber}},
        false};
    TableColumns columns(*layout);
    for (auto at = sums_.begin(); at != sums_.end();) {
      const auto [location, call_stack, state] = at->first;
      const Sum& sum = at->second;
      uint64_t cells[5];
      uint64_t present = 0x1C;
      size_t n = 0;
      if (call_stack) present |= 1, cells[n++] = call_stack;
      if (state) present |= 2, cells[n++] = state;
      cells[n++] = sum.samples, cells[n++] = sum.total_ns, cells[n++] = sum.cpu_ns;
      columns.add(0, present, cells);
      ++at;
      if (columns.rows() == kTableChunkRows || at == sums_.end() || std::get<0>(at->first) != location)
        write(columns, location);
    }
  }

 private:
  struct Sum {
    uint64_t samples = 0, total_ns = 0, cpu_ns = 0;
  };
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Sum> sums_;
};

}  // namespace

const RowKind* row_kind(uint32_t kind) {
  return kind < STROBE_ROW_KINDS && kKinds[kind].table ? &kKinds[kind] : nullptr;
}

void PendingRows::add(const RowRecord& record, int64_t ns, uint64_t span_row) {
  next_++;
  const RowKind* kind = row_kind(record.kind());
  Fate fate = Fate::waits;
  if (!kind || (kind->of_spans && span_row == kNoSpan)) fate = Fate::goes, outside_++;
  if (kind && kind->stays) fate = Fate::stays;
  rows_.push_back({record, ns, kind && kind->of_spans ? span_row : kNoSpan, fate});
}

void PendingRows::fold(uint64_t base_row, uint64_t from, uint64_t to, const std::vector<uint32_t>& stays,
                       uint64_t removed) {
  // Iterations end far more often than rows are written: each row is looked at while its iteration is near, not at
  // every end.
  const auto settled = [from](const Pending& row) {
    return row.fate != Fate::waits || (row.span_row != kNoSpan && row.span_row < from);
  };
  settled_ = std::max(settled_, first_);
  while (settled_ < rows_.size() && settled(rows_[settled_])) settled_++;
  for (size_t i = settled_; i < rows_.size(); i++) {
    Pending& row = rows_[i];
    if (row.span_row == kNoSpan || row.span_row < from) continue;
    if (row.span_row >= to) {
      row.span_row -= removed;
      continue;
    }
    const auto wanted = uint32_t(row.span_row - base_row);
    const auto at = std::lower_bound(stays.begin(), stays.end(), wanted);
    if (at != stays.end() && *at == wanted)
      row.span_row = from + uint64_t(at - stays.begin());
    else
      row.span_row = kNoSpan, row.fate = Fate::goes, folded_++;
  }
}

void PendingRows::decide(int64_t ns, bool keep) {
  const auto waits = [](const Pending& row) { return row.fate == Fate::waits && row.span_row == kNoSpan; };
  decided_ = std::max(decided_, first_);
  while (decided_ < rows_.size() && !waits(rows_[decided_])) decided_++;
  for (size_t i = decided_; i < rows_.size(); i++) {
    Pending& row = rows_[i];
    if (!waits(row) || row.ns >= ns) continue;
    row.fate = keep ? Fate::stays : Fate::goes;
    folded_ += !keep;
  }
}

uint64_t PendingRows::span_since(int64_t ns, uint64_t from) const {
  for (size_t i = std::max(first_, settled_); i < rows_.size(); i++)
    if (rows_[i].span_row != kNoSpan && rows_[i].span_row >= from && rows_[i].ns >= ns) return rows_[i].span_row;
  return kNoSpan;
}

bool PendingRows::ready(uint64_t final_row) const { return !empty() && ready(rows_[first_], final_row); }

void PendingRows::emit(std::string& out, uint64_t final_row, uint64_t span_position, uint32_t ring_location,
                       const TextOf& text_of) {
  size_t end = first_;
  while (end < rows_.size() && ready(rows_[end], final_row)) end++;
  if (end == first_) return;
  const uint64_t position = next_ - (rows_.size() - end);
  std::map<std::pair<uint32_t, uint32_t>, TableColumns> tables;  // by kind and location
  const auto write = [&](TableColumns& columns, uint32_t kind, uint32_t location, uint64_t until) {
    const RowTrailer trailer{until, span_position, ring_location, kind, 0, kRowTrailerMagic};
    columns.append_to(out, location, {reinterpret_cast<const char*>(&trailer), sizeof trailer});
  };
  SampleSums sums;
  Fields fields(text_of);
  for (size_t i = first_; i < end; i++) {
    const Pending& row = rows_[i];
    const uint32_t number = row.record.kind();
    if (row.fate == Fate::goes && number == STROBE_ROW_SAMPLE) sums.add(row.record);
    if (row.fate == Fate::goes) continue;
    const RowKind& kind = *row_kind(number);
    const uint32_t location = kind.names_location ? uint32_t(row.record.values[0]) : ring_location;
    TableColumns& columns = tables.try_emplace({number, location}, layout_of(number)).first->second;
    add_cells(columns, kind, row.record, row.ns, row.span_row, fields);
    if (columns.rows() == kTableChunkRows) write(columns, number, location, position - (end - i) + 1);
  }
  for (auto& [key, columns] : tables)
    if (columns.rows()) write(columns, key.first, key.second, position);
  sums.write([&](TableColumns& columns, uint32_t location) { write(columns, STROBE_ROW_SAMPLE, location, position); });
  first_ = end;
  if (first_ < rows_.size() && first_ <= 4096) return;
  rows_.erase(rows_.begin(), rows_.begin() + ptrdiff_t(first_));
  settled_ -= std::min(settled_, first_);
  decided_ -= std::min(decided_, first_);
  first_ = 0;
}

}  // namespace strobe
