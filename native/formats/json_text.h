// json_text.h - texts as JSON strings.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <string>
#include <string_view>

namespace strobe::json {

inline void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (uint8_t(c) < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", unsigned(uint8_t(c)));
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace strobe::json
