// LEB128 varints, zigzag for signed numbers, and raw little-endian values, written to and read from a string.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace strobe::structure {

struct VarintWriter {
  std::string bytes;
  void number(uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes.push_back(static_cast<char>(v | 0x80));
    bytes.push_back(static_cast<char>(v));
  }
  void difference(int64_t v) { number(static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63)); }
  template <class T>
  void raw(T v) {
    bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
};

// `ok` turns false, and everything read is 0, instead of running past the end.
struct VarintReader {
  std::string_view bytes;
  bool ok = true;
  uint64_t number() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      v |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return v;
    }
    ok = false;
    bytes = {};
    return 0;
  }
  int64_t difference() {
    const uint64_t v = number();
    return static_cast<int64_t>(v >> 1 ^ (0 - (v & 1)));
  }
  uint32_t number32() {
    const uint64_t v = number();
    if (v > UINT32_MAX) ok = false;
    return static_cast<uint32_t>(v);
  }
  template <class T>
  T raw() {
    T v{};
    if (bytes.size() < sizeof v) {
      ok = false;
      bytes = {};
      return v;
    }
    std::memcpy(&v, bytes.data(), sizeof v);
    bytes.remove_prefix(sizeof v);
    return v;
  }
};

}  // namespace strobe::structure
