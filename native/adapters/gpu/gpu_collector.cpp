#include "adapters/gpu/gpu_collector.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "core/format/json_text.h"
#include "core/session/from_environment.h"
#include "core/session/session.h"
#include "core/system/clock.h"
#include "core/system/threads.h"

namespace strobe::gpu {

namespace {

constexpr auto kFlushEvery = std::chrono::milliseconds(1000);
constexpr size_t kFilledAtOnce = 16;  // buffers that wait: 4 MiB
constexpr size_t kMostNodes = 1 << 20;

// The calls that a thread is in.
struct InCalls {
  uint32_t subscription = 0, rests = 0;
  uint32_t open = 0;         // that we have recorded
  uint32_t region = 0;       // of the one that began last
  uint32_t outer = 0;        // that call others: one span is enough
  uint32_t correlation = 0;  // of the one that began last, for what it captures
};
thread_local InCalls in_calls __attribute__((tls_model("initial-exec")));

InCalls& calls_of_thread(uint32_t subscription, uint32_t rests) {
  InCalls& in = in_calls;
  if (in.subscription != subscription || in.rests != rests) {
    // Its end came while another profiler had the library. A rest of the recording ends what is open.
    if (in.open && in.rests == rests) put(kLeave, in.region);
    in = {subscription, rests};
  }
  return in;
}

}  // namespace

Collector& collector() {
  static Collector* one = new Collector;
  return *one;
}

bool Collector::start(Vendor& vendor) {
  if (state_ != kOff && vendor_ != &vendor)
    note(vendor.decoding().adapter, std::string(vendor.decoding().api) + " is not recorded: GPUs of this process are " +
                                        "recorded through " + vendor_->decoding().api);
  if (state_ != kOff) return vendor_ == &vendor && state_ == kOn;
  if (withheld_) {
    withheld_vendor_ = &vendor;
    return false;
  }
  vendor_ = &vendor;
  state_ = kFailed;
  if (!vendor.open(*this)) return false;
  decoder_ = vendor.decoding().decoder(*this, vendor.record_bytes());
  const std::string path = session().file_beside(".gpu");
  if (path.empty() || !buffers_.open(path, vendor.decoding(), vendor.record_bytes()))
    strobe_count("gpu_buffers_not_in_file", 1);
  if (!vendor.start()) return false;
  pthread_atfork(nullptr, nullptr, [] { collector().forked(); });
  state_ = kOn;
  noted_ = session().generation();
  if (!session().recording()) rest();
  if (int error = start_own_thread(thread_, 512 << 10, run, this)) {
    state_ = kFailed;
    note("failed", std::string("the thread that asks for records cannot start: ") + strerror(error));
    return false;
  }
  strobe_streams_told(0);
  strobe_streams_turn_with([](int what) { collector().turned(what); });
  return true;
}

// --- sentences and properties, for the trace

void Collector::note(const char* what, const std::string& sentence) {
  std::lock_guard lock(notes_mutex_);
  sentences_[what] = sentence;
  note_sentences();
}

void Collector::note_sentences() {
  std::string json = "{\"gpu\": {";
  for (const auto& [key, text] : sentences_) {
    if (json.back() != '{') json += ", ";
    append_json_text(json, key);
    json += ": ";
    append_json_text(json, text);
  }
  session().note(json + "}}");
}

void Collector::device(uint32_t number, const std::string& json) {
  std::lock_guard lock(notes_mutex_);
  devices_[number] = json;
  note_devices();
}

void Collector::note_devices() {
  std::string note = "{\"deviceProperties\": [";
  for (const auto& [each, text] : devices_) note += (note.back() == '[' ? "" : ", ") + text;
  session().note(note + "]}");
}

// --- calls, on the program's threads

void Collector::call_begins(const Call& call, uint32_t correlation, bool outer) {
  InCalls& in = calls_of_thread(subscriptions_.load(std::memory_order_relaxed), rests_.load(std::memory_order_relaxed));
  if (!outer && in.outer > 0) return;
  if (outer) in.outer++;
  in.open++, in.region = call.region, in.correlation = correlation;
  put(kEnter, call.region);
  if (!call.launches) return;
  if (!in_use()) use();  // since before we were called
  launches_.begin(correlation, monotonic_ns());
  lines_.begin(correlation);
}

void Collector::call_ends(const Call& call, uint32_t correlation, uint32_t number, int32_t returned, bool outer) {
  InCalls& in = calls_of_thread(subscriptions_.load(std::memory_order_relaxed), rests_.load(std::memory_order_relaxed));
  if (!outer && in.outer > 0) return;
  if (!in.open) return;  // it began before we were called
  in.open--;
  if (outer && in.outer > 0) in.outer--;
  in.correlation = 0;
  if (call.launches && returned != 0 && returned != STROBE_NOTHING_32) launches_.cancel(correlation);
  const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(correlation, number), STROBE_TWO(returned, STROBE_NOTHING_32)};
  strobe_row(STROBE_ROW_CALL, values);
  put(kLeave, call.region);
}

uint32_t Collector::call(const CallRecord& record) {
  const Call* call = vendor_->call(record.function);
  if (!call || !call->region) return 0;
  if (call->launches) {
    use();
    launches_.begin(record.correlation, record.start_ns);
    if (record.failed) launches_.cancel(record.correlation);
  }
  return call->region;
}

void Collector::name_function(uint64_t function, const std::string& name) {
  buffers_.add_name(function_address(function), name);
}

// A kernel of a graph belongs to the code that put it in there, not only to whoever launches the graph.
void Collector::node_added(uint64_t node) {
  const uint32_t correlation = in_calls.rests == rests_.load() ? in_calls.correlation : 0;
  if (!correlation) return;
  launches_.cancel(correlation);  // captured: nothing runs now
  lines_.keep(correlation);
  std::lock_guard lock(nodes_mutex_);
  if (captured_by_.size() < kMostNodes) captured_by_[node] = correlation;
}

void Collector::node_cloned(uint64_t node, uint64_t original) {
  std::lock_guard lock(nodes_mutex_);
  if (captured_by_.size() >= kMostNodes) return;
  if (const auto known = captured_by_.find(original); known != captured_by_.end()) captured_by_[node] = known->second;
}

uint32_t Collector::captured_by(uint64_t graph_node) {
  std::lock_guard lock(nodes_mutex_);
  const auto known = captured_by_.find(graph_node);
  return known == captured_by_.end() ? 0 : known->second;
}

// --- buffers, on threads of the library

uint8_t* Collector::take_buffer(size_t& bytes) {
  uint8_t* buffer = buffers_.take(bytes);
  if (!buffer) bytes = 0, strobe_count("gpu_buffers_refused", 1);
  return buffer;
}

void Collector::completed(uint8_t* buffer, size_t valid) {
  if (!buffer) return;
  // Of whoever had the library before us: its memory is not ours to read, and never to free.
  if (!buffers_.gave(buffer)) return strobe_count("gpu_buffers_of_others", 1);
  buffers_.completed(buffer, valid);
  std::lock_guard lock(mutex_);
  filled_.push_back({buffer, valid});
  if (filled_.size() >= kFilledAtOnce) changed_.notify_one();
}

void Collector::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

// --- our thread

void* Collector::run(void* self) {
  pthread_setname_np(pthread_self(), "strobe gpu");
  producer.busy = true;  // what it calls is not work of the program
  static_cast<Collector*>(self)->run();
  return nullptr;
}

void Collector::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, kFlushEvery,
                      [this] { return asked_ != kAskedNothing || wish_ || woken_ || filled_.size() >= kFilledAtOnce; });
    const int asked = std::exchange(asked_, kAskedNothing);
    const bool last = asked == STROBE_STREAMS_END || asked == STROBE_STREAMS_EXIT;
    const Wish wish = std::exchange(wish_, kNothing);
    woken_ = false;
    lock.unlock();
    if (wish == kYield) let_go();
    if (wish == kTakeBack) begin_again();
    if (wish == kGoOn) go_on();
    if (asked == STROBE_STREAMS_REST || asked == STROBE_STREAMS_END) record_all();
    // What was over by now is recorded after this flush. Records of calls come when they are over.
    const int64_t now_ns = monotonic_ns() - vendor_->calls_late_ns();
    if (state_ == kOn) {
      if (!resting_) vendor_->each_round();
      vendor_->flush(false);
      if (last) vendor_->flush(true);
    }
    record_completed(last);
    const int64_t until_ns = launches_.reported_until(now_ns), yielded_ns = yielded_ns_;
    // The other profiler's events come when it ends.
    strobe_streams_told(last ? INT64_MAX : yielded_ns ? std::min(until_ns, yielded_ns) : until_ns);
    if (asked == STROBE_STREAMS_REST || asked == STROBE_STREAMS_END) rest();
    lock.lock();
    if (wish) granted_++, done_.notify_all();
    if (asked != kAskedNothing) rounds_++, done_.notify_all();
  }
}

// What has been launched already, too, unless that takes long: its end would not be seen later.
void Collector::record_all() {
  const int64_t now_ns = monotonic_ns();
  for (int ms = 0; state_ == kOn && !resting_; ms++) {
    vendor_->flush(false);
    record_completed();
    if (ms == kLongestEndMs || launches_.reported_until(now_ns) >= now_ns) return;
    usleep(1000);
  }
}

// A program whose recording rests is as fast as without one.
void Collector::rest() {
  if (state_ != kOn || resting_) return;
  resting_ = true;
  rests_++;
  vendor_->rest();
}

void Collector::go_on() {
  if (const uint32_t generation = session().generation(); noted_ != generation) {
    noted_ = generation;
    std::lock_guard lock(notes_mutex_);
    note_devices(), note_sentences();
  }
  if (state_ != kOn || !resting_) return;
  resting_ = false;
  vendor_->go_on();
}

void Collector::record_completed(bool last) {
  std::vector<Filled> filled;
  {
    std::lock_guard lock(mutex_);
    filled.swap(filled_);
  }
  if (names_changed_.exchange(false)) decoder_->forget_names();
  buffers_.reported(0), buffers_.recorded_waits(kNoWaitYet);
  for (const Filled& each : filled) {
    buffers_.reporting(each.buffer);
    vendor_->read(each.buffer, each.valid, *decoder_, spans_);
  }
  sort_by_start(spans_);
  without_inner_calls(spans_);
  uint64_t reported = 0;
  {
    std::lock_guard lock(recording_mutex_);
    if (!yielding_ && !spans_.empty()) last_round_.clear();
    last_round_.insert(last_round_.end(), spans_.begin(), spans_.end());
    for (DeviceSpan& each : spans_) {
      const int64_t start_ns = each.span.start_ns;
      if (!each.span.launched_ns) each.span.launched_ns = launches_.ns_of(each.correlation);
      if (!each.span.launched_ns) each.span.launched_ns = start_ns;
      if (!each.span.region) decoder_->memory().account(each);
      const bool twice =
          start_ns < taken_back_ns_ && ingested_last_.take(each.device, each.stream, each.correlation, start_ns);
      if (!twice) {
        strobe_stream_tell(stream_of(each), &each.span);
        if (each.is_work())
          lines_.add_time(each.correlation, each.captured_by, each.span.end_ns - start_ns,
                          each.span.row_kind == STROBE_ROW_KERNEL);
      }
      buffers_.reported(++reported);
    }
    record_waits(last);
  }
  // Not before all of them are recorded: a graph's kernels share its launch.
  for (const DeviceSpan& each : spans_)
    if (each.is_work()) launches_.reported(each.correlation);
  spans_.clear();
  for (const Filled& each : filled) buffers_.give_back(each.buffer);
  count_losses();
}

void Collector::record_waits(bool last) {
  if (!spans_.empty()) use();  // since before we were called
  std::vector<DeviceSpan> waits;
  decoder_->waits().take(waits, last);
  for (const DeviceSpan& each : waits) {
    strobe_stream_tell(stream_of(each), &each.span);
    buffers_.recorded_waits(each.span.start_ns);
  }
}

void Collector::count_losses() {
  const auto grow = [this](const char* name, uint64_t total) {
    uint64_t& counted = counted_[name];
    if (total > counted) strobe_count(name, total - counted), counted = total;
  };
  const Costs& costs = decoder_->costs();
  const Memory& memory = decoder_->memory();
  grow("gpu_overhead_ms", uint64_t(costs.overhead_ns / 1'000'000));
  grow("gpu_driver_ms", uint64_t(costs.driver_ns / 1'000'000));
  grow("gpu_jit_ms", uint64_t(costs.compile_ns / 1'000'000));
  grow("gpu_jit_compilations", costs.compilations);
  grow("gpu_cpu_page_faults", memory.cpu_page_faults());
  grow("gpu_page_faults", memory.gpu_page_faults());
  grow("gpu_launches_without_work", launches_.lost());
  if (const uint64_t dropped = vendor_->dropped()) strobe_count("gpu_records_dropped", dropped);
}

strobe_stream* Collector::stream_of(const DeviceSpan& span) {
  if (beside_streams(span.stream)) {
    auto* open = span.stream == kUnifiedMemoryStream ? strobe_stream_open : strobe_beside_streams_open;
    return open(name_beside_streams(span.device, span.stream).c_str(), span.device, span.stream);
  }
  strobe_stream*& stream = streams_[{span.context, span.stream}];
  if (stream) return stream;
  if (span.is_call())
    return stream = strobe_task_open(calls_row(vendor_->decoding(), span.stream).c_str(), span.stream);
  const auto [known, fresh] = context_numbers_.try_emplace({span.device, span.context}, 0);
  if (fresh) {
    for (const auto& [key, number] : context_numbers_) known->second += key.first == span.device;
    known->second--;  // the first one of a device is 0
  }
  std::string name = stream_name(span.device, span.stream);
  if (known->second) name += " context " + std::to_string(span.context);
  stream = strobe_stream_open(name.c_str(), span.device, uint64_t(known->second) << 32 | span.stream);
  return stream;
}

uint32_t Collector::region(const char* name, uint8_t role) {
  strobe_region_info info{};
  info.name = name;
  // Without a vendor another profiler has recorded: --with-torch-profiler only.
  info.paradigm = (state_ == kOff ? *decoding("") : vendor_->decoding()).paradigm;
  info.role = role;
  return strobe_region(&info);
}

std::string Collector::kernel_name(const char* name) {
  if (!name) return "<unnamed kernel>";
  buffers_.add_name(name, name);
  return name;
}

// --- ends

void Collector::turned(int what) {
  if (what != STROBE_STREAMS_GO_ON)
    finish(what);
  else
    grant(kGoOn);
}

void Collector::finish(int what) {
  if (state_ != kOn && state_ != kYielded) return;
  std::unique_lock lock(mutex_);
  const uint64_t before = rounds_;
  asked_ = what;
  changed_.notify_one();
  if (!done_.wait_for(lock, kLongestWait, [&] { return rounds_ != before; }))
    strobe_count("gpu_flush_did_not_end", 1);
  else if (what != STROBE_STREAMS_REST)
    buffers_.remove();
}

void Collector::forked() {
  if (state_ == kOff) return;
  state_ = kForked;
  buffers_.forget();
}

}  // namespace strobe::gpu

extern "C" int strobe_gpu_start(strobe::gpu::Vendor* vendor) {
  const strobe::Inside inside;
  // Between two recording windows, too: a GPU is opened once.
  if (!strobe::session().active() && !strobe::start_from_environment(vendor->decoding().adapter)) return 0;
  return strobe::gpu::collector().start(*vendor) ? 1 : 0;
}
