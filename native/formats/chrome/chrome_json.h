// chrome_json.h - values of JSON as yyjson holds them, with numbers as texts.
#pragma once
#include <stdint.h>
#include <string>
#include <string_view>

#include "vendor/yyjson/yyjson.h"

namespace strobe::chrome {

// The text of a string or number, else empty.
inline std::string_view raw(yyjson_val* v) {
  if (!v || !(yyjson_is_str(v) || yyjson_is_raw(v))) return {};
  return {static_cast<const char*>(v->uni.ptr), yyjson_get_len(v)};
}

// A value as compact JSON; numbers as the file has them, null for what lies deeper than 64 lists or objects.
void append_json(std::string& out, yyjson_val* v, int depth = 0);

// A whole number; addresses and hashes beyond 63 bits become the same bits.
bool integer(std::string_view text, int64_t& out);
inline int64_t integer_or(std::string_view text, int64_t other) {
  int64_t value;
  return integer(text, value) ? value : other;
}
bool real(std::string_view text, double& out);

}  // namespace strobe::chrome
