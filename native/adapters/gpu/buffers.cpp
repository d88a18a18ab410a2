#include "adapters/gpu/buffers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "core/system/mapping_guard.h"

namespace strobe::gpu {

namespace {

constexpr size_t kMapBytes = kNamesAt;
constexpr size_t kAlign = 8;  // of records

}  // namespace

bool Buffers::open(const std::string& path, const Decoding& decoding, const RecordBytes& record_bytes) {
  std::lock_guard lock(mutex_);
  if (file_.open_new(path, O_CREAT | O_TRUNC | O_RDWR) != 0) return false;
  // Blocks are reserved before they are used: a store into a hole of a full file system would be a SIGBUS. The address
  // space is there for all of them at once, so that buffers never move.
  void* map = MAP_FAILED;
  if (posix_fallocate(file_.fd, 0, kBuffersAt) == 0)
    map = mmap(nullptr, kMapBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.fd, 0);
  if (map == MAP_FAILED) {
    unlink(path.c_str());
    file_.release();
    return false;
  }
  guard(map, kMapBytes);
  map_ = static_cast<char*>(map);
  new (map_) BuffersHeader{};
  header()->magic = kBuffersMagic, header()->version = kBuffersVersion, header()->buffer_bytes = kBufferBytes;
  header()->record_bytes = record_bytes;
  strncpy(header()->adapter, decoding.adapter, sizeof header()->adapter - 1);
  names_at_ = kMapBytes;
  return true;
}

int Buffers::number_of(const uint8_t* buffer) const {
  const auto* at = reinterpret_cast<const char*>(buffer);
  if (!map_ || at < map_ + kBuffersAt || at >= map_ + kMapBytes) return -1;
  return int(size_t(at - map_ - kBuffersAt) / kBufferBytes);
}

uint8_t* Buffers::take(size_t& bytes) {
  std::lock_guard lock(mutex_);
  bytes = kBufferBytes;
  if (map_) {
    const uint32_t known = header()->buffers.load();
    for (uint32_t i = 0; i <= known && i < kMostBuffers; i++) {
      if (i < known && header()->buffer[i].state.load() != kBufferFree) continue;
      const off_t at = off_t(kBuffersAt) + off_t(i) * kBufferBytes;
      if (i == known && (!file_.ours() || posix_fallocate(file_.fd, at, kBufferBytes) != 0)) break;  // a full disk
      header()->buffer[i].valid.store(0), header()->buffer[i].state.store(kBufferHeld);
      if (i == known) header()->buffers.store(known + 1);
      return reinterpret_cast<uint8_t*>(map_ + at);
    }
  }
  if (heap_.size() >= kMostHeap) return nullptr;
  void* memory = aligned_alloc(kAlign, kBufferBytes);
  if (!memory) return nullptr;
  heap_.insert(static_cast<uint8_t*>(memory));
  return static_cast<uint8_t*>(memset(memory, 0, kBufferBytes));
}

bool Buffers::gave(const uint8_t* buffer) {
  const int i = number_of(buffer);
  if (i >= 0) return header()->buffer[i].state.load() == kBufferHeld;
  std::lock_guard lock(mutex_);
  return heap_.contains(buffer);
}

void Buffers::completed(uint8_t* buffer, size_t valid) {
  const int i = number_of(buffer);
  if (i < 0) return;
  header()->buffer[i].valid.store(uint32_t(valid)), header()->buffer[i].state.store(kBufferCompleted);
}

void Buffers::reporting(uint8_t* buffer) {
  const int i = number_of(buffer);
  if (i < 0) return;
  header()->buffer[i].sequence.store(sequence_++), header()->buffer[i].state.store(kBufferReporting);
}

void Buffers::reported(uint64_t spans) {
  if (map_) header()->reported.store(spans, std::memory_order_release);
}

void Buffers::recorded_waits(int64_t until_ns) {
  if (map_) header()->waits_until_ns.store(until_ns, std::memory_order_release);
}

void Buffers::give_back(uint8_t* buffer) {
  const int i = number_of(buffer);
  if (i >= 0) {
    memset(buffer, 0, kBufferBytes);  // recovery reads up to the first zero
    header()->buffer[i].state.store(kBufferFree);
    return;
  }
  std::lock_guard lock(mutex_);
  if (heap_.erase(buffer)) free(buffer);
}

void Buffers::add_name(const char* at, std::string_view name) {
  std::lock_guard lock(mutex_);
  if (!map_ || !file_.ours()) return;
  const auto address = uint64_t(reinterpret_cast<uintptr_t>(at));
  const auto length = uint32_t(name.size());
  std::string entry(reinterpret_cast<const char*>(&address), 8);
  entry.append(reinterpret_cast<const char*>(&length), 4).append(name);
  if (pwrite(file_.fd, entry.data(), entry.size(), off_t(names_at_)) == ssize_t(entry.size()))
    names_at_ += entry.size();
}

void Buffers::forget() {
  if (map_) unguard(map_);
  map_ = nullptr;
  file_.release();
}

void Buffers::remove() {
  // The library may still hold a buffer: the mapping stays, the file goes.
  if (!file_.name.empty()) unlink(file_.name.c_str());
}

}  // namespace strobe::gpu
