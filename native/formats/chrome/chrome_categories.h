// chrome_categories.h - what Chrome's trace events mean to us: by category who reports them and what they are, and into
// which column of which side table an argument goes. Kineto's names, old and new (libkineto/src/output_json.cpp).
#pragma once
#include <stdint.h>
#include <span>
#include <string_view>

#include "include/strobe.h"

namespace strobe::chrome {

// Under which names Kineto's arguments go into columns of side tables.
struct Key {
  std::string_view json;  // in lower case
  std::string_view column;
};
constexpr std::string_view kGrid = "grid", kBlock = "block";  // lists of three, for the column and the two behind it
constexpr std::string_view kCorrelation = "correlation", kExternalId = "external id";  // numbers of calls and operators
constexpr std::string_view kCapturedBy = "strobe captured by";                         // graph_captures.h found it
constexpr Key kGpuKeys[] = {
    {"correlation", "correlation"},
    {"external id", "external_id"},
    {"device", "device"},
    {"context", "context"},
    {"stream", "stream"},
    {"grid", "grid_x"},
    {"block", "block_x"},
    {"registers per thread", "registers_per_thread"},
    {"shared memory", "shared_memory_bytes"},
    {"queued", "queued_ns"},
    {"blocks per sm", "blocks_per_sm"},
    {"warps per sm", "warps_per_sm"},
    {"est. achieved occupancy %", "occupancy_percent"},
    {"graph id", "graph"},
    {"graph node id", "graph_node"},
    {kCapturedBy, "captured_by"},
    {"priority", "priority"},
};
constexpr Key kCopyKeys[] = {
    {"correlation", "correlation"},
    {"external id", "external_id"},
    {"device", "device"},
    {"context", "context"},
    {"stream", "stream"},
    {"bytes", "size_bytes"},
    {"memory bandwidth (gb/s)", "bandwidth_gb_s"},
    {"graph id", "graph"},
    {"graph node id", "graph_node"},
};
// Of Ascend's NPUs (trace_view.json of torch_npu, msprof_*.json): tasks, copies and calls of CANN.
constexpr Key kAscendTaskKeys[] = {{"connection_id", "correlation"}, {"stream id", "stream"}};
constexpr Key kAscendCopyKeys[] = {
    {"connection_id", "correlation"}, {"stream id", "stream"}, {"size(byte)", "size_bytes"}};
constexpr Key kAscendCallKeys[] = {{"connection_id", "correlation"}};
constexpr Key kMtiaCopyKeys[] = {
    {"correlation", "correlation"}, {"stream", "stream"}, {"size", "size_bytes"}, {"direction", "copy_kind"}};
constexpr Key kCallKeys[] = {{"correlation", "correlation"}, {"external id", "external_id"}, {"cbid", "callback_id"}};
constexpr Key kOperatorKeys[] = {
    {"external id", "external_id"},
    {"record function id", "record_function_id"},
    {"ev idx", "event_index"},
    {"sequence number", "sequence_number"},
    {"fwd thread id", "forward_thread"},
    {"input dims", "shapes"},
    {"input type", "types"},
    {"input strides", "strides"},
    {"concrete inputs", "concrete_inputs"},
    {"module hierarchy", "module_hierarchy"},
    {"call stack", "call_stack"},
};
constexpr Key kSyncKeys[] = {
    {"correlation", "correlation"},
    {"external id", "external_id"},
    {"device", "device"},
    {"context", "context"},
    {"stream", "stream"},
    {"cuda_sync_kind", "sync_kind"},
    {"wait_on_stream", "wait_on_stream"},
    {"wait_on_cuda_event_record_corr_id", "wait_on_correlation"},
    {"wait_on_cuda_event_id", "wait_on_event"},
};
constexpr Key kCollectiveKeys[] = {
    {"collective name", "collective"},
    {"dtype", "dtype"},
    {"in msg nelems", "in_elements"},
    {"out msg nelems", "out_elements"},
    {"group size", "group_size"},
    {"process group name", "group"},
    {"process group description", "group_description"},
    {"process group ranks", "group_ranks"},
    {"in split size", "in_split"},
    {"out split size", "out_split"},
    {"rank", "rank"},
    {"global rank start", "first_rank"},
    {"global rank stride", "rank_stride"},
    {"seq", "sequence"},
    {"comms id", "communicator"},
    {"src rank", "source_rank"},
    {"dst rank", "destination_rank"},
};
constexpr Key kPythonKeys[] = {
    {"python id", "python_id"}, {"python parent id", "python_parent_id"}, {"python module id", "python_module_id"}};
constexpr Key kAllocationKeys[] = {
    {"addr", "address"},
    {"bytes", "size_bytes"},
    {"total allocated", "total_allocated_bytes"},
    {"total reserved", "total_reserved_bytes"},
    {"device type", "device_type"},
    {"device id", "device"},
    {"ev idx", "event_index"},
};

// The tables that arguments go into, and their keys; all others go to the last one as they are.
enum KeyList : uint8_t {
  kKernels,
  kCopies,
  kCalls,
  kOperators,
  kSyncs,
  kCollectives,
  kPython,
  kAllocations,
  kAscendTasks,
  kAscendCopies,
  kAscendCalls,
  kMtiaCopies,
  kArguments,
  kKeyLists
};
struct KeysOfTable {
  std::string_view table;
  std::span<const Key> keys;
};
inline const KeysOfTable kKeysOfTables[kKeyLists] = {
    {"kernel_spans", kGpuKeys},
    {"copy_spans", kCopyKeys},
    {"call_spans", kCallKeys},
    {"operator_spans", kOperatorKeys},
    {"sync_spans", kSyncKeys},
    {"collective_spans", kCollectiveKeys},
    {"python_spans", kPythonKeys},
    {"allocations", kAllocationKeys},
    {"kernel_spans", kAscendTaskKeys},
    {"copy_spans", kAscendCopyKeys},
    {"call_spans", kAscendCallKeys},
    {"copy_spans", kMtiaCopyKeys},
    {"arguments", {}},
};

// What an event is, from its category: who reports it, what it is, whether its row is one of a GPU, where its arguments
// go.
struct Category {
  std::string_view name;
  uint8_t paradigm, role;
  bool gpu;
  KeyList keys;
  constexpr bool may_be_collective() const { return gpu || paradigm == STROBE_TORCH || paradigm == STROBE_MPI; }
};
constexpr std::string_view kMtiaCopy = "\nmtia copy", kMtiaWait = "\nmtia wait", kAscendTask = "\nascend task",
                           kAscendCopy = "\nascend copy", kAscendWait = "\nascend wait", kAscendCall = "\nascend call",
                           kAscendOther = "\nascend other";
constexpr Category kCategories[] = {
    {"cpu_op", STROBE_TORCH, STROBE_ROLE_OPERATOR, false, kOperators},
    {"operator", STROBE_TORCH, STROBE_ROLE_OPERATOR, false, kOperators},
    {"user_annotation", STROBE_TORCH, STROBE_ROLE_RANGE, false, kOperators},
    {"python_function", STROBE_PYTHON, STROBE_ROLE_FUNCTION, false, kPython},
    {"cuda_runtime", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCalls},
    {"runtime", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCalls},
    {"cuda_driver", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCalls},
    {"kernel", STROBE_CUDA, STROBE_ROLE_KERNEL, true, kKernels},
    {"gpu_memcpy", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopies},
    {"memcpy", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopies},
    {"gpu_memset", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopies},
    {"memset", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopies},
    {"cuda_sync", STROBE_CUDA, STROBE_ROLE_SYNC, true, kSyncs},
    {"mtia_ccp_events", STROBE_ACCELERATOR, STROBE_ROLE_KERNEL, true, kKernels},
    {"mtia_runtime", STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kCalls},
    {"xpu_runtime", STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kCalls},
    {"xpu_driver", STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kCalls},
    {"privateuse1_runtime", STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kCalls},
    {"privateuse1_driver", STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kCalls},
    {"glow_runtime", STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kCalls},
    {"hpu_op", STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kCalls},
    // No file has these: what tells is more than a category, see special_category.
    {kMtiaCopy, STROBE_ACCELERATOR, STROBE_ROLE_COPY, true, kMtiaCopies},
    {kMtiaWait, STROBE_ACCELERATOR, STROBE_ROLE_SYNC, true, kSyncs},
    {kAscendTask, STROBE_ACCELERATOR, STROBE_ROLE_KERNEL, true, kAscendTasks},
    {kAscendCopy, STROBE_ACCELERATOR, STROBE_ROLE_COPY, true, kAscendCopies},
    {kAscendWait, STROBE_ACCELERATOR, STROBE_ROLE_SYNC, true, kArguments},
    {kAscendCall, STROBE_ACCELERATOR, STROBE_ROLE_FUNCTION, false, kAscendCalls},
    {kAscendOther, STROBE_OTHER, STROBE_ROLE_RANGE, false, kArguments},
    {"gpu_user_annotation", STROBE_TORCH, STROBE_ROLE_RANGE, true, kOperators},
    {"overhead", STROBE_SELF, STROBE_ROLE_OTHER, false, kCalls},
    {"fee", STROBE_PYTHON, STROBE_ROLE_FUNCTION, false, kArguments},  // VizTracer's functions
    {"mpi", STROBE_MPI, STROBE_ROLE_FUNCTION, false, kArguments},     // of our own exports
};
constexpr Category kOther = {"", STROBE_OTHER, STROBE_ROLE_RANGE, false, kArguments};

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }
inline bool same_ignoring_case(std::string_view a, std::string_view in_lower_case) {
  if (a.size() != in_lower_case.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (lower(a[i]) != in_lower_case[i]) return false;
  return true;
}

inline const Category& category_of(std::string_view name) {
  for (const Category& each : kCategories)
    if (same_ignoring_case(name, each.name)) return each;
  return kOther;
}

// The category of a task of an NPU, by its type: the cores and the CPU of the NPU compute, its DMA copies. All others
// wait, record events, or hold what the rest is.
inline std::string_view ascend_category(std::string_view task_type) {
  const auto has = [task_type](std::string_view part) { return task_type.find(part) != task_type.npos; };
  if (has("MEMCPY") || has("SDMA") || has("MEMSET")) return kAscendCopy;
  const bool runs =
      has("CORE") || has("MIX_AI") || has("AI_CPU") || has("AICPU") || has("HCCL") || has("COMMUNICATION");
  return runs ? kAscendTask : kAscendWait;
}

}  // namespace strobe::chrome
