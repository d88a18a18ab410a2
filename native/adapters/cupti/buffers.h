// buffers.h - the memory that CUPTI fills with records: parts of a mapped file, so that a kill leaves them to recovery.
//
// Layout of process-<pid>.gpu (little endian): BuffersHeader, padded to kBuffersAt; then `buffers` parts of
// buffer_bytes; behind them the names of kernels as they became known: u64 address, u32 length, bytes.
#pragma once
#include <stdint.h>
#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "adapters/cupti/abi.h"
#include "core/held_file.h"

namespace strobe::cupti {

constexpr uint32_t kBuffersMagic = 0x55504753;  // "SGPU"
constexpr uint32_t kBuffersVersion = 1;
constexpr uint32_t kBufferBytes = 256 << 10;
constexpr uint32_t kMostBuffers = 128;
constexpr uint32_t kBuffersAt = 8 << 10;

enum BufferState : uint32_t { kBufferFree = 0, kBufferHeld = 1, kBufferCompleted = 2 };

struct BuffersHeader {
  uint32_t magic, version;
  uint32_t buffer_bytes;
  std::atomic<uint32_t> buffers;  // that are in the file
  uint32_t record_bytes[kKinds];  // of the library that writes them, by kind; 0: not known
  struct {
    std::atomic<uint32_t> state;
    std::atomic<uint32_t> valid;  // bytes, of a completed one
  } buffer[kMostBuffers];
};
static_assert(sizeof(BuffersHeader) <= kBuffersAt);

class Buffers {
 public:
  // False: there is no such file, and buffers are plain memory, which a kill takes away.
  bool open(const std::string& path);
  // Of a library; before the first take().
  void set_record_bytes(Kind kind, size_t bytes);
  // Zeroed. Null: there is no memory.
  uint8_t* take(size_t& bytes);
  void completed(uint8_t* buffer, size_t valid);
  void give_back(uint8_t* buffer);
  void add_name(const char* at, std::string_view name);
  // In a forked child, and at the end: the file is left, or removed.
  void forget();
  void remove();

 private:
  static constexpr size_t kMostHeap = 1024;  // beside those of the file
  BuffersHeader* header() const { return reinterpret_cast<BuffersHeader*>(map_); }
  int number_of(const uint8_t* buffer) const;

  std::mutex mutex_;
  HeldFile file_;
  char* map_ = nullptr;
  size_t heap_ = 0;
  uint64_t names_at_ = 0;
};

}  // namespace strobe::cupti
