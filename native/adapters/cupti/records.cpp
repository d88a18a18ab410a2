#include "adapters/cupti/records.h"

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "adapters/cupti/memory.h"
#include "adapters/cupti/waits.h"
#include "core/json_text.h"

namespace strobe::cupti {

namespace {

const char* launch_type(uint8_t type) {
  switch (type) {
    case kRegular:
      return "regular";
    case kCooperative:
      return "cooperative";
    case kCooperativeManyDevices:
      return "cooperative, several devices";
    case kCommandList:
      return "command list";
    default:
      return "";
  }
}

// As Kineto and Nsight Systems call them.
const char* copy_name(uint8_t kind) {
  switch (kind) {
    case kHostToDevice:
      return "HtoD";
    case kDeviceToHost:
      return "DtoH";
    case kHostToArray:
      return "HtoA";
    case kArrayToHost:
      return "AtoH";
    case kArrayToArray:
      return "AtoA";
    case kArrayToDevice:
      return "AtoD";
    case kDeviceToArray:
      return "DtoA";
    case kDeviceToDevice:
      return "DtoD";
    case kHostToHost:
      return "HtoH";
    case kPeerToPeer:
      return "PtoP";
    default:
      return "";
  }
}

template <class T, size_t N>
size_t hash_of(const T (&values)[N]) {
  // A factor for each value: no product waits for another one.
  uint64_t h = 0, factor = 0x9E3779B97F4A7C15ull;
  for (const T value : values) h += uint64_t(value) * factor, factor = factor * 5 + 2;
  return size_t(h ^ h >> 32);
}

// The text of a row: numbers with commas.
template <class T, size_t N>
std::string joined(const T (&values)[N]) {
  std::string out;
  for (size_t i = 0; i < N; i++) {
    if (i) out += ',';
    if (int64_t(values[i]) != STROBE_NOTHING) out += std::to_string(values[i]);
  }
  return out;
}

// What the driver would do without CUPTI, too.
bool of_driver(OverheadKind kind) {
  return kind == kDriverCompiler || kind == kModuleLoading || kind == kLazyFunctionLoading ||
         kind == kCommandBufferFull;
}

int64_t number_or_nothing(uint64_t value) { return value ? int64_t(value) : STROBE_NOTHING; }
int32_t graph_or_nothing(uint32_t graph) { return graph ? int32_t(graph) : STROBE_NOTHING_32; }

}  // namespace

const char* memory_name(uint32_t kind) {
  switch (kind) {
    case kPageable:
      return "Pageable";
    case kPinned:
      return "Pinned";
    case kDeviceMemory:
      return "Device";
    case kArray:
      return "Array";
    case kManaged:
      return "Managed";
    case kDeviceStatic:
      return "Device Static";
    case kManagedStatic:
      return "Managed Static";
    default:
      return "";
  }
}

std::string name_beside_streams(uint32_t device, uint32_t stream) {
  if (stream == kUnifiedMemoryStream) return "unified memory";
  return "GPU " + std::to_string(device) + (stream == kMemoryStream ? " memory" : " waits");
}

void sort_by_start(std::vector<DeviceSpan>& spans) {
  const auto earlier = [](const DeviceSpan& a, const DeviceSpan& b) { return a.span.start_ns < b.span.start_ns; };
  // One stream's come in order.
  if (!std::is_sorted(spans.begin(), spans.end(), earlier)) std::stable_sort(spans.begin(), spans.end(), earlier);
}

void without_inner_calls(std::vector<DeviceSpan>& spans) {
  std::unordered_map<uint32_t, int64_t> ends;  // of the outermost call, by thread
  std::erase_if(spans, [&ends](const DeviceSpan& each) {
    if (!each.is_call()) return false;
    int64_t& end = ends[each.stream];
    if (each.span.end_ns <= end) return true;
    end = each.span.end_ns;
    return false;
  });
}

std::string demangled(const char* name) {
  int status = 0;
  char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = readable && status == 0 ? readable : name;
  free(readable);
  return out;
}

// Device to local memory lie next to each other.
Decoder::Launch::Launch(const KernelRecord& r, int64_t local_memory_total) {
  constexpr size_t kBytes = STROBE_CUPTI_END(KernelRecord, local_memory_total_32) - offsetof(KernelRecord, device);
  static_assert(kBytes == 52);
  memcpy(words, &r.device, kBytes);
  const uint32_t small = uint32_t(r.registers) << 8 | r.launch_type;
  memcpy(reinterpret_cast<char*>(words) + kBytes, &small, sizeof small);
  words[7] = uint64_t(r.shared_memory_executed) << 32;
  words[8] = uint64_t(local_memory_total);
}
size_t Decoder::HashLaunch::operator()(const Launch& launch) const { return hash_of(launch.words); }
size_t Decoder::HashCopy::operator()(const Copy& copy) const { return hash_of(copy.values); }

Decoder::Decoder(Sink& sink, std::function<bool(Kind, size_t)> has)
    : sink_(sink),
      has_local_total_(has(kConcurrentKernel, STROBE_CUPTI_END(KernelRecord, local_memory_total))),
      has_priority_(has(kConcurrentKernel, STROBE_CUPTI_END(KernelRecord, priority))),
      has_source_node_(has(kConcurrentKernel, STROBE_CUPTI_END(KernelRecord, source_graph_node))),
      memory_(std::make_unique<Memory>(sink, has(kMemoryPool, STROBE_CUPTI_END(MemoryPoolRecord, is_managed)))),
      waits_(std::make_unique<Waits>(sink,
                                     has(kCudaEvent, STROBE_CUPTI_END(CudaEventRecord, event_sync)) &&
                                         has(kSynchronization, STROBE_CUPTI_END(SynchronizationRecord, event_sync)),
                                     has(kCudaEvent, STROBE_CUPTI_END(CudaEventRecord, device)))) {}

Decoder::~Decoder() = default;

void Decoder::add(const Activity& record, std::vector<DeviceSpan>& out) {
  switch (record.kind) {
    case kConcurrentKernel:
      return kernel(reinterpret_cast<const KernelRecord&>(record), out);
    case kMemcpy: {
      const auto& r = reinterpret_cast<const MemcpyRecord&>(record);
      const Copy copy{{r.device, r.context, r.stream, r.copy_kind, r.source_kind, r.destination_kind}};
      return copied(copy_region(r.copy_kind, r.source_kind, r.destination_kind), copy, r.bytes, r.correlation, r.graph,
                    r.graph_node, STROBE_NOTHING_32, r.start, r.end, out);
    }
    case kMemcpyPeer: {
      const auto& r = reinterpret_cast<const MemcpyPeerRecord&>(record);
      const Copy copy{{r.device, r.context, r.stream, r.copy_kind, r.source_kind, r.destination_kind,
                       r.source_device + 1, r.source_context + 1, r.destination_device + 1, r.destination_context + 1}};
      return copied(copy_region(r.copy_kind, r.source_kind, r.destination_kind), copy, r.bytes, r.correlation, r.graph,
                    r.graph_node, STROBE_NOTHING_32, r.start, r.end, out);
    }
    case kMemset: {
      const auto& r = reinterpret_cast<const MemsetRecord&>(record);
      const auto [known, fresh] = set_regions_.try_emplace(r.memory_kind, 0);
      if (fresh)
        known->second =
            sink_.region((std::string("Memset (") + memory_name(r.memory_kind) + ")").c_str(), STROBE_ROLE_COPY);
      const Copy copy{{r.device, r.context, r.stream, 0, 0, r.memory_kind}};
      return copied(known->second, copy, r.bytes, r.correlation, r.graph, r.graph_node, int32_t(r.value), r.start,
                    r.end, out);
    }
    case kGraphTrace: {
      const auto& r = reinterpret_cast<const GraphTraceRecord&>(record);
      if (!graph_region_) graph_region_ = sink_.region("CUDA graph", STROBE_ROLE_KERNEL);
      DeviceSpan& to = out.emplace_back(DeviceSpan{r.device, r.context, r.stream, r.correlation, {}});
      to.span.region = graph_region_, to.span.row_kind = STROBE_ROW_KERNEL;
      to.span.start_ns = int64_t(r.start), to.span.end_ns = int64_t(r.end);
      to.span.launched_ns = sink_.launched_ns(r.correlation);
      const int64_t values[3] = {r.device, r.context, r.stream};
      to.span.values[0] = STROBE_TWO(r.correlation, sink_.text(joined(values).c_str()));
      to.span.values[1] = STROBE_TWO(graph_or_nothing(r.graph), STROBE_NOTHING_32);
      to.span.values[2] = to.span.values[3] = STROBE_NOTHING;
      return;
    }
    case kDriver:
    case kRuntime: {
      const auto& r = reinterpret_cast<const ApiRecord&>(record);
      const uint32_t region = sink_.call(r);
      if (!region) return;
      DeviceSpan& to = out.emplace_back(DeviceSpan{kNoDevice, kNoDevice, r.thread, r.correlation, {}});
      to.span.region = region, to.span.row_kind = STROBE_ROW_CALL;
      to.span.start_ns = int64_t(r.start), to.span.end_ns = int64_t(r.end), to.span.launched_ns = to.span.start_ns;
      to.span.values[0] = STROBE_TWO(r.correlation, r.cbid);
      to.span.values[1] = STROBE_TWO(r.returned, STROBE_NOTHING_32);
      return;
    }
    case kDevice:
      return device(reinterpret_cast<const DeviceRecord&>(record));
    case kStream: {
      const auto& r = reinterpret_cast<const StreamRecord&>(record);
      priorities_[uint64_t(r.context) << 32 | r.stream] = int32_t(r.priority);
      launches_.clear();  // their texts say it
      return;
    }
    case kOverhead: {
      const auto& r = reinterpret_cast<const OverheadRecord&>(record);
      if (r.end > r.start) (of_driver(r.overhead) ? driver_ns_ : overhead_ns_) += int64_t(r.end - r.start);
      return;
    }
    case kJit: {
      const auto& r = reinterpret_cast<const JitRecord&>(record);
      if (r.operation != kCompile) return;
      jit_compilations_++;
      if (r.end > r.start) jit_ns_ += int64_t(r.end - r.start);
      return;
    }
    default:
      if (!memory_->add(record, out)) waits_->add(record);
      return;
  }
}

int64_t Decoder::priority_of(uint32_t context, uint32_t stream) const {
  const auto known = priorities_.find(uint64_t(context) << 32 | stream);
  return known == priorities_.end() ? STROBE_NOTHING : known->second;
}

void Decoder::device(const DeviceRecord& r) {
  std::string json = "{\"name\": ";
  append_json_text(json, r.name ? sink_.kernel_name(r.name) : "GPU");
  const auto add = [&json](const char* key, uint64_t value) {
    json += std::string(", \"") + key + "\": " + std::to_string(value);
  };
  add("id", r.id);
  add("totalGlobalMem", r.global_memory_size);
  add("computeMajor", r.compute_capability_major), add("computeMinor", r.compute_capability_minor);
  add("maxThreadsPerBlock", r.max_threads_per_block);
  add("maxThreadsPerMultiprocessor", uint64_t(r.max_warps) * r.threads_per_warp);
  add("maxBlocksPerMultiprocessor", r.max_blocks);
  add("regsPerBlock", r.max_registers_per_block), add("regsPerMultiprocessor", r.max_registers);
  add("warpSize", r.threads_per_warp);
  add("sharedMemPerBlock", r.max_shared_memory_per_block), add("sharedMemPerMultiprocessor", r.max_shared_memory);
  add("numSms", r.multiprocessors);
  add("coreClockKhz", r.core_clock), add("memoryBandwidthKbPerS", r.global_memory_bandwidth);
  add("l2CacheSize", r.l2_cache_size), add("copyEngines", r.copy_engines), add("eccEnabled", r.ecc_enabled);
  char uuid[64];
  const uint8_t* u = r.uuid;
  snprintf(uuid, sizeof uuid, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
           u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
  json += std::string(", \"uuid\": \"") + uuid + "\", \"mig\": " + (r.is_mig_enabled ? "true}" : "false}");
  sink_.device(r.id, json);
}

void Decoder::kernel(const KernelRecord& r, std::vector<DeviceSpan>& out) {
  const auto [known, fresh] = kernels_.try_emplace(r.name, 0);
  if (fresh) known->second = sink_.region(demangled(sink_.kernel_name(r.name).c_str()).c_str(), STROBE_ROLE_KERNEL);
  const int64_t local = has_local_total_ ? int64_t(r.local_memory_total) : int64_t(r.local_memory_total_32);
  Launch launch(r, local);
  if (has_priority_) launch.words[7] |= uint32_t(r.priority);
  uint32_t& text = launches_[launch];
  if (!text) text = launch_text(r, local);
  const uint64_t node = has_source_node_ && r.source_graph_node ? r.source_graph_node : r.graph_node;
  const uint32_t captured = node ? sink_.captured_by(node) : 0;
  DeviceSpan& to = out.emplace_back(DeviceSpan{r.device, r.context, r.stream, r.correlation, {}});
  to.span.region = known->second, to.span.row_kind = STROBE_ROW_KERNEL;
  to.span.start_ns = int64_t(r.start), to.span.end_ns = int64_t(r.end);
  to.span.launched_ns = sink_.launched_ns(r.correlation);
  to.span.values[0] = STROBE_TWO(r.correlation, text);
  to.span.values[1] = STROBE_TWO(graph_or_nothing(r.graph), graph_or_nothing(captured));
  to.span.values[2] = number_or_nothing(r.graph_node);
  to.span.values[3] = number_or_nothing(r.queued);
  to.captured_by = captured;
}

uint32_t Decoder::launch_text(const KernelRecord& r, int64_t local) const {
  const char* type = launch_type(r.launch_type);
  const int64_t values[] = {
      r.device,
      r.context,
      r.stream,
      r.grid_x,
      r.grid_y,
      r.grid_z,
      r.block_x,
      r.block_y,
      r.block_z,
      r.registers,
      int64_t(r.static_shared_memory) + r.dynamic_shared_memory,
      r.static_shared_memory,
      r.dynamic_shared_memory,
      r.shared_memory_executed,
      r.local_memory_per_thread,
      local,
      has_priority_ ? r.priority : priority_of(r.context, r.stream),
      *type ? sink_.text(type) : STROBE_NOTHING,
      STROBE_NOTHING,
  };
  return sink_.text(joined(values).c_str());
}

uint32_t Decoder::copy_region(uint8_t kind, uint8_t source, uint8_t destination) {
  const auto [known, fresh] = copy_regions_.try_emplace(uint32_t(kind) << 16 | source << 8 | destination, 0);
  if (fresh) {
    const std::string name =
        std::string("Memcpy ") + copy_name(kind) + " (" + memory_name(source) + " -> " + memory_name(destination) + ")";
    known->second = sink_.region(name.c_str(), STROBE_ROLE_COPY);
  }
  return known->second;
}

void Decoder::copied(uint32_t region, Copy copy, uint64_t bytes, uint32_t correlation, uint32_t graph, uint64_t node,
                     int64_t set_value, uint64_t start, uint64_t end, std::vector<DeviceSpan>& out) {
  uint32_t& text = copies_[copy];
  if (!text) {
    int64_t values[10];
    for (size_t i = 0; i < 10; i++) values[i] = i < 3 ? copy.values[i] : STROBE_NOTHING;
    const auto named = [&](size_t at, const char* name) {
      if (*name) values[at] = sink_.text(name);
    };
    named(3, copy_name(uint8_t(copy.values[3])));
    named(4, memory_name(copy.values[4])), named(5, memory_name(copy.values[5]));
    for (size_t i = 6; i < 10; i++)  // + 1: 0 is nothing
      if (copy.values[i]) values[i] = int64_t(copy.values[i]) - 1;
    text = sink_.text(joined(values).c_str());
  }
  const uint32_t captured = node ? sink_.captured_by(node) : 0;
  DeviceSpan& to = out.emplace_back(DeviceSpan{copy.values[0], copy.values[1], copy.values[2], correlation, {}});
  to.span.region = region, to.span.row_kind = STROBE_ROW_COPY;
  to.span.start_ns = int64_t(start), to.span.end_ns = int64_t(end);
  to.span.launched_ns = sink_.launched_ns(correlation);
  to.span.values[0] = STROBE_TWO(correlation, text);
  to.span.values[1] = STROBE_TWO(graph_or_nothing(graph), set_value);
  to.span.values[2] = number_or_nothing(node);
  to.span.values[3] = int64_t(bytes);
  to.span.values[4] = STROBE_TWO(graph_or_nothing(captured), STROBE_NOTHING_32);
  to.captured_by = captured;
  to.span.values[5] = STROBE_NOTHING;
}

}  // namespace strobe::cupti
