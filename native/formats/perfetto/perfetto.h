// perfetto.h - reads Perfetto's protobuf traces: track events with their tracks, interned texts, clocks, counters and
// flows. The format: protos/perfetto/trace/ of google/perfetto (field numbers as there).
#pragma once
#include <stdint.h>
#include <functional>
#include <memory>
#include <vector>

#include "formats/importing/trace_reader.h"

namespace strobe {

// Unpacks packets that lie compressed: the number of their field (50: zlib, 133: zstd) and the bytes. Empty: damaged.
using Inflate = std::function<std::string(uint32_t, std::string_view)>;

// Block files go to `folder`, numbered from `first_number` on, one a process of the trace.
// `paradigms`, `roles`: their names in the order of their numbers.
std::unique_ptr<TraceReader> perfetto_reader(std::string folder, uint32_t first_number, size_t buffer_bytes,
                                             std::vector<std::string> paradigms, std::vector<std::string> roles,
                                             Inflate inflate);

}  // namespace strobe
