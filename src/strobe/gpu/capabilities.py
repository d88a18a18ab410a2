"""What GPUs can do, by the recorder or an imported file; and how many warps of a kernel fit onto them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.trace import Trace

# Blocks that a multiprocessor holds, by compute capability (CUDA C++ Programming Guide, technical specifications).
_MOST_BLOCKS = {(7, 5): 16, (8, 6): 16, (8, 7): 16, (8, 9): 24, (12, 0): 24}
# Warps and KiB of shared memory that a multiprocessor holds, likewise. Each has 65536 registers.
_MULTIPROCESSORS = {
    (7, 0): (64, 96),
    (7, 5): (32, 64),
    (8, 0): (64, 164),
    (8, 6): (48, 100),
    (8, 9): (48, 100),
    (9, 0): (64, 228),
    (10, 0): (64, 228),
    (10, 3): (64, 228),
    (12, 0): (48, 100),
}
_WARP = 32


@dataclass(frozen=True)
class GpuModel:
    """The multiprocessors of a GPU, and the resources of one of them."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    threads: int
    registers: int
    shared_bytes: int
    blocks: int

    def occupancy(self, threads_per_block: Ints, registers_per_thread: Ints, shared_bytes: Ints) -> Floats:
        """Return the part of a multiprocessor's warps that blocks like these can fill at most, 0 to 1.

        NaN if this cannot be a launch.
        """
        warps_there = self.threads // _WARP
        warps = -(-threads_per_block // _WARP)
        limits = self.limits(threads_per_block, registers_per_thread, shared_bytes)
        share = np.minimum.reduce(list(limits.values())) * warps / warps_there
        return np.where((warps > 0) & (share > 0), share, np.nan)

    def limits(self, threads_per_block: Ints, registers_per_thread: Ints, shared_bytes: Ints) -> dict[str, Ints]:
        """Return how many blocks like these a multiprocessor holds at most, by the resource that limits them.

        As NVIDIA's occupancy calculator has it, for compute capability 7 and later: registers are given to warps in
        units of 256 and to four warps at a time; shared memory in units of 256 bytes (128 from 8.0 on, and 1 KiB of
        each block belongs to the system).
        """
        warps = np.maximum(-(-threads_per_block // _WARP), 1)
        per_warp = -(-np.maximum(registers_per_thread, 1) * _WARP // 256) * 256
        unit, own = (128, 1024) if self.capability >= (8, 0) else (256, 0)
        shared = -(-(np.maximum(shared_bytes, 0) + own) // unit) * unit
        return {
            "registers": self.registers // per_warp // 4 * 4 // warps,
            "shared memory": np.where(shared > 0, self.shared_bytes // np.maximum(shared, 1), self.blocks),
            "warps of a block": self.threads // _WARP // warps,
            "blocks of a multiprocessor": np.full_like(warps, self.blocks),
        }


def model_of_capability(capability: tuple[int, int]) -> GpuModel | None:
    """Return the least that GPUs of a compute capability hold, with 0 multiprocessors; None if unknown."""
    known = _MULTIPROCESSORS.get(capability)
    if known is None:
        return None
    warps, shared_kib = known
    blocks = _MOST_BLOCKS.get(capability, 32)
    return GpuModel("", capability, 0, warps * _WARP, 65536, shared_kib << 10, blocks)


def gpu_model(trace: Trace, number: int | None) -> GpuModel | None:
    """Return the model of GPU `number` by the recorder or an imported file; None if they lack a part of it."""
    return _model(_properties(trace, number))


def gpu_memory_bytes(trace: Trace, number: int | None) -> int | None:
    """Return how much memory GPU `number` has; None if unknown."""
    properties = _properties(trace, number)
    size = properties.get("totalGlobalMem", properties.get("totalMemory"))
    return size if isinstance(size, int) and 0 < size < 2**62 else None


def gpu_name(trace: Trace, number: int | None) -> str:
    """Return the name of GPU `number` in an imported file; "" if unknown."""
    return str(_properties(trace, number).get("name", ""))


def properties_of(trace: Trace, number: int | None, process: int) -> Mapping[str, Any]:
    """Return the properties of GPU `number` of a process, under the names of Kineto or of Nsight Systems."""
    own = (each for each in trace.device_properties(process) if each.get("id") == number and number is not None)
    return next(own, None) or _properties(trace, number)


def imported_files(trace: Trace) -> list[dict[str, Any]]:
    """Return the descriptions of the files that a trace was imported from; none of a recorded trace."""
    files = trace.job.imported.get("files")
    return files if isinstance(files, list) else []


def _properties(trace: Trace, number: int | None) -> Mapping[str, Any]:
    listed: list[object] = [*trace.device_properties()]
    for file in imported_files(trace):
        properties = file.get("properties") or {}
        listed += properties.get("deviceProperties") or properties.get("TARGET_INFO_GPU") or ()
    known = (each for each in listed if isinstance(each, dict) and each.get("id") == number and number is not None)
    return next(known, {})


def _model(properties: Mapping[str, Any]) -> GpuModel | None:
    """Return the model from the keys of Kineto or of Nsight Systems."""

    def number(*names: str) -> int:
        return next((int(properties[name]) for name in names if isinstance(properties.get(name), int)), 0)

    capability = number("computeMajor"), number("computeMinor")
    model = GpuModel(
        str(properties.get("name", "")),
        capability,
        number("numSms", "smCount"),
        number("maxThreadsPerMultiprocessor") or number("maxWarpsPerSm") * _WARP,
        number("regsPerMultiprocessor", "maxRegistersPerSm"),
        number("sharedMemPerMultiprocessor", "maxShmemPerSm"),
        number("maxBlocksPerSm", "maxBlocksPerMultiprocessor") or _MOST_BLOCKS.get(capability, 32),
    )
    whole = all((model.multiprocessors, model.threads, model.registers, model.shared_bytes))
    return model if whole and capability >= (7, 0) else None
