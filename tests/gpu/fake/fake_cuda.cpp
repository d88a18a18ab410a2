// fake_cuda.cpp - a CUDA driver without a GPU, with the part of the runtime that matters on top of it. Work takes the
// time that the test says, on a clock of its own; each stream does one thing after the other. What happened, and when,
// goes line by line to FAKE_CUDA_TRUTH, whether CUPTI is there or not.
#include "fake.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#define API extern "C" __attribute__((visibility("default")))

using namespace fake;
using namespace strobe::cupti;

namespace {

constexpr int kOk = 0, kInvalidValue = 1, kNotInitializedError = 3, kNoDevice = 100;

const Hooks* hooks;
// Nothing here is ever destroyed: clients may call to the end of the process.
auto& mutex = *new std::recursive_mutex;
pid_t initialized;  // by this process
std::atomic<bool> init_returned{false};
bool serialize;
std::atomic<uint32_t> correlations{0};
std::atomic<uint64_t> ids{100};
auto& contexts = *new std::vector<ContextObject*>;
auto& streams = *new std::vector<StreamObject*>;
auto& primary = *new std::map<uint32_t, ContextObject*>;
thread_local ContextObject* current;
thread_local uint32_t current_device;
thread_local Call* innermost;
thread_local uint64_t next_ns, next_end_ns;
uint32_t stream_ids = 7;  // the first context's default stream is 7 with the genuine driver, too
uint32_t context_ids = 1;

uint64_t mono() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}
// The GPU's clock has another zero and, with FAKE_CUDA_DRIFT_PPM, another speed.
constexpr uint64_t kGpuZero = 5'000'000'000'000;
double speed() {
  static const double value = 1 + atof(setting("DRIFT_PPM").c_str()) / 1e6;
  return value;
}
const uint64_t origin = mono();
uint64_t gpu_of(uint64_t ns) { return kGpuZero + uint64_t(double(ns - origin) * speed()); }
uint64_t mono_of(uint64_t gpu) {  // what has no time yet was before the beginning
  return gpu > kGpuZero ? origin + uint64_t(double(gpu - kGpuZero) / speed()) : 0;
}

void truth(const char* format, ...) __attribute__((format(printf, 1, 2)));
void truth(const char* format, ...) {
  static const int file = [] {
    const std::string path = setting("TRUTH");
    return path.empty() ? -1 : open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }();
  if (file < 0) return;
  char line[4096];
  int n = snprintf(line, sizeof line, "{\"pid\": %d, \"thread\": %ld, ", getpid(), syscall(SYS_gettid));
  va_list rest;
  va_start(rest, format);
  n += vsnprintf(line + n, sizeof line - size_t(n) - 3, format, rest);
  va_end(rest);
  line[n++] = '}', line[n++] = '\n';
  if (write(file, line, size_t(n)) != n) abort();  // a truth with holes is none
}

// One public call. A runtime call and the driver call inside it have one correlation number, the launch's; with
// FAKE_CUDA_NESTED=own the inner one has its own. Which of the two the genuine one does is not known here.
class Calling : public Call {
 public:
  Calling(Domain domain, uint32_t cbid, const char* name, const char* symbol = nullptr,
          const void* parameters = nullptr)
      : Call{domain, cbid, name, parameters, symbol} {
    static const bool own = setting("NESTED") == "own";
    parent = innermost;
    innermost = this;
    correlation = parent && !own ? parent->correlation : ++correlations;
    context = current;
    enter_ns = mono();
    if (hooks) hooks->enter(*this);
  }
  ~Calling() {
    context = current;
    if (hooks) hooks->leave(*this);
    innermost = parent;
    truth(
        "\"what\": \"call\", \"domain\": \"%s\", \"name\": \"%s\", \"cbid\": %u, \"correlation\": %u, \"nested\": %s, "
        "\"result\": %d, \"start_ns\": %lu, \"end_ns\": %lu",
        domain == kDriverDomain ? "driver" : "runtime", name, cbid, correlation, parent ? "true" : "false", result,
        enter_ns, mono());
  }
  int returns(int code) { return result = code; }
  // The records of work bear the number of the outermost call.
  uint32_t launch() const { return parent ? parent->correlation : correlation; }
};

bool usable() { return initialized == getpid(); }  // a forked child has no CUDA, as with the genuine driver

ContextObject* make_context(uint32_t device) {
  auto* context = new ContextObject{context_ids++, device, nullptr};
  context->null_stream = new StreamObject{stream_ids++, context};
  contexts.push_back(context);
  streams.push_back(context->null_stream);
  current = context;
  if (hooks) {
    hooks->context_created(context);
    hooks->resource(kContextCreated, context, nullptr, nullptr);
  }
  return context;
}

ContextObject* primary_context(uint32_t device) {
  std::lock_guard lock(mutex);
  ContextObject*& context = primary[device];
  if (!context) context = make_context(device);
  return context;
}

StreamObject* stream_of(void* stream) {
  return stream ? static_cast<StreamObject*>(stream) : current ? current->null_stream : nullptr;
}

void log_work(const Work& work, const Operation& operation) {
  const char* kinds[] = {"kernel", "memcpy", "memset"};
  truth(
      "\"what\": \"%s\", \"name\": \"%s\", \"correlation\": %u, \"device\": %u, \"context\": %lu, \"stream\": %lu, "
      "\"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, \"bytes\": %lu, \"copy_kind\": %u, "
      "\"graph\": %u, \"node\": %lu, \"source_node\": %lu, \"queued_ns\": %lu, \"start_ns\": %lu, \"end_ns\": %lu",
      work.whole_graph ? "graph" : kinds[operation.type], operation.function ? operation.function->name : "",
      work.correlation, work.stream->context->device, work.stream->context->id, work.stream->id, operation.grid[0],
      operation.grid[1], operation.grid[2], operation.block[0], operation.block[1], operation.block[2],
      operation.shared, operation.bytes, operation.copy_kind, work.graph, work.node, work.source_node,
      mono_of(work.queued), mono_of(work.start), mono_of(work.end));
}

uint64_t duration(Operation& operation) {
  if (next_ns) return std::exchange(next_ns, 0);
  if (operation.type == Operation::kKernel) return operation.function->default_ns;
  return 2000 + operation.bytes / 25;  // 25 GB/s
}

// When work that is given now can start: after what its stream has, and legacy default streams wait for and hold up all
// others of their context that do not say otherwise.
uint64_t ready(StreamObject* stream) {
  uint64_t at = std::max(gpu_of(mono()) + 3000, stream->tail);  // 3 us to the GPU
  StreamObject* null_stream = stream->context->null_stream;
  for (StreamObject* other : streams)
    if (other->context == stream->context &&
        (serialize || ((stream == null_stream || other == null_stream) && !(stream->flags & 1) && !(other->flags & 1))))
      at = std::max(at, other->tail);
  return at;
}

void submit(Calling& call, StreamObject* stream, Operation operation) {
  std::lock_guard lock(mutex);
  if (stream->capturing) {
    auto* node = new NodeObject{ids++, operation, stream->frontier};
    node->operation.ns = duration(node->operation);
    stream->capturing->nodes.push_back(node);
    stream->frontier = {node};
    truth("\"what\": \"node\", \"name\": \"%s\", \"node\": %lu, \"graph\": %lu, \"time_ns\": %lu",
          operation.function ? operation.function->name : "", node->id, stream->capturing->id, mono());
    GraphData data{stream->capturing, nullptr, node, nullptr, operation.type, nullptr, nullptr};
    if (hooks) hooks->resource(kGraphNodeCreated, current, stream, &data);
    return;
  }
  Work work{operation, stream, call.launch(), gpu_of(mono()), 0, 0};
  work.operation.ns = duration(work.operation);
  work.start = ready(stream);
  work.end = work.start + work.operation.ns;
  if (next_end_ns) work.end = std::max(work.start + 1, gpu_of(std::exchange(next_end_ns, 0)));
  stream->tail = work.end;
  log_work(work, work.operation);
  if (hooks) hooks->work(work);
}

void wait_for(uint64_t gpu) {
  for (uint64_t until = mono_of(gpu), now = mono(); now < until; now = mono()) {
    timespec t{time_t((until - now) / 1000000000), long((until - now) % 1000000000)};
    nanosleep(&t, nullptr);
  }
}

void synchronize(Calling& call, SynchronizationType type, uint32_t stream, const EventObject* event, uint64_t until) {
  const Synchronization what{type,
                             call.launch(),
                             current ? uint32_t(current->id) : 0,
                             stream,
                             event ? uint32_t(event->id) : kNoEvent,
                             mono(),
                             event ? event->number : 0};
  if (hooks) hooks->synchronized(call, what, true);
  wait_for(until);
  if (hooks) hooks->synchronized(call, what, false);
  truth(
      "\"what\": \"synchronization\", \"type\": %u, \"stream\": %d, \"correlation\": %u, \"event\": %d, "
      "\"recorded_by\": %u, "
      "\"recorded_on\": %d, \"start_ns\": %lu, \"end_ns\": %lu",
      uint32_t(type), int(stream), what.correlation, int(what.event), event ? event->recorded_by : 0,
      event ? int(event->stream->id) : -1, what.enter_ns, mono());
}

uint64_t last_end(const ContextObject* context) {
  std::lock_guard lock(mutex);
  uint64_t last = 0;
  for (const StreamObject* stream : streams)
    if (stream->context == context) last = std::max(last, stream->tail);
  return last;
}

int launch_kernel(Calling& call, void* function, const uint32_t* grid, const uint32_t* block, const uint32_t* cluster,
                  uint32_t shared, void* stream, bool cooperative) {
  if (!usable() || !current) return call.returns(kNotInitializedError);
  if (!function || !grid[0] || !block[0]) return call.returns(kInvalidValue);
  Operation operation;
  operation.function = static_cast<FunctionObject*>(function);
  for (int i = 0; i < 3; i++)
    operation.grid[i] = grid[i], operation.block[i] = block[i], operation.cluster[i] = cluster[i];
  operation.shared = shared;
  operation.cooperative = cooperative;
  submit(call, stream_of(stream), operation);
  return call.returns(kOk);
}

int copy(Calling& call, uint8_t kind, uint64_t bytes, void* stream, bool async, uint8_t source, uint8_t destination) {
  if (!usable() || !current) return call.returns(kNotInitializedError);
  Operation operation;
  operation.type = Operation::kMemcpy;
  operation.bytes = bytes, operation.copy_kind = kind, operation.async = async;
  operation.source = source, operation.destination = destination;
  StreamObject* target = stream_of(stream);
  submit(call, target, operation);
  if (!async) wait_for(target->tail);
  return call.returns(kOk);
}

}  // namespace

// --- what the fake CUPTI and the tests use

API void fake_cuda_attach(const Hooks* those) { hooks = those; }
API uint64_t fake_cuda_gpu_now() { return gpu_of(mono()); }
API void fake_cuda_serialize(int on) { serialize = on; }
API int fake_cuda_initialized() { return init_returned; }
// Whether CUPTI tells of unified memory.
std::atomic<int> unified_memory{0};
API void fake_cuda_tell_unified_memory(int on) { unified_memory = on; }
API int fake_cuda_unified_memory_told() { return unified_memory; }
API void fake_cuda_for_each(void (*context)(ContextObject*), void (*stream)(StreamObject*)) {
  std::lock_guard lock(mutex);
  for (ContextObject* each : contexts) context(each);
  for (StreamObject* each : streams) stream(each);
}
// How long the next work of this thread takes.
API void fake_cuda_next(uint64_t ns) { next_ns = ns; }
// Or when it ends, of CLOCK_MONOTONIC.
API void fake_cuda_next_ends(uint64_t ns) { next_end_ns = ns; }

// --- the driver

API int cuInit(unsigned) {
  std::lock_guard lock(mutex);
  if (const int code = failure("cuInit")) return code;
  if (initialized && !usable()) return kNotInitializedError;
  if (initialized) return kOk;
  initialized = getpid();
  Calling call(kDriverDomain, kCuInit, "cuInit");
  // The injection is loaded and called by cuInit, once (NVIDIA's cupti_trace_injection sample).
  if (const char* path = getenv("CUDA_INJECTION64_PATH"); path && *path && strcmp(path, "none")) {
    if (void* injection = dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
      if (auto* start = reinterpret_cast<int (*)()>(dlsym(injection, "InitializeInjection"))) start();
    } else if (!setting("VERBOSE").empty()) {
      fprintf(stderr, "fake cuInit: %s\n", dlerror());
    }
  }
  if (hooks) hooks->resource(kInitFinished, nullptr, nullptr, nullptr);
  init_returned = true;
  return call.returns(kOk);
}
API int cuDriverGetVersion(int* version) {
  const std::string asked = setting("DRIVER");
  *version = asked.empty() ? 13000 : atoi(asked.c_str());
  return failure("cuDriverGetVersion");
}
API int cuDeviceGetCount(int* count) {
  const std::string asked = setting("DEVICES");
  *count = asked.empty() ? 1 : atoi(asked.c_str());
  return usable() ? kOk : kNotInitializedError;
}
API int cuDeviceGet(int* device, int ordinal) {
  int count = 0;
  if (cuDeviceGetCount(&count)) return kNotInitializedError;
  *device = ordinal;
  return ordinal < count ? kOk : 101;
}
API int cuDeviceGetName(char* name, int length, int device) {
  snprintf(name, size_t(length), "Fake GPU %d", device);
  return kOk;
}
API int cuDevicePrimaryCtxRetain(ContextObject** context, int device) {
  Calling call(kDriverDomain, kCuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  if (!usable()) return call.returns(kNotInitializedError);
  *context = primary_context(uint32_t(device));
  return call.returns(kOk);
}
API int cuCtxCreate_v2(ContextObject** context, unsigned, int device) {
  Calling call(kDriverDomain, kCuCtxCreate, "cuCtxCreate");
  if (!usable()) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  *context = make_context(uint32_t(device));
  return call.returns(kOk);
}
API int cuCtxSetCurrent(ContextObject* context) {
  current = context;
  return kOk;
}
API int cuCtxGetCurrent(ContextObject** context) {
  Calling call(kDriverDomain, kCuCtxGetCurrent, "cuCtxGetCurrent");
  *context = current;
  return call.returns(usable() ? kOk : kNotInitializedError);
}
API int cuCtxSynchronize() {
  Calling call(kDriverDomain, kCuCtxSynchronize, "cuCtxSynchronize");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  synchronize(call, kContextSynchronize, kNoStream, nullptr, last_end(current));
  return call.returns(kOk);
}
API int cuStreamCreateWithPriority(StreamObject** stream, unsigned flags, int priority) {
  Calling call(kDriverDomain, kCuStreamCreate, "cuStreamCreate");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  *stream = new StreamObject{stream_ids++, current, 0, flags, priority};
  streams.push_back(*stream);
  if (hooks) {
    hooks->stream_created(*stream, call.launch());
    hooks->resource(kStreamCreated, current, *stream, nullptr);
  }
  return call.returns(kOk);
}
API int cuStreamCreate(StreamObject** stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
API int cuStreamSynchronize(void* handle) {
  Calling call(kDriverDomain, kCuStreamSynchronize, "cuStreamSynchronize");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  StreamObject* stream = stream_of(handle);
  synchronize(call, kStreamSynchronize, uint32_t(stream->id), nullptr, stream->tail);
  return call.returns(kOk);
}
API int cuStreamWaitEvent(void* handle, EventObject* event, unsigned) {
  Calling call(kDriverDomain, kCuStreamWaitEvent, "cuStreamWaitEvent");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  StreamObject* stream = stream_of(handle);
  if (event->capturing) {  // the stream joins the capture
    stream->capturing = event->capturing;
    stream->frontier.insert(stream->frontier.end(), event->frontier.begin(), event->frontier.end());
    return call.returns(kOk);
  }
  stream->tail = std::max(stream->tail, event->time);
  if (event->stream) synchronize(call, kStreamWaitEvent, uint32_t(stream->id), event, 0);
  return call.returns(kOk);
}
API int cuEventCreate(EventObject** event, unsigned) {
  Calling call(kDriverDomain, kCuEventCreate, "cuEventCreate");
  *event = new EventObject{ids++};
  return call.returns(usable() ? kOk : kNotInitializedError);
}
API int cuEventRecord(EventObject* event, void* handle) {
  Calling call(kDriverDomain, kCuEventRecord, "cuEventRecord");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  StreamObject* stream = stream_of(handle);
  event->stream = stream;
  event->time = stream->tail;
  event->capturing = stream->capturing;
  event->frontier = stream->frontier;
  event->number = ids++, event->recorded_by = call.launch();
  if (hooks && !stream->capturing) hooks->event_recorded(event, call.launch());
  return call.returns(kOk);
}
API int cuEventSynchronize(EventObject* event) {
  Calling call(kDriverDomain, kCuEventSynchronize, "cuEventSynchronize");
  if (!usable() || !event->stream) return call.returns(kNotInitializedError);
  synchronize(call, kEventSynchronize, uint32_t(event->stream->id), event, event->time);
  return call.returns(kOk);
}

// A module is a text of kernel names with spaces; PTX text (it begins with '.') is compiled first.
struct ModuleObject {
  uint64_t id;
  std::vector<FunctionObject*> functions;
};
API int cuModuleLoadData(ModuleObject** module, const void* image) {
  Calling call(kDriverDomain, kCuModuleLoadData, "cuModuleLoadData");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  *module = new ModuleObject{ids++};
  ModuleData data{uint32_t((*module)->id), strlen(static_cast<const char*>(image)), static_cast<const char*>(image)};
  if (*static_cast<const char*>(image) == '.') {
    const std::string asked = setting("JIT_NS");
    const uint64_t before = mono();
    wait_for(gpu_of(before + (asked.empty() ? 1000 : strtoull(asked.c_str(), nullptr, 10))));
    const uint64_t took = mono() - before;
    truth("\"what\": \"compiled\", \"ns\": %lu", took);
    if (hooks) hooks->compiled(current, call.launch(), took);
  }
  if (hooks) hooks->resource(kModuleLoaded, current, nullptr, &data);
  return call.returns(kOk);
}
// Names of unloaded kernels give way to those that come next, at the same address (Kineto's and others' profilers have
// seen such pointers reused).
std::vector<char*> free_names;
char* name_kept(const char* name) {
  constexpr size_t kRoom = 4096;
  char* at = free_names.empty() ? static_cast<char*>(malloc(kRoom)) : free_names.back();
  if (!free_names.empty()) free_names.pop_back();
  snprintf(at, kRoom, "%s", name);
  return at;
}

API int cuModuleGetFunction(FunctionObject** function, ModuleObject* module, const char* name) {
  std::lock_guard lock(mutex);
  for (FunctionObject* known : module->functions)
    if (!strcmp(known->name, name)) return *function = known, kOk;
  *function = new FunctionObject{ids++, name_kept(name), 10'000, 32, 0};
  module->functions.push_back(*function);
  return kOk;
}
API int cuModuleUnload(ModuleObject* module) {
  Calling call(kDriverDomain, kCuModuleUnload, "cuModuleUnload");
  ModuleData data{uint32_t(module->id), 0, nullptr};
  if (hooks) hooks->resource(kModuleUnloadStarting, current, nullptr, &data);
  for (FunctionObject* function : module->functions) {
    memset(function->name, '?', strlen(function->name));
    free_names.push_back(function->name);
  }
  return call.returns(kOk);
}
API int fake_cuda_function(FunctionObject* function, unsigned registers, int static_shared) {
  function->registers = uint16_t(registers), function->static_shared = static_shared;
  return kOk;
}

struct LaunchKernelParameters {  // as cuLaunchKernel's arguments lie for a callback
  void* function;
  uint32_t grid[3], block[3], shared;
  void *stream, **arguments, **extra;
};
API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void* stream, void** arguments, void** extra) {
  LaunchKernelParameters all{function, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments, extra};
  Calling call(kDriverDomain, kCuLaunchKernel, "cuLaunchKernel",
               function ? static_cast<FunctionObject*>(function)->name : nullptr, &all);
  const uint32_t cluster[3] = {0, 0, 0};
  return launch_kernel(call, function, all.grid, all.block, cluster, shared, stream, false);
}
struct LaunchAttribute {
  int id, padding;
  uint32_t value[16];
};
struct LaunchConfig {  // CUlaunchConfig
  uint32_t grid[3], block[3], shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned count;
};
API int cuLaunchKernelEx(const LaunchConfig* config, void* function, void**, void**) {
  Calling call(kDriverDomain, kCuLaunchKernelEx, "cuLaunchKernelEx",
               function ? static_cast<FunctionObject*>(function)->name : nullptr, nullptr);
  uint32_t cluster[3] = {0, 0, 0};
  bool cooperative = false;
  for (unsigned i = 0; i < config->count; i++) {
    if (config->attributes[i].id == 4) memcpy(cluster, config->attributes[i].value, sizeof cluster);
    if (config->attributes[i].id == 2) cooperative = config->attributes[i].value[0];
  }
  return launch_kernel(call, function, config->grid, config->block, cluster, config->shared, config->stream,
                       cooperative);
}
// Memory: addresses are given again, the lowest that fits first, as allocators do.
namespace {

constexpr uint64_t kPoolGrows = 2 << 20;  // a pool takes memory from the device in pieces
struct Block {
  MemoryKind kind;
  uint64_t bytes;
  PoolObject* pool;
};
auto& blocks = *new std::map<uint64_t, Block>;  // with the mutex
auto& default_pools = *new std::map<uint32_t, PoolObject*>;

uint64_t free_address(uint64_t bytes) {
  uint64_t at = 0x7f0000000000;
  for (const auto& [address, block] : blocks) {
    if (at + bytes <= address) break;
    at = std::max(at, address + (block.bytes + 511) / 512 * 512);
  }
  return at;
}

void log_memory(const MemoryEvent& what) {
  truth(
      "\"what\": \"memory\", \"allocated\": %s, \"kind\": %u, \"address\": %lu, \"bytes\": %lu, \"device\": %u, "
      "\"context\": %lu, \"correlation\": %u, \"pool\": %lu, \"pool_bytes\": %lu, \"time_ns\": %lu",
      what.allocated ? "true" : "false", uint32_t(what.kind), what.address, what.bytes, what.context->device,
      what.context->id, what.correlation, what.pool ? what.pool->address : 0, what.pool ? what.pool->size : 0, mono());
}

int allocate(Calling& call, uint64_t* address, uint64_t bytes, MemoryKind kind, void* stream = nullptr,
             PoolObject* pool = nullptr) {
  if (!usable() || !current) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  blocks[*address = free_address(bytes)] = {kind, bytes, pool};
  if (pool)
    pool->used += bytes, pool->size = std::max(pool->size, (pool->used + kPoolGrows - 1) / kPoolGrows * kPoolGrows);
  const MemoryEvent what{true, kind, *address, bytes, current, pool ? stream_of(stream) : nullptr, pool, call.launch()};
  log_memory(what);
  if (hooks) hooks->memory(what);
  return call.returns(kOk);
}

int release(Calling& call, uint64_t address, void* stream = nullptr) {
  if (!usable() || !current) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  const auto known = blocks.find(address);
  if (known == blocks.end()) return call.returns(kInvalidValue);
  const Block block = known->second;
  blocks.erase(known);
  if (block.pool) block.pool->used -= block.bytes;
  const MemoryEvent what{false,       block.kind,   address,
                         block.bytes, current,      block.pool ? stream_of(stream) : nullptr,
                         block.pool,  call.launch()};
  log_memory(what);
  if (hooks) hooks->memory(what);
  return call.returns(kOk);
}

void changed_pool(Calling& call, PoolOperation operation, const PoolObject& pool) {
  truth("\"what\": \"pool\", \"operation\": %u, \"address\": %lu, \"size\": %lu, \"time_ns\": %lu", uint32_t(operation),
        pool.address, pool.size, mono());
  if (hooks) hooks->pool(operation, pool, call.launch());
}

// Unified memory moves at 10 GB/s.
void migrate(uint64_t address, uint64_t bytes, int from, int to, uint32_t cause) {
  const uint64_t start = gpu_of(mono()), end = start + bytes / 10;
  truth(
      "\"what\": \"migration\", \"address\": %lu, \"bytes\": %lu, \"from\": %d, \"to\": %d, \"cause\": %u, "
      "\"start_ns\": %lu, "
      "\"end_ns\": %lu",
      address, bytes, from, to, cause, mono_of(start), mono_of(end));
  wait_for(end);
  if (hooks) hooks->migrated({address, bytes, start, end, from, to, cause});
}

}  // namespace

API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  Calling call(kDriverDomain, kCuMemAlloc, "cuMemAlloc_v2");
  return allocate(call, address, bytes, kDeviceMemory);
}
API int cuMemFree_v2(uint64_t address) {
  Calling call(kDriverDomain, kCuMemFree, "cuMemFree_v2");
  return release(call, address);
}
API int cuMemAllocHost_v2(uint64_t* address, size_t bytes) {
  Calling call(kDriverDomain, kCuMemAllocHost, "cuMemAllocHost_v2");
  return allocate(call, address, bytes, kPinned);
}
API int cuMemFreeHost(uint64_t address) {
  Calling call(kDriverDomain, kCuMemFreeHost, "cuMemFreeHost");
  return release(call, address);
}
API int cuMemAllocManaged(uint64_t* address, size_t bytes, unsigned) {
  Calling call(kDriverDomain, kCuMemAllocManaged, "cuMemAllocManaged");
  return allocate(call, address, bytes, kManaged);
}
API int cuMemPoolCreate(PoolObject** pool, const void*) {
  Calling call(kDriverDomain, kCuMemPoolCreate, "cuMemPoolCreate");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  *pool = new PoolObject{0x600000000000 + (ids++ << 32), current->device};
  changed_pool(call, kPoolCreated, **pool);
  return call.returns(kOk);
}
API int cuMemPoolDestroy(PoolObject* pool) {
  Calling call(kDriverDomain, kCuMemPoolDestroy, "cuMemPoolDestroy");
  changed_pool(call, kPoolDestroyed, *pool);
  return call.returns(kOk);
}
API int cuMemPoolTrimTo(PoolObject* pool, size_t bytes) {
  Calling call(kDriverDomain, kCuMemPoolTrimTo, "cuMemPoolTrimTo");
  std::lock_guard lock(mutex);
  pool->size = std::min(pool->size, (std::max<uint64_t>(bytes, pool->used) + kPoolGrows - 1) / kPoolGrows * kPoolGrows);
  changed_pool(call, kPoolTrimmed, *pool);
  return call.returns(kOk);
}
API int cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, PoolObject* pool, void* stream) {
  Calling call(kDriverDomain, kCuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync");
  return allocate(call, address, bytes, kDeviceMemory, stream, pool);
}
API int cuMemAllocAsync(uint64_t* address, size_t bytes, void* stream) {
  Calling call(kDriverDomain, kCuMemAllocAsync, "cuMemAllocAsync");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  PoolObject*& pool = default_pools[current->device];
  if (!pool) pool = new PoolObject{0x500000000000 + (ids++ << 32), current->device};
  return allocate(call, address, bytes, kDeviceMemory, stream, pool);
}
API int cuMemFreeAsync(uint64_t address, void* stream) {
  Calling call(kDriverDomain, kCuMemFreeAsync, "cuMemFreeAsync");
  return release(call, address, stream);
}
API int cuMemPrefetchAsync(uint64_t address, size_t bytes, int device, void*) {
  Calling call(kDriverDomain, kCuMemPrefetchAsync, "cuMemPrefetchAsync");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  migrate(address, bytes, device < 0 ? int(current->device) : -1, device, 1);
  return call.returns(kOk);
}
// The program, or a kernel (`device` 0 and on), touches unified memory that is not there.
API void fake_cuda_touch(uint64_t address, uint64_t bytes, int device, uint64_t groups) {
  if (hooks) hooks->page_fault(device, address, groups);
  truth("\"what\": \"page_fault\", \"device\": %d, \"groups\": %lu", device, groups);
  migrate(address, bytes, device < 0 ? int(current->device) : -1, device, 2);
}
API int cuMemcpyHtoD_v2(uint64_t, const void*, size_t bytes) {
  Calling call(kDriverDomain, kCuMemcpyHtoD, "cuMemcpyHtoD_v2");
  return copy(call, kHostToDevice, bytes, nullptr, false, kPageable, kDeviceMemory);
}
API int cuMemcpyHtoDAsync_v2(uint64_t, const void*, size_t bytes, void* stream) {
  Calling call(kDriverDomain, kCuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  return copy(call, kHostToDevice, bytes, stream, true, kPinned, kDeviceMemory);
}
API int cuMemcpyDtoHAsync_v2(void*, uint64_t, size_t bytes, void* stream) {
  Calling call(kDriverDomain, kCuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  return copy(call, kDeviceToHost, bytes, stream, true, kDeviceMemory, kPinned);
}
API int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t bytes, void* stream) {
  Calling call(kDriverDomain, kCuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  return copy(call, kDeviceToDevice, bytes, stream, true, kDeviceMemory, kDeviceMemory);
}
API int cuMemcpyPeerAsync(uint64_t, ContextObject* to, uint64_t, ContextObject* from, size_t bytes, void* stream) {
  Calling call(kDriverDomain, kCuMemcpyPeerAsync, "cuMemcpyPeerAsync");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  Operation operation;
  operation.type = Operation::kMemcpy;
  operation.bytes = bytes, operation.copy_kind = kPeerToPeer, operation.peer = true;
  operation.source = operation.destination = kDeviceMemory;
  operation.source_device = from->device, operation.destination_device = to->device;
  submit(call, stream_of(stream), operation);
  return call.returns(kOk);
}
API int cuMemsetD8Async(uint64_t, unsigned char value, size_t bytes, void* stream) {
  Calling call(kDriverDomain, kCuMemsetD8Async, "cuMemsetD8Async");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  Operation operation;
  operation.type = Operation::kMemset;
  operation.bytes = bytes, operation.value = value;
  submit(call, stream_of(stream), operation);
  return call.returns(kOk);
}

// --- graphs

API int cuGraphCreate(GraphObject** graph, unsigned) {
  Calling call(kDriverDomain, kCuGraphCreate, "cuGraphCreate");
  *graph = new GraphObject{ids++, {}};
  GraphData data{*graph, nullptr, nullptr, nullptr, 0, nullptr, nullptr};
  if (hooks) hooks->resource(kGraphCreated, current, nullptr, &data);
  return call.returns(kOk);
}
struct KernelNodeParameters {  // CUDA_KERNEL_NODE_PARAMS_v1
  FunctionObject* function;
  uint32_t grid[3], block[3], shared;
};
API int cuGraphAddKernelNode(NodeObject** out, GraphObject* graph, NodeObject* const* after, size_t count,
                             const KernelNodeParameters* parameters) {
  Calling call(kDriverDomain, kCuGraphAddKernelNode, "cuGraphAddKernelNode");
  std::lock_guard lock(mutex);
  auto* node = new NodeObject{ids++, {}, {after, after + count}};
  node->operation.function = parameters->function;
  memcpy(node->operation.grid, parameters->grid, sizeof parameters->grid);
  memcpy(node->operation.block, parameters->block, sizeof parameters->block);
  node->operation.shared = parameters->shared;
  node->operation.ns = duration(node->operation);
  graph->nodes.push_back(*out = node);
  truth("\"what\": \"node\", \"name\": \"%s\", \"node\": %lu, \"graph\": %lu, \"time_ns\": %lu",
        parameters->function->name, node->id, graph->id, mono());
  GraphData data{graph, nullptr, node, nullptr, Operation::kKernel, nullptr, nullptr};
  if (hooks) hooks->resource(kGraphNodeCreated, current, nullptr, &data);
  return call.returns(kOk);
}
API int cuStreamBeginCapture_v2(StreamObject* stream, int) {
  if (!stream || stream->capturing) return kInvalidValue;
  stream->capturing = new GraphObject{ids++, {}};
  stream->frontier.clear();
  GraphData data{stream->capturing, nullptr, nullptr, nullptr, 0, nullptr, nullptr};
  if (hooks) hooks->resource(kGraphCreated, current, stream, &data);
  return kOk;
}
API int cuStreamEndCapture(StreamObject* stream, GraphObject** graph) {
  Calling call(kDriverDomain, kCuStreamEndCapture, "cuStreamEndCapture");
  std::lock_guard lock(mutex);
  if (!stream->capturing) return call.returns(kInvalidValue);
  *graph = stream->capturing;
  for (StreamObject* each : streams)
    if (each->capturing == *graph) each->capturing = nullptr, each->frontier.clear();
  return call.returns(kOk);
}
API int cuGraphInstantiateWithFlags(ExecObject** exec, GraphObject* graph, unsigned long long) {
  Calling call(kDriverDomain, kCuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  std::lock_guard lock(mutex);
  *exec = new ExecObject{ids++, graph, {}};
  std::map<NodeObject*, NodeObject*> clones;
  for (NodeObject* node : graph->nodes) {
    auto* clone = new NodeObject{ids++, node->operation, {}, node};
    for (NodeObject* before : node->after) clone->after.push_back(clones[before]);
    clones[node] = clone;
    (*exec)->nodes.push_back(clone);
    // The executable graph has nodes of its own, with numbers of their own; a clone is first reported as created, then
    // as cloned (NVIDIA's cuda_graphs_trace sample passes over the creations inside an instantiation).
    GraphData data{*exec, graph, clone, node, node->operation.type, nullptr, *exec};
    if (hooks) {
      GraphData created{*exec, nullptr, clone, nullptr, node->operation.type, nullptr, nullptr};
      hooks->resource(kGraphNodeCreated, current, nullptr, &created);
      hooks->resource(kGraphNodeCloned, current, nullptr, &data);
    }
  }
  GraphData data{graph, nullptr, nullptr, nullptr, 0, nullptr, *exec};
  if (hooks) hooks->resource(kGraphExecCreated, current, nullptr, &data);
  return call.returns(kOk);
}
API int cuGraphLaunch(ExecObject* exec, void* handle) {
  Calling call(kDriverDomain, kCuGraphLaunch, "cuGraphLaunch");
  if (!usable() || !current) return call.returns(kNotInitializedError);
  std::lock_guard lock(mutex);
  StreamObject* stream = stream_of(handle);
  const uint64_t queued = gpu_of(mono()), first = ready(stream);
  uint64_t last = first;
  std::map<NodeObject*, uint64_t> ends;
  std::vector<Work> all;
  for (NodeObject* node : exec->nodes) {
    uint64_t start = first;
    for (NodeObject* before : node->after) start = std::max(start, ends[before]);
    if (serialize) start = std::max(start, last);
    const uint64_t end = ends[node] = start + node->operation.ns;
    last = std::max(last, end);
    all.push_back({node->operation, stream, call.launch(), queued, start, end, node->id, node->original->id,
                   uint32_t(exec->id), uint32_t(exec->source->id)});
  }
  stream->tail = last;
  Work whole{{},  stream, call.launch(), queued, first, last, 0, 0, uint32_t(exec->id), uint32_t(exec->source->id),
             true};
  log_work(whole, whole.operation);
  for (const Work& work : all) log_work(work, work.operation);
  if (hooks) {
    hooks->work(whole);
    for (const Work& work : all) hooks->work(work);
  }
  return call.returns(kOk);
}

// --- the runtime: it starts the driver at its first call, and does everything by the driver

namespace {
bool start_runtime() {
  if (current) return true;
  if (cuInit(0)) return false;
  ContextObject* context = nullptr;
  if (cuDevicePrimaryCtxRetain(&context, int(current_device))) return false;
  cuCtxSetCurrent(context);
  return true;
}
struct Dim3 {
  uint32_t x, y, z;
};
struct RuntimeLaunchConfig {  // cudaLaunchConfig_t
  Dim3 grid, block;
  size_t shared;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned count;
};
}  // namespace

#define RUNTIME(cbid, name, ...)          \
  if (!start_runtime()) return kNoDevice; \
  Calling call(kRuntimeDomain, cbid, name __VA_OPT__(, ) __VA_ARGS__)

API int cudaLaunchKernel(void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared, void* stream) {
  RUNTIME(kCudaLaunchKernel, "cudaLaunchKernel", function ? static_cast<FunctionObject*>(function)->name : nullptr);
  return call.returns(cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, unsigned(shared),
                                     stream, arguments, nullptr));
}
API int cudaLaunchKernelExC(const RuntimeLaunchConfig* config, void* function, void** arguments) {
  RUNTIME(kCudaLaunchKernelEx, "cudaLaunchKernelExC",
          function ? static_cast<FunctionObject*>(function)->name : nullptr);
  const LaunchConfig inner{{config->grid.x, config->grid.y, config->grid.z},
                           {config->block.x, config->block.y, config->block.z},
                           uint32_t(config->shared),
                           config->stream,
                           config->attributes,
                           config->count};
  return call.returns(cuLaunchKernelEx(&inner, function, arguments, nullptr));
}
API int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  RUNTIME(kCudaMemcpyAsync, "cudaMemcpyAsync");
  const auto target = reinterpret_cast<uint64_t>(to), source = reinterpret_cast<uint64_t>(from);
  if (kind == 1) return call.returns(cuMemcpyHtoDAsync_v2(target, from, bytes, stream));
  if (kind == 2) return call.returns(cuMemcpyDtoHAsync_v2(to, source, bytes, stream));
  return call.returns(kind == 3 ? cuMemcpyDtoDAsync_v2(target, source, bytes, stream) : kInvalidValue);
}
API int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  RUNTIME(kCudaMemsetAsync, "cudaMemsetAsync");
  return call.returns(
      cuMemsetD8Async(reinterpret_cast<uint64_t>(to), static_cast<unsigned char>(value), bytes, stream));
}
API int cudaMalloc(uint64_t* address, size_t bytes) {
  RUNTIME(kCudaMalloc, "cudaMalloc");
  return call.returns(cuMemAlloc_v2(address, bytes));
}
API int cudaFree(uint64_t address) {
  RUNTIME(kCudaFree, "cudaFree");
  return call.returns(address ? cuMemFree_v2(address) : kOk);
}
API int cudaMallocHost(uint64_t* address, size_t bytes) {
  RUNTIME(kCudaMallocHost, "cudaMallocHost");
  return call.returns(cuMemAllocHost_v2(address, bytes));
}
API int cudaFreeHost(uint64_t address) {
  RUNTIME(kCudaFreeHost, "cudaFreeHost");
  return call.returns(cuMemFreeHost(address));
}
API int cudaMallocManaged(uint64_t* address, size_t bytes, unsigned flags) {
  RUNTIME(kCudaMallocManaged, "cudaMallocManaged");
  return call.returns(cuMemAllocManaged(address, bytes, flags));
}
API int cudaMallocAsync(uint64_t* address, size_t bytes, void* stream) {
  RUNTIME(kCudaMallocAsync, "cudaMallocAsync");
  return call.returns(cuMemAllocAsync(address, bytes, stream));
}
API int cudaFreeAsync(uint64_t address, void* stream) {
  RUNTIME(kCudaFreeAsync, "cudaFreeAsync");
  return call.returns(cuMemFreeAsync(address, stream));
}
API int cudaMemPrefetchAsync(uint64_t address, size_t bytes, int device, void* stream) {
  RUNTIME(kCudaMemPrefetchAsync, "cudaMemPrefetchAsync");
  return call.returns(cuMemPrefetchAsync(address, bytes, device, stream));
}
API int cudaStreamCreate(StreamObject** stream) {
  RUNTIME(kCudaStreamCreate, "cudaStreamCreate");
  return call.returns(cuStreamCreate(stream, 0));
}
API int cudaStreamSynchronize(void* stream) {
  RUNTIME(kCudaStreamSynchronize, "cudaStreamSynchronize");
  return call.returns(cuStreamSynchronize(stream));
}
API int cudaDeviceSynchronize() {
  RUNTIME(kCudaDeviceSynchronize, "cudaDeviceSynchronize");
  return call.returns(cuCtxSynchronize());
}
API int cudaEventCreate(EventObject** event) {
  RUNTIME(kCudaEventCreate, "cudaEventCreate");
  return call.returns(cuEventCreate(event, 0));
}
API int cudaEventRecord(EventObject* event, void* stream) {
  RUNTIME(kCudaEventRecord, "cudaEventRecord");
  return call.returns(cuEventRecord(event, stream));
}
API int cudaEventSynchronize(EventObject* event) {
  RUNTIME(kCudaEventSynchronize, "cudaEventSynchronize");
  return call.returns(cuEventSynchronize(event));
}
API int cudaStreamWaitEvent(void* stream, EventObject* event, unsigned flags) {
  RUNTIME(kCudaStreamWaitEvent, "cudaStreamWaitEvent");
  return call.returns(cuStreamWaitEvent(stream, event, flags));
}
API int cudaGraphLaunch(ExecObject* exec, void* stream) {
  RUNTIME(kCudaGraphLaunch, "cudaGraphLaunch");
  return call.returns(cuGraphLaunch(exec, stream));
}
API int cudaGraphInstantiate(ExecObject** exec, GraphObject* graph, unsigned long long flags) {
  RUNTIME(kCudaGraphInstantiate12, "cudaGraphInstantiate");
  return call.returns(cuGraphInstantiateWithFlags(exec, graph, flags));
}
API int cudaStreamBeginCapture(StreamObject* stream, int mode) {
  RUNTIME(kCudaStreamBeginCapture, "cudaStreamBeginCapture");
  return call.returns(cuStreamBeginCapture_v2(stream, mode));
}
API int cudaStreamEndCapture(StreamObject* stream, GraphObject** graph) {
  RUNTIME(kCudaStreamEndCapture, "cudaStreamEndCapture");
  return call.returns(cuStreamEndCapture(stream, graph));
}
API int cudaGetLastError() {
  RUNTIME(kCudaGetLastError, "cudaGetLastError");
  return call.returns(kOk);
}
API int cudaGetDevice(int* device) {
  RUNTIME(kCudaGetDevice, "cudaGetDevice");
  *device = int(current_device);
  return call.returns(kOk);
}
API int cudaSetDevice(int device) {
  current_device = uint32_t(device);
  if (current && current->device != current_device) current = nullptr;
  RUNTIME(kCudaSetDevice, "cudaSetDevice");
  return call.returns(kOk);
}
