// fake_cupti.cpp - CUPTI on top of the fake driver, of the release FAKE_RELEASE (12080 for CUDA 12.8) that it is built
// as: functions that the release lacks are not there. It refuses what the genuine one refuses; how each rule is known
// is said beside it. "header": NVIDIA's description of the function; "measured": seen with the genuine libraries,
// without a GPU. Without either, another profiler's source or bug report is named. None of it was seen on a GPU: what
// is found out there to be otherwise belongs here first.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "adapters/cupti/functions.h"
#include "fake.h"

#define API extern "C" __attribute__((visibility("default"))) Result

using namespace fake;
using namespace strobe::cupti;

namespace {

constexpr int kCuda = FAKE_RELEASE;

// The numbers that the genuine libraries say; between 18 and 28 the releases share numbers.
constexpr uint32_t version() {
  if (kCuda >= 13000) return uint32_t(kCuda / 1000 * 10000 + kCuda % 1000 / 10 * 100 + (kCuda < 13040));
  return kCuda >= 12090 ? 28 : kCuda >= 12080 ? 26 : kCuda >= 12060 ? 24 : kCuda >= 12040 ? 22 : 18;
}

// Sizes of records, measured on the genuine libraries.
constexpr size_t size_of(uint32_t kind) {
  switch (kind) {
    case kKernel:
    case kConcurrentKernel:
      return kCuda >= 13040   ? 248
             : kCuda >= 13030 ? 232
             : kCuda >= 13010 ? 224
             : kCuda >= 13000 ? 216
             : kCuda >= 12000 ? 208
                              : 200;
    case kMemcpy:
      return kCuda >= 13040 ? 112 : kCuda >= 12080 ? 96 : 88;
    case kMemcpyPeer:
      return 96;
    case kMemset:
      return kCuda >= 13040 ? 104 : 88;
    case kDriver:
    case kRuntime:
      return 40;
    case kSynchronization:
      return kCuda >= 12080 ? 56 : 40;
    case kOverhead:
      return kCuda >= 12040 ? 56 : 40;
    case kExternalCorrelation:
      return 24;
    case kGraphTrace:
      return kCuda >= 12040 ? 56 : 48;
    case kCudaEvent:
      return kCuda >= 13050 ? 80 : kCuda >= 12080 ? 56 : 24;
    case kMemory:
      return kCuda >= 12060 ? 128 : 120;
    case kMemoryPool:
      return kCuda >= 13000 ? 80 : 72;
    case kDevice:
      return kCuda >= 13020 ? 192 : kCuda >= 12040 ? 184 : 176;
    case kContext:
      return kCuda >= 13010 ? 40 : kCuda >= 12060 ? 32 : kCuda >= 12040 ? 24 : 16;
    case kStream:
      return 24;
    case kUnifiedMemoryCounter:
      return kCuda >= 12080 ? 104 : 64;
    case kModule:
      return 24;
    case kJit:
      return kCuda >= 12040 ? 72 : 64;
  }
  return 0;
}

// Nothing here is ever destroyed: the worker waits to the end of the process, and clients flush at its exit.
auto& mutex = *new std::recursive_mutex;  // a client may set attributes where a buffer is asked of it (header)
auto& changed = *new std::condition_variable_any;
bool attached;
uint64_t (*gpu_now)();

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0, most = 0, count = 0;
};
struct Pending {
  Work work;
  uint64_t owner;
};
struct PendingEvent {
  CudaEventRecord record;
  uint64_t time, owner;
};

Callback callback;
void* callback_user;
int subscriber_token;
Subscriber subscriber;
bool callbacks[8][1024];
bool kinds[kKinds], ever_enabled;
bool api_all[3];
auto* const api_one = new std::map<uint32_t, bool>[3];
BufferRequested requested;
BufferCompleted completed;
Timestamp timestamp;
ThreadIdType thread_type;
bool latency;
auto& buffers = *new std::map<uint64_t, Buffer>;  // by thread, or 0
auto& full = *new std::deque<Buffer>;
auto& pending = *new std::deque<Pending>;
auto& pending_events = *new std::deque<PendingEvent>;
std::map<uint32_t, bool>& unified = *new std::map<uint32_t, bool>;  // counters of unified memory that were asked for
auto& attributes = *new std::map<uint32_t, std::string>;
size_t dropped;
bool delivering, worker_runs;
std::thread::id worker;
thread_local std::map<uint32_t, std::deque<uint64_t>> external;
thread_local uint64_t synchronization_start;

uint64_t client_now() {
  if (timestamp) return timestamp();
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);  // the default (header)
  return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}

// GPU times become the client's by two pairs of readings, the first one and one of now, at the time of processing
// (header of cuptiActivityRegisterTimestampCallback: linear interpolation).
uint64_t first_gpu, first_cpu;
// The tightest of several: a thread may rest between two readings.
void read_pair(uint64_t& gpu_at, uint64_t& cpu_at) {
  uint64_t width = ~0ull;
  for (int i = 0; i < 20 && width > 2000; i++) {
    const uint64_t before = client_now(), gpu = gpu_now(), after = client_now();
    if (after - before >= width) continue;
    width = after - before, gpu_at = gpu, cpu_at = before + width / 2;
  }
}
uint64_t gpu_at, cpu_at;  // the pair of this time of processing
uint64_t client_time(uint64_t gpu) {
  // Two pairs that a busy machine read 10 us apart in error are a slope 1 % off over 1 ms.
  const double slope = gpu_at - first_gpu > 100'000'000 ? double(cpu_at - first_cpu) / double(gpu_at - first_gpu) : 1.0;
  return uint64_t(int64_t(cpu_at) + int64_t(double(int64_t(gpu - gpu_at)) * slope));
}

uint32_t thread_number() {
  return thread_type == kThreadIdSystem ? uint32_t(syscall(SYS_gettid)) : uint32_t(pthread_self());
}

// From 13.0 each thread of the program has its own buffers unless the attribute says otherwise (NVIDIA/Fuser PR 5402).
uint64_t owner() {
  const auto set = attributes.find(kPerThreadActivityBuffer);
  const bool each = set == attributes.end() ? kCuda >= 13000 : set->second[0] != 0;
  return each ? uint64_t(syscall(SYS_gettid)) : 0;
}

void hand_over(Buffer& buffer) {
  if (buffer.data) full.push_back(buffer);
  buffer = Buffer();
  changed.notify_all();
}

void store(uint64_t owner, const void* record, uint32_t kind);

bool request(uint64_t owner, Buffer& buffer) {
  if (!requested) return false;
  requested(&buffer.data, &buffer.size, &buffer.most);
  if (!buffer.data) {
    // Before 12.9 a refused buffer can end the process (Kineto PR 1534).
    if (kCuda < 12090) {
      fprintf(stderr, "fake CUPTI: no buffer was given, which this release does not survive\n");
      abort();
    }
    return false;
  }
  if (reinterpret_cast<uintptr_t>(buffer.data) % 8) abort();  // header: records are aligned to 8 bytes
  buffer.used = buffer.count = 0;
  const auto zeroed = attributes.find(kZeroedOutActivityBuffer);
  if (zeroed == attributes.end() || !zeroed->second[0]) memset(buffer.data, 0, buffer.size);  // header
  if (kinds[kOverhead] && kCuda >= 12060) {
    OverheadRecord record{};
    record.kind = kOverhead, record.overhead = kBufferRequest, record.object = kObjectThread;
    record.object_id[0] = uint32_t(getpid()), record.object_id[1] = thread_number();
    const std::string asked = setting("OVERHEAD_NS");
    record.start = client_now(),
    record.end = record.start + (asked.empty() ? 500 : strtoull(asked.c_str(), nullptr, 10));
    store(owner, &record, kOverhead);
  }
  return true;
}

// Records are written into the client's memory as they come, not when the buffer is returned.
void store(uint64_t owner, const void* record, uint32_t kind) {
  const size_t bytes = size_of(kind);
  Buffer& buffer = buffers[owner];
  if (buffer.data && (buffer.used + bytes > buffer.size || (buffer.most && buffer.count >= buffer.most)))
    hand_over(buffer);
  if (!buffer.data && !request(owner, buffer)) {
    dropped++;
    return;
  }
  if (buffer.used + bytes > buffer.size) {
    dropped++;
    return;
  }
  memcpy(buffer.data + buffer.used, record, bytes);  // what a release does not know of a record is cut off
  buffer.used += bytes;
  buffer.count++;
}

void store_work(const Pending& each, bool finished) {
  const Work& w = each.work;
  const Operation& o = w.operation;
  const uint64_t now = gpu_now();
  read_pair(gpu_at, cpu_at);
  const uint64_t start = w.start <= now ? client_time(w.start) : 0, end = finished ? client_time(w.end) : 0;
  const auto device = w.stream->context->device, context = uint32_t(w.stream->context->id);
  const auto stream = uint32_t(w.stream->id);
  if (w.whole_graph) {
    GraphTraceRecord r{};
    r.kind = kGraphTrace, r.correlation = w.correlation, r.start = start, r.end = end;
    r.device = r.end_device = device, r.context = r.end_context = context, r.stream = stream, r.graph = w.graph;
    store(each.owner, &r, kGraphTrace);
  } else if (o.type == Operation::kKernel) {
    KernelRecord r{};
    r.kind = kinds[kKernel] ? kKernel : kConcurrentKernel;
    r.registers = o.function->registers;
    r.start = start, r.end = end;  // a running kernel of a forced flush has no end (PyTorch's monitor)
    r.device = device, r.context = context, r.stream = stream;
    r.grid_x = int32_t(o.grid[0]), r.grid_y = int32_t(o.grid[1]), r.grid_z = int32_t(o.grid[2]);
    r.block_x = int32_t(o.block[0]), r.block_y = int32_t(o.block[1]), r.block_z = int32_t(o.block[2]);
    r.static_shared_memory = o.function->static_shared, r.dynamic_shared_memory = int32_t(o.shared);
    r.shared_memory_executed = 32 * 1024;
    r.correlation = w.correlation, r.grid = int64_t(w.correlation), r.name = o.function->name;
    if (latency) r.queued = client_time(w.queued), r.submitted = client_time(w.queued + 1000);
    r.launch_type = o.cooperative ? kCooperative : kRegular;
    r.graph_node = w.node, r.graph = w.graph, r.source_graph = w.source_graph, r.source_graph_node = w.source_node;
    r.channel = 1, r.channel_type = kCompute;
    r.cluster_x = o.cluster[0], r.cluster_y = o.cluster[1], r.cluster_z = o.cluster[2];
    r.priority = w.stream->priority;
    store(each.owner, &r, r.kind);
  } else if (o.type == Operation::kMemcpy && o.peer) {
    MemcpyPeerRecord r{};
    r.kind = kMemcpyPeer, r.copy_kind = o.copy_kind, r.source_kind = o.source, r.destination_kind = o.destination;
    r.flags = o.async, r.bytes = o.bytes, r.start = start, r.end = end, r.device = device, r.context = context;
    r.stream = stream, r.source_device = o.source_device, r.destination_device = o.destination_device;
    r.correlation = w.correlation, r.graph_node = w.node, r.graph = w.graph;
    store(each.owner, &r, kMemcpyPeer);
  } else if (o.type == Operation::kMemcpy) {
    MemcpyRecord r{};
    r.kind = kMemcpy, r.copy_kind = o.copy_kind, r.source_kind = o.source, r.destination_kind = o.destination;
    r.flags = o.async, r.bytes = o.bytes, r.start = start, r.end = end, r.device = device, r.context = context;
    r.stream = stream, r.correlation = w.correlation, r.graph_node = w.node, r.graph = w.graph;
    r.channel = 2, r.channel_type = kAsyncCopy, r.copy_count = 1;
    r.source_graph = w.source_graph, r.source_graph_node = w.source_node;
    store(each.owner, &r, kMemcpy);
  } else {
    MemsetRecord r{};
    r.kind = kMemset, r.value = o.value, r.bytes = o.bytes, r.start = start, r.end = end, r.device = device;
    r.context = context, r.stream = stream, r.correlation = w.correlation, r.flags = o.async;
    r.memory_kind = kDeviceMemory, r.graph_node = w.node, r.graph = w.graph;
    r.source_graph = w.source_graph, r.source_graph_node = w.source_node;
    store(each.owner, &r, kMemset);
  }
}

// Work that has ended becomes records; with `all`, what still runs does too, and is gone (PyTorch's monitor).
void process(bool all) {
  const uint64_t now = gpu_now();
  for (auto each = pending.begin(); each != pending.end();)
    if (each->work.end <= now || all) {
      store_work(*each, each->work.end <= now);
      each = pending.erase(each);
    } else {
      ++each;
    }
  while (!pending_events.empty() && (pending_events.front().time <= now || all)) {
    store(pending_events.front().owner, &pending_events.front().record, kCudaEvent);
    pending_events.pop_front();
  }
}

void deliver() {  // buffers come back on a thread of CUPTI's (Kineto)
  std::unique_lock lock(mutex);
  for (;;) {
    while (full.empty()) changed.wait(lock);
    Buffer buffer = full.front();
    full.pop_front();
    delivering = true;
    BufferCompleted function = completed;
    lock.unlock();
    if (function) function(nullptr, 0, buffer.data, buffer.size, buffer.used);
    lock.lock();
    delivering = false;
    changed.notify_all();
  }
}

bool api_enabled(Domain domain, uint32_t cbid) {
  if (const auto one = api_one[domain].find(cbid); one != api_one[domain].end()) return one->second;
  return api_all[domain];
}

void call_back(Domain domain, uint32_t cbid, const void* data) {  // only what was subscribed to (header)
  if (callback && callbacks[domain][cbid & 1023]) callback(callback_user, domain, cbid, data);
}

CallbackData data_of(Call& call, Site site) {
  return {site,
          call.name,
          call.parameters,
          &call.result,
          call.symbol,
          call.context,
          call.context ? uint32_t(call.context->id) : 0,
          &call.data,
          call.correlation};
}

void on_enter(Call& call) {
  call.seen = true;
  call.start = client_now();
  std::unique_lock lock(mutex);
  const bool wanted = callback && callbacks[call.domain][call.cbid & 1023];
  for (auto& [kind, stack] : external)
    if (kinds[kExternalCorrelation] && !stack.empty() && !call.parent) {
      ExternalCorrelationRecord r{};
      r.kind = kExternalCorrelation, r.external_kind = kind, r.external = stack.back(),
      r.correlation = call.correlation;
      store(owner(), &r, kExternalCorrelation);
    }
  lock.unlock();
  if (wanted) {
    const CallbackData data = data_of(call, kEnterSite);
    call_back(call.domain, call.cbid, &data);
  }
}

void on_leave(Call& call) {
  if (!call.seen) return;  // subscribed in the midst of it
  const uint64_t end = client_now();
  const CallbackData data = data_of(call, kExitSite);
  call_back(call.domain, call.cbid, &data);
  std::lock_guard lock(mutex);
  process(false);
  if (!api_enabled(call.domain, call.cbid)) return;
  ApiRecord r{};
  r.kind = call.domain == kDriverDomain ? kDriver : kRuntime;
  r.cbid = call.cbid, r.start = call.start, r.end = end, r.process = uint32_t(getpid()), r.thread = thread_number();
  r.correlation = call.correlation, r.returned = uint32_t(call.result);
  store(owner(), &r, r.kind);
}

void on_resource(uint32_t cbid, ContextObject* context, StreamObject* stream, void* descriptor) {
  const ResourceData data{context, stream, descriptor};
  call_back(kResourceDomain, cbid, &data);
}

void on_work(const Work& work) {
  std::lock_guard lock(mutex);
  // Whole graphs or their nodes, never both (nsys: --cuda-graph-trace).
  if (work.whole_graph ? !kinds[kGraphTrace] : work.graph && kinds[kGraphTrace]) return;
  const Operation& o = work.operation;
  const bool wanted = work.whole_graph               ? true
                      : o.type == Operation::kKernel ? kinds[kKernel] || kinds[kConcurrentKernel]
                      : o.type == Operation::kMemset ? kinds[kMemset]
                      : o.peer                       ? kinds[kMemcpyPeer]
                                                     : kinds[kMemcpy];
  if (wanted) pending.push_back({work, owner()});
}

void on_synchronized(const Call&, const Synchronization& what, bool begins) {
  if (begins) {
    synchronization_start = client_now();
    return;
  }
  const uint64_t end = client_now();
  {
    std::lock_guard lock(mutex);
    if (kinds[kSynchronization]) {
      SynchronizationRecord r{};
      r.kind = kSynchronization, r.type = what.type, r.start = synchronization_start, r.end = end;
      r.correlation = what.correlation, r.context = what.context, r.stream = what.stream, r.event = what.event;
      r.event_sync = what.event_number;
      store(owner(), &r, kSynchronization);
    }
  }
  const SynchronizeData data{nullptr, nullptr};
  if (what.type == kStreamSynchronize) call_back(kSynchronizeDomain, kStreamSynchronized, &data);
  if (what.type == kContextSynchronize) call_back(kSynchronizeDomain, kContextSynchronized, &data);
}

void store_device(uint32_t device) {
  static const char* names[] = {"Fake GPU 0", "Fake GPU 1", "Fake GPU 2", "Fake GPU 3"};
  DeviceRecord r{};
  r.kind = kDevice, r.flags = 1, r.global_memory_bandwidth = 3'352'320'000, r.global_memory_size = 85'000'000'000;
  r.constant_memory_size = 65536, r.l2_cache_size = 52'428'800, r.threads_per_warp = 32, r.core_clock = 1'980'000;
  r.copy_engines = 3, r.multiprocessors = setting("SMS").empty() ? 132 : uint32_t(atoi(setting("SMS").c_str())),
  r.max_warps = 64, r.max_blocks = 32, r.max_shared_memory = 233'472;
  r.max_registers = 65536, r.max_registers_per_block = 65536, r.max_shared_memory_per_block = 49152;
  r.max_threads_per_block = 1024, r.compute_capability_major = 9, r.id = device;
  for (int i = 0; i < 16; i++) r.uuid[i] = uint8_t(0xA0 + device);
  r.name = names[device & 3], r.is_cuda_visible = 1, r.processing_clusters = 66;
  store(owner(), &r, kDevice);
}
void store_context(ContextObject* context) {
  ContextRecord r{};
  r.kind = kContext, r.context = uint32_t(context->id), r.device = context->device, r.compute_api = 1;
  r.null_stream = uint16_t(context->null_stream->id), r.process = uint64_t(getpid());
  store(owner(), &r, kContext);
}
void store_stream(StreamObject* stream, uint32_t correlation) {
  StreamRecord r{};
  r.kind = kStream, r.context = uint32_t(stream->context->id), r.stream = uint32_t(stream->id);
  r.priority = uint32_t(stream->priority), r.correlation = correlation;
  r.flag = stream == stream->context->null_stream ? kStreamNull
           : stream->flags & 1                    ? kStreamNonBlocking
                                                  : kStreamDefault;
  store(owner(), &r, kStream);
}
void on_context(ContextObject* context) {
  std::lock_guard lock(mutex);
  if (kinds[kDevice]) store_device(context->device);
  if (kinds[kContext]) store_context(context);
  if (kinds[kStream]) store_stream(context->null_stream, 0);
}
void on_stream(StreamObject* stream, uint32_t correlation) {
  std::lock_guard lock(mutex);
  if (kinds[kStream]) store_stream(stream, correlation);
}
void on_event(EventObject* event, uint32_t correlation) {
  std::lock_guard lock(mutex);
  if (!kinds[kCudaEvent]) return;
  CudaEventRecord r{};
  r.kind = kCudaEvent, r.correlation = correlation, r.context = uint32_t(event->stream->context->id);
  r.stream = uint32_t(event->stream->id), r.event = uint32_t(event->id), r.device = event->stream->context->device;
  r.event_sync = event->number;
  // Kineto finds such records behind those of the waits for them: it keeps these back.
  if (setting("EVENTS").empty())
    store(owner(), &r, kCudaEvent);
  else
    pending_events.push_back({r, event->time, owner()});
}
void on_memory(const MemoryEvent& what) {
  std::lock_guard lock(mutex);
  if (!kinds[kMemory]) return;
  MemoryRecord r{};
  r.kind = kMemory, r.operation = what.allocated ? kAllocation : strobe::cupti::kRelease, r.memory_kind = what.kind;
  r.correlation = what.correlation, r.address = what.address, r.timestamp = client_now(), r.program_counter = 0xabc000;
  // The header says "allocated" of the size; whether releases have it is not said. Both are tried.
  if (what.allocated || setting("RELEASED") != "unknown") r.bytes = what.bytes;
  r.process = uint32_t(getpid()), r.device = what.context->device, r.context = uint32_t(what.context->id);
  r.stream = what.stream ? uint32_t(what.stream->id) : kNoStream, r.is_async = what.stream != nullptr;  // header
  if (what.pool) {
    r.pool_type = kLocalPool, r.pool_address = what.pool->address, r.pool_release_threshold = what.pool->threshold;
    r.pool_size = what.pool->size, r.pool_utilized_size = what.pool->used;
  }
  store(owner(), &r, kMemory);
}
void on_pool(PoolOperation operation, const PoolObject& pool, uint32_t correlation) {
  std::lock_guard lock(mutex);
  if (!kinds[kMemoryPool]) return;
  MemoryPoolRecord r{};
  r.kind = kMemoryPool, r.operation = operation, r.type = kLocalPool, r.correlation = correlation;
  r.process = uint32_t(getpid()), r.device = pool.device, r.address = pool.address, r.size = pool.size;
  r.release_threshold = pool.threshold, r.timestamp = client_now(), r.utilized_size = pool.used;
  store(owner(), &r, kMemoryPool);
}
void store_unified(UnifiedMemoryKind kind, UnifiedMemoryRecord r) {
  if (!kinds[kUnifiedMemoryCounter] || !unified[kind]) return;  // only what was configured (header)
  r.kind = kUnifiedMemoryCounter, r.counter = kind, r.process = uint32_t(getpid());
  store(owner(), &r, kUnifiedMemoryCounter);
}
void on_migrated(const Migration& what) {
  std::lock_guard lock(mutex);
  UnifiedMemoryRecord r{};
  read_pair(gpu_at, cpu_at);
  r.value = what.bytes, r.address = what.address, r.flags = what.cause;
  r.start = client_time(what.start), r.end = client_time(what.end);
  r.source = uint32_t(what.from), r.destination = uint32_t(what.to);
  store_unified(what.to < 0 ? kUnifiedDeviceToHost : what.from < 0 ? kUnifiedHostToDevice : kUnifiedDeviceToDevice, r);
}
void on_page_fault(int device, uint64_t address, uint64_t groups) {
  std::lock_guard lock(mutex);
  UnifiedMemoryRecord r{};
  // Of the host's: the code that met it, and no end (header).
  r.value = device < 0 ? 0xabc000 : groups, r.address = address, r.start = client_now(), r.source = uint32_t(device);
  r.end = device < 0 ? 0 : r.start + 1000;
  store_unified(device < 0 ? kCpuPageFault : kGpuPageFaults, r);
}
void on_compiled(ContextObject* context, uint32_t correlation, uint64_t ns) {
  std::lock_guard lock(mutex);
  if (!kinds[kJit]) return;
  JitRecord r{};
  r.kind = kJit, r.entry = kPtxToCubin, r.operation = kCompile, r.device = context->device, r.end = client_now();
  r.start = r.end - ns, r.correlation = correlation, r.process = uint32_t(getpid()), r.thread = thread_number();
  store(owner(), &r, kJit);
}

const Hooks all_hooks{on_enter, on_leave,  on_resource, on_work,     on_synchronized, on_context, on_stream,
                      on_event, on_memory, on_pool,     on_migrated, on_page_fault,   on_compiled};

// CUPTI works only in a process that has the driver. Without: 15 up to 12.9, 999 from 13.0 (measured).
constexpr Result kUnattached = kCuda >= 13000 ? Result(kUnknownError) : Result(kNotInitialized);
bool attach() {
  std::lock_guard lock(mutex);
  if (attached) return true;
  void* driver = setting("USELESS").empty() ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (!driver) return false;
  gpu_now = reinterpret_cast<uint64_t (*)()>(dlsym(driver, "fake_cuda_gpu_now"));
  auto* connect = reinterpret_cast<void (*)(const Hooks*)>(dlsym(driver, "fake_cuda_attach"));
  if (!gpu_now || !connect) return false;
  read_pair(first_gpu, first_cpu);
  connect(&all_hooks);
  return attached = true;
}
template <class F>
F of_driver(const char* name) {
  return reinterpret_cast<F>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
}

struct Name {
  Domain domain;
  uint32_t cbid;
  const char* name;
};
const Name names[] = {
    // cupti_runtime_cbid.h, cupti_driver_cbid.h: the enumerators' own names
    {kRuntimeDomain, kCudaGetLastError, "cudaGetLastError_v3020"},
    {kRuntimeDomain, kCudaSetDevice, "cudaSetDevice_v3020"},
    {kRuntimeDomain, kCudaGetDevice, "cudaGetDevice_v3020"},
    {kRuntimeDomain, kCudaMalloc, "cudaMalloc_v3020"},
    {kRuntimeDomain, kCudaFree, "cudaFree_v3020"},
    {kRuntimeDomain, kCudaMallocHost, "cudaMallocHost_v3020"},
    {kRuntimeDomain, kCudaFreeHost, "cudaFreeHost_v3020"},
    {kRuntimeDomain, kCudaMallocManaged, "cudaMallocManaged_v6000"},
    {kRuntimeDomain, kCudaMemPrefetchAsync, "cudaMemPrefetchAsync_v8000"},
    {kRuntimeDomain, kCudaMallocAsync, "cudaMallocAsync_v11020"},
    {kRuntimeDomain, kCudaFreeAsync, "cudaFreeAsync_v11020"},
    {kRuntimeDomain, kCudaMemcpyAsync, "cudaMemcpyAsync_v3020"},
    {kRuntimeDomain, kCudaMemsetAsync, "cudaMemsetAsync_v3020"},
    {kRuntimeDomain, kCudaStreamCreate, "cudaStreamCreate_v3020"},
    {kRuntimeDomain, kCudaStreamSynchronize, "cudaStreamSynchronize_v3020"},
    {kRuntimeDomain, kCudaEventCreate, "cudaEventCreate_v3020"},
    {kRuntimeDomain, kCudaEventRecord, "cudaEventRecord_v3020"},
    {kRuntimeDomain, kCudaEventSynchronize, "cudaEventSynchronize_v3020"},
    {kRuntimeDomain, kCudaStreamWaitEvent, "cudaStreamWaitEvent_v3020"},
    {kRuntimeDomain, kCudaDeviceSynchronize, "cudaDeviceSynchronize_v3020"},
    {kRuntimeDomain, kCudaLaunchKernel, "cudaLaunchKernel_v7000"},
    {kRuntimeDomain, kCudaLaunchKernelEx, "cudaLaunchKernelExC_v11060"},
    {kRuntimeDomain, kCudaGraphLaunch, "cudaGraphLaunch_v10000"},
    {kRuntimeDomain, kCudaGraphInstantiate12, "cudaGraphInstantiate_v12000"},
    {kRuntimeDomain, kCudaStreamBeginCapture, "cudaStreamBeginCapture_v10000"},
    {kRuntimeDomain, kCudaStreamEndCapture, "cudaStreamEndCapture_v10000"},
    {kDriverDomain, kCuInit, "cuInit"},
    {kDriverDomain, kCuCtxSynchronize, "cuCtxSynchronize"},
    {kDriverDomain, kCuModuleLoadData, "cuModuleLoadData"},
    {kDriverDomain, kCuModuleUnload, "cuModuleUnload"},
    {kDriverDomain, kCuEventCreate, "cuEventCreate"},
    {kDriverDomain, kCuEventRecord, "cuEventRecord"},
    {kDriverDomain, kCuEventSynchronize, "cuEventSynchronize"},
    {kDriverDomain, kCuStreamCreate, "cuStreamCreate"},
    {kDriverDomain, kCuStreamSynchronize, "cuStreamSynchronize"},
    {kDriverDomain, kCuStreamWaitEvent, "cuStreamWaitEvent"},
    {kDriverDomain, kCuMemsetD8Async, "cuMemsetD8Async"},
    {kDriverDomain, kCuCtxCreate, "cuCtxCreate_v2"},
    {kDriverDomain, kCuMemAlloc, "cuMemAlloc_v2"},
    {kDriverDomain, kCuMemFree, "cuMemFree_v2"},
    {kDriverDomain, kCuMemFreeHost, "cuMemFreeHost"},
    {kDriverDomain, kCuMemAllocHost, "cuMemAllocHost_v2"},
    {kDriverDomain, kCuMemAllocManaged, "cuMemAllocManaged"},
    {kDriverDomain, kCuMemPrefetchAsync, "cuMemPrefetchAsync"},
    {kDriverDomain, kCuMemAllocAsync, "cuMemAllocAsync"},
    {kDriverDomain, kCuMemFreeAsync, "cuMemFreeAsync"},
    {kDriverDomain, kCuMemPoolTrimTo, "cuMemPoolTrimTo"},
    {kDriverDomain, kCuMemPoolCreate, "cuMemPoolCreate"},
    {kDriverDomain, kCuMemPoolDestroy, "cuMemPoolDestroy"},
    {kDriverDomain, kCuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync"},
    {kDriverDomain, kCuMemcpyHtoD, "cuMemcpyHtoD_v2"},
    {kDriverDomain, kCuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2"},
    {kDriverDomain, kCuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2"},
    {kDriverDomain, kCuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2"},
    {kDriverDomain, kCuMemcpyPeerAsync, "cuMemcpyPeerAsync"},
    {kDriverDomain, kCuCtxGetCurrent, "cuCtxGetCurrent"},
    {kDriverDomain, kCuLaunchKernel, "cuLaunchKernel"},
    {kDriverDomain, kCuLaunchKernelEx, "cuLaunchKernelEx"},
    {kDriverDomain, kCuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"},
    {kDriverDomain, kCuStreamEndCapture, "cuStreamEndCapture"},
    {kDriverDomain, kCuGraphCreate, "cuGraphCreate"},
    {kDriverDomain, kCuGraphAddKernelNode, "cuGraphAddKernelNode"},
    {kDriverDomain, kCuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags"},
    {kDriverDomain, kCuGraphLaunch, "cuGraphLaunch"},
};

}  // namespace

#define BEGIN(name)                                \
  if (const int code = failure(name)) return code; \
  if (!attach()) return kUnattached;               \
  std::unique_lock lock(mutex)

API cuptiGetVersion(uint32_t* out) {
  if (const int code = failure("GetVersion")) return code;
  // 13.2 ends the process where the driver is of no use; later releases say 999 and leave 0 (measured).
  if (!setting("CRASH").empty() || (kCuda / 10 == 1302 && !attach())) {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  *out = 0;
  if (kCuda >= 13030 && !attach()) return kUnknownError;
  *out = version();
  return kSuccess;
}
API cuptiGetResultString(Result result, const char** text) {
  const std::map<Result, const char*> known = {{0, "CUPTI_SUCCESS"},
                                               {1, "CUPTI_ERROR_INVALID_PARAMETER"},
                                               {7, "CUPTI_ERROR_INVALID_OPERATION"},
                                               {15, "CUPTI_ERROR_NOT_INITIALIZED"},
                                               {21, "CUPTI_ERROR_INVALID_KIND"},
                                               {27, "CUPTI_ERROR_NOT_SUPPORTED"},
                                               {35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
                                               {39, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
                                               {999, "CUPTI_ERROR_UNKNOWN"}};
  const auto found = known.find(result);
  if (found == known.end()) return kInvalidParameter;
  *text = found->second;
  return kSuccess;
}
API cuptiGetTimestamp(uint64_t* ns) {
  *ns = client_now();
  return kSuccess;
}
API cuptiGetLastError() { return kSuccess; }

static Result subscribe(Subscriber* out, Callback function, void* user) {
  if (!out) return kInvalidParameter;
  // One at a time; nsys and the like count (header).
  if (subscriber || !setting("OTHER_TOOL").empty()) return kMultipleSubscribers;
  callback = function, callback_user = user;
  *out = subscriber = &subscriber_token;
  memset(callbacks, 0, sizeof callbacks);  // header: enables no callbacks
  return kSuccess;
}
API cuptiSubscribe(Subscriber* out, Callback function, void* user) {
  BEGIN("Subscribe");
  return subscribe(out, function, user);
}
API cuptiUnsubscribe(Subscriber which) {
  BEGIN("Unsubscribe");
  if (!which || which != subscriber) return kInvalidParameter;
  subscriber = nullptr, callback = nullptr;
  memset(callbacks, 0, sizeof callbacks);
  return kSuccess;
}
API cuptiEnableCallback(uint32_t enable, Subscriber which, Domain domain, uint32_t cbid) {
  BEGIN("EnableCallback");
  if (!which || which != subscriber || domain < 1 || domain > (kCuda >= 12040 ? 6 : 5) || cbid >= 1024)
    return kInvalidParameter;
  callbacks[domain][cbid] = enable;
  return kSuccess;
}
API cuptiEnableDomain(uint32_t enable, Subscriber which, Domain domain) {
  BEGIN("EnableDomain");
  if (!which || which != subscriber || domain < 1 || domain > (kCuda >= 12040 ? 6 : 5)) return kInvalidParameter;
  memset(callbacks[domain], enable != 0, sizeof callbacks[domain]);
  return kSuccess;
}
API cuptiGetCallbackName(Domain domain, uint32_t cbid, const char** name) {
  if (const int code = failure("GetCallbackName")) return code;
  for (const Name& each : names)
    if (each.domain == domain && each.cbid == cbid) return *name = each.name, kSuccess;
  return kInvalidParameter;
}

static Result enable(Kind kind, const char* name, bool dump, std::unique_lock<std::recursive_mutex>& lock) {
  if (const int code = failure(std::string(name) + "/" + std::to_string(kind))) return code;
  if (!size_of(kind)) return kInvalidKind;
  if ((kind == kKernel && kinds[kConcurrentKernel]) || (kind == kConcurrentKernel && kinds[kKernel]))
    return kNotCompatible;
  kinds[kind] = ever_enabled = true;
  if (kind == kUnifiedMemoryCounter) of_driver<void (*)(int)>("fake_cuda_tell_unified_memory")(1);
  if (kind == kKernel) of_driver<void (*)(int)>("fake_cuda_serialize")(1);  // header: kernels run one after the other
  if (kind == kDriver || kind == kRuntime) {  // header: the kind overrides what was said of single functions before it
    const Domain domain = kind == kDriver ? kDriverDomain : kRuntimeDomain;
    api_all[domain] = true;
    api_one[domain].clear();
  }
  if (dump) {  // of objects that are there already; the driver's lock comes before ours
    static Kind which;
    static std::map<uint32_t, bool> seen;
    which = kind;
    seen.clear();
    lock.unlock();
    of_driver<void (*)(void (*)(ContextObject*), void (*)(StreamObject*))>("fake_cuda_for_each")(
        [](ContextObject* context) {
          std::lock_guard lock(mutex);
          if (which == kDevice && !seen[context->device]) seen[context->device] = true, store_device(context->device);
          if (which == kContext) store_context(context);
        },
        [](StreamObject* stream) {
          std::lock_guard lock(mutex);
          if (which == kStream) store_stream(stream, 0);
        });
  }
  return kSuccess;
}
API cuptiActivityEnable(Kind kind) {
  BEGIN("ActivityEnable");
  return enable(kind, "ActivityEnable", false, lock);
}
API cuptiActivityEnableAndDump(Kind kind) {
  BEGIN("ActivityEnableAndDump");
  return enable(kind, "ActivityEnableAndDump", true, lock);
}
API cuptiActivityDisable(Kind kind) {
  BEGIN("ActivityDisable");
  if (!size_of(kind)) return kInvalidKind;
  kinds[kind] = false;
  if (kind == kKernel) of_driver<void (*)(int)>("fake_cuda_serialize")(0);
  if (kind == kDriver || kind == kRuntime) {
    const Domain domain = kind == kDriver ? kDriverDomain : kRuntimeDomain;
    api_all[domain] = false;
    api_one[domain].clear();
  }
  return kSuccess;
}
API cuptiActivityRegisterCallbacks(BufferRequested request, BufferCompleted complete) {
  if (const int code = failure("ActivityRegisterCallbacks")) return code;
  if (!request || !complete) return kInvalidParameter;
  std::lock_guard lock(mutex);
  requested = request, completed = complete;
  if (!worker_runs) {
    std::thread thread(deliver);
    worker = thread.get_id();
    thread.detach();
    worker_runs = true;
  }
  return kSuccess;
}
API cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, Activity** record) {
  if (const int code = failure("ActivityGetNextRecord")) return code;
  if (kCuda >= 13020 && !attach()) return kUnknownError;  // measured
  if (!buffer || !record) return kInvalidParameter;
  uint8_t* at = buffer;
  if (*record) at = reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind);
  if (at >= buffer + valid) return kMaxLimitReached;
  uint32_t kind;
  memcpy(&kind, at, sizeof kind);
  if (!size_of(kind) || at + size_of(kind) > buffer + valid) return kInvalidKind;  // header: incomplete or invalid
  *record = reinterpret_cast<Activity*>(at);
  return kSuccess;
}
API cuptiActivityGetNumDroppedRecords(Context, uint32_t, size_t* out) {
  std::lock_guard lock(mutex);
  *out = std::exchange(dropped, 0);  // header: since the last call
  return kSuccess;
}
API cuptiActivityFlushAll(uint32_t flag) {
  BEGIN("ActivityFlushAll");
  if (!requested) return kInvalidOperation;  // header
  process(flag & kFlushForced);              // 0: only what is complete is returned (header)
  for (auto& [owner, buffer] : buffers)
    if (buffer.used) hand_over(buffer);
  // It blocks until all were returned (header); in a forked child nobody returns them (HPCToolkit's issue 195).
  if (std::this_thread::get_id() != worker)
    while (!full.empty() || delivering) changed.wait(lock);
  return kSuccess;
}
API cuptiActivityFlushPeriod(uint32_t) {
  BEGIN("ActivityFlushPeriod");
  return kSuccess;
}
static size_t attribute_size(Attribute attribute) {
  switch (attribute) {
    case kZeroedOutActivityBuffer:
    case kDeviceBuffersInPinnedMemory:
      return 1;
    case kPerThreadActivityBuffer:
      return kCuda >= 12030 ? 1 : 0;
    case kDeviceBufferSize:
    case kDeviceBufferPoolLimit:
    case kProfilingSemaphorePoolSize:
    case kProfilingSemaphorePoolLimit:
    case kDeviceBufferPreAllocate:
    case kProfilingSemaphorePreAllocate:
      return sizeof(size_t);
  }
  return 0;
}
API cuptiActivitySetAttribute(Attribute attribute, size_t* size, void* value) {
  BEGIN("ActivitySetAttribute");
  const size_t expected = attribute_size(attribute);
  if (!size || !value || !expected) return kInvalidParameter;
  if (*size < expected) return 10;  // header: the value's size is not sufficient
  attributes[attribute] = std::string(static_cast<char*>(value), expected);
  return kSuccess;
}
API cuptiActivityGetAttribute(Attribute attribute, size_t* size, void* value) {
  BEGIN("ActivityGetAttribute");
  const size_t expected = attribute_size(attribute);
  if (!size || !value || !expected) return kInvalidParameter;
  if (*size < expected) return 10;
  const auto set = attributes.find(attribute);
  memset(value, 0, expected);
  if (set != attributes.end()) memcpy(value, set->second.data(), expected);
  *size = expected;
  return kSuccess;
}
API cuptiActivityRegisterTimestampCallback(Timestamp now) {
  BEGIN("ActivityRegisterTimestampCallback");
  if (!now) return kInvalidParameter;
  if (ever_enabled) return kNotCompatible;  // only before anything is enabled (header; stricter than it)
  timestamp = now;
  read_pair(first_gpu, first_cpu);
  return kSuccess;
}
API cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  BEGIN("ActivityEnableLatencyTimestamps");
  latency = enable;
  return kSuccess;
}
API cuptiActivityEnableLaunchAttributes(uint8_t) {
  BEGIN("ActivityEnableLaunchAttributes");
  return kSuccess;
}
API cuptiActivityConfigureUnifiedMemoryCounter(UnifiedMemoryConfig* configs, uint32_t count) {
  BEGIN("ActivityConfigureUnifiedMemoryCounter");
  if (!configs || !count) return kInvalidParameter;  // header
  // header: after the driver's initialization; before the kind is enabled, which is taken at its word
  if (!of_driver<int (*)()>("fake_cuda_initialized")()) return kNotInitialized;
  if (kinds[kUnifiedMemoryCounter]) return kInvalidOperation;
  for (uint32_t i = 0; i < count; i++) {
    if (configs[i].counter < 1 || configs[i].counter > 8) return kInvalidParameter;
    unified[configs[i].counter] = configs[i].enable != 0;
  }
  return kSuccess;
}
API cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  BEGIN("ActivityPushExternalCorrelationId");
  external[kind].push_back(id);
  return kSuccess;
}
API cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  BEGIN("ActivityPopExternalCorrelationId");
  if (external[kind].empty()) return kQueueEmpty;  // header
  if (last) *last = external[kind].back();
  external[kind].pop_back();
  return kSuccess;
}
API cuptiSetThreadIdType(ThreadIdType type) {
  BEGIN("SetThreadIdType");
  if (type > kThreadIdSystem) return kNotSupported;
  thread_type = type;
  return kSuccess;
}
API cuptiGetThreadIdType(ThreadIdType* type) {
  BEGIN("GetThreadIdType");
  *type = thread_type;
  return kSuccess;
}
API cuptiGetContextId(ContextObject* context, uint32_t* id) {
  if (!context || !id) return kInvalidParameter;
  *id = uint32_t(context->id);
  return kSuccess;
}
API cuptiGetStreamIdEx(ContextObject* context, StreamObject* stream, uint8_t, uint32_t* id) {
  if (!id || (!stream && !context)) return kInvalidParameter;
  *id = uint32_t(stream ? stream->id : context->null_stream->id);
  return kSuccess;
}
API cuptiGetDeviceId(ContextObject* context, uint32_t* id) {
  if (!context || !id) return kInvalidParameter;
  *id = context->device;
  return kSuccess;
}
API cuptiGetGraphId(GraphObject* graph, uint32_t* id) {
  if (!graph || !id) return kInvalidParameter;
  *id = uint32_t(graph->id);
  return kSuccess;
}
API cuptiGetGraphNodeId(NodeObject* node, uint64_t* id) {
  if (!node || !id) return kInvalidParameter;
  *id = node->id;
  return kSuccess;
}
API cuptiFinalize() {
  BEGIN("Finalize");
  return kSuccess;
}

// For tests: kinds, calls and callbacks of calls that are enabled now.
extern "C" __attribute__((visibility("default"))) int fake_cupti_enabled() {
  std::lock_guard lock(mutex);
  int count = 0;
  for (const bool each : kinds) count += each;
  for (const auto& calls : {api_one[kDriverDomain], api_one[kRuntimeDomain]})
    for (const auto& [cbid, on] : calls) count += on;
  for (const Domain domain : {kDriverDomain, kRuntimeDomain})
    for (const bool each : callbacks[domain]) count += each;
  return count;
}

// --- functions that came later, by the symbols of the genuine libraries

#if FAKE_RELEASE >= 12040
API cuptiGetErrorMessage(Result result, const char** text) {
  if (cuptiGetResultString(result, text)) return kInvalidParameter;
  if (result == kInsufficientPrivileges) *text = "The user does not have sufficient privileges";
  return kSuccess;
}
API cuptiActivityEnableDeviceGraph(uint8_t) {
  BEGIN("ActivityEnableDeviceGraph");
  return kSuccess;
}
API cuptiGetGraphExecId(ExecObject* exec, uint32_t* id) {
  if (!exec || !id) return kInvalidParameter;
  *id = uint32_t(exec->id);
  return kSuccess;
}
#endif
#if FAKE_RELEASE >= 12060
API cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) {
  BEGIN("ActivityEnableRuntimeApi");
  api_one[kRuntimeDomain][cbid] = enable;
  ever_enabled |= enable;
  return kSuccess;
}
API cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable) {
  BEGIN("ActivityEnableDriverApi");
  api_one[kDriverDomain][cbid] = enable;
  ever_enabled |= enable;
  return kSuccess;
}
API cuptiActivityEnableAllocationSource(uint8_t) {
  BEGIN("ActivityEnableAllocationSource");
  return kSuccess;
}
#endif
#if FAKE_RELEASE >= 12080
API cuptiActivityEnableAllSyncRecords(uint8_t) {
  BEGIN("ActivityEnableAllSyncRecords");
  return kSuccess;
}
#endif
#if FAKE_RELEASE >= 13000
API cuptiSubscribe_v2(Subscriber* out, Callback function, void* user, SubscriberParameters* parameters) {
  BEGIN("Subscribe_v2");
  static std::string last;
  if (!parameters || parameters->struct_size < sizeof *parameters) return kInvalidParameter;
  if (parameters->name && strlen(parameters->name) > kMaxSubscriberName) return kInvalidParameter;  // header
  if (parameters->old_name && parameters->old_size < kMinOldSubscriberName) return kInvalidParameter;
  const Result result = subscribe(out, function, user);
  if (result == kMultipleSubscribers && parameters->old_name)
    snprintf(parameters->old_name, parameters->old_size, "%s", last.c_str());
  if (!result && parameters->name) last = parameters->name;
  return result;
}
API cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) {
  BEGIN("ActivityEnableCudaEventDeviceTimestamps");
  return kSuccess;
}
#endif
#if FAKE_RELEASE >= 13020
API cuptiActivityGetStructSize(Kind kind, uint32_t, size_t* size) {
  if (!attach()) return kUnknownError;
  if (!size) return kInvalidParameter;
  *size = size_of(kind);
  return *size ? kSuccess : kInvalidKind;
}
#endif
#if FAKE_RELEASE >= 13030
API cuptiActivityGetNextRecord_v2(Subscriber, uint8_t* buffer, size_t valid, Activity** record) {
  return cuptiActivityGetNextRecord(buffer, valid, record);
}
#endif
