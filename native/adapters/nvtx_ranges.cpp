#include "adapters/nvtx_ranges.h"

#include <mutex>
#include <unordered_map>

#include "core/clock.h"
#include "core/ring.h"
#include "core/session.h"
#include "core/system_calls.h"
#include "include/strobe.h"

namespace strobe::nvtx {

namespace {

struct OpenRange {
  uint32_t region;
  int64_t start_ns;
  uint64_t thread_id;
};

// The kernel's number of this thread; its ring knows it without a system call.
uint64_t own_thread() {
  const RingHeader* ring = producer.header;
  return ring && ring->thread_id ? ring->thread_id : thread_id();
}

// With adapters_mutex: a fork's child has those of its parent, and may end them.
std::unordered_map<uint64_t, OpenRange>& open_ranges() {
  static auto* all = new std::unordered_map<uint64_t, OpenRange>;
  return *all;
}
uint64_t last_id = 0;

// They nest neither in the thread where they began nor with each other, so that no location of a thread can hold them.
void told(const FinishedRange&) { strobe_count("nvtx_start_end_ranges_not_recorded", 1); }

}  // namespace

uint64_t start_range(uint32_t region) {
  if (!region || producer.busy) return 0;  // from inside of the recorder, where the lock may be held
  const Inside inside;
  const OpenRange range{region, monotonic_ns(), own_thread()};
  std::lock_guard lock(session().adapters_mutex());
  auto& open = open_ranges();
  if (open.size() >= kMostOpen) {
    strobe_count("nvtx_start_end_ranges_not_recorded", 1);
    return 0;
  }
  open.emplace(++last_id, range);
  return last_id;
}

void end_range(uint64_t id) {
  if (!id || producer.busy) return;
  const Inside inside;
  FinishedRange range{};
  {
    std::lock_guard lock(session().adapters_mutex());
    auto& open = open_ranges();
    const auto found = open.find(id);
    if (found == open.end()) {
      strobe_count("nvtx_pops_without_push", 1);
      return;
    }
    const OpenRange& began = found->second;
    range = {began.region, began.start_ns, monotonic_ns(), began.thread_id, own_thread()};
    open.erase(found);
  }
  told(range);
}

}  // namespace strobe::nvtx
