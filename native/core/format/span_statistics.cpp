#include "core/format/span_statistics.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

namespace strobe {

uint32_t histogram_bucket(int64_t duration_ns) {
  if (duration_ns < 2) return 0;
  const auto value = uint64_t(duration_ns);
  const int octave = 63 - std::countl_zero(value);
  // The mantissa with its leading one at the top; 0xB504... is 2^63 * sqrt(2).
  const bool upper = value << (63 - octave) >= 0xB504F333F9DE6485ull;
  return std::min(uint32_t(2 * octave + upper), kHistogramBuckets - 1);
}

void SpanTotals::add(const SpanTotals& other) {
  count += other.count;
  total_ns += other.total_ns;
  own_ns += other.own_ns;
  min_ns = std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  sum_squares += other.sum_squares;
}

void StatisticsTable::add(const StatisticsKey& key, const SpanStatistics& more) {
  Row& row = row_of(key);
  row.totals.add(more);
  for (uint32_t i = 0; i < kHistogramBuckets; i++)
    if (more.histogram[i]) bucket(row, i) += more.histogram[i];
}

SpanStatistics StatisticsTable::entry(size_t i) const {
  SpanStatistics out;
  static_cast<SpanTotals&>(out) = rows_[i].totals;
  for (uint32_t bucket = 0; bucket < kHistogramBuckets; bucket++)
    if (const uint32_t part = rows_[i].parts[bucket / kPart]) out.histogram[bucket] = parts_[part - 1][bucket % kPart];
  return out;
}

size_t StatisticsTable::bytes() const {
  return rows_.size() * (sizeof(Row) + sizeof(StatisticsKey)) + parts_.size() * sizeof(Part) + slots_.bytes();
}

static uint64_t hash_of(const StatisticsKey& key) {
  return (uint64_t(key.path) << 32 | key.location) ^ uint64_t(key.class_id) << 20;
}

uint32_t StatisticsTable::find(const StatisticsKey& key) const {
  return slots_.find(hash_of(key), [&](uint32_t i) { return keys_[i] == key; });
}

StatisticsTable::Row& StatisticsTable::look_up(const StatisticsKey& key) {
  last_ = find(key);
  if (last_ == Slots::empty) {
    last_ = keys_.size();
    slots_.add(hash_of(key), uint32_t(last_), [this](uint32_t i) { return hash_of(keys_[i]); });
    keys_.push_back(key);
    rows_.emplace_back();
  }
  return rows_[last_];
}

uint64_t StatisticsTable::short_spans() const {
  uint64_t count = 0;
  for (size_t i = 0; i < keys_.size(); i++)
    if (is_short_class(keys_[i].class_id)) count += rows_[i].totals.count;
  return count;
}

uint64_t StatisticsTable::executions() const {
  uint64_t count = 0;
  for (const Row& row : rows_) count += row.totals.count;
  return count;
}

void StatisticsTable::clear() {
  keys_.clear(), rows_.clear(), parts_.clear();
  slots_ = {};
  last_ = 0;
}

// Columns: location, path, class + 1, count, total, own, min, max - min, sum of squares (its bits), buckets in use;
// then their numbers and their counts, of all rows one after the other. Only the column that is being written takes
// memory.
void append_execution_count(std::string& out, uint64_t writer, uint64_t executions) {
  if (!executions) return;
  append_chunk(out, kNoteChunk, 0, 1,
               "{\"executions\": [" + std::to_string(writer) + ", " + std::to_string(executions) + "]}");
}

void append_statistics(std::string& out, const StatisticsTable& table, const std::function<bool(uint32_t)>& chosen) {
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < table.size(); i++)
    if (!chosen || chosen(table.key(i).location)) rows.push_back(i);
  if (rows.empty()) return;
  Writer w;
  std::vector<uint64_t> column;
  const auto write = [&] {
    append_column(w.bytes, column);
    column.clear();
  };
  const auto write_each = [&](auto value_of) {
    for (uint32_t row : rows) column.push_back(value_of(table.key(row), table.totals(row)));
    write();
  };
  const auto each_bucket = [&](auto visit) {  // visit(row, bucket, count) for those in use
    for (uint32_t row : rows) {
      const SpanStatistics s = table.entry(row);
      for (uint32_t i = 0; i < kHistogramBuckets; i++)
        if (s.histogram[i]) visit(row, i, s.histogram[i]);
    }
  };
  uint32_t buckets = 0;
  std::vector<uint64_t> buckets_of_row(table.size());
  each_bucket([&](uint32_t row, uint32_t, uint32_t) { buckets++, buckets_of_row[row]++; });
  column.reserve(std::max<size_t>(rows.size(), buckets));
  using Key = StatisticsKey;
  using Totals = SpanTotals;
  w.u32(buckets);
  write_each([](const Key& key, const Totals&) { return key.location; });
  write_each([](const Key& key, const Totals&) { return key.path; });
  write_each([](const Key& key, const Totals&) { return uint32_t(key.class_id + 1); });
  write_each([](const Key&, const Totals& t) { return t.count; });
  write_each([](const Key&, const Totals& t) { return zigzag(t.total_ns); });
  write_each([](const Key&, const Totals& t) { return zigzag(t.own_ns); });
  write_each([](const Key&, const Totals& t) { return t.count ? zigzag(t.min_ns) : 0; });
  write_each([](const Key&, const Totals& t) { return t.count ? zigzag(t.max_ns - t.min_ns) : 0; });
  write_each([](const Key&, const Totals& t) { return std::bit_cast<uint64_t>(t.sum_squares); });
  for (uint32_t row : rows) column.push_back(buckets_of_row[row]);
  write();
  each_bucket([&](uint32_t, uint32_t bucket, uint32_t) { column.push_back(bucket); });
  write();
  each_bucket([&](uint32_t, uint32_t, uint32_t count) { column.push_back(count); });
  write();
  append_chunk(out, kStatisticsChunk, 0, uint32_t(rows.size()), w.bytes);
}

bool decode_statistics(std::string_view payload, uint32_t count, StatisticsTable& into) {
  ByteReader c{payload};
  const uint32_t all_buckets = c.u32();
  std::vector<uint64_t> columns[10], numbers, counts;
  for (auto& column : columns)
    if (!read_column(c, count, column)) return false;
  if (!read_column(c, all_buckets, numbers) || !read_column(c, all_buckets, counts)) return false;
  size_t bucket = 0;
  for (uint32_t row = 0; row < count; row++) {
    SpanStatistics s;
    s.count = columns[3][row];
    s.total_ns = unzigzag(columns[4][row]);
    s.own_ns = unzigzag(columns[5][row]);
    if (s.count) s.min_ns = unzigzag(columns[6][row]), s.max_ns = s.min_ns + unzigzag(columns[7][row]);
    memcpy(&s.sum_squares, &columns[8][row], 8);
    for (uint64_t n = columns[9][row]; n-- > 0; bucket++) {
      if (bucket >= numbers.size() || numbers[bucket] >= kHistogramBuckets) return false;
      s.histogram[numbers[bucket]] = uint32_t(counts[bucket]);
    }
    into.add({uint32_t(columns[0][row]), uint32_t(columns[1][row]), uint32_t(columns[2][row]) - 1}, s);
  }
  return true;
}

namespace {

constexpr uint32_t kSnapshotMagic = 0x53534253;  // "SBSS"

struct SlotHeader {
  uint32_t magic = kSnapshotMagic;
  uint32_t version = 1;
  uint64_t sequence = 0;
  uint64_t payload_bytes = 0;
  uint32_t crc_payload = 0;
  uint32_t crc_header = 0;  // of the 28 bytes before it
};
static_assert(sizeof(SlotHeader) == 32);

bool read_slot(int fd, int slot, Snapshot& out) {
  SlotHeader header;
  const off_t at = off_t(uint64_t(slot) * kSnapshotStride);
  if (pread(fd, static_cast<void*>(&header), sizeof header, at) != ssize_t(sizeof header)) return false;
  if (header.magic != kSnapshotMagic || header.crc_header != crc32c(&header, sizeof header - 4) ||
      header.payload_bytes > kSnapshotStride)
    return false;
  std::string payload(header.payload_bytes, '\0');
  if (pread(fd, payload.data(), payload.size(), at + off_t(sizeof header)) != ssize_t(payload.size())) return false;
  if (crc32c(payload.data(), payload.size()) != header.crc_payload) return false;
  ByteReader c{payload};
  out.sequence = header.sequence;
  out.main_location = c.u32();
  for (uint32_t n = c.u32(); c.ok && n > 0; n--) {
    const uint32_t location = c.u32();
    out.folded_until[location] = c.u64();
  }
  if (!c.ok) return false;
  out.chunks = c.bytes;
  return true;
}

}  // namespace

std::string encode_snapshot(const Snapshot& snapshot) {
  Writer w;
  w.u32(snapshot.main_location);
  w.u32(uint32_t(snapshot.folded_until.size()));
  for (const auto& [location, position] : snapshot.folded_until) w.u32(location), w.u64(position);
  w.bytes += snapshot.chunks;
  SlotHeader header;
  header.sequence = snapshot.sequence;
  header.payload_bytes = w.bytes.size();
  header.crc_payload = crc32c(w.bytes.data(), w.bytes.size());
  header.crc_header = crc32c(&header, sizeof header - 4);
  if (w.bytes.size() + sizeof header > kSnapshotStride) return {};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + w.bytes;
}

std::vector<Snapshot> read_snapshots(const std::string& path) {
  std::vector<Snapshot> found;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return found;
  for (int slot = 0; slot < 2; slot++)
    if (Snapshot snapshot; read_slot(fd, slot, snapshot)) found.push_back(std::move(snapshot));
  close(fd);
  std::sort(found.begin(), found.end(), [](const Snapshot& a, const Snapshot& b) { return a.sequence > b.sequence; });
  return found;
}

}  // namespace strobe
