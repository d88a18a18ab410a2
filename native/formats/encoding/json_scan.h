// json_scan.h - where a JSON value ends, without parsing it; and numbers as text made into integers without rounding.
#pragma once
#include <stdint.h>
#include <string.h>
#include <string_view>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace strobe::json {

// Position behind the object or array that begins at text[0], 0 if it goes on behind the text.
inline size_t end_of_container(std::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  size_t i = 0;
  auto visit = [&](size_t at) -> bool {  // true: the container ends here
    switch (text[at]) {
      case '"':
        in_string = !in_string;
        return false;
      case '{':
      case '[':
        if (!in_string) depth++;
        return false;
      case '}':
      case ']':
        return !in_string && --depth == 0;
      default:
        return false;
    }
  };
#if defined(__SSE2__)
  // '{' and '[', '}' and ']' differ in one bit each.
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), lower = _mm_set1_epi8(0x20);
  const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
  while (i + 16 <= text.size()) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + i));
    const __m128i folded = _mm_or_si128(bytes, lower);
    const __m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                         _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close)));
    auto mask = unsigned(_mm_movemask_epi8(special));
    bool escaped = false;
    for (; mask; mask &= mask - 1) {
      const size_t at = i + size_t(__builtin_ctz(mask));
      if (text[at] == '\\') {
        if (!in_string) continue;
        i = at + 2;  // what follows a backslash means nothing
        escaped = true;
        break;
      }
      if (visit(at)) return at + 1;
    }
    if (!escaped) i += 16;
  }
#endif
  for (; i < text.size(); i++) {
    if (text[i] == '\\' && in_string) {
      i++;
      continue;
    }
    if (visit(i)) return i + 1;
  }
  return 0;
}

// Position behind the string that begins at text[0], 0 if it goes on.
inline size_t end_of_string(std::string_view text) {
  for (size_t i = 1; i < text.size(); i++) {
    if (text[i] == '\\')
      i++;
    else if (text[i] == '"')
      return i + 1;
  }
  return 0;
}

// A decimal number times 10^shift as an integer: 12.5 with shift 3 is 12500. What is left behind the last digit is
// rounded half away from zero, and `exact` is whether it was nothing. False: no number, or out of range.
inline bool scaled_integer(std::string_view text, int shift, int64_t& out, bool& exact) {
  bool negative = false;
  size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
  uint64_t value = 0;
  int point = -1, dropped = 0;
  bool any = false, lost = false, half = false;
  constexpr uint64_t kMost = uint64_t(INT64_MAX) / 10 - 1;
  int digits_behind = 0;
  for (; i < text.size(); i++) {
    const char c = text[i];
    if (c == '.' && point < 0) {
      point = 0;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (value > kMost || (point >= 0 && digits_behind >= 18)) {
      if (!dropped) half = c >= '5';
      lost |= c != '0';
      if (point < 0) return false;
      dropped++;
      continue;
    }
    value = value * 10 + uint64_t(c - '0');
    if (point >= 0) digits_behind++;
  }
  if (!any) return false;
  int exponent = 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    i++;
    bool minus = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) minus = text[i++] == '-';
    if (i == text.size()) return false;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; i++)
      if (exponent < 1000) exponent = exponent * 10 + (text[i] - '0');
    if (minus) exponent = -exponent;
  }
  if (i != text.size()) return false;
  int power = shift + exponent - digits_behind;
  if (power > 0 && dropped) half = false;
  for (; power > 0; power--) {
    if (value == 0) break;
    if (value > uint64_t(INT64_MAX) / 10) return false;
    value *= 10;
  }
  for (; power < 0; power++) {
    half = value % 10 >= 5;
    lost |= value % 10 != 0;
    value /= 10;
    if (value == 0 && power < -1) {
      half = false;
      break;
    }
  }
  if (half) value++;
  if (value > uint64_t(INT64_MAX)) return false;
  exact = !lost;
  out = negative ? -int64_t(value) : int64_t(value);
  return true;
}

}  // namespace strobe::json
