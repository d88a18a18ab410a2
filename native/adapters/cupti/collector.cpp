#include "adapters/cupti/collector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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
constexpr auto kLongestWait = std::chrono::seconds(5);
// Who yields waits so long for what has been launched already: once another profiler has the GPUs, its end is nobody's.
constexpr int kLongestEndMs = 100;
constexpr int64_t kEdgeNs = 1'000'000'000;  // of what it tells, what we may be told, too
constexpr size_t kFilledAtOnce = 16;        // buffers that wait: 4 MiB
constexpr size_t kMostNodes = 1 << 20;
constexpr uint64_t kMostUntimed = 10000;      // one after the other
constexpr uint32_t kMostUnknownCalls = 1000;  // one after the other

// Calls that are worth a span: they start or stop work, wait for it, or move memory. What only asks is left out, as
// other profilers do: PyTorch asks for the current device before every launch.
struct Chosen {
  const char* prefix;
  bool launches;
};
constexpr Chosen kRuntimeCalls[] = {
    {"cudaLaunch", true},
    {"cudaGraphLaunch", true},
    {"cudaMemcpy", true},
    {"cudaMemset", true},
    {"cudaMalloc", false},
    {"cudaFree", false},
    {"cudaHostAlloc", false},
    {"cudaHostRegister", false},
    {"cudaHostUnregister", false},
    {"cudaMemPrefetch", false},  // what moves is told without the number of its call
    {"cudaDeviceSynchronize", false},
    {"cudaThreadSynchronize", false},
    {"cudaStreamSynchronize", false},
    {"cudaEventSynchronize", false},
    {"cudaEventRecord", false},
    {"cudaStreamWaitEvent", false},
    {"cudaStreamBeginCapture", false},
    {"cudaStreamEndCapture", false},
    {"cudaGraphInstantiate", false},
    {"cudaGraphExecUpdate", false},
    {"cudaGraphUpload", false},
    {"cudaStreamCreate", false},
    {"cudaStreamDestroy", false},
    {"cudaModuleLoad", false},
    {"cudaLibraryLoad", false},
    {"cudaSignalExternal", false},
    {"cudaWaitExternal", false},
    {"cudaDeviceReset", false},
};
constexpr Chosen kDriverCalls[] = {
    {"cuLaunch", true},
    {"cuGraphLaunch", true},
    {"cuMemcpy", true},
    {"cuMemset", true},
    {"cuMemAlloc", false},
    {"cuMemFree", false},
    {"cuMemCreate", false},
    {"cuMemMap", false},
    {"cuMemPrefetch", false},
    {"cuCtxSynchronize", false},
    {"cuStreamSynchronize", false},
    {"cuEventSynchronize", false},
    {"cuEventRecord", false},
    {"cuStreamWaitEvent", false},
    {"cuStreamBeginCapture", false},
    {"cuStreamEndCapture", false},
    {"cuGraphInstantiate", false},
    {"cuModuleLoad", false},
    {"cuLibraryLoad", false},
    {"cuStreamWaitValue", false},
    {"cuStreamWriteValue", false},
    {"cuStreamBatchMemOp", false},
};

// "cudaLaunchKernel_v7000" and "cuMemcpyHtoD_v2" without the version, which no program writes.
std::string plain_name(const char* name) {
  std::string out = name;
  if (const size_t at = out.rfind("_v");
      at != out.npos && at + 2 < out.size() && out.find_first_not_of("0123456789", at + 2) == out.npos)
    out.resize(at);
  return out;
}

// The calls that a thread is in.
struct InCalls {
  uint32_t subscription = 0;
  uint32_t open = 0;         // that we have recorded
  uint32_t region = 0;       // of the one that began last
  uint32_t runtime = 0;      // of the runtime, which calls the driver: one span is enough
  uint32_t correlation = 0;  // of the one that began last, for what it captures
};
thread_local InCalls in_calls __attribute__((tls_model("initial-exec")));

uint64_t now() { return uint64_t(monotonic_ns()); }

}  // namespace

Collector& collector() {
  static Collector* one = new Collector;
  return *one;
}

void Collector::say(const char* what, const std::string& sentence) {
  std::lock_guard lock(notes_mutex_);
  said_[what] = sentence;
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
  if (session_option("cuda-graph-trace") == "graph") enable(kGraphTrace, "launches of whole graphs");
  enable(kMemcpy, "copies"), enable(kMemcpyPeer, "copies between GPUs"), enable(kMemset, "memory sets");
  enable(kOverhead, "CUPTI's own cost");
  enable(kDevice, "properties of GPUs"), enable(kStream, "priorities of streams");
  enable_levels();
  pthread_atfork(nullptr, nullptr, [] { collector().forked(); });
  if (int error = start_own_thread(thread_, 512 << 10, run, this)) {
    say("failed", std::string("the thread that asks for records cannot start: ") + strerror(error));
    return false;
  }
  state_ = kOn;
  strobe_streams_told(0);
  strobe_streams_finish_with([](int last) { collector().finish(last); });
  say("recorded_with", "CUPTI of " + library_.release() + " at " + library_.path +
                           (subscribed ? "" : ", without calls: another tool holds its callbacks"));
  return true;
}

bool Collector::subscribe() {
  const Functions& call = library_;
  const Result result = call.subscribe(&subscriber_, called, this);
  if (result != kSuccess) {
    subscriber_ = nullptr;
    say("calls_failed", "calls of CUDA are not recorded: " + library_.text_of(result));
    return false;
  }
  if (runtime_.empty()) choose_calls(kRuntimeDomain, runtime_), choose_calls(kDriverDomain, driver_);
  for (const auto& [domain, calls] : {std::pair(kRuntimeDomain, &runtime_), std::pair(kDriverDomain, &driver_)})
    for (uint32_t cbid = 0; cbid < calls->size(); cbid++)
      if ((*calls)[cbid].region) call.enable_callback(1, subscriber_, domain, cbid);
  for (const uint32_t cbid : {kContextCreated, kModuleUnloadStarting, kGraphNodeCreated, kGraphNodeCloned})
    call.enable_callback(1, subscriber_, kResourceDomain, cbid);
  return true;
}

void Collector::choose_calls(Domain domain, Calls& calls) {
  const Functions& call = library_;
  const bool runtime = domain == kRuntimeDomain;
  const auto* begin = runtime ? std::begin(kRuntimeCalls) : std::begin(kDriverCalls);
  const auto* end = runtime ? std::end(kRuntimeCalls) : std::end(kDriverCalls);
  // Numbers have gaps, and nobody says which is the last.
  for (uint32_t cbid = 1, unknown = 0; unknown < kMostUnknownCalls; cbid++) {
    const char* name = nullptr;
    if (call.get_callback_name(domain, cbid, &name) != kSuccess || !name) {
      unknown++;
      continue;
    }
    unknown = 0;
    const auto* chosen = std::find_if(
        begin, end, [name](const Chosen& each) { return strncmp(name, each.prefix, strlen(each.prefix)) == 0; });
    calls.resize(cbid + 1);
    if (chosen == end) continue;
    const std::string plain = plain_name(name);
    const bool waits = plain.find("Synchronize") != plain.npos;
    calls[cbid] = {region(plain.c_str(), waits ? STROBE_ROLE_SYNC : STROBE_ROLE_FUNCTION), chosen->launches};
  }
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
  if (const uint32_t subscription = subscriptions_.load(std::memory_order_relaxed); in.subscription != subscription) {
    if (in.open) put(kLeave, in.region);  // its end came while another profiler had the callbacks
    in = {subscription};
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
  const uint32_t correlation = in_calls.correlation;
  if (!cloned && correlation) launches_.cancel(correlation);  // captured: nothing runs now
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
  while (!quit_) {
    changed_.wait_for(lock, kFlushEvery, [this] {
      return asked_ || quit_ || wish_ || filled_.size() >= kFilledAtOnce || wants_unified_memory();
    });
    const bool asked = std::exchange(asked_, false), last = std::exchange(asked_last_, false);
    const Wish wish = std::exchange(wish_, kNothing);
    lock.unlock();
    if (wish == kYield) let_go();
    if (wish == kTakeBack) begin_again();
    // What was over by now is told after this flush.
    const int64_t now_ns = monotonic_ns();
    if (wants_unified_memory()) enable_unified_memory();
    if (state_ == kOn) flush(false);
    if (state_ == kOn && last) flush(true);
    tell(last);
    const int64_t until_ns = launches_.told_until(now_ns), yielded_ns = yielded_ns_;
    // The other profiler's events come when it ends.
    strobe_streams_told(last ? INT64_MAX : yielded_ns ? std::min(until_ns, yielded_ns) : until_ns);
    lock.lock();
    if (wish) granted_++, done_.notify_all();
    if (asked) rounds_++, done_.notify_all();
  }
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
  uint64_t told = 0;
  {
    std::lock_guard lock(telling_mutex_);
    if (!yielding_ && !spans_.empty()) last_round_.clear();
    last_round_.insert(last_round_.end(), spans_.begin(), spans_.end());
    for (DeviceSpan& each : spans_) {
      const int64_t start_ns = each.span.start_ns;
      if (!each.span.launched_ns) each.span.launched_ns = start_ns;
      if (!each.span.region) decoder_->memory().account(each);
      const bool twice =
          start_ns < taken_back_ns_ && ingested_last_.take(each.device, each.stream, each.correlation, start_ns);
      if (!twice) strobe_stream_tell(stream_of(each), &each.span);
      buffers_.told(++told);
    }
    tell_waits(last);
  }
  // Not before all of them are told: a graph's kernels share its launch.
  for (const DeviceSpan& each : spans_)
    if (!beside_streams(each.stream)) launches_.told(each.correlation);
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
    if (!beside_streams(each.stream)) untimed_ = each.span.start_ns && each.span.end_ns ? 0 : untimed_ + 1;
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
  const auto [known, fresh] = context_numbers_.try_emplace({span.device, span.context}, 0);
  if (fresh) {
    for (const auto& [key, number] : context_numbers_) known->second += key.first == span.device;
    known->second--;  // the first one of a device is 0
  }
  std::string name = "stream " + std::to_string(span.stream);
  if (known->second) name += ", context " + std::to_string(span.context);
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

// --- another profiler of the process

bool Collector::grant(Wish wish) {
  if (state_ != (wish == kYield ? kOn : kYielded)) return false;
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
  const int64_t now_ns = monotonic_ns();
  for (int ms = 0;; ms++) {
    flush(false);
    tell();
    if (ms == kLongestEndMs || launches_.told_until(now_ns) >= now_ns) break;
    usleep(1000);
  }
  state_ = kYielded;
  yielded_ns_ = monotonic_ns();
  for (const Kind kind : enabled_) call.activity_disable(kind);
  flush(false);
  if (subscriber_) call.unsubscribe(subscriber_);
  subscriber_ = nullptr;
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
  char shared[32];
  snprintf(shared, sizeof shared, "%.3f s", double(shared_ns_) / 1e9);
  say("shared", to + " had the GPUs for " + shared + " (" + std::to_string(times_shared_) +
                    (times_shared_ == 1 ? " time): " : " times): ") + std::to_string(ingested) +
                    " kernels, copies and sets of that time are its own, without the calls that launched them" +
                    (subscribed ? "" : "; calls after it are not recorded, because it keeps CUPTI's callbacks"));
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
    const std::string name = "stream " + std::to_string(stream);
    told += strobe_stream_tell(strobe_stream_open(name.c_str(), device, stream), &span) != 0;
    if (each->end_ns >= end_ns - kEdgeNs) ingested_last_.add(device, stream, correlation, each->start_ns);
  }
  ingested_ += told;
  if (told) context_seen_ = true;
  return told;
}

// --- ends

void Collector::finish(bool last) {
  if (state_ != kOn && state_ != kYielded) return;
  std::unique_lock lock(mutex_);
  const uint64_t before = rounds_;
  asked_ = true, asked_last_ = last;
  changed_.notify_one();
  if (!done_.wait_for(lock, kLongestWait, [&] { return rounds_ != before; }))
    strobe_count("gpu_flush_did_not_end", 1);
  else if (last)
    buffers_.remove();
}

void Collector::forked() {
  if (state_ == kOff) return;
  state_ = kForked;
  buffers_.forget();
}

}  // namespace strobe::cupti
