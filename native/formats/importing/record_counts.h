// record_counts.h - what became of each record of an imported file: it was taken, it was left out for a reason that is
// known, or nobody here knows its kind. The three together are the records of the file.
#pragma once
#include <stdint.h>
#include <map>
#include <string>
#include <string_view>

namespace strobe {

class RecordCounts {
 public:
  // What a reader's function for one record returns. Only the three below make it: no way through such a function
  // leaves a record uncounted.
  class Counted {
    Counted() = default;
    friend class RecordCounts;
  };

  // Reasons and kinds go to `counters`.
  explicit RecordCounts(std::map<std::string, uint64_t>& counters) : counters_(counters) {}

  Counted taken() { return taken_++, Counted(); }
  // `reason`: a counter of its own, null where nothing of use is lost. `kind`: shown with the number.
  Counted left_out(const char* reason, std::string_view kind = {}) {
    return count(left_out_, "left_out: ", reason, kind);
  }
  Counted unknown(std::string_view kind, const char* reason) { return count(unknown_, "unknown: ", reason, kind); }
  // Of those that were taken, some could not be kept in the end.
  void not_kept(uint64_t n) {
    save();
    const auto taken = counters_.find("records_taken");
    if (!n || taken == counters_.end()) return;
    n = n < taken->second ? n : taken->second;
    taken->second -= n, counters_["records_left_out"] += n;
  }
  void save() {
    if (taken_) counters_["records_taken"] += taken_;
    if (left_out_) counters_["records_left_out"] += left_out_;
    if (unknown_) counters_["records_unknown"] += unknown_;
    taken_ = left_out_ = unknown_ = 0;
  }

 private:
  static constexpr size_t kMostKinds = 64;  // a file may name any number of them
  static constexpr size_t kLongestKind = 60;

  Counted count(uint64_t& sum, const char* prefix, const char* reason, std::string_view kind) {
    sum++;
    if (reason) counters_[reason]++;
    if (!kind.empty()) {
      std::string name(prefix);
      for (const char c : kind.substr(0, kLongestKind)) name += c < ' ' || c == '\x7f' ? '?' : c;
      const auto found = counters_.find(name);
      if (found != counters_.end())
        found->second++;
      else
        counters_[kinds_++ < kMostKinds ? name : prefix + std::string("other kinds")]++;
    }
    return Counted();
  }

  std::map<std::string, uint64_t>& counters_;
  uint64_t taken_ = 0, left_out_ = 0, unknown_ = 0;
  size_t kinds_ = 0;
};

}  // namespace strobe
