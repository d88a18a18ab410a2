// perfetto.h - reads Perfetto's protobuf traces as they come, in pieces: track events with their tracks, interned
// texts, clocks, counters and flows. The format: protos/perfetto/trace/ of google/perfetto (field numbers as there).
#pragma once
#include <stdint.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "formats/importing/schema_tables.h"

namespace strobe {

class PerfettoReader {
 public:
  // Unpacks packets that lie compressed: the number of their field (50: zlib, 133: zstd) and the bytes. Empty: damaged.
  using Inflate = std::function<std::string(uint32_t, std::string_view)>;

  // Block files go to `folder`, numbered from `first_number` on, one a process of the trace.
  // `paradigms`, `roles`: their names in the order of their numbers.
  PerfettoReader(std::string folder, uint32_t first_number, size_t buffer_bytes, std::vector<std::string> paradigms,
                 std::vector<std::string> roles, Inflate inflate);
  ~PerfettoReader();
  PerfettoReader(const PerfettoReader&) = delete;

  // Throws std::runtime_error where the bytes are no trace, std::system_error where the cache cannot be written.
  void feed(std::string_view bytes);
  // The end of the file, or of what shall be read of it. `source`: what processes are said to come from.
  void finish(const std::string& source);

  // After finish: one JSON object with processes, properties and counters.
  const std::string& report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strobe
