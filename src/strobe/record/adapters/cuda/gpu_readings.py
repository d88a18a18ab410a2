"""Reads load, memory, power and other values of the GPUs of this node while the program runs: a thread of `strobe run`.

One `strobe run` per node does so: the one that holds the lock of `gpus-<node>.metrics` in the trace folder, the file
into which it writes (docs/format/gpus.md). Only if there is a driver: driver.py.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import threading
import time
from collections.abc import Sequence
from types import ModuleType

from strobe.record.adapters.cuda import nvml
from strobe.record.adapters.cuda.readings_file import ABOUT, COLUMN, NOTE, READINGS, Limit, ReadingsFile
from strobe.record.launch.clock_server import start_thread

_GROUP = struct.Struct("<qII")  # ns, first column, values that follow
_S = 10**9
_PROCESSES_NS = _S
_MOST_SHARE = 0.1  # of a core: with many GPUs readings get rarer
_END_S = 0.3  # a call of NVML that takes longer is not waited for
_PACKAGE = 'pip install "strobe[gpu]"'


class Sampler:
    """The thread that reads; `stop` ends it."""

    def __init__(self, folder: str, node: str, period_ns: int, limit: Limit | None) -> None:
        self._node, self._period_ns = node, period_ns
        self._file = ReadingsFile(os.path.join(folder, f"gpus-{node}.metrics"), limit)
        self._columns = 0
        self._of_process: dict[tuple[int, int], int] = {}
        self._stopping = threading.Event()
        self._thread = start_thread(self._run, "strobe gpus")

    def stop(self) -> None:
        """Read a last time, and end; nothing is written after this returns."""
        self._stopping.set()
        self._thread.join(_END_S)
        self._file.close()

    def _run(self) -> None:
        try:
            if not self._file.lock(self._stopping):
                return
            pynvml = self._load()
            if pynvml is not None:
                self._read_all(pynvml)
        except Exception as error:  # the trace is sound without it
            self._note("everything", f"reading GPUs failed: {error!r}")

    def _load(self) -> ModuleType | None:
        try:
            pynvml = importlib.import_module("pynvml")
            pynvml.nvmlInit()
            return pynvml
        except ImportError:
            self._note("everything", f"nvidia-ml-py is not installed; to have it: {_PACKAGE}")
        except Exception as error:
            self._note("everything", f"NVML does not start: {error}")
        return None

    def _read_all(self, pynvml: ModuleType) -> None:
        gpus = nvml.open_gpus(pynvml)
        firsts = self._begin(pynvml, gpus)
        due = {id(source): 0 for gpu in gpus for source in gpu.sources}
        due_processes = 0
        next_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        while True:
            now, busy = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.thread_time_ns()
            last = self._stopping.is_set()
            parts: list[bytes] = []
            for gpu in gpus:
                for source in gpu.sources:
                    if source.given_up or now < due[id(source)]:
                        continue
                    if last and source.period_ns > self._period_ns:  # the end is not to wait for it
                        continue
                    # A little earlier than due counts: else every second reading would be left out.
                    due[id(source)] = now + source.period_ns - self._period_ns // 2 if source.period_ns else 0
                    parts.append(_group(*source.read(), firsts[id(source)]))
                    if source.given_up:
                        self._refused(gpu, [each.name for each in source.quantities], source.why)
            if now >= due_processes and not last:
                due_processes = now + _PROCESSES_NS
                parts += [part for gpu in gpus for part in self._processes(pynvml, gpu)]
            self._file.write(READINGS, b"".join(parts))
            if last:
                return
            cost_ns = time.thread_time_ns() - busy
            rest_ns = max(next_ns + self._period_ns - now, round(cost_ns / _MOST_SHARE))
            next_ns = now + rest_ns
            self._stopping.wait(max(0, next_ns - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) / _S)

    def _begin(self, pynvml: ModuleType, gpus: Sequence[nvml.Gpu]) -> dict[int, int]:
        """Write what there is to read; return the first column of every source by its identity."""
        about = {
            "node": self._node,
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "period_ns": self._period_ns,
            "driver": _driver(pynvml),
            "gpus": [gpu.facts for gpu in gpus],
        }
        self._file.write(ABOUT, json.dumps(about).encode())
        firsts = {}
        for gpu in gpus:
            for source in gpu.sources:
                firsts[id(source)] = self._columns
                for quantity in source.quantities:
                    self._column(gpu=gpu.index, name=quantity.name, unit=quantity.unit)
            for refusal in gpu.refused:
                self._refused(gpu, refusal.names, refusal.why)
        return firsts

    def _processes(self, pynvml: ModuleType, gpu: nvml.Gpu) -> list[bytes]:
        if gpu.handle is None:
            return []
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        used = dict(nvml.memory_by_process(pynvml, gpu))
        middle = (now + time.clock_gettime_ns(time.CLOCK_MONOTONIC)) // 2
        for pid in used:
            if (gpu.index, pid) not in self._of_process:
                name = "memory of the process"
                self._of_process[gpu.index, pid] = self._column(gpu=gpu.index, name=name, unit="bytes", pid=pid)
        known = [(pid, column) for (index, pid), column in self._of_process.items() if index == gpu.index]
        for pid, column in known:
            if pid not in used:  # it has ended: one last reading of 0
                self._file.ends(column, middle)
                del self._of_process[gpu.index, pid]
        return [_group(middle, [float(used.get(pid, 0))], column) for pid, column in known]

    def _column(self, **facts: object) -> int:
        number = self._columns
        self._columns += 1
        self._file.write(COLUMN, json.dumps({"column": number, **facts}).encode())
        return number

    def _refused(self, gpu: nvml.Gpu, names: Sequence[str], why: str) -> None:
        self._file.write(NOTE, json.dumps({"gpu": gpu.index, "metrics": list(names), "why": why}).encode())

    def _note(self, what: str, why: str) -> None:
        self._file.write(NOTE, json.dumps({"metrics": [what], "why": why}).encode())


def start(folder: str, period_ns: int, limit: Limit | None) -> list[Sampler]:
    """Begin to read the GPUs of this node every `period_ns`; nothing if no thread is to be had.

    `limit`: what is kept.
    """
    from strobe.native import core

    try:
        return [Sampler(folder, core.node_name().replace("/", "_"), period_ns, limit)]
    except RuntimeError:
        return []


def _group(ns: int, values: Sequence[float], first: int) -> bytes:
    return _GROUP.pack(ns, first, len(values)) + struct.pack(f"<{len(values)}d", *values)


def _driver(pynvml: ModuleType) -> str:
    try:
        version = pynvml.nvmlSystemGetDriverVersion()
    except Exception:
        return ""
    return version.decode() if isinstance(version, bytes) else str(version)
