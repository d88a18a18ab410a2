// folded_statistics.h - the statistics that folded spans become while the program runs: those of decided iterations,
// and those that wait for the class of the current one. Bounded; locations that have ended leave.
#pragma once
#include <stdint.h>
#include <set>
#include <string>

#include "core/format/span_statistics.h"
#include "core/spans/location_builder.h"
#include "core/system/clock.h"

namespace strobe {

class FoldedStatistics {
 public:
  explicit FoldedStatistics(PathTable& paths) : paths_(paths) {}
  // Where what has no room is counted; UINT32_MAX: where it ran.
  void set_main_location(uint32_t location) { main_location_ = location; }

  // `pending`: the iteration is not over, and its class not known.
  void add(bool pending, const StatisticsKey& key, int64_t duration_ns, int64_t own_ns) {
    StatisticsTable& table = pending ? pending_ : decided_;
    table.add(room_for(table, key), duration_ns, own_ns);
  }
  void add_own(bool pending, const StatisticsKey& key, int64_t own_ns) {
    StatisticsTable& table = pending ? pending_ : decided_;
    table.add_own(room_for(table, key), own_ns);
  }
  // What is pending is of this class. Returns whether there was anything.
  bool decide_pending(uint32_t class_id);

  void location_ended(uint32_t location) { ended_.insert(location); }
  // Whether statistics take so much room that those of locations that have ended should be written now.
  bool crowded() const;
  // A chunk with the statistics of locations that have ended, once there are some; they are in memory no more.
  std::string take_ended();
  void append_chunks(std::string& out) const;
  void take_last_chunk(std::string& out);
  uint64_t without_room() const { return without_room_; }  // spans that were counted together

 private:
  void write(std::string& out, const StatisticsTable& table);
  StatisticsKey room_for(const StatisticsTable& table, const StatisticsKey& key);
  size_t rows() const { return decided_.size() + pending_.size(); }
  PathTable& paths_;
  uint32_t main_location_ = UINT32_MAX;
  StatisticsTable decided_, pending_;
  std::set<uint32_t> ended_;    // locations that may have statistics
  size_t ended_not_taken_ = 0;  // of these, and of all rows, when it was last tried to write some
  size_t rows_not_taken_ = 0;
  uint64_t without_room_ = 0;
  const uint64_t writer_ = uint64_t(clock_pair().ns);  // a process may record several times
  uint64_t written_ = 0;                               // executions
};

}  // namespace strobe
