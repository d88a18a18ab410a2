#include "kernels/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdio.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <system_error>
#include <tuple>

#include "core/builder.h"
#include "core/json_text.h"
#include "core/line_counts.h"
#include "core/ring.h"
#include "core/short_spans.h"
#include "core/totals.h"
#include "kernels/gpu_buffers.h"
#include "kernels/side_tables.h"

namespace strobe {

namespace {

struct File {
  int fd = -1;
  size_t bytes = 0;
  int64_t changed_ns = 0;
  File(const std::string& path, int flags) {
    fd = open(path.c_str(), flags | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
      int error = errno;
      if (fd >= 0) close(fd);
      throw std::system_error(error, std::generic_category(), path);
    }
    bytes = size_t(info.st_size);
    changed_ns = int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
  ~File() { close(fd); }
};

std::string beside(const std::string& blocks_path, const char* suffix) {
  return blocks_path.substr(0, blocks_path.rfind(".blocks")) + suffix;
}

// Whether the process that writes it lives.
bool is_held(const std::string& blocks_path) {
  const File file(blocks_path, O_RDONLY);
  return flock(file.fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string statistics_path(const std::string& blocks_path) { return beside(blocks_path, ".statistics"); }

struct Nobody final : SpanObserver {
  void entered(uint32_t, int64_t, uint64_t) override {}
  void closed(uint32_t, size_t, int64_t, int64_t, uint64_t) override {}
};

// As Collector::keep: all waiting rows go into blocks, but for the short ones, which are added to `left_out`.
void seal_without_short(LocationBuilder& builder, ShortSpans& short_spans, PathTable& paths, StatisticsTable& left_out,
                        std::string& chunks, uint64_t position, uint64_t epoch) {
  const uint32_t location = builder.location(), of_none = short_class(kNoClass);
  size_t left = 0;
  do {
    left = builder.fold_short(
        builder.rows(), kBlockSpans,
        [&](uint32_t path, int64_t duration) { return short_spans.is_short(paths.region(path), duration); },
        [&](uint32_t path, int64_t duration, int64_t own) { left_out.add({location, path, of_none}, duration, own); },
        [&](uint32_t path, int64_t duration) { left_out.add_own({location, path, of_none}, -duration); });
    builder.seal_settled(chunks, position, epoch);
  } while (left > 0);
}

}  // namespace

void ProcessFile::map(const std::string& blocks_path) {
  File file(blocks_path, O_RDONLY);
  if (map_) munmap(map_, map_bytes_);
  map_ = nullptr, map_bytes_ = 0;
  state_ = {file.bytes, file.changed_ns};
  if (file.bytes == 0) return;
  void* map = mmap(nullptr, file.bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (map == MAP_FAILED) throw std::system_error(errno, std::generic_category(), blocks_path);
  map_ = map, map_bytes_ = file.bytes;
}

// A process that still runs goes on writing while it is read: snapshots and blocks belong together if no snapshot came
// in between.
std::vector<Snapshot> ProcessFile::map_with_snapshots(const std::string& blocks_path) {
  const std::string path = statistics_path(blocks_path);
  auto newest = [](const std::vector<Snapshot>& snapshots) { return snapshots.empty() ? 0 : snapshots[0].sequence; };
  std::vector<Snapshot> before = read_snapshots(path);
  for (int attempt = 0; attempt < 20; attempt++) {
    map(blocks_path);
    std::vector<Snapshot> after = read_snapshots(path);
    if (newest(after) == newest(before)) break;
    before = std::move(after);
  }
  return before;
}

// What other tools wrote may be in any order.
static void in_order_of_time(Metric& metric) {
  auto& times = metric.time_ns;
  if (std::is_sorted(times.begin(), times.end())) return;
  std::vector<size_t> order(times.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
  std::vector<int64_t> sorted_times;
  std::vector<double> sorted_values;
  for (size_t i : order) sorted_times.push_back(times[i]), sorted_values.push_back(metric.value[i]);
  metric.time_ns = std::move(sorted_times), metric.value = std::move(sorted_values);
}

ProcessFile::ProcessFile(const std::string& blocks_path, const std::string& rings_path) {
  std::vector<Snapshot> snapshots;
  if (rings_path.empty())
    map(blocks_path);
  else
    snapshots = map_with_snapshots(blocks_path);
  std::string_view bytes(static_cast<const char*>(map_), map_bytes_);
  ChunkHeader first{};
  if (!bytes.empty())
    memcpy(static_cast<void*>(&first), bytes.data(), bytes.size() < sizeof first ? bytes.size() : sizeof first);
  if (bytes.size() >= 4 && first.magic != kChunkMagic)
    throw std::runtime_error(blocks_path + " is no strobe block file: it does not begin with SRBK (byte offset 0)");
  if (bytes.size() >= sizeof first && first.version != kFormatVersion)
    throw std::runtime_error(blocks_path + " has format version " + std::to_string(first.version) +
                             ", this strobe reads version " + std::to_string(kFormatVersion));
  sound_bytes_ = bytes.size();
  index_path_ = beside(blocks_path, ".index");
  still_written_ = !rings_path.empty();
  indexed_ = !still_written_ && read_index();
  if (!indexed_) {
    read_chunks(bytes, true);
    for (auto& [id, location] : locations) location.ends.sort();
  }
  if (!rings_path.empty() && !ended()) {
    gpu_path_ = beside(blocks_path, ".gpu");
    still_runs_ = is_held(blocks_path);
    recover_statistics(snapshots);
    recover(rings_path);
  }
  for (auto& [id, location] : locations)
    if (location.last_ns > last_ns) last_ns = location.last_ns;
  for (auto& [id, metric] : metrics) in_order_of_time(metric);
}

ProcessFile::~ProcessFile() {
  if (map_) munmap(map_, map_bytes_);
}

void ProcessFile::read_chunks(std::string_view bytes, bool of_file) {
  size_t at = 0;
  while (at < bytes.size()) {
    ChunkHeader header;
    size_t left = bytes.size() - at;
    bool sound = left >= sizeof header;
    if (sound) {
      memcpy(static_cast<void*>(&header), bytes.data() + at, sizeof header);
      sound = sound_header(header) && header.payload_bytes <= left - sizeof header;
    }
    if (sound) {
      std::string_view payload = bytes.substr(at + sizeof header, header.payload_bytes);
      at += sizeof header + header.payload_bytes;
      if (crc32c(payload.data(), payload.size()) == header.crc_payload) {
        if (of_file && header.kind != kSpansChunk && header.kind != kTableChunk)
          others_.push_back(uint64_t(payload.data() - bytes.data()) - sizeof header);
        if (of_file && still_written_ && header.kind == kTableChunk)
          note_trailer(header, payload, size_t(payload.data() - bytes.data()) - sizeof header);
        read_chunk(header, payload);
      } else {
        chunks_damaged++;
        bytes_lost += sizeof header + header.payload_bytes;
      }
      continue;
    }
    // Torn or damaged: go on at the next sound header, if there is one.
    size_t next = at + 1;
    for (;; next++) {
      next = bytes.find("SRBK", next);
      if (next == bytes.npos || bytes.size() - next < sizeof header) {
        next = bytes.size();
        break;
      }
      memcpy(static_cast<void*>(&header), bytes.data() + next, sizeof header);
      if (sound_header(header)) break;
    }
    if (of_file) {
      bytes_lost += next - at, chunks_damaged++;
      if (next == bytes.size()) sound_bytes_ = at, torn_bytes_ = next - at;
    }
    at = next;
  }
}

void ProcessFile::read_chunk(const ChunkHeader& header, std::string_view payload) {
  Cursor c{payload.data(), payload.data() + payload.size()};
  switch (header.kind) {
    case kProcessChunk:
      process_json.emplace_back(payload);
      break;
    case kEndChunk:
      end_json.emplace_back(payload);
      break;
    case kNoteChunk:
      note_json.emplace_back(payload);
      break;
    case kRegionsChunk:
      for (uint32_t i = 0; i < header.count; i++) {
        Region r;
        r.id = c.u32(), r.paradigm = c.u8(), r.role = c.u8(), r.line = c.u32();
        r.name = c.text(), r.file = c.text(), r.module = c.text();
        if (!c.ok) break;
        regions.push_back(std::move(r));
      }
      break;
    case kLocationChunk: {
      Location& location = locations[header.location];
      location.id = header.location;
      location.thread_id = c.u64();
      location.kind = c.u8();
      location.name = c.text();
      if (c.at < c.end) location.device = int64_t(c.u64());
      break;
    }
    case kPathsChunk:
      // Paths of a damaged chunk are lost; those after it keep their numbers.
      while (path_parent.size() < header.location && path_parent.size() < PathTable::kLimit) {
        path_parent.push_back(kNoPath);
        path_region.push_back(0);
        path_depth.push_back(0);
      }
      for (uint32_t i = 0; i < header.count; i++) {
        uint32_t parent = c.u32(), region = c.u32();
        if (!c.ok) break;
        path_parent.push_back(parent);
        path_region.push_back(region);
        path_depth.push_back(parent < path_depth.size() ? uint16_t(path_depth[parent] + (path_depth[parent] < 65535))
                                                        : 0);
      }
      break;
    case kSpansChunk: {
      SpansView view;
      if (!view_spans(payload, header.count, view)) {
        chunks_damaged++;
        break;
      }
      Location& location = locations[header.location];
      location.id = header.location;
      for (const Close& close : view.closes) location.ends.add(close.row, close.end_ns);
      if (location.blocks.empty()) location.first_ns = view.header.first_ns;
      location.blocks.push_back(
          {payload, header.count, view.header.first_row, view.header.first_ns, view.header.last_ns});
      location.spans = view.header.first_row + header.count;
      location.last_ns = view.header.last_ns;
      ring_positions_[header.location] = {view.header.ring_position, view.header.ring_epoch};
      break;
    }
    case kMetricChunk: {
      Metric& metric = metrics[header.location];
      metric.id = header.location;
      metric.name = c.text(), metric.unit = c.text(), metric.location = c.u32();
      break;
    }
    case kSamplesChunk:
      for (uint32_t i = 0; i < header.count; i++) {
        uint32_t id = c.u32();
        int64_t time = int64_t(c.u64());
        uint64_t bits = c.u64();
        if (!c.ok) break;
        double value;
        memcpy(&value, &bits, 8);
        Metric& metric = metrics[id];
        // A process killed between the write and the reset of the staging area leaves its samples twice.
        if (header.location != kSamplesAsTheyAre && !metric.time_ns.empty() && metric.time_ns.back() >= time) continue;
        metric.time_ns.push_back(time);
        metric.value.push_back(value);
        if (time > last_ns) last_ns = time;
      }
      break;
    case kLoopsChunk:
      if (!structure::decode_loops(payload, header.count, loops)) chunks_damaged++;
      break;
    case kClassesChunk:
      if (!structure::decode_classes(payload, header.location, header.count, classes)) chunks_damaged++;
      break;
    case kIterationsChunk:
      if (!structure::decode_iterations(payload, header.location, header.count, iterations, next_iteration_))
        chunks_damaged++;
      break;
    case kStatisticsChunk:
      if (!decode_statistics(payload, header.count, statistics)) chunks_damaged++;
      break;
    case kTextsChunk:
      if (size_t(header.location) + header.count > map_bytes_ / 4) break;  // a text has four bytes at least
      if (texts.size() < size_t(header.location) + header.count) texts.resize(size_t(header.location) + header.count);
      for (uint32_t i = 0; i < header.count && c.ok; i++) {
        const size_t n = c.u32();
        if (!c.ok || size_t(c.end - c.at) < n || size_t(header.location) + i >= texts.size()) break;
        texts[size_t(header.location) + i] = {c.at, n};
        c.at += n;
      }
      break;
    case kTableChunk: {
      std::string_view name;
      if (header.count <= 1u << 24 && table_name(payload, name))
        tables[std::string(name)].push_back({header.location, header.count, payload});
      else
        chunks_damaged++;
      break;
    }
    case kGraphChunk:
      graphs[header.location] = payload;
      break;
    default:
      break;  // a kind of a later version: skipped, as the format says
  }
}

// What was folded is in the newest snapshot whose position the blocks of the location reach: the blocks were written
// after it. What came later is replayed from the ring. Of a thread that had ended it may be in the file already.
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
  std::set<uint32_t> in_file;
  for (size_t i = 0; i < statistics.size(); i++) in_file.insert(statistics.key(i).location);
  const auto counts = [&](uint32_t location, const Snapshot& snapshot) {
    return !in_file.count(location) && newest_for(location) == &snapshot;
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
        encode_statistics(table, [&](uint32_t location) { return counts(location, snapshot); }, count);
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
  File file(rings_path, O_RDONLY);
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
    std::unordered_map<uint32_t, std::pair<uint8_t, uint8_t>> kinds;
    LateSpans late(*this, recovered_.chunks);
    if (!still_runs_) late.read(gpu_path_);
    if (header.min_duration_ns)
      for (const Region& r : regions) kinds[r.id] = {r.paradigm, r.role};
    ShortSpans short_spans(header.min_duration_ns, [&](uint32_t region) {
      const auto known = kinds.find(region);
      return known == kinds.end() ? std::pair<uint8_t, uint8_t>{} : known->second;
    });
    StatisticsTable left_out;
    Nobody nobody;
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
        append_totals(recovered_.chunks, ring.location, totals_entries(&ring), ring.capacity);
      } else if (ring.magic == kLinesMagic && ring.head.load() * sizeof(strobe_line) <= header.ring_bytes) {
        const char* data = base + kRingsHeaderBytes + i * ring_bytes + kPage;
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
      const auto at_ns = [&](uint64_t t) { return ring.of_stream ? int64_t(t) : line.at(t); };
      LocationBuilder builder(ring.location, paths);
      if (short_spans.on()) builder.observe(&nobody);
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
        builder.resume(location.spans, std::move(stack), location.last_ns, current, position, decoder.epoch);
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
          builder.attached.add(record, at_ns(record.ticks), builder.innermost());
          if (!kind->of_spans) last_ns = std::max(last_ns, at_ns(record.ticks));
          recovered_.records++;
        }
      };
      const auto emit_rows = [&] {
        builder.attached.decide(INT64_MAX, true);
        builder.attached.emit(recovered_.chunks, builder.base_row(), builder.sealed_position(), ring.location,
                              [&late](uint32_t text) { return late.text_of(text); });
      };
      for (uint64_t at = position; at < head; at++) {
        feed_rows_until(at);
        decoder.feed(data[at & (ring.capacity - 1)], builder, at_ns, at);
        recovered_.records++;
        if (builder.full() && !short_spans.on()) builder.seal(recovered_.chunks, at + 1, decoder.epoch), emit_rows();
      }
      feed_rows_until(head);
      if (ring.of_stream == kOfStream) late.feed(builder);
      if (builder.dirty() && short_spans.on())
        seal_without_short(builder, short_spans, paths, left_out, recovered_.chunks, head, decoder.epoch);
      else if (builder.dirty())
        builder.seal(recovered_.chunks, head, decoder.epoch);
      emit_rows();
    }
    late.feed_others(paths);
    recovered_.records += late.fed();
    if (const uint64_t untimed = late.untimed()) counters["stream_spans_untimed"] += untimed;
    uint32_t entries = 0;
    const std::string rows = encode_statistics(left_out, [](uint32_t) { return true; }, entries);
    if (entries) append_chunk(recovered_.chunks, kStatisticsChunk, 0, entries, rows);
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
    if (!overwritten && torn_bytes_) bytes_lost -= torn_bytes_, chunks_damaged--;
  }
  munmap(map, file.bytes);
  recovered_records = recovered_.records;
  read_chunks(recovered_.chunks, false);
  if (const uint64_t count = statistics.short_spans()) counters["short_spans"] = count;
  for (auto& [id, location] : locations) location.ends.sort();
}

// Of a chunk of the file; those that an index names are checked when they are read.
bool ProcessFile::whole(std::string_view payload) const {
  if (!indexed_) return true;
  ChunkHeader header;
  memcpy(static_cast<void*>(&header), payload.data() - sizeof header, sizeof header);
  if (sound_header(header) && header.payload_bytes == payload.size() &&
      crc32c(payload.data(), payload.size()) == header.crc_payload)
    return true;
  damaged_later_++;
  return false;
}

bool ProcessFile::view(const Block& block, SpansView& out) const {
  if (!whole(block.payload) || !view_spans(block.payload, block.count, out)) return false;
  if (!clock_.empty())
    for (OpenSpan& open : out.carry) open.start_ns = clock_.at(open.start_ns);
  return true;
}

bool ProcessFile::decode(const SpansView& view, uint32_t count, SpanColumns& out) const {
  if (!decode_spans(view, count, out)) return false;
  if (clock_.empty()) return true;
  for (size_t i = 0; i < out.start_ns.size(); i++) {
    const int64_t start = out.start_ns[i];
    out.start_ns[i] = clock_.at(start);
    if (out.duration_ns[i] != kOpen) out.duration_ns[i] = clock_.at(start + out.duration_ns[i]) - out.start_ns[i];
  }
  return true;
}

void ProcessFile::use_clock(ClockMap clock) {
  clock_ = std::move(clock);
  const auto move = [&](int64_t& ns) { ns = clock_.at(ns); };
  for (auto& [id, location] : locations) {
    if (!location.blocks.empty()) move(location.first_ns), move(location.last_ns);
    for (Block& block : location.blocks) move(block.first_ns), move(block.last_ns);
    location.ends.move(move);
  }
  for (auto& [id, metric] : metrics)
    for (int64_t& ns : metric.time_ns) move(ns);
  for (structure::LoopRecord& loop : loops) {
    move(loop.accepted_ns);
    if (loop.ended_ns >= 0) move(loop.ended_ns);
  }
  for (structure::IterationRecord& each : iterations) {
    const int64_t end = clock_.at(each.start_ns + each.duration_ns);
    move(each.start_ns), move(each.detail_ns);
    // The parts add up to the duration: what the clocks differ by goes to the longest.
    int64_t& longest = *std::max_element(std::begin(each.parts_ns), std::end(each.parts_ns));
    longest += end - each.start_ns - each.duration_ns;
    each.duration_ns = end - each.start_ns;
  }
  move(last_ns);
}

// Takes blocks and tables from the index, and reads what else there is.
bool ProcessFile::read_index() {
  if (!index_.open(index_path_, state_)) return false;
  const IndexHeader& h = index_.header();
  const char* file = static_cast<const char*>(map_);
  const auto payload = [&](uint64_t offset, uint32_t bytes) {
    return std::string_view(file + offset + sizeof(ChunkHeader), bytes);
  };
  std::vector<std::string_view> others;
  for (uint64_t i = 0; i < h.others; i++) {
    const uint64_t at = index_.others()[i];
    ChunkHeader header;
    memcpy(static_cast<void*>(&header), file + at, sizeof header);
    if (!sound_header(header) || header.payload_bytes > map_bytes_ - at - sizeof header) return false;
    others.push_back({file + at, sizeof header + header.payload_bytes});
  }
  for (const std::string_view chunk : others) read_chunks(chunk, true);
  for (uint32_t i = 0; i < h.tables; i++) {
    const IndexedTable& table = index_.tables()[i];
    tables[std::string(index_.name(table.name))].push_back(
        {table.location, table.count, payload(table.offset, table.payload_bytes)});
  }
  const IndexedBlock* block = index_.blocks();
  const Ends::End* ends = index_.ends();
  for (uint32_t i = 0; i < h.locations; i++) {
    const IndexedLocation& indexed = index_.locations()[i];
    Location& location = locations[indexed.id];
    location.id = indexed.id;
    location.ends.point_to(ends, indexed.ends);
    ends += indexed.ends;
    location.blocks.reserve(indexed.blocks);
    for (const IndexedBlock* end = block + indexed.blocks; block < end; block++)
      location.blocks.push_back({payload(block->offset, block->payload_bytes), block->count, block->first_row,
                                 block->first_ns, block->last_ns});
    if (location.blocks.empty()) continue;
    const Block& last = location.blocks.back();
    location.first_ns = location.blocks.front().first_ns, location.last_ns = last.last_ns;
    location.spans = last.first_row + last.count;
  }
  return true;
}

bool ProcessFile::write_index() const {
  if (indexed_ || still_written_ || chunks_damaged || bytes_lost || !map_) return false;
  const char* file = static_cast<const char*>(map_);
  const auto offset = [&](std::string_view payload) { return uint64_t(payload.data() - file) - sizeof(ChunkHeader); };
  IndexHeader header{};
  header.magic = kIndexMagic, header.version = kIndexVersion, header.blocks_file = state_;
  std::string blocks, ends, indexed_locations, indexed_tables;
  Writer names;
  const auto append = [](std::string& to, const auto& each) {
    to.append(reinterpret_cast<const char*>(&each), sizeof each);
  };
  for (const auto& [id, location] : locations) {
    append(indexed_locations, IndexedLocation{id, 0, location.blocks.size(), location.ends.size()});
    for (const Block& block : location.blocks)
      append(blocks, IndexedBlock{offset(block.payload), block.first_row, block.first_ns, block.last_ns,
                                  uint32_t(block.payload.size()), block.count});
    for (const Ends::End& end : location.ends) append(ends, end);
    header.locations++, header.blocks += location.blocks.size(), header.ends += location.ends.size();
  }
  for (const auto& [name, chunks] : tables) {
    const auto name_at = uint32_t(names.bytes.size());
    names.text(name);
    for (const TableChunk& chunk : chunks)
      append(indexed_tables,
             IndexedTable{offset(chunk.payload), uint32_t(chunk.payload.size()), chunk.location, chunk.count, name_at});
    header.tables += uint32_t(chunks.size());
  }
  header.others = others_.size();
  header.names_bytes = uint32_t(names.bytes.size());
  std::string bytes = std::move(blocks);
  bytes += ends + indexed_locations;
  bytes.append(reinterpret_cast<const char*>(others_.data()), others_.size() * 8);
  bytes += indexed_tables + names.bytes;
  header.crc = crc32c(bytes.data(), bytes.size());
  // Whole or not at all: others may open the trace at the same time.
  const std::string work = index_path_ + "." + std::to_string(getpid());
  const int fd = open(work.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const auto whole = [&](const void* data, size_t size) { return write(fd, data, size) == ssize_t(size); };
  bool written = whole(&header, sizeof header) && whole(bytes.data(), bytes.size());
  written = close(fd) == 0 && written && rename(work.c_str(), index_path_.c_str()) == 0;
  if (!written) unlink(work.c_str());
  return written;
}

uint64_t ProcessFile::spans_before(int64_t ns) const {
  uint64_t spans = 0;
  for (const auto& [id, location] : locations) {
    const auto at = std::lower_bound(location.blocks.begin(), location.blocks.end(), ns,
                                     [](const Block& block, int64_t time) { return block.first_ns < time; });
    if (at != location.blocks.begin()) spans += std::prev(at)->first_row + std::prev(at)->count;
  }
  return spans;
}

void ProcessFile::spans(uint32_t location, int64_t start_ns, int64_t end_ns, Spans& out) const {
  std::vector<size_t> at_depth;  // index of the open span at each depth
  each(location, start_ns, end_ns, [&](uint64_t row, int64_t start, int64_t end, uint32_t path, bool complete) {
    size_t depth = path_depth[path], index = out.row.size();
    int64_t parent = -1;
    if (depth > 0 && depth <= at_depth.size()) {
      size_t p = at_depth[depth - 1];
      // The enclosing span may lie outside the window only if its block was damaged.
      if (path_parent[path] == out.path[p] && out.start_ns[p] + out.duration_ns[p] >= start) {
        parent = out.row[p];
        out.self_ns[p] -= end - start;
      }
    }
    at_depth.resize(depth + 1, 0);
    at_depth[depth] = index;
    out.row.push_back(int64_t(row));
    out.start_ns.push_back(start);
    out.duration_ns.push_back(end - start);
    out.parent.push_back(parent);
    out.self_ns.push_back(end - start);
    out.path.push_back(path);
    out.complete.push_back(complete);
  });
}

uint64_t recover_process(const std::string& blocks_path, const std::string& rings_path) {
  uint64_t records = 0;
  if (ProcessFile file(blocks_path, rings_path); !file.ended()) {
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
    File out(blocks_path, O_WRONLY | O_APPEND);
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
  unlink(beside(blocks_path, ".gpu").c_str());
  unlink(rings_path.c_str());
  return records;
}

}  // namespace strobe
