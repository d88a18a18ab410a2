"""Enumerations shared with the recorder, and the one rule that gives a region its group (its colour).

The order of PARADIGMS and ROLES is the numbering in the block files; `native/include/strobe.h` holds the same lists.
"""

from __future__ import annotations

import re
from typing import Annotated

# Who reported a region.
PARADIGMS = (
    *("other", "python", "torch", "itt", "nvtx", "user", "cuda", "mpi", "onednn", "strobe", "compiler", "openmp"),
    *("pthread", "shmem", "openacc", "opencl", "hip", "kokkos", "accelerator", "posix"),
)
# Of them, the interfaces of GPUs and other accelerators (`accelerator`: XPU, MTIA, NPU, HPU, TPU, PrivateUse1).
GPU_PARADIGMS = ("cuda", "hip", "opencl", "accelerator")
# Of all, those whose functions and waits are calls of a GPU's interface. (Constructs of OpenACC are ranges: their code
# may run on the host.)
GPU_CALL_PARADIGMS = (*GPU_PARADIGMS, "openacc")
# Those by which ranks communicate.
RANK_PARADIGMS = ("mpi", "shmem")
# What a region is.
ROLES = (
    *("other", "function", "operator", "range", "wait", "loop", "kernel", "copy", "sync", "p2p", "collective"),
    *("data", "idle", "io"),
)
# What a location is.
LOCATION_KINDS = ("thread", "stream", "task")
# What a region is drawn and summed as.
GROUPS = ("data", "compute", "communication", "sync", "copy", "host", "other")
Group = Annotated[str, GROUPS]

# Parts of a step, in the order in which they are shown. `rest` is what none of the others accounts for.
PARTS = ("data_wait", "forward", "backward", "optimizer", "validation", "rest")
Part = Annotated[str, PARTS]
# What passes the time of the thread of a loop: a wait for the next batch, else its innermost span. `host`: functions,
# and time outside of all spans.
HOST_KINDS = ("communication", "gpu_wait", "gpu_call", "operators", "data_wait", "host")

_GROUP_OF_ROLE = {
    "operator": "compute",
    "kernel": "compute",
    "copy": "copy",
    "sync": "sync",
    "wait": "sync",
    "p2p": "communication",
    "collective": "communication",
    "data": "data",
    "function": "host",
    "loop": "host",
}
_GROUP_OF_PARADIGM = {
    "python": "host",
    "onednn": "compute",
    "user": "host",
}
# PyTorch names the wait for the next batch itself (torch/utils/data/dataloader.py:
# `enumerate(DataLoader)#...__next__`).
_DATA_PREFIXES = ("enumerate(DataLoader)", "DataLoader")


# Kernels that communicate, or wait and signal for those that do, by words of their names in any case; of an entry, all
# words. The recorder reads the same list (./dev gen). What has no entry here may be known by other evidence
# (strobe.gpu.communication), or by the rules of the user (strobe.trace.group_rules).
COMMUNICATING: tuple[tuple[str, ...], ...] = (
    # The libraries: NCCL (of Meta's, the kernels of ctran, too), RCCL, UCCL; oneCCL; HCCL; NVSHMEM; MSCCL and MSCCL++.
    *(("nccl",), ("rccl",), ("uccl",), ("oneccl",), ("::ccl::",), ("ctran::",), ("hccl",), ("hcom_",)),
    *(("nvshmem",), ("rocshmem",), ("msccl",)),
    # Expert parallelism: DeepEP and its forks (`dpsk::ep::internode::dispatch`), also as the linker knows them; PPLX;
    # MORI; TensorRT-LLM. `dispatch` and `combine` alone are names of anything.
    *(("deep_ep",), ("deepep",), ("::ep::",), ("2ep9internode",), ("2ep9intranode",), ("2ep12internode_ll",)),
    *(("pplx", "all_to_all"), ("pplx", "dispatch"), ("pplx", "combine"), ("mori::",)),
    *(("moealltoall",), ("moea2a",), ("moe_comm",)),
    # All-reduces of vLLM, SGLang, TensorRT-LLM, FlashInfer and PyTorch. A bare `allreduce` may be one of a block.
    *(("cross_device_reduce",), ("allreduce_fusion",), ("lamport",), ("multimem_",), ("mnnvl",)),
    *(("one_shot", "reduce"), ("oneshot", "reduce"), ("two_shot", "reduce"), ("twoshot", "reduce")),
    *(("all_reduce_kernel",), ("allreduce_kernel",), ("allreducekernel",), ("userbuffers",)),
    *(("all_gather_kernel",), ("reduce_scatter_kernel",), ("all_to_all_kernel",)),
    *(("c10d", "symm"), ("allreduce", "aicpu")),
    # Operations of XLA.
    *(("all-reduce",), ("all-gather",), ("all-to-all",), ("reduce-scatter",), ("collective-permute",)),
    *(("collective-broadcast",), ("ragged-all-to-all",)),
)


def communicates(kernel: str) -> bool:
    """Return whether the name of a kernel is evidence that it communicates."""
    name = kernel.lower()
    return any(all(word in name for word in words) for words in COMMUNICATING)


def group_of(name: str, paradigm: str, role: str) -> str:
    """Return the group of a region: one of GROUPS."""
    if paradigm in RANK_PARADIGMS:  # all of it, as cells of steps have it: a wait in MPI is a wait for other ranks
        return "communication"
    if role == "data" or name.startswith(_DATA_PREFIXES):
        return "data"
    if role == "kernel" and communicates(name):
        return "communication"
    if paradigm == "torch" and role == "range":  # nodes of the backward graph, optimizer steps
        return "compute"
    return _GROUP_OF_ROLE.get(role) or _GROUP_OF_PARADIGM.get(paradigm, "other")


_MPI_ROLES = (
    (re.compile(r"MPI_(Wait|Test|Request_get_status)"), "wait"),
    (re.compile(r"MPI_I?barrier", re.IGNORECASE), "sync"),
    (re.compile(r"MPI_Win_(fence|lock|unlock|flush|post|start|complete|wait|test|sync)"), "sync"),
    (re.compile(r"MPI_(I?[bsrp]?send|I?m?p?recv|sendrecv|I?m?probe|start|pready|parrived)", re.IGNORECASE), "p2p"),
    (re.compile(r"MPI_R?(put|get|get_accumulate|accumulate)(_c)?$", re.IGNORECASE), "p2p"),
    (re.compile(r"MPI_(Fetch_and_op|Compare_and_swap)"), "p2p"),
    (re.compile(r"MPI_I?(all|bcast|gather|scatter|reduce|scan|exscan|neighbor)", re.IGNORECASE), "collective"),
    (re.compile(r"MPI_Comm_(i?dup|create|split|free|disconnect|spawn|accept|connect|join)"), "collective"),
    (re.compile(r"MPI_(Intercomm_(create|merge)|Cart_(create|sub)|(Dist_g|G)raph_create)"), "collective"),
    (re.compile(r"MPI_Win_(create|allocate|free)"), "collective"),
)


def mpi_role(name: str) -> str:
    """Return what a function of MPI is: one of ROLES, as native/adapters/mpi/mpi_calls.h has it."""
    return next((role for pattern, role in _MPI_ROLES if pattern.match(name)), "other")


def role_of_cuda_call(name: str) -> str:
    """Return what a function of the CUDA runtime or driver is: one of ROLES."""
    return "sync" if "Synchronize" in name or "EventQuery" in name else "function"


# What a table or an analysis may need, what it is called, and the option of `strobe run` that records it ("": none).
RECORDED_WITH = {
    "spans": ("spans", "--preset auto"),
    "torch": ("PyTorch operators", "--trace +torch"),
    "python": ("Python calls", "--trace +python"),
    "nvtx": ("NVTX ranges", "--trace +nvtx"),
    "itt": ("ITT ranges", "--trace +itt"),
    "metrics": ("process metrics", "--trace +metrics"),
    "lines": ("source lines", "--lines FUNCTION"),
    "io": ("I/O of files", "--trace +io"),
    "requests": ("requests of uvicorn, aiohttp.web, asyncio.start_server or http.server", "--trace +requests"),
    "compiled": ("code that torch.compile made", ""),
    "engine": ("marks of a serving engine (`step[DECODE bs=8]`) or loops that surely generate tokens", ""),
}

# Metrics: threads that an operator of PyTorch may use, and the cores that the process may use.
OPERATOR_THREADS, CORES = "threads of an operator", "cores of the process"
CHILDREN_CPU = "cpu ended child processes"
MACHINE_CORES = "cores of the machine"
# What the time of cores and threads goes into.
CPU_KINDS = ("user", "system", "io_wait", "waiting", "stolen", "idle")
OPTIMIZED_PARAMETERS = "parameters of optimizers"
