// buffers_layout.h - process-<pid>.gpu: records that CUPTI has written and the core was not told of yet, little endian.
//
// BuffersHeader, padded to kBuffersAt; then `buffers` parts of buffer_bytes; from kNamesAt on the names of kernels as
// they became known: u64 address, u32 length, bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <atomic>

#include "adapters/cupti/abi.h"

namespace strobe::cupti {

constexpr uint32_t kBuffersMagic = 0x55504753;  // "SGPU"
constexpr uint32_t kBuffersVersion = 1;
constexpr uint32_t kBufferBytes = 256 << 10;
constexpr uint32_t kMostBuffers = 128;
constexpr uint32_t kBuffersAt = 8 << 10;
constexpr size_t kNamesAt = kBuffersAt + size_t(kMostBuffers) * kBufferBytes;

enum BufferState : uint32_t { kBufferFree = 0, kBufferHeld = 1, kBufferCompleted = 2, kBufferTelling = 3 };

struct BuffersHeader {
  uint32_t magic, version;
  uint32_t buffer_bytes;
  std::atomic<uint32_t> buffers;  // that are in the file
  std::atomic<uint64_t> told;     // spans of the buffers that are told, in order of start
  uint32_t record_bytes[kKinds];  // of the library that writes them, by kind; 0: not known
  struct {
    std::atomic<uint32_t> state;
    std::atomic<uint32_t> valid;     // bytes, of a completed one
    std::atomic<uint32_t> sequence;  // of one that is told: in which order they were decoded
  } buffer[kMostBuffers];
};
static_assert(sizeof(BuffersHeader) <= kBuffersAt);

}  // namespace strobe::cupti
