#include "core/format/blocks.h"

#include <string.h>
#include <memory>
#include <optional>

#define ZSTD_STATIC_LINKING_ONLY  // for ZSTD_c_literalCompressionMode
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

constexpr size_t kLongestVarint = 10;

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

// What repeats in a column is looked for at each byte, or at every eighth. Times hardly repeat: all that zstd gains
// there comes from how often each byte occurs. At every eighth byte a block takes a fifth less instructions, and less
// than 1 % more bytes (270 000 calls of benchmarks/workloads.py).
enum Repeats { kEachByte = 0, kEveryEighth = 8 };

// Level 1: higher levels buy nothing on these columns and cost four times the time. Returns the size of the frame.
uint32_t append_frame(std::string& out, const uint8_t* raw, size_t raw_bytes, Repeats repeats) {
  ZSTD_CCtx* const context = compressor();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_targetLength, repeats);
  // Where it looks less closely, zstd would leave that out, too.
  ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, repeats ? ZSTD_ps_enable : ZSTD_ps_auto);
  // Not into `out`: a string fills with zeros what it grows by, ten times what is needed.
  const size_t room = ZSTD_compressBound(raw_bytes);
  const std::unique_ptr<char[]> frame(new char[room]);
  size_t n = ZSTD_compress2(context, frame.get(), room, raw, raw_bytes);
  if (ZSTD_isError(n)) n = 0;  // cannot happen: the output has room by construction
  out.append(frame.get(), n);
  return uint32_t(n);
}

// Decodes `count` varints and hands them to `each`, in order. False: damaged.
template <class Each>
bool decode_column(std::string_view frame, uint32_t count, std::vector<uint8_t>& raw, Each&& each) {
  const std::optional<size_t> size = decompressed_size(frame, size_t(count) * kLongestVarint);
  if (!size) return false;
  if (raw.size() < *size + kLongestVarint) raw.resize(*size + kLongestVarint);
  if (!decompress(frame, raw.data(), *size)) return false;
  memset(raw.data() + *size, 0, kLongestVarint);  // what is cut ends behind the end
  const uint8_t *at = raw.data(), *const end = at + *size;
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
__attribute__((target("sse4.2,crc32"))) uint32_t crc32c_by_processor(const uint8_t* p, size_t size) {
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

void append_column(std::string& out, const std::vector<uint64_t>& values) {
  std::unique_ptr<uint8_t[]> raw(new uint8_t[values.size() * kLongestVarint + 1]);
  uint8_t* at = raw.get();
  for (uint64_t v : values) at = put_varint(at, v);
  const size_t length_at = out.size();
  out.append(4, '\0');
  const uint32_t frame_bytes = append_frame(out, raw.get(), size_t(at - raw.get()), kEachByte);
  memcpy(out.data() + length_at, &frame_bytes, 4);
}

bool read_column(ByteReader& in, size_t count, std::vector<uint64_t>& out) {
  const std::string_view frame = in.long_text();
  if (!in.ok || count > 1u << 24) return false;
  out.resize(count);
  std::vector<uint8_t> raw;
  return decode_column(frame, uint32_t(count), raw, [&](uint32_t i, uint64_t v) { out[i] = v; });
}

std::string encode_spans(SpansHeader header, const std::vector<OpenSpan>& carry, const std::vector<Close>& closes,
                         const SpanColumns& columns) {
  const size_t n = columns.size(), room = n * kLongestVarint;
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
    header.frame_bytes[i] = append_frame(out, column, size_t(at[i] - column), i < 2 ? kEveryEighth : kEachByte);
  }
  memcpy(out.data(), &header, sizeof header);
  return out;
}

bool view_spans(std::string_view payload, uint32_t count, SpansView& out) {
  ByteReader in{payload};
  out.header = in.raw<SpansHeader>();
  const SpansHeader& h = out.header;
  const auto read_rows = [&in](auto& rows, uint32_t n) {
    const std::string_view bytes = in.take(size_t(n) * sizeof rows[0]);
    rows.resize(bytes.size() / sizeof rows[0]);
    if (!bytes.empty()) memcpy(static_cast<void*>(rows.data()), bytes.data(), bytes.size());
  };
  read_rows(out.carry, h.carry_count);
  read_rows(out.closes, h.close_count);
  for (int i = 0; i < 3; i++) out.frames[i] = in.take(h.frame_bytes[i]);
  return in.ok && in.bytes.empty() && count <= 1u << 24;
}

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
