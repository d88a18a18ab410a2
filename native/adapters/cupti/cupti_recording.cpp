#include "adapters/cupti/cupti_recording.h"

#include <algorithm>
#include <tuple>

#include "adapters/cupti/probe.h"
#include "core/rings/ring.h"
#include "core/session/from_environment.h"
#include "core/system/clock.h"

namespace strobe::cupti {

namespace {

constexpr int64_t kLongestCallNs = 1'000'000'000;  // that launches something
constexpr uint64_t kMostUntimed = 10000;           // one after the other

uint64_t now() { return uint64_t(monotonic_ns()); }

}  // namespace

Recording& recording() {
  static Recording* one = new Recording;
  return *one;
}

// --- begin, rest, go on

bool Recording::open(gpu::Recorder& recorder) {
  recorder_ = &recorder;
  if (const std::string why = verdict(); !why.empty()) {
    recorder.note("failed", why);
    return false;
  }
  library_ = open_library();
  if (library_) return true;
  recorder.note("failed", library_.failure);
  return false;
}

bool Recording::start() {
  const Functions& call = library_;
  runtime_ = chosen_calls(call, kRuntimeDomain, *recorder_), driver_ = chosen_calls(call, kDriverDomain, *recorder_);
  const bool subscribed = subscribe();
  if (subscribed) enable_calls(true);
  if (call.set_thread_id_type) call.set_thread_id_type(kThreadIdSystem);
  uint8_t zeroed = 1;
  size_t bytes = sizeof zeroed;
  call.activity_set_attribute(kZeroedOutActivityBuffer, &bytes, &zeroed);
  // Before any kind is enabled: from then on CUPTI refuses it.
  if (!call.activity_register_timestamp_callback || call.activity_register_timestamp_callback(now) != kSuccess) {
    recorder_->note("failed", "CUPTI does not take the clock of the trace: another tool has started it already");
    return false;
  }
  if (const Result result = call.activity_register_callbacks(requested, completed); result != kSuccess) {
    recorder_->note("failed", "CUPTI takes no buffers: " + library_.text_of(result));
    return false;
  }
  if (!enable(kConcurrentKernel, "kernels")) return false;
  // Instead of a record for each of its kernels.
  if (session_option("cuda-graph-trace") == "graph" && enable(kGraphTrace, "launches of whole graphs"))
    recorder_->note("whole_graphs",
                    "CUDA graphs are recorded as a whole: what they copy, communicate and fill is not known");
  enable(kMemcpy, "copies"), enable(kMemcpyPeer, "copies between GPUs"), enable(kMemset, "memory sets");
  enable(kOverhead, "CUPTI's own cost");
  enable(kDevice, "properties of GPUs"), enable(kStream, "priorities of streams");
  if (!subscribed) calls_by_records(true);
  enable_levels();
  recorder_->note("recorded_with", "CUPTI of " + library_.release() + " at " + library_.path);
  return true;
}

void Recording::enable_levels() {
  // Rare, and seconds long where it happens. Where it cannot be had nothing is missing that anybody asked for.
  if (library_.activity_enable(kJit) == kSuccess) enabled_.push_back(kJit);
  if (session_asks(kDecoding.adapter, "memory")) {
    enable(kMemory, "allocations"), enable(kMemoryPool, "memory pools");
    unified_memory_ = true;
  }
  if (session_asks(kDecoding.adapter, "events")) {
    // Questions about what is not over yet are not waits; since CUDA 12.8 they can be left out.
    if (library_.activity_enable_all_sync_records) library_.activity_enable_all_sync_records(0);
    enable(kContext, "contexts"), enable(kCudaEvent, "events"),
        enable(kSynchronization, "waits for streams and events");
  }
}

// It can be configured only once the driver is there (CUPTI's own words), which it is not inside of cuInit.
void Recording::each_round() {
  if (!unified_memory_ || !recorder_->in_use()) return;
  unified_memory_ = false;
  UnifiedMemoryConfig configs[5];
  size_t n = 0;
  for (const UnifiedMemoryKind kind :
       {kUnifiedHostToDevice, kUnifiedDeviceToHost, kUnifiedDeviceToDevice, kCpuPageFault, kGpuPageFaults})
    configs[n++] = {kAllDevices, kind, 0, 1};
  const char* what = "migrations of unified memory";
  const Result result = library_.activity_configure_unified_memory
                            ? library_.activity_configure_unified_memory(configs, uint32_t(n))
                            : Result(kNotSupported);
  if (result == kSuccess)
    enable(kUnifiedMemoryCounter, what);
  else
    missing(what, result);
}

bool Recording::enable(Kind kind, const char* what) {
  // Of devices and streams that are there already, too.
  const bool dumps = (kind == kDevice || kind == kStream || kind == kContext) && library_.activity_enable_and_dump;
  const Result result = dumps ? library_.activity_enable_and_dump(kind) : library_.activity_enable(kind);
  if (result != kSuccess) return missing(what, result), false;
  if (std::find(enabled_.begin(), enabled_.end(), kind) == enabled_.end()) enabled_.push_back(kind);
  return true;
}

void Recording::missing(const char* what, Result result) {
  recorder_->note((std::string("no ") + what).c_str(),
                  std::string(what) + " are not recorded: " + library_.text_of(result));
}

// What graphs are made of is followed all the same, and allocations where they are asked for: what is in use is known
// when the recording goes on.
void Recording::rest() {
  for (const Kind kind : enabled_)
    if (kind != kMemory && kind != kMemoryPool) library_.activity_disable(kind);
  calls_by_records(false);
  if (subscriber_) enable_calls(false);
}

void Recording::go_on() {
  if (subscriber_) enable_calls(true);
  for (const Kind kind : std::vector<Kind>(enabled_)) enable(kind, "records");
  calls_by_records(!subscriber_);
}

// --- another profiler

void Recording::let_go() {
  for (const Kind kind : enabled_) library_.activity_disable(kind);
  calls_by_records(false);
  flush(false);
  if (subscriber_) library_.unsubscribe(subscriber_);
  subscriber_ = nullptr;
}

bool Recording::take_back(std::string& why) {
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
  // The other one's buffers, before ours are filled.
  if (recorder_->in_use()) call.activity_flush_all(kFlushCompleted);
  if (!subscribe()) why = "it keeps CUPTI's callbacks";
  return true;
}

// --- records, on CUPTI's threads and on the recorder's

void Recording::requested(uint8_t** buffer, size_t* bytes, size_t* records) {
  *records = 0;  // as many as fit
  *buffer = recording().recorder_->take_buffer(*bytes);
}

void Recording::completed(Context, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  recording().recorder_->completed(buffer, valid);
}

void Recording::flush(bool forced) {
  // Without a context there is nothing to ask for, and CUPTI may wait for what will never be.
  if (!recorder_->in_use() && subscriber_) return;
  library_.activity_flush_all(forced ? kFlushForced : kFlushCompleted);
}

void Recording::read(uint8_t* buffer, size_t valid, gpu::Decoder& decoder, std::vector<DeviceSpan>& out) {
  const size_t first = out.size();
  Activity* record = nullptr;
  while (library_.activity_get_next_record(buffer, valid, &record) == kSuccess)
    static_cast<Decoder&>(decoder).add(*record, out);
  watch_times(out, first);
}

// With graphs CUPTI of CUDA 13.0 may run out of its own buffers (parca-dev/parcagpu issue 23): from then on kernels
// have no times, and memory of the GPU is gone. Nothing is better than that.
void Recording::watch_times(const std::vector<DeviceSpan>& spans, size_t first) {
  for (size_t i = first; i < spans.size(); i++)
    if (spans[i].is_work()) untimed_ = spans[i].span.start_ns && spans[i].span.end_ns ? 0 : untimed_ + 1;
  if (untimed_ < kMostUntimed) return;
  untimed_ = 0;
  enabled_.clear();  // nor are they enabled again after a profiler of the program
  for (const Kind kind : {kConcurrentKernel, kMemcpy, kMemcpyPeer, kMemset, kGraphTrace})
    library_.activity_disable(kind);
  recorder_->note("stopped",
                  "CUPTI has records of kernels without times since some moment (a known defect with CUDA graphs), so "
                  "that GPUs are not recorded any more from there on");
}

uint64_t Recording::dropped() {
  size_t dropped = 0;
  return library_.activity_get_num_dropped_records(nullptr, 0, &dropped) == kSuccess ? dropped : 0;
}

int64_t Recording::calls_late_ns() const { return calls_by_records_ ? kLongestCallNs : 0; }

// --- calls

bool Recording::subscribe() {
  const Functions& call = library_;
  const Result result = call.subscribe(&subscriber_, called, this);
  if (result != kSuccess) {
    subscriber_ = nullptr;
    recorder_->note("calls", "CUPTI's callbacks are another tool's (" + library_.text_of(result) +
                                 "): calls of CUDA are beside their threads, and kernels of a graph are those of its "
                                 "launch");
    return false;
  }
  for (const uint32_t cbid : {kContextCreated, kModuleUnloadStarting, kGraphNodeCreated, kGraphNodeCloned})
    call.enable_callback(1, subscriber_, kResourceDomain, cbid);
  return true;
}

void Recording::enable_calls(bool on) {
  for (const auto& [domain, calls] : {std::pair(kRuntimeDomain, &runtime_), std::pair(kDriverDomain, &driver_)})
    for (uint32_t cbid = 0; cbid < calls->size(); cbid++)
      if ((*calls)[cbid].region) library_.enable_callback(on, subscriber_, domain, cbid);
}

// They come later than callbacks, when a thread has gone on: not in its own row, but in one beside it.
void Recording::calls_by_records(bool on) {
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
  if (result != kSuccess) recorder_->note("calls", "calls of CUDA are not recorded: " + library_.text_of(result));
  for (const auto& [kind, calls] : {std::pair(kRuntime, &runtime_), std::pair(kDriver, &driver_)})
    for (uint32_t cbid = 0; cbid < calls->size(); cbid++)
      if ((*calls)[cbid].region) recorder_->name_function(function_number(kind, cbid), (*calls)[cbid].name);
}

const gpu::Call* Recording::call(uint64_t function) const {
  const Calls& calls = function >> 32 == kRuntime ? runtime_ : driver_;
  const auto cbid = uint32_t(function);
  return cbid < calls.size() ? &calls[cbid] : nullptr;
}

void Recording::called(void* self, Domain domain, uint32_t cbid, const void* data) {
  auto& that = *static_cast<Recording*>(self);
  if (!that.recorder_->recording()) return;
  if (domain == kRuntimeDomain)
    that.on_call(that.runtime_, domain, cbid, *static_cast<const CallbackData*>(data));
  else if (domain == kDriverDomain)
    that.on_call(that.driver_, domain, cbid, *static_cast<const CallbackData*>(data));
  else if (domain == kResourceDomain)
    that.on_resource(cbid, *static_cast<const ResourceData*>(data));
}

void Recording::on_call(const Calls& calls, Domain domain, uint32_t cbid, const CallbackData& data) {
  if (cbid >= calls.size() || !calls[cbid].region) return;
  const bool runtime = domain == kRuntimeDomain;  // it calls the driver
  if (data.site == kEnterSite) return recorder_->call_begins(calls[cbid], data.correlation, runtime);
  const int32_t returned = data.returned ? *static_cast<const int32_t*>(data.returned) : STROBE_NOTHING_32;
  recorder_->call_ends(calls[cbid], data.correlation, cbid, returned, runtime);
}

void Recording::on_resource(uint32_t cbid, const ResourceData& data) {
  if (cbid == kContextCreated) {
    recorder_->use();
    if (unified_memory_) recorder_->wake();
  } else if (cbid == kModuleUnloadStarting) {
    recorder_->names_change();
  } else if (cbid == kGraphNodeCreated || cbid == kGraphNodeCloned) {
    on_node(*static_cast<const GraphData*>(data.descriptor), cbid == kGraphNodeCloned);
  }
}

void Recording::on_node(const GraphData& graph, bool cloned) {
  const Functions& call = library_;
  uint64_t node = 0, original = 0;
  if (!call.get_graph_node_id || call.get_graph_node_id(graph.node, &node) != kSuccess) return;
  if (!cloned) return recorder_->node_added(node);
  if (call.get_graph_node_id(graph.original_node, &original) == kSuccess) recorder_->node_cloned(node, original);
}

}  // namespace strobe::cupti

// CUDA_INJECTION64_PATH names this library: libcuda loads it inside of the program's cuInit and calls this function. A
// process that does not use CUDA never comes here.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const strobe::Inside inside;
  if (const char* file = strobe::cupti::probe_file())
    strobe::cupti::probe(file);
  else
    strobe_gpu_start(&strobe::cupti::recording());
  return 1;
}
