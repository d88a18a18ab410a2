"""Which readings are of which GPU: processes count GPUs otherwise than their machines do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import strobe
from strobe.gpu.known_gpus import Property, ReadingsOf, Throttling, known_gpus
from tests.deep.kineto import Event, kernel, profile
from tests.gpu.measured import UUID, record

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def reading(name: str, start_us: int, value: float) -> Event:
    """One reading of a counter, as Chrome's format has it."""
    return {"ph": "C", "cat": "gpu", "name": name, "pid": 100, "tid": 0, "ts": start_us, "args": {"value": value}}


@needs_compiler
def test_readings_are_found_by_uuid_not_by_number(tmp_path: Path) -> None:
    path = record(tmp_path, {"uuid": "GPU-other"}, {"uuid": UUID, "reasons": 0x4, "memory": 5 << 30})
    with strobe.open(path) as trace:
        used, other = known_gpus(trace)
    # As the process counts, and as the machine does.
    assert (used.process, used.number, used.readings, used.by_uuid) == (0, 0, ReadingsOf(0, 1), True)
    assert (used.name, used.uuid, used.capability, used.multiprocessors) == ("Fake GPU 0", UUID, "9.0", 132)
    assert used.memory_bytes == 85_000_000_000
    assert used.throttled == (Throttling("power cap", 1.0),)
    facts = {each.name: each for each in used.properties}
    assert facts["L2 cache"] == Property("L2 cache", 52_428_800, "bytes")
    assert facts["highest SM clock"] == Property("highest SM clock", 1980, "MHz")
    assert facts["memory bandwidth"].value == pytest.approx(3352.32)
    assert (other.process, other.number, other.readings, other.uuid) == (None, 0, ReadingsOf(0, 0), "GPU-other")
    assert other.throttled == ()


@needs_compiler
def test_a_gpu_with_another_uuid_is_another_one_in_spite_of_its_number(tmp_path: Path) -> None:
    with strobe.open(record(tmp_path, {"uuid": "GPU-other"})) as trace:
        used, other = known_gpus(trace)
    assert (used.process, used.number, used.readings) == (0, 0, None)
    assert (other.process, other.number, other.readings) == (None, 0, ReadingsOf(0, 0))


def test_of_an_imported_file_readings_are_those_of_the_same_number(tmp_path: Path) -> None:
    readings = [reading("GPU 1: throttled: power cap", 10 * i, int(i > 0)) for i in range(4)]
    readings += [reading("GPU 1: throttled: temperature (software)", 10 * i, int(i == 3)) for i in range(4)]
    readings += [reading("GPU 1: throttled: power brake", 10 * i, 0) for i in range(4)]
    said = {"id": 1, "name": "NVIDIA A100", "numSms": 108, "computeMajor": 8, "computeMinor": 0}
    trace = profile(
        tmp_path, kernel("a", 0, 10), kernel("b", 20, 10, device=1), *readings, deviceProperties=[said], rank=2
    )
    by_number = {gpu.number: gpu for gpu in known_gpus(trace) if gpu.process is not None and gpu.name}
    gpu = by_number[1]
    assert (gpu.rank, gpu.name, gpu.capability, gpu.multiprocessors) == (2, "NVIDIA A100", "8.0", 108)
    assert not gpu.by_uuid
    # The most frequent first; what never held is not told.
    assert gpu.throttled == (Throttling("power cap", 0.75), Throttling("temperature (software)", 0.25))
