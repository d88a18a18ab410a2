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
                              halves(2, tag, request), whole(3, size_bytes, in_call_ns, pending_ns));
}  // namespace message_row
namespace collective_row {
using namespace schema::collective_spans;
constexpr auto kBehindNames = all(halves(1, root, group_size), whole(2, sent_bytes, received_bytes),
                                  halves(4, rank, request), whole(5, pending_ns));
constexpr auto kColumns = all(halves(0, collective, communicator), kBehindNames);
constexpr auto kColumnsOfNeighbors = all(thirds(0, collective, communicator, source_ranks), kBehindNames);
}  // namespace collective_row
namespace group_collective_row {
using namespace schema::collective_spans;
constexpr auto kColumns =
    all(thirds(0, collective, dtype, group), thirds(1, group_ranks, root, bucket), halves(2, sequence),
        in_text(2, group_size, group_description), whole(3, sent_bytes, received_bytes, pending_ns));
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
namespace io_row {
using namespace schema::io_spans;
constexpr auto kColumns =
    all(thirds(0, operation, file, descriptor), whole(1, size_bytes, requested_bytes, offset_bytes));
}  // namespace io_row
namespace thread_wait_row {
using namespace schema::thread_waits;
constexpr auto kColumns = all(std::array{RowColumn{call_stack, 0, 32, kHalf}}, halves(1, state, cause),
                              halves(2, waits), whole(3, wait_ns, max_ns));
}  // namespace thread_wait_row
namespace compilation_row {
using namespace schema::compilations;
constexpr auto kColumns =
    all(thirds(0, event, compile_id, function), halves(1, file, reason), halves(2, line), whole(3, duration_ns));
}  // namespace compilation_row
namespace compiled_kernel_row {
using namespace schema::compiled_kernels;
constexpr auto kColumns =
    all(thirds(0, kernel, file, operators), thirds(1, source_lines, shapes, reason), halves(2, line));
}  // namespace compiled_kernel_row
namespace request_row {
using namespace schema::requests;
constexpr auto kColumns = all(halves(0, route, request), halves(1, status, server),
                              whole(2, latency_ns, start_delay_ns, running_ns, collecting_ns));
}  // namespace request_row
namespace request_part_row {
using namespace schema::request_parts;
constexpr auto kColumns = all(thirds(0, kind, code, cause), halves(1, request, thread_id), whole(2, duration_ns));
}  // namespace request_part_row
constexpr const char* kFoldedCollectives = schema::folded_collectives::table;
constexpr RowKind kKinds[STROBE_ROW_KINDS] = {
    {nullptr, false, false, {}},
    {schema::messages::table, false, false, message_row::kColumns, true, true, nullptr, 4},
    {schema::collective_spans::table, true, false, collective_row::kColumns, false, false, kFoldedCollectives, 5},
    {schema::collective_spans::table, true, false, group_collective_row::kColumns, false, false, kFoldedCollectives},
    {schema::samples::table, false, true, sample_row::kColumns},
    {schema::call_spans::table, true, false, call_row::kColumns},
    {schema::kernel_spans::table, true, false, kernel_row::kColumns},
    {schema::copy_spans::table, true, false, copy_row::kColumns},
    {schema::allocations::table, false, false, allocation_row::kColumns, true},
    {schema::sync_spans::table, true, false, sync_row::kColumns},
    {schema::collective_spans::table, true, false, collective_row::kColumnsOfNeighbors, false, false,
     kFoldedCollectives, 5},
    {schema::io_spans::table, true, false, io_row::kColumns},
    {schema::thread_waits::table, false, true, thread_wait_row::kColumns, true},
    {schema::compilations::table, false, false, compilation_row::kColumns, true},
    {schema::compiled_kernels::table, false, false, compiled_kernel_row::kColumns, true},
    {schema::requests::table, false, false, request_row::kColumns, true},
    {schema::request_parts::table, false, false, request_part_row::kColumns, true},
};

}  // namespace

static void add_columns(TableLayout& layout, const RowKind& kind) {
  for (const RowColumn& column : kind.columns) {
    if (column.field) layout.shared |= uint64_t(1) << layout.columns.size();
    layout.columns.push_back(column.column);
  }
}

const TableLayout& layout_of(uint32_t kind) {
  static const auto* layouts = [] {
    auto* all = new std::vector<TableLayout>;
    for (const RowKind& k : kKinds) {
      TableLayout layout{k.table ? k.table : "", {}, k.of_spans};
      if (!k.of_spans) layout.columns.push_back(schema::samples::time_ns);
      add_columns(layout, k);
      if (k.with_path) layout.columns.push_back(schema::messages::call_path);
      all->push_back(std::move(layout));
    }
    return all;
  }();
  return (*layouts)[kind];
}

const TableLayout& folded_layout_of(uint32_t kind) {
  static const auto* layouts = [] {
    auto* all = new std::vector<TableLayout>;
    for (const RowKind& k : kKinds) {
      using namespace schema::folded_collectives;
      TableLayout layout{k.folded ? k.folded : "", {time_ns, duration_ns, call_path}, false};
      add_columns(layout, k);
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

void RowCells::add_columns(Cells& cells, const RowKind& kind, const RowRecord& record) {
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
      cells.shape = uint32_t(uint64_t(record.values[column.value]) >> column.shift);
      value = number_in(cells.shape, column.field);
      nothing = STROBE_NOTHING;
      if (text && value == nothing) value = 0;
    }
    cells.add(uint64_t(value), value != (text ? 0 : nothing));
  }
}

void RowCells::add(TableColumns& columns, const RowKind& kind, const RowRecord& record, int64_t ns, uint64_t span_row,
                   uint32_t path) {
  Cells cells;
  if (!kind.of_spans) cells.add(uint64_t(ns));
  add_columns(cells, kind, record);
  if (kind.with_path) cells.add(path, path != kNoPath);
  columns.add(int64_t(span_row), cells.present, cells.values, cells.shape);
}

void RowCells::add_folded(TableColumns& columns, const RowKind& kind, const RowRecord& record, const SpanOfRow& span) {
  Cells cells;
  cells.add(uint64_t(span.start_ns)), cells.add(uint64_t(span.duration_ns)), cells.add(span.path);
  add_columns(cells, kind, record);
  columns.add(-1, cells.present, cells.values, cells.shape);
}

}  // namespace strobe
