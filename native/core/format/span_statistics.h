// span_statistics.h - what is left of the spans that were folded: per location, call path, and class of iterations the
// count, times, and a histogram. Also the `statistics` chunk, and the file of snapshots that makes them survive a kill.
#pragma once
#include <stdint.h>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format/blocks.h"
#include "core/spans/growing_tables.h"

namespace strobe {

constexpr uint32_t kNoClass = 0xFFFFFFFF;  // folded outside of any iteration
constexpr uint32_t kHistogramBuckets = 64;

// Classes of what was left out because it is short (short_spans.h), in iterations that are kept: the class of the
// iteration, with a bit. Classes are few.
constexpr uint32_t kShortBit = 0x80000000;
inline uint32_t short_class(uint32_t class_id) { return class_id == kNoClass ? kNoClass - 1 : class_id | kShortBit; }
inline bool is_short_class(uint32_t class_id) { return class_id != kNoClass && (class_id & kShortBit); }
// The class that an entry belongs to, whatever it was left out for.
inline uint32_t plain_class(uint32_t class_id) { return class_id >= kNoClass - 1 ? kNoClass : class_id & ~kShortBit; }

// Half octaves: bucket 2e holds durations from 2^e ns, bucket 2e + 1 those from sqrt(2) * 2^e ns. Bucket 0 also holds
// zero, the last one everything from 3 s on.
uint32_t histogram_bucket(int64_t duration_ns);

struct StatisticsKey {
  uint32_t location = 0, path = 0, class_id = kNoClass;
  bool operator==(const StatisticsKey&) const = default;
};

struct SpanTotals {
  uint64_t count = 0;
  int64_t total_ns = 0;
  // Without what ran inside. Negative where spans were folded directly inside of one that stays in detail: the sum of
  // both is exact.
  int64_t own_ns = 0;
  int64_t min_ns = INT64_MAX, max_ns = INT64_MIN;  // meaningless while the count is 0
  double sum_squares = 0;                          // of durations in ns

  void add(const SpanTotals& other);
};

struct SpanStatistics : SpanTotals {
  uint32_t histogram[kHistogramBuckets] = {};
};

// Entries by key, in order of first use. Of a histogram only the parts in use
// take memory: usual durations of a function lie in one or two of them. Rows never move, so that a table that grows
// takes no more than it holds.
class StatisticsTable {
 public:
  // Entries that a user of the table makes before it folds keys, and those with folded keys that may follow.
  static constexpr uint32_t kLimit = 16384, kFoldedLimit = kLimit + 4096;

  void add(const StatisticsKey& key, int64_t duration_ns, int64_t own_ns) {  // one span
    Row& row = row_of(key);
    SpanTotals& t = row.totals;
    t.count++;
    t.total_ns += duration_ns;
    t.own_ns += own_ns;
    if (duration_ns < t.min_ns) t.min_ns = duration_ns;
    if (duration_ns > t.max_ns) t.max_ns = duration_ns;
    t.sum_squares += double(duration_ns) * double(duration_ns);
    bucket(row, histogram_bucket(duration_ns))++;
  }
  void add_own(const StatisticsKey& key, int64_t own_ns) { row_of(key).totals.own_ns += own_ns; }
  void add(const StatisticsKey& key, const SpanStatistics& more);

  bool has(const StatisticsKey& key) const { return find(key) != Slots::empty; }
  size_t size() const { return keys_.size(); }
  const StatisticsKey& key(size_t i) const { return keys_[i]; }
  const SpanTotals& totals(size_t i) const { return rows_[i].totals; }
  SpanStatistics entry(size_t i) const;
  size_t bytes() const;  // memory held
  void clear();
  uint64_t short_spans() const;  // executions in entries of short classes
  uint64_t executions() const;   // in all entries

 private:
  static constexpr uint32_t kPart = 8;  // buckets
  using Part = std::array<uint32_t, kPart>;
  struct Row {
    SpanTotals totals;
    std::array<uint32_t, kHistogramBuckets / kPart> parts{};  // of the histogram: index in parts_ + 1, 0: empty
  };
  Row& row_of(const StatisticsKey& key) {
    if (last_ < keys_.size() && keys_[last_] == key) return rows_[last_];
    return look_up(key);
  }
  uint32_t& bucket(Row& row, uint32_t number) {
    uint32_t& part = row.parts[number / kPart];
    if (!part) parts_.emplace_back(), part = uint32_t(parts_.size());
    return parts_[part - 1][number % kPart];
  }
  uint32_t find(const StatisticsKey& key) const;
  Row& look_up(const StatisticsKey& key);
  std::deque<StatisticsKey> keys_;
  std::deque<Row> rows_;
  std::deque<Part> parts_;
  Slots slots_;
  size_t last_ = 0;
};

// Appends a statistics chunk with the entries of these locations (by default all), if there are any.
void append_statistics(std::string& out, const StatisticsTable& table,
                       const std::function<bool(uint32_t location)>& chosen = {});
// Appends a note: so many executions are in the statistics chunks that `writer` (a number of its own) has written so
// far.
void append_execution_count(std::string& out, uint64_t writer, uint64_t executions);
bool decode_statistics(std::string_view payload, uint32_t count, StatisticsTable& into);  // false: damaged

// The file process-<pid>.statistics: two slots that are written in turn, so that one of them is always whole. A
// snapshot holds, as chunks of the block file, what the process would write at its orderly end; and for each location
// up to where in its ring (in records) spans had been folded. For a location it counts if the block file reaches that
// position.
struct Snapshot {
  uint64_t sequence = 0;  // 0: none
  uint32_t main_location = 0xFFFFFFFF;
  std::map<uint32_t, uint64_t> folded_until;
  std::string chunks;
};
constexpr uint64_t kSnapshotStride = 16u << 20;  // bytes between the slots; the file is sparse
// What is to be written at (sequence % 2) * kSnapshotStride; empty if it does not fit.
std::string encode_snapshot(const Snapshot& snapshot);
// The sound snapshots of a file, the newest first; empty without the file.
std::vector<Snapshot> read_snapshots(const std::string& path);

// Moves the entries for which `chosen(key)` is true out of a table.
template <class Chosen>
StatisticsTable take_statistics(StatisticsTable& from, Chosen&& chosen) {
  StatisticsTable taken, left;
  for (size_t i = 0; i < from.size(); i++) (chosen(from.key(i)) ? taken : left).add(from.key(i), from.entry(i));
  from = std::move(left);
  return taken;
}

}  // namespace strobe
