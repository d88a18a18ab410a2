// abi.cpp - our declarations of CUPTI's interface compared with NVIDIA's headers, of whichever version is on the
// include path. Nothing here runs: what is wrong does not compile.
#include "adapters/cupti/abi.h"

#include <cupti.h>

#include <type_traits>

#include "../../../tests/gpu/fake/fake.h"
#include "adapters/cupti/functions.h"

namespace ours {  // with what only the fake driver of tests/gpu needs
using namespace strobe::cupti;
using namespace fake;
}  // namespace ours

// The newest record of each kind in these headers.
#if CUDA_VERSION >= 13040
using Kernel = CUpti_ActivityKernel13;
using Memcpy = CUpti_ActivityMemcpy7;
using Memset = CUpti_ActivityMemset5;
#elif CUDA_VERSION >= 13030
using Kernel = CUpti_ActivityKernel12;
#elif CUDA_VERSION >= 13010
using Kernel = CUpti_ActivityKernel11;
#elif CUDA_VERSION >= 13000
using Kernel = CUpti_ActivityKernel10;
#elif CUDA_VERSION >= 12000
using Kernel = CUpti_ActivityKernel9;
#else
using Kernel = CUpti_ActivityKernel8;
#endif
#if CUDA_VERSION >= 12080 && CUDA_VERSION < 13040
using Memcpy = CUpti_ActivityMemcpy6;
#elif CUDA_VERSION < 12080
using Memcpy = CUpti_ActivityMemcpy5;
#endif
#if CUDA_VERSION < 13040
using Memset = CUpti_ActivityMemset4;
#endif
#if CUDA_VERSION >= 12080
using Synchronization = CUpti_ActivitySynchronization2;
#else
using Synchronization = CUpti_ActivitySynchronization;
#endif
#if CUDA_VERSION >= 12040
using Overhead = CUpti_ActivityOverhead3;
using GraphTrace = CUpti_ActivityGraphTrace2;
#else
using Overhead = CUpti_ActivityOverhead;
using GraphTrace = CUpti_ActivityGraphTrace;
#endif
#if CUDA_VERSION >= 13050
using CudaEvent = CUpti_ActivityCudaEvent3;
#elif CUDA_VERSION >= 12080
using CudaEvent = CUpti_ActivityCudaEvent2;
#else
using CudaEvent = CUpti_ActivityCudaEvent;
#endif
#if CUDA_VERSION >= 12060
using Memory = CUpti_ActivityMemory4;
#else
using Memory = CUpti_ActivityMemory3;
#endif
#if CUDA_VERSION >= 13000
using MemoryPool = CUpti_ActivityMemoryPool3;
#else
using MemoryPool = CUpti_ActivityMemoryPool2;
#endif
#if CUDA_VERSION >= 12080
using UnifiedMemory = CUpti_ActivityUnifiedMemoryCounter3;
#else
using UnifiedMemory = CUpti_ActivityUnifiedMemoryCounter2;
#endif
#if CUDA_VERSION >= 13020
using Device = CUpti_ActivityDevice6;
#elif CUDA_VERSION >= 12040
using Device = CUpti_ActivityDevice5;
#else
using Device = CUpti_ActivityDevice4;
#endif
#if CUDA_VERSION >= 13010
using ContextInfo = CUpti_ActivityContext4;
#elif CUDA_VERSION >= 12060
using ContextInfo = CUpti_ActivityContext3;
#elif CUDA_VERSION >= 12040
using ContextInfo = CUpti_ActivityContext2;
#else
using ContextInfo = CUpti_ActivityContext;
#endif
#if CUDA_VERSION >= 12040
using Jit = CUpti_ActivityJit2;
#else
using Jit = CUpti_ActivityJit;
#endif

#define SAME(our, our_field, genuine, field)                                                      \
  static_assert(offsetof(ours::our, our_field) == offsetof(genuine, field), #our "." #our_field); \
  static_assert(sizeof(ours::our::our_field) == sizeof(genuine::field), #our "." #our_field " has another size")
// All of ours, or as far as the field before `next`.
#define WHOLE(our, genuine) static_assert(sizeof(ours::our) == sizeof(genuine), #our " has another size")
#define UP_TO(our, next, genuine) \
  static_assert(offsetof(ours::our, next) == sizeof(genuine), #our " does not end before " #next)
#define VALUE(our, genuine) static_assert(int(ours::our) == int(genuine), #our)

SAME(Activity, kind, CUpti_Activity, kind);

SAME(KernelRecord, kind, Kernel, kind);
SAME(KernelRecord, cache_config, Kernel, cacheConfig);
SAME(KernelRecord, shared_memory_config, Kernel, sharedMemoryConfig);
SAME(KernelRecord, registers, Kernel, registersPerThread);
SAME(KernelRecord, global_cache_requested, Kernel, partitionedGlobalCacheRequested);
SAME(KernelRecord, global_cache_executed, Kernel, partitionedGlobalCacheExecuted);
SAME(KernelRecord, start, Kernel, start);
SAME(KernelRecord, end, Kernel, end);
SAME(KernelRecord, completed, Kernel, completed);
SAME(KernelRecord, device, Kernel, deviceId);
SAME(KernelRecord, context, Kernel, contextId);
SAME(KernelRecord, stream, Kernel, streamId);
SAME(KernelRecord, grid_x, Kernel, gridX);
SAME(KernelRecord, grid_y, Kernel, gridY);
SAME(KernelRecord, grid_z, Kernel, gridZ);
SAME(KernelRecord, block_x, Kernel, blockX);
SAME(KernelRecord, block_y, Kernel, blockY);
SAME(KernelRecord, block_z, Kernel, blockZ);
SAME(KernelRecord, static_shared_memory, Kernel, staticSharedMemory);
SAME(KernelRecord, dynamic_shared_memory, Kernel, dynamicSharedMemory);
SAME(KernelRecord, local_memory_per_thread, Kernel, localMemoryPerThread);
SAME(KernelRecord, local_memory_total_32, Kernel, localMemoryTotal);
SAME(KernelRecord, correlation, Kernel, correlationId);
SAME(KernelRecord, grid, Kernel, gridId);
SAME(KernelRecord, name, Kernel, name);
SAME(KernelRecord, queued, Kernel, queued);
SAME(KernelRecord, submitted, Kernel, submitted);
SAME(KernelRecord, launch_type, Kernel, launchType);
SAME(KernelRecord, carveout_requested_set, Kernel, isSharedMemoryCarveoutRequested);
SAME(KernelRecord, carveout_requested, Kernel, sharedMemoryCarveoutRequested);
SAME(KernelRecord, shared_memory_executed, Kernel, sharedMemoryExecuted);
SAME(KernelRecord, graph_node, Kernel, graphNodeId);
SAME(KernelRecord, shared_memory_limit, Kernel, shmemLimitConfig);
SAME(KernelRecord, graph, Kernel, graphId);
SAME(KernelRecord, access_policy_window, Kernel, pAccessPolicyWindow);
SAME(KernelRecord, channel, Kernel, channelID);
SAME(KernelRecord, channel_type, Kernel, channelType);
SAME(KernelRecord, cluster_x, Kernel, clusterX);
SAME(KernelRecord, cluster_y, Kernel, clusterY);
SAME(KernelRecord, cluster_z, Kernel, clusterZ);
SAME(KernelRecord, cluster_scheduling_policy, Kernel, clusterSchedulingPolicy);
SAME(KernelRecord, local_memory_total, Kernel, localMemoryTotal_v2);
#if CUDA_VERSION >= 12000
SAME(KernelRecord, max_potential_cluster_size, Kernel, maxPotentialClusterSize);
SAME(KernelRecord, max_active_clusters, Kernel, maxActiveClusters);
#else
UP_TO(KernelRecord, max_potential_cluster_size, Kernel);
#endif
#if CUDA_VERSION >= 13000
SAME(KernelRecord, launched_by_device, Kernel, isDeviceLaunched);
#elif CUDA_VERSION >= 12000
UP_TO(KernelRecord, launched_by_device, Kernel);
#endif
#if CUDA_VERSION >= 13010
SAME(KernelRecord, priority, Kernel, priority);
#elif CUDA_VERSION >= 13000
UP_TO(KernelRecord, priority, Kernel);
#endif
#if CUDA_VERSION >= 13030
SAME(KernelRecord, execution_model, Kernel, executionModel);
#elif CUDA_VERSION >= 13010
UP_TO(KernelRecord, execution_model, Kernel);
#endif
#if CUDA_VERSION >= 13040
SAME(KernelRecord, source_graph, Kernel, sourceGraphId);
SAME(KernelRecord, source_graph_node, Kernel, sourceGraphNodeId);
WHOLE(KernelRecord, Kernel);
#elif CUDA_VERSION >= 13030
UP_TO(KernelRecord, source_graph, Kernel);
#endif

SAME(MemcpyRecord, copy_kind, Memcpy, copyKind);
SAME(MemcpyRecord, source_kind, Memcpy, srcKind);
SAME(MemcpyRecord, destination_kind, Memcpy, dstKind);
SAME(MemcpyRecord, flags, Memcpy, flags);
SAME(MemcpyRecord, bytes, Memcpy, bytes);
SAME(MemcpyRecord, start, Memcpy, start);
SAME(MemcpyRecord, end, Memcpy, end);
SAME(MemcpyRecord, device, Memcpy, deviceId);
SAME(MemcpyRecord, context, Memcpy, contextId);
SAME(MemcpyRecord, stream, Memcpy, streamId);
SAME(MemcpyRecord, correlation, Memcpy, correlationId);
SAME(MemcpyRecord, graph_node, Memcpy, graphNodeId);
SAME(MemcpyRecord, graph, Memcpy, graphId);
SAME(MemcpyRecord, channel, Memcpy, channelID);
SAME(MemcpyRecord, channel_type, Memcpy, channelType);
#if CUDA_VERSION >= 13000
SAME(MemcpyRecord, launched_by_device, Memcpy, isDeviceLaunched);
#endif
#if CUDA_VERSION >= 12080
SAME(MemcpyRecord, copy_count, Memcpy, copyCount);
#else
UP_TO(MemcpyRecord, copy_count, Memcpy);
#endif
#if CUDA_VERSION >= 13040
SAME(MemcpyRecord, source_graph, Memcpy, sourceGraphId);
SAME(MemcpyRecord, source_graph_node, Memcpy, sourceGraphNodeId);
WHOLE(MemcpyRecord, Memcpy);
#elif CUDA_VERSION >= 12080
UP_TO(MemcpyRecord, source_graph, Memcpy);
#endif

SAME(MemcpyPeerRecord, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
SAME(MemcpyPeerRecord, source_kind, CUpti_ActivityMemcpyPtoP4, srcKind);
SAME(MemcpyPeerRecord, destination_kind, CUpti_ActivityMemcpyPtoP4, dstKind);
SAME(MemcpyPeerRecord, flags, CUpti_ActivityMemcpyPtoP4, flags);
SAME(MemcpyPeerRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME(MemcpyPeerRecord, start, CUpti_ActivityMemcpyPtoP4, start);
SAME(MemcpyPeerRecord, end, CUpti_ActivityMemcpyPtoP4, end);
SAME(MemcpyPeerRecord, device, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME(MemcpyPeerRecord, context, CUpti_ActivityMemcpyPtoP4, contextId);
SAME(MemcpyPeerRecord, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME(MemcpyPeerRecord, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME(MemcpyPeerRecord, source_context, CUpti_ActivityMemcpyPtoP4, srcContextId);
SAME(MemcpyPeerRecord, destination_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SAME(MemcpyPeerRecord, destination_context, CUpti_ActivityMemcpyPtoP4, dstContextId);
SAME(MemcpyPeerRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME(MemcpyPeerRecord, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
SAME(MemcpyPeerRecord, graph, CUpti_ActivityMemcpyPtoP4, graphId);
SAME(MemcpyPeerRecord, channel, CUpti_ActivityMemcpyPtoP4, channelID);
SAME(MemcpyPeerRecord, channel_type, CUpti_ActivityMemcpyPtoP4, channelType);
WHOLE(MemcpyPeerRecord, CUpti_ActivityMemcpyPtoP4);

SAME(MemsetRecord, value, Memset, value);
SAME(MemsetRecord, bytes, Memset, bytes);
SAME(MemsetRecord, start, Memset, start);
SAME(MemsetRecord, end, Memset, end);
SAME(MemsetRecord, device, Memset, deviceId);
SAME(MemsetRecord, context, Memset, contextId);
SAME(MemsetRecord, stream, Memset, streamId);
SAME(MemsetRecord, correlation, Memset, correlationId);
SAME(MemsetRecord, flags, Memset, flags);
SAME(MemsetRecord, memory_kind, Memset, memoryKind);
SAME(MemsetRecord, graph_node, Memset, graphNodeId);
SAME(MemsetRecord, graph, Memset, graphId);
SAME(MemsetRecord, channel, Memset, channelID);
SAME(MemsetRecord, channel_type, Memset, channelType);
#if CUDA_VERSION >= 13040
SAME(MemsetRecord, launched_by_device, Memset, isDeviceLaunched);
SAME(MemsetRecord, source_graph, Memset, sourceGraphId);
SAME(MemsetRecord, source_graph_node, Memset, sourceGraphNodeId);
WHOLE(MemsetRecord, Memset);
#else
UP_TO(MemsetRecord, source_graph, Memset);
#endif

SAME(ApiRecord, cbid, CUpti_ActivityAPI, cbid);
SAME(ApiRecord, start, CUpti_ActivityAPI, start);
SAME(ApiRecord, end, CUpti_ActivityAPI, end);
SAME(ApiRecord, process, CUpti_ActivityAPI, processId);
SAME(ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
SAME(ApiRecord, returned, CUpti_ActivityAPI, returnValue);
WHOLE(ApiRecord, CUpti_ActivityAPI);

SAME(SynchronizationRecord, type, Synchronization, type);
SAME(SynchronizationRecord, start, Synchronization, start);
SAME(SynchronizationRecord, end, Synchronization, end);
SAME(SynchronizationRecord, correlation, Synchronization, correlationId);
SAME(SynchronizationRecord, context, Synchronization, contextId);
SAME(SynchronizationRecord, stream, Synchronization, streamId);
SAME(SynchronizationRecord, event, Synchronization, cudaEventId);
#if CUDA_VERSION >= 12080
SAME(SynchronizationRecord, event_sync, Synchronization, cudaEventSyncId);
SAME(SynchronizationRecord, returned, Synchronization, returnValue);
WHOLE(SynchronizationRecord, Synchronization);
#else
UP_TO(SynchronizationRecord, event_sync, Synchronization);
#endif
static_assert(ours::kNoStream == uint32_t(CUPTI_SYNCHRONIZATION_INVALID_VALUE));

SAME(OverheadRecord, overhead, Overhead, overheadKind);
SAME(OverheadRecord, object, Overhead, objectKind);
SAME(OverheadRecord, object_id, Overhead, objectId);
SAME(OverheadRecord, start, Overhead, start);
SAME(OverheadRecord, end, Overhead, end);
#if CUDA_VERSION >= 12040
SAME(OverheadRecord, correlation, Overhead, correlationId);
SAME(OverheadRecord, data, Overhead, overheadData);
WHOLE(OverheadRecord, Overhead);
#else
UP_TO(OverheadRecord, correlation, Overhead);
#endif

SAME(ExternalCorrelationRecord, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME(ExternalCorrelationRecord, external, CUpti_ActivityExternalCorrelation, externalId);
SAME(ExternalCorrelationRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);
WHOLE(ExternalCorrelationRecord, CUpti_ActivityExternalCorrelation);

SAME(GraphTraceRecord, correlation, GraphTrace, correlationId);
SAME(GraphTraceRecord, start, GraphTrace, start);
SAME(GraphTraceRecord, end, GraphTrace, end);
SAME(GraphTraceRecord, device, GraphTrace, deviceId);
SAME(GraphTraceRecord, graph, GraphTrace, graphId);
SAME(GraphTraceRecord, context, GraphTrace, contextId);
SAME(GraphTraceRecord, stream, GraphTrace, streamId);
#if CUDA_VERSION >= 12040
SAME(GraphTraceRecord, end_device, GraphTrace, endDeviceId);
SAME(GraphTraceRecord, end_context, GraphTrace, endContextId);
WHOLE(GraphTraceRecord, GraphTrace);
#else
UP_TO(GraphTraceRecord, end_device, GraphTrace);
#endif

SAME(CudaEventRecord, correlation, CudaEvent, correlationId);
SAME(CudaEventRecord, context, CudaEvent, contextId);
SAME(CudaEventRecord, stream, CudaEvent, streamId);
SAME(CudaEventRecord, event, CudaEvent, eventId);
#if CUDA_VERSION >= 12080
SAME(CudaEventRecord, device, CudaEvent, deviceId);
SAME(CudaEventRecord, device_timestamp, CudaEvent, deviceTimestamp);
SAME(CudaEventRecord, event_sync, CudaEvent, cudaEventSyncId);
#else
UP_TO(CudaEventRecord, device, CudaEvent);
#endif
#if CUDA_VERSION >= 13050
SAME(CudaEventRecord, graph_node, CudaEvent, graphNodeId);
SAME(CudaEventRecord, graph, CudaEvent, graphId);
SAME(CudaEventRecord, source_graph, CudaEvent, sourceGraphId);
SAME(CudaEventRecord, source_graph_node, CudaEvent, sourceGraphNodeId);
WHOLE(CudaEventRecord, CudaEvent);
#elif CUDA_VERSION >= 12080
UP_TO(CudaEventRecord, graph_node, CudaEvent);
#endif

SAME(MemoryRecord, operation, Memory, memoryOperationType);
SAME(MemoryRecord, memory_kind, Memory, memoryKind);
SAME(MemoryRecord, correlation, Memory, correlationId);
SAME(MemoryRecord, address, Memory, address);
SAME(MemoryRecord, bytes, Memory, bytes);
SAME(MemoryRecord, timestamp, Memory, timestamp);
SAME(MemoryRecord, program_counter, Memory, PC);
SAME(MemoryRecord, process, Memory, processId);
SAME(MemoryRecord, device, Memory, deviceId);
SAME(MemoryRecord, context, Memory, contextId);
SAME(MemoryRecord, stream, Memory, streamId);
SAME(MemoryRecord, name, Memory, name);
SAME(MemoryRecord, is_async, Memory, isAsync);
SAME(MemoryRecord, pool_type, Memory, memoryPoolConfig.memoryPoolType);
SAME(MemoryRecord, pool_address, Memory, memoryPoolConfig.address);
SAME(MemoryRecord, pool_release_threshold, Memory, memoryPoolConfig.releaseThreshold);
SAME(MemoryRecord, pool_size, Memory, memoryPoolConfig.pool);
SAME(MemoryRecord, pool_utilized_size, Memory, memoryPoolConfig.utilizedSize);
#if CUDA_VERSION >= 12060
SAME(MemoryRecord, source, Memory, source);
WHOLE(MemoryRecord, Memory);
#else
UP_TO(MemoryRecord, source, Memory);
#endif

SAME(MemoryPoolRecord, operation, MemoryPool, memoryPoolOperationType);
SAME(MemoryPoolRecord, type, MemoryPool, memoryPoolType);
SAME(MemoryPoolRecord, correlation, MemoryPool, correlationId);
SAME(MemoryPoolRecord, process, MemoryPool, processId);
SAME(MemoryPoolRecord, device, MemoryPool, deviceId);
SAME(MemoryPoolRecord, min_bytes_to_keep, MemoryPool, minBytesToKeep);
SAME(MemoryPoolRecord, address, MemoryPool, address);
SAME(MemoryPoolRecord, size, MemoryPool, size);
SAME(MemoryPoolRecord, release_threshold, MemoryPool, releaseThreshold);
SAME(MemoryPoolRecord, timestamp, MemoryPool, timestamp);
SAME(MemoryPoolRecord, utilized_size, MemoryPool, utilizedSize);
#if CUDA_VERSION >= 13000
SAME(MemoryPoolRecord, is_managed, MemoryPool, isManagedPool);
WHOLE(MemoryPoolRecord, MemoryPool);
#else
UP_TO(MemoryPoolRecord, is_managed, MemoryPool);
#endif

SAME(DeviceRecord, flags, Device, flags);
SAME(UnifiedMemoryRecord, counter, UnifiedMemory, counterKind);
SAME(UnifiedMemoryRecord, value, UnifiedMemory, value);
SAME(UnifiedMemoryRecord, start, UnifiedMemory, start);
SAME(UnifiedMemoryRecord, end, UnifiedMemory, end);
SAME(UnifiedMemoryRecord, address, UnifiedMemory, address);
SAME(UnifiedMemoryRecord, source, UnifiedMemory, srcId);
SAME(UnifiedMemoryRecord, destination, UnifiedMemory, dstId);
SAME(UnifiedMemoryRecord, stream, UnifiedMemory, streamId);
SAME(UnifiedMemoryRecord, process, UnifiedMemory, processId);
SAME(UnifiedMemoryRecord, flags, UnifiedMemory, flags);
#if CUDA_VERSION >= 12080
SAME(UnifiedMemoryRecord, processors, UnifiedMemory, processors);
WHOLE(UnifiedMemoryRecord, UnifiedMemory);
#else
UP_TO(UnifiedMemoryRecord, processors, UnifiedMemory);
#endif
SAME(UnifiedMemoryConfig, scope, CUpti_ActivityUnifiedMemoryCounterConfig, scope);
SAME(UnifiedMemoryConfig, counter, CUpti_ActivityUnifiedMemoryCounterConfig, kind);
SAME(UnifiedMemoryConfig, device, CUpti_ActivityUnifiedMemoryCounterConfig, deviceId);
SAME(UnifiedMemoryConfig, enable, CUpti_ActivityUnifiedMemoryCounterConfig, enable);
WHOLE(UnifiedMemoryConfig, CUpti_ActivityUnifiedMemoryCounterConfig);

SAME(DeviceRecord, global_memory_bandwidth, Device, globalMemoryBandwidth);
SAME(DeviceRecord, global_memory_size, Device, globalMemorySize);
SAME(DeviceRecord, constant_memory_size, Device, constantMemorySize);
SAME(DeviceRecord, l2_cache_size, Device, l2CacheSize);
SAME(DeviceRecord, threads_per_warp, Device, numThreadsPerWarp);
SAME(DeviceRecord, core_clock, Device, coreClockRate);
SAME(DeviceRecord, copy_engines, Device, numMemcpyEngines);
SAME(DeviceRecord, multiprocessors, Device, numMultiprocessors);
SAME(DeviceRecord, max_ipc, Device, maxIPC);
SAME(DeviceRecord, max_warps, Device, maxWarpsPerMultiprocessor);
SAME(DeviceRecord, max_blocks, Device, maxBlocksPerMultiprocessor);
SAME(DeviceRecord, max_shared_memory, Device, maxSharedMemoryPerMultiprocessor);
SAME(DeviceRecord, max_registers, Device, maxRegistersPerMultiprocessor);
SAME(DeviceRecord, max_registers_per_block, Device, maxRegistersPerBlock);
SAME(DeviceRecord, max_shared_memory_per_block, Device, maxSharedMemoryPerBlock);
SAME(DeviceRecord, max_threads_per_block, Device, maxThreadsPerBlock);
SAME(DeviceRecord, max_block_x, Device, maxBlockDimX);
SAME(DeviceRecord, max_block_y, Device, maxBlockDimY);
SAME(DeviceRecord, max_block_z, Device, maxBlockDimZ);
SAME(DeviceRecord, max_grid_x, Device, maxGridDimX);
SAME(DeviceRecord, max_grid_y, Device, maxGridDimY);
SAME(DeviceRecord, max_grid_z, Device, maxGridDimZ);
SAME(DeviceRecord, compute_capability_major, Device, computeCapabilityMajor);
SAME(DeviceRecord, compute_capability_minor, Device, computeCapabilityMinor);
SAME(DeviceRecord, id, Device, id);
SAME(DeviceRecord, ecc_enabled, Device, eccEnabled);
SAME(DeviceRecord, uuid, Device, uuid);
SAME(DeviceRecord, name, Device, name);
SAME(DeviceRecord, is_cuda_visible, Device, isCudaVisible);
SAME(DeviceRecord, is_mig_enabled, Device, isMigEnabled);
SAME(DeviceRecord, gpu_instance, Device, gpuInstanceId);
SAME(DeviceRecord, compute_instance, Device, computeInstanceId);
SAME(DeviceRecord, mig_uuid, Device, migUuid);
#if CUDA_VERSION >= 12040
SAME(DeviceRecord, is_numa_node, Device, isNumaNode);
SAME(DeviceRecord, numa, Device, numaId);
#else
UP_TO(DeviceRecord, is_numa_node, Device);
#endif
#if CUDA_VERSION >= 13020
SAME(DeviceRecord, processing_clusters, Device, numTpcs);
WHOLE(DeviceRecord, Device);
#elif CUDA_VERSION >= 12040
UP_TO(DeviceRecord, processing_clusters, Device);
#endif

SAME(ContextRecord, context, ContextInfo, contextId);
SAME(ContextRecord, device, ContextInfo, deviceId);
SAME(ContextRecord, compute_api, ContextInfo, computeApiKind);
SAME(ContextRecord, null_stream, ContextInfo, nullStreamId);
#if CUDA_VERSION >= 12040
SAME(ContextRecord, parent_context, ContextInfo, parentContextId);
SAME(ContextRecord, is_green, ContextInfo, isGreenContext);
#else
UP_TO(ContextRecord, parent_context, ContextInfo);
#endif
#if CUDA_VERSION >= 12060
SAME(ContextRecord, multiprocessors, ContextInfo, numMultiprocessors);
SAME(ContextRecord, cig_mode, ContextInfo, cigMode);
#elif CUDA_VERSION >= 12040
UP_TO(ContextRecord, cig_mode, ContextInfo);
#endif
#if CUDA_VERSION >= 13010
SAME(ContextRecord, process, ContextInfo, processId);
WHOLE(ContextRecord, ContextInfo);
#elif CUDA_VERSION >= 12060
UP_TO(ContextRecord, process, ContextInfo);
#endif

SAME(JitRecord, entry, Jit, jitEntryType);
SAME(JitRecord, operation, Jit, jitOperationType);
SAME(JitRecord, device, Jit, deviceId);
SAME(JitRecord, start, Jit, start);
SAME(JitRecord, end, Jit, end);
SAME(JitRecord, correlation, Jit, correlationId);
SAME(JitRecord, operation_correlation, Jit, jitOperationCorrelationId);
SAME(JitRecord, cache_size, Jit, cacheSize);
SAME(JitRecord, cache_path, Jit, cachePath);
#if CUDA_VERSION >= 12040
SAME(JitRecord, process, Jit, processId);
SAME(JitRecord, thread, Jit, threadId);
WHOLE(JitRecord, Jit);
#else
UP_TO(JitRecord, process, Jit);
#endif

SAME(StreamRecord, context, CUpti_ActivityStream, contextId);
SAME(StreamRecord, stream, CUpti_ActivityStream, streamId);
SAME(StreamRecord, priority, CUpti_ActivityStream, priority);
SAME(StreamRecord, flag, CUpti_ActivityStream, flag);
SAME(StreamRecord, correlation, CUpti_ActivityStream, correlationId);
WHOLE(StreamRecord, CUpti_ActivityStream);

SAME(ModuleRecord, context, CUpti_ActivityModule, contextId);
SAME(ModuleRecord, module, CUpti_ActivityModule, id);
SAME(ModuleRecord, cubin_size, CUpti_ActivityModule, cubinSize);
SAME(ModuleRecord, cubin, CUpti_ActivityModule, cubin);
WHOLE(ModuleRecord, CUpti_ActivityModule);

// --- callbacks

SAME(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME(CallbackData, function, CUpti_CallbackData, functionName);
SAME(CallbackData, parameters, CUpti_CallbackData, functionParams);
SAME(CallbackData, returned, CUpti_CallbackData, functionReturnValue);
SAME(CallbackData, symbol, CUpti_CallbackData, symbolName);
SAME(CallbackData, context, CUpti_CallbackData, context);
SAME(CallbackData, context_id, CUpti_CallbackData, contextUid);
SAME(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
SAME(CallbackData, correlation, CUpti_CallbackData, correlationId);
WHOLE(CallbackData, CUpti_CallbackData);
SAME(ResourceData, context, CUpti_ResourceData, context);
SAME(ResourceData, stream, CUpti_ResourceData, resourceHandle);
SAME(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME(ModuleData, module, CUpti_ModuleResourceData, moduleId);
SAME(ModuleData, cubin_size, CUpti_ModuleResourceData, cubinSize);
SAME(ModuleData, cubin, CUpti_ModuleResourceData, pCubin);
SAME(GraphData, graph, CUpti_GraphData, graph);
SAME(GraphData, original_graph, CUpti_GraphData, originalGraph);
SAME(GraphData, node, CUpti_GraphData, node);
SAME(GraphData, original_node, CUpti_GraphData, originalNode);
SAME(GraphData, node_type, CUpti_GraphData, nodeType);
SAME(GraphData, dependency, CUpti_GraphData, dependency);
SAME(GraphData, exec, CUpti_GraphData, graphExec);
SAME(SynchronizeData, context, CUpti_SynchronizeData, context);
SAME(SynchronizeData, stream, CUpti_SynchronizeData, stream);
#if CUDA_VERSION >= 13000
SAME(SubscriberParameters, struct_size, CUpti_SubscriberParams, structSize);
SAME(SubscriberParameters, name, CUpti_SubscriberParams, subscriberName);
SAME(SubscriberParameters, old_name, CUpti_SubscriberParams, oldSubscriberName);
SAME(SubscriberParameters, old_size, CUpti_SubscriberParams, oldSubscriberSize);
static_assert(ours::kMaxSubscriberName == CUPTI_SUBSCRIBER_NAME_MAX_LEN);
static_assert(ours::kMinOldSubscriberName == CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
#endif

// --- constants

VALUE(kSuccess, CUPTI_SUCCESS);
VALUE(kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
VALUE(kInvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
VALUE(kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
VALUE(kNotCompatible, CUPTI_ERROR_NOT_COMPATIBLE);
VALUE(kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
VALUE(kQueueEmpty, CUPTI_ERROR_QUEUE_EMPTY);
VALUE(kInvalidKind, CUPTI_ERROR_INVALID_KIND);
VALUE(kNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
VALUE(kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
VALUE(kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
VALUE(kUnknownError, CUPTI_ERROR_UNKNOWN);

VALUE(kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
VALUE(kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
VALUE(kKernel, CUPTI_ACTIVITY_KIND_KERNEL);
VALUE(kDriver, CUPTI_ACTIVITY_KIND_DRIVER);
VALUE(kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
VALUE(kDevice, CUPTI_ACTIVITY_KIND_DEVICE);
VALUE(kContext, CUPTI_ACTIVITY_KIND_CONTEXT);
VALUE(kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
VALUE(kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
VALUE(kMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
VALUE(kUnifiedMemoryCounter, CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
VALUE(kModule, CUPTI_ACTIVITY_KIND_MODULE);
VALUE(kCudaEvent, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
VALUE(kStream, CUPTI_ACTIVITY_KIND_STREAM);
VALUE(kSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
VALUE(kExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
VALUE(kUnifiedHostToDevice, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD);
VALUE(kUnifiedDeviceToHost, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH);
VALUE(kUnifiedDeviceToDevice, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD);
VALUE(kCpuPageFault, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT);
VALUE(kGpuPageFaults, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT);
VALUE(kAllDevices, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES);
VALUE(kCpuDevice, CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID);
VALUE(kMemory, CUPTI_ACTIVITY_KIND_MEMORY2);
VALUE(kMemoryPool, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
VALUE(kGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
VALUE(kJit, CUPTI_ACTIVITY_KIND_JIT);
static_assert(uint32_t(ours::kKinds) >= uint32_t(CUPTI_ACTIVITY_KIND_COUNT));

VALUE(kRegular, CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR);
VALUE(kCooperative, CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE);
VALUE(kCooperativeManyDevices, CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE);
#if CUDA_VERSION >= 12000
VALUE(kCommandList, CUPTI_ACTIVITY_LAUNCH_TYPE_CBL_COMMANDLIST);
#endif
VALUE(kNoChannel, CUPTI_CHANNEL_TYPE_INVALID);
VALUE(kCompute, CUPTI_CHANNEL_TYPE_COMPUTE);
VALUE(kAsyncCopy, CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY);
VALUE(kHostToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
VALUE(kDeviceToHost, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
VALUE(kDeviceToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
VALUE(kPeerToPeer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
VALUE(kPageable, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
VALUE(kPinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
VALUE(kDeviceMemory, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
VALUE(kManaged, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
VALUE(kManagedStatic, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
VALUE(kEventSynchronize, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
VALUE(kStreamWaitEvent, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
VALUE(kStreamSynchronize, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
VALUE(kContextSynchronize, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
VALUE(kDriverCompiler, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
#if CUDA_VERSION >= 12040
VALUE(kModuleLoading, CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING);
VALUE(kLazyFunctionLoading, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
VALUE(kCommandBufferFull, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
#endif
#if CUDA_VERSION >= 12060
VALUE(kBufferRequest, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
#endif
VALUE(kObjectThread, CUPTI_ACTIVITY_OBJECT_THREAD);
VALUE(kNoMemoryOperation, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_INVALID);
VALUE(kAllocation, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
VALUE(kRelease, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
VALUE(kNoPoolOperation, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID);
VALUE(kPoolCreated, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
VALUE(kPoolDestroyed, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
VALUE(kPoolTrimmed, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED);
VALUE(kNoPool, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID);
VALUE(kLocalPool, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL);
VALUE(kImportedPool, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED);
VALUE(kStreamUnknown, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN);
VALUE(kStreamDefault, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT);
VALUE(kStreamNonBlocking, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
VALUE(kStreamNull, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL);
VALUE(kNoJitEntry, CUPTI_ACTIVITY_JIT_ENTRY_INVALID);
VALUE(kPtxToCubin, CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN);
VALUE(kNvvmToPtx, CUPTI_ACTIVITY_JIT_ENTRY_NVVM_IR_TO_PTX);
VALUE(kNoJitOperation, CUPTI_ACTIVITY_JIT_OPERATION_INVALID);
VALUE(kCacheLoad, CUPTI_ACTIVITY_JIT_OPERATION_CACHE_LOAD);
VALUE(kCacheStore, CUPTI_ACTIVITY_JIT_OPERATION_CACHE_STORE);
VALUE(kCompile, CUPTI_ACTIVITY_JIT_OPERATION_COMPILE);

VALUE(kDriverDomain, CUPTI_CB_DOMAIN_DRIVER_API);
VALUE(kRuntimeDomain, CUPTI_CB_DOMAIN_RUNTIME_API);
VALUE(kResourceDomain, CUPTI_CB_DOMAIN_RESOURCE);
VALUE(kSynchronizeDomain, CUPTI_CB_DOMAIN_SYNCHRONIZE);
VALUE(kEnterSite, CUPTI_API_ENTER);
VALUE(kExitSite, CUPTI_API_EXIT);
VALUE(kContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
VALUE(kStreamCreated, CUPTI_CBID_RESOURCE_STREAM_CREATED);
VALUE(kInitFinished, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED);
VALUE(kModuleLoaded, CUPTI_CBID_RESOURCE_MODULE_LOADED);
VALUE(kModuleUnloadStarting, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
VALUE(kGraphCreated, CUPTI_CBID_RESOURCE_GRAPH_CREATED);
VALUE(kGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
VALUE(kGraphExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
VALUE(kGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
VALUE(kStreamSynchronized, CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED);
VALUE(kContextSynchronized, CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED);

VALUE(kCudaGetLastError, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020);
VALUE(kCudaSetDevice, CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020);
VALUE(kCudaGetDevice, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020);
VALUE(kCudaMalloc, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
VALUE(kCudaFree, CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020);
VALUE(kCudaMemcpyAsync, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
VALUE(kCudaMemsetAsync, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
VALUE(kCudaStreamCreate, CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreate_v3020);
VALUE(kCudaStreamSynchronize, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
VALUE(kCudaEventCreate, CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020);
VALUE(kCudaEventRecord, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020);
VALUE(kCudaEventSynchronize, CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020);
VALUE(kCudaStreamWaitEvent, CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020);
VALUE(kCudaDeviceSynchronize, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
VALUE(kCudaLaunchKernel, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
VALUE(kCudaGraphLaunch, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
VALUE(kCudaStreamBeginCapture, CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000);
VALUE(kCudaStreamEndCapture, CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000);
VALUE(kCudaLaunchKernelEx, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060);
#if CUDA_VERSION >= 12000
VALUE(kCudaGraphInstantiate12, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000);
#endif
VALUE(kCuInit, CUPTI_DRIVER_TRACE_CBID_cuInit);
VALUE(kCuCtxSynchronize, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize);
VALUE(kCuEventCreate, CUPTI_DRIVER_TRACE_CBID_cuEventCreate);
VALUE(kCuEventRecord, CUPTI_DRIVER_TRACE_CBID_cuEventRecord);
VALUE(kCuEventSynchronize, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize);
VALUE(kCuStreamCreate, CUPTI_DRIVER_TRACE_CBID_cuStreamCreate);
VALUE(kCuStreamSynchronize, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
VALUE(kCuMemsetD8Async, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async);
VALUE(kCuCtxCreate, CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v2);
VALUE(kCuMemcpyHtoD, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2);
VALUE(kCuMemcpyHtoDAsync, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2);
VALUE(kCuMemcpyDtoHAsync, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2);
VALUE(kCuStreamWaitEvent, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent);
VALUE(kCuCtxGetCurrent, CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent);
VALUE(kCuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
VALUE(kCuDevicePrimaryCtxRetain, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRetain);
VALUE(kCuStreamEndCapture, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture);
VALUE(kCuGraphCreate, CUPTI_DRIVER_TRACE_CBID_cuGraphCreate);
VALUE(kCuGraphAddKernelNode, CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode);
VALUE(kCuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
VALUE(kCuGraphInstantiateWithFlags, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags);
VALUE(kCuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);

VALUE(kDeviceBufferSize, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
VALUE(kDeviceBufferPoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
VALUE(kProfilingSemaphorePoolSize, CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE);
VALUE(kProfilingSemaphorePoolLimit, CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT);
VALUE(kZeroedOutActivityBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
VALUE(kDeviceBufferPreAllocate, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE);
VALUE(kProfilingSemaphorePreAllocate, CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE);
VALUE(kDeviceBuffersInPinnedMemory, CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
#if CUDA_VERSION >= 12030
VALUE(kPerThreadActivityBuffer, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
#endif
VALUE(kThreadIdDefault, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
VALUE(kThreadIdSystem, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
VALUE(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

// --- functions: as many parameters, each of the same size, and a result that comes back in the same register

template <class A, class B>
constexpr bool same_call = false;
template <class... A, class... B>
constexpr bool same_call<ours::Result (*)(A...), CUptiResult(B...)> = [] {
  if constexpr (sizeof...(A) == sizeof...(B))
    return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
  return false;
}();
static_assert(sizeof(CUptiResult) == sizeof(ours::Result));
#define CALL(member, genuine) static_assert(same_call<decltype(ours::Functions::member), decltype(genuine)>, #genuine)

CALL(get_version, cuptiGetVersion);
CALL(get_result_string, cuptiGetResultString);
CALL(get_timestamp, cuptiGetTimestamp);
CALL(subscribe, cuptiSubscribe);
CALL(unsubscribe, cuptiUnsubscribe);
CALL(enable_callback, cuptiEnableCallback);
CALL(get_callback_name, cuptiGetCallbackName);
CALL(activity_enable, cuptiActivityEnable);
CALL(activity_enable_and_dump, cuptiActivityEnableAndDump);
CALL(activity_disable, cuptiActivityDisable);
CALL(activity_register_callbacks, cuptiActivityRegisterCallbacks);
CALL(activity_get_next_record, cuptiActivityGetNextRecord);
CALL(activity_get_num_dropped_records, cuptiActivityGetNumDroppedRecords);
CALL(activity_flush_all, cuptiActivityFlushAll);
CALL(activity_set_attribute, cuptiActivitySetAttribute);
CALL(activity_register_timestamp_callback, cuptiActivityRegisterTimestampCallback);
CALL(activity_configure_unified_memory, cuptiActivityConfigureUnifiedMemoryCounter);
CALL(set_thread_id_type, cuptiSetThreadIdType);
CALL(get_graph_node_id, cuptiGetGraphNodeId);
#if CUDA_VERSION >= 12040
CALL(get_error_message, cuptiGetErrorMessage);
#endif
#if CUDA_VERSION >= 12060
CALL(activity_enable_runtime_api, cuptiActivityEnableRuntimeApi);
CALL(activity_enable_driver_api, cuptiActivityEnableDriverApi);
#endif
#if CUDA_VERSION >= 12080
CALL(activity_enable_all_sync_records, cuptiActivityEnableAllSyncRecords);
#endif
#if CUDA_VERSION >= 13020
CALL(activity_get_struct_size, cuptiActivityGetStructSize);
#endif

template <class A, class B>
constexpr bool same_callback = false;
template <class... A, class... B>
constexpr bool same_callback<void (*)(A...), void (*)(B...)> = [] {
  if constexpr (sizeof...(A) == sizeof...(B)) return ((sizeof(A) == sizeof(B)) && ...);
  return false;
}();
static_assert(same_callback<ours::Callback, CUpti_CallbackFunc>);
static_assert(same_callback<ours::BufferRequested, CUpti_BuffersCallbackRequestFunc>);
static_assert(same_callback<ours::BufferCompleted, CUpti_BuffersCallbackCompleteFunc>);
static_assert(std::is_same_v<ours::Timestamp, CUpti_TimestampCallbackFunc>);
