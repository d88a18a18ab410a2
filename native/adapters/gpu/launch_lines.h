// launch_lines.h - which source lines were being executed when something was launched, so that they get its time when
// it is reported: with whatever iterations are kept in detail, all of it.
#pragma once
#include <stdint.h>
#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "include/strobe.h"

namespace strobe::gpu {

class LaunchLines {
 public:
  // The calling thread launches something by the call with this number.
  void begin(uint32_t correlation);
  // It puts something into a graph, which may be launched whenever the program likes.
  void keep(uint32_t correlation);
  // What was launched by a call has run for so long; `captured_by`: the call that put it into its graph, or 0. One
  // thread at a time.
  void add_time(uint32_t correlation, uint32_t captured_by, int64_t ns, bool kernel);

 private:
  // Launches that are remembered at least: many times what waits to be reported.
  static constexpr size_t kRemembered = 1 << 17;
  struct Lines {
    uint32_t epoch;  // the counters' lifetime
    std::vector<strobe_line*> lines;
    bool operator<(const Lines& other) const {
      return epoch != other.epoch ? epoch < other.epoch : lines < other.lines;
    }
  };
  using Numbered = std::unordered_map<uint32_t, const Lines*>;  // by correlation
  const Lines* open();                                          // of the calling thread; NULL: none

  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::map<Lines, char> known_;  // few: one for each place of the program
  Numbered latest_, before_, captured_;
};

}  // namespace strobe::gpu
