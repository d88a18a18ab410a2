// buffers_layout.h - process-<pid>.gpu: records that a vendor's library has written and that are not in the trace yet,
// little endian.
//
// BuffersHeader, padded to kBuffersAt; then `buffers` parts of buffer_bytes; from kNamesAt on the names of kernels as
// they became known: u64 address, u32 length, bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <atomic>

#include "adapters/gpu/decode/decoder.h"

namespace strobe::gpu {

constexpr uint32_t kBuffersMagic = 0x55504753;  // "SGPU"
constexpr uint32_t kBuffersVersion = 1;
constexpr uint32_t kBufferBytes = 256 << 10;
constexpr uint32_t kMostBuffers = 128;
constexpr uint32_t kBuffersAt = 8 << 10;
constexpr size_t kNamesAt = kBuffersAt + size_t(kMostBuffers) * kBufferBytes;

constexpr int64_t kNoWaitYet = 1;

enum BufferState : uint32_t { kBufferFree = 0, kBufferHeld = 1, kBufferCompleted = 2, kBufferReporting = 3 };

struct BuffersHeader {
  uint32_t magic, version;
  uint32_t buffer_bytes;
  std::atomic<uint32_t> buffers;   // that are in the file
  std::atomic<uint64_t> reported;  // spans of the buffers that are being reported, in order of start
  RecordBytes record_bytes;
  struct {
    std::atomic<uint32_t> state;
    std::atomic<uint32_t> valid;     // bytes, of a completed one
    std::atomic<uint32_t> sequence;  // of one that is being reported: in which order they were decoded
  } buffer[kMostBuffers];
  char adapter[16];  // whose records these are; empty in older files
  // Start of the last wait of the buffers that is recorded; kNoWaitYet: none is; 0 in older files: unknown.
  std::atomic<int64_t> waits_until_ns;
};
static_assert(sizeof(BuffersHeader) <= kBuffersAt);

// Where names of functions are among those of kernels: nothing of a program lies there.
inline const char* function_address(uint64_t function) {
  return reinterpret_cast<const char*>(uintptr_t(function) | uintptr_t(1) << 63);
}

}  // namespace strobe::gpu
