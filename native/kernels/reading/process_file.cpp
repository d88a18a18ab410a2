#include "kernels/reading/process_file.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "core/spans/location_builder.h"
#include "kernels/reading/table_chunks.h"

namespace strobe {

// What other tools wrote may be in any order, and so may be what a disk put in another place. `once`: a process killed
// between the write and the reset of the staging area leaves its samples twice.
static void in_order_of_time(Metric& metric, bool once) {
  auto& times = metric.time_ns;
  const auto before = [once](int64_t a, int64_t b) { return once ? a >= b : a > b; };
  if (std::ranges::adjacent_find(times, before) == times.end()) return;
  std::vector<size_t> order(times.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
  std::vector<int64_t> sorted_times;
  std::vector<double> sorted_values;
  for (size_t i : order) {
    if (once && !sorted_times.empty() && sorted_times.back() == times[i]) continue;
    sorted_times.push_back(times[i]), sorted_values.push_back(metric.value[i]);
  }
  metric.time_ns = std::move(sorted_times), metric.value = std::move(sorted_values);
}

// Blocks that a disk put in another place, or left there twice: how many. Between the others, spans may be missing.
static uint64_t put_in_order(Location& location) {
  auto& blocks = location.blocks;
  const auto follows = [](const Block& a, const Block& b) { return b.first_row < a.first_row + a.count; };
  if (std::ranges::adjacent_find(blocks, follows) == blocks.end()) return 0;
  std::ranges::stable_sort(blocks, {}, &Block::first_row);
  std::vector<Block> kept;
  for (const Block& block : blocks)
    if (kept.empty() || !follows(kept.back(), block)) kept.push_back(block);
  const uint64_t moved = std::max<uint64_t>(1, blocks.size() - kept.size());
  blocks = std::move(kept);
  location.first_ns = blocks.front().first_ns, location.last_ns = blocks.back().last_ns;
  location.spans = blocks.back().first_row + blocks.back().count;
  return moved;
}

constexpr uint32_t kMostLoops = 4096;

// Nothing that was read is an index before it was checked: what it refers to may have been in a damaged chunk. After
// this, call paths have parents before them, and iterations a loop and a class.
static void check_references(ProcessFile& file) {
  for (size_t i = 0; i < file.path_parent.size(); i++) {
    uint32_t& parent = file.path_parent[i];
    if (parent >= i) parent = kNoPath;
    file.path_depth[i] = parent == kNoPath ? 0 : file.path_depth[parent] + 1;  // chunks may be in another order
  }
  uint32_t loops = 0, classes = 0;
  for (const structure::IterationRecord& each : file.iterations)
    loops = std::max(loops, each.loop + 1), classes = std::max(classes, each.class_id + 1);
  if (loops > kMostLoops || classes > structure::kMostClasses + 1) {  // of no recorder
    file.counters["iterations_lost"] += file.iterations.size();
    file.iterations.clear(), file.gpu_lanes.clear();
    file.cells = {};
    return;
  }
  if (file.classes.size() < classes) file.classes.resize(classes);
  std::ranges::sort(file.loops, {}, &structure::LoopRecord::number);
  for (uint32_t number = 0; number < loops; number++) {
    const auto at = file.loops.begin() + number;
    if (at != file.loops.end() && at->number == number) continue;
    structure::LoopRecord lost;
    lost.number = number, lost.kind = structure::LoopKind::structure, lost.ended_ns = -1;
    for (const structure::IterationRecord& each : file.iterations)
      if (each.loop == number) {
        lost.accepted_ns = each.start_ns;
        break;
      }
    lost.reason = "its description was in a damaged part of the file", lost.confidence = "low";
    file.loops.insert(at, std::move(lost));
    file.counters["loops_lost"]++;
  }
}

ProcessFile::ProcessFile(const std::string& blocks_path, const std::string& rings_path) {
  std::vector<Snapshot> snapshots;
  if (rings_path.empty())
    file_ = MappedFile::joined(blocks_path);
  else
    snapshots = map_with_snapshots(blocks_path);
  const std::string_view bytes = file_.bytes();
  ChunkHeader first{};
  if (!bytes.empty())
    memcpy(static_cast<void*>(&first), bytes.data(), bytes.size() < sizeof first ? bytes.size() : sizeof first);
  if (bytes.size() >= sizeof first && sound_header(first) && first.version != kFormatVersion)
    throw std::runtime_error(blocks_path + " has format version " + std::to_string(first.version) +
                             ", this strobe reads version " + std::to_string(kFormatVersion));
  sound_bytes_ = bytes.size();
  index_path_ = beside(blocks_path, ".index");
  still_written_ = !rings_path.empty();
  indexed_ = !still_written_ && read_index();
  if (!indexed_) {
    read_chunks(bytes, true);
    if (bytes.size() >= 4 && first.magic != kChunkMagic && bytes_lost == bytes.size())
      throw std::runtime_error(blocks_path + " is not a strobe block file: no part of it begins with SRBK");
    for (auto& [id, location] : locations) {
      location.ends.sort();
      chunks_damaged += put_in_order(location);
    }
  }
  if (!rings_path.empty() && !ended()) {
    recover_statistics(snapshots);
    recover(blocks_path, rings_path);
  }
  for (auto& [id, location] : locations) {
    if (location.last_ns > last_ns) last_ns = location.last_ns;
    if (kept_from_ns_ && !location.blocks.empty()) location.left_out = location.blocks[0].first_row;
  }
  for (auto& [id, metric] : metrics) in_order_of_time(metric, !metric.as_they_are);
  if (!std::ranges::is_sorted(regions, {}, &Region::id)) std::ranges::stable_sort(regions, {}, &Region::id);
  if (const uint64_t missing = next_iteration_ - iterations.size()) counters["iterations_lost"] += missing;
  check_references(*this);
}

void ProcessFile::read_chunks(std::string_view bytes, bool of_file) {
  size_t at = 0;
  const bool is_file = bytes.data() == file_.bytes().data() && bytes.size() == file_.bytes().size();
  std::unordered_set<uint64_t> known;  // chunks that were read
  std::vector<std::pair<ChunkHeader, std::string_view>> numbered;
  const auto read = [&](const ChunkHeader& header, std::string_view payload) {
    if (of_file && header.kind != kSpansChunk && header.kind != kTableChunk)
      others_.push_back(uint64_t(payload.data() - bytes.data()) - sizeof header);
    read_chunk(header, payload);
  };
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
        // A disk may leave a chunk there twice. (Of a block, its rows show that; notes are repeated on purpose.)
        const uint64_t content = content_of(header);
        // Every part of a flight recorder's file begins with the definitions so far.
        const bool may_repeat = !of_file || header.kind == kSpansChunk || header.kind == kNoteChunk;
        const bool repeated = !may_repeat && !known.insert(content).second && (!still_written_ || in_parts_);
        if (repeated || header.kind == kPaddingChunk) {
          chunks_damaged += repeated && !in_parts_;
          continue;
        }
        if (of_file && still_written_ && header.kind == kTableChunk)
          note_trailer(header, payload, size_t(payload.data() - bytes.data()) - sizeof header);
        if (header.kind == kClassesChunk || header.kind == kIterationsChunk || header.kind == kGpuLanesChunk)
          numbered.emplace_back(header, payload);
        else
          read(header, payload);
      } else {
        chunks_damaged++;
        bytes_lost += sizeof header + header.payload_bytes;
        if (of_file && header.kind == kSpansChunk) damaged_spans_[header.location] += header.count;
      }
      continue;
    }
    // Torn or damaged: go on at the next sound header, if there is one.
    size_t next = at + 1;
    for (;; next++) {
      next = is_file ? file_.find("SRBK", next) : bytes.find("SRBK", next);
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
  if (of_file && still_written_) in_file_ = std::move(known);
  // Whatever order they are in: each counts on those before it.
  std::ranges::stable_sort(numbered, {},
                           [](const auto& each) { return std::pair(each.first.kind, each.first.location); });
  for (const auto& [header, payload] : numbered) read(header, payload);
}

void ProcessFile::read_chunk(const ChunkHeader& header, std::string_view payload) {
  ByteReader c{payload};
  switch (header.kind) {
    case kProcessChunk:
      process_json.emplace_back(payload);
      break;
    case kEndChunk:
      end_json.emplace_back(payload);
      break;
    case kNoteChunk:
      begins_part(payload);
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
    case kSourceLoopsChunk:
      for (uint32_t i = 0; i < header.count; i++) {
        const uint32_t region = c.u32();
        std::string loops(c.text());
        if (!c.ok) break;
        source_loops[region] = std::move(loops);
      }
      break;
    case kLocationChunk: {
      Location& location = locations[header.location];
      location.id = header.location;
      location.thread_id = c.u64();
      location.kind = c.u8();
      location.name = c.text();
      if (!c.bytes.empty()) location.device = int64_t(c.u64());
      break;
    }
    case kPathsChunk:
      // Paths of a damaged chunk are lost; those after it keep their numbers.
      if (header.count > payload.size() / 8 || header.location > PathTable::kLimit) break;
      if (const size_t end = size_t(header.location) + header.count; path_parent.size() < end) {
        path_parent.resize(end, kNoPath);
        path_region.resize(end, 0);
        path_depth.resize(end, 0);
      }
      for (uint32_t i = header.location; i < header.location + header.count; i++) {
        path_parent[i] = c.u32(), path_region[i] = c.u32();
        path_depth[i] = path_parent[i] < i ? path_depth[path_parent[i]] + 1 : 0;
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
        const uint32_t id = c.u32();
        const int64_t time = int64_t(c.u64());
        const auto value = c.raw<double>();
        if (!c.ok) break;
        Metric& metric = metrics[id];
        metric.as_they_are |= header.location == kSamplesAsTheyAre;
        metric.time_ns.push_back(time);
        metric.value.push_back(value);
        if (time > last_ns) last_ns = time;
      }
      break;
    case kLoopsChunk:
      if (!structure::decode_loops(payload, header.count, loops)) chunks_damaged++;
      break;
    case kClassesChunk:
      if (!structure::decode_classes(payload, header.location, header.count, classes, extra_calls)) chunks_damaged++;
      break;
    case kIterationsChunk:
      if (!structure::decode_iterations(payload, header.location, header.count, iterations, cells, next_iteration_))
        chunks_damaged++;
      break;
    case kGpuLanesChunk:
      if (!structure::decode_gpu_lanes(payload, header.location, header.count, gpu_lanes)) chunks_damaged++;
      break;
    case kStatisticsChunk:
      if (!decode_statistics(payload, header.count, statistics)) chunks_damaged++;
      break;
    case kTextsChunk:
      if (size_t(header.location) + header.count > file_.bytes().size() / 4) break;  // a text has four bytes at least
      if (texts.size() < size_t(header.location) + header.count) texts.resize(size_t(header.location) + header.count);
      for (uint32_t i = 0; i < header.count && c.ok; i++) {
        const std::string_view text = c.long_text();
        if (c.ok) texts[size_t(header.location) + i] = text;
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
      break;  // a kind of a later version: the format wants it skipped
  }
}

// {"part": [number, ns]}: the first of these that is there shows whether parts were removed.
void ProcessFile::begins_part(std::string_view note) {
  constexpr std::string_view kBegin = "{\"part\": [";
  if (!note.starts_with(kBegin)) return;
  if (!in_parts_ && process_json.empty())
    if (const size_t comma = note.find(','); comma != note.npos)
      kept_from_ns_ = strtoll(std::string(note.substr(comma + 1)).c_str(), nullptr, 10);
  in_parts_ = true;
}

const std::vector<ProcessFile::TableChunk>& ProcessFile::table_chunks(const std::string& name) const {
  static const std::vector<TableChunk> none;
  const auto found = tables.find(name);
  if (found == tables.end()) return none;
  const std::lock_guard guard(ordered_lock_);
  const auto [at, is_new] = ordered_tables_.try_emplace(name, found->second);
  std::vector<TableChunk>& chunks = at->second;
  if (!is_new || chunks.size() < 2) return chunks;
  std::map<uint32_t, std::vector<std::pair<int64_t, size_t>>> by_location;  // first row, and where the chunk is
  for (size_t i = 0; i < chunks.size(); i++)
    if (const auto row = whole(chunks[i].payload) ? first_row(chunks[i].payload, chunks[i].count) : std::nullopt)
      by_location[chunks[i].location].push_back({*row, i});
  for (const auto& [location, places] : by_location) {
    auto sorted = places;
    std::ranges::stable_sort(sorted, {}, &std::pair<int64_t, size_t>::first);
    for (size_t i = 0; i < places.size(); i++) chunks[places[i].second] = found->second[sorted[i].second];
  }
  return chunks;
}

// Of a chunk of the file; those that an index names are checked when they are read.
bool ProcessFile::whole(std::string_view payload) const {
  if (!indexed_) return true;
  ChunkHeader header;
  memcpy(static_cast<void*>(&header), payload.data() - sizeof header, sizeof header);
  if (sound_header(header) && header.payload_bytes == payload.size() &&
      crc32c(payload.data(), payload.size()) == header.crc_payload)
    return true;
  const std::lock_guard guard(damaged_lock_);
  damaged_later_[payload.data()] = payload.size();
  return false;
}

bool ProcessFile::is_damaged(std::string_view payload) const {
  const std::lock_guard guard(damaged_lock_);
  return damaged_later_.contains(payload.data());
}

uint64_t ProcessFile::damaged_later() const {
  const std::lock_guard guard(damaged_lock_);
  return damaged_later_.size();
}

uint64_t ProcessFile::damaged_later_bytes() const {
  const std::lock_guard guard(damaged_lock_);
  uint64_t bytes = 0;
  for (const auto& [payload, size] : damaged_later_) bytes += sizeof(ChunkHeader) + size;
  return bytes;
}

void ProcessFile::check_blocks() const {
  constexpr size_t kQuicklyRead = 64 << 20;  // 0.2 to 0.5 s on a busy machine
  if (!indexed_ || bytes() > kQuicklyRead) return;
  std::call_once(checked_, [this] {
    for (const auto& [id, location] : locations)
      for (const Block& block : location.blocks) whole(block.payload);
    for (const auto& [name, chunks] : tables)
      for (const TableChunk& chunk : chunks) whole(chunk.payload);
  });
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
    const auto longest = std::max_element(std::begin(each.parts_ns), std::end(each.parts_ns));
    *longest += end - each.start_ns - each.duration_ns;
    each.duration_ns = end - each.start_ns;
    cells.limit(size_t(&each - iterations.data()), int(longest - std::begin(each.parts_ns)), *longest);
  }
  for (auto& [device, known] : gpu_lanes) known.lanes.move([this](int64_t ns) { return clock_.at(ns); });
  move(last_ns);
  if (kept_from_ns_) move(kept_from_ns_);
}

// Rows are numbered without a hole: a hole is where a block was.
std::vector<ProcessFile::LostSpans> ProcessFile::lost_spans() const {
  std::vector<LostSpans> out;
  for (const auto& [id, location] : locations) {
    uint64_t next = location.left_out, found = 0;
    int64_t last = INT64_MIN;
    for (const Block& block : location.blocks) {
      if (is_damaged(block.payload)) continue;
      if (block.first_row > next) {
        found += block.first_row - next;
        out.push_back({id, last, block.first_ns, block.first_row - next});
      }
      next = block.first_row + block.count, last = block.last_ns;
    }
    if (location.spans > next) {
      found += location.spans - next;
      out.push_back({id, last, INT64_MAX, location.spans - next});
    }
    const auto damaged = damaged_spans_.find(id);
    if (damaged != damaged_spans_.end() && damaged->second > found)
      out.push_back({id, last, INT64_MAX, damaged->second - found});
  }
  for (const auto& [id, spans] : damaged_spans_)
    if (!locations.count(id)) out.push_back({id, INT64_MIN, INT64_MAX, spans});
  return out;
}

uint64_t ProcessFile::spans_before(int64_t ns) const {
  uint64_t spans = 0;
  for (const auto& [id, location] : locations) {
    const auto at = location.first_block_since(ns);
    if (at != location.blocks.begin()) spans += std::prev(at)->first_row + std::prev(at)->count - location.left_out;
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

}  // namespace strobe
