"""Reads load, memory, power and other values of the GPUs of this node while the program runs: a thread of `strobe run`.

One `strobe run` per node does so: the one that holds the lock of `gpus-<node>.metrics` in the trace folder, the file
into which it writes (docs/format/gpus.md). Only if there is a driver: driver.py.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import struct
import threading
import time
import zlib
from collections.abc import Sequence
from types import ModuleType

from strobe.model.private_files import opener
from strobe.record.adapters.cuda import nvml
from strobe.record.launch.clock_server import start_thread

_HEADER = struct.Struct("<4sHHIII")  # magic, kind, version, bytes of the payload, its CRC-32, CRC-32 of the 16 before
_GROUP = struct.Struct("<qII")  # ns, first column, values that follow
_MAGIC, _VERSION = b"SGPU", 1
_ABOUT, _COLUMN, _READINGS, _NOTE = 1, 2, 3, 4
_S = 10**9
_PROCESSES_NS = _S
_LOCK_S = 0.2  # how soon another `strobe run` of the node goes on where the one that read has ended
_MOST_SHARE = 0.1  # of a core: with many GPUs readings get rarer
_END_S = 0.3  # a call of NVML that takes longer is not waited for
_PACKAGE = 'pip install "strobe[gpu]"'


class Sampler:
    """The thread that reads; `stop` ends it."""

    def __init__(self, folder: str, node: str, period_ns: int) -> None:
        self._folder, self._node, self._period_ns = folder, node, period_ns
        self._file = -1
        self._columns = 0
        self._of_process: dict[tuple[int, int], int] = {}
        self._stopping = threading.Event()
        self._writing = threading.Lock()
        self._over = False
        self._thread = start_thread(self._run, "strobe gpus")

    def stop(self) -> None:
        """Read a last time, and end; nothing is written after this returns."""
        self._stopping.set()
        self._thread.join(_END_S)
        with self._writing:
            self._over = True
            if self._file >= 0:
                os.close(self._file)

    def _run(self) -> None:
        try:
            if not self._lock():
                return
            pynvml = self._load()
            if pynvml is not None:
                self._read_all(pynvml)
        except Exception as error:  # the trace is sound without it
            self._note("everything", f"reading GPUs failed: {error!r}")

    def _lock(self) -> bool:
        """Wait until we are who reads on this node; False if the program ended before."""
        path = os.path.join(self._folder, f"gpus-{self._node}.metrics")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            file, ours = opener(path, flags | os.O_EXCL), True
        except FileExistsError:
            file, ours = opener(path, flags), False
        while not self._stopping.is_set():
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                ours = True
            except BlockingIOError:
                ours = False
            except OSError:  # a file system without locks: who made the file reads
                if not ours:
                    break
            if ours:
                self._file = file
                return True
            self._stopping.wait(_LOCK_S)
        os.close(file)
        return False

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
            self._write(_READINGS, b"".join(parts))
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
        self._write(_ABOUT, json.dumps(about).encode())
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
        for pid, _ in known:
            if pid not in used:  # it has ended: one last reading of 0
                del self._of_process[gpu.index, pid]
        return [_group(middle, [float(used.get(pid, 0))], column) for pid, column in known]

    def _column(self, **facts: object) -> int:
        number = self._columns
        self._columns += 1
        self._write(_COLUMN, json.dumps({"column": number, **facts}).encode())
        return number

    def _refused(self, gpu: nvml.Gpu, names: Sequence[str], why: str) -> None:
        self._write(_NOTE, json.dumps({"gpu": gpu.index, "metrics": list(names), "why": why}).encode())

    def _note(self, what: str, why: str) -> None:
        self._write(_NOTE, json.dumps({"metrics": [what], "why": why}).encode())

    def _write(self, kind: int, payload: bytes) -> None:
        """Append a chunk, with one write(): who is killed in the middle leaves what was there before."""
        head = _HEADER.pack(_MAGIC, kind, _VERSION, len(payload), zlib.crc32(payload), 0)[:-4]
        with self._writing:
            if self._over or not payload or self._file < 0:
                return
            try:
                os.write(self._file, head + struct.pack("<I", zlib.crc32(head)) + payload)
            except OSError:  # a full disk: what was written counts
                self._over = True


def start(folder: str, period_ns: int) -> list[Sampler]:
    """Begin to read the GPUs of this node every `period_ns`; nothing if no thread is to be had."""
    from strobe.native import core

    try:
        return [Sampler(folder, core.node_name().replace("/", "_"), period_ns)]
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
