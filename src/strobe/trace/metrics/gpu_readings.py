"""Reads `gpus-<node>.metrics`: load, memory, power and other values of the GPUs of a node (docs/format/gpus.md).

A file is sound up to where its writer was killed; damaged chunks are skipped.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.archive import sound_text, whole_number
from strobe.trace.processes.process_facts import MetricReadings

_HEADER = struct.Struct("<4sHHIII")
_GROUP = struct.Struct("<qII")
_MAGIC, _VERSION = b"SGPU", 1
_ABOUT, _COLUMN, _READINGS, _NOTE = 1, 2, 3, 4
_MOST_COLUMNS = 1 << 16
_FARTHEST_NS = 1 << 61

# Why clocks are not at their highest: bits of nvmlClocksEventReasons (NVML API reference). Reasons of the first group
# are the user's choice or a lack of work; the second is called throttling.
CHOSEN = {0x1: "idle", 0x2: "application clocks", 0x10: "sync boost", 0x100: "display clocks"}
THROTTLED = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
    0x200: "board limit",
    0x400: "reliability",
}
REASONS = "clock reasons"  # the column that has the bits


@dataclass(frozen=True)
class Gpu:
    """A GPU as NVML names it: its number there, its uuid, and what is known of it."""

    index: int
    uuid: str = ""
    name: str = ""
    memory_bytes: int | None = None
    mig: bool = False


@dataclass(frozen=True)
class GpuSeries:
    """Readings of one metric of a GPU, or of one process on it (`pid`): CLOCK_MONOTONIC of the node, in order."""

    gpu: int
    name: str
    unit: str
    pid: int | None
    time_ns: Ints
    values: Floats


@dataclass
class _Content:
    gpus: dict[int, Gpu] = field(default_factory=dict)
    series: list[GpuSeries] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # sentences: nothing was read
    refused: list[str] = field(default_factory=list)  # sentences: a metric was not
    bytes_lost: int = 0


class NodeGpus:
    """The GPUs of one node; the file is read when it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.node = path.name.removeprefix("gpus-").removesuffix(".metrics")

    @cached_property
    def content(self) -> _Content:
        """Everything in the file; nothing if it cannot be read."""
        try:
            return _content(self.path.read_bytes())
        except OSError as error:
            return _Content(missing=[f"'{self.path.name}' cannot be read: {error.strerror}"])

    def metrics(self, pid: int, first: bool) -> list[MetricReadings]:
        """Return the metrics of a process, as readers of block files do: its memory on GPUs, and those of the GPUs
        themselves for the `first` process of the node.
        """
        shown = (each for each in self.content.series if (each.pid == pid if each.pid is not None else first))
        return [readings for each in shown for readings in _metrics_of(each)]


def files(folder: Path) -> list[NodeGpus]:
    """Return the GPUs of every node of a trace."""
    return [NodeGpus(path) for path in sorted(folder.glob("gpus-*.metrics"))]


def _metrics_of(series: GpuSeries) -> Iterator[MetricReadings]:
    """Yield a series; one of bits as several of 0 and 1: whether the GPU was throttled, each bit that was ever set."""

    def metric(name: str, values: Floats) -> MetricReadings:
        label = f"GPU {series.gpu}: {name}"
        return {"name": label, "unit": series.unit, "location": -1, "time_ns": series.time_ns, "value": values}

    if series.name != REASONS:
        yield metric(series.name, series.values)
        return
    bits = np.clip(series.values, 0, 2**53).astype(np.int64)
    yield metric("throttled", ((bits & sum(THROTTLED)) != 0).astype(np.float64))
    for group, mask in (("throttled", THROTTLED), ("clocks", CHOSEN)):
        for bit, reason in mask.items():
            on = (bits & bit) != 0
            if on.any():
                yield metric(f"{group}: {reason}", on.astype(np.float64))


def _content(data: bytes) -> _Content:
    found = _Content()
    columns: dict[int, dict[str, Any]] = {}
    parts: dict[tuple[int, str, str, int | None], list[tuple[Ints, Floats]]] = {}
    waiting: list[bytes] = []

    def settle() -> None:
        for column, times, values in _columns(waiting):
            facts = columns.get(column)
            if facts is not None:
                key = (facts["gpu"], facts["name"], facts["unit"], facts.get("pid"))
                parts.setdefault(key, []).append((times, values))
        waiting.clear()

    for kind, payload in _chunks(data, found):
        if kind == _READINGS:
            waiting.append(payload)
            continue
        facts = _facts(payload)
        if kind == _ABOUT:  # another `strobe run` of the node goes on: its columns are others
            settle()
            columns.clear()
            for gpu in _gpus(facts):
                found.gpus[gpu.index] = gpu
        elif kind == _COLUMN and (sound := _column(facts)) is not None:
            columns[sound["column"]] = sound
        elif kind == _NOTE:
            _note(facts, found)
    settle()
    found.series = [each for each in (_series(key, pieces) for key, pieces in parts.items()) if len(each.values)]
    return found


def _series(key: tuple[int, str, str, int | None], pieces: Sequence[tuple[Ints, Floats]]) -> GpuSeries:
    """Return all readings of a metric in order; NaN is none."""
    times = np.concatenate([each[0] for each in pieces])
    values = np.concatenate([each[1] for each in pieces])
    there = np.flatnonzero(~np.isnan(values))
    order = there[np.argsort(times[there], kind="stable")]
    return GpuSeries(*key, times[order], values[order])


def _chunks(data: bytes, found: _Content) -> Iterator[tuple[int, bytes]]:
    """Yield kind and payload of every sound chunk; count the bytes of others."""
    at = 0
    while at + _HEADER.size <= len(data):
        magic, kind, version, size, crc_payload, crc_header = _HEADER.unpack_from(data, at)
        end = at + _HEADER.size + size
        if magic != _MAGIC or zlib.crc32(data[at : at + _HEADER.size - 4]) != crc_header:
            following = data.find(_MAGIC, at + 1)
            following = len(data) if following < 0 else following
            found.bytes_lost += following - at
            at = following
            continue
        payload = data[at + _HEADER.size : end]
        if end <= len(data) and version == _VERSION and zlib.crc32(payload) == crc_payload:
            yield kind, payload
        else:
            found.bytes_lost += min(end, len(data)) - at
        at = end
    found.bytes_lost += max(0, len(data) - at)


def _columns(payloads: Sequence[bytes]) -> Iterator[tuple[int, Ints, Floats]]:
    """Yield column, times and values. Most payloads have the same groups, so those are taken apart together."""
    by_size: dict[int, list[bytes]] = {}
    for payload in payloads:
        by_size.setdefault(len(payload), []).append(payload)
    for size, same in by_size.items():
        rows = np.frombuffer(b"".join(same), dtype=np.uint8).reshape(len(same), size)
        while len(rows):
            groups = _groups(rows[0].tobytes())
            heads = np.concatenate([np.arange(at + 8, at + _GROUP.size) for at, _, _ in groups] or [np.arange(0)])
            alike = (rows[:, heads] == rows[0, heads]).all(axis=1)
            chosen, rows = rows[alike], rows[~alike]
            for at, first, count in groups:
                times = np.ascontiguousarray(chosen[:, at : at + 8]).view("<i8")[:, 0].astype(np.int64)
                begin = at + _GROUP.size
                values = np.ascontiguousarray(chosen[:, begin : begin + 8 * count]).view("<f8")
                sound = np.abs(times) < _FARTHEST_NS
                for column in range(count):
                    yield first + column, times[sound], values[sound, column].astype(np.float64)


def _groups(payload: bytes) -> list[tuple[int, int, int]]:
    """Return offset, first column and number of columns of each group."""
    found, at = [], 0
    while at + _GROUP.size <= len(payload):
        _, first, count = _GROUP.unpack_from(payload, at)
        if count > _MOST_COLUMNS or at + _GROUP.size + 8 * count > len(payload):
            break
        found.append((at, first, count))
        at += _GROUP.size + 8 * count
    return found


def _facts(payload: bytes) -> Mapping[str, Any]:
    try:
        facts = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _gpus(facts: Mapping[str, Any]) -> Iterator[Gpu]:
    listed = facts.get("gpus")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and (index := whole_number(each.get("index"), 0)) is not None:
            text = {name: sound_text(each.get(name, "")) for name in ("uuid", "name")}
            memory_bytes = whole_number(each.get("memory_bytes"), 0)
            yield Gpu(index, text["uuid"], text["name"], memory_bytes, each.get("mig") is True)


def _column(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    column, gpu = whole_number(facts.get("column"), 0), whole_number(facts.get("gpu"), 0)
    if column is None or gpu is None:
        return None
    named = {name: sound_text(facts.get(name, "")) for name in ("name", "unit")}
    return {"column": column, "gpu": gpu, "pid": whole_number(facts.get("pid"), 0), **named}


def _note(facts: Mapping[str, Any], found: _Content) -> None:
    metrics = facts.get("metrics")
    names = ", ".join(sound_text(each) for each in metrics) if isinstance(metrics, list) else ""
    gpu, why = whole_number(facts.get("gpu"), 0), sound_text(facts.get("why", ""))
    if gpu is None:
        sentences, sentence = found.missing, f"GPUs were not read: {why}"
    else:
        sentences, sentence = found.refused, f"GPU {gpu} does not report: {names} ({why})"
    if sentence not in sentences:
        sentences.append(sentence)
