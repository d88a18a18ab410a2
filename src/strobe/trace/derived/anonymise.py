"""Traces without names: what is private in a trace folder becomes a pseudonym, numbers and times stay.

Block files are rewritten chunk by chunk: chunks of numbers (spans, statistics, iterations, graphs) are copied as they
are, those with texts are written anew, kinds that are not known are left out. Equal texts get equal pseudonyms.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strobe.model import manifest
from strobe.model.kinds import PARADIGMS, ROLES

_HEADER = struct.Struct("<4sBBHIIIIII")
_MAGIC = b"SRBK"
# Kinds of chunks: docs/format/blocks.md.
# Paths, spans, samples, classes, iterations, statistics, graph, side tables, lanes of GPUs.
_NUMBERS = {4, 5, 7, 10, 11, 12, 13, 15, 17}

_OPTIMIZERS = (
    "SGD|Adam|AdamW|Adamax|Adagrad|Adadelta|NAdam|RAdam|RMSprop|Rprop|LBFGS|ASGD|SparseAdam|Adafactor|Muon|"
    "ZeroRedundancyOptimizer|AcceleratedOptimizer"
)
# Names that are everybody's. What PyTorch names after a function of the user's own is not among them.
_EVERYBODYS = re.compile(
    r"(aten|c10|c10d|c10d_functional|_c10d_functional|prim|prims|torch|torch::autograd|nccl|gloo|symm_mem)::?[\w:.]+"
    r"|record_param_comms|strobe\.step|ProfilerStep#\d+|\[memory\]|ac2g|fwdbwd|async_cpu_to_gpu|async_gpu"
    r"|(autograd::engine::evaluate_function: )?(\w+Backward\d+|torch::autograd::(AccumulateGrad|CopySlices|GraphRoot))"
    rf"|Optimizer\.(step|zero_grad)#({_OPTIMIZERS})\.(step|zero_grad)"
    r"|enumerate\(DataLoader\)#_(Single|Multi)ProcessingDataLoaderIter\.__next__"
    r"|enumerate\(DataLoader\)#_SingleProcessDataLoaderIter\.__next__"
    r"|(cuda|cu|hip|cudnn|cublas|nvtx)[A-Z]\w*|Mem(cpy|set)( \w+( \(\w+ -> \w+\))?| \(\w+\))?"
    r"|nccl(Dev)?Kernel\w*(\([\w*:<>, ]*\))?|P?MPIX?_\w+"
    r"|(Context|Stream|Event|Device) (Sync|Synchronize|Wait Event)"
)
# Texts of side tables that are everybody's: numbers and lists of them, types, kinds of collectives and of links.
_PLAIN = re.compile(
    r"(\s|[\[\]{},:\"'+.()-]|\d|\b(float|double|half|int|long|short|char|byte|bool|unsigned|signed|size_t|c10|at|Half|"
    r"BFloat16|Float|Double|Int|Long|Byte|Bool|Float8_\w+|Scalar|ScalarList|Tensor|TensorList|GenericList|Device|"
    r"nullptr|null|None|true|false|True|False|inf|nan|e|s|t|f|n|"
    r"allreduce|all_reduce|broadcast|reduce|allgather|all_gather|reduce_scatter|alltoall|all_to_all|_?allgather_base|"
    r"_?reduce_scatter_base|gather|scatter|send|recv|barrier|wait|init|coalesced|all_reduce_barrier|default_pg|"
    r"ac2g|fwdbwd|async_cpu_to_gpu|cpu_instant_event|Context|Stream|Event|Sync|Wait|cuda|cpu)\b)*"
)
_KEYS = re.compile(
    r"(External id|Ev Idx|Fwd thread id|Sequence number|Record function id|Trace (name|iteration)|Call stack|"
    r"Profiler Event Index|Device|cbid|correlation|stream|device|context|Collective name|dtype|Process Group (ID|Name)|"
    r"Kernel Type|Module Hierarchy|finished|Overhead \w+|Python \w+ id|Input \w+|Output \w+|Concrete Inputs|"
    r"tag|count|source|destination|root|communicator)"
)
_LOCATION_NAMES = re.compile(
    r"(GPU \d+ stream \d+|thread \d+|MainThread|main|PyTorch Profiler|profiler)( \(lane \d+\))?"
)
_METRICS = re.compile(
    r"(cpu|gpu|memory|rss|io|disk|network|threads?|context_switches|page_faults|read|write|user|system|bytes|time|"
    r"faults|major|minor|voluntary|involuntary|switches|resident|virtual|[ _:/.])+"
)


def rewrite(folder: Path) -> None:
    """Replace what is private in the files of a trace folder. Everything but blocks and job.json must not be there."""
    names = _Pseudonyms()
    files = sorted(folder.glob("process-*.blocks"), key=lambda path: int(re.sub(r"\D", "", path.name) or 0))
    for path in files:
        work = path.with_suffix(".anonymous")
        _rewrite_blocks(path, work, names)
        work.replace(path)
    job = folder / "job.json"
    text = json.dumps(_job(json.loads(job.read_text(encoding="utf-8")), names), indent=1)
    job.write_text(manifest.sealed(text) + "\n", encoding="utf-8")


class _Pseudonyms:
    """`function_12` stands for the twelfth function; equal texts get equal pseudonyms."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def hide(self, kind: str, text: str, suffix: str = "") -> str:
        if not text:
            return text
        known = self._known.get((kind, text))
        if known is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._known[kind, text] = f"{kind}_{number}{suffix}"
        return known

    def file(self, path: str) -> str:
        ending = re.search(r"\.(py|c|cc|cpp|cu|h|hpp|so|f90|jl|pyx)$", path)
        return self.hide("file", path, ending[0] if ending else "")

    def region(self, name: str, paradigm: int, role: int) -> str:
        if _EVERYBODYS.fullmatch(name):
            return name
        optimizer = re.match(r"Optimizer\.(step|zero_grad)#", name)
        if optimizer:
            hidden = self.hide("Optimizer", name[optimizer.end() :].rpartition(".")[0])
            return f"{optimizer[0]}{hidden}.{optimizer[1]}"
        for prefix in ("autograd::engine::evaluate_function: ", "enumerate(DataLoader)#"):
            if name.startswith(prefix):
                return prefix + self.hide("function", name.removeprefix(prefix))
        kind = ROLES[role] if role < len(ROLES) else "region"
        who = PARADIGMS[paradigm] if paradigm < len(PARADIGMS) else ""
        return self.hide("function" if kind in ("other", "function") or who == "python" else kind, name)

    def text(self, text: str) -> str:
        if _EVERYBODYS.fullmatch(text) or _KEYS.fullmatch(text) or (len(text) < 10_000 and _PLAIN.fullmatch(text)):
            return text
        # Values of arguments are JSON: a text of it stays one.
        return json.dumps(self.hide("text", text)) if text[:1] in '"[{' else self.hide("text", text)


def _rewrite_blocks(path: Path, to: Path, names: _Pseudonyms) -> None:
    from strobe import native

    with path.open("rb") as source, to.open("wb") as out:
        while len(head := source.read(_HEADER.size)) == _HEADER.size:
            magic, kind, version, flags, size, location, count, crc, unused, crc_head = _HEADER.unpack(head)
            payload = source.read(size)
            sound = magic == _MAGIC and crc_head == native.core.crc32c(head[:28]) and crc == native.core.crc32c(payload)
            if not sound:
                return  # after damage, chunks cannot be found
            if kind in _NUMBERS:
                out.write(head + payload)
            elif kind in _CHANGES:
                new = _CHANGES[kind](memoryview(payload), count, names)
                crc = native.core.crc32c(new)
                fields = (magic, kind, version, flags, len(new), location, count, crc, unused)
                first = _HEADER.pack(*fields, 0)[:28]
                out.write(first + struct.pack("<I", native.core.crc32c(first)) + new)


class _Cursor:
    """Reads the scalars and texts of a payload, and collects what is written instead."""

    def __init__(self, payload: memoryview) -> None:
        self._payload, self._at, self.out = payload, 0, bytearray()

    def copy(self, layout: str) -> tuple[Any, ...]:
        shape = struct.Struct("<" + layout)
        values = shape.unpack_from(self._payload, self._at)
        self.out += self._payload[self._at : self._at + shape.size]
        self._at += shape.size
        return values

    def take(self, length: str = "H") -> str:
        shape = struct.Struct("<" + length)
        (size,) = shape.unpack_from(self._payload, self._at)
        begin = self._at + shape.size
        self._at = begin + size
        return bytes(self._payload[begin : self._at]).decode("utf-8", "replace")

    def put(self, text: str, length: str = "H") -> None:
        raw = text.encode()
        self.out += struct.pack("<" + length, len(raw)) + raw

    def rest(self) -> bytes:
        return bytes(self.out) + bytes(self._payload[self._at :])


def _regions(payload: memoryview, count: int, names: _Pseudonyms) -> bytes:
    cursor = _Cursor(payload)
    for _ in range(count):
        _, paradigm, role, _ = cursor.copy("IBBI")
        name, file, module = cursor.take(), cursor.take(), cursor.take()
        cursor.put(names.region(name, paradigm, role))
        cursor.put(names.file(file))
        cursor.put(names.hide("module", module))
    return cursor.rest()


def _location(payload: memoryview, _: int, names: _Pseudonyms) -> bytes:
    cursor = _Cursor(payload)
    cursor.copy("QB")
    name = cursor.take()
    base, lane, number = name.partition(" (lane ")
    cursor.put(name if _LOCATION_NAMES.fullmatch(name) else names.hide("thread", base) + lane + number)
    return cursor.rest()


def _metric(payload: memoryview, _: int, names: _Pseudonyms) -> bytes:
    cursor = _Cursor(payload)
    name = cursor.take()
    cursor.put(name if _METRICS.fullmatch(name) else names.hide("metric", name))
    unit = cursor.take()
    cursor.put(unit if re.fullmatch(r"[\w/%^2]{0,8}", unit) else names.hide("unit", unit))
    return cursor.rest()


def _loops(payload: memoryview, count: int, names: _Pseudonyms) -> bytes:
    cursor = _Cursor(payload)
    for _ in range(count):
        cursor.copy("IB")
        name = cursor.take()
        cursor.put(names.region(name, PARADIGMS.index("python"), ROLES.index("function")))
        cursor.copy("qQq")
        cursor.take()
        cursor.put("found while it ran")
        cursor.put(cursor.take())
    return cursor.rest()


def _texts(payload: memoryview, count: int, names: _Pseudonyms) -> bytes:
    cursor = _Cursor(payload)
    for _ in range(count):
        cursor.put(names.text(cursor.take("I")), "I")
    return cursor.rest()


def _process(payload: memoryview, _: int, names: _Pseudonyms) -> bytes:
    process = json.loads(bytes(payload))
    facts = process.get("description") or {}
    argv = facts.get("argv")
    kept = {
        "argv": [names.hide("program", " ".join(map(str, argv if isinstance(argv, list) else [argv])))] if argv else [],
        "host": names.hide("host", str(facts.get("host") or "")),
        "python": "".join(re.findall(r"^[\d.]+", str(facts.get("python") or ""))),
        "main": bool(facts.get("main")),
    }
    numbers = {key: value for key, value in process.items() if isinstance(value, (int, float, bool))}
    return json.dumps({**numbers, "description": kept}).encode()


def _note(payload: memoryview, _: int, __: _Pseudonyms) -> bytes:
    note = json.loads(bytes(payload))
    return json.dumps({key: note[key] for key in ("rank", "ranks") if isinstance(note.get(key), int)}).encode()


_CHANGES: dict[int, Callable[[memoryview, int, _Pseudonyms], bytes]] = {
    1: _process,
    2: _regions,
    3: _location,
    6: _metric,
    9: _loops,
    14: _texts,
    20: _note,
    8: lambda payload, *_: bytes(payload),  # the end of a recording
}
_OF_PROCESSES = ("rank", "clock_offset_ns", "clock", "clock_error_ns", "clock_points")


def _job(job: dict[str, Any], names: _Pseudonyms) -> dict[str, Any]:
    imported = job.get("imported") or {}
    files = [
        {"name": names.file(str(each.get("name"))), "format": each.get("format"), "rank": each.get("rank")}
        for each in imported.get("files") or ()
    ]
    processes = {
        stem: {key: value for key, value in facts.items() if key in _OF_PROCESSES}
        for stem, facts in (imported.get("processes") or {}).items()
    }
    return {
        **{key: job.get(key) for key in ("format_version", "zero_ns", "started_unix_ns")},
        "command": [names.hide("program", " ".join(map(str, job.get("command") or ())))],
        "host": names.hide("host", str(job.get("host") or "")),
        "ended": {key: value for key, value in (job.get("ended") or {}).items() if isinstance(value, int)},
        "imported": {"files": files, "processes": processes, "anonymous": True},
    }
