// Between recording windows: the session keeps its files and its rings, nothing is recorded, and no thread of ours
// runs.
#include "core/session.h"

namespace strobe {

void Session::mute() {
  std::lock_guard windows(windows_);
  if (muted_.exchange(true)) return;
  window_++;
  muted_since_ns_ = monotonic_ns();
  was_muted_ = true;
  pause();  // from now on every record comes to slow_put, which drops it
  std::lock_guard control(control_);
  if (active()) end_open_spans();
}

void Session::unmute() {
  std::lock_guard windows(windows_);
  if (!muted_) return;
  {
    std::lock_guard control(control_);
    if (active()) {
      // What a thread wrote that had looked at its limit before it was taken away.
      end_open_spans();
      count("unrecorded_ms", uint64_t((monotonic_ns() - muted_since_ns_) / 1000000));
      next_sample_ns_ = monotonic_ns();
    }
    recording_since_ns_ = monotonic_ns();
    muted_ = false;
  }
  resume();
}

// The drainer rests. Spans end where the window does; the ends that the program comes to later are expected.
void Session::end_open_spans() {
  round(false);
  for (Slot* slot : live_) {
    LocationBuilder& builder = *slot->builder;
    builder.end_open(header()->last_pair.ns, slot->read);
    if (collector_ && !collector_->plain()) continue;  // rows wait for their iteration's end
    if (builder.dirty()) seal(*slot);
  }
}

}  // namespace strobe
