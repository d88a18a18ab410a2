"""Samples summed: time by thread, call stack, state and line, with those of folded steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.tables.column_arrays import Columns, Ints
from strobe.trace.trace import Trace

# A thread runs in the interpreter, in C code, or in the garbage collector; it could run, but waits for a processor
# (`ready`) or for the GIL; or it sleeps in the kernel: for a lock or another thread, for a file, for a socket or pipe,
# for a time, for something else, or for threads of native code that compute meanwhile.
RUNNING = ("python", "native", "collecting")
READY = ("ready", "gil")
WAITING = ("lock", "file", "socket", "sleep", "waiting", "threads")
STATES = (*RUNNING, *READY, *WAITING)
# States in which a thread has nothing to do.
IDLE = ("socket", "waiting")
# Of a thread that ran no Python, or whose stack changed while it was looked at; of a native one that slept.
NO_STACK = "<no call stack>"
_OF_RECORDER = "/strobe/record/adapters/"
# How a line begins that is no function: the thread of a native program slept beside a child process of this name.
CHILD = "<child process "
_FRAME = re.compile(r"(.+) \((.+):(\d{1,9})\)")


@dataclass(frozen=True)
class SampleSum:
    """Samples of one location with one call stack (outermost first), state, and line in the innermost function.

    `ran_ns` is CPU time; `other_ns` is what is left of the time that they stand for. Of samples without a time
    (imported ones), `ran_ns` is their number. `line` is 0 where it is not known: in folded steps. With C code below
    Python functions it is of the innermost one of these.
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
    # From the columns as they are in the file: texts are numbers there, and nothing has to import `pyarrow.compute`.
    for process in range(len(trace.readers)) if location is None else [trace.home(location).process]:
        if trace.readers[process].tables().get(table):
            yield from _sums_of_process(trace, process, table, location, window)


def _sums_of_process(
    trace: Trace, process: int, table: str, location: int | None, window: tuple[int, int] | None
) -> Iterator[SampleSum]:
    raw, texts = trace.readers[process].table(table), trace.texts(process)
    folded = table == "sample_totals"
    of_locations = raw["location"].astype(np.int64)
    ours = {local: trace.location_of(process, local) for local in np.unique(of_locations).tolist()}
    chosen = np.array([ours[local] is not None for local in of_locations.tolist()], dtype=bool)
    if location is not None:
        chosen &= of_locations == trace.home(location).local_id
    columns = {name: (values.astype(np.int64), valid != 0) for name, (_, values, valid) in raw["columns"].items()}
    if window is not None:
        times_ns = columns["time_ns"][0] - trace.zero_of(process)
        chosen &= (times_ns >= window[0]) & (times_ns < window[1])
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return

    def column(name: str, missing: int) -> Ints:
        if name not in columns:
            return np.full(len(rows), missing, dtype=np.int64)
        values, valid = columns[name]
        return np.where(valid[rows], values[rows], missing)

    keys = np.stack(
        [of_locations[rows], column("call_stack", -1), column("state", -1), column("" if folded else "line", 0)]
    )
    _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    group = group.ravel()
    time = column("total_ns" if folded else "period_ns", -1)
    sums = [np.bincount(group, weights=each) for each in (np.maximum(time, 0), np.maximum(column("cpu_ns", 0), 0))]
    timed, all_ran = np.bincount(group, weights=time >= 0), np.bincount(group)
    samples = np.bincount(group, weights=column("samples", 0)) if folded else all_ran
    for at in np.argsort(first).tolist():
        local, stack, state, line = keys[:, first[at]].tolist()
        frames, own = stack_of(_text(texts, stack))
        count = int(samples[at])
        ran = int(sums[1][at]) if timed[at] else count
        other = max(0, int(sums[0][at]) - ran) if timed[at] else 0
        yield SampleSum(
            int(ours[local] or 0),
            frames,
            _text(texts, state),
            line if own else 0,
            count,
            ran,
            other,
        )


@dataclass(frozen=True)
class SampleRows(Columns):
    """Samples of one location in order of time: when each was taken, ns since the trace's zero; the time since the one
    before, ns; and its call stack and state as numbers in `Trace.texts` of the process, -1 where it has none.
    """

    time_ns: Ints
    period_ns: Ints
    call_stack: Ints
    state: Ints


def sample_rows(trace: Trace, location: int) -> SampleRows:
    """Return the single samples of a location that stand for a time; none of folded steps."""
    home = trace.home(location)
    if not trace.readers[home.process].tables().get("samples"):
        return SampleRows(*(np.empty(0, dtype=np.int64) for _ in range(4)))
    raw = trace.readers[home.process].table("samples")
    ours = raw["location"] == home.local_id

    def column(name: str) -> Ints:
        if name not in raw["columns"]:
            return np.full(int(ours.sum()), -1, dtype=np.int64)
        _, values, valid = raw["columns"][name]
        return np.where(valid[ours] != 0, values[ours].astype(np.int64), -1)

    time_ns = column("time_ns") - trace.zero_of(home.process)
    rows = SampleRows(time_ns, column("period_ns"), column("call_stack"), column("state"))
    order = np.argsort(time_ns, kind="stable")
    return rows.chosen(order[rows.period_ns[order] > 0])


def _text(texts: Sequence[str], number: int) -> str:
    return texts[number] if 0 <= number < len(texts) else ""  # lost in a damaged file


def stack_of(text: str) -> tuple[tuple[str, ...], bool]:
    """Return the frames of a call stack (a line each), and whether the innermost one is the program's.

    What strobe runs in place of a function of a server counts as the function that calls it.
    """
    frames = text.split("\n") if text else [NO_STACK]
    own = len(frames)
    while own > 1 and _OF_RECORDER in frames[own - 1]:
        own -= 1
    return tuple(frames[:own]), own == len(frames)


def frame_of(text: str) -> tuple[str, str, int]:
    """Return name, file and first line of a function as a line of a call stack has them; "" and 0 where unknown."""
    match = _FRAME.fullmatch(text)
    return (match[1], match[2], int(match[3])) if match else (text, "", 0)


def is_python(frame: str) -> bool:
    """Whether a function is Python's, by its file."""
    return frame_of(frame)[1].endswith((".py", ">"))


def with_line(stack: Sequence[str]) -> str:
    """Return the function that the line of a sample is in: the innermost one of Python, else the innermost one."""
    return next(filter(is_python, reversed(stack)), stack[-1])
