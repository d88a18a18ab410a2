#include "core/line_counts.h"

#include "core/table_columns.h"

namespace strobe {

void append_lines(std::string& out, uint32_t location, const strobe_line* lines, uint64_t count,
                  const ClockLine& clock) {
  static const auto* layout = new TableLayout{"lines",
                                              {{"file", CellType::text},
                                               {"line", CellType::integer},
                                               {"function", CellType::text},
                                               {"function_line", CellType::integer},
                                               {"hits", CellType::integer},
                                               {"total_ns", CellType::integer},
                                               {"gpu_ns", CellType::integer},
                                               {"kernels", CellType::integer}},
                                              false};
  TableColumns columns(*layout);
  for (uint64_t i = 0; i < count; i++) {
    const strobe_line& each = lines[i];
    if (!each.hits && !each.ticks) continue;
    const uint64_t ns = uint64_t(double(each.ticks) * clock.ns_per_tick);
    const uint64_t cells[] = {each.file, each.line, each.function, each.function_line,
                              each.hits, ns,        each.gpu_ns,   each.kernels};
    columns.add(0, (1u << 8) - 1, cells);
    if (columns.rows() == kTableChunkRows) columns.append_to(out, location);
  }
  columns.append_to(out, location);
}

}  // namespace strobe
