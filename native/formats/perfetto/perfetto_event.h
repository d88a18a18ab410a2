// perfetto_event.h - one event of Perfetto's tracks: the fields of its message
// (protos/perfetto/trace/track_event/track_event.proto).
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/encoding/protobuf_wire.h"

namespace strobe {

// Texts lie in the message.
struct PerfettoEvent {
  uint64_t type, track, name_iid, location_iid;
  bool has_track, has_name;
  std::string_view name, location, legacy, callstack;
  std::vector<uint64_t> category_iids;
  std::vector<std::string_view> categories, annotations;
  std::vector<uint64_t> flows, ends, counter_tracks, real_counter_tracks;
  std::vector<uint64_t> counter_values, real_counter_values;
  uint64_t value;
  bool has_value, value_is_real;
  std::vector<std::pair<std::string, std::string>> details;  // keys and values
  size_t unknown;                                            // details of kinds that are not read

  // Reads a message. False: it is damaged.
  bool read(std::string_view bytes);
};

}  // namespace strobe
