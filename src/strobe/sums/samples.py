"""Samples summed: time by thread, call stack, state and line, with those of folded steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from strobe.trace.trace import Trace

# A thread runs in the interpreter, in C code, or in the garbage collector; it could run, but waits for a processor
# (`ready`) or for the GIL; or it sleeps in the kernel: for a lock or another thread, for a file, for a socket or pipe,
# for a time, for something else, or for threads of native code that compute meanwhile.
RUNNING = ("python", "native", "collecting")
READY = ("ready", "gil")
WAITING = ("lock", "file", "socket", "sleep", "waiting", "threads")
STATES = (*RUNNING, *READY, *WAITING)
_FRAME = re.compile(r"(.+) \((.+):(\d{1,9})\)")


@dataclass(frozen=True)
class SampleSum:
    """Samples of one location with one call stack (outermost first), state, and line in the innermost function.

    `ran_ns` is CPU time; `other_ns` is what is left of the time that they stand for. Of samples without a time
    (imported ones), `ran_ns` is their number. `line` is 0 where it is not known: in folded steps.
    """

    location: int
    stack: tuple[str, ...]
    state: str
    line: int
    samples: int
    ran_ns: int
    other_ns: int


def sample_sums(trace: Trace, location: int | None = None, window: tuple[int, int] | None = None) -> list[SampleSum]:
    """Return the sums of a trace, none if nothing was sampled.

    `location`: of this one only. `window`: of single samples only those in [begin, end), ns; what was folded has no
    times.
    """
    return [*_sums(trace, "samples", location, window), *_sums(trace, "sample_totals", location)]


def _sums(trace: Trace, table: str, location: int | None, window: tuple[int, int] | None = None) -> Iterator[SampleSum]:
    rows = trace.side_table(table).to_arrow()
    if location is not None:
        rows = rows.filter(rows.column("location").to_numpy() == location)
    if window is not None:
        times = rows.column("time_ns").to_numpy()
        rows = rows.filter((times >= window[0]) & (times < window[1]))
    if not len(rows):
        return
    folded = table == "sample_totals"
    time = "total_ns" if folded else "period_ns"
    keys = ["location", "call_stack", "state", *(() if folded else ("line",))]
    wanted = [
        (time, "sum"),
        (time, "count"),
        ("cpu_ns", "sum"),
        ("samples", "sum") if folded else ("location", "count"),
    ]
    for row in rows.group_by(keys).aggregate(wanted).to_pylist():
        samples = row["samples_sum"] if folded else row["location_count"]
        stack = tuple((row["call_stack"] or "").split("\n")) if row["call_stack"] else ("<no Python code>",)
        timed = row[f"{time}_count"] > 0
        ran = row["cpu_ns_sum"] or 0 if timed else samples
        other = max(0, row[f"{time}_sum"] - ran) if timed else 0
        yield SampleSum(row["location"], stack, row["state"] or "", row.get("line") or 0, samples, ran, other)


def frame_of(text: str) -> tuple[str, str, int]:
    """Return name, file and first line of a function as a line of a call stack has them; "" and 0 where unknown."""
    match = _FRAME.fullmatch(text)
    return (match[1], match[2], int(match[3])) if match else (text, "", 0)
