#include "adapters/nvtx/nvtx_ranges.h"

#include <mutex>
#include <unordered_map>

#include "core/rings/ring.h"
#include "core/session/session.h"
#include "core/system/clock.h"
#include "include/strobe.h"

namespace strobe::nvtx {

namespace {

struct OpenRange {
  uint32_t region;
  uint32_t generation;  // of the recording that it belongs to
  int64_t start_ns;
};
constexpr uint32_t kOfNone = ~0u;

// With adapters_mutex: a fork's child has those of its parent, and may end them.
std::unordered_map<uint64_t, OpenRange>& open_ranges() {
  static auto* all = new std::unordered_map<uint64_t, OpenRange>;
  return *all;
}
uint64_t last_id = 0;

// Those that are open belong to what is recorded until now, and whoever ends them later ends nothing.
void leave_open_ranges(int what) {
  if (what == STROBE_STREAMS_GO_ON) return;
  uint64_t left = 0;
  {
    std::lock_guard lock(session().adapters_mutex());
    for (auto& [id, range] : open_ranges())
      if (range.generation == session().generation()) range.generation = kOfNone, left++;
  }
  if (left) strobe_count("nvtx_ranges_never_ended", left);
}

// They nest neither in the thread where they began nor with each other, so that no location of a thread can hold them.
void write(const OpenRange& range, int64_t end_ns) {
  const strobe_stream_span span{range.region, 0, range.start_ns, end_ns, range.start_ns, {}};
  strobe_stream* const ranges = strobe_task_open("NVTX ranges", 0);
  std::lock_guard lock(session().streams_mutex());
  if (!strobe_stream_tell(ranges, &span) && session().recording(range.start_ns))
    strobe_count("nvtx_start_end_ranges_not_recorded", 1);
}

}  // namespace

uint64_t start_range(uint32_t region) {
  if (!region || producer.busy) return 0;  // from inside of the recorder, where the lock may be held
  const Inside inside;
  // A forked child may begin with this.
  const uint32_t generation = session().awake() ? session().generation() : kOfNone;
  const OpenRange range{region, generation, monotonic_ns()};
  std::lock_guard lock(session().adapters_mutex());
  auto& open = open_ranges();
  if (open.size() >= kMostOpen) {
    strobe_count("nvtx_start_end_ranges_not_recorded", 1);
    return 0;
  }
  strobe_streams_turn_with(leave_open_ranges);
  open.emplace(++last_id, range);
  return last_id;
}

void end_range(uint64_t id) {
  if (!id || producer.busy) return;
  const Inside inside;
  OpenRange range{};
  int64_t end_ns = 0;
  {
    std::lock_guard lock(session().adapters_mutex());
    auto& open = open_ranges();
    const auto found = open.find(id);
    if (found == open.end()) return strobe_count("nvtx_pops_without_push", 1);
    range = found->second, end_ns = monotonic_ns();
    open.erase(found);
  }
  if (range.generation == session().generation()) write(range, end_ns);
}

}  // namespace strobe::nvtx
