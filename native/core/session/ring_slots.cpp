#include "core/session/ring_slots.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "core/system/mapping_guard.h"

namespace strobe {

void RingSlots::begin(uint32_t ring_bytes) {
  std::lock_guard lock(mutex_);
  ring_bytes_ = ring_bytes;
  next_location_ = 0;
  early_locations_.clear();
}

Slot* RingSlots::of(const RingHeader* header) const {
  for (auto& slot : slots_)
    if (slot->header == header) return slot.get();
  return nullptr;
}

Slot* RingSlots::free_slot() {
  if (files_.failed()) return nullptr;
  for (auto& slot : slots_)
    if (slot->header->state.load() == kRingFree) {
      slot->rows = nullptr;
      return slot.get();
    }
  void* map = files_.map_ring(slots_.size(), slot_bytes());
  if (!map) return nullptr;
  auto slot = std::make_unique<Slot>();
  slot->header = new (map) RingHeader{};
  slot->data = reinterpret_cast<uint64_t*>(static_cast<char*>(map) + kPage);
  slots_.push_back(std::move(slot));
  files_.header()->slots.store(uint32_t(slots_.size()));
  return slots_.back().get();
}

Slot* RingSlots::take(uint32_t magic, size_t record_bytes, uint32_t location, uint64_t thread_id, uint32_t kind) {
  Slot* slot = free_slot();
  if (!slot) return nullptr;
  RingHeader& header = *slot->header;
  header.magic = magic;
  header.capacity = uint32_t(ring_bytes_ / record_bytes);
  header.location = location;
  header.thread_id = thread_id;
  header.of_stream = kind;
  header.head.store(0), header.tail.store(0);
  header.state.store(kRingActive);
  slot->decoder = {};
  slot->read = 0;
  slot->watched = false;
  return slot;
}

RingHeader* RingSlots::take_cleared(uint32_t magic, size_t record_bytes, uint32_t location) {
  Slot* slot = free_slot();
  if (!slot) return nullptr;
  memset(slot->data, 0, ring_bytes_);
  return take(magic, record_bytes, location)->header;  // the same one
}

void RingSlots::stop_producers() {
  std::lock_guard lock(mutex_);
  for (auto& slot : slots_) {
    if (slot->owner) slot->owner->limit.store(0);
    if (slot->row_owner) slot->row_owner->limit.store(0);
  }
}

void RingSlots::thread_ended(const Producer* owner, const RowProducer* row_owner) {
  for (auto& slot : slots_) {
    if (slot->owner == owner) {
      slot->owner = nullptr;
      slot->header->state.store(kRingEnded);
    }
    if (slot->row_owner == row_owner) slot->row_owner = nullptr;  // it goes with the thread's spans
  }
}

void RingSlots::unmap() {
  for (auto& slot : slots_) replace_by_zeros(slot->header, slot_bytes());
  slots_.clear();
}

void RingSlots::forked() {  // what the drainer was changing may be half changed here: it is left, not destroyed
  for (auto& slot : slots_) {
    munmap(slot->header, slot_bytes());
    (void)slot.release();
  }
  slots_.clear();
}

void RingSlots::write_location(uint32_t location, uint64_t number, uint8_t kind, std::string_view name,
                               int64_t device) {
  Writer w;
  w.u64(number), w.u8(kind), w.text(name);
  if (kind != kOfThread) w.u64(uint64_t(device));
  files_.append_chunk(kLocationChunk, location, 1, w.bytes);
}

bool RingSlots::take_location(uint64_t thread_id, uint32_t& location) {
  const auto early = early_locations_.find(thread_id);
  if (early == early_locations_.end()) {
    location = new_location();
    return false;
  }
  location = early->second;
  early_locations_.erase(early);
  return true;
}

uint32_t RingSlots::location_of(uint64_t thread_id, const char* name) {
  for (const auto& slot : slots_)
    if (slot->of_spans() && !slot->header->of_stream && slot->header->thread_id == thread_id &&
        slot->header->state.load() == kRingActive)
      return slot->header->location;
  const auto [at, fresh] = early_locations_.try_emplace(thread_id, next_location_);
  if (!fresh) return at->second;
  const auto own = names_of_threads_.find(thread_id);
  const char* shown = thread_id == uint64_t(getpid()) ? "main thread" : name ? name : "";
  write_location(new_location(), thread_id, kOfThread, own != names_of_threads_.end() ? own->second : shown);
  return at->second;
}

void RingSlots::name_thread(uint64_t thread_id, const char* name) {
  names_of_threads_[thread_id] = name;
  const auto early = early_locations_.find(thread_id);
  if (files_.active() && early != early_locations_.end()) write_location(early->second, thread_id, kOfThread, name);
}

void RingSlots::forget_thread(uint64_t thread_id) {
  early_locations_.erase(thread_id);
  names_of_threads_.erase(thread_id);
}

}  // namespace strobe
