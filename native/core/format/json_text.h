// json_text.h - the little JSON that the recorder writes: texts.
#pragma once
#include <stdio.h>
#include <string>
#include <string_view>

namespace strobe {

// Appends a text in quotes. Bytes beyond ASCII stay as they are: readers decode UTF-8 and replace what is none.
inline void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\', out += char(c);
    } else if (c < 0x20 || c == 0x7F) {
      char escaped[8];
      snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += char(c);
    }
  }
  out += '"';
}

}  // namespace strobe
