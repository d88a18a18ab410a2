// protobuf_wire.h - the wire format of protocol buffers, read in place: fields of one message, one after the other.
// Never reads beyond the bytes that it was given. The format: protobuf.dev/programming-guides/encoding.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <string>
#include <string_view>

namespace strobe::protobuf {

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// False: the bytes end before the number does, or it has more than 64 bits.
inline bool read_varint(std::string_view bytes, size_t& at, uint64_t& out) {
  out = 0;
  for (unsigned shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const uint8_t byte = uint8_t(bytes[at++]);
    out |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

struct Field {
  uint32_t number = 0;
  WireType type = kVarint;
  uint64_t value = 0;      // of numbers: what their bits are
  std::string_view bytes;  // of texts, bytes, messages, packed numbers

  int64_t whole() const { return int64_t(value); }
  std::string_view text() const { return type == kBytes ? bytes : std::string_view(); }
  double real() const {
    double out;
    memcpy(&out, &value, 8);
    return out;
  }
};

class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}
  // False at the end, and where the bytes are not a message: then ok() is false.
  bool next(Field& out) {
    if (at_ == bytes_.size() || !ok_) return false;
    uint64_t key, size;
    if (!read_varint(bytes_, at_, key) || key >> 3 == 0 || key >> 32) return ok_ = false;
    out.number = uint32_t(key >> 3), out.type = WireType(key & 7);
    switch (out.type) {
      case kVarint:
        return ok_ = read_varint(bytes_, at_, out.value);
      case kFixed64:
        return fixed(8, out.value);
      case kFixed32:
        return fixed(4, out.value);
      case kBytes:
        if (!read_varint(bytes_, at_, size) || size > bytes_.size() - at_) return ok_ = false;
        out.bytes = bytes_.substr(at_, size_t(size));
        at_ += size_t(size);
        return true;
    }
    return ok_ = false;  // groups: nobody writes them any more
  }
  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size() - at_; }

 private:
  bool fixed(size_t size, uint64_t& out) {
    if (bytes_.size() - at_ < size) return ok_ = false;
    out = 0;
    memcpy(&out, bytes_.data() + at_, size);
    at_ += size;
    return true;
  }
  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

// Numbers of a repeated field: one a field, or many of them packed into bytes.
template <class Take>
void each_number(const Field& field, WireType packed, Take&& take) {
  if (field.type != kBytes) return take(field.value);
  if (packed == kVarint) {
    uint64_t value;
    for (size_t at = 0; at < field.bytes.size() && read_varint(field.bytes, at, value);) take(value);
    return;
  }
  for (size_t at = 0; at + 8 <= field.bytes.size(); at += 8) {
    uint64_t value;
    memcpy(&value, field.bytes.data() + at, 8);
    take(value);
  }
}

// Appends fields to a message that is put together in memory.
class Builder {
 public:
  std::string bytes;
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes += char(value | 0x80);
    bytes += char(value);
  }
  void number(uint32_t field, uint64_t value) { varint(uint64_t(field) << 3), varint(value); }
  void text(uint32_t field, std::string_view value) {
    varint(uint64_t(field) << 3 | kBytes), varint(value.size());
    bytes += value;
  }
};

}  // namespace strobe::protobuf
