// buffers.h - the memory that a vendor's library fills with records: parts of a mapped file, so that a kill leaves them
// to recovery.
#pragma once
#include <stdint.h>
#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "adapters/gpu/decode/buffers_layout.h"
#include "core/system/descriptors.h"

namespace strobe::gpu {

class Buffers {
 public:
  // False: it cannot be made, and buffers are plain memory, which a kill takes away.
  bool open(const std::string& path, const Decoding& decoding, const RecordBytes& record_bytes);
  // Zeroed. Null: out of memory.
  uint8_t* take(size_t& bytes);
  // Whether this is one that take() gave, and that has not come back.
  bool gave(const uint8_t* buffer);
  void completed(uint8_t* buffer, size_t valid);
  // What is in it is reported from now on; buffer by buffer, in the order in which they are decoded.
  void reporting(uint8_t* buffer);
  // So many spans of these buffers have been reported.
  void reported(uint64_t spans);
  // And the waits of these buffers that start by then.
  void recorded_waits(int64_t until_ns);
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
  std::set<const uint8_t*> heap_;
  uint64_t names_at_ = 0;
  uint32_t sequence_ = 0;
};

}  // namespace strobe::gpu
