// The slow path of a recording thread: its first record, a full ring, a new epoch of the clock, a thread's end.
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/session/session.h"
#include "core/system/threads.h"

namespace strobe {

thread_local Producer producer __attribute__((tls_model("initial-exec")));

void put_slowly(RecordKind kind, uint32_t region, uint64_t at_ticks, Producer& p) {
  if (p.busy) return;
  const Inside inside;
  session().slow_put(kind, region, at_ticks, p);
}

// A thread or a stream writes into this ring from now on.
void Session::connect(Producer& p, Slot& slot) {
  slot.builder = drainer_.new_builder(slot.header->location);
  slot.owner = &p;
  p.data = slot.data;
  p.mask = slot.header->capacity - 1;
  p.head = 0;
  p.epoch = ~uint64_t(0);
  p.header = slot.header;
  p.generation = generation_.load();
}

bool Session::new_ring(Producer& p) {
  std::lock_guard lock(slots_.mutex());
  if (files_.failed()) return false;
  const uint64_t thread = thread_id();
  uint32_t location = 0;
  const bool known = slots_.take_location(thread, location);
  if (!known && !p.hidden) {
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    const char* shown = thread == uint64_t(getpid()) ? "main thread" : name;
    slots_.write_location(location, thread, kOfThread, p.name ? p.name : shown);
  }
  Slot* slot = slots_.take(kRingMagic, sizeof(uint64_t), location, p.hidden ? 0 : thread);
  if (!slot) return false;
  connect(p, *slot);
  slot->builder->forked = child_ || was_muted_;
  if (throttle_.on()) slot->builder->count_for(&throttle_);
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
    // First record in a forked child. If its files cannot be made the child runs unrecorded, and its parent's trace
    // counts it. Another of its threads may have been faster.
    if (start(strobe_options{}) != 0 && !active()) forked_without_files();
  }
  if (!active()) return false;
  if (resumes) resume();
  return true;
}

bool Session::make_recordable(Producer& p) {
  if (!awake()) return false;
  const bool has_ring = p.header && p.generation == generation_.load();
  if (has_ring || files_.failed() || &p != &producer) return has_ring;
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
    drainer_.wake();
  }
  for (int64_t until = 0; used + reserve >= capacity && recording() && !files_.failed();
       used = head - ring.tail.load(std::memory_order_acquire)) {
    int64_t now = monotonic_ns();
    if (!until) until = now + 500000000;
    if (now > until) break;
    drainer_.wake();
    sched_yield();
  }
  return used + reserve < capacity;
}

// Look again after a quarter of the ring, so that the drainer is woken long before it is full.
uint64_t Session::next_look(const RingHeader& ring, uint64_t head, uint64_t reserve) const {
  if (rests()) return 0;
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

void Session::slow_put(RecordKind kind, uint32_t region, uint64_t at_ticks, Producer& p) {
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
    const uint64_t t = at_ticks ? at_ticks : ticks();
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
  if (rests()) p.limit.store(0);
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
  std::lock_guard lock(slots_.mutex());
  if (active() && p.header && p.generation == generation_.load())
    return slots_.write_location(p.header->location, p.header->thread_id, kOfThread, name);
  pthread_setspecific(thread_key(), &p);  // at its end it is forgotten
  slots_.name_thread(thread_id(), name);
}

void Session::thread_ended(Producer* owner) {
  owner->busy = true;  // a hook that fires from here on in this thread's end waits for no lock and makes no ring
  std::lock_guard lock(slots_.mutex());
  slots_.thread_ended(owner, &row_producer);
  slots_.forget_thread(thread_id());
  owner->limit.store(0);
  owner->header = nullptr;
  row_producer.limit.store(0);
  row_producer.header = nullptr;
  free(owner->name);
  owner->name = nullptr;
}

}  // namespace strobe
