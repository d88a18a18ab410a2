#include "core/format/bytes.h"

#include <memory>

#include "zstd.h"

namespace strobe {

void Writer::text(std::string_view v) {
  v = v.substr(0, 65535);
  u16(uint16_t(v.size()));
  bytes += v;
}

std::string_view ByteReader::take(size_t size) {
  if (size > bytes.size()) ok = false, bytes = {}, size = 0;
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

uint64_t ByteReader::number() {
  uint64_t v = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = uint8_t(bytes.front());
    bytes.remove_prefix(1);
    v |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80) return v;
  }
  ok = false, bytes = {};
  return 0;
}

uint32_t ByteReader::number32() {
  const uint64_t v = number();
  if (v > UINT32_MAX) ok = false;
  return uint32_t(v);
}

ZSTD_CCtx* compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  return context.get();
}

std::optional<size_t> decompressed_size(std::string_view frame, size_t most) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > most) return {};
  return size;
}

bool decompress(std::string_view frame, void* out, size_t size) {
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  return ZSTD_decompressDCtx(context.get(), out, size, frame.data(), frame.size()) == size;
}

}  // namespace strobe
