// What a process left behind that ended without closing its file: the rest of its spans and rows from the rings, what
// was folded from the snapshots.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <tuple>

#include "core/builder.h"
#include "core/json_text.h"
#include "core/line_counts.h"
#include "core/ring.h"
#include "core/totals.h"
#include "kernels/opened_file.h"
#include "kernels/process_file.h"
#include "kernels/side_tables.h"

namespace strobe {

// What was folded is in the newest snapshot whose position the blocks of the location reach: the blocks were written
// after it. What came later is replayed from the ring.
void ProcessFile::recover_statistics(const std::vector<Snapshot>& snapshots) {
  auto newest_for = [&](uint32_t location) -> const Snapshot* {
    const auto known = ring_positions_.find(location);
    const uint64_t reached = known == ring_positions_.end() ? 0 : known->second.first;
    for (const Snapshot& s : snapshots) {
      const auto folded = s.folded_until.find(location);
      if (folded == s.folded_until.end() || folded->second <= reached) return &s;
    }
    return nullptr;
  };
  for (const Snapshot& snapshot : snapshots) {
    const bool of_main = newest_for(snapshot.main_location) == &snapshot;
    StatisticsTable table;
    std::string_view bytes = snapshot.chunks;
    ChunkHeader header;
    while (bytes.size() >= sizeof header) {
      memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
      if (!sound_header(header) || header.payload_bytes > bytes.size() - sizeof header) break;
      const std::string_view payload = bytes.substr(sizeof header, header.payload_bytes);
      if (header.kind == kStatisticsChunk) {
        if (!decode_statistics(payload, header.count, table)) chunks_damaged++;
      } else if (of_main || (header.kind == kClassesChunk && &snapshot == &snapshots[0])) {
        recovered_.chunks += bytes.substr(0, sizeof header + header.payload_bytes);
      }
      bytes.remove_prefix(sizeof header + header.payload_bytes);
    }
    uint32_t count = 0;
    const std::string rows =
        encode_statistics(table, [&](uint32_t location) { return newest_for(location) == &snapshot; }, count);
    if (count) append_chunk(recovered_.chunks, kStatisticsChunk, 0, count, rows);
  }
}

void ProcessFile::note_trailer(const ChunkHeader& header, std::string_view payload, size_t offset) {
  RowTrailer trailer;
  std::string_view name;
  if (payload.size() < sizeof trailer || !table_name(payload, name)) return;
  memcpy(&trailer, payload.data() + payload.size() - sizeof trailer, sizeof trailer);
  if (trailer.magic == kRowTrailerMagic) row_chunks_.push_back({trailer, header.location, offset, std::string(name)});
}

// Rows that were written down while their block was not: the kill cut the write between them, at the end of the file.
// They are still in the ring, and so are their spans.
void ProcessFile::drop_torn_rows() {
  while (!row_chunks_.empty()) {
    const RowChunk& chunk = row_chunks_.back();
    const auto known = ring_positions_.find(chunk.trailer.ring_location);
    const uint64_t reached = known == ring_positions_.end() ? 0 : known->second.first;
    if (chunk.trailer.span_position <= reached) return;
    tables[chunk.table].pop_back();
    if (tables[chunk.table].empty()) tables.erase(chunk.table);
    sound_bytes_ = std::min(sound_bytes_, chunk.offset);
    row_chunks_.pop_back();
  }
}

void ProcessFile::recover(const std::string& rings_path) {
  OpenedFile file(rings_path, O_RDONLY);
  if (file.bytes < kRingsHeaderBytes) return;
  void* map = mmap(nullptr, file.bytes, PROT_READ, MAP_SHARED, file.fd, 0);
  if (map == MAP_FAILED) throw std::system_error(errno, std::generic_category(), rings_path);
  const auto& header = *static_cast<const RingsHeader*>(map);
  const char* base = static_cast<const char*>(map);
  if (header.magic == kRingsMagic) {
    ring_state = int(header.state.load());
    failure.assign(header.failure, strnlen(header.failure, sizeof header.failure));
    failed_ns = header.failed_ns.load();
    for (uint32_t i = 0; i < header.counter_count.load() && i < 48; i++)
      counters[std::string(header.counters[i].name, strnlen(header.counters[i].name, 40))] =
          header.counters[i].value.load();
    counters["own_cpu_ns"] = uint64_t(header.own_cpu_ns.load());
    PathTable paths;
    for (size_t i = 0; i < path_parent.size(); i++) paths.add(path_parent[i], path_region[i]);
    bool overwritten = false;  // records that were written down, and are in neither place now
    // One line over the whole run: what the drainer knew of the clock between its rounds died with it.
    ClockLine line = clock_line(header.first_pair, header.last_pair);
    line.origin = header.last_pair;
    const size_t ring_bytes = kPage + header.ring_bytes;
    drop_torn_rows();
    // Up to where rows of a ring are in the file, by kind and by the location that they are about.
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t> rows_written;
    for (const RowChunk& chunk : row_chunks_) {
      uint64_t& until = rows_written[{chunk.trailer.ring_location, chunk.trailer.kind, chunk.location}];
      until = std::max(until, chunk.trailer.row_position);
    }
    std::map<uint32_t, const RingHeader*> row_rings;  // by location
    for (uint32_t i = 0; i < header.slots.load() && kRingsHeaderBytes + (i + 1) * ring_bytes <= file.bytes; i++) {
      const auto& ring = *reinterpret_cast<const RingHeader*>(base + kRingsHeaderBytes + i * ring_bytes);
      if (ring.state.load() == kRingFree) continue;
      if (ring.magic == kTotalsMagic && ring.capacity * sizeof(TotalsEntry) <= header.ring_bytes) {
        if (end_json.size() < process_json.size())
          append_totals(recovered_.chunks, ring.location, totals_entries(&ring), ring.capacity);
      } else if (ring.magic == kLinesMagic && ring.head.load() * sizeof(strobe_line) <= header.ring_bytes) {
        const char* data = base + kRingsHeaderBytes + i * ring_bytes + kPage;
        if (end_json.size() < process_json.size())
          append_lines(recovered_.chunks, ring.location, reinterpret_cast<const strobe_line*>(data), ring.head.load(),
                       line);
      } else if (ring.magic == kRowRingMagic && ring.capacity * sizeof(RowRecord) == header.ring_bytes) {
        counters["rows_lost"] += ring.lost.load();
        row_rings[ring.location] = &ring;
      }
    }
    for (uint32_t i = 0; i < header.slots.load() && kRingsHeaderBytes + (i + 1) * ring_bytes <= file.bytes; i++) {
      const char* slot = base + kRingsHeaderBytes + i * ring_bytes;
      const auto& ring = *reinterpret_cast<const RingHeader*>(slot);
      const auto* data = reinterpret_cast<const uint64_t*>(slot + kPage);
      if (ring.magic != kRingMagic || ring.state.load() == kRingFree || ring.capacity * 8ull != header.ring_bytes)
        continue;
      counters["records_lost"] += ring.lost.load();
      LocationBuilder builder(ring.location, paths);
      builder.forked = true;  // what is unmatched here was counted, or not, while the program ran
      RecordDecoder decoder;
      uint64_t position = 0, head = ring.head.load(std::memory_order_acquire);
      const bool hidden = ring.thread_id == 0;  // its rows are about other threads
      Location nowhere;
      auto& location = hidden ? nowhere : locations[ring.location];
      location.id = ring.location;
      if (auto known = ring_positions_.find(ring.location);
          known != ring_positions_.end() && !location.blocks.empty()) {
        position = known->second.first;
        decoder.epoch = known->second.second;
        const Block& last = location.blocks.back();
        SpansView view;
        SpanColumns columns;
        std::vector<OpenSpan> stack;
        uint32_t current = 0;
        if (view_spans(last.payload, last.count, view) && decode_spans(view, last.count, columns)) {
          current = view.header.stack;
          for (const OpenSpan& open : view.carry)
            if (location.ends.find(open.row) == location.ends.end()) stack.push_back(open);
          for (uint32_t k = 0; k < last.count; k++)
            if (columns.duration_ns[k] == kOpen && columns.path[k] < path_region.size())
              stack.push_back({last.first_row + k, columns.start_ns[k], columns.path[k], path_region[columns.path[k]]});
        }
        builder.resume(location.spans, std::move(stack), location.last_ns, current);
      }
      if (ring.tail.load() > position) overwritten = true;
      if (head < position || head - position > ring.capacity) continue;  // nothing new, or a header that makes no sense
      uint64_t row_at = 0, row_head = 0;
      const RingHeader* rows = nullptr;
      if (const auto found = row_rings.find(ring.location); found != row_rings.end()) {
        rows = found->second;
        row_at = rows->tail.load(), row_head = rows->head.load();
        if (row_head - row_at > rows->capacity) row_at = row_head;  // a header that makes no sense
      }
      const auto feed_rows_until = [&](uint64_t span_position) {
        for (; row_at < row_head; row_at++) {
          const auto* records = reinterpret_cast<const RowRecord*>(reinterpret_cast<const char*>(rows) + kPage);
          const RowRecord& record = records[row_at & (rows->capacity - 1)];
          if (record.position() > span_position) return;
          const RowKind* kind = row_kind(record.kind());
          if (!kind || (kind->of_spans && record.position() < position)) continue;
          const uint32_t about = kind->names_location ? uint32_t(record.values[0]) : ring.location;
          const auto written = rows_written.find({ring.location, record.kind(), about});
          if (written != rows_written.end() && row_at < written->second) continue;
          builder.attached.resume(row_at);
          builder.attached.add(record, line.at(record.ticks), builder.innermost());
          if (!kind->of_spans) last_ns = std::max(last_ns, line.at(record.ticks));
          recovered_.records++;
        }
      };
      const auto emit_rows = [&] {
        builder.attached.decide(INT64_MAX, true);
        builder.attached.emit(recovered_.chunks, builder.base_row(), builder.sealed_position(), ring.location);
      };
      for (uint64_t at = position; at < head; at++) {
        feed_rows_until(at);
        decoder.feed(data[at & (ring.capacity - 1)], builder, [&](uint64_t t) { return line.at(t); });
        recovered_.records++;
        if (builder.full()) builder.seal(recovered_.chunks, at + 1, decoder.epoch), emit_rows();
      }
      feed_rows_until(head);
      if (builder.dirty()) builder.seal(recovered_.chunks, head, decoder.epoch);
      emit_rows();
    }
    if (uint32_t n = header.staged_count.load(); n > 0 && n <= kStagedSamples) {
      Writer w;
      for (uint32_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &header.staged[i].value, 8);
        w.u32(header.staged[i].metric), w.u64(uint64_t(header.staged[i].time_ns)), w.u64(bits);
      }
      append_chunk(recovered_.chunks, kSamplesChunk, 0, n, w.bytes);
    }
    // A kill can cut a write between two pages. What that chunk was to hold is still in the rings: nothing is lost.
    if (!overwritten && sound_bytes_ < map_bytes_) bytes_lost -= map_bytes_ - sound_bytes_, chunks_damaged--;
  }
  munmap(map, file.bytes);
  recovered_records = recovered_.records;
  read_chunks(recovered_.chunks, false);
  for (auto& [id, location] : locations) location.ends.sort();
}

uint64_t recover_process(const std::string& blocks_path, const std::string& rings_path) {
  uint64_t records = 0;
  {
    ProcessFile file(blocks_path, rings_path);
    records = file.recovered_records;
    std::string chunks = file.recovered_chunks();
    std::string json = "{\"end_state\": \"lost\", \"exit_code\": -1, \"ended_ns\": " + std::to_string(file.last_ns) +
                       ", \"counters\": {\"records_recovered\": " + std::to_string(records);
    for (const auto& [name, value] : file.counters) json += ", \"" + name + "\": " + std::to_string(value);
    json += '}';
    if (!file.failure.empty()) {
      json += ", \"failure\": ";
      append_json_text(json, file.failure);
      json += ", \"failed_ns\": " + std::to_string(file.failed_ns);
    }
    append_chunk(chunks, kEndChunk, 0, 1, json + "}");
    OpenedFile out(blocks_path, O_WRONLY | O_APPEND);
    // Left there, the header of a torn chunk would claim what is appended as its own.
    if (file.sound_bytes() < out.bytes && ftruncate(out.fd, off_t(file.sound_bytes())) != 0)
      throw std::system_error(errno, std::generic_category(), blocks_path);
    out.bytes = file.sound_bytes();
    size_t done = 0;
    while (done < chunks.size()) {
      ssize_t n = write(out.fd, chunks.data() + done, chunks.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        int error = n < 0 ? errno : ENOSPC;
        if (ftruncate(out.fd, off_t(out.bytes)) != 0) {
        }  // the checksum cuts a torn chunk
        throw std::system_error(error, std::generic_category(), blocks_path);
      }
      done += size_t(n);
    }
  }
  unlink(statistics_path(blocks_path).c_str());
  unlink(rings_path.c_str());
  return records;
}

}  // namespace strobe
