// otf2_bytes.h - how an OTF2 archive stores numbers and cuts its files into records. The format is that of the OTF2
// library 2 and 3 (its files: anchor, definitions, events); every file has its own byte order.
#pragma once
#include <stdint.h>
#include <string.h>
#include <algorithm>
#include <string>
#include <string_view>

namespace strobe::otf2 {

constexpr uint32_t kUndefined = UINT32_MAX;  // of references
constexpr uint64_t kUndefined64 = UINT64_MAX;

// Reads one record. What runs past its end reads as 0 and makes `ok` false.
class Bytes {
 public:
  Bytes(const uint8_t* begin, const uint8_t* end, bool big_endian) : at_(begin), end_(end), big_endian_(big_endian) {}
  bool ok() const { return ok_; }
  bool big_endian() const { return big_endian_; }
  const uint8_t* at() const { return at_; }
  size_t left() const { return size_t(end_ - at_); }
  uint8_t u8() { return fits(1) ? *at_++ : 0; }
  uint64_t fixed(size_t bytes) {
    if (!fits(bytes)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= uint64_t(at_[i]) << (8 * (big_endian_ ? bytes - 1 - i : i));
    at_ += bytes;
    return value;
  }
  // Compressed: a byte is the number of bytes that follow; 255 stands for all bits set.
  uint64_t number(size_t most = 8) {
    if (!fits(1)) return 0;
    const size_t bytes = *at_++;
    if (bytes == 0xFF) return UINT64_MAX;
    if (bytes > most || !fits(bytes)) return ok_ = false, 0;
    if (big_endian_ || left() < 8) return fixed(bytes);
    uint64_t value;
    memcpy(&value, at_, 8);
    at_ += bytes;
    return bytes == 8 ? value : value & ((uint64_t(1) << (8 * bytes)) - 1);
  }
  uint32_t id() { return uint32_t(number(4)); }
  // Fields of a definition, each as its type is stored.
  template <class... Fields>
  void read(Fields&... fields) {
    (read_field(fields), ...);
  }
  std::string_view text() {
    const void* zero = memchr(at_, 0, left());
    if (!zero) return ok_ = false, std::string_view{};
    const char* begin = reinterpret_cast<const char*>(at_);
    at_ = static_cast<const uint8_t*>(zero) + 1;
    return {begin, size_t(static_cast<const char*>(zero) - begin)};
  }

 private:
  bool fits(size_t bytes) { return ok_ = ok_ && left() >= bytes; }
  void read_field(uint32_t& field) { field = id(); }
  void read_field(uint64_t& field) { field = number(); }
  void read_field(int64_t& field) { field = int64_t(number()); }
  void read_field(bool& field) { field = u8() == 1; }
  template <class Byte>
    requires(sizeof(Byte) == 1)
  void read_field(Byte& field) {
    field = Byte(u8());
  }
  const uint8_t *at_, *end_;
  bool big_endian_, ok_ = true;
};

// What a reader of records returns where it used none of the bytes at hand.
constexpr size_t kMore = 0, kDamaged = SIZE_MAX;

// Bytes of a record with a length: the type, the length (255: eight more bytes have it), the rest. kMore, kDamaged.
constexpr uint64_t kLongestRecord = 64u << 20;
inline size_t record_size(const uint8_t* at, const uint8_t* end, bool big_endian, size_t& header) {
  const size_t left = size_t(end - at);
  header = 2;
  if (left < header) return kMore;
  uint64_t length = at[1];
  if (length == 0xFF) {
    header = 10;
    if (left < header) return kMore;
    length = Bytes(at + 2, end, big_endian).fixed(8);
    if (length > kLongestRecord) return kDamaged;
  }
  return left < header + length ? kMore : size_t(header + length);
}

// A file of chunks, as it comes in pieces. Records do not cross chunks: behind a damaged one, reading goes on with the
// next chunk.
class Chunks {
 public:
  explicit Chunks(uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  // `records(at, end, big_endian)` uses bytes from `at` on and returns how many: as many records as it likes, up to
  // one whose type is below 4. kMore: it needs what follows; kDamaged.
  template <class Records>
  void feed(std::string_view bytes, Records&& records) {
    if (ended_) return;
    buffer_.append(bytes);
    size_t used = 0;
    while (!ended_ && step(used, records)) {
    }
    offset_ += used;
    buffer_.erase(0, used);
  }
  uint64_t damaged_chunks() const { return damaged_chunks_; }
  uint64_t lost_bytes() const { return lost_bytes_ + buffer_.size(); }  // once everything was fed
  bool ended() const { return ended_; }
  bool empty() const { return offset_ + buffer_.size() == 0; }

 private:
  enum : uint8_t { kEndOfChunk = 0, kEndOfBuffer = 1, kEndOfFile = 2, kHeader = 3 };
  static constexpr size_t kHeaderBytes = 18;

  template <class Records>
  bool step(size_t& used, Records&& records) {
    const uint64_t here = offset_ + used;
    if (here < skip_to_) {
      const size_t n = size_t(std::min<uint64_t>(skip_to_ - here, buffer_.size() - used));
      used += n;
      return n != 0;
    }
    const auto* at = reinterpret_cast<const uint8_t*>(buffer_.data()) + used;
    const size_t in_chunk = size_t(here % chunk_bytes_);
    const size_t left = std::min<uint64_t>(buffer_.size() - used, chunk_bytes_ - in_chunk);
    const bool whole = left == chunk_bytes_ - in_chunk;
    if (left == 0) return false;
    if (in_chunk == 0) {
      if (left < kHeaderBytes) return false;
      if (at[0] != kHeader || (at[1] != 'B' && at[1] != '#')) return damaged(here, in_chunk);
      big_endian_ = at[1] == '#';
      used += kHeaderBytes;
      return true;
    }
    if (at[0] == kEndOfChunk) return skip_to_ = here + chunk_bytes_ - in_chunk, true;
    if (at[0] == kEndOfBuffer || at[0] == kEndOfFile) {
      used = buffer_.size();
      return ended_ = true;
    }
    const size_t n = at[0] == kHeader ? kDamaged : records(at, at + left, big_endian_);
    if (n == kDamaged || (n == kMore && whole)) return damaged(here, in_chunk);
    used += n;
    return n != kMore;
  }
  bool damaged(uint64_t here, size_t in_chunk) {
    damaged_chunks_++;
    lost_bytes_ += chunk_bytes_ - in_chunk;
    skip_to_ = here + chunk_bytes_ - in_chunk;
    return true;
  }

  uint64_t chunk_bytes_, offset_ = 0, skip_to_ = 0;  // offset_: of the buffer in the file
  uint64_t damaged_chunks_ = 0, lost_bytes_ = 0;
  std::string buffer_;
  bool big_endian_ = false, ended_ = false;
};

}  // namespace strobe::otf2
