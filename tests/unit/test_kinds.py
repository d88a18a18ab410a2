"""What regions are, by their names."""

import shutil
import subprocess
from pathlib import Path

import pytest

from strobe.model.kinds import COMMUNICATING, ROLES, communicates, mpi_role
from strobe.native import core

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_functions_of_mpi_have_the_roles_that_the_recorder_gives_them() -> None:
    source = """
        #include "adapters/mpi/mpi_calls.h"
        #define MPI_CALL(name, arity, role, ...) name:role
        MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
    """
    expand = ["g++", "-E", "-P", "-xc++", "-I", ROOT / "native", "-"]
    table = subprocess.run(expand, input=source, capture_output=True, text=True, check=True).stdout
    calls = [call.split(":") for call in table.split()]
    assert len(calls) > 300
    assert {name: mpi_role(name) for name, _ in calls} == {name: role.lower() for name, role in calls}


# Names of kernels as profiles have them.
TALKING = """
    ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)
    ncclKernelAllGatherCtranDirect
    void dpsk::ep::internode::dispatch<true, 4>(int4*, float*)
    void dpsk::ep::internode::cached_notify<false, 4>(int, int)
    void deep_ep::internode_ll::combine<false, 7168, 9>(void*)
    _ZN4dpsk2ep9internode15notify_dispatchILb0ELi4EEEvPKiPi
    nvshmemi_signal_wait_until_on_stream_kernel
    void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)
    void sglang::cross_device_reduce_2stage<__half, 4>()
    void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<3, __nv_bfloat16, 8>()
    void tensorrt_llm::kernels::oneShotAllReduceKernel<float, 8, false>()
    void c10d::symmetric_memory::(anonymous namespace)::two_shot_all_reduce_kernel_inplace<float>()
    void c10d::symmetric_memory::(anonymous namespace)::multimem_all_gather_kernel<16>()
    void mscclpp_allreduce6<float>(float*)
    oneccl_allreduce_pcie
    hcom_allReduce__503_0_1
    allreduceAicpuKernel
""".strip().splitlines()
COMPUTING = """
    dispatch
    combine
    void my::dispatch<float>(float*)
    void at::native::reduce_kernel<512, 1>(int)
    void softmax<float, BlockAllReduce<SumOp, float, 256>>(float const*)
    void oneflow::cuda::layer_norm::LayerNormWarpImpl<WarpAllReduce>()
    cutlass_transpose_kernel
    notify_dispatch
    device_kernel
    matrixMulFunctranspose
""".strip().splitlines()


@pytest.mark.parametrize("name", [each.strip() for each in (*TALKING, *COMPUTING)])
def test_kernels_communicate_by_name_for_the_recorder_as_for_the_reader(name: str) -> None:
    expected = any(each.strip() == name for each in TALKING)
    assert communicates(name) is expected
    assert core.gpu_kind_of_region(name, ROLES.index("kernel")) == int(expected)


@pytest.mark.parametrize("words", COMMUNICATING)
def test_every_word_is_known_in_any_case_and_only_with_the_others(words: tuple[str, ...]) -> None:
    whole = " ".join(words).upper()
    assert communicates(whole)
    assert core.gpu_kind_of_region(whole, ROLES.index("kernel")) == 1
    assert core.gpu_kind_of_region(whole, ROLES.index("operator")) == -1
    alone = [each for each in words if (each,) not in COMMUNICATING]
    assert not any(communicates(each) for each in alone if len(words) > 1)
