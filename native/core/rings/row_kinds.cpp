#include "core/rings/row_kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <ranges>

#include "core/format/side_tables.generated.h"
#include "include/strobe.h"

namespace strobe {

static_assert(kRowValues == STROBE_ROW_VALUES);

namespace {

constexpr uint8_t kWhole = 64, kHalf = 32, kThird = 21;

// Columns that lie in whole values, from `value` on.
constexpr auto whole(uint8_t value, auto... columns) { return std::array{RowColumn{columns, value++, 0, kWhole}...}; }
// In parts of one value, from its lowest bits on.
constexpr auto parts(uint8_t bits, uint8_t value, auto... columns) {
  uint8_t part = 0;
  return std::array{RowColumn{columns, value, uint8_t(bits * part++), bits}...};
}
constexpr auto halves(uint8_t value, auto... columns) { return parts(kHalf, value, columns...); }
constexpr auto thirds(uint8_t value, auto... columns) { return parts(kThird, value, columns...); }
// In the text that the upper half of a value refers to, which holds their numbers in this order.
constexpr auto in_text(uint8_t value, auto... columns) {
  uint8_t field = 0;
  return std::array{RowColumn{columns, value, 32, kHalf, ++field}...};
}

template <size_t... kSizes>
constexpr auto all(const std::array<RowColumn, kSizes>&... parts) {
  std::array<RowColumn, (kSizes + ...)> out{};
  auto* to = out.data();
  ((to = std::ranges::copy(parts, to).out), ...);
  return out;
}

// The layouts of strobe.h, value by value.
namespace message_row {
using namespace schema::messages;
constexpr auto kColumns = all(halves(0, direction, communicator), halves(1, peer_rank, communicator_rank),
                              whole(2, tag, size_bytes, request, pending_ns));
}  // namespace message_row
namespace collective_row {
using namespace schema::collective_spans;
constexpr auto kColumns = all(halves(0, collective, communicator), halves(1, root, group_size),
                              whole(2, sent_bytes, received_bytes), halves(4, rank, request), whole(5, pending_ns));
}  // namespace collective_row
namespace group_collective_row {
using namespace schema::collective_spans;
constexpr auto kColumns = all(thirds(0, collective, dtype, group), thirds(1, group_ranks, root, bucket),
                              halves(2, sequence, group_size), whole(3, sent_bytes, received_bytes, pending_ns));
}  // namespace group_collective_row
namespace sample_row {
using namespace schema::samples;
constexpr auto kColumns = all(std::array{RowColumn{call_stack, 0, 32, kHalf}}, halves(1, state, cpu), whole(2, weight),
                              halves(3, line), whole(4, period_ns, cpu_ns));
}  // namespace sample_row
namespace call_row {
using namespace schema::call_spans;
constexpr auto kColumns = all(halves(0, correlation, callback_id), halves(1, return_value));
}  // namespace call_row
namespace kernel_row {
using namespace schema::kernel_spans;
constexpr auto kColumns =
    all(halves(0, correlation), halves(1, graph, captured_by), whole(2, graph_node, queued_ns),
        in_text(0, device, context, stream, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread,
                shared_memory_bytes, static_shared_bytes, dynamic_shared_bytes, executed_shared_bytes,
                local_bytes_per_thread, local_bytes, priority, launch_type, cache_config));
}  // namespace kernel_row
namespace copy_row {
using namespace schema::copy_spans;
constexpr auto kColumns =
    all(halves(0, correlation), halves(1, graph, set_value), whole(2, graph_node, size_bytes), halves(4, captured_by),
        in_text(0, device, context, stream, copy_kind, source_kind, destination_kind, source_device, source_context,
                destination_device, destination_context, migration_cause),
        whole(5, address));
}  // namespace copy_row
namespace allocation_row {
using namespace schema::allocations;
constexpr auto kColumns =
    all(whole(0, address, size_bytes, total_allocated_bytes, total_reserved_bytes), halves(4, correlation),
        in_text(4, device_type, device, context, memory_kind, name), whole(5, program_counter));
}  // namespace allocation_row
namespace sync_row {
using namespace schema::sync_spans;
constexpr auto kColumns = all(halves(0, correlation), in_text(0, device, context, stream, sync_kind),
                              halves(1, wait_on_stream, wait_on_event), halves(2, wait_on_correlation));
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
