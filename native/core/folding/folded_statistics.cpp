#include "core/folding/folded_statistics.h"

#include <algorithm>
#include <utility>

#include "core/rings/ring.h"

namespace strobe {

constexpr size_t kEndedAtOnce = 256;                          // threads whose statistics are written together ...
constexpr size_t kRowsAtOnce = StatisticsTable::kLimit / 16;  // ... or rows, where the table is half full

// Beyond the limit, which both tables share, the spans of a region are counted together, and beyond a second one all of
// them are: memory stays bounded.
StatisticsKey FoldedStatistics::room_for(const StatisticsTable& table, const StatisticsKey& key) {
  if (rows() < StatisticsTable::kLimit || table.has(key)) return key;
  without_room_++;
  const uint32_t location = main_location_ != UINT32_MAX ? main_location_ : key.location;
  const uint32_t none = is_short_class(key.class_id) ? short_class(kNoClass) : kNoClass;
  const StatisticsKey of_region{location, paths_.child(kNoPath, paths_.region(key.path)), none};
  if (rows() < StatisticsTable::kFoldedLimit || table.has(of_region)) return of_region;
  return {location, paths_.child(kNoPath, kOverflowRegion), none};
}

bool FoldedStatistics::decide_pending(uint32_t class_id) {
  if (!pending_.size()) return false;
  const StatisticsTable pending = std::exchange(pending_, {});
  for (size_t i = 0; i < pending.size(); i++) {
    StatisticsKey key = pending.key(i);
    key.class_id = is_short_class(key.class_id) ? short_class(class_id) : class_id;
    decided_.add(room_for(decided_, key), pending.entry(i));
  }
  return true;
}

bool FoldedStatistics::crowded() const {
  return rows() >= std::max<size_t>(StatisticsTable::kLimit / 2, rows_not_taken_ + kRowsAtOnce);
}

// The rows of a thread are written at once, or none of them: recovery takes them from the file where it finds any.
std::string FoldedStatistics::take_ended() {
  const bool many = crowded();
  if (ended_.size() < ended_not_taken_ + kEndedAtOnce && !many) return {};
  const auto has_ended = [this](const StatisticsKey& key) { return ended_.count(key.location) > 0; };
  std::set<uint32_t> waiting;  // for the class of the iteration, unless it lasts too long
  if (many) {
    const StatisticsTable of_ended = take_statistics(pending_, has_ended);
    for (size_t i = 0; i < of_ended.size(); i++) decided_.add(of_ended.key(i), of_ended.entry(i));
  }
  for (size_t i = 0; i < pending_.size(); i++)
    if (has_ended(pending_.key(i))) waiting.insert(pending_.key(i).location);
  const StatisticsTable taken = take_statistics(
      decided_, [&](const StatisticsKey& key) { return has_ended(key) && !waiting.count(key.location); });
  ended_ = std::move(waiting);
  ended_not_taken_ = ended_.size();
  rows_not_taken_ = rows();
  std::string chunk;
  write(chunk, taken);
  return chunk;
}

// With how many executions there were until now: what a damaged chunk held is known by it.
void FoldedStatistics::write(std::string& out, const StatisticsTable& table) {
  append_statistics(out, table);
  written_ += table.executions();
  append_execution_count(out, writer_, written_);
}

void FoldedStatistics::append_chunks(std::string& out) const {
  append_statistics(out, decided_);
  append_statistics(out, pending_);
}

void FoldedStatistics::take_last_chunk(std::string& out) {
  write(out, decided_);
  decided_.clear();
}

}  // namespace strobe
