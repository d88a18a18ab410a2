#include "adapters/cupti/collector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "adapters/cupti/memory.h"
#include "adapters/cupti/of_others.h"
#include "adapters/cupti/probe.h"
#include "core/clock.h"
#include "core/from_environment.h"
#include "core/json_text.h"
#include "core/own_thread.h"
#include "core/session.h"

namespace strobe::cupti {

namespace {

constexpr auto kFlushEvery = std::chrono::milliseconds(1000);
constexpr size_t kFilledAtOnce = 16;  // buffers that wait: 4 MiB
constexpr size_t kMostNodes = 1 << 20;
constexpr int64_t kLongestCallNs = 1'000'000'000;  // that launches something
constexpr uint64_t kMostUntimed = 10000;           // one after the other

// The calls that a thread is in.
struct InCalls {
  uint32_t subscription = 0, rests = 0;
  uint32_t open = 0;         // that we have recorded
  uint32_t region = 0;       // of the one that began last
  uint32_t runtime = 0;      // of the runtime, which calls the driver: one span is enough
  uint32_t correlation = 0;  // of the one that began last, for what it captures
};
thread_local InCalls in_calls __attribute__((tls_model("initial-exec")));

}  // namespace

Collector& collector() {
  static Collector* one = new Collector;
  return *one;
}

uint64_t Collector::now() { return uint64_t(monotonic_ns()); }

void Collector::say(const char* what, const std::string& sentence) {
  std::lock_guard lock(notes_mutex_);
  said_[what] = sentence;
  note_said();
}

void Collector::note_said() {
  std::string json = "{\"gpu\": {";
  for (const auto& [key, text] : said_) {
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

bool Collector::start() {
  if (state_ != kOff) return state_ == kOn;
  if (withheld_) {
    wanted_ = true;
    return false;
  }
  state_ = kFailed;
  if (const std::string why = verdict(); !why.empty()) {
    say("failed", why);
    return false;
  }
  library_ = open_library();
  if (!library_) {
    say("failed", library_.failure);
    return false;
  }
  const Functions& call = library_;
  decoder_ = std::make_unique<Decoder>(*this, [this](Kind kind, size_t end) { return library_.has(kind, end); });
  if (const std::string path = session().file_beside(".gpu"); path.empty() || !buffers_.open(path))
    strobe_count("gpu_buffers_not_in_file", 1);
  for (uint32_t kind = 1; kind < kKinds; kind++) buffers_.set_record_bytes(Kind(kind), library_.size_of(Kind(kind)));
  runtime_ = chosen_calls(call, kRuntimeDomain, *this), driver_ = chosen_calls(call, kDriverDomain, *this);
  const bool subscribed = subscribe();
  if (call.set_thread_id_type) call.set_thread_id_type(kThreadIdSystem);
  uint8_t zeroed = 1;
  size_t bytes = sizeof zeroed;
  call.activity_set_attribute(kZeroedOutActivityBuffer, &bytes, &zeroed);
  // Before any kind is enabled: from then on CUPTI refuses it.
  if (!call.activity_register_timestamp_callback || call.activity_register_timestamp_callback(now) != kSuccess) {
    say("failed", "CUPTI does not take the clock of the trace: another tool has started it already");
    return false;
  }
  if (const Result result = call.activity_register_callbacks(requested, completed); result != kSuccess) {
    say("failed", "CUPTI takes no buffers: " + library_.text_of(result));
    return false;
  }
  if (!enable(kConcurrentKernel, "kernels")) return false;
  // Instead of a record for each of its kernels.
  if (session_option("cuda-graph-trace") == "graph" && enable(kGraphTrace, "launches of whole graphs"))
    say("whole_graphs", "CUDA graphs are recorded as a whole: what they copy, communicate and fill is not known");
  enable(kMemcpy, "copies"), enable(kMemcpyPeer, "copies between GPUs"), enable(kMemset, "memory sets");
  enable(kOverhead, "CUPTI's own cost");
  enable(kDevice, "properties of GPUs"), enable(kStream, "priorities of streams");
  if (!subscribed) calls_by_records(true);
  enable_levels();
  pthread_atfork(nullptr, nullptr, [] { collector().forked(); });
  state_ = kOn;
  noted_ = session().generation();
  if (!session().recording()) rest();
  if (int error = start_own_thread(thread_, 512 << 10, run, this)) {
    state_ = kFailed;
    say("failed", std::string("the thread that asks for records cannot start: ") + strerror(error));
    return false;
  }
  strobe_streams_told(0);
  strobe_streams_turn_with([](int what) { collector().turned(what); });
  say("recorded_with", "CUPTI of " + library_.release() + " at " + library_.path);
  return true;
}

bool Collector::subscribe() {
  const Functions& call = library_;
  const Result result = call.subscribe(&subscriber_, called, this);
  if (result != kSuccess) {
    subscriber_ = nullptr;
    say("calls", "CUPTI's callbacks are another tool's (" + library_.text_of(result) +
                     "): calls of CUDA are beside their threads, and kernels of a graph are those of its launch");
    return false;
  }
  enable_calls(true);
  for (const uint32_t cbid : {kContextCreated, kModuleUnloadStarting, kGraphNodeCreated, kGraphNodeCloned})
    call.enable_callback(1, subscriber_, kResourceDomain, cbid);
  return true;
}

void Collector::enable_calls(bool on) {
  for (const auto& [domain, calls] : {std::pair(kRuntimeDomain, &runtime_), std::pair(kDriverDomain, &driver_)})
    for (uint32_t cbid = 0; cbid < calls->size(); cbid++)
      if ((*calls)[cbid].region) library_.enable_callback(on, subscriber_, domain, cbid);
}

// They come later than callbacks, when a thread has gone on: not in its own row, but in one beside it.
void Collector::calls_by_records(bool on) {
  if (calls_by_records_ == on) return;
  const Functions& call = library_;
  Result result = kSuccess;
  for (const auto& [kind, calls, one] : {std::tuple(kRuntime, &runtime_, call.activity_enable_runtime_api),
                                         std::tuple(kDriver, &driver_, call.activity_enable_driver_api)}) {
    if (!one) {
      result = std::max(result, on ? call.activity_enable(kind) : call.activity_disable(kind));
      continue;
    }
    for (uint32_t cbid = 0; cbid < calls->size(); cbid++)
      if ((*calls)[cbid].region) result = std::max(result, one(cbid, on));
  }
  calls_by_records_ = on;
  if (!on) return;
  if (result != kSuccess) say("calls", "calls of CUDA are not recorded: " + library_.text_of(result));
  for (const auto& [kind, calls] : {std::pair(kRuntime, &runtime_), std::pair(kDriver, &driver_)})
    for (uint32_t cbid = 0; cbid < calls->size(); cbid++)
      if ((*calls)[cbid].region) buffers_.add_name(call_address(kind, cbid), (*calls)[cbid].name);
}

uint32_t Collector::call(const ApiRecord& record) {
  const Calls& calls = record.kind == kRuntime ? runtime_ : driver_;
  if (record.cbid >= calls.size() || !calls[record.cbid].region) return 0;
  const Call& call = calls[record.cbid];
  if (call.launches) {
    context_seen_ = true;
    launches_.begin(record.correlation, int64_t(record.start));
    if (record.returned) launches_.cancel(record.correlation);
  }
  return call.region;
}

bool Collector::enable(Kind kind, const char* what) {
  // Of devices and streams that are there already, too.
  const bool dumps = (kind == kDevice || kind == kStream || kind == kContext) && library_.activity_enable_and_dump;
  const Result result = dumps ? library_.activity_enable_and_dump(kind) : library_.activity_enable(kind);
  if (result == kSuccess) {
    if (std::find(enabled_.begin(), enabled_.end(), kind) == enabled_.end()) enabled_.push_back(kind);
    return true;
  }
  say((std::string("no ") + what).c_str(), std::string(what) + " are not recorded: " + library_.text_of(result));
  return false;
}

// --- calls, on the program's threads

void Collector::called(void* self, Domain domain, uint32_t cbid, const void* data) {
  auto& that = *static_cast<Collector*>(self);
  if (that.state_.load(std::memory_order_relaxed) != kOn) return;
  if (domain == kRuntimeDomain)
    that.on_call(that.runtime_, domain, cbid, *static_cast<const CallbackData*>(data));
  else if (domain == kDriverDomain)
    that.on_call(that.driver_, domain, cbid, *static_cast<const CallbackData*>(data));
  else if (domain == kResourceDomain)
    that.on_resource(cbid, *static_cast<const ResourceData*>(data));
}

void Collector::on_call(const Calls& calls, Domain domain, uint32_t cbid, const CallbackData& data) {
  if (cbid >= calls.size() || !calls[cbid].region) return;
  const bool runtime = domain == kRuntimeDomain;
  InCalls& in = in_calls;
  const uint32_t subscription = subscriptions_.load(std::memory_order_relaxed);
  const uint32_t rests = rests_.load(std::memory_order_relaxed);
  if (in.subscription != subscription || in.rests != rests) {
    // Its end came while another profiler had the callbacks. A rest of the recording ends what is open.
    if (in.open && in.rests == rests) put(kLeave, in.region);
    in = {subscription, rests};
  }
  if (!runtime && in.runtime > 0) return;
  const Call& call = calls[cbid];
  if (data.site == kEnterSite) {
    if (runtime) in.runtime++;
    in.open++, in.region = call.region, in.correlation = data.correlation;
    put(kEnter, call.region);
    if (call.launches) {
      if (!context_seen_.load(std::memory_order_relaxed)) context_seen_ = true;  // made while nobody told us
      launches_.begin(data.correlation, monotonic_ns());
      lines_.begin(data.correlation);
    }
    return;
  }
  if (!in.open) return;  // it began before we subscribed
  in.open--;
  if (runtime && in.runtime > 0) in.runtime--;
  in.correlation = 0;
  const int32_t returned = data.returned ? *static_cast<const int32_t*>(data.returned) : STROBE_NOTHING_32;
  if (call.launches && returned > 0) launches_.cancel(data.correlation);
  const int64_t values[STROBE_ROW_VALUES] = {STROBE_TWO(data.correlation, cbid),
                                             STROBE_TWO(returned, STROBE_NOTHING_32)};
  strobe_row(STROBE_ROW_CALL, values);
  put(kLeave, call.region);
}

void Collector::on_resource(uint32_t cbid, const ResourceData& data) {
  if (cbid == kContextCreated)
    on_context();
  else if (cbid == kModuleUnloadStarting)
    names_changed_ = true;
  else if (cbid == kGraphNodeCreated || cbid == kGraphNodeCloned)
    on_node(*static_cast<const GraphData*>(data.descriptor), cbid == kGraphNodeCloned);
}

// A kernel of a graph belongs to the code that put it in there, not only to whoever launches the graph.
void Collector::on_node(const GraphData& graph, bool cloned) {
  const Functions& call = library_;
  uint64_t node = 0, original = 0;
  if (!call.get_graph_node_id || call.get_graph_node_id(graph.node, &node) != kSuccess) return;
  const uint32_t correlation = in_calls.rests == rests_.load() ? in_calls.correlation : 0;
  if (!cloned && correlation) {  // captured: nothing runs now
    launches_.cancel(correlation);
    lines_.keep(correlation);
  }
  if (cloned && call.get_graph_node_id(graph.original_node, &original) != kSuccess) return;
  std::lock_guard lock(nodes_mutex_);
  if (captured_by_.size() >= kMostNodes) return;
  if (!cloned) {
    if (correlation) captured_by_[node] = correlation;
  } else if (const auto known = captured_by_.find(original); known != captured_by_.end()) {
    captured_by_[node] = known->second;
  }
}

uint32_t Collector::captured_by(uint64_t graph_node) {
  std::lock_guard lock(nodes_mutex_);
  const auto known = captured_by_.find(graph_node);
  return known == captured_by_.end() ? 0 : known->second;
}

// --- records, on CUPTI's threads

void Collector::requested(uint8_t** buffer, size_t* bytes, size_t* records) {
  *records = 0;  // as many as fit
  *buffer = collector().buffers_.take(*bytes);
  if (!*buffer) *bytes = 0, strobe_count("gpu_buffers_refused", 1);
}

void Collector::completed(Context, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  if (!buffer) return;
  Collector& that = collector();
  // Of whoever had the callbacks before us: its memory is not ours to read, and never to free.
  if (!that.buffers_.gave(buffer)) return strobe_count("gpu_buffers_of_others", 1);
  that.buffers_.completed(buffer, valid);
  std::lock_guard lock(that.mutex_);
  that.filled_.push_back({buffer, valid});
  if (that.filled_.size() >= kFilledAtOnce) that.changed_.notify_one();
}

// --- our thread

void* Collector::run(void* self) {
  pthread_setname_np(pthread_self(), "strobe gpu");
  producer.busy = true;  // what it calls is no work of the program
  static_cast<Collector*>(self)->run();
  return nullptr;
}

void Collector::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, kFlushEvery, [this] {
      return asked_ != kAskedNothing || wish_ || filled_.size() >= kFilledAtOnce || wants_unified_memory();
    });
    const int asked = std::exchange(asked_, kAskedNothing);
    const bool last = asked == STROBE_STREAMS_END || asked == STROBE_STREAMS_EXIT;
    const Wish wish = std::exchange(wish_, kNothing);
    lock.unlock();
    if (wish == kYield) let_go();
    if (wish == kTakeBack) begin_again();
    if (wish == kGoOn) go_on();
    if (asked == STROBE_STREAMS_REST || asked == STROBE_STREAMS_END) tell_all();
    // What was over by now is told after this flush. Of calls records tell when they are over.
    const int64_t now_ns = monotonic_ns() - (calls_by_records_ ? kLongestCallNs : 0);
    if (wants_unified_memory()) enable_unified_memory();
    if (state_ == kOn) flush(false);
    if (state_ == kOn && last) flush(true);
    tell(last);
    const int64_t until_ns = launches_.told_until(now_ns), yielded_ns = yielded_ns_;
    // The other profiler's events come when it ends.
    strobe_streams_told(last ? INT64_MAX : yielded_ns ? std::min(until_ns, yielded_ns) : until_ns);
    if (asked == STROBE_STREAMS_REST || asked == STROBE_STREAMS_END) rest();
    lock.lock();
    if (wish) granted_++, done_.notify_all();
    if (asked != kAskedNothing) rounds_++, done_.notify_all();
  }
}

// What has been launched already, too, unless that takes long: nobody is told of its end later.
void Collector::tell_all() {
  const int64_t now_ns = monotonic_ns();
  for (int ms = 0; state_ == kOn && !resting_; ms++) {
    flush(false);
    tell();
    if (ms == kLongestEndMs || launches_.told_until(now_ns) >= now_ns) return;
    usleep(1000);
  }
}

// A program whose recording rests is as fast as without one. What graphs are made of is followed all the same, and
// allocations where they are asked for: what is in use is known when the recording goes on.
void Collector::rest() {
  if (state_ != kOn || resting_) return;
  resting_ = true;
  rests_++;
  for (const Kind kind : enabled_)
    if (kind != kMemory && kind != kMemoryPool) library_.activity_disable(kind);
  calls_by_records(false);
  if (subscriber_) enable_calls(false);
}

void Collector::go_on() {
  if (const uint32_t generation = session().generation(); noted_ != generation) {
    noted_ = generation;
    std::lock_guard lock(notes_mutex_);
    note_devices(), note_said();
  }
  if (state_ != kOn || !resting_) return;
  resting_ = false;
  if (subscriber_) enable_calls(true);
  for (const Kind kind : std::vector<Kind>(enabled_)) enable(kind, "records");
  calls_by_records(!subscriber_);
}

void Collector::flush(bool forced) {
  // Without a context there is nothing to ask for, and CUPTI may wait for what will never be.
  if (!context_seen_ && subscriber_) return;
  library_.activity_flush_all(forced ? kFlushForced : kFlushCompleted);
}

void Collector::tell(bool last) {
  std::vector<Filled> filled;
  {
    std::lock_guard lock(mutex_);
    filled.swap(filled_);
  }
  if (names_changed_.exchange(false)) decoder_->forget_names();
  buffers_.told(0);
  for (const Filled& each : filled) {
    buffers_.telling(each.buffer);
    Activity* record = nullptr;
    while (library_.activity_get_next_record(each.buffer, each.valid, &record) == kSuccess)
      decoder_->add(*record, spans_);
  }
  watch_times();
  sort_by_start(spans_);
  without_inner_calls(spans_);
  uint64_t told = 0;
  {
    std::lock_guard lock(telling_mutex_);
    if (!yielding_ && !spans_.empty()) last_round_.clear();
    last_round_.insert(last_round_.end(), spans_.begin(), spans_.end());
    for (DeviceSpan& each : spans_) {
      const int64_t start_ns = each.span.start_ns;
      if (!each.span.launched_ns) each.span.launched_ns = launches_.ns_of(each.correlation);  // known by now
      if (!each.span.launched_ns) each.span.launched_ns = start_ns;
      if (!each.span.region) decoder_->memory().account(each);
      const bool twice =
          start_ns < taken_back_ns_ && ingested_last_.take(each.device, each.stream, each.correlation, start_ns);
      if (!twice) {
        strobe_stream_tell(stream_of(each), &each.span);
        if (each.is_work())
          lines_.told(each.correlation, each.captured_by, each.span.end_ns - start_ns,
                      each.span.row_kind == STROBE_ROW_KERNEL);
      }
      buffers_.told(++told);
    }
    tell_waits(last);
  }
  // Not before all of them are told: a graph's kernels share its launch.
  for (const DeviceSpan& each : spans_)
    if (each.is_work()) launches_.told(each.correlation);
  spans_.clear();
  for (const Filled& each : filled) buffers_.give_back(each.buffer);
  count_costs();
  if (const uint64_t more = launches_.lost() - told_lost_)
    strobe_count("gpu_launches_without_work", more), told_lost_ += more;
  size_t dropped = 0;
  if (library_.activity_get_num_dropped_records(nullptr, 0, &dropped) == kSuccess && dropped)
    strobe_count("gpu_records_dropped", dropped);
}

// With graphs CUPTI of CUDA 13.0 may run out of its own buffers (parca-dev/parcagpu issue 23): from then on kernels
// have no times, and memory of the GPU is gone. Nothing is better than that.
void Collector::watch_times() {
  for (const DeviceSpan& each : spans_)
    if (each.is_work()) untimed_ = each.span.start_ns && each.span.end_ns ? 0 : untimed_ + 1;
  if (untimed_ < kMostUntimed) return;
  untimed_ = 0;
  enabled_.clear();  // nor are they enabled again after a profiler of the program
  for (const Kind kind : {kConcurrentKernel, kMemcpy, kMemcpyPeer, kMemset, kGraphTrace})
    library_.activity_disable(kind);
  say("stopped",
      "CUPTI tells of kernels without times since some moment (a known defect with CUDA graphs), so that GPUs "
      "are not recorded any more from there on");
}

strobe_stream* Collector::stream_of(const DeviceSpan& span) {
  if (beside_streams(span.stream)) {
    auto* open = span.stream == kUnifiedMemoryStream ? strobe_stream_open : strobe_beside_streams_open;
    return open(name_beside_streams(span.device, span.stream).c_str(), span.device, span.stream);
  }
  strobe_stream*& stream = streams_[{span.context, span.stream}];
  if (stream) return stream;
  if (span.is_call()) return stream = strobe_task_open(calls_row(span.stream).c_str(), span.stream);
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
  info.paradigm = STROBE_CUDA;
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

}  // namespace strobe::cupti
