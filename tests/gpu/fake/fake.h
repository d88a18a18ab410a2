// fake.h - what the fake driver and the fake CUPTI know of each other. The genuine two share private tables; the rest
// of the world sees only the public functions of each.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

#include "adapters/cupti/abi.h"

namespace fake {

namespace cupti = strobe::cupti;

// What strobe does not need and the fake does. Numbers of calls: none was ever given another meaning.
enum DriverCbid : uint32_t {  // cupti_driver_cbid.h
  kCuInit = 1,
  kCuCtxSynchronize = 17,
  kCuEventRecord = 119,
  kCuEventSynchronize = 121,
  kCuStreamCreate = 124,
  kCuStreamSynchronize = 126,
  kCuStreamWaitEvent = 295,
  kCuEventCreate = 118,
  kCuMemsetD8Async = 216,
  kCuCtxCreate = 235,
  kCuMemcpyHtoD = 276,
  kCuMemcpyHtoDAsync = 277,
  kCuMemcpyDtoHAsync = 279,
  kCuCtxGetCurrent = 304,
  kCuLaunchKernel = 307,
  kCuDevicePrimaryCtxRetain = 386,
  kCuStreamEndCapture = 497,
  kCuGraphCreate = 501,
  kCuGraphAddKernelNode = 502,
  kCuGraphLaunch = 514,
  kCuGraphInstantiateWithFlags = 643,
  kCuLaunchKernelEx = 652,
  kCuMemAlloc = 243,
  kCuMemFree = 245,
  kCuMemcpyDtoH = 278,
  kCuModuleLoadData = 19,
  kCuModuleUnload = 22,
  kCuMemcpyDtoDAsync = 281,
  kCuMemcpyPeerAsync = 319,
  kCuMemFreeHost = 38,
  kCuMemAllocHost = 294,
  kCuMemAllocManaged = 371,
  kCuMemPrefetchAsync = 467,
  kCuMemAllocAsync = 598,
  kCuMemFreeAsync = 600,
  kCuMemPoolTrimTo = 602,
  kCuMemPoolCreate = 607,
  kCuMemPoolDestroy = 608,
  kCuMemAllocFromPoolAsync = 611,
};
enum RuntimeCbid : uint32_t {  // cupti_runtime_cbid.h
  kCudaGetLastError = 10,
  kCudaSetDevice = 16,
  kCudaGetDevice = 17,
  kCudaMalloc = 20,
  kCudaFree = 22,
  kCudaMemcpyAsync = 41,
  kCudaMemsetAsync = 51,
  kCudaStreamCreate = 129,
  kCudaStreamSynchronize = 131,
  kCudaEventCreate = 133,
  kCudaEventRecord = 135,
  kCudaEventSynchronize = 137,
  kCudaStreamWaitEvent = 147,
  kCudaDeviceSynchronize = 165,
  kCudaLaunchKernel = 211,
  kCudaGraphLaunch = 311,
  kCudaStreamBeginCapture = 315,
  kCudaStreamEndCapture = 319,
  kCudaLaunchKernelEx = 430,
  kCudaGraphInstantiate12 = 443,
  kCudaMallocHost = 25,
  kCudaFreeHost = 26,
  kCudaMallocManaged = 206,
  kCudaMemPrefetchAsync = 252,
  kCudaMallocAsync = 373,
  kCudaFreeAsync = 375,
};
enum MoreResourceCbids : uint32_t {
  kStreamCreated = 3,
  kInitFinished = 5,
  kModuleLoaded = 6,
  kGraphCreated = 9,
  kGraphExecCreated = 18,
};
enum MoreAttributes : uint32_t {
  kDeviceBufferSize = 0,               // size_t, bytes
  kDeviceBufferPoolLimit = 2,          // size_t, buffers
  kProfilingSemaphorePoolSize = 3,     // size_t
  kProfilingSemaphorePoolLimit = 4,    // size_t
  kDeviceBufferPreAllocate = 6,        // size_t, buffers
  kProfilingSemaphorePreAllocate = 7,  // size_t
  kDeviceBuffersInPinnedMemory = 8,    // uint8_t
  kPerThreadActivityBuffer = 9,        // uint8_t; 12.3
};
struct ModuleData {
  uint32_t module;
  size_t cubin_size;
  const char* cubin;
};
struct SynchronizeData {
  cupti::Context context;
  cupti::Stream stream;
};
struct SubscriberParameters {  // 13.0
  size_t struct_size;
  const char* name;
  char* old_name;
  size_t old_size;
};
constexpr size_t kMaxSubscriberName = 53, kMinOldSubscriberName = 64;

// Handles begin with their number, which CUPTI tells its clients.
struct ContextObject {
  uint64_t id;
  uint32_t device;
  struct StreamObject* null_stream;
};
struct FunctionObject {
  uint64_t id;
  char* name;  // as CUPTI's records: one pointer for all launches
  uint64_t default_ns;
  uint16_t registers;
  int32_t static_shared;
};
struct Operation {
  enum Type : uint32_t { kKernel = 0, kMemcpy = 1, kMemset = 2 } type = kKernel;  // as CUgraphNodeType numbers them
  FunctionObject* function = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {0, 0, 0}, shared = 0;
  bool cooperative = false;
  uint64_t bytes = 0, ns = 0;
  uint8_t copy_kind = 0, source = 0, destination = 0;
  bool peer = false, async = true;
  uint32_t source_device = 0, destination_device = 0, value = 0;
};
struct NodeObject {
  uint64_t id;
  Operation operation;
  std::vector<NodeObject*> after;
  NodeObject* original = nullptr;
};
struct GraphObject {
  uint64_t id;
  std::vector<NodeObject*> nodes;
};
struct ExecObject {
  uint64_t id;
  GraphObject* source;
  std::vector<NodeObject*> nodes;
};
struct StreamObject {
  uint64_t id;
  ContextObject* context;
  uint64_t tail = 0;  // when its last work ends, on the GPU's clock
  uint32_t flags = 0;
  int32_t priority = 0;
  GraphObject* capturing = nullptr;
  std::vector<NodeObject*> frontier;  // of the capture
};
struct EventObject {
  uint64_t id;
  uint64_t time = 0;
  uint64_t number = 0;  // of its last recording
  uint32_t recorded_by = 0;
  GraphObject* capturing = nullptr;
  std::vector<NodeObject*> frontier;
  StreamObject* stream = nullptr;
};

struct PoolObject {
  uint64_t address;
  uint32_t device;
  uint64_t size = 0, used = 0, threshold = 0;
};
struct MemoryEvent {
  bool allocated;
  cupti::MemoryKind kind;
  uint64_t address, bytes;
  ContextObject* context;
  StreamObject* stream;  // of an asynchronous call
  PoolObject* pool;
  uint32_t correlation;
};
struct Migration {                      // of unified memory; the host is device -1
  uint64_t address, bytes, start, end;  // on the GPU's clock
  int from, to;
  uint32_t cause;
};

struct Call {  // of the driver or the runtime, from its entry to its exit
  cupti::Domain domain;
  uint32_t cbid;
  const char* name;
  const void* parameters = nullptr;
  const char* symbol = nullptr;
  uint32_t correlation = 0;
  int result = 0;
  ContextObject* context = nullptr;
  Call* parent = nullptr;
  bool seen = false;      // CUPTI was told of its entry
  uint64_t data = 0;      // the subscriber's own
  uint64_t start = 0;     // on CUPTI's clock
  uint64_t enter_ns = 0;  // CLOCK_MONOTONIC
};

struct Work {  // what one stream does, on the GPU's clock
  Operation operation;
  StreamObject* stream;
  uint32_t correlation;
  uint64_t queued, start, end;
  uint64_t node = 0, source_node = 0;
  uint32_t graph = 0, source_graph = 0;
  bool whole_graph = false;
};

struct Synchronization {
  cupti::SynchronizationType type;
  uint32_t correlation, context, stream, event;
  uint64_t enter_ns;
  uint64_t event_number = 0;
};

// What CUPTI asks the driver to tell it.
struct Hooks {
  void (*enter)(Call& call);
  void (*leave)(Call& call);
  void (*resource)(uint32_t cbid, ContextObject* context, StreamObject* stream, void* descriptor);
  void (*work)(const Work& work);
  void (*synchronized)(const Call& call, const Synchronization& what, bool begins);
  void (*context_created)(ContextObject* context);
  void (*stream_created)(StreamObject* stream, uint32_t correlation);
  void (*event_recorded)(EventObject* event, uint32_t correlation);
  void (*memory)(const MemoryEvent& what);
  void (*pool)(cupti::PoolOperation operation, const PoolObject& pool, uint32_t correlation);
  void (*migrated)(const Migration& what);
  void (*page_fault)(int device, uint64_t address, uint64_t groups);
  void (*compiled)(ContextObject* context, uint32_t correlation, uint64_t ns);
};

// A setting of the test: FAKE_CUDA_NAME.
inline std::string setting(const char* name) {
  const char* text = getenv((std::string("FAKE_CUDA_") + name).c_str());
  return text ? text : "";
}
// FAKE_CUDA_FAIL=cuInit:100,ActivityEnable/22:27 - the code that a function is to fail with, or 0.
inline int failure(const std::string& name) {
  const std::string all = "," + setting("FAIL") + ",";
  const size_t at = all.find("," + name + ":");
  return at == all.npos ? 0 : atoi(all.c_str() + at + name.size() + 2);
}

}  // namespace fake

extern "C" {
// Exported by the fake driver beside its public functions.
void fake_cuda_attach(const fake::Hooks* hooks);
uint64_t fake_cuda_gpu_now();
void fake_cuda_serialize(int serialize);
int fake_cuda_initialized();  // cuInit has returned
void fake_cuda_tell_unified_memory(int on);
void fake_cuda_for_each(void (*context)(fake::ContextObject*), void (*stream)(fake::StreamObject*));
}
