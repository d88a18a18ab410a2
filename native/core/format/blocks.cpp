#include "core/format/blocks.h"

#include <string.h>
#include <memory>

#include "zstd.h"

namespace strobe {

namespace {

// CRC-32C (Castagnoli), reflected polynomial 0x82F63B78, slicing by 8, for processors without an instruction for it.
struct CrcTables {
  uint32_t t[8][256];
  CrcTables() {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int k = 0; k < 8; k++) c = c & 1 ? (c >> 1) ^ 0x82F63B78u : c >> 1;
      t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
      for (int k = 1; k < 8; k++) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
  }
};

uint8_t* put_varint(uint8_t* at, uint64_t v) {
  while (v >= 0x80) *at++ = uint8_t(v | 0x80), v >>= 7;
  *at++ = uint8_t(v);
  return at;
}

bool get_varint(const uint8_t*& at, const uint8_t* end, uint64_t& v) {
  v = 0;
  for (int shift = 0; shift < 64 && at < end; shift += 7) {
    uint8_t b = *at++;
    v |= uint64_t(b & 0x7F) << shift;
    if (!(b & 0x80)) return true;
  }
  return false;
}

// A context costs more to make than a column to compress: each thread that seals or reads keeps one.
struct Contexts {
  ZSTD_CCtx* compress = nullptr;
  ZSTD_DCtx* decompress = nullptr;
  ~Contexts() { ZSTD_freeCCtx(compress), ZSTD_freeDCtx(decompress); }
};
Contexts& contexts() {
  static thread_local Contexts mine;
  return mine;
}

// Level 1: higher levels buy nothing on these columns and cost four times the time.
void compress(std::string& out, const uint8_t* raw, size_t raw_bytes, uint32_t& frame_bytes) {
  Contexts& c = contexts();
  if (!c.compress) c.compress = ZSTD_createCCtx();
  size_t at = out.size();
  out.resize(at + ZSTD_compressBound(raw_bytes));
  size_t n = ZSTD_compressCCtx(c.compress, out.data() + at, out.size() - at, raw, raw_bytes, 1);
  if (ZSTD_isError(n)) n = 0;  // cannot happen: the output has room by construction
  out.resize(at + n);
  frame_bytes = uint32_t(n);
}

bool decompress(std::string_view frame, size_t limit, std::string& raw) {
  unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > limit) return false;
  raw.resize(size);
  Contexts& c = contexts();
  if (!c.decompress) c.decompress = ZSTD_createDCtx();
  return ZSTD_decompressDCtx(c.decompress, raw.data(), raw.size(), frame.data(), frame.size()) == size;
}

template <class T>
T take(Cursor& c) {
  T v{};
  if (size_t(c.end - c.at) < sizeof(T)) {
    c.ok = false;
    return v;
  }
  memcpy(&v, c.at, sizeof(T));
  c.at += sizeof(T);
  return v;
}

}  // namespace

namespace {

uint32_t crc32c_by_table(const uint8_t* p, size_t size) {
  static const CrcTables tables;
  const auto& t = tables.t;
  uint32_t c = ~0u;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    w ^= c;
    c = t[7][w & 255] ^ t[6][(w >> 8) & 255] ^ t[5][(w >> 16) & 255] ^ t[4][(w >> 24) & 255] ^ t[3][(w >> 32) & 255] ^
        t[2][(w >> 40) & 255] ^ t[1][(w >> 48) & 255] ^ t[0][w >> 56];
  }
  while (size--) c = t[0][(c ^ *p++) & 255] ^ (c >> 8);
  return ~c;
}

#if defined(__x86_64__)
// The processor's own CRC-32C: a tenth of the table's time.
__attribute__((target("sse4.2"))) uint32_t crc32c_by_processor(const uint8_t* p, size_t size) {
  uint64_t c = 0xFFFFFFFF;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    c = __builtin_ia32_crc32di(c, w);
  }
  while (size--) c = __builtin_ia32_crc32qi(uint32_t(c), *p++);
  return ~uint32_t(c);
}
#endif

}  // namespace

uint32_t crc32c(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  static const bool by_processor = __builtin_cpu_supports("sse4.2");
  if (by_processor) return crc32c_by_processor(bytes, size);
#endif
  return crc32c_by_table(bytes, size);
}

void append_chunk(std::string& out, ChunkKind kind, uint32_t location, uint32_t count, std::string_view payload) {
  ChunkHeader header;
  header.kind = kind;
  header.payload_bytes = uint32_t(payload.size());
  header.location = location;
  header.count = count;
  header.crc_payload = crc32c(payload.data(), payload.size());
  header.crc_header = crc32c(&header, sizeof header - 4);
  out.append(reinterpret_cast<const char*>(&header), sizeof header);
  out.append(payload);
}

bool sound_header(const ChunkHeader& header) {
  return header.magic == kChunkMagic && header.crc_header == crc32c(&header, sizeof header - 4);
}

void Writer::text(std::string_view v) {
  v = v.substr(0, 65535);
  u16(uint16_t(v.size()));
  bytes.append(v);
}

uint8_t Cursor::u8() { return take<uint8_t>(*this); }
uint16_t Cursor::u16() { return take<uint16_t>(*this); }
uint32_t Cursor::u32() { return take<uint32_t>(*this); }
uint64_t Cursor::u64() { return take<uint64_t>(*this); }
std::string_view Cursor::text() {
  size_t n = u16();
  if (!ok || size_t(end - at) < n) {
    ok = false;
    return {};
  }
  std::string_view v(at, n);
  at += n;
  return v;
}

void append_column(std::string& out, const std::vector<uint64_t>& values) {
  std::unique_ptr<uint8_t[]> raw(new uint8_t[values.size() * 10 + 1]);
  uint8_t* at = raw.get();
  for (uint64_t v : values) at = put_varint(at, v);
  const size_t length_at = out.size();
  out.append(4, '\0');
  uint32_t frame_bytes = 0;
  compress(out, raw.get(), size_t(at - raw.get()), frame_bytes);
  memcpy(out.data() + length_at, &frame_bytes, 4);
}

bool read_column(Cursor& cursor, size_t count, std::vector<uint64_t>& out) {
  const size_t frame_bytes = cursor.u32();
  if (!cursor.ok || size_t(cursor.end - cursor.at) < frame_bytes || count > 1u << 24) return false;
  std::string raw;
  if (!decompress({cursor.at, frame_bytes}, count * 10, raw)) return false;
  cursor.at += frame_bytes;
  const auto* at = reinterpret_cast<const uint8_t*>(raw.data());
  const uint8_t* end = at + raw.size();
  out.resize(count);
  for (uint64_t& v : out)
    if (!get_varint(at, end, v)) return false;
  return true;
}

std::string encode_spans(SpansHeader header, const std::vector<OpenSpan>& carry, const std::vector<Close>& closes,
                         const SpanColumns& columns) {
  const size_t n = columns.size(), room = n * 10;  // the longest varint of 64 bits
  std::unique_ptr<uint8_t[]> raw(new uint8_t[room * 3 + 1]);
  uint8_t* at[3] = {raw.get(), raw.get() + room, raw.get() + room * 2};
  int64_t previous = header.first_ns;
  for (size_t i = 0; i < n; i++) {
    at[0] = put_varint(at[0], uint64_t(columns.start_ns[i] - previous));
    previous = columns.start_ns[i];
    at[1] = put_varint(at[1], uint64_t(columns.duration_ns[i] + 1));  // 0: open
    at[2] = put_varint(at[2], columns.path[i]);
  }
  header.carry_count = uint32_t(carry.size());
  header.close_count = uint32_t(closes.size());
  std::string out(sizeof header, '\0');
  out.append(reinterpret_cast<const char*>(carry.data()), carry.size() * sizeof(OpenSpan));
  out.append(reinterpret_cast<const char*>(closes.data()), closes.size() * sizeof(Close));
  for (size_t i = 0; i < 3; i++) {
    const uint8_t* column = raw.get() + room * i;
    compress(out, column, size_t(at[i] - column), header.frame_bytes[i]);
  }
  memcpy(out.data(), &header, sizeof header);
  return out;
}

bool view_spans(std::string_view payload, uint32_t count, SpansView& out) {
  if (payload.size() < sizeof out.header || count > 1u << 24) return false;
  memcpy(&out.header, payload.data(), sizeof out.header);
  payload.remove_prefix(sizeof out.header);
  const SpansHeader& h = out.header;
  size_t tables = size_t(h.carry_count) * sizeof(OpenSpan) + size_t(h.close_count) * sizeof(Close);
  if (payload.size() != tables + h.frame_bytes[0] + h.frame_bytes[1] + h.frame_bytes[2]) return false;
  out.carry.resize(h.carry_count);
  if (h.carry_count) memcpy(static_cast<void*>(out.carry.data()), payload.data(), h.carry_count * sizeof(OpenSpan));
  payload.remove_prefix(h.carry_count * sizeof(OpenSpan));
  out.closes.resize(h.close_count);
  if (h.close_count) memcpy(static_cast<void*>(out.closes.data()), payload.data(), h.close_count * sizeof(Close));
  payload.remove_prefix(h.close_count * sizeof(Close));
  for (int i = 0; i < 3; i++) {
    out.frames[i] = payload.substr(0, h.frame_bytes[i]);
    payload.remove_prefix(h.frame_bytes[i]);
  }
  return true;
}

namespace {

constexpr size_t kLongestVarint = 10;

// Decodes `count` varints and hands them to `each`, in order. False: damaged.
template <class Each>
bool decode_column(std::string_view frame, uint32_t count, std::vector<uint8_t>& raw, Each&& each) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > size_t(count) * kLongestVarint)
    return false;
  if (raw.size() < size + kLongestVarint) raw.resize(size + kLongestVarint);
  Contexts& c = contexts();
  if (!c.decompress) c.decompress = ZSTD_createDCtx();
  if (ZSTD_decompressDCtx(c.decompress, raw.data(), size, frame.data(), frame.size()) != size) return false;
  memset(raw.data() + size, 0, kLongestVarint);  // what is cut ends behind the end
  const uint8_t *at = raw.data(), *const end = at + size;
  for (uint32_t i = 0; i < count; i++) {
    if (at >= end) return false;
    // Lengths repeat, so that processors guess these branches: the next value need not wait for the length of this one.
    uint64_t v = *at;
    if (v >= 0x80) {
      uint64_t next = at[1];
      v = (v & 0x7F) | (next & 0x7F) << 7;
      if (next >= 0x80) {
        next = at[2];
        v |= (next & 0x7F) << 14;
        if (next >= 0x80) {
          if (!get_varint(at, end, v)) return false;
        } else {
          at += 3;
        }
      } else {
        at += 2;
      }
    } else {
      at++;
    }
    each(i, v);
  }
  return at <= end;
}

}  // namespace

bool decode_starts(const SpansView& view, uint32_t count, SpanColumns& out) {
  out.start_ns.resize(count);
  int64_t* to = out.start_ns.data();
  uint64_t now = uint64_t(view.header.first_ns);
  return decode_column(view.frames[0], count, out.raw, [&](uint32_t i, uint64_t v) { to[i] = int64_t(now += v); });
}

bool decode_durations(const SpansView& view, uint32_t count, SpanColumns& out) {
  out.duration_ns.resize(count);
  int64_t* to = out.duration_ns.data();
  return decode_column(view.frames[1], count, out.raw, [&](uint32_t i, uint64_t v) { to[i] = int64_t(v - 1); });
}

bool decode_paths(const SpansView& view, uint32_t count, SpanColumns& out) {
  out.path.resize(count);
  uint32_t* to = out.path.data();
  return decode_column(view.frames[2], count, out.raw, [&](uint32_t i, uint64_t v) { to[i] = uint32_t(v); });
}

}  // namespace strobe
