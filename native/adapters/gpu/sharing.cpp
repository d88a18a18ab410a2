// sharing.cpp - another profiler of the process gets the GPUs, and gives them back: a vendor's library has one user at
// a time.
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "adapters/gpu/foreign_spans.h"
#include "adapters/gpu/gpu_collector.h"
#include "core/rings/ring.h"
#include "core/system/clock.h"

namespace strobe::gpu {

namespace {

constexpr int64_t kEdgeNs = 1'000'000'000;  // of what it has recorded, what we may record, too

}  // namespace

bool Collector::grant(Wish wish) {
  if (wish == kGoOn ? state_ != kOn && state_ != kYielded : state_ != (wish == kYield ? kOn : kYielded)) return false;
  std::unique_lock lock(mutex_);
  const uint64_t before = granted_;
  wish_ = wish;
  changed_.notify_one();
  if (done_.wait_for(lock, kLongestWait, [&] { return granted_ != before; }))
    return state_ == (wish == kYield ? kYielded : kOn);
  strobe_count("gpu_not_handed_over", 1);
  return false;
}

bool Collector::yield(const char* to) {
  if (state_ == kOff) withheld_ = true;
  {
    std::lock_guard lock(mutex_);
    yielded_to_ = to;
  }
  return grant(kYield);
}

std::string Collector::yielded_to() {
  std::lock_guard lock(mutex_);
  return yielded_to_;
}

bool Collector::take_back() {
  if (withheld_.exchange(false) && withheld_vendor_) return start(*withheld_vendor_);
  return grant(kTakeBack);
}

void Collector::let_go() {
  if (state_ != kOn) return;
  yielding_ = true;
  record_all();
  state_ = kYielded;
  yielded_ns_ = monotonic_ns();
  vendor_->let_go();
  resting_ = false;
  subscriptions_++;
  times_shared_++;
  note("shared", "yielded to " + yielded_to() + ", which has not given the GPUs back");
}

void Collector::begin_again() {
  if (state_ != kYielded) return;
  std::string why;
  const std::string to = yielded_to();
  yielding_ = false;
  const int64_t yielded_ns = yielded_ns_.exchange(0);
  shared_ns_ += monotonic_ns() - yielded_ns;
  names_changed_ = true;  // modules may have come and gone
  uint64_t ingested;
  {
    std::lock_guard lock(recording_mutex_);
    taken_back_ns_ = monotonic_ns();
    recorded_last_.clear();
    ingested = ingested_;
  }
  if (!vendor_->take_back(why)) {
    state_ = kFailed;
    note("failed", "nothing of GPUs is recorded any more since " + to + " ran: " + why);
    return;
  }
  subscriptions_++;
  state_ = kOn;
  vendor_->go_on();
  char shared[32];
  snprintf(shared, sizeof shared, "%.3f s", double(shared_ns_) / 1e9);
  note("shared", to + " had the GPUs for " + shared + " (" + std::to_string(times_shared_) +
                     (times_shared_ == 1 ? " time): " : " times): ") + std::to_string(ingested) +
                     " kernels, copies and sets of that time are its own, without the calls that launched them" +
                     (why.empty() ? "" : "; " + why));
}

uint64_t Collector::ingest(const strobe_gpu_span* spans, size_t count) {
  std::vector<const strobe_gpu_span*> in_order(count);
  for (size_t i = 0; i < count; i++) in_order[i] = spans + i;
  std::stable_sort(in_order.begin(), in_order.end(), [](auto* a, auto* b) { return a->start_ns < b->start_ns; });
  ForeignSpans foreign(*this);
  std::lock_guard lock(recording_mutex_);
  for (const DeviceSpan& each : last_round_)
    recorded_last_.add(each.device, each.stream, each.correlation, each.span.start_ns);
  last_round_.clear();
  ingested_last_.clear();
  int64_t end_ns = 0;
  for (const strobe_gpu_span* each : in_order) end_ns = std::max(end_ns, each->end_ns);
  uint64_t recorded = 0;
  for (const strobe_gpu_span* each : in_order) {
    const auto& [device, stream, correlation] = std::tie(each->device, each->stream, each->correlation);
    if (recorded_last_.take(device, stream, correlation, each->start_ns)) continue;
    const strobe_stream_span span = foreign.span_of(*each);
    const std::string name = stream_name(device, stream);
    recorded += strobe_stream_tell(strobe_stream_open(name.c_str(), device, stream), &span) != 0;
    if (each->end_ns >= end_ns - kEdgeNs) ingested_last_.add(device, stream, correlation, each->start_ns);
  }
  ingested_ += recorded;
  if (recorded) use();
  return recorded;
}

}  // namespace strobe::gpu

using strobe::gpu::collector;

extern "C" int strobe_gpu_yield(const char* to) {
  const strobe::Inside inside;
  return collector().yield(to) ? 1 : 0;
}
extern "C" int strobe_gpu_take_back() {
  const strobe::Inside inside;
  return collector().take_back() ? 1 : 0;
}
extern "C" int strobe_gpu_recorded() { return collector().recording(); }
extern "C" int strobe_gpu_yielded() { return collector().state() == strobe::gpu::Collector::kYielded; }
extern "C" void strobe_gpu_say(const char* what, const char* sentence) {
  const strobe::Inside inside;
  collector().note(what, sentence);
}
extern "C" uint64_t strobe_gpu_ingest(const strobe_gpu_span* spans, size_t count) {
  const strobe::Inside inside;
  return collector().ingest(spans, count);
}
