"""Logs of NCCL's Inspector (`NCCL_INSPECTOR_ENABLE`, HOST-pidN.log): collectives as NCCL timed them, a line each.

A line has the latest collective of a communicator since the line before, so others may be missing: numbers in
`collective_spans.sequence` have gaps there. A row of the timeline is a communicator. Times are those of the kernels
where the log is verbose. Else a collective ends when its line was written, up to an interval of the log too late;
`times_of_log` counts them. Durations are exact in both. `arguments` have NCCL's own bandwidths and the source of the
duration. The rank of the process is that in its largest communicator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from strobe.formats.reading.import_process import Cells, ImportProcess, present
from strobe.formats.reading.profile_import import clean
from strobe.formats.reading.sqlite_input import NONE
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.ranks.collective_kernels import FROM_INSPECTOR
from strobe.ranks.collective_kinds import kind_of

_HEAD = re.compile(rb'\s*\{\s*"header"\s*:\s*\{\s*"id"\s*:')
_LARGEST = 1 << 52  # microseconds: as nanoseconds they stay below 2^62
_LONGEST_LINE = 1 << 20
_FACTS = ("inspector_output_format_version", "git_rev", "rec_mechanism")
_ARGUMENTS = ("coll_timing_source", "coll_algobw_gbs", "coll_busbw_gbs")
# Of these the bytes in the log are what a rank puts in, of the second what it gets, where that is not the same.
_GATHERS, _SCATTERS = "allgather", "reducescatter"


@dataclass(frozen=True)
class _Communicator:
    name: str
    rank: int
    ranks: int


@dataclass(frozen=True)
class _Collective:
    """A line. `of_kernels`: begin and end are those of kernels, else of the log. Microseconds since 1970."""

    communicator: _Communicator
    name: str
    sequence: int | None
    size_bytes: int | None
    begin_us: int
    end_us: int
    of_kernels: bool
    arguments: tuple[str | None, ...]


def sniff(head: bytes) -> bool:
    """Return whether the first line has a communicator and a collective of it."""
    return _HEAD.match(head) is not None and b'"coll_perf"' in head and b'"coll_exec_time_us"' in head


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import the log of a process. Raises ValueError if none of its lines is of a collective."""
    process, about = ImportProcess(target, 0), dict[str, object]()  # the facts of the first line
    found = list(_collectives(source, process, about))
    if not found:
        raise ValueError("none of its lines has a collective with a duration")
    pid, host = about.get("pid"), about.get("hostname")
    if _is_number(pid):
        process.pid = pid
    begin, end = (np.array([getattr(each, name) for each in found]) for name in ("begin_us", "end_us"))
    base_us = int(begin.min())
    process.count("times_of_log", sum(not each.of_kernels for each in found))
    process.spans(
        np.array([_location(process, each.communicator) for each in found], dtype=np.uint32),
        (begin - base_us) * 1000,
        (end - base_us) * 1000,
        np.array([_region(process, each.name) for each in found], dtype=np.uint32),
        {"collective_spans": _attributes(process, found)},
        [(name, _texts(process, [each.arguments[at] for each in found])) for at, name in enumerate(_ARGUMENTS)],
    )
    largest = max((each.communicator for each in found), key=lambda each: each.ranks)
    process.finish(source.name, source.name, main=True, rank=largest.rank, ranks=largest.ranks)
    return Imported(
        processes=1,
        first_ns=process.first_ns,
        last_ns=process.last_ns,
        base_ns=base_us * 1000,
        rank=largest.rank,
        ranks=largest.ranks,
        host=host if isinstance(host, str) else "",
        properties={key: about[key] for key in _FACTS if about.get(key) and isinstance(about[key], str)},
    )


def _collectives(source: ImportSource, process: ImportProcess, about: dict[str, object]) -> Iterator[_Collective]:
    """Yield the lines that are whole, and put the facts of the first one into `about`; the others are counted."""
    communicators: dict[_Communicator, _Communicator] = {}
    for line in _lines(source):
        try:
            each = json.loads(line)
            header, metadata, timed = each["header"], each["metadata"], each["coll_perf"]
            one = _Communicator(header["id"], header["rank"], header["n_ranks"])
            found = _collective(communicators.setdefault(one, one), metadata, timed)
        except (ValueError, KeyError, TypeError, RecursionError):
            found = None
        if found is None:
            process.left_out("damaged_records")
            continue
        about |= {} if about else metadata
        process.taken()
        yield found


def _collective(of: _Communicator, metadata: Mapping[str, object], timed: Mapping[str, object]) -> _Collective:
    """Return a line's collective. Raises ValueError or TypeError where it has no soundly timed one."""
    took_us, written_us, name = timed["coll_exec_time_us"], metadata["dump_timestamp_us"], timed["coll"]
    if not (_is_number(of.rank) and _is_number(of.ranks) and of.rank < of.ranks and isinstance(of.name, str)):
        raise ValueError
    if not (isinstance(name, str) and _is_number(took_us) and _is_number(written_us) and took_us <= written_us):
        raise ValueError
    begins = [each.get("kernel_start_ts") for each in _kernels(timed)]
    begin_us = min((each for each in begins if _is_number(each) and each), default=None)
    sequence, size = timed.get("coll_sn"), timed.get("coll_msg_size_bytes")
    return _Collective(
        of,
        name,
        sequence if _is_number(sequence) else None,
        size if _is_number(size) else None,
        written_us - took_us if begin_us is None else begin_us,
        written_us if begin_us is None else begin_us + took_us,
        begin_us is not None,
        tuple(None if timed.get(key) is None else str(timed[key]) for key in _ARGUMENTS),
    )


def _kernels(timed: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return what a verbose log has of the kernels of a collective, one for each channel."""
    trace = timed.get("event_trace_ts")
    kernels = trace.get("kernel_events") if isinstance(trace, dict) else None
    return [each for each in kernels if isinstance(each, dict)] if isinstance(kernels, list) else []


def _lines(source: ImportSource) -> Iterator[bytes]:
    """Yield the lines of a file; what is longer than any that NCCL writes comes in pieces."""
    waiting = b""
    for chunk in source.chunks():
        *whole, waiting = (waiting + chunk).split(b"\n")
        if len(waiting) > _LONGEST_LINE:
            whole, waiting = [*whole, waiting], b""
        yield from filter(bytes.strip, whole)
    if waiting.strip():
        yield waiting


def _location(process: ImportProcess, communicator: _Communicator) -> int:
    return process.location(communicator, clean(f"communicator {communicator.name}"), 0, "task")


def _region(process: ImportProcess, name: str) -> int:
    role = "p2p" if kind_of(name) in ("send", "recv", "sendrecv") else "collective"
    return process.region(clean(f"nccl{name}"), "torch", role, FROM_INSPECTOR)


def _attributes(process: ImportProcess, found: Sequence[_Collective]) -> dict[str, Cells]:
    """Return the columns of `collective_spans`. Of gathers and scatters NCCL has the bytes of one rank's part."""
    kinds = [kind_of(each.name) for each in found]
    parts = [(each.size_bytes, each.communicator.ranks) for each in found]
    sent = [_times(part, kind == _SCATTERS) for part, kind in zip(parts, kinds, strict=True)]
    received = [_times(part, kind == _GATHERS) for part, kind in zip(parts, kinds, strict=True)]
    return {
        "collective": _texts(process, [each.name for each in found]),
        "group": _texts(process, [each.communicator.name for each in found]),
        "group_size": _integers([each.communicator.ranks for each in found]),
        "rank": _integers([each.communicator.rank for each in found]),
        "sequence": _integers([each.sequence for each in found]),
        "sent_bytes": _integers([None if kind == "recv" else n for n, kind in zip(sent, kinds, strict=True)]),
        "received_bytes": _integers([None if kind == "send" else n for n, kind in zip(received, kinds, strict=True)]),
    }


def _times(part: tuple[int | None, int], all_ranks: bool) -> int | None:
    size, ranks = part
    whole = None if size is None else size * ranks if all_ranks else size
    return whole if _is_number(whole) else None


def _integers(values: Sequence[int | None]) -> Cells:
    return present(np.array([NONE if each is None else each for each in values], dtype=np.int64))


def _texts(process: ImportProcess, values: Sequence[str | None]) -> Cells:
    numbers = [0 if each is None else process.text(clean(each)) for each in values]
    return np.array(numbers, dtype=np.int64), np.array([each is not None for each in values], dtype=np.uint8)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


FORMAT = Format(
    "nccl_inspector",
    "NCCL Inspector log (NCCL_INSPECTOR_ENABLE, HOST-pidN.log)",
    suffixes=(".log",),
    sniff=sniff,
    read=read,
)
