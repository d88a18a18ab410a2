// gpu_lanes.h - what the time of GPUs goes into, step by step: which kinds of work run at the same time.
//
// The *lane* of a step on a GPU begins with the first activity that was launched since the step began, and ends with
// the first one that was launched since the next step began; first is what starts first, on any stream. So the lanes of
// steps that follow each other have no gap and never overlap:
// - An instant belongs to one lane, and to the set of the kinds of all that runs then, whichever step launched it.
// Where
//   steps overlap on several streams, or an activity ends after the next step's first one has begun, the lane ends
//   there all the same, and what still runs counts for the next one from then on.
// - A step that launches nothing has a lane of length 0.
// - The last one of a row of steps that follow each other ends when all is done that was launched before its end. The
//   lanes of another row begin no earlier.
// - What was launched by a call that is not known was launched when it started.
// The sets, with the empty one (idle), add up to the lane.
#pragma once
#include <stdint.h>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strobe {
struct ByteReader;
}

namespace strobe::structure {

// What an activity of a GPU does, in the order of strobe.gpu.work.KINDS.
enum GpuKind : int8_t { kNoGpuWork = -1, kComputation = 0, kGpuCommunication, kCopy, kGpuKinds };
// Sets of them: bit k stands for kind k.
constexpr int kGpuSets = 1 << kGpuKinds;

// `role`: as strobe.h numbers it. What communicates is known by name: strobe.model.kinds has the words.
GpuKind gpu_kind_of_region(std::string_view name, uint8_t role);

struct GpuActivity {
  int64_t launched_ns, start_ns, end_ns;
  GpuKind kind;
};

struct GpuLane {  // of one step
  int64_t start_ns = 0;
  int64_t ns[kGpuSets] = {};  // while exactly these kinds run
  int64_t end_ns() const;
};

// The lanes of steps that are numbered one after the other, by column.
class GpuLaneColumns {
 public:
  void add(const GpuLane& lane);
  size_t size() const { return starts_ns_.size(); }
  const std::vector<int64_t>& starts_ns() const { return starts_ns_; }
  // Empty: 0 in all lanes.
  const std::vector<int64_t>& column(int set) const { return columns_[set]; }
  void clear();
  // Moves to another clock: the largest set of a lane takes what that changes.
  template <class At>
  void move(At&& at);

  // What a payload holds of them.
  void append(std::string& out) const;
  bool read(ByteReader& payload, uint32_t count, uint32_t skipped);  // without the first `skipped` lanes

 private:
  GpuLane lane(size_t row) const;
  std::vector<int64_t> starts_ns_, columns_[kGpuSets];
};

// The lanes of all GPUs of a process, added up while steps and activities become known.
class GpuLanes {
 public:
  // Activities of a GPU that wait until it is known what started before them, and in which step they were launched. Of
  // more, the oldest are taken as if it were known: what comes late counts from then on.
  static constexpr size_t kMostWaiting = 1u << 16;
  // Steps that wait for the next activity of a GPU; of more, the oldest have launched nothing.
  static constexpr size_t kMostSteps = 1u << 18;

  class Gpu;
  // A part of a GPU whose activities come in order of start: a stream, or one of its locations.
  struct Source {
    Gpu& gpu;
    std::vector<GpuActivity> waiting;
    size_t first = 0;  // those before it are done
  };

  GpuLanes();
  GpuLanes(const GpuLanes&) = delete;
  ~GpuLanes();
  Source& source(int64_t device);
  void add(Source& source, const GpuActivity& activity);
  // The next step. Where it does not begin at the end of the one before, that was the last one of its row.
  void add_step(int64_t start_ns, int64_t end_ns);
  // There is no other step.
  void end_steps() { ended_ = true; }
  // All that was launched before this moment has been added.
  void proceed(int64_t complete_ns);
  // There is no other activity, either: all lanes end.
  void finish();

  // By device: the lanes of steps from number `first` on that are known, but for those that were taken.
  struct Known {
    uint32_t first = 0;
    GpuLaneColumns lanes;
  };
  const std::map<int64_t, Known>& known() const { return known_; }
  size_t most_known() const;  // lanes of one GPU
  void take_known();

 private:
  struct Step {
    int64_t start_ns, end_ns;
  };
  const Step& step(uint64_t number) const { return steps_[size_t(number - first_step_)]; }
  uint64_t end_step() const { return first_step_ + steps_.size(); }
  bool follows(uint64_t number) const {  // whether another step begins where this one ends
    return number + 1 < end_step() && step(number + 1).start_ns == step(number).end_ns;
  }
  bool is_last(uint64_t number) const { return number + 1 < end_step() ? !follows(number) : ended_; }  // of its row
  void forget_steps(int64_t complete_ns);
  std::deque<Step> steps_;  // that some GPU has not passed
  uint64_t first_step_ = 0;
  int64_t decided_ns_ = INT64_MIN;  // in which step what was launched before was launched is known
  bool ended_ = false;
  std::map<int64_t, std::unique_ptr<Gpu>> gpus_;
  std::map<int64_t, Known> known_;
};

// Payload of a chunk, whose header has the number of the first lane.
std::string encode_gpu_lanes(int64_t device, const GpuLaneColumns& lanes);
// Those that are known already are skipped.
bool decode_gpu_lanes(std::string_view payload, uint32_t first, uint32_t count,
                      std::map<int64_t, GpuLanes::Known>& into);

template <class At>
void GpuLaneColumns::move(At&& at) {
  const GpuLaneColumns before = std::move(*this);
  clear();
  for (size_t row = 0; row < before.size(); row++) {
    GpuLane lane = before.lane(row);
    const int64_t start_ns = at(lane.start_ns),
                  longer_ns = at(lane.end_ns()) - start_ns - (lane.end_ns() - lane.start_ns);
    int64_t* largest = lane.ns;
    for (int64_t& ns : lane.ns)
      if (ns > *largest) largest = &ns;
    *largest += longer_ns;
    lane.start_ns = start_ns;
    add(lane);
  }
}

}  // namespace strobe::structure
