// The drainer: one thread a process that pairs records, seals blocks, and samples the process metrics.
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "core/guard.h"
#include "core/own_thread.h"
#include "core/session.h"
#include "core/system_calls.h"
#include "core/without_signals.h"

namespace strobe {

int Session::start_drainer() {
  quit_ = false;
  drainer_id_ = 0;
  earlier_cpu_ns_ = header()->own_cpu_ns.load();  // of a drainer that rested during a fork
  return start_own_thread(drainer_, 256 << 10, drainer_main, this);
}

void Session::stop_drainer() {
  quit_ = true;
  futex_wake(wake_);
  pthread_join(drainer_, nullptr);
}

void Session::pause() {
  std::lock_guard control(control_);
  if (!active() || paused_) return;
  paused_ = true;
  stop_producers();  // the next record of any thread comes to slow_put, which resumes
  stop_drainer();
  wait_until_gone(drainer_id_);
}

void Session::resume() {
  const WithoutSignals whole;
  std::lock_guard control(control_);
  if (!active() || !paused_ || muted_) return;
  paused_ = false;
  if (int error = start_drainer()) {
    std::lock_guard lock(file_mutex_);
    fail("cannot start the recorder's thread again after a fork", error);
  }
}

void* Session::drainer_main(void* self) {
  pthread_setname_np(pthread_self(), "strobe");
  producer.busy = true;  // nothing that it calls is the program's work, not even the program's own allocator
  static_cast<Session*>(self)->drainer_id_ = uint32_t(thread_id());
  static_cast<Session*>(self)->drain();
  static_cast<Session*>(self)->note_own_cpu();
  return nullptr;
}

void Session::drain() {
  // While nothing is recorded the drainer sleeps longer, up to 8 periods; a thread that fills a quarter of its ring
  // wakes it.
  uint32_t period_us = options_.drain_period_us;
  while (!quit_) {
    if (node_clock_.due(monotonic_ns())) measure_clock();
    uint32_t seen = wake_.load(std::memory_order_acquire);
    futex_wait(wake_, seen, period_us);
    if (quit_) return;
    period_us = round(false) ? options_.drain_period_us : std::min(period_us * 2, options_.drain_period_us * 8);
    int64_t now = monotonic_ns();
    keep_budget(now);
    if (options_.metrics_period_ms != UINT32_MAX && now >= next_sample_ns_) {
      next_sample_ns_ = now + int64_t(options_.metrics_period_ms) * 1000000;
      sample_metrics(now);
    }
    if (now >= next_save_ns_) {
      next_save_ns_ = now + 5000000000ll;
      save_samples();
    }
  }
}

// Rows come before the block of their spans: where a kill cuts the write between them, recovery sees that rows are of a
// block that is not there.
void Session::emit_rows(Slot& slot, std::string& out) {
  LocationBuilder& builder = *slot.builder;
  builder.attached.emit(out, builder.base_row(), builder.sealed_position(), builder.location(),
                        [this](uint32_t text) { return texts_.of(text); });
  const auto [folded, outside] = builder.attached.take_counts();
  if (folded) count("rows_folded", folded);
  if (outside) count("rows_outside_spans", outside);
}

void Session::rows_written(Slot& slot) {
  Slot* rows = slot.rows;
  if (!failed_ && rows) rows->header->tail.store(slot.builder->attached.tail(), std::memory_order_release);
}

bool Session::half_used(const Slot& slot) { return slot.read - slot.header->tail.load() > slot.header->capacity / 2; }

bool Session::rows_press(const Slot& slot) {
  const Slot* rows = slot.rows;
  if (!rows) return false;
  const RingHeader& ring = *rows->header;
  return rows->read - ring.tail.load() > ring.capacity / 2;
}

void Session::seal(Slot& slot) {
  std::string out, block;
  // Records that begin and end no span (switches of stacks) take room, too: a block without spans lets the ring go on.
  if (slot.builder->dirty() || half_used(slot)) slot.builder->seal(block, slot.read, slot.decoder.epoch);
  slot.builder->attached.decide(INT64_MAX, true);
  emit_rows(slot, out);
  append(out + block);
  // Only now may the thread overwrite these records. After a failed write they stay where recovery finds them.
  if (!failed_ && !block.empty()) slot.header->tail.store(slot.read, std::memory_order_release);
  rows_written(slot);
}

bool Session::round(bool last) {
  if (guard_was_needed()) {
    std::lock_guard lock(file_mutex_);
    if (!rings_are_sound()) return false;
  }
  std::vector<Work> work;
  // Before the heads: what is told by now is in the rings up to there.
  const int64_t streams_told_ns = streams_told_ns_.load(std::memory_order_acquire);
  {
    std::lock_guard lock(slots_mutex_);
    live_.clear();
    for (auto& slot : slots_) {
      uint32_t state = slot->header->state.load(std::memory_order_acquire);
      if (state == kRingFree || !slot->of_spans()) continue;
      live_.push_back(slot.get());
      uint64_t head = slot->header->head.load(std::memory_order_acquire);
      // After the head of the spans: every row that was made before one of those records is seen.
      Slot* rows = slot->rows;
      uint64_t row_head = rows ? rows->header->head.load(std::memory_order_acquire) : 0;
      bool ended = state == kRingEnded || last;
      if (head != slot->read || (rows && row_head != rows->read) || ended)
        work.push_back({slot.get(), rows, head, row_head, ended});
    }
  }
  // Heads first, then the pair: every record up to a head is older than the pair.
  ClockPair now = clock_pair();
  ClockLine line = clock_line(header()->last_pair, now);
  for (const Work& w : work) {
    Slot& slot = *w.slot;
    const uint64_t mask = options_.ring_bytes / 8 - 1;  // a header can be lost (guard.h)
    const uint32_t of_stream = slot.header->of_stream;
    auto at_ns = [&](uint64_t t) { return of_stream ? int64_t(t) : line.at(t < now.ticks ? t : now.ticks); };
    if (collector_ && !slot.watched) {
      collector_->add(*slot.builder, of_stream == kOfTask                           ? Collector::kTask
                                     : of_stream                                    ? Collector::kStream
                                     : slot.header->thread_id == uint64_t(getpid()) ? Collector::kMain
                                                                                    : Collector::kThread);
      slot.watched = true;
    }
    const auto feed_rows_until = [&](uint64_t position) {
      if (!w.rows) return;
      w.rows->read = feed_rows(w.rows->records(), options_.ring_bytes / sizeof(RowRecord) - 1, w.rows->read, w.row_head,
                               position, *slot.builder, at_ns);
    };
    records_seen_ += w.head - slot.read;
    while (slot.read < w.head) {
      feed_rows_until(slot.read);
      slot.decoder.feed(slot.data[slot.read & mask], *slot.builder, at_ns, slot.read);
      slot.read++;
      if (slot.builder->full() && (!collector_ || collector_->plain())) seal(slot);
    }
    feed_rows_until(w.head);
    if (collector_ && !collector_->plain()) continue;
    if (half_used(slot) ||
        ((w.ended || rows_press(slot)) && (slot.builder->dirty() || !slot.builder->attached.empty())))
      seal(slot);
    if (!collector_ && w.ended && !last) release(slot);
  }
  if (collector_) {
    collector_->streams_told(streams_told_ns);
    collect(work, now.ns, last);
  }
  header()->last_pair = now;
  if (last) save_samples();
  return !work.empty();
}

// The ring of a thread that has ended is free for the next one.
void Session::release(Slot& slot) {
  if (failed_ || slot.header->head.load() != slot.read || !slot.builder->attached.empty()) return;
  if (collector_) {
    std::string chunk;
    const uint32_t location = slot.builder->location();
    if (std::string graph = collector_->remove(*slot.builder); !graph.empty())
      append_chunk(chunk, kGraphChunk, location, 1, graph);
    append(chunk + collector_->take_ended());
  }
  std::lock_guard lock(slots_mutex_);
  unmatched_ += slot.builder->unmatched, cut_ += slot.builder->cut;
  slot.builder.reset();
  live_.erase(std::find(live_.begin(), live_.end(), &slot));
  slot.watched = false;
  for (Slot* each : {slot.rows.load(), &slot})
    if (each) each->header->state.store(kRingFree);
  slot.rows = nullptr;
}

void Session::collect(const std::vector<Work>& work, int64_t now_ns, bool last) {
  Collector& collector = *collector_;
  if (last)
    collector.finish(now_ns);
  else
    collector.decide(now_ns);
  bool write = last || collector.has_blocks();
  if (!last && !collector.plain()) {
    for (Slot* slot : live_) {
      const uint64_t used = slot->read - slot->header->tail.load(), capacity = slot->header->capacity;
      if ((used <= capacity / 2 && !rows_press(*slot)) || !slot->watched) continue;
      collector.press(*slot->builder, used > capacity / 4 * 3 || rows_press(*slot));
      write = true;
    }
  }
  std::vector<Slot*> ended;
  const auto release_ended = [&] {
    if (write) commit();
    write = false;
    for (Slot* slot : ended) release(*slot);
    ended.clear();
  };
  for (const Work& w : work) {
    if (last || !w.ended) continue;
    if (!collector.plain()) collector.end(*w.slot->builder), write = true;
    ended.push_back(w.slot);
    if (collector.crowded()) release_ended();  // many may end between two rounds
  }
  release_ended();
  if (last) append(collector.last_chunks());
}

void Session::commit() {
  std::string out, snapshot;
  if (collector_->needs_snapshot()) snapshot = collector_->snapshot();
  collector_->take_full_chunks(out);
  std::vector<std::pair<Slot*, uint64_t>> tails;
  for (Slot* slot : live_) {
    if (!slot->watched) continue;
    std::string blocks;
    uint64_t tail = slot->header->tail.load();
    const bool settled = collector_->has_settled(*slot->builder) || (!slot->builder->rows() && half_used(*slot));
    if (settled) tail = slot->builder->seal_settled(blocks, slot->read, slot->decoder.epoch);
    if (!settled && !slot->builder->attached.ready(slot->builder->base_row())) continue;
    emit_rows(*slot, out);
    out += blocks;
    tails.emplace_back(slot, tail);
  }
  if (collector_->needs_snapshot()) write_snapshot(snapshot, collector_->snapshot_sequence());
  append(out);
  if (!failed_)
    for (auto& [slot, tail] : tails) {
      slot->header->tail.store(tail, std::memory_order_release);
      rows_written(*slot);
    }
  collector_->committed();
}

void Session::measure_clock() {
  ClockReading reading;
  if (!node_clock_.measure(reading)) return;
  char json[120];
  int n = snprintf(json, sizeof json, "{\"clock\": [%lld, %lld, %lld]}", (long long)reading.local_ns,
                   (long long)reading.offset_ns, (long long)reading.error_ns);
  note(std::string_view(json, size_t(n)));
}

void Session::note_own_cpu() {
  timespec cpu;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  header()->own_cpu_ns.store(earlier_cpu_ns_ + int64_t(cpu.tv_sec) * 1000000000 + cpu.tv_nsec);
}

}  // namespace strobe
