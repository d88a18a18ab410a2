#include "core/rings/row_kinds.h"

#include <charconv>
#include <memory>
#include <ranges>

#include "core/format/side_tables.generated.h"
#include "include/strobe.h"

namespace strobe {

static_assert(kRowValues == STROBE_ROW_VALUES);

namespace {

constexpr uint8_t kWhole = 64, kHalf = 32, kThird = 21;

// A column whose cells are in the text that the row refers to: the field with this number.
constexpr RowColumn of_text(SchemaColumn column, uint8_t field, uint8_t value = 0) {
  return {column, value, 32, kHalf, field};
}

// The layouts of strobe.h, value by value.
namespace message_row {
using namespace schema::messages;
constexpr RowColumn kColumns[] = {
    {direction, 0, 0, kHalf}, {communicator, 0, 32, kHalf}, {peer_rank, 1, 0, kHalf}, {communicator_rank, 1, 32, kHalf},
    {tag, 2, 0, kWhole},      {size_bytes, 3, 0, kWhole},   {request, 4, 0, kWhole},  {pending_ns, 5, 0, kWhole},
};
}  // namespace message_row
namespace collective_row {
using namespace schema::collective_spans;
constexpr RowColumn kColumns[] = {
    {collective, 0, 0, kHalf},  {communicator, 0, 32, kHalf}, {root, 1, 0, kHalf},
    {group_size, 1, 32, kHalf}, {sent_bytes, 2, 0, kWhole},   {received_bytes, 3, 0, kWhole},
    {rank, 4, 0, kHalf},        {request, 4, 32, kHalf},      {pending_ns, 5, 0, kWhole},
};
}  // namespace collective_row
namespace group_collective_row {
using namespace schema::collective_spans;
constexpr RowColumn kColumns[] = {
    {collective, 0, 0, kThird}, {dtype, 0, 21, kThird},         {group, 0, 42, kThird},     {group_ranks, 1, 0, kThird},
    {root, 1, 21, kThird},      {bucket, 1, 42, kThird},        {sequence, 2, 0, kHalf},    {group_size, 2, 32, kHalf},
    {sent_bytes, 3, 0, kWhole}, {received_bytes, 4, 0, kWhole}, {pending_ns, 5, 0, kWhole},
};
}  // namespace group_collective_row
namespace sample_row {
using namespace schema::samples;
constexpr RowColumn kColumns[] = {
    {call_stack, 0, 32, kHalf}, {state, 1, 0, kHalf},      {cpu, 1, 32, kHalf},    {weight, 2, 0, kWhole},
    {line, 3, 0, kHalf},        {period_ns, 4, 0, kWhole}, {cpu_ns, 5, 0, kWhole},
};
}  // namespace sample_row
namespace call_row {
using namespace schema::call_spans;
constexpr RowColumn kColumns[] = {
    {correlation, 0, 0, kHalf},
    {callback_id, 0, 32, kHalf},
    {return_value, 1, 0, kHalf},
};
}  // namespace call_row
namespace kernel_row {
using namespace schema::kernel_spans;
constexpr RowColumn kColumns[] = {
    {correlation, 0, 0, kHalf},
    {graph, 1, 0, kHalf},
    {captured_by, 1, 32, kHalf},
    {graph_node, 2, 0, kWhole},
    {queued_ns, 3, 0, kWhole},
    of_text(device, 1),
    of_text(context, 2),
    of_text(stream, 3),
    of_text(grid_x, 4),
    of_text(grid_y, 5),
    of_text(grid_z, 6),
    of_text(block_x, 7),
    of_text(block_y, 8),
    of_text(block_z, 9),
    of_text(registers_per_thread, 10),
    of_text(shared_memory_bytes, 11),
    of_text(static_shared_bytes, 12),
    of_text(dynamic_shared_bytes, 13),
    of_text(executed_shared_bytes, 14),
    of_text(local_bytes_per_thread, 15),
    of_text(local_bytes, 16),
    of_text(priority, 17),
    of_text(launch_type, 18),
    of_text(cache_config, 19),
};
}  // namespace kernel_row
namespace copy_row {
using namespace schema::copy_spans;
constexpr RowColumn kColumns[] = {
    {correlation, 0, 0, kHalf},
    {graph, 1, 0, kHalf},
    {set_value, 1, 32, kHalf},
    {graph_node, 2, 0, kWhole},
    {size_bytes, 3, 0, kWhole},
    {captured_by, 4, 0, kHalf},
    of_text(device, 1),
    of_text(context, 2),
    of_text(stream, 3),
    of_text(copy_kind, 4),
    of_text(source_kind, 5),
    of_text(destination_kind, 6),
    of_text(source_device, 7),
    of_text(source_context, 8),
    of_text(destination_device, 9),
    of_text(destination_context, 10),
    of_text(migration_cause, 11),
    {address, 5, 0, kWhole},
};
}  // namespace copy_row
namespace allocation_row {
using namespace schema::allocations;
constexpr RowColumn kColumns[] = {
    {address, 0, 0, kWhole},
    {size_bytes, 1, 0, kWhole},
    {total_allocated_bytes, 2, 0, kWhole},
    {total_reserved_bytes, 3, 0, kWhole},
    {correlation, 4, 0, kHalf},
    of_text(device_type, 1, 4),
    of_text(device, 2, 4),
    of_text(context, 3, 4),
    of_text(memory_kind, 4, 4),
    of_text(name, 5, 4),
    {program_counter, 5, 0, kWhole},
};
}  // namespace allocation_row
namespace sync_row {
using namespace schema::sync_spans;
constexpr RowColumn kColumns[] = {
    {correlation, 0, 0, kHalf},    of_text(device, 1),
    of_text(context, 2),           of_text(stream, 3),
    of_text(sync_kind, 4),         {wait_on_stream, 1, 0, kHalf},
    {wait_on_event, 1, 32, kHalf}, {wait_on_correlation, 2, 0, kHalf},
};
}  // namespace sync_row
constexpr RowKind kKinds[STROBE_ROW_KINDS] = {
    {nullptr, false, false, {}},
    {schema::messages::table, false, false, message_row::kColumns},
    {schema::collective_spans::table, true, false, collective_row::kColumns},
    {schema::collective_spans::table, true, false, group_collective_row::kColumns},
    {schema::samples::table, false, true, sample_row::kColumns},
    {schema::call_spans::table, true, false, call_row::kColumns},
    {schema::kernel_spans::table, true, false, kernel_row::kColumns},
    {schema::copy_spans::table, true, false, copy_row::kColumns},
    {schema::allocations::table, false, false, allocation_row::kColumns, true},
    {schema::sync_spans::table, true, false, sync_row::kColumns},
};

}  // namespace

const TableLayout& layout_of(uint32_t kind) {
  static const auto* layouts = [] {
    auto* all = new std::vector<TableLayout>;
    for (const RowKind& k : kKinds) {
      TableLayout layout{k.table ? k.table : "", {}, k.of_spans};
      if (!k.of_spans) layout.columns.push_back(schema::samples::time_ns);
      for (const RowColumn& column : k.columns) {
        if (column.field) layout.shared |= uint64_t(1) << layout.columns.size();
        layout.columns.push_back(column.column);
      }
      all->push_back(std::move(layout));
    }
    return all;
  }();
  return (*layouts)[kind];
}

const RowKind* row_kind(uint32_t kind) {
  return kind < STROBE_ROW_KINDS && kKinds[kind].table ? &kKinds[kind] : nullptr;
}

int64_t RowCells::number_in(uint32_t text, uint8_t field) {
  const auto [known, fresh] = numbers_.try_emplace(text);
  std::vector<int64_t>& numbers = known->second;
  if (fresh && text) {
    for (const auto part : std::views::split(text_of_(text), ',')) {
      numbers.push_back(STROBE_NOTHING);
      std::from_chars(std::to_address(part.begin()), std::to_address(part.end()), numbers.back());
    }
  }
  return field <= numbers.size() ? numbers[field - 1u] : STROBE_NOTHING;
}

void RowCells::add(TableColumns& columns, const RowKind& kind, const RowRecord& record, int64_t ns, uint64_t span_row) {
  uint64_t cells[kMaxColumns];
  uint64_t present = 0, bit = 0;
  size_t n = 0;
  uint32_t shape = 0;
  if (!kind.of_spans) cells[n++] = uint64_t(ns), present |= uint64_t(1) << bit++;
  for (const RowColumn& column : kind.columns) {
    const bool text = column.column.type == CellType::text;
    int64_t value = record.values[column.value];
    int64_t nothing = STROBE_NOTHING;
    if (column.bits != kWhole) {
      const int unused = kWhole - column.bits;
      const uint64_t part = uint64_t(value) >> column.shift << unused;
      value = text ? int64_t(part >> unused) : int64_t(part) >> unused;
      nothing = -(int64_t(1) << (column.bits - 1));
    }
    if (column.field) {
      shape = uint32_t(uint64_t(record.values[column.value]) >> column.shift);
      value = number_in(shape, column.field);
      nothing = STROBE_NOTHING;
      if (text && value == nothing) value = 0;
    }
    if (value != (text ? 0 : nothing)) cells[n++] = uint64_t(value), present |= uint64_t(1) << bit;
    bit++;
  }
  columns.add(int64_t(span_row), present, cells, shape);
}

}  // namespace strobe
