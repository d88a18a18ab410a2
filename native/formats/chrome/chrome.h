// chrome.h - reads Chrome's trace event JSON as it comes, in pieces: what Kineto (PyTorch's profiler) writes, old and
// new, VizTracer, and others. The format: "Trace Event Format" of the Chromium project; Kineto's additions:
// libkineto/src/output_json.cpp.
#pragma once
#include <stdint.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/importing/schema_tables.h"

namespace strobe {

class ChromeReader {
 public:
  // Block files go to `folder`, numbered from `first_number` on: process-1.blocks, ...
  ChromeReader(std::string folder, uint32_t first_number, size_t buffer_bytes);
  ~ChromeReader();
  ChromeReader(const ChromeReader&) = delete;

  // Throws std::runtime_error where the text is no trace (with the byte offset), std::system_error where the cache
  // cannot be written.
  void feed(std::string_view bytes);
  // The end of the file, or of what shall be read of it. `source`: what processes are said to come from.
  void finish(const std::string& source);

  // After finish: one JSON object with processes, properties (what the file says beside its events) and counters.
  const std::string& report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strobe
