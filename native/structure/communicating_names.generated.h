// communicating_names.generated.h - words in the names of kernels that communicate, from model/kinds.py: all
// words of an entry. Written by ./dev gen: do not edit.
#pragma once
// clang-format off
#include <string_view>

namespace strobe::structure {

inline constexpr std::string_view kCommunicating[][2] = {
    {"nccl"},
    {"rccl"},
    {"uccl"},
    {"oneccl"},
    {"::ccl::"},
    {"ctran::"},
    {"hccl"},
    {"hcom_"},
    {"nvshmem"},
    {"rocshmem"},
    {"msccl"},
    {"deep_ep"},
    {"deepep"},
    {"::ep::"},
    {"2ep9internode"},
    {"2ep9intranode"},
    {"2ep12internode_ll"},
    {"pplx", "all_to_all"},
    {"pplx", "dispatch"},
    {"pplx", "combine"},
    {"mori::"},
    {"moealltoall"},
    {"moea2a"},
    {"moe_comm"},
    {"cross_device_reduce"},
    {"allreduce_fusion"},
    {"lamport"},
    {"multimem_"},
    {"mnnvl"},
    {"one_shot", "reduce"},
    {"oneshot", "reduce"},
    {"two_shot", "reduce"},
    {"twoshot", "reduce"},
    {"all_reduce_kernel"},
    {"allreduce_kernel"},
    {"allreducekernel"},
    {"userbuffers"},
    {"all_gather_kernel"},
    {"reduce_scatter_kernel"},
    {"all_to_all_kernel"},
    {"c10d", "symm"},
    {"allreduce", "aicpu"},
    {"all-reduce"},
    {"all-gather"},
    {"all-to-all"},
    {"reduce-scatter"},
    {"collective-permute"},
    {"collective-broadcast"},
    {"ragged-all-to-all"},
};

}  // namespace strobe::structure
