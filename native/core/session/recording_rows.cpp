// Rows and totals, off the hot path: a thread's first row, a full ring, texts, sums.
#include "core/session/session.h"
#include "core/system/threads.h"

namespace strobe {

thread_local RowProducer row_producer __attribute__((tls_model("initial-exec")));

void put_row_slowly(uint32_t kind, uint64_t at_ticks, const int64_t* values) {
  Producer& p = producer;
  if (p.busy) return;
  const Inside inside;
  session().slow_row(kind, at_ticks, values);
}

// The ring of rows beside a ring of spans.
bool Session::new_row_ring(RowProducer& r, const Producer& p) {
  const WithoutSignals whole;
  std::lock_guard lock(slots_.mutex());
  Slot* of_spans = slots_.of(p.header);
  if (!of_spans) return false;
  const RingHeader& spans = *p.header;
  Slot* slot = slots_.take(kRowRingMagic, sizeof(RowRecord), spans.location, spans.thread_id, spans.of_stream);
  if (!slot) return false;
  slot->row_owner = &r;
  of_spans->rows = slot;
  r.data = reinterpret_cast<RowRecord*>(slot->data);
  r.mask = slot->header->capacity - 1;
  r.head = 0;
  r.header = slot->header;
  r.generation = generation_.load();
  return true;
}

void Session::slow_row(uint32_t kind, uint64_t at_ticks, const int64_t* values) {
  Producer& p = producer;
  RowProducer& r = row_producer;
  if (!make_recordable(p)) return;
  if ((!r.header || r.generation != generation_.load()) && !new_row_ring(r, p)) return;
  RingHeader& ring = *r.header;
  const RowKind* known = row_kind(kind & ~uint32_t(STROBE_ROW_SINCE_BEGIN));
  // A span that found no room has no row either.
  const bool room = known && !(known->of_spans && p.lost_depth > 0) && wait_for_room(ring, r.head, 0);
  if (!room && muted_) return;
  if (!room)
    ring.lost.fetch_add(1, std::memory_order_relaxed);
  else
    write_row(r, kind, at_ticks ? at_ticks : ticks(), p.head, values);
  r.limit.store(next_look(ring, r.head, 0));
  if (rests()) r.limit.store(0);  // as in slow_put
}

uint32_t Session::text(std::string_view value) {
  const Inside inside;
  bool full = false;
  const uint32_t number = texts_.intern(value, full, [this](std::string_view payload, uint32_t first, uint32_t n) {
    if (active()) files_.append_chunk(kTextsChunk, first, n, payload);
  });
  if (full) count("texts_folded", 1);
  return number;
}

uint32_t Session::region(const strobe_region_info& info) {
  return regions_.intern(info, [](ChunkKind kind, std::string_view payload) {
    if (session().active()) session().files_.append_chunk(kind, 0, 1, payload);
  });
}

uint32_t Session::location_of(uint64_t id, const char* name) {
  const Inside inside;
  if (state_.load() == kForked) make_recordable(producer);
  std::lock_guard lock(slots_.mutex());
  return slots_.location_of(id, name);
}

void Session::location_over(uint64_t id) {
  const Inside inside;
  std::lock_guard lock(slots_.mutex());
  slots_.forget_thread(id);
}

void Session::total(const strobe_total_key& key, const strobe_total_sums& more) {
  if (!active() && state_.load() != kForked) return;
  RingHeader* totals = totals_.load(std::memory_order_acquire);
  if (!totals) {
    Producer& p = producer;
    if (p.busy) return;
    const Inside inside;
    if (make_recordable(p)) {
      std::lock_guard lock(slots_.mutex());
      totals = totals_.load();
      if (!totals) totals = slots_.take_cleared(kTotalsMagic, sizeof(TotalsEntry), p.header->location);
      totals_.store(totals, std::memory_order_release);
    }
  }
  if (!totals || !totals->capacity) return;
  auto* entries = const_cast<TotalsEntry*>(totals_entries(totals));
  TotalsEntry* entry =
      find_total(entries, totals->capacity - 1, key, [&] { return text(regions_.name_of(key.region).first); });
  if (entry)
    add_total(*entry, more);
  else
    count("totals_not_kept", more.calls);
}

strobe_line* Session::lines(const char* file, const char* function, uint32_t function_line, uint32_t first,
                            uint32_t count) {
  Producer& p = producer;
  if (p.busy) return nullptr;
  const Inside inside;
  strobe_line* found = nullptr;
  if (make_recordable(p)) {
    const uint32_t file_text = text(file), function_text = text(function);
    std::lock_guard lock(slots_.mutex());
    if ((!lines_ || lines_->head.load() + count > lines_->capacity) &&
        count <= options_.ring_bytes / sizeof(strobe_line))
      if (RingHeader* part = slots_.take_cleared(kLinesMagic, sizeof(strobe_line), p.header->location)) lines_ = part;
    if (lines_ && lines_->head.load() + count <= lines_->capacity) {
      char* data = reinterpret_cast<char*>(lines_) + kPage;
      found = reinterpret_cast<strobe_line*>(data) + lines_->head.load();
      for (uint32_t i = 0; i < count; i++) found[i] = {0, 0, file_text, function_text, first + i, function_line, 0, 0};
      lines_->head.store(lines_->head.load() + count, std::memory_order_release);
    }
  }
  if (!found && active()) this->count("functions_without_lines_counted", 1);
  return found;
}

}  // namespace strobe
