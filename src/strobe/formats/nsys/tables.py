"""The tables of an Nsight Systems export: how their rows become spans, and the words for their numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from strobe.formats.reading.cupti_tables import (
    CACHE_CONFIGS,
    COPY_KINDS,
    OF_COPY,
    OF_GPU,
    OF_GRAPH,
    OF_KERNEL,
    OF_SET,
    SYNC_KINDS,
)
from strobe.formats.reading.database_tables import Naming, Region, SpanTable, named_by
from strobe.model.kinds import mpi_role, role_of_cuda_call

RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_COPY_KINDS = dict(enumerate((*COPY_KINDS, "Unified HtoD", "Unified DtoH", "Unified DtoD")))
MEMORY_KINDS = dict(
    enumerate(("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown"))
)
_LAUNCH_TYPES = {0: "Unknown", 1: "Regular", 2: "Coop Single Device", 3: "Coop Multi Device"}
_SHARED_LIMITS = {0: "Default", 1: "Opt in"}
_MIGRATIONS = {
    0: "Unknown",
    1: "User prefetch",
    2: "Page fault",
    3: "Speculative prefetch",
    4: "Eviction",
    5: "Access counters",
}
THREAD_STATES = dict(
    enumerate(
        (
            *("Unknown", "Running", "Interruptible", "Uninterruptible", "Stopped", "Terminated", "Unscheduled"),
            *("Waiting", "OS runtime", "Initialized", "Transition"),
        )
    )
)
# Numbers of ENUM_NSYS_EVENT_TYPE.
NVTX_PUSH_POP = (59, 70)
NVTX_START_END = (60, 71)
NVTX_CATEGORIES = (33, 64)
NVTX_THREADS = (39, 72)
NVTX_DOMAIN = 75
PAYLOADS = ("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue")
# Paradigms of unknown tables, by the beginnings of their names.
PARADIGMS = (
    ("CUPTI_ACTIVITY_KIND_OPENACC", "openacc"),
    ("CUPTI_", "cuda"),
    ("CUDA_", "cuda"),
    ("OPENMP_", "openmp"),
)
# Columns with numbers of texts in tables that were declared without a reference.
TEXT_NUMBERS = frozenset(("nameId", "textId", "jsonTextId", "demangledName", "shortName", "mangledName", "symbol"))


def _call(values: Mapping[str, object]) -> Region:
    name = re.sub(r"_v\d{4,}$", "", str(values.get("nameId") or "<unnamed call>"))
    return name, "cuda", role_of_cuda_call(name), str(values.get("eventClass") or "")


def _os_call(values: Mapping[str, object]) -> Region:
    return str(values.get("nameId") or "<unnamed call>"), "other", "function", str(values.get("eventClass") or "")


def _kernel(values: Mapping[str, object]) -> Region:
    name = values.get("demangledName") or values.get("shortName") or values.get("mangledName")
    return str(name or "<unnamed kernel>"), "cuda", "kernel", ""


def _copy(values: Mapping[str, object]) -> Region:
    ends = [str(values[side] or "Unknown") for side in ("srcKind", "dstKind") if side in values]
    kind = values.get("copyKind") or "Unknown"
    return f"Memcpy {kind}" + (f" ({' -> '.join(ends)})" if ends else ""), "cuda", "copy", ""


def _graph(values: Mapping[str, object]) -> Region:
    # Its kernels were not recorded one by one: for the GPU it is one piece of work, as a kernel is.
    return f"CUDA graph {values.get('graphId', '')}".rstrip(), "cuda", "kernel", ""


def named(paradigm: str, role: str, module: str = "") -> Naming:
    """Name regions by the first of their columns that is not empty."""

    def naming(values: Mapping[str, object]) -> Region:
        name = next((value for value in values.values() if value is not None), None)
        return str(name if name is not None else "<unnamed>"), paradigm, role, module

    return naming


def _mpi(values: Mapping[str, object]) -> Region:
    name = str(values.get("textId") or values.get("nameId") or values.get("text") or "<unnamed call>")
    return name, "mpi", mpi_role(name), ""


_OF_CALL = {
    "correlationId": "correlation",
    "returnValue": "return_value",
    "nestingLevel": "nesting_level",
    "callchainId": "call_stack",
}
# nsys has the rank in the communicator.
OF_MESSAGE = {"remoteRank": "communicator_rank", "tag": "tag", "size": "size_bytes", "requestHandle": "request"}
# Of ENUM_NSYS_EVENT_CLASS, which files before schema 3 do not have.
CUDA_BACKTRACE = 67
_EVENT_CLASSES = {
    "eventClass": {
        0: "CUDA runtime",
        1: "CUDA driver",
        27: "OS runtime",
        31: "OS runtime start",
        32: "OS runtime end",
        CUDA_BACKTRACE: "CUDA backtrace",
    }
}
KINDS = (
    SpanTable(RUNTIME, ("nameId", "eventClass"), _call, "call_spans", _OF_CALL, _EVENT_CLASSES),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        ("demangledName", "shortName", "mangledName"),
        _kernel,
        "kernel_spans",
        {
            **OF_KERNEL,
            **OF_GRAPH,
            "greenContextId": "green_context",
            "sharedMemoryLimitConfig": "shared_limit",
            "shortName": "short_name",
            "mangledName": "mangled_name",
        },
        {"launchType": _LAUNCH_TYPES, "cacheConfig": CACHE_CONFIGS, "sharedMemoryLimitConfig": _SHARED_LIMITS},
    ),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        ("copyKind", "srcKind", "dstKind"),
        _copy,
        "copy_spans",
        {**OF_COPY, **OF_GRAPH, "migrationCause": "migration_cause", "virtualAddress": "address"},
        {"copyKind": _COPY_KINDS, "srcKind": MEMORY_KINDS, "dstKind": MEMORY_KINDS, "migrationCause": _MIGRATIONS},
    ),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        ("memKind",),
        lambda values: (f"Memset ({values.get('memKind') or 'Device'})", "cuda", "copy", ""),
        "copy_spans",
        {**OF_SET, "memKind": "destination_kind", **OF_GRAPH},
        {"memKind": MEMORY_KINDS},
    ),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        ("graphId",),
        _graph,
        "kernel_spans",
        {**OF_GPU, "graphId": "graph", "graphExecId": "launch"},
    ),
    SpanTable(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        ("syncType",),
        named_by("syncType", "cuda", "sync"),
        "sync_spans",
        {**OF_GPU, "syncType": "sync_kind", "eventId": "wait_on_event"},
        {"syncType": SYNC_KINDS},
        row="waits",
    ),
    SpanTable("OSRT_API", ("nameId", "eventClass"), _os_call, "call_spans", _OF_CALL, _EVENT_CLASSES),
    SpanTable(
        "PROFILER_OVERHEAD",
        ("nameId",),
        named("strobe", "other", "Nsight Systems"),
        "call_spans",
        _OF_CALL,
        row="profiler",
    ),
    SpanTable("MPI_P2P_EVENTS", ("textId",), _mpi),
    SpanTable(
        "MPI_COLLECTIVES_EVENTS",
        ("textId",),
        _mpi,
        "collective_spans",
        {
            "textId": "collective",
            "commHandle": "communicator",
            "rootRank": "root",
            "size": "sent_bytes",
            "recvSize": "received_bytes",
        },
    ),
    SpanTable("MPI_START_WAIT_EVENTS", ("textId",), _mpi),
    SpanTable("MPI_OTHER_EVENTS", ("textId",), _mpi),
    SpanTable("CUDNN_EVENTS", ("nameId",), named("cuda", "function", "cuDNN")),
    SpanTable("CUBLAS_EVENTS", ("nameId",), named("cuda", "function", "cuBLAS")),
    SpanTable("CUDA_GRAPH_EVENTS", ("nameId",), named("cuda", "function", "CUDA graphs")),
)
