"""The records of rocprofv3 as tables of our own, in which all of its files end up."""

from __future__ import annotations

from collections.abc import Mapping

KERNELS, COPIES, CALLS, ALLOCATIONS = "strobe kernels", "strobe copies", "strobe calls", "strobe allocations"
RANGES, PROCESS_RANGES, MARKS = "strobe ranges", "strobe process ranges", "strobe marks"
READINGS, SAMPLES = "strobe readings", "strobe samples"
_SPAN = {"processId": "INTEGER", "threadId": "INTEGER", "start": "INTEGER", "end": "INTEGER"}
_NUMBERS = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "lds", "scratch", "vgpr", "agpr", "sgpr")
_KERNEL = {
    **_SPAN,
    **dict.fromkeys(("deviceId", "streamId", "queue", "correlationId", "dispatch", *_NUMBERS), "INTEGER"),
    "name": "TEXT",
}
# Columns with their types, by table. stream: that of HIP. device: number of the GPU, -1 the host. arguments: names and
# values, as a JSON list of pairs. A reading is what a counter counted in one dispatch. comment: of an instruction, the
# source line that it was compiled from; state: why a wave did not issue it.
LAYOUTS: Mapping[str, Mapping[str, str]] = {
    KERNELS: _KERNEL,
    COPIES: {
        **_SPAN,
        **dict.fromkeys(("streamId", "queue", "correlationId", "source", "destination", "bytes"), "INTEGER"),
        "direction": "TEXT",
    },
    CALLS: {**_SPAN, "correlationId": "INTEGER", "domain": "TEXT", "name": "TEXT", "arguments": "TEXT"},
    RANGES: {**_SPAN, "name": "TEXT"},
    PROCESS_RANGES: {**_SPAN, "name": "TEXT"},
    MARKS: {**_SPAN, "name": "TEXT"},
    ALLOCATIONS: {
        **_SPAN,
        **dict.fromkeys(("correlationId", "device", "address", "bytes", "free"), "INTEGER"),
        "level": "TEXT",
    },
    READINGS: {**_KERNEL, "counter": "TEXT", "value": "REAL"},
    SAMPLES: {**_SPAN, "dispatch": "INTEGER", "instruction": "TEXT", "comment": "TEXT", "state": "TEXT"},
}

# Before the name of a table: the same rows, with where they lie.
PLACED = "strobe placed "
