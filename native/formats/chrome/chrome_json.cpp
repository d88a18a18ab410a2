#include "formats/chrome/chrome_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <charconv>

#include "formats/encoding/json_scan.h"
#include "formats/encoding/json_strings.h"

namespace strobe::chrome {

void append_json(std::string& out, yyjson_val* v, int depth) {
  if (depth > 64) {
    out += "null";
  } else if (yyjson_is_raw(v)) {
    out += raw(v);
  } else if (yyjson_is_str(v)) {
    json::append_text(out, raw(v));
  } else if (yyjson_is_arr(v)) {
    out += '[';
    size_t i, n;
    yyjson_val* each;
    yyjson_arr_foreach(v, i, n, each) {
      if (i) out += ',';
      append_json(out, each, depth + 1);
    }
    out += ']';
  } else if (yyjson_is_obj(v)) {
    out += '{';
    size_t i, n;
    yyjson_val *key, *each;
    yyjson_obj_foreach(v, i, n, key, each) {
      if (i) out += ',';
      json::append_text(out, raw(key));
      out += ':';
      append_json(out, each, depth + 1);
    }
    out += '}';
  } else {
    out += yyjson_is_true(v) ? "true" : yyjson_is_false(v) ? "false" : "null";
  }
}

bool integer(std::string_view text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc() && end == text.data() + text.size()) return true;
  bool exact;
  if (json::scaled_integer(text, 0, out, exact)) return exact;
  if (text.empty() || text.size() > 20 || text.find_first_not_of("0123456789") != text.npos) return false;
  errno = 0;
  const uint64_t value = strtoull(std::string(text).c_str(), nullptr, 10);
  out = int64_t(value);
  return errno == 0;
}

bool real(std::string_view text, double& out) {
  char copy[64];
  if (text.empty() || text.size() >= sizeof copy) return false;
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  char* end;
  out = strtod(copy, &end);
  return end == copy + text.size();
}

}  // namespace strobe::chrome
