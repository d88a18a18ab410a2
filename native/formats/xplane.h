// xplane.h - reads XPlane files (.xplane.pb): what JAX and TensorFlow profile. The format: XSpace of
// tsl/profiler/protobuf/xplane.proto in openxla/xla (field numbers as there).
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string>
#include <string_view>

namespace strobe {

// Reads a whole file, already in memory (names lie behind the events that refer to them), into one block file.
// Returns a JSON object with first_ns, last_ns, properties and counters. Throws std::runtime_error where the bytes are
// not an XSpace, std::system_error where the cache cannot be written. `source`: where the process comes from.
std::string read_xplane(std::string_view file, const std::string& blocks_path, size_t buffer_bytes,
                        const std::string& source);

}  // namespace strobe
