// What a killed process left beside its file: snapshots of what was folded, and rings with what was not written.
#include <string.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "core/spans/location_builder.h"
#include "kernels/reading/process_file.h"
#include "kernels/reading/ring_recovery.h"
#include "kernels/reading/table_chunks.h"

namespace strobe {

// A process that still runs goes on writing while it is read: snapshots and blocks belong together if no snapshot came
// in between.
std::vector<Snapshot> ProcessFile::map_with_snapshots(const std::string& blocks_path) {
  const std::string path = beside(blocks_path, ".statistics");
  auto newest = [](const std::vector<Snapshot>& snapshots) { return snapshots.empty() ? 0 : snapshots[0].sequence; };
  std::vector<Snapshot> before = read_snapshots(path);
  for (int attempt = 0; attempt < 20; attempt++) {
    file_ = MappedFile::joined(blocks_path);
    std::vector<Snapshot> after = read_snapshots(path);
    if (newest(after) == newest(before)) break;
    before = std::move(after);
  }
  return before;
}

// What was folded is in the newest snapshot whose position the blocks of the location reach: the blocks were written
// after it. What came later is replayed from the ring. Of a thread that had ended it may be in the file already.
void ProcessFile::recover_statistics(const std::vector<Snapshot>& snapshots) {
  auto newest_for = [&](uint32_t location) -> const Snapshot* {
    const auto known = ring_positions_.find(location);
    const uint64_t reached = known == ring_positions_.end() ? 0 : known->second.records;
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
        recovered_chunks_ += bytes.substr(0, sizeof header + header.payload_bytes);
      }
      bytes.remove_prefix(sizeof header + header.payload_bytes);
    }
    append_statistics(recovered_chunks_, table, [&](uint32_t location) { return counts(location, snapshot); });
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
// They are still in the ring, and so are their spans. Call paths of that block may lie behind them: these are known
// now, so they go back into the file.
void ProcessFile::drop_torn_rows() {
  const size_t end = sound_bytes_;
  std::set<size_t> dropped;
  while (!row_chunks_.empty()) {
    const RowChunk& chunk = row_chunks_.back();
    const auto known = ring_positions_.find(chunk.trailer.ring_location);
    const uint64_t reached = known == ring_positions_.end() ? 0 : known->second.records;
    if (chunk.trailer.span_position <= reached) break;
    tables[chunk.table].pop_back();
    if (tables[chunk.table].empty()) tables.erase(chunk.table);
    sound_bytes_ = std::min(sound_bytes_, chunk.offset);
    dropped.insert(chunk.offset);
    row_chunks_.pop_back();
  }
  const std::string_view bytes = file_.bytes();
  ChunkHeader header;
  for (size_t at = sound_bytes_; at < end; at += sizeof header + header.payload_bytes) {
    memcpy(static_cast<void*>(&header), bytes.data() + at, sizeof header);
    if (!sound_header(header)) break;
    if (dropped.count(at))
      in_file_.erase(content_of(header));
    else
      kept_chunks_ += bytes.substr(at, sizeof header + header.payload_bytes);
  }
}

void ProcessFile::recover(const std::string& blocks_path, const std::string& rings_path) {
  const MappedFile rings(rings_path, MAP_SHARED);
  if (rings.bytes().size() < kRingsHeaderBytes) return;
  if (reinterpret_cast<const RingsHeader*>(rings.bytes().data())->magic == kRingsMagic) {
    drop_torn_rows();
    RingRecovery::RowsWritten rows_written;
    for (const RowChunk& chunk : row_chunks_) {
      uint64_t& until = rows_written[{chunk.trailer.ring_location, chunk.trailer.kind, chunk.location}];
      until = std::max(until, chunk.trailer.row_position);
    }
    RingRecovery recovery(*this, rings.bytes(), ring_positions_, rows_written, recovered_chunks_);
    recovery.run(is_held(blocks_path) ? std::string() : beside(blocks_path, ".gpu"));
    recovered_records = recovery.records();
    // A kill can cut a write between two pages. What that chunk was to hold is still in the rings: nothing is lost.
    if (!recovery.overwritten() && torn_bytes_) bytes_lost -= torn_bytes_, chunks_damaged--;
  }
  const uint64_t in_file = statistics.executions();
  read_chunks(recovered_chunks_, false);
  recovered_executions = statistics.executions() - in_file;
  if (const uint64_t count = statistics.short_spans()) counters["short_spans"] = count;
  for (auto& [id, location] : locations) location.ends.sort();
}

// A kill between a write and the note that it was done leaves in memory what is in the file, and two snapshots may hold
// the same classes: nothing may be there twice.
std::string ProcessFile::recovered_chunks() const {
  std::string chunks = kept_chunks_;
  std::string_view bytes = recovered_chunks_;
  std::unordered_set<uint64_t> known = in_file_;
  ChunkHeader header;
  while (bytes.size() >= sizeof header) {
    memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
    const std::string_view chunk = bytes.substr(0, sizeof header + header.payload_bytes);
    const bool may_repeat = header.kind == kSpansChunk || header.kind == kNoteChunk;
    if (may_repeat || known.insert(content_of(header)).second) chunks += chunk;
    bytes.remove_prefix(chunk.size());
  }
  return chunks;
}

}  // namespace strobe
