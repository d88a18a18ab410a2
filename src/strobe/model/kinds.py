"""Enumerations shared with the recorder, and the one rule that gives a region its group (its colour).

The order of PARADIGMS and ROLES is the numbering in the block files; `native/include/strobe.h` holds the same lists.
"""

from __future__ import annotations

import re
from typing import Annotated

# Who reported a region.
PARADIGMS = (
    *("other", "python", "torch", "itt", "nvtx", "user", "cuda", "mpi", "onednn", "strobe", "compiler", "openmp"),
    *("pthread", "shmem", "openacc", "opencl", "hip", "kokkos"),
)
# Of them, the interfaces of GPUs.
GPU_PARADIGMS = ("cuda", "hip")
# What a region is.
ROLES = (
    *("other", "function", "operator", "range", "wait", "loop", "kernel", "copy", "sync", "p2p", "collective"),
    *("data", "idle"),
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
_GROUP_OF_PARADIGM = {"mpi": "communication", "python": "host", "onednn": "compute", "user": "host"}
# PyTorch names the wait for the next batch itself (torch/utils/data/dataloader.py:
# `enumerate(DataLoader)#...__next__`).
_DATA_PREFIXES = ("enumerate(DataLoader)", "DataLoader")


# Kernels that communicate: NCCL and RCCL, and those that replace them (DeepEP, NVSHMEM, MSCCL, vLLM's all-reduce).
_COMMUNICATION = re.compile(r"nccl|rccl|deep_ep|nvshmem|msccl|cross_device_reduce", re.IGNORECASE)


def group_of(name: str, paradigm: str, role: str) -> str:
    """Return the group of a region: one of GROUPS."""
    if role == "data" or name.startswith(_DATA_PREFIXES):
        return "data"
    if role == "kernel" and _COMMUNICATION.search(name):
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


# What a table or an analysis may need, what it is called, and the option of `strobe run` that records it.
RECORDED_WITH = {
    "spans": ("spans", "--preset auto"),
    "torch": ("PyTorch operators", "--trace +torch"),
    "python": ("Python calls", "--trace +python"),
    "nvtx": ("NVTX ranges", "--trace +nvtx"),
    "itt": ("ITT ranges", "--trace +itt"),
    "metrics": ("process metrics", "--trace +metrics"),
    "lines": ("source lines", "--lines FUNCTION"),
}
