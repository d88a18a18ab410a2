// chrome.h - reads Chrome's trace event JSON: what Kineto (PyTorch's profiler) writes, old and new, VizTracer, and
// others. The format: "Trace Event Format" of the Chromium project; Kineto's additions:
// libkineto/src/output_json.cpp.
#pragma once
#include <stdint.h>
#include <memory>

#include "formats/importing/trace_reader.h"

namespace strobe {

// Block files go to `folder`, numbered from `first_number` on: process-1.blocks, ...
std::unique_ptr<TraceReader> chrome_reader(std::string folder, uint32_t first_number, size_t buffer_bytes);

}  // namespace strobe
