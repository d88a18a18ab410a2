"""The GPUs of a run: which process used which, their properties, and the readings of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from strobe.gpu.capabilities import properties_of
from strobe.gpu.devices import devices
from strobe.gpu.load_and_energy import GpuReadings, gpu_readings
from strobe.trace.archive import whole_number
from strobe.trace.definition_rows import process_rows
from strobe.trace.trace import Trace

_THROTTLED = "throttled: "


@dataclass(frozen=True)
class Property:
    """One property of a GPU; the unit is "" for a count."""

    name: str
    value: float
    unit: str = ""


@dataclass(frozen=True)
class ReadingsOf:
    """Process and number under which `strobe devices` has the readings of a GPU."""

    process: int
    device: int | None


@dataclass(frozen=True)
class Throttling:
    """Part of the readings in which one reason held the clocks down."""

    reason: str
    share: float


@dataclass(frozen=True)
class KnownGpu:
    """A GPU as a process of the run used it. None or "": unknown.

    `number`: as the process counts. `process` is None for a GPU that has readings and no known user. `by_uuid`: its
    `readings` are surely its own; else they are those of the same number on its machine. `throttled`: by reason, the
    most frequent first.
    """

    process: int | None
    rank: int | None
    number: int | None
    host: str
    name: str = ""
    uuid: str = ""
    capability: str = ""
    multiprocessors: int | None = None
    memory_bytes: int | None = None
    mig: bool = False
    properties: tuple[Property, ...] = ()
    readings: ReadingsOf | None = None
    by_uuid: bool = False
    throttled: tuple[Throttling, ...] = ()


# Name; the keys of Kineto (and of our recorder) and of Nsight Systems; unit; divisor.
_FACTS: tuple[tuple[str, tuple[str, ...], str, float], ...] = (
    ("threads of a multiprocessor", ("maxThreadsPerMultiprocessor",), "", 1),
    ("warps of a multiprocessor", ("maxWarpsPerSm",), "", 1),
    ("blocks of a multiprocessor", ("maxBlocksPerMultiprocessor", "maxBlocksPerSm"), "", 1),
    ("registers of a multiprocessor", ("regsPerMultiprocessor", "maxRegistersPerSm"), "", 1),
    ("shared memory of a multiprocessor", ("sharedMemPerMultiprocessor", "maxShmemPerSm"), "bytes", 1),
    ("threads of a block", ("maxThreadsPerBlock",), "", 1),
    ("registers of a block", ("regsPerBlock", "maxRegistersPerBlock"), "", 1),
    ("shared memory of a block", ("sharedMemPerBlock", "maxShmemPerBlock"), "bytes", 1),
    ("threads of a warp", ("warpSize", "threadsPerWarp"), "", 1),
    ("L2 cache", ("l2CacheSize",), "bytes", 1),
    ("highest SM clock", ("coreClockKhz",), "MHz", 1e3),
    ("highest SM clock", ("clockRate",), "MHz", 1e6),
    ("memory bandwidth", ("memoryBandwidthKbPerS",), "GB/s", 1e6),
    ("memory bandwidth", ("memoryBandwidth",), "GB/s", 1e9),
    ("copy engines", ("copyEngines", "asyncEngines"), "", 1),
)


def known_gpus(trace: Trace) -> list[KnownGpu]:
    """Return the GPUs that worked, in order of process and number, then those that only have readings."""
    read = gpu_readings(trace)
    hosts = [process.host for process in process_rows(trace)]
    found, used = [], set[tuple[int, int | None]]()
    for device in devices(trace):
        gpu = _described(trace, KnownGpu(device.process, device.rank, device.number, hosts[device.process] or ""))
        readings = _of(gpu, read, shared=bool(trace.gpus))
        if readings is not None:
            used.add((readings.process, readings.number))
            gpu = _measured(gpu, readings)
        found.append(gpu)
    rest = [each for each in read if (each.process, each.number) not in used and each.series]
    return found + [_measured(KnownGpu(None, None, each.number, each.host), each) for each in rest]


def _of(gpu: KnownGpu, read: list[GpuReadings], *, shared: bool) -> GpuReadings | None:
    """Return the readings of a GPU. `shared`: they are the machine's, shown with one of its processes."""
    own = [each for each in read if gpu.uuid and each.uuid == gpu.uuid]
    if own:
        return own[0]
    for each in read:
        same_place = each.host == gpu.host if shared else each.process == gpu.process
        if same_place and each.number == gpu.number and not (gpu.uuid and each.uuid):
            return each
    return None


def _measured(gpu: KnownGpu, readings: GpuReadings) -> KnownGpu:
    known = {name: values[np.isfinite(values)] for name, (_, values) in readings.series.items()}
    throttled = [
        Throttling(name.removeprefix(_THROTTLED), float(values.mean()))
        for name, values in known.items()
        if name.startswith(_THROTTLED) and values.any()
    ]
    return replace(
        gpu,
        name=gpu.name or readings.name,
        uuid=gpu.uuid or readings.uuid,
        memory_bytes=gpu.memory_bytes or readings.memory_bytes,
        readings=ReadingsOf(readings.process, readings.number) if readings.series else None,
        by_uuid=bool(gpu.uuid) and gpu.uuid == readings.uuid,
        throttled=tuple(sorted(throttled, key=lambda each: -each.share)),
    )


def _described(trace: Trace, gpu: KnownGpu) -> KnownGpu:
    """Return the GPU with its properties by the recorder or an imported file."""
    assert gpu.process is not None
    properties = properties_of(trace, gpu.number, gpu.process)
    major, minor = (whole_number(properties.get(key), 0) for key in ("computeMajor", "computeMinor"))
    uuid = str(properties.get("uuid") or "")
    return replace(
        gpu,
        name=str(properties.get("name") or ""),
        uuid=uuid if uuid.startswith(("GPU-", "MIG-")) or not uuid else f"GPU-{uuid}",
        capability="" if major is None or minor is None else f"{major}.{minor}",
        multiprocessors=whole_number(properties.get("numSms", properties.get("smCount")), 0),
        memory_bytes=whole_number(properties.get("totalGlobalMem", properties.get("totalMemory")), 0),
        mig=properties.get("mig") is True,
        properties=tuple(_facts(properties)),
    )


def _facts(properties: Mapping[str, Any]) -> Iterator[Property]:
    for name, keys, unit, divisor in _FACTS:
        value = next((whole for key in keys if (whole := whole_number(properties.get(key), 0))), None)
        if value is not None:
            yield Property(name, value if divisor == 1 else value / divisor, unit)
