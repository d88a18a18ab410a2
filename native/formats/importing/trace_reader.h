// trace_reader.h - reads the file of another tool as it comes, in pieces, and writes a block file for each process.
#pragma once
#include <string>
#include <string_view>

namespace strobe {

class TraceReader {
 public:
  virtual ~TraceReader() = default;
  // Throws std::runtime_error where the bytes are not a trace, std::system_error where the cache cannot be written.
  virtual void feed(std::string_view bytes) = 0;
  // What is fed in between is another file, with the captures of graphs that the file itself replays.
  virtual void begin_capture() {}
  virtual void end_capture() {}
  // The end of the file, or of what shall be read of it. `source`: where its processes come from. Returns one JSON
  // object with processes, properties (what the file has beside its events) and counters.
  virtual std::string finish(const std::string& source) = 0;
};

}  // namespace strobe
