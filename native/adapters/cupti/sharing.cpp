// sharing.cpp - another profiler of the process gets the GPUs, and gives them back: CUPTI has one user at a time.
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "adapters/cupti/collector.h"
#include "adapters/cupti/of_others.h"
#include "core/clock.h"

namespace strobe::cupti {

namespace {

constexpr int64_t kEdgeNs = 1'000'000'000;  // of what it tells, what we may be told, too

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

bool Collector::take_back() {
  if (withheld_.exchange(false) && wanted_) return start();
  return grant(kTakeBack);
}

void Collector::let_go() {
  const Functions& call = library_;
  if (state_ != kOn) return;
  yielding_ = true;
  tell_all();
  state_ = kYielded;
  yielded_ns_ = monotonic_ns();
  for (const Kind kind : enabled_) call.activity_disable(kind);
  calls_by_records(false);
  flush(false);
  if (subscriber_) call.unsubscribe(subscriber_);
  subscriber_ = nullptr, resting_ = false;
  subscriptions_++;
  std::string to;
  {
    std::lock_guard lock(mutex_);
    to = yielded_to_;
  }
  times_shared_++;
  say("shared", "yielded to " + to + ", which has not given the GPUs back");
}

// Its clock and its buffers are ours, or why not.
bool Collector::ours_again(std::string& why) {
  const Functions& call = library_;
  // Some releases refuse a clock once anything has been enabled. Then it is the one that was registered last.
  if (call.activity_register_timestamp_callback(now) != kSuccess) {
    const uint64_t before = now();
    uint64_t between = 0;
    if (call.get_timestamp(&between) != kSuccess || between < before || between > now()) {
      why = "CUPTI's clock is that of another tool now";
      return false;
    }
  }
  if (const Result result = call.activity_register_callbacks(requested, completed); result != kSuccess) {
    why = "CUPTI takes no buffers: " + library_.text_of(result);
    return false;
  }
  return true;
}

void Collector::begin_again() {
  if (state_ != kYielded) return;
  const Functions& call = library_;
  std::string why, to;
  {
    std::lock_guard lock(mutex_);
    to = yielded_to_;
  }
  yielding_ = false;
  const int64_t yielded_ns = yielded_ns_.exchange(0);
  shared_ns_ += monotonic_ns() - yielded_ns;
  if (!ours_again(why)) {
    state_ = kFailed;
    say("failed", "nothing of GPUs is recorded any more since " + to + " ran: " + why);
    return;
  }
  if (context_seen_) call.activity_flush_all(kFlushCompleted);  // the other one's buffers, before ours are filled
  names_changed_ = true;                                        // modules may have come and gone
  const bool subscribed = subscribe();
  subscriptions_++;
  uint64_t ingested;
  {
    std::lock_guard lock(telling_mutex_);
    taken_back_ns_ = monotonic_ns();
    told_last_.clear();
    ingested = ingested_;
  }
  state_ = kOn;
  for (const Kind kind : std::vector<Kind>(enabled_)) enable(kind, "records");
  calls_by_records(!subscribed);
  char shared[32];
  snprintf(shared, sizeof shared, "%.3f s", double(shared_ns_) / 1e9);
  say("shared", to + " had the GPUs for " + shared + " (" + std::to_string(times_shared_) +
                    (times_shared_ == 1 ? " time): " : " times): ") + std::to_string(ingested) +
                    " kernels, copies and sets of that time are its own, without the calls that launched them" +
                    (subscribed ? "" : "; it keeps CUPTI's callbacks"));
}

uint64_t Collector::ingest(const strobe_gpu_span* spans, size_t count) {
  std::vector<const strobe_gpu_span*> in_order(count);
  for (size_t i = 0; i < count; i++) in_order[i] = spans + i;
  std::stable_sort(in_order.begin(), in_order.end(), [](auto* a, auto* b) { return a->start_ns < b->start_ns; });
  TextsOfOthers texts(*this);
  std::lock_guard lock(telling_mutex_);
  for (const DeviceSpan& each : last_round_)
    told_last_.add(each.device, each.stream, each.correlation, each.span.start_ns);
  last_round_.clear();
  ingested_last_.clear();
  int64_t end_ns = 0;
  for (const strobe_gpu_span* each : in_order) end_ns = std::max(end_ns, each->end_ns);
  uint64_t told = 0;
  for (const strobe_gpu_span* each : in_order) {
    const auto& [device, stream, correlation] = std::tie(each->device, each->stream, each->correlation);
    if (told_last_.take(device, stream, correlation, each->start_ns)) continue;
    const strobe_stream_span span = texts.span_of(*each);
    const std::string name = stream_name(device, stream);
    told += strobe_stream_tell(strobe_stream_open(name.c_str(), device, stream), &span) != 0;
    if (each->end_ns >= end_ns - kEdgeNs) ingested_last_.add(device, stream, correlation, each->start_ns);
  }
  ingested_ += told;
  if (told) context_seen_ = true;
  return told;
}

}  // namespace strobe::cupti
