// bytes.h - the parts that payloads are made of: little-endian values, texts with their length in front, LEB128 varints
// (zigzag-coded where they are signed), and zstd frames.
#pragma once
#include <stdint.h>
#include <string.h>
#include <optional>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;

namespace strobe {

inline uint64_t zigzag(int64_t v) { return (uint64_t(v) << 1) ^ uint64_t(v >> 63); }
inline int64_t unzigzag(uint64_t v) { return int64_t(v >> 1) ^ -int64_t(v & 1); }

struct Writer {
  std::string bytes;
  template <class T>
  void raw(T v) {
    bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void u8(uint8_t v) { raw(v); }
  void u16(uint16_t v) { raw(v); }
  void u32(uint32_t v) { raw(v); }
  void u64(uint64_t v) { raw(v); }
  void text(std::string_view v);                                               // u16 length, cut at 65535 bytes
  void long_text(std::string_view v) { u32(uint32_t(v.size())), bytes += v; }  // u32 length
  void number(uint64_t v) {
    for (; v >= 0x80; v >>= 7) bytes.push_back(char(v | 0x80));
    bytes.push_back(char(v));
  }
  void difference(int64_t v) { number(zigzag(v)); }
};

// Reads what Writer wrote. Past the end `ok` turns false, and everything is 0 or empty from there on.
struct ByteReader {
  std::string_view bytes;  // what is left
  bool ok = true;
  std::string_view take(size_t size);
  template <class T>
  T raw() {
    T v{};
    if (const std::string_view taken = take(sizeof v); ok) memcpy(&v, taken.data(), sizeof v);
    return v;
  }
  uint8_t u8() { return raw<uint8_t>(); }
  uint16_t u16() { return raw<uint16_t>(); }
  uint32_t u32() { return raw<uint32_t>(); }
  uint64_t u64() { return raw<uint64_t>(); }
  std::string_view text() { return take(u16()); }
  std::string_view long_text() { return take(u32()); }
  uint64_t number();
  uint32_t number32();  // not `ok` where the number is larger
  int64_t difference() { return unzigzag(number()); }
};

// A context costs more to make than a frame to compress: each thread keeps one.
ZSTD_CCtx_s* compressor();
// The size of what a frame holds; nothing if it is damaged or larger than `most`.
std::optional<size_t> decompressed_size(std::string_view frame, size_t most);
bool decompress(std::string_view frame, void* out, size_t size);  // false: damaged

}  // namespace strobe
