// utf8.h - characters as bytes.
#pragma once
#include <stdint.h>
#include <string>

namespace strobe {

// Appends a character; one that UTF-8 does not have (half of a surrogate pair) as U+FFFD.
inline void append_utf8(std::string& out, uint32_t c) {
  if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;  // bytes behind the first one
  constexpr uint8_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out += char(kFirst[more] | c >> 6 * more);
  for (int i = more; i-- > 0;) out += char(0x80 | (c >> 6 * i & 0x3F));
}

}  // namespace strobe
