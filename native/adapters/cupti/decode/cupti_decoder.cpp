#include "adapters/cupti/decode/cupti_decoder.h"

#include <stdio.h>
#include <string.h>

#include <iterator>

#include "core/format/json_text.h"

namespace strobe::cupti {

namespace {

// Names of numbers, as Kineto and Nsight Systems call them; empty: not known.
template <size_t N>
const char* name_in(const char* const (&names)[N], uint32_t number) {
  return number < N ? names[number] : "";
}
constexpr const char* kLaunchTypes[] = {"regular", "cooperative", "cooperative, several devices", "command list"};
constexpr const char* kCopies[] = {"", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
constexpr const char* kMemoryNames[] = {"",      "Pageable", "Pinned",        "Device",
                                        "Array", "Managed",  "Device Static", "Managed Static"};
constexpr const char* kCauses[] = {"",         "User prefetch",  "Page fault", "Speculative prefetch",
                                   "Eviction", "Access counters"};
constexpr const char* kPoolChanges[] = {"pool", "pool created", "pool destroyed", "pool trimmed"};
constexpr const char* kWaits[] = {"Unknown", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
static_assert(kCommandList == 3 && kPeerToPeer == 10 && kManagedStatic == 7 && kPoolTrimmed == 3 &&
              kContextSynchronize == 4);

const char* memory_name(uint32_t kind) { return name_in(kMemoryNames, kind); }

const char* migration(UnifiedMemoryKind kind) {
  return kind == kUnifiedHostToDevice ? "Unified HtoD" : kind == kUnifiedDeviceToHost ? "Unified DtoH" : "Unified DtoD";
}

template <class T, size_t N>
size_t hash_of(const T (&values)[N]) {
  // A factor for each value: no product waits for another one.
  uint64_t h = 0, factor = 0x9E3779B97F4A7C15ull;
  for (const T value : values) h += uint64_t(value) * factor, factor = factor * 5 + 2;
  return size_t(h ^ h >> 32);
}

// What the driver would do without CUPTI, too.
bool of_driver(OverheadKind kind) {
  return kind == kDriverCompiler || kind == kModuleLoading || kind == kLazyFunctionLoading ||
         kind == kCommandBufferFull;
}

}  // namespace

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

Decoder::Decoder(gpu::Sink& sink, const gpu::RecordBytes& record_bytes)
    : gpu::Decoder(sink),
      record_bytes_(record_bytes),
      has_local_total_(has(kConcurrentKernel, STROBE_CUPTI_END(KernelRecord, local_memory_total))),
      has_priority_(has(kConcurrentKernel, STROBE_CUPTI_END(KernelRecord, priority))),
      has_source_node_(has(kConcurrentKernel, STROBE_CUPTI_END(KernelRecord, source_graph_node))),
      has_managed_(has(kMemoryPool, STROBE_CUPTI_END(MemoryPoolRecord, is_managed))),
      has_event_device_(has(kCudaEvent, STROBE_CUPTI_END(CudaEventRecord, device))),
      has_event_number_(has(kCudaEvent, STROBE_CUPTI_END(CudaEventRecord, event_sync)) &&
                        has(kSynchronization, STROBE_CUPTI_END(SynchronizationRecord, event_sync))) {}

// In recovery; the process itself has the library's own iterator.
void Decoder::read(const char* bytes, size_t size, std::vector<DeviceSpan>& out) {
  alignas(8) char record[1024];
  for (size_t at = 0; at + sizeof(Activity) <= size;) {
    uint32_t kind;
    memcpy(&kind, bytes + at, sizeof kind);
    const size_t step = kind < kKinds ? record_bytes_[kind] : 0;
    if (!step || step > sizeof record || step > size - at) return;
    memset(record, 0, sizeof record);
    memcpy(record, bytes + at, step);
    add(*reinterpret_cast<const Activity*>(record), out);
    at += step;
  }
}

void Decoder::add(const Activity& record, std::vector<DeviceSpan>& out) {
  switch (record.kind) {
    case kConcurrentKernel:
      return kernel(reinterpret_cast<const KernelRecord&>(record), out);
    case kMemcpy: {
      const auto& r = reinterpret_cast<const MemcpyRecord&>(record);
      const Copy copy{{r.device, r.context, r.stream, r.copy_kind, r.source_kind, r.destination_kind}};
      return copied(r, copy_region(copy), copy, STROBE_NOTHING_32, out);
    }
    case kMemcpyPeer: {
      const auto& r = reinterpret_cast<const MemcpyPeerRecord&>(record);
      const Copy copy{{r.device, r.context, r.stream, r.copy_kind, r.source_kind, r.destination_kind,
                       r.source_device + 1, r.source_context + 1, r.destination_device + 1, r.destination_context + 1}};
      return copied(r, copy_region(copy), copy, STROBE_NOTHING_32, out);
    }
    case kMemset: {
      const auto& r = reinterpret_cast<const MemsetRecord&>(record);
      const auto [known, fresh] = set_regions_.try_emplace(r.memory_kind, 0);
      if (fresh)
        known->second =
            sink_.region((std::string("Memset (") + memory_name(r.memory_kind) + ")").c_str(), STROBE_ROLE_COPY);
      const Copy copy{{r.device, r.context, r.stream, 0, 0, r.memory_kind}};
      return copied(r, known->second, copy, int32_t(r.value), out);
    }
    case kGraphTrace:
      return graph(reinterpret_cast<const GraphTraceRecord&>(record), out);
    case kDriver:
    case kRuntime:
      return call(reinterpret_cast<const ApiRecord&>(record), out);
    case kDevice:
      return device(reinterpret_cast<const DeviceRecord&>(record));
    case kStream: {
      const auto& r = reinterpret_cast<const StreamRecord&>(record);
      priorities_[uint64_t(r.context) << 32 | r.stream] = int32_t(r.priority);
      launches_.clear();  // their texts have it
      return;
    }
    case kOverhead: {
      const auto& r = reinterpret_cast<const OverheadRecord&>(record);
      if (r.end > r.start) (of_driver(r.overhead) ? costs_.driver_ns : costs_.overhead_ns) += int64_t(r.end - r.start);
      return;
    }
    case kJit: {
      const auto& r = reinterpret_cast<const JitRecord&>(record);
      if (r.operation != kCompile) return;
      costs_.compilations++;
      if (r.end > r.start) costs_.compile_ns += int64_t(r.end - r.start);
      return;
    }
    case kMemory:
      return allocated(reinterpret_cast<const MemoryRecord&>(record), out);
    case kMemoryPool:
      return pool_changed(reinterpret_cast<const MemoryPoolRecord&>(record), out);
    case kUnifiedMemoryCounter:
      return migrated(reinterpret_cast<const UnifiedMemoryRecord&>(record), out);
    case kSynchronization:
      return waited(reinterpret_cast<const SynchronizationRecord&>(record));
    case kCudaEvent:
      return event(reinterpret_cast<const CudaEventRecord&>(record));
    case kContext: {
      const auto& r = reinterpret_cast<const ContextRecord&>(record);
      return waits_.set_device(r.context, r.device);
    }
    default:
      return;
  }
}

void Decoder::graph(const GraphTraceRecord& r, std::vector<DeviceSpan>& out) {
  if (!graph_region_) graph_region_ = sink_.region("CUDA graph", STROBE_ROLE_KERNEL);
  gpu::LaunchText text;
  text.device = r.device, text.context = r.context, text.stream = r.stream;
  set_kernel(add_work(out, r.device, r.context, r.stream, r.correlation, graph_region_, STROBE_ROW_KERNEL, r.start,
                      r.end, sink_.text(text.joined().c_str())),
             r.graph, 0, 0, 0);
}

void Decoder::call(const ApiRecord& r, std::vector<DeviceSpan>& out) {
  const uint32_t region =
      sink_.call({function_number(r.kind, r.cbid), r.correlation, int64_t(r.start), r.returned != 0});
  if (!region) return;
  DeviceSpan& to = add_work(out, gpu::kNoDevice, gpu::kNoContext, r.thread, r.correlation, region, STROBE_ROW_CALL,
                            r.start, r.end, r.cbid);
  to.span.launched_ns = to.span.start_ns;
  to.span.values[1] = STROBE_TWO(r.returned, STROBE_NOTHING_32);
}

// --- memory and waits, which are recorded only where they are asked for

void Decoder::allocated(const MemoryRecord& r, std::vector<DeviceSpan>& out) {
  if (r.operation != kAllocation && r.operation != kRelease) return;
  const uint32_t name = r.name ? sink_.text(sink_.kernel_name(r.name).c_str()) : 0;
  const bool own_pool = r.pool_type == kLocalPool;  // the size of a pool of another process is not known
  memory_.changed(
      {r.device, r.context, r.correlation, memory_name(r.memory_kind), name, r.address, int64_t(r.timestamp)},
      r.operation == kAllocation ? gpu::kAllocated : gpu::kReleased, int64_t(r.bytes), r.program_counter,
      own_pool ? r.pool_address : 0, own_pool ? int64_t(r.pool_size) : 0, out);
}

void Decoder::pool_changed(const MemoryPoolRecord& r, std::vector<DeviceSpan>& out) {
  if (r.type != kLocalPool) return;
  const char* kind = memory_name(has_managed_ && r.is_managed ? kManaged : kDeviceMemory);
  memory_.changed({r.device, gpu::kNoContext, r.correlation, kind, sink_.text(name_in(kPoolChanges, r.operation)),
                   r.address, int64_t(r.timestamp)},
                  gpu::kNoMemoryChange, 0, 0, r.address, r.operation == kPoolDestroyed ? 0 : int64_t(r.size), out);
}

void Decoder::migrated(const UnifiedMemoryRecord& r, std::vector<DeviceSpan>& out) {
  if (r.counter == kCpuPageFault) return memory_.faulted(1, 0);
  if (r.counter == kGpuPageFaults) return memory_.faulted(0, r.value);
  if (r.counter != kUnifiedHostToDevice && r.counter != kUnifiedDeviceToHost && r.counter != kUnifiedDeviceToDevice)
    return;
  static_assert(kCpuDevice == gpu::kNoDevice);
  const uint32_t device = r.counter == kUnifiedDeviceToHost ? r.source : r.destination;
  memory_.migrated({device, r.source, r.destination, int64_t(r.value), int64_t(r.start), int64_t(r.end), r.address,
                    migration(r.counter), name_in(kCauses, r.flags)},
                   memory_name(kManaged), out);
}

void Decoder::waited(const SynchronizationRecord& r) {
  static_assert(kNoStream == gpu::kNoStream);
  const bool has_event = (r.type == kEventSynchronize || r.type == kStreamWaitEvent) && r.event != kNoEvent;
  waits_.add({name_in(kWaits, uint32_t(r.type) < std::size(kWaits) ? uint32_t(r.type) : 0u), int64_t(r.start),
              int64_t(r.end), r.context, r.stream, r.correlation, has_event, r.event,
              has_event_number_ ? r.event_sync : 0});
}

void Decoder::event(const CudaEventRecord& r) {
  if (has_event_device_) waits_.set_device(r.context, r.device);
  waits_.add(gpu::EventRecording{r.event, r.context, r.stream, r.correlation, has_event_number_ ? r.event_sync : 0});
}

// ---

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
  if (fresh)
    known->second = sink_.region(gpu::demangled(sink_.kernel_name(r.name).c_str()).c_str(), STROBE_ROLE_KERNEL);
  const int64_t local = has_local_total_ ? int64_t(r.local_memory_total) : int64_t(r.local_memory_total_32);
  Launch launch(r, local);
  if (has_priority_) launch.words[7] |= uint32_t(r.priority);
  uint32_t& text = launches_[launch];
  if (!text) text = launch_text(r, local);
  const uint64_t node = has_source_node_ && r.source_graph_node ? r.source_graph_node : r.graph_node;
  const uint32_t captured = node ? sink_.captured_by(node) : 0;
  set_kernel(add_work(out, r.device, r.context, r.stream, r.correlation, known->second, STROBE_ROW_KERNEL, r.start,
                      r.end, text),
             r.graph, captured, r.graph_node, r.queued);
}

uint32_t Decoder::launch_text(const KernelRecord& r, int64_t local) const {
  const char* type = name_in(kLaunchTypes, r.launch_type);
  gpu::LaunchText text;
  text.device = r.device, text.context = r.context, text.stream = r.stream;
  text.grid[0] = r.grid_x, text.grid[1] = r.grid_y, text.grid[2] = r.grid_z;
  text.block[0] = r.block_x, text.block[1] = r.block_y, text.block[2] = r.block_z;
  text.registers = r.registers;
  text.shared = int64_t(r.static_shared_memory) + r.dynamic_shared_memory;
  text.static_shared = r.static_shared_memory, text.dynamic_shared = r.dynamic_shared_memory;
  text.executed_shared = r.shared_memory_executed;
  text.local_per_thread = r.local_memory_per_thread, text.local = local;
  text.priority = has_priority_ ? r.priority : priority_of(r.context, r.stream);
  if (*type) text.type = sink_.text(type);
  return sink_.text(text.joined().c_str());
}

uint32_t Decoder::copy_region(const Copy& copy) {
  const auto [kind, source, destination] = std::tie(copy.values[3], copy.values[4], copy.values[5]);
  const auto [known, fresh] = copy_regions_.try_emplace(kind << 16 | source << 8 | destination, 0);
  if (fresh) {
    const std::string name = std::string("Memcpy ") + name_in(kCopies, kind) + " (" + memory_name(source) + " -> " +
                             memory_name(destination) + ")";
    known->second = sink_.region(name.c_str(), STROBE_ROLE_COPY);
  }
  return known->second;
}

template <class Record>
void Decoder::copied(const Record& r, uint32_t region, const Copy& copy, int64_t set_value,
                     std::vector<DeviceSpan>& out) {
  uint32_t& text = copies_[copy];
  if (!text) {
    int64_t values[10];
    for (size_t i = 0; i < 10; i++) values[i] = i < 3 ? copy.values[i] : STROBE_NOTHING;
    const auto named = [&](size_t at, const char* name) {
      if (*name) values[at] = sink_.text(name);
    };
    named(3, name_in(kCopies, copy.values[3]));
    named(4, memory_name(copy.values[4])), named(5, memory_name(copy.values[5]));
    for (size_t i = 6; i < 10; i++)  // + 1: 0 is nothing
      if (copy.values[i]) values[i] = int64_t(copy.values[i]) - 1;
    text = sink_.text(gpu::joined(values).c_str());
  }
  const uint32_t captured = r.graph_node ? sink_.captured_by(r.graph_node) : 0;
  set_copy(add_work(out, r.device, r.context, r.stream, r.correlation, region, STROBE_ROW_COPY, r.start, r.end, text),
           r.graph, captured, r.graph_node, int64_t(r.bytes), set_value);
}

const gpu::Decoding kDecoding{
    "cuda", "CUDA", STROBE_CUDA, true,
    [](gpu::Sink& sink, const gpu::RecordBytes& record_bytes) -> std::unique_ptr<gpu::Decoder> {
      return std::make_unique<Decoder>(sink, record_bytes);
    }};
const gpu::Registered registered(kDecoding);

}  // namespace strobe::cupti
