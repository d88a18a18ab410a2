#include "kernels/reading/ring_recovery.h"

#include <string.h>

#include <algorithm>

#include "core/rings/ring_sums.h"

namespace strobe {

namespace {

struct Nobody final : SpanObserver {
  void entered(uint32_t, int64_t, uint64_t) override {}
  void closed(uint32_t, size_t, int64_t, int64_t, uint64_t) override {}
};
Nobody nobody;

const char* data_of(const RingHeader& ring) { return reinterpret_cast<const char*>(&ring) + kPage; }

std::string fixed_text(const char* text, size_t most) { return {text, strnlen(text, most)}; }

}  // namespace

RingRecovery::RingRecovery(ProcessFile& file, std::string_view rings, const Positions& positions,
                           const RowsWritten& rows_written, std::string& chunks)
    : file_(file),
      rings_(rings),
      header_(*reinterpret_cast<const RingsHeader*>(rings.data())),
      positions_(positions),
      rows_written_(rows_written),
      chunks_(chunks),
      late_(file, chunks),
      short_spans_(header_.min_duration_ns,
                   [this](uint32_t region) {
                     const auto known = kinds_.find(region);
                     return known == kinds_.end() ? std::pair<uint8_t, uint8_t>{} : known->second;
                   }),
      line_(clock_line(header_.first_pair, header_.last_pair)) {
  // One line over the whole run: what the drainer knew of the clock between its rounds died with it.
  line_.origin = header_.last_pair;
  for (size_t i = 0; i < file.path_parent.size(); i++) paths_.add(file.path_parent[i], file.path_region[i]);
  if (short_spans_.on())
    for (const Region& r : file.regions) kinds_[r.id] = {r.paradigm, r.role};
}

void RingRecovery::run(const std::string& gpu_path) {
  read_header();
  if (!gpu_path.empty()) late_.read(gpu_path);
  for (uint32_t i = 0; const RingHeader* ring = ring_at(i); i++) read_part(*ring);
  for (uint32_t i = 0; const RingHeader* ring = ring_at(i); i++) read_ring(*ring);
  late_.feed_others(paths_);
  records_ += late_.fed();
  if (const uint64_t untimed = late_.untimed()) file_.counters["stream_spans_untimed"] += untimed;
  append_statistics(chunks_, left_out_);
  if (const uint32_t n = header_.staged_count.load(); n > 0 && n <= kStagedSamples)
    append_chunk(chunks_, kSamplesChunk, 0, n, encode_staged_samples(header_, n));
}

const RingHeader* RingRecovery::ring_at(uint32_t number) const {
  const size_t bytes = kPage + header_.ring_bytes;
  if (number >= header_.slots.load() || kRingsHeaderBytes + (number + 1) * bytes > rings_.size()) return nullptr;
  return reinterpret_cast<const RingHeader*>(rings_.data() + kRingsHeaderBytes + number * bytes);
}

void RingRecovery::read_header() {
  file_.ring_state = int(header_.state.load());
  file_.failure = fixed_text(header_.failure, sizeof header_.failure);
  file_.failed_ns = header_.failed_ns.load();
  for (uint32_t i = 0; i < header_.counter_count.load() && i < std::size(header_.counters); i++) {
    const Counter& counter = header_.counters[i];
    file_.counters[fixed_text(counter.name, sizeof counter.name)] = counter.value.load();
  }
  file_.counters["own_cpu_ns"] = uint64_t(header_.own_cpu_ns.load());
}

// All but rings of spans, which need the rings of rows.
void RingRecovery::read_part(const RingHeader& ring) {
  if (ring.state.load() == kRingFree) return;
  if (ring.magic == kTotalsMagic && ring.capacity * sizeof(TotalsEntry) <= header_.ring_bytes) {
    append_totals(chunks_, ring.location, totals_entries(&ring), ring.capacity);
  } else if (ring.magic == kLinesMagic && ring.head.load() * sizeof(strobe_line) <= header_.ring_bytes) {
    append_lines(chunks_, ring.location, reinterpret_cast<const strobe_line*>(data_of(ring)), ring.head.load(), line_);
  } else if (ring.magic == kRowRingMagic && ring.capacity * sizeof(RowRecord) == header_.ring_bytes) {
    file_.counters["rows_lost"] += ring.lost.load();
    row_rings_[ring.location] = &ring;
  }
}

// The builder goes on behind the last block of its location.
void RingRecovery::resume(LocationBuilder& builder, RecordDecoder& decoder, const Location& location,
                          uint64_t& position) const {
  const auto known = positions_.find(builder.location());
  if (known == positions_.end() || location.blocks.empty()) return;
  position = known->second.records;
  decoder.epoch = known->second.epoch;
  const Block& last = location.blocks.back();
  SpansView view;
  SpanColumns columns;
  std::vector<OpenSpan> stack;
  uint32_t current = 0;
  if (view_spans(last.payload, last.count, view) && decode_spans(view, last.count, columns)) {
    current = view.header.stack;
    for (const OpenSpan& open : view.carry)
      if (location.ends.find(open.row) == location.ends.end()) stack.push_back(open);
    for (uint32_t i = 0; i < last.count; i++)
      if (columns.duration_ns[i] == kOpen && columns.path[i] < file_.path_region.size())
        stack.push_back({last.first_row + i, columns.start_ns[i], columns.path[i], file_.path_region[columns.path[i]]});
  }
  builder.resume(location.spans, std::move(stack), location.last_ns, current, position, decoder.epoch);
}

RingRecovery::RowsOfRing RingRecovery::rows_of(uint32_t location) const {
  const auto found = row_rings_.find(location);
  if (found == row_rings_.end()) return {};
  RowsOfRing rows{found->second, found->second->tail.load(), found->second->head.load()};
  if (rows.head - rows.at > rows.header->capacity) rows.at = rows.head;  // a header that makes no sense
  return rows;
}

// Rows that were made before the record at `until`; those of spans in blocks, before `first`, are in the file.
void RingRecovery::feed_rows(LocationBuilder& builder, const RingHeader& ring, RowsOfRing& rows, uint64_t first,
                             uint64_t until) {
  for (; rows.at < rows.head; rows.at++) {
    const auto* records = reinterpret_cast<const RowRecord*>(data_of(*rows.header));
    const RowRecord& record = records[rows.at & (rows.header->capacity - 1)];
    if (record.position() > until) return;
    const RowKind* kind = row_kind(record.kind());
    if (!kind || (kind->of_spans && record.position() < first)) continue;
    const uint32_t about = kind->names_location ? uint32_t(record.values[0]) : ring.location;
    const auto written = rows_written_.find({ring.location, record.kind(), about});
    if (written != rows_written_.end() && rows.at < written->second) continue;
    const int64_t ns = ns_of(ring, record.ticks);
    builder.attached.resume(rows.at);
    builder.attached.add(with_lengths_in_ns(record, [&](uint64_t t) { return ns_of(ring, t); }), ns,
                         builder.innermost(), builder.innermost_path());
    if (!kind->of_spans) file_.last_ns = std::max(file_.last_ns, ns);
    records_++;
  }
}

void RingRecovery::emit_rows(LocationBuilder& builder) {
  builder.attached.decide(INT64_MAX, true);
  builder.attached.emit(chunks_, builder.base_row(), builder.sealed_position(), builder.location(),
                        [this](uint32_t text) { return late_.text_of(text); });
}

// As RowSettler::keep: all waiting rows go into blocks, but for the short ones, which are added up.
void RingRecovery::seal_without_short(LocationBuilder& builder, uint64_t position, uint64_t epoch) {
  const uint32_t location = builder.location(), of_none = short_class(kNoClass);
  size_t left = 0;
  do {
    left = builder.fold_short(
        builder.rows(), kBlockSpans,
        [&](uint32_t path, int64_t duration) { return short_spans_.is_short(paths_.region(path), duration); },
        [&](uint32_t path, int64_t duration, int64_t own) { left_out_.add({location, path, of_none}, duration, own); },
        [&](uint32_t path, int64_t duration) { left_out_.add_own({location, path, of_none}, -duration); });
    builder.seal_settled(chunks_, position, epoch);
  } while (left > 0);
}

void RingRecovery::read_ring(const RingHeader& ring) {
  if (ring.magic != kRingMagic || ring.state.load() == kRingFree || ring.capacity * 8ull != header_.ring_bytes) return;
  file_.counters["records_lost"] += ring.lost.load();
  const auto* data = reinterpret_cast<const uint64_t*>(data_of(ring));
  const auto at_ns = [&](uint64_t t) { return ns_of(ring, t); };
  LocationBuilder builder(ring.location, paths_);
  if (short_spans_.on()) builder.observe(&nobody);
  builder.forked = true;  // what is unmatched here was counted, or not, while the program ran
  RecordDecoder decoder;
  uint64_t position = 0;
  const uint64_t head = ring.head.load(std::memory_order_acquire);
  if (const bool hidden = ring.thread_id == 0; !hidden) {  // rows of a hidden one are about other threads
    Location& location = file_.locations[ring.location];
    location.id = ring.location;
    resume(builder, decoder, location, position);
  }
  if (ring.tail.load() > position) overwritten_ = true;
  if (head < position || head - position > ring.capacity) return;  // nothing new, or a header that makes no sense
  RowsOfRing rows = rows_of(ring.location);
  for (uint64_t at = position; at < head; at++) {
    feed_rows(builder, ring, rows, position, at);
    decoder.feed(data[at & (ring.capacity - 1)], builder, at_ns, at);
    records_++;
    if (builder.full() && !short_spans_.on()) builder.seal(chunks_, at + 1, decoder.epoch), emit_rows(builder);
  }
  feed_rows(builder, ring, rows, position, head);
  if (ring.of_stream == kOfStream) late_.feed(builder);
  if (builder.dirty() && short_spans_.on())
    seal_without_short(builder, head, decoder.epoch);
  else if (builder.dirty())
    builder.seal(chunks_, head, decoder.epoch);
  emit_rows(builder);
}

}  // namespace strobe
