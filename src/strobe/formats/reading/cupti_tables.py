"""Names of numbers and columns in CUPTI's activity records, which nvprof and Nsight Systems write into tables.

https://docs.nvidia.com/cupti, structs CUpti_Activity*.
"""

from __future__ import annotations

COPY_KINDS = ("Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
SYNC_KINDS = {0: "Unknown", 1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
CACHE_CONFIGS = {0: "None", 1: "Shared", 2: "L1", 3: "Equal"}
# From their columns to those of our side tables.
OF_GPU = {"correlationId": "correlation", "deviceId": "device", "contextId": "context", "streamId": "stream"}
OF_KERNEL = {
    **OF_GPU,
    **{f"{what}{axis}": f"{what}_{axis.lower()}" for what in ("grid", "block") for axis in "XYZ"},
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_bytes",
    "dynamicSharedMemory": "dynamic_shared_bytes",
    "sharedMemoryExecuted": "executed_shared_bytes",
    "localMemoryPerThread": "local_bytes_per_thread",
    "localMemoryTotal": "local_bytes",
    "gridId": "launch",
    "launchType": "launch_type",
    "cacheConfig": "cache_config",
}
OF_COPY = {
    **OF_GPU,
    "bytes": "size_bytes",
    "copyKind": "copy_kind",
    "srcKind": "source_kind",
    "dstKind": "destination_kind",
    "srcDeviceId": "source_device",
    "srcContextId": "source_context",
    "dstDeviceId": "destination_device",
    "dstContextId": "destination_context",
}
OF_GRAPH = {"graphId": "graph", "graphNodeId": "graph_node"}
OF_SET = {**OF_GPU, "bytes": "size_bytes", "value": "set_value"}
