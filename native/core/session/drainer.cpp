#include "core/session/drainer.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "core/rings/ring_sums.h"
#include "core/session/repeated_facts.h"
#include "core/system/mapping_guard.h"
#include "core/system/threads.h"

namespace strobe {

constexpr int64_t kSaveEveryNs = 5000000000;
constexpr uint32_t kMetricsPeriodMs = 200;
// Reading many threads, or a large machine, takes long: metrics are read more rarely then, so that they cost no more
// than 1 / 500 of a core.
constexpr int64_t kMetricsRest = 500;
// A wake-up costs as much as some hundred records. A round that finds less than this part of a ring can come later.
constexpr uint64_t kLittle = 64;

void Drainer::begin(const strobe_options& options, const std::string& folder) {
  paths_ = std::make_unique<PathTable>();
  collector_.reset();
  live_.clear();
  period_us_ = options.drain_period_us;
  metrics_as_they_cost_ = options.metrics_period_ms == 0;
  metrics_period_ms_ = metrics_as_they_cost_ ? kMetricsPeriodMs : options.metrics_period_ms;
  ring_bytes_ = options.ring_bytes;
  min_duration_ns_ = options.min_duration_ns;
  if (options.keep || Budget::wanted(options) || min_duration_ns_) {
    const uint32_t keep = options.keep == UINT32_MAX ? 0 : options.keep ? options.keep : Collector::kAll;
    collector_ = std::make_unique<Collector>(keep, min_duration_ns_, regions_, *paths_, [this] { commit(); });
  }
  budget_.begin(options, folder, collector_.get());
  parts_.begin(options, folder);
  node_clock_.begin();
  unmatched_ = cut_ = 0;
  next_sample_ns_ = monotonic_ns();
  next_save_ns_ = next_sample_ns_ + kSaveEveryNs;
}

int Drainer::start() {
  quit_ = false;
  thread_id_ = 0;
  earlier_cpu_ns_ = files_.header()->own_cpu_ns.load();  // of a thread that rested during a fork
  return start_own_thread(
      thread_, 256 << 10,
      [](void* self) -> void* {
        pthread_setname_np(pthread_self(), "strobe");
        producer.busy = true;  // nothing that it calls is the program's work, not even the program's own allocator
        static_cast<Drainer*>(self)->run();
        return nullptr;
      },
      this);
}

void Drainer::stop() {
  quit_ = true;
  futex_wake(wake_);
  pthread_join(thread_, nullptr);
}

void Drainer::wait_until_gone() { strobe::wait_until_gone(thread_id_); }
void Drainer::wake() { futex_wake(wake_); }

void Drainer::run() {
  thread_id_ = uint32_t(thread_id());
  // While little is recorded the drainer sleeps longer, up to 8 periods; a thread that fills a quarter of its ring
  // wakes it.
  uint32_t period_us = period_us_;
  while (!quit_) {
    if (node_clock_.due(monotonic_ns())) measure_clock();
    const uint32_t seen = wake_.load(std::memory_order_acquire);
    futex_wait(wake_, seen, period_us);
    if (quit_) break;
    period_us = round(false) ? period_us_ : std::min(period_us * 2, period_us_ * 8);
    const int64_t now = monotonic_ns();
    if (budget_.looks_at_overhead(now)) note_own_cpu();
    budget_.keep(now);
    if (parts_.full(files_.bytes(), now)) begin_part(now);
    if (metrics_period_ms_ != UINT32_MAX && now >= next_sample_ns_) {
      const int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
      read_metrics(now);
      const int64_t cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
      const int64_t rest_ns = metrics_as_they_cost_ ? cost_ns * kMetricsRest : 0;
      next_sample_ns_ = now + std::max(int64_t(metrics_period_ms_) * 1000000, rest_ns);
    }
    if (now >= next_save_ns_) {
      next_save_ns_ = now + kSaveEveryNs;
      samples_.save();
      repeat_facts(files_);
    }
  }
  if (metrics_period_ms_ != UINT32_MAX) read_metrics(monotonic_ns());  // what was counted since the last time
  note_own_cpu();
}

void Drainer::read_metrics(int64_t now) {
  note_own_cpu();
  samples_.read_process(now, [this](int thread) {
    std::lock_guard lock(slots_.mutex());
    uint32_t location = kNoLocation;
    for (const auto& slot : slots_.all())
      if (slot->owner && slot->header->thread_id == uint64_t(thread)) location = slot->header->location;
    return location;
  });
}

// Rows come before the block of their spans: where a kill cuts the write between them, recovery sees that rows are of a
// block that is not there.
void Drainer::emit_rows(Slot& slot, std::string& out) {
  LocationBuilder& builder = *slot.builder;
  builder.attached.emit(out, builder.base_row(), builder.sealed_position(), builder.location(),
                        [this](uint32_t text) { return texts_.of(text); });
  const auto [folded, outside] = builder.attached.take_counts();
  if (folded) files_.count("rows_folded", folded);
  if (outside) files_.count("rows_outside_spans", outside);
}

void Drainer::rows_written(Slot& slot) {
  Slot* rows = slot.rows;
  if (!files_.failed() && rows) rows->header->tail.store(slot.builder->attached.tail(), std::memory_order_release);
}

void Drainer::seal(Slot& slot) {
  std::string out, block;
  // Records that begin and end no span (switches of stacks) take room, too: a block without spans lets the ring go on.
  if (slot.builder->dirty() || slot.half_used()) slot.builder->seal(block, slot.read, slot.decoder.epoch);
  slot.builder->attached.decide(INT64_MAX, true);
  emit_rows(slot, out);
  files_.append(out + block);
  // Only now may the thread overwrite these records. After a failed write they stay where recovery finds them.
  if (!files_.failed() && !block.empty()) slot.header->tail.store(slot.read, std::memory_order_release);
  rows_written(slot);
}

void Drainer::begin_part(int64_t now_ns) {
  std::string sums;
  {
    std::lock_guard lock(slots_.mutex());
    for (const auto& slot : slots_.all())
      if (RingHeader& part = *slot->header; part.magic == kTotalsMagic && part.state.load() == kRingActive)
        take_totals(sums, part.location, totals_entries(&part), part.capacity);
  }
  files_.append(sums);
  for (Slot* slot : live_) seal(*slot);
  samples_.save();
  files_.begin_part();
  for (Slot* slot : live_) {
    std::string block;  // without spans: what is open, and how far the ring was read
    slot->builder->seal(block, slot->read, slot->decoder.epoch);
    files_.append(block);
  }
  parts_.part_begins(files_.bytes(), now_ns);
}

std::vector<Drainer::Work> Drainer::find_work(bool last) {
  std::vector<Work> work;
  std::lock_guard lock(slots_.mutex());
  live_.clear();
  for (auto& slot : slots_.all()) {
    const uint32_t state = slot->header->state.load(std::memory_order_acquire);
    if (state == kRingFree || !slot->of_spans()) continue;
    live_.push_back(slot.get());
    const uint64_t head = slot->header->head.load(std::memory_order_acquire);
    // After the head of the spans: every row that was made before one of those records is seen.
    Slot* rows = slot->rows;
    const uint64_t row_head = rows ? rows->header->head.load(std::memory_order_acquire) : 0;
    const bool ended = state == kRingEnded || last;
    if (head != slot->read || (rows && row_head != rows->read) || ended)
      work.push_back({slot.get(), rows, head, row_head, ended});
  }
  return work;
}

void Drainer::watch(Slot& slot) {
  if (slot.watched) return;
  slot.watched = true;
  const bool main = slot.header->thread_id == uint64_t(getpid());
  collector_->add(*slot.builder,
                  slot.header->of_stream == kOfTask ? LocationRole::task
                  : slot.header->of_stream          ? LocationRole::stream
                  : main                            ? LocationRole::main_thread
                                                    : LocationRole::thread,
                  slot.device);
}

// Gives the builder of a ring its new records, each with the rows before it. `at_ns` converts their ticks.
template <class At>
void Drainer::feed(const Work& w, At at_ns) {
  Slot& slot = *w.slot;
  LocationBuilder& builder = *slot.builder;
  const uint64_t mask = ring_bytes_ / 8 - 1;  // a header can be lost (mapping_guard.h)
  const auto feed_rows_until = [&](uint64_t position) {
    w.rows->read = feed_rows(w.rows->records(), ring_bytes_ / sizeof(RowRecord) - 1, w.rows->read, w.row_head, position,
                             builder, at_ns);
  };
  cost_.add_records(w.head - slot.read);
  const uint64_t *const data = slot.data, head = w.head;
  for (uint64_t at = slot.read; at < head;) {
    if (w.rows) feed_rows_until(at);
    slot.decoder.feed(data[at & mask], builder, at_ns, at);
    slot.read = ++at;
    if (builder.full() && (!collector_ || collector_->plain())) seal(slot);
  }
  if (w.rows) feed_rows_until(head);
}

void Drainer::feed(const Work& w, const ClockPair& now) {
  if (w.slot->header->of_stream)
    feed(w, [](uint64_t t) { return int64_t(t); });
  else
    feed(w, [this, newest = now.ticks](uint64_t t) { return curve_.at(t < newest ? t : newest); });
}

bool Drainer::round(bool last) {
  if (!files_.check_rings()) return false;
  // Before the heads: what streams have reported by now is in the rings up to there.
  const int64_t streams_complete_ns = streams_complete_ns_.load(std::memory_order_acquire);
  const std::vector<Work> work = find_work(last);
  // Heads first, then the pair: every record up to a head is older than the pair.
  RingsHeader& header = *files_.header();
  const ClockPair now = clock_pair();
  if (!curve_.ends_with(header.last_pair)) curve_.begin(header.last_pair);
  curve_.add(now);
  uint64_t bytes = 0;
  bool ended = false;
  for (const Work& w : work) {
    Slot& slot = *w.slot;
    bytes += (w.head - slot.read) * sizeof(uint64_t);
    if (w.rows) bytes += (w.row_head - w.rows->read) * sizeof(RowRecord);
    ended |= w.ended;
    if (collector_) watch(slot);
    feed(w, now);
    if (collector_ && !collector_->plain()) continue;
    if (slot.half_used() ||
        ((w.ended || slot.rows_half_used()) && (slot.builder->dirty() || !slot.builder->attached.empty())))
      seal(slot);
    if (!collector_ && w.ended && !last) release(slot);
  }
  if (collector_) {
    collector_->set_streams_complete(streams_complete_ns);
    collect(work, now.ns, last);
  }
  header.last_pair = curve_.newest();
  if (last) samples_.save();
  return ended || bytes >= ring_bytes_ / kLittle;
}

// Spans end where the recording rests; the ends that the program comes to later are expected.
void Drainer::end_open_spans() {
  round(false);
  for (Slot* slot : live_) {
    LocationBuilder& builder = *slot->builder;
    builder.end_open(files_.header()->last_pair.ns, slot->read);
    if (collector_ && !collector_->plain()) continue;  // rows wait for their iteration's end
    if (builder.dirty()) seal(*slot);
  }
}

// The ring of a thread that has ended is free for the next one.
void Drainer::release(Slot& slot) {
  if (files_.failed() || slot.header->head.load() != slot.read || !slot.builder->attached.empty()) return;
  std::string chunks;
  const uint32_t location = slot.builder->location();
  append_span_count(chunks, location, slot.builder->spans());
  if (collector_) {
    if (const std::string graph = collector_->remove(*slot.builder); !graph.empty())
      append_chunk(chunks, kGraphChunk, location, 1, graph);
    chunks += collector_->take_ended();
  }
  files_.append(chunks);
  std::lock_guard lock(slots_.mutex());
  unmatched_ += slot.builder->unmatched, cut_ += slot.builder->cut;
  slot.builder.reset();
  live_.erase(std::find(live_.begin(), live_.end(), &slot));
  slot.watched = false;
  for (Slot* each : {slot.rows.load(), &slot})
    if (each) each->header->state.store(kRingFree);
  slot.rows = nullptr;
}

bool Drainer::press_full_rings() {
  bool pressed = false;
  for (Slot* slot : live_) {
    const uint64_t used = slot->read - slot->header->tail.load(), capacity = slot->header->capacity;
    const bool rows = slot->rows_half_used();
    if ((used <= capacity / 2 && !rows) || !slot->watched) continue;
    collector_->press(*slot->builder, used > capacity / 4 * 3 || rows);
    pressed = true;
  }
  return pressed;
}

void Drainer::collect(const std::vector<Work>& work, int64_t now_ns, bool last) {
  Collector& collector = *collector_;
  if (last)
    collector.finish(now_ns);
  else
    collector.decide(now_ns);
  bool write = last || collector.has_blocks();
  if (!last && !collector.plain()) write |= press_full_rings();
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
  if (last) files_.append(collector.last_chunks());
}

void Drainer::commit() {
  std::string out, snapshot;
  const bool folded = collector_->needs_snapshot();
  if (folded) snapshot = collector_->snapshot();
  collector_->take_full_chunks(out);
  std::vector<std::pair<Slot*, uint64_t>> tails;
  for (Slot* slot : live_) {
    if (!slot->watched) continue;
    std::string blocks;
    uint64_t tail = slot->header->tail.load();
    const bool settled = collector_->has_settled(*slot->builder) || (!slot->builder->rows() && slot->half_used());
    if (settled) tail = slot->builder->seal_settled(blocks, slot->read, slot->decoder.epoch);
    if (!settled && !slot->builder->attached.ready(slot->builder->base_row())) continue;
    emit_rows(*slot, out);
    out += blocks;
    tails.emplace_back(slot, tail);
  }
  if (folded) files_.write_snapshot(snapshot, collector_->snapshot_sequence());
  files_.append(out);
  if (!files_.failed())
    for (auto& [slot, tail] : tails) {
      slot->header->tail.store(tail, std::memory_order_release);
      rows_written(*slot);
    }
  collector_->committed();
}

std::vector<std::pair<std::string, uint64_t>> Drainer::counters() const {
  uint64_t lost = 0, rows_lost = 0, unmatched = unmatched_, cut = cut_;
  for (const auto& slot : slots_.all()) {
    (slot->of_spans() ? lost : rows_lost) += slot->header->lost.load();
    if (slot->builder) unmatched += slot->builder->unmatched, cut += slot->builder->cut;
  }
  std::vector<std::pair<std::string, uint64_t>> out;
  const auto add = [&out](const char* name, uint64_t value) { out.emplace_back(name, value); };
  add("records_lost", lost);
  if (rows_lost) add("rows_lost", rows_lost);
  add("leaves_unmatched", unmatched);
  add("spans_cut", cut);
  add("paths_folded", paths_->folded());
  if (collector_) add("statistics_folded", collector_->statistics_folded());
  if (min_duration_ns_) add("short_spans", collector_->short_spans());
  return out;
}

void Drainer::measure_clock() {
  ClockReading reading;
  if (!node_clock_.measure(reading)) return;
  char json[120];
  const int n = snprintf(json, sizeof json, "{\"clock\": [%lld, %lld, %lld]}", (long long)reading.local_ns,
                         (long long)reading.offset_ns, (long long)reading.error_ns);
  files_.append_chunk(kNoteChunk, 0, 1, std::string_view(json, size_t(n)));
}

void Drainer::note_own_cpu() { files_.header()->own_cpu_ns.store(earlier_cpu_ns_ + clock_ns(CLOCK_THREAD_CPUTIME_ID)); }

void Drainer::forked() {  // what the thread was changing may be half changed here: it is left, not destroyed
  (void)paths_.release();
  (void)collector_.release();
  live_.clear();
}

}  // namespace strobe
