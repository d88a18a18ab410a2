// The slow path of a recording thread: its first record, a full ring, a new epoch of the clock, a thread's end.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/guard.h"
#include "core/session.h"
#include "core/system_calls.h"
#include "core/without_signals.h"

namespace strobe {

thread_local Producer producer __attribute__((tls_model("initial-exec")));

void put_slowly(RecordKind kind, uint32_t region) {
  Producer& p = producer;
  if (p.busy) return;
  const Inside inside;
  session().slow_put(kind, region);
}

void Session::write_location(uint32_t location, uint64_t id, const char* name) {
  Writer w;
  w.u64(id), w.u8(0), w.text(name);  // 0: a thread
  std::string chunk;
  append_chunk(chunk, kLocationChunk, location, 1, w.bytes);
  append(chunk);
}

Slot* Session::free_slot() {
  for (auto& slot : slots_)
    if (slot->header->state.load() == kRingFree) {
      slot->rows = nullptr;
      return slot.get();
    }
  // Blocks are reserved before they are mapped: a store into a hole of a full file system would be a SIGBUS.
  size_t ring_bytes = kPage + options_.ring_bytes;
  off_t offset = off_t(kRingsHeaderBytes + slots_.size() * ring_bytes);
  int error = rings_.ours() ? posix_fallocate(rings_.fd, offset, off_t(ring_bytes)) : errno;
  void* map = MAP_FAILED;
  if (!error) {
    map = mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, rings_.fd, offset);
    if (map == MAP_FAILED) error = errno;
  }
  if (!error) guard(map, ring_bytes);
  if (error) {
    std::lock_guard lock(file_mutex_);
    char what[300];
    snprintf(what, sizeof what, "cannot grow %.250s", rings_.name.c_str());
    fail(what, error);
    return nullptr;
  }
  auto slot = std::make_unique<Slot>();
  slot->header = new (map) RingHeader{};
  slot->data = reinterpret_cast<uint64_t*>(static_cast<char*>(map) + kPage);
  slots_.push_back(std::move(slot));
  header()->slots.store(uint32_t(slots_.size()));
  return slots_.back().get();
}

bool Session::new_ring(Producer& p) {
  std::lock_guard lock(slots_mutex_);
  Slot* slot = failed_ ? nullptr : free_slot();
  if (!slot) return false;
  const auto early = early_locations_.find(thread_id());
  const bool known = early != early_locations_.end();
  uint32_t location = known ? early->second : next_location_++;
  if (known) early_locations_.erase(early);
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (thread_id() == uint64_t(getpid())) snprintf(name, sizeof name, "main thread");
  if (!known && !p.hidden) write_location(location, thread_id(), p.name ? p.name : name);
  slot->header->magic = kRingMagic;
  slot->header->capacity = options_.ring_bytes / 8;
  slot->header->location = location;
  slot->header->thread_id = p.hidden ? 0 : thread_id();
  slot->header->of_stream = 0;
  slot->header->head.store(0), slot->header->tail.store(0);
  slot->header->state.store(kRingActive);
  slot->builder = std::make_unique<LocationBuilder>(location, *paths_);
  slot->builder->forked = child_ || was_muted_;
  if (throttle_.on()) slot->builder->count_for(&throttle_);
  slot->decoder = {};
  slot->read = 0;
  slot->watched = false;
  slot->owner = &p;
  p.data = slot->data;
  p.mask = slot->header->capacity - 1;
  p.head = 0;
  p.epoch = ~uint64_t(0);
  p.header = slot->header;
  p.generation = generation_.load();
  p.lost_depth = 0;
  p.window = window_.load();
  pthread_setspecific(thread_key(), &p);
  return true;
}

// Everything that a thread's record needs: files (of a child that was forked), the drainer, a ring of its own.
bool Session::awake() {
  const int state = state_.load();
  if (muted_ || (state != kActive && state != kForked)) return false;
  const bool resumes = paused_ && !forks_;
  if (state == kActive && !resumes) return true;
  const WithoutSignals whole;
  if (state_.load() == kForked) {
    // First record in a forked child. If its files cannot be made the child runs unrecorded, which its parent's trace
    // says. Another of its threads may have been faster.
    if (start(strobe_options{}) != 0 && !active()) forked_without_files();
  }
  if (!active()) return false;
  if (resumes) resume();
  return true;
}

bool Session::make_recordable(Producer& p) {
  if (!awake()) return false;
  const bool has_ring = p.header && p.generation == generation_.load();
  if (has_ring || failed_) return has_ring;
  const WithoutSignals whole;
  return new_ring(p);
}

// Full: gives the drainer time before anything is lost. It needs neither the GIL nor any lock that this thread could
// hold.
bool Session::wait_for_room(const RingHeader& ring, uint64_t head, uint64_t reserve) {
  const uint64_t capacity = ring.capacity;
  uint64_t used = head - ring.tail.load(std::memory_order_acquire);
  if (used > capacity / 2) {
    if (paused_) resume();
    futex_wake(wake_);
  }
  for (int64_t until = 0; used + reserve >= capacity && recording() && !failed_;
       used = head - ring.tail.load(std::memory_order_acquire)) {
    int64_t now = monotonic_ns();
    if (!until) until = now + 500000000;
    if (now > until) break;
    futex_wake(wake_);
    sched_yield();
  }
  return used + reserve < capacity;
}

// Look again after a quarter of the ring, so that the drainer is woken long before it is full.
uint64_t Session::next_look(const RingHeader& ring, uint64_t head, uint64_t reserve) const {
  if (!active() || failed_ || paused_) return 0;
  const uint64_t limit = ring.tail.load(std::memory_order_acquire) + ring.capacity - reserve;
  const uint64_t quarter = head + ring.capacity / 4;
  return quarter < limit ? quarter : limit;
}

// Enters leave room for the leaves of what is open already, so that whole spans are lost: a leave without room would
// make children of the span's next siblings.
static uint64_t room_for_leaves(const RingHeader& ring) {
  const uint64_t share = ring.capacity / 16;
  return share < 1024 ? share + 2 : 1024;
}

void Session::slow_put(RecordKind kind, uint32_t region) {
  Producer& p = producer;
  if (!make_recordable(p)) return;
  RingHeader& ring = *p.header;
  if (p.window != window_) p.window = window_, p.lost_depth = 0;
  if (p.lost_depth > 0) {
    if (kind != kSwitch) p.lost_depth += kind == kEnter ? 1 : -1;
    ring.lost.fetch_add(1, std::memory_order_relaxed);
    if (p.lost_depth > 0) return;
  } else {
    if (!wait_for_room(ring, p.head, kind == kEnter ? room_for_leaves(ring) : 2)) {
      if (muted_) return;
      ring.lost.fetch_add(1, std::memory_order_relaxed);
      if (kind == kEnter) p.lost_depth = 1, p.limit.store(0);
      return;
    }
    uint64_t t = ticks();
    if ((t >> kTimeBits) != p.epoch) {
      p.epoch = t >> kTimeBits;
      p.data[p.head & p.mask] = (uint64_t(kEpoch) << 62) | p.epoch;
      p.head++;
    }
    p.data[p.head & p.mask] = make_record(kind, region, t);
    p.head++;
    ring.head.store(p.head, std::memory_order_release);
  }
  p.limit.store(next_look(ring, p.head, room_for_leaves(ring)));
  // Stopped meanwhile: nobody else may have seen this thread's limit.
  if (!active() || failed_ || paused_) p.limit.store(0);
}

pthread_key_t Session::thread_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void* owner) { session().thread_ended(static_cast<Producer*>(owner)); });
    return made;
  }();
  return key;
}

void Session::name_thread(const char* name) {
  const Inside inside;
  Producer& p = producer;
  free(p.name);
  p.name = strdup(name);  // for the ring that comes with the thread's first record
  std::lock_guard lock(slots_mutex_);
  if (active() && p.header && p.generation == generation_.load())
    return write_location(p.header->location, p.header->thread_id, name);
  names_of_threads_[thread_id()] = name;
  pthread_setspecific(thread_key(), &p);  // at its end it is forgotten
  const auto early = early_locations_.find(thread_id());
  if (active() && early != early_locations_.end()) write_location(early->second, thread_id(), name);
}

void Session::thread_ended(Producer* owner) {
  owner->busy = true;  // a hook that fires from here on in this thread's end waits for no lock and makes no ring
  std::lock_guard lock(slots_mutex_);
  for (auto& slot : slots_)
    if (slot->owner == owner) {
      slot->owner = nullptr;
      slot->header->state.store(kRingEnded);
    }
  // The same thread's ring of rows goes with its spans.
  for (auto& slot : slots_)
    if (slot->row_owner == &row_producer) slot->row_owner = nullptr;
  early_locations_.erase(thread_id());
  names_of_threads_.erase(thread_id());
  owner->limit.store(0);
  owner->header = nullptr;
  row_producer.limit.store(0);
  row_producer.header = nullptr;
  free(owner->name);
  owner->name = nullptr;
}

}  // namespace strobe
