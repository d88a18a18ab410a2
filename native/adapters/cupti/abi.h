// abi.h - what strobe knows of CUPTI's binary interface, declared here so that no CUDA is needed to build. One set of
// declarations serves CUPTI 11.8 to 13.5: a record of each kind has only ever grown at its end. Each struct here is the
// longest one; how much of it the loaded library writes is Library::sizes. A test compares all of this with NVIDIA's
// headers.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Where a field ends: has(kKernel, STROBE_CUPTI_END(Kernel, priority)).
#define STROBE_CUPTI_END(type, field) (offsetof(type, field) + sizeof(type::field))

namespace strobe::cupti {

using Result = int;
enum Results : Result {
  kSuccess = 0,
  kInvalidParameter = 1,
  kInvalidOperation = 7,
  kMaxLimitReached = 12,  // no further record in the buffer
  kNotCompatible = 14,
  kNotInitialized = 15,
  kQueueEmpty = 18,
  kInvalidKind = 21,
  kNotSupported = 27,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
  kUnknownError = 999,
};

// Handles are pointers to what only CUDA knows.
using Context = void*;
using Stream = void*;
using Graph = void*;
using GraphNode = void*;
using GraphExec = void*;
using Subscriber = void*;

// --- activity records ------------------------------------------------------------------------------------------------

enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,  // makes kernels run one after the other: never enabled
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpyPeer = 22,
  kUnifiedMemoryCounter = 25,
  kModule = 27,
  kCudaEvent = 36,
  kStream = 37,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory = 49,
  kMemoryPool = 50,
  kGraphTrace = 51,
  kJit = 52,
  kKinds = 60,  // one above the highest that CUPTI 13.5 has
};

struct alignas(8) Activity {  // what every record begins with
  Kind kind;
};

struct alignas(8) KernelRecord {  // kKernel, kConcurrentKernel
  Kind kind;
  uint8_t cache_config, shared_memory_config;
  uint16_t registers;  // per thread
  uint32_t global_cache_requested, global_cache_executed;
  uint64_t start, end, completed;  // ns; 0: unknown
  uint32_t device, context, stream;
  int32_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
  int32_t static_shared_memory, dynamic_shared_memory;  // bytes of a block
  uint32_t local_memory_per_thread;
  uint32_t local_memory_total_32;  // overflows: local_memory_total
  uint32_t correlation;
  int64_t grid;
  const char* name;
  void* reserved;
  uint64_t queued, submitted;  // ns; 0 unless latency timestamps are enabled
  uint8_t launch_type, carveout_requested_set, carveout_requested, padding;
  uint32_t shared_memory_executed;
  uint64_t graph_node;
  uint32_t shared_memory_limit;
  uint32_t graph;
  void* access_policy_window;
  uint32_t channel, channel_type;
  uint32_t cluster_x, cluster_y, cluster_z, cluster_scheduling_policy;
  uint64_t local_memory_total;
  uint32_t max_potential_cluster_size, max_active_clusters;  // 12.0
  uint8_t launched_by_device, padding_2[7];                  // 13.0
  int32_t priority;                                          // 13.1
  uint32_t padding_3;
  uint32_t execution_model, padding_4;  // 13.3
  uint32_t source_graph, padding_5;     // 13.4
  uint64_t source_graph_node;
};

enum LaunchType : uint8_t { kRegular = 0, kCooperative = 1, kCooperativeManyDevices = 2, kCommandList = 3 };
enum ChannelType : uint32_t { kNoChannel = 0, kCompute = 1, kAsyncCopy = 2 };

struct alignas(8) MemcpyRecord {  // kMemcpy
  Kind kind;
  uint8_t copy_kind, source_kind, destination_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint32_t runtime_correlation;  // not filled any more
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel, channel_type;
  uint8_t launched_by_device, padding_2[3];  // 13.0; was padding
  uint64_t copy_count;                       // 12.8
  uint32_t source_graph, padding_3;          // 13.4
  uint64_t source_graph_node;
};

struct alignas(8) MemcpyPeerRecord {  // kMemcpyPeer
  Kind kind;
  uint8_t copy_kind, source_kind, destination_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t source_device, source_context, destination_device, destination_context;
  uint32_t correlation;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel, channel_type;
};

struct alignas(8) MemsetRecord {  // kMemset
  Kind kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory_kind;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel, channel_type;
  uint8_t launched_by_device, padding_2[3];
  uint32_t source_graph, padding_3;  // 13.4
  uint64_t source_graph_node;
};

enum CopyKind : uint8_t { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8, kPeerToPeer = 10 };
enum MemoryKind : uint32_t { kPageable = 1, kPinned = 2, kDeviceMemory = 3, kManaged = 5, kManagedStatic = 7 };

struct alignas(8) ApiRecord {  // kDriver, kRuntime
  Kind kind;
  uint32_t cbid;
  uint64_t start, end;
  uint32_t process, thread;
  uint32_t correlation;
  uint32_t returned;
};

enum SynchronizationType : uint32_t {
  kEventSynchronize = 1,
  kStreamWaitEvent = 2,
  kStreamSynchronize = 3,
  kContextSynchronize = 4
};
constexpr uint32_t kNoStream = 0xffffffff, kNoEvent = 0xffffffff;  // a synchronization that concerns none

struct alignas(8) SynchronizationRecord {  // kSynchronization
  Kind kind;
  SynchronizationType type;
  uint64_t start, end;
  uint32_t correlation, context, stream, event;
  uint64_t event_sync;  // 12.8
  uint32_t returned, padding;
};

enum OverheadKind : uint32_t {
  kDriverCompiler = 1,
  kModuleLoading = 4 << 16,
  kLazyFunctionLoading = 5 << 16,
  kCommandBufferFull = 6 << 16,
  kBufferRequest = 7 << 16
};
enum ObjectKind : uint32_t { kObjectThread = 2 };

struct alignas(8) OverheadRecord {  // kOverhead
  Kind kind;
  OverheadKind overhead;
  ObjectKind object;
  uint32_t object_id[3];  // {process, thread}, or {device, context, stream}
  uint64_t start, end;
  uint32_t correlation, reserved;  // 12.4
  void* data;
};

struct alignas(8) ExternalCorrelationRecord {  // kExternalCorrelation
  Kind kind;
  uint32_t external_kind;
  uint64_t external;
  uint32_t correlation, reserved;
};

struct alignas(8) GraphTraceRecord {  // kGraphTrace: one launch of a whole graph
  Kind kind;
  uint32_t correlation;
  uint64_t start, end;
  uint32_t device, graph, context, stream;
  void* reserved;
  uint32_t end_device, end_context;  // 12.4
};

struct alignas(8) CudaEventRecord {  // kCudaEvent
  Kind kind;
  uint32_t correlation, context, stream, event, padding;
  uint32_t device, padding_2;  // 12.8
  void* reserved;
  uint64_t device_timestamp;
  uint64_t event_sync;
  uint64_t graph_node;  // 13.5
  uint32_t graph, source_graph;
  uint64_t source_graph_node;
};

enum MemoryOperation : uint32_t { kNoMemoryOperation = 0, kAllocation = 1, kRelease = 2 };

struct alignas(8) MemoryRecord {  // kMemory
  Kind kind;
  MemoryOperation operation;
  MemoryKind memory_kind;
  uint32_t correlation;
  uint64_t address, bytes, timestamp, program_counter;
  uint32_t process, device, context, stream;
  const char* name;
  uint32_t is_async, padding;
  uint32_t pool_type, padding_2;
  uint64_t pool_address, pool_release_threshold;
  uint64_t pool_size;  // of a local pool; of an imported one: the process that made it
  uint64_t pool_utilized_size;
  const char* source;  // 12.6
};

enum PoolOperation : uint32_t { kNoPoolOperation = 0, kPoolCreated = 1, kPoolDestroyed = 2, kPoolTrimmed = 3 };
enum PoolType : uint32_t { kNoPool = 0, kLocalPool = 1, kImportedPool = 2 };

struct alignas(8) MemoryPoolRecord {  // kMemoryPool
  Kind kind;
  PoolOperation operation;
  PoolType type;
  uint32_t correlation, process, device;
  size_t min_bytes_to_keep;
  uint64_t address, size, release_threshold, timestamp, utilized_size;
  uint8_t is_managed, padding[7];  // 13.0
};

enum UnifiedMemoryKind : uint32_t {
  kUnifiedHostToDevice = 1,  // bytes that migrated
  kUnifiedDeviceToHost = 2,
  kCpuPageFault = 3,
  kGpuPageFaults = 4,
  kUnifiedDeviceToDevice = 8,
};
constexpr uint32_t kCpuDevice = 0xffffffff;  // where a device is named

struct alignas(8) UnifiedMemoryRecord {  // kUnifiedMemoryCounter
  Kind kind;
  UnifiedMemoryKind counter;
  uint64_t value;  // bytes, page faults, or the code that met one
  uint64_t start, end, address;
  uint32_t source, destination;  // devices
  uint32_t stream;               // not filled
  uint32_t process, flags, padding;
  uint64_t processors[5];  // 12.8 or before
};
struct UnifiedMemoryConfig {
  uint32_t scope;
  UnifiedMemoryKind counter;
  uint32_t device, enable;
};
constexpr uint32_t kAllDevices = 2;  // a scope

struct alignas(8) DeviceRecord {  // kDevice
  Kind kind;
  uint32_t flags;
  uint64_t global_memory_bandwidth;  // kB/s
  uint64_t global_memory_size;       // bytes
  uint32_t constant_memory_size, l2_cache_size, threads_per_warp;
  uint32_t core_clock;  // kHz
  uint32_t copy_engines, multiprocessors, max_ipc;
  // of a multiprocessor
  uint32_t max_warps, max_blocks, max_shared_memory, max_registers;
  // of a block
  uint32_t max_registers_per_block, max_shared_memory_per_block, max_threads_per_block;
  uint32_t max_block_x, max_block_y, max_block_z, max_grid_x, max_grid_y, max_grid_z;
  uint32_t compute_capability_major, compute_capability_minor;
  uint32_t id;  // what the records of this process call it: CUDA_VISIBLE_DEVICES counts
  uint32_t ecc_enabled;
  uint8_t uuid[16];
  const char* name;
  uint8_t is_cuda_visible, is_mig_enabled, reserved[6];
  uint32_t gpu_instance, compute_instance;
  uint8_t mig_uuid[16];
  uint32_t is_numa_node, numa;               // 12.4
  uint32_t processing_clusters, reserved_2;  // 13.2
};

struct alignas(8) ContextRecord {  // kContext
  Kind kind;
  uint32_t context, device;
  uint16_t compute_api, null_stream;
  uint32_t parent_context;  // 12.4; of a green context
  uint8_t is_green, padding;
  uint16_t multiprocessors;      // 12.6; was padding
  uint32_t cig_mode, padding_2;  // 12.6
  uint64_t process;              // 13.1
};

enum StreamFlag : uint32_t { kStreamUnknown = 0, kStreamDefault = 1, kStreamNonBlocking = 2, kStreamNull = 3 };

struct alignas(8) StreamRecord {  // kStream
  Kind kind;
  uint32_t context, stream;
  uint32_t priority;  // a signed number, cast
  StreamFlag flag;
  uint32_t correlation;
};

enum JitEntry : uint32_t { kNoJitEntry = 0, kPtxToCubin = 1, kNvvmToPtx = 2 };
enum JitOperation : uint32_t { kNoJitOperation = 0, kCacheLoad = 1, kCacheStore = 2, kCompile = 3 };

struct alignas(8) JitRecord {  // kJit
  Kind kind;
  JitEntry entry;
  JitOperation operation;
  uint32_t device;
  uint64_t start, end;
  uint32_t correlation, padding;
  uint64_t operation_correlation;
  uint64_t cache_size;
  const char* cache_path;
  uint32_t process, thread;  // 12.4
};

struct alignas(8) ModuleRecord {  // kModule
  Kind kind;
  uint32_t context, module, cubin_size;
  const void* cubin;
};

// --- callbacks -------------------------------------------------------------------------------------------------------

enum Domain : uint32_t { kDriverDomain = 1, kRuntimeDomain = 2, kResourceDomain = 3, kSynchronizeDomain = 4 };
enum Site : uint32_t { kEnterSite = 0, kExitSite = 1 };

struct CallbackData {  // of the driver's and the runtime's calls
  Site site;
  const char* function;
  const void* parameters;
  void* returned;
  const char* symbol;  // of the kernel that is launched, or NULL
  Context context;
  uint32_t context_id;
  uint64_t* correlation_data;  // ours, from the call's entry to its exit
  uint32_t correlation;
};
struct ResourceData {
  Context context;
  Stream stream;
  void* descriptor;  // GraphData, by cbid
};
struct GraphData {
  Graph graph, original_graph;
  GraphNode node, original_node;
  uint32_t node_type;
  GraphNode dependency;
  GraphExec exec;
};

enum ResourceCbid : uint32_t {
  kContextCreated = 1,
  kModuleUnloadStarting = 7,
  kGraphNodeCreated = 13,
  kGraphNodeCloned = 20
};
enum SynchronizeCbid : uint32_t { kStreamSynchronized = 1, kContextSynchronized = 2 };

// --- settings --------------------------------------------------------------------------------------------------------

enum Attribute : uint32_t { kZeroedOutActivityBuffer = 5 };  // uint8_t
enum ThreadIdType : uint32_t { kThreadIdDefault = 0, kThreadIdSystem = 1 };
enum FlushFlag : uint32_t { kFlushCompleted = 0, kFlushForced = 1 };

using Callback = void (*)(void* user, Domain domain, uint32_t cbid, const void* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(Context context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
using Timestamp = uint64_t (*)();

}  // namespace strobe::cupti
