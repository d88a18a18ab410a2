// json_strings.h - values as JSON, and objects of them.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

// Bytes that are not UTF-8 are shown as they are elsewhere (native/python/bindings/process_reader.cpp): as \xff.
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

// With as few digits as give the same number again.
inline void append_real(std::string& out, double value) {
  char text[32];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, nullptr) == value) break;
  }
  out += text;
}

inline void append_hex(std::string& out, std::string_view bytes) {
  char text[3];
  for (const char c : bytes) snprintf(text, sizeof text, "%02x", unsigned(uint8_t(c))), out += text;
}

// An object that is written at the end of a text.
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }
  // Where the value of this key is to be appended.
  std::string& key(std::string_view name) {
    if (!first_) out_ += ", ";
    first_ = false;
    append_text(out_, name);
    return out_ += ": ";
  }
  void text(std::string_view name, std::string_view value) { append_text(key(name), value); }
  void number(std::string_view name, int64_t value) { key(name) += std::to_string(value); }
  template <class Numbers>
  void numbers(std::string_view name, const Numbers& by_name) {
    Object inner(key(name));
    for (const auto& [each, value] : by_name) inner.number(each, int64_t(value));
    inner.end();
  }
  void end() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

// A list of one text.
inline std::string list_of(std::string_view text) {
  std::string out = "[";
  append_text(out, text);
  return out += ']';
}

inline std::string quoted(std::string_view text) {
  std::string out;
  append_text(out, text);
  return out;
}

}  // namespace strobe::json
