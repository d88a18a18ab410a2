// chrome_categories.h - what Chrome's trace events mean to us: by category who reports them and what they are, and into
// which column of which side table an argument goes. Kineto's names, old and new (libkineto/src/output_json.cpp).
#pragma once
#include <stdint.h>
#include <string_view>

#include "include/strobe.h"
#include "kernels/side_tables.h"

namespace strobe::chrome {

// Side tables, and under which names Kineto's arguments go into them.
enum TableId : uint8_t {
  kKernels,
  kCopies,
  kCalls,
  kOperators,
  kSyncs,
  kCollectives,
  kPython,
  kArguments,
  kAllocations,
  kMarks,
  kFlows,
  kTables
};
constexpr CellType kInt = CellType::integer, kReal = CellType::real, kText = CellType::text;

inline const TableLayout kLayouts[kTables] = {
    {"kernel_spans",
     {{"correlation", kInt},
      {"external_id", kInt},
      {"device", kInt},
      {"context", kInt},
      {"stream", kInt},
      {"grid_x", kInt},
      {"grid_y", kInt},
      {"grid_z", kInt},
      {"block_x", kInt},
      {"block_y", kInt},
      {"block_z", kInt},
      {"registers_per_thread", kInt},
      {"shared_memory_bytes", kInt},
      {"queued_ns", kInt},
      {"blocks_per_sm", kReal},
      {"warps_per_sm", kReal},
      {"occupancy_percent", kReal},
      {"graph", kInt},
      {"graph_node", kInt},
      {"priority", kInt}},
     true},
    {"copy_spans",
     {{"correlation", kInt},
      {"external_id", kInt},
      {"device", kInt},
      {"context", kInt},
      {"stream", kInt},
      {"size_bytes", kInt},
      {"bandwidth_gb_s", kReal},
      {"graph", kInt},
      {"graph_node", kInt}},
     true},
    {"call_spans", {{"correlation", kInt}, {"external_id", kInt}, {"callback_id", kInt}}, true},
    {"operator_spans",
     {{"external_id", kInt},
      {"record_function_id", kInt},
      {"event_index", kInt},
      {"sequence_number", kInt},
      {"forward_thread", kInt},
      {"shapes", kText},
      {"types", kText},
      {"strides", kText},
      {"concrete_inputs", kText},
      {"module_hierarchy", kText},
      {"call_stack", kText}},
     true},
    {"sync_spans",
     {{"correlation", kInt},
      {"external_id", kInt},
      {"device", kInt},
      {"context", kInt},
      {"stream", kInt},
      {"sync_kind", kText},
      {"wait_on_stream", kInt},
      {"wait_on_correlation", kInt},
      {"wait_on_event", kInt}},
     true},
    {"collective_spans",
     {{"collective", kText},
      {"dtype", kText},
      {"in_elements", kInt},
      {"out_elements", kInt},
      {"group_size", kInt},
      {"group", kText},
      {"group_description", kText},
      {"group_ranks", kText},
      {"in_split", kText},
      {"out_split", kText},
      {"rank", kInt},
      {"first_rank", kInt},
      {"rank_stride", kInt},
      {"sequence", kInt},
      {"communicator", kText},
      {"source_rank", kInt},
      {"destination_rank", kInt}},
     true},
    {"python_spans", {{"python_id", kInt}, {"python_parent_id", kInt}, {"python_module_id", kInt}}, true},
    {"arguments", {{"key", kText}, {"value", kText}}, true},
    {"allocations",
     {{"time_ns", kInt},
      {"address", kInt},
      {"size_bytes", kInt},
      {"total_allocated_bytes", kInt},
      {"total_reserved_bytes", kInt},
      {"device_type", kInt},
      {"device", kInt},
      {"event_index", kInt}},
     false},
    {"marks", {{"time_ns", kInt}, {"name", kText}, {"category", kText}, {"arguments", kText}}, false},
    {"flows",
     {{"time_ns", kInt}, {"flow", kInt}, {"flow_name", kText}, {"phase", kText}, {"name", kText}, {"category", kText}},
     false},
};

struct Key {
  std::string_view json;  // in lower case
  TableId table;
  uint8_t column;
};
constexpr uint8_t kGrid = 5, kBlock = 8;  // of kernels: the first of three
constexpr Key kGpuKeys[] = {
    {"correlation", kKernels, 0},
    {"external id", kKernels, 1},
    {"device", kKernels, 2},
    {"context", kKernels, 3},
    {"stream", kKernels, 4},
    {"grid", kKernels, kGrid},
    {"block", kKernels, kBlock},
    {"registers per thread", kKernels, 11},
    {"shared memory", kKernels, 12},
    {"queued", kKernels, 13},
    {"blocks per sm", kKernels, 14},
    {"warps per sm", kKernels, 15},
    {"est. achieved occupancy %", kKernels, 16},
    {"graph id", kKernels, 17},
    {"graph node id", kKernels, 18},
    {"priority", kKernels, 19},
};
constexpr Key kCopyKeys[] = {
    {"correlation", kCopies, 0},
    {"external id", kCopies, 1},
    {"device", kCopies, 2},
    {"context", kCopies, 3},
    {"stream", kCopies, 4},
    {"bytes", kCopies, 5},
    {"memory bandwidth (gb/s)", kCopies, 6},
    {"graph id", kCopies, 7},
    {"graph node id", kCopies, 8},
};
constexpr Key kCallKeys[] = {{"correlation", kCalls, 0}, {"external id", kCalls, 1}, {"cbid", kCalls, 2}};
constexpr Key kOperatorKeys[] = {
    {"external id", kOperators, 0},      {"record function id", kOperators, 1}, {"ev idx", kOperators, 2},
    {"sequence number", kOperators, 3},  {"fwd thread id", kOperators, 4},      {"input dims", kOperators, 5},
    {"input type", kOperators, 6},       {"input strides", kOperators, 7},      {"concrete inputs", kOperators, 8},
    {"module hierarchy", kOperators, 9}, {"call stack", kOperators, 10},
};
constexpr Key kSyncKeys[] = {
    {"correlation", kSyncs, 0},
    {"external id", kSyncs, 1},
    {"device", kSyncs, 2},
    {"context", kSyncs, 3},
    {"stream", kSyncs, 4},
    {"cuda_sync_kind", kSyncs, 5},
    {"wait_on_stream", kSyncs, 6},
    {"wait_on_cuda_event_record_corr_id", kSyncs, 7},
    {"wait_on_cuda_event_id", kSyncs, 8},
};
constexpr Key kCollectiveKeys[] = {
    {"collective name", kCollectives, 0},
    {"dtype", kCollectives, 1},
    {"in msg nelems", kCollectives, 2},
    {"out msg nelems", kCollectives, 3},
    {"group size", kCollectives, 4},
    {"process group name", kCollectives, 5},
    {"process group description", kCollectives, 6},
    {"process group ranks", kCollectives, 7},
    {"in split size", kCollectives, 8},
    {"out split size", kCollectives, 9},
    {"rank", kCollectives, 10},
    {"global rank start", kCollectives, 11},
    {"global rank stride", kCollectives, 12},
    {"seq", kCollectives, 13},
    {"comms id", kCollectives, 14},
    {"src rank", kCollectives, 15},
    {"dst rank", kCollectives, 16},
};
constexpr Key kPythonKeys[] = {
    {"python id", kPython, 0}, {"python parent id", kPython, 1}, {"python module id", kPython, 2}};
constexpr Key kAllocationKeys[] = {
    {"addr", kAllocations, 1},           {"bytes", kAllocations, 2},       {"total allocated", kAllocations, 3},
    {"total reserved", kAllocations, 4}, {"device type", kAllocations, 5}, {"device id", kAllocations, 6},
    {"ev idx", kAllocations, 7},
};

// What an event is, from its category: who reports it, what it is, whether its row is one of a GPU, where its arguments
// go.
struct Category {
  std::string_view name;
  uint8_t paradigm, role;
  bool gpu;
  const Key* keys;
  size_t key_count;
};
template <size_t n>
constexpr Category category(std::string_view name, uint8_t paradigm, uint8_t role, bool gpu, const Key (&keys)[n]) {
  return {name, paradigm, role, gpu, keys, n};
}
constexpr Category kCategories[] = {
    category("cpu_op", STROBE_TORCH, STROBE_ROLE_OPERATOR, false, kOperatorKeys),
    category("operator", STROBE_TORCH, STROBE_ROLE_OPERATOR, false, kOperatorKeys),
    category("user_annotation", STROBE_TORCH, STROBE_ROLE_RANGE, false, kOperatorKeys),
    category("python_function", STROBE_PYTHON, STROBE_ROLE_FUNCTION, false, kPythonKeys),
    category("cuda_runtime", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCallKeys),
    category("runtime", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCallKeys),
    category("cuda_driver", STROBE_CUDA, STROBE_ROLE_FUNCTION, false, kCallKeys),
    category("kernel", STROBE_CUDA, STROBE_ROLE_KERNEL, true, kGpuKeys),
    category("gpu_memcpy", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("memcpy", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("gpu_memset", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("memset", STROBE_CUDA, STROBE_ROLE_COPY, true, kCopyKeys),
    category("cuda_sync", STROBE_CUDA, STROBE_ROLE_SYNC, true, kSyncKeys),
    category("gpu_user_annotation", STROBE_TORCH, STROBE_ROLE_RANGE, true, kOperatorKeys),
    category("overhead", STROBE_SELF, STROBE_ROLE_OTHER, false, kCallKeys),
    {"fee", STROBE_PYTHON, STROBE_ROLE_FUNCTION, false, nullptr, 0},  // VizTracer's functions
    {"mpi", STROBE_MPI, STROBE_ROLE_FUNCTION, false, nullptr, 0},     // of our own exports
};
constexpr Category kOther = {"", STROBE_OTHER, STROBE_ROLE_RANGE, false, nullptr, 0};

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

}  // namespace strobe::chrome
