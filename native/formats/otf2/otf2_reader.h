// otf2_reader.h - reads an OTF2 archive (Score-P, Extrae, TAU, ...): its anchor, its definitions, and the events of
// each location. It opens no file itself: it lists the locations, and is given the bytes of their files.
#pragma once
#include <stdint.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/importing/schema_tables.h"

namespace strobe {

class Otf2Reader {
 public:
  // Block files go to `folder`. `anchor` is the whole anchor file. Throws std::runtime_error with a sentence where it
  // is none, or one that is not read; everything throws std::system_error where the cache cannot be written. `tables`,
  // `paradigms`, `roles`: what archives that we wrote name (model/schema.py, model/kinds.py).
  Otf2Reader(std::string folder, size_t buffer_bytes, std::string_view anchor, std::vector<std::string> paradigms,
             std::vector<std::string> roles);
  ~Otf2Reader();
  Otf2Reader(const Otf2Reader&) = delete;

  // The file of global definitions, in pieces, and its end.
  void definitions(std::string_view bytes);
  void end_definitions();

  // Locations of every process, in order; known after the definitions.
  const std::vector<std::vector<uint64_t>>& processes() const;

  // One process after the other: block file process-NUMBER.blocks; its locations one after the other, each with its
  // own definitions first, then its events. `has_events`: whether there is a file of them.
  void begin_process(size_t process, uint32_t number);
  void begin_location(uint64_t location, bool has_events);
  void local_definitions(std::string_view bytes);
  void events(std::string_view bytes);
  void end_location();
  // `source`: where the process comes from.
  void end_process(const std::string& source);

  // One JSON object with processes, properties (what the archive has beside its events) and counters.
  std::string report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strobe
