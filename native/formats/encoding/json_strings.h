// json_strings.h - texts as JSON strings.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <string>
#include <string_view>

namespace strobe::json {

// Bytes of the UTF-8 character that a text begins with, 0 where it begins with none.
inline size_t character_bytes(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t(0); };
  const auto follows = [&](size_t i, uint8_t least = 0x80, uint8_t most = 0xBF) {
    return at(i) >= least && at(i) <= most;
  };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

// What is no UTF-8 is shown as it is elsewhere (native/python/bindings/process_reader.cpp): as \xff.
inline void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t bytes = uint8_t(c) < 0x80 ? 1 : character_bytes(text.substr(i));
    char escape[8];
    if (bytes == 0) {
      snprintf(escape, sizeof escape, "\\\\x%02x", unsigned(uint8_t(c)));
      out += escape;
    } else if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (uint8_t(c) < 0x20) {
      snprintf(escape, sizeof escape, "\\u%04x", unsigned(uint8_t(c)));
      out += escape;
    } else {
      out.append(text, i, bytes);
    }
    i += bytes ? bytes : 1;
  }
  out += '"';
}

}  // namespace strobe::json
