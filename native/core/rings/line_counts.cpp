#include "core/rings/line_counts.h"

#include "core/format/side_tables.generated.h"

namespace strobe {

void append_lines(std::string& out, uint32_t location, const strobe_line* counters, uint64_t count,
                  const ClockLine& clock) {
  using namespace schema::lines;
  static const auto* layout =
      new TableLayout{table, {file, line, function, function_line, hits, total_ns, gpu_ns, kernels}, false};
  TableColumns columns(*layout);
  for (uint64_t i = 0; i < count; i++) {
    const strobe_line& each = counters[i];
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
