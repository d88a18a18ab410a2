// cells.h - where the time of a loop's thread goes: by part of the iteration, and by the kind of its innermost span.
// The recorder adds up the cells of an iteration when it ends, the reader those of iterations found after the run.
#pragma once
#include <stdint.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "structure/iterations.h"

namespace strobe {
struct ByteReader;
}

namespace strobe::structure {

// What passes the time, in the order of strobe.model.kinds.HOST_KINDS. Waiting: for the next batch, whatever the loader
// does meanwhile in this thread. Host: functions of the program, and time outside of all spans.
enum Kind : uint8_t { kCommunication = 0, kGpuWait, kGpuCall, kOperators, kWaiting, kHost, kKinds };

// The kind of time in which a span of this region is the innermost one. `role`: as strobe.h numbers it.
Kind kind_of_region(std::string_view name, uint8_t paradigm, uint8_t role);

struct KindInterval {
  int64_t start_ns, end_ns;
  Kind kind;
};

// A stretch of an iteration that belongs to a part.
struct PartInterval {
  int64_t start_ns, end_ns;
  Part part;
  bool waits = false;  // all of it is kWaiting
};

// The time of an iteration: of each part, by kind. The kinds of a part add up to it, the parts to the iteration.
struct Cells {
  int64_t ns[kParts][kKinds] = {};
  int64_t part_ns(int part) const;
};

// When the innermost span of a thread was of which kind, as spans open and close; kHost is what lies between.
class KindTimeline {
 public:
  // `most`: intervals; of a longer iteration the beginning is forgotten.
  explicit KindTimeline(size_t most) : most_(most) {}
  // From now on the innermost span is of this kind.
  void change(int64_t ns, Kind kind);
  // Up to now; what is open counts until then.
  std::span<const KindInterval> until(int64_t ns);
  void forget(int64_t before_ns);

 private:
  const size_t most_;
  std::vector<KindInterval> intervals_;
  size_t first_ = 0;  // those before it are forgotten, and go when they are many
  int64_t since_ns_ = 0;
  Kind kind_ = kHost;
};

// Intervals of both come in order and do not overlap; what no part holds in [start_ns, end_ns) is kRest.
Cells cells_of(std::span<const PartInterval> parts, std::span<const KindInterval> kinds, int64_t start_ns,
               int64_t end_ns);

// The cells of many iterations by column; kHost is what the other kinds leave of a part.
class CellColumns {
 public:
  static constexpr int kColumns = int{kParts} * int{kHost};
  void add(const Cells& cells);
  size_t size() const { return count_; }
  // Empty: 0 in all iterations.
  const std::vector<int64_t>& column(int part, int kind) const { return columns_[part * kHost + kind]; }
  // A part has become shorter: so does what fills it.
  void limit(size_t row, int part, int64_t part_ns);
  void clear();

  // What a payload holds of them: which columns there are, and these.
  void append(std::string& out) const;
  // Without the first `skipped` of the iterations whose data took so long.
  bool read(ByteReader& payload, std::span<const int64_t> data_ns, uint32_t skipped);

 private:
  void put(int column, size_t row, int64_t ns);
  std::vector<int64_t> columns_[kColumns];
  size_t count_ = 0;
};

}  // namespace strobe::structure
