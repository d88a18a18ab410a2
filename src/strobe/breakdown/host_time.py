"""Host time: what the main thread of each rank did in the steps, or in the whole run: from spans, and from samples.

Waiting for data, communication, operators and recorded I/O of files are measured. What is left is split as the samples
of the thread are, less those of these: an estimate. Without samples it is `unobserved`. While the thread waits for a
core, it is doing what it would do with one; `starved_ns` is that time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np

from strobe.breakdown.growth import waited_for_core_ns
from strobe.model.cancellation import pieces
from strobe.model.kinds import HOST_KINDS
from strobe.steps.batch_makers import batch_makers, generators, making_frames
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.selection import Selection, select, select_steps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import Ints, are_backward, innermost, kinds_of, main_location
from strobe.sums.path_statistics import (
    OF_LIBRARIES,
    PathStatistics,
    caller_of,
    is_own_function,
    location_statistics,
    one_for_each_name,
)
from strobe.sums.samples import (
    CHILD,
    IDLE,
    NO_STACK,
    RUNNING,
    STATES,
    WAITING,
    SampleSum,
    frame_of,
    is_python,
    sample_sums,
    with_line,
)
from strobe.trace.definition_rows import Process, Region, location_rows, process_rows, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# What spans tell, and what it is called among HOST_KINDS.
MEASURED = {"data": "data_wait", "communication": "communication", "operators": "operators"}
KINDS = (*MEASURED, *RUNNING, "gil", *WAITING, "unobserved")
# Fewer samples are not split.
_FEWEST_SAMPLES = 20
# Of one stray sample nothing follows: it has this share of some seconds at most.
STRAY = 0.005
# A function with this share of a kind, or more, is where most of it passes.
MOSTLY = 0.5
# Operators are rather named by the function that calls so many of them.
_MANY = 0.45
# One of three threads or more runs this part of what they all run; one of two, or of processes: the work is uneven.
_MOSTLY_ONE, _NEARLY_ALL = 0.6, 0.8
# One that lasts for more than this of the steps is the step itself.
_THE_STEP = 0.9
_IMPORTS = "(<frozen importlib"
# Frames in which the thread waits for its next batch, beside those of batch makers, and in which it waits for other
# ranks.
_LOADER, _FETCH = "/torch/utils/data/", "/torch/utils/data/_utils/fetch.py"
_OF_RANKS = ("/torch/distributed/", "/torch/autograd/")
# Calls of the C library that move data of files, and the share of the time in them that a thread sleeps if the data do
# not come from memory.
_FILE_CALL = re.compile(r"\w*?(p?(read|write)v?2?|fsync|fdatasync|msync|fadvise)(64)?(_nocancel)? \(libc\b.*")
_SLEEPS = 0.25
# Waits that take no longer on a busy machine.
_LASTING = ("file", "socket", "sleep")
_INTERNAL = re.compile(r"^_+(GI_+)?(libc_)?")  # how names inside of the C library begin


@dataclass(frozen=True)
class Place:
    """The function of the program in which most of the time of a kind passed, and how much of it (0 to 1).

    generates: it is a generator that yields in a loop. files: it was seen to wait for files, too. caller: the program's
    own function that makes nearly all of the calls, with its place; "" where it is one itself, or where several do.
    callee: the function of a library that it calls for most of this time.
    """

    name: str
    where: str  # file:line, "" where unknown
    share: float
    generates: bool = False
    files: bool = False
    caller: str = ""
    callee: str = ""


@dataclass(frozen=True)
class HostTime:
    """The time of a process's main thread by kind (KINDS), ns: the kinds add up to `duration_ns`.

    steps: the steady steps of the main loop, with a step's mean `duration_ns / steps`; 0: of the whole run without its
    imports, which took `imports_ns`. starved_ns: of all of that, when others had its cores. samples: those of the
    thread meanwhile. functions: their time by the program's own function (as a line of a call stack has it), and by
    state.
    """

    process: int
    rank: int | None
    steps: int
    duration_ns: int
    starved_ns: int
    samples: int
    kinds_ns: dict[str, int]
    places: dict[str, Place]
    functions: dict[str, Counter[str]]
    imports_ns: int = 0
    window_ns: tuple[int, int] | None = None  # from the first of the steps to the last; None: the whole run

    @property
    def per_step_ns(self) -> dict[str, float]:
        """Means of a step."""
        return {kind: ns / max(1, self.steps) for kind, ns in self.kinds_ns.items()}


@cached_on_trace
def host_times(trace: Trace) -> tuple[HostTime, ...]:
    """Return the host time of every rank, or of the first process that has steps, else of the main process."""
    of_steps = {each.process: each for each in find_steps(trace).processes if each.steady.any()}
    processes = process_rows(trace)
    ranks = [each for each in processes if each.rank is not None]
    if of_steps:
        chosen = [each for each in ranks if each.process in of_steps] or [processes[min(of_steps)]]
        return tuple(_of_steps(trace, each, of_steps[each.process]) for each in pieces(chosen))
    chosen = ranks or [each for each in processes if each.main][:1]
    return tuple(found for each in chosen if (found := _of_run(trace, each)) is not None)


def _of_steps(trace: Trace, process: Process, steps: ProcessSteps) -> HostTime:
    loop = int(np.bincount(steps.loop, weights=steps.duration_ns * steps.steady).argmax())
    rows = np.flatnonzero(steps.steady & (steps.loop == loop))
    selection = select_steps(trace, {process.process: rows + steps.first_number})
    location = main_location(trace, process.process)
    assert location is not None
    window = int(steps.start_ns[rows[0]]), int(steps.end_ns[rows[-1]])
    sums = sample_sums(trace, location, window)
    duration = int(steps.duration_ns[rows].sum())
    starved = waited_for_core_ns(trace, process.process, steps.start_ns[rows], steps.end_ns[rows])
    sums = _woken(sums, starved / duration)
    measured = _measured(trace, selection, location, _cells(steps, rows))
    found = _split(trace, process, sums, duration, measured)
    return replace(found, steps=len(rows), starved_ns=min(starved, duration), window_ns=window)


def _of_run(trace: Trace, process: Process) -> HostTime | None:
    # A thread that ran no recorded function holds no spans.
    threads = [each for each in location_rows(trace) if (each.process, each.kind) == (process.process, "thread")]
    own = (each.location for each in threads if each.thread_id == process.pid)
    location = next(own, main_location(trace, process.process))
    sums = [] if location is None else sample_sums(trace, location)
    of_imports = [any(_IMPORTS in frame for frame in each.stack) for each in sums]
    imports = sum(each.ran_ns + each.other_ns for each in compress(sums, of_imports))
    sums = [each for each, imported in zip(sums, of_imports, strict=True) if not imported]
    if location is None or sum(each.samples for each in sums) < _FEWEST_SAMPLES:
        return None
    duration = sum(each.ran_ns + each.other_ns for each in sums)
    found = _split(trace, process, sums, duration, _measured(trace, select(trace, "all"), location, {}))
    return replace(found, imports_ns=imports)


@dataclass(frozen=True)
class Others:
    """What others do while the main thread waits: other threads of its process, or its children.

    who: "4 other threads", "2 child processes", "1 child process solver". shares: of their sampled time, by state (0 to
    1). samples: how many. places: as in `HostTime`. busiest_ns: in which one of them has something to do, the one with
    most of it. one: which of them runs most of the time that they run, "" where none does; of_one: its part (0 to 1).
    """

    who: str
    shares: dict[str, float]
    samples: int
    places: dict[str, Place]
    busiest_ns: int
    one: str = ""
    of_one: float = 0.0

    @property
    def busy(self) -> float:
        """The share of their time in which they have something to do, 0 to 1."""
        return sum(share for state, share in self.shares.items() if state not in IDLE)


def others_of(trace: Trace, time: HostTime) -> Others | None:
    """Return what the other threads of a process did in its steps, or its children: those that were busier.

    None where no sample tells.
    """
    main = main_location(trace, time.process)
    processes = {each.process: each for each in process_rows(trace)}
    pid = processes[time.process].pid
    threads = [each for each in location_rows(trace) if each.kind == "thread"]
    of_process = [each for each in threads if each.process == time.process]
    main = next((each.location for each in of_process if each.thread_id == pid), main)
    own = [each.location for each in of_process if each.location != main]
    beside = [each for each in threads if each.process != time.process]
    children = [each.location for each in beside if processes[each.process].parent_pid == pid]
    both = (_others(trace, time, who, of) for who, of in (("other thread", own), ("child process", children)))
    found = max(filter(None, both), key=lambda each: each.busy, default=None)
    of_children = [processes[each.process] for each in beside if each.location in children]
    names = {Path(each.argv.split()[0]).name for each in of_children if each.argv and not each.python}
    if found is not None and "child" in found.who and len(names) == 1:
        return replace(found, who=f"{found.who} {names.pop()}")
    return found


def _others(trace: Trace, time: HostTime, who: str, locations: Sequence[int]) -> Others | None:
    sums = {location: sample_sums(trace, location, time.window_ns) for location in locations}
    busy = _settled(
        trace,
        [
            each
            for location in locations
            if any(_state(one) not in IDLE for one in sums[location])
            for each in sums[location]
        ],
    )
    states, functions, _ = _by_state(trace, busy, False)
    samples = sum(each.samples for each in busy)
    if samples < _FEWEST_SAMPLES:
        return None
    busy_ns = Counter[int]()
    for each in busy:
        busy_ns[each.location] += 0 if _state(each) in IDLE else each.ran_ns + each.other_ns
    count = len(busy_ns)
    found = {state: place for state in states if (place := _place(trace, busy, functions, state)) is not None}
    whole = max(1, sum(states.values()))
    text = f"{count} {who}{'' if count == 1 else 'es' if who.endswith('s') else 's'}"
    shares = {state: ns / whole for state, ns in states.items()}
    return Others(text, shares, samples, found, max(busy_ns.values()), *_one_of(trace, busy, who))


def _one_of(trace: Trace, busy: Sequence[SampleSum], who: str) -> tuple[str, float]:
    """Return which of several threads runs most of the time in a function that they share, and its part; ("", 0): none.

    That of processes counts whatever the others run: workers that get nothing run nothing.
    """
    ran, functions = Counter[int](), dict[int, Counter[str]]()
    for each in busy:
        if _state(each) in RUNNING:
            ran[each.location] += each.ran_ns
            functions.setdefault(each.location, Counter())[own_frame(each.stack)] += each.ran_ns
    count = len({each.location for each in busy})
    (longest, ns), *_ = ran.most_common(1) or [(-1, 0)]
    part = ns / max(1, ran.total())
    of_children = who.startswith("child")
    if count < 2 + of_children or part < (_NEARLY_ALL if count == 2 or of_children else _MOSTLY_ONE):
        return "", 0.0
    if of_children:
        return f"process {process_rows(trace)[trace.home(longest).process].pid}", part
    tops = [functions[at].most_common(1)[0][0] for at in ran if ran[at] > STRAY * ran.total()]
    return (location_rows(trace)[longest].name, part) if len(tops) > 1 and len({*tops}) == 1 else ("", 0.0)


def _woken(sums: Sequence[SampleSum], starved: float) -> list[SampleSum]:
    """Return samples of a thread with the time that it did not wait for a core among its other waits.

    Who waits for the GIL, or looks for something again and again, wakes up for an instant, often just when it is
    looked at: it could run then, and waits for no core. starved: the part of the time in which it did, 0: not known.
    """
    ready, waits, seen = (
        sum(each.ran_ns + each.other_ns for each in sums if each.state in states)
        for states in (("ready",), ("gil", *WAITING), STATES)
    )
    excess = ready - starved * seen
    if not starved or not waits or excess <= 0:
        return list(sums)
    factor = dict.fromkeys(("gil", *WAITING), 1 + excess / waits) | {"ready": 1 - excess / ready}
    return [replace(each, other_ns=round(each.other_ns * factor.get(each.state, 1))) for each in sums]


def _settled(trace: Trace, sums: Sequence[SampleSum]) -> list[SampleSum]:
    """Return the samples of threads with the time that they had no core where it belongs.

    Samples by CPU time have it with what was computed next, which may be what follows a wait. It is spread over all but
    waits for threads, which last longer themselves on a busy machine. What a thread computes in calls that move data of
    files is I/O if it sleeps in them, too, and else a copy in memory.
    """
    python = {each.process for each in process_rows(trace) if each.python}
    process = [each.process for each in location_rows(trace)]
    runs = [each.state in RUNNING and process[each.location] not in python for each in sums]
    lasts = [each.other_ns if each.state in _LASTING else 0 for each in sums]
    own_ns = [each.ran_ns if ran else last for each, ran, last in zip(sums, runs, lasts, strict=True)]
    lacked = sum(each.other_ns for each in compress(sums, runs)) / max(1, sum(own_ns))
    moves = [each.state == "native" and bool(_FILE_CALL.fullmatch(each.stack[-1])) for each in sums]
    slept = sum(each.other_ns for each in sums if each.state == "file")
    sleeps = slept > _SLEEPS * (slept + sum(each.ran_ns for each in compress(sums, moves)))
    return [
        replace(
            each,
            state="file" if sleeps and moved else each.state,
            other_ns=(0 if ran else each.other_ns) + round(own * lacked),
        )
        for each, ran, own, moved in zip(sums, runs, own_ns, moves, strict=True)
    ]


def _split(trace: Trace, process: Process, sums: Sequence[SampleSum], duration: int, measured: _Measured) -> HostTime:
    """The host time of a whole run: what is not measured is split as the samples are."""
    sums = _settled(trace, sums)
    times_ns, places = measured.times_ns, dict(measured.places)
    talks = bool(times_ns["communication"]) or len(trace.side_table("collective_spans")) > 0
    states, functions, waited = _by_state(trace, sums, talks)
    samples = sum(each.samples for each in sums)
    kinds, rest = dict.fromkeys(KINDS, 0) | times_ns, max(0, duration - sum(times_ns.values()))
    seen = sum(states.values()) + sum(waited.values())
    if samples < _FEWEST_SAMPLES or not seen:
        kinds["unobserved"] = rest
    else:
        # Samples of a part of the steps stand for all.
        scale = duration / seen
        left = Counter({state: round(ns * scale) for state, ns in states.items()})
        waits = round(waited["communication"] * scale)
        _take(left, ("native", "python"), times_ns["operators"])
        _take(left, ("file", "native"), times_ns["file"])
        _take(left, ("native", *WAITING, "python"), max(0, times_ns["communication"] - waits))
        if waits > times_ns["communication"]:
            rest -= min(rest, waits - times_ns["communication"])
            kinds["communication"] = waits
        whole = sum(left.values())
        for state, ns in left.items():
            kinds[state] += round(ns / whole * rest) if whole else 0
        kinds["unobserved"] = 0 if whole else rest
        places |= {state: found for state in states if (found := _place(trace, sums, functions, state)) is not None}
    largest = max(kinds, key=kinds.__getitem__)
    kinds[largest] += duration - sum(kinds.values())  # what rounding left
    return HostTime(process.process, process.rank, 0, duration, 0, samples, kinds, places, functions)


@dataclass(frozen=True)
class _Measured:
    """The time of each of the kinds MEASURED, ns, and the function with most of it."""

    times_ns: dict[str, int]
    places: dict[str, Place]


def _cells(steps: ProcessSteps, rows: Ints) -> dict[str, int]:
    """Return the time of some steps by kind, as far as their cells are known, ns."""
    if steps.cells.columns is None:
        return {"data": int(steps.cells.waiting_ns[rows].sum())}
    of_kind = dict(zip(HOST_KINDS, steps.cells.sums(rows).sum(axis=0).tolist(), strict=True))
    return {name: of_kind[kind] for name, kind in MEASURED.items()}


def _measured(trace: Trace, selection: Selection, location: int, cells_ns: dict[str, int]) -> _Measured:
    """What was measured, where most of it was. What is not among the cells is what was recorded of calls."""
    own = location_statistics(trace, selection, location)
    regions = region_rows(trace)
    facts = zip(*((each.name, each.paradigm, each.role) for each in regions), strict=True)
    kind = kinds_of(*map(list, facts))[own.region] if regions else np.zeros(0, dtype=np.int8)
    of_data = np.array([regions[at].group == "data" for at in own.region.tolist()], dtype=bool)
    of_data |= batch_makers(trace)[location_rows(trace)[location].process]
    fed = innermost(own.parent, of_data) >= 0
    times_ns, named = {"data": 0}, one_for_each_name(trace)
    places: dict[str, Place] = {}
    of_kind = {name: kind == HOST_KINDS.index(name) for name in ("communication", "operators")}
    of_kind["file"] = np.array([regions[at].role == "io" for at in own.region.tolist()], dtype=bool)
    for name, of_name in of_kind.items():
        time_ns = own.own_ns * (of_name & ~fed)
        times_ns[name] = int(time_ns.sum())
        if times_ns[name] > 0:
            # Calls of MPI have a region for each peer.
            by_region = np.bincount(named[own.region], weights=time_ns)
            most = int(by_region.argmax())
            caller = caller_of(own, regions, named[own.region], most)
            places[name] = Place(regions[most].name, "", float(by_region[most] / times_ns[name]), caller=caller)
            if name == "operators" and places[name].share < MOSTLY:
                places[name] = _function_of(own, regions, time_ns) or places[name]
    times_ns |= cells_ns
    if times_ns["data"] and (found := fetching(trace)) is not None:
        places["data"] = found
    return _Measured(times_ns, places)


def _function_of(own: PathStatistics, regions: Sequence[Region], time_ns: Ints) -> Place | None:
    """Return the program's own function that makes the calls of most of some time, by call path.

    None where there is none, or where it is the step itself, or trains.
    """
    functions = [is_own_function(each) and each.name[-1] != ">" for each in regions]
    maker = innermost(own.parent, np.array(functions, dtype=bool)[own.region])
    by_region = np.bincount(own.region[maker[maker >= 0]], weights=time_ns[maker >= 0], minlength=len(regions))
    most, whole = int(by_region.argmax()), max(1, int(time_ns.sum()))
    inside = innermost(own.parent, own.region == most) >= 0
    trains = are_backward([regions[at].name for at in np.unique(own.region[inside]).tolist()]).any()
    if by_region[most] < _MANY * whole or trains or own.own_ns[inside].sum() > _THE_STEP * own.own_ns.sum():
        return None
    function = regions[most]
    return Place(function.name, f"{function.file}:{function.line}", float(by_region[most] / whole))


def at_work(trace: Trace, time: HostTime) -> Place | None:
    """Return the program's own function in which most of what a main thread does passes in its loop, by samples.

    Its share is that of all samples but those that wait for other ranks. Closures count as the function around them.
    """
    location, by_name, where = main_location(trace, time.process), Counter[str](), dict[str, str]()
    for each in sample_sums(trace, location, time.window_ns) if location is not None else ():
        if _state(each) in WAITING and _for_ranks(each.stack):
            continue
        name, file, line = frame_of(own_frame(each.stack)) if each.stack != (NO_STACK,) else ("", "", 0)
        name = name.partition(".<locals>")[0]
        by_name[name] += each.ran_ns + each.other_ns
        where.setdefault(name, f"{file}:{line}" if file else "")
    if not by_name:
        return None
    (name, ns), *_ = by_name.most_common(1)
    return Place(name, where[name], ns / max(1, by_name.total())) if name else None


@cached_on_trace
def fetching(trace: Trace) -> Place | None:
    """Return the program's own function in which most of the making of batches passes, in any process, by samples.

    What samplers of a loader do counts as well; waiting for its workers does not.
    """
    by_frame, makers = Counter[str](), making_frames(trace)
    for each in sample_sums(trace):
        of_loader = _LOADER if _state(each) in RUNNING else _FETCH
        first = next((at for at, frame in enumerate(each.stack) if of_loader in frame or frame in makers), None)
        if first is not None:
            by_frame[own_frame(each.stack[first:])] += each.ran_ns + each.other_ns
    if not by_frame:
        return None
    (frame, ns), *_ = by_frame.most_common(1)
    name, file, line = frame_of(frame)
    return Place(name, f"{file}:{line}" if file else "", ns / sum(by_frame.values()))


def _by_state(
    trace: Trace, sums: Sequence[SampleSum], talks: bool
) -> tuple[Counter[str], dict[str, Counter[str]], Counter[str]]:
    """Return the time by state, by the program's own function and state; and what waits for data and other ranks."""
    states, waited, makers = Counter[str](), Counter[str](), making_frames(trace)
    functions: dict[str, Counter[str]] = {}
    for each in sums:
        state, time_ns = _state(each), each.ran_ns + each.other_ns
        if any(_LOADER in frame or frame in makers for frame in each.stack):
            waited["data"] += time_ns
        elif talks and state in WAITING and _for_ranks(each.stack):
            waited["communication"] += time_ns
        else:
            states[state] += time_ns
            if each.stack != (NO_STACK,):
                functions.setdefault(own_frame(each.stack), Counter())[state] += time_ns
    ready, ran = states.pop("ready", 0), sum(states[state] for state in RUNNING)
    for state in RUNNING if ran else ():
        states[state] += round(ready * states[state] / ran)
    return states, functions, waited


def _for_ranks(stack: Sequence[str]) -> bool:
    """Return whether a thread that waits there waits for other ranks: PyTorch does, and not a function that it calls.

    Stages of a pipeline and autograd functions are the program's own, and are called from there.
    """
    return any(name in frame for frame in stack[_own_at(stack) :] for name in _OF_RANKS)


def _state(each: SampleSum) -> str:
    if each.state == "lock" and _of_library(each.stack[-1]):
        return "waiting"  # an event, a queue, the end of a thread: not a lock of the program's own
    if each.state in STATES:
        return each.state
    # Samples of other tools have no state; Python functions have a file of Python.
    return "python" if is_python(each.stack[-1]) else "native"


def _of_library(frame: str) -> bool:
    # Of a shared library without line numbers: `sin (libm.so.6)`.
    return frame.startswith(CHILD) or any(part in frame for part in OF_LIBRARIES) or ".so" in frame.rpartition(" (")[2]


def own_frame(stack: Sequence[str]) -> str:
    """Return the innermost frame of the program itself, as a line; the innermost of all where none is."""
    return own_and_called(stack)[0]


def own_and_called(stack: Sequence[str]) -> tuple[str, str]:
    """Return the innermost frame of the program itself, and that which it calls in a library, "" where it does not."""
    at = _own_at(stack)
    return stack[at], stack[at + 1] if at + 1 < len(stack) else ""


def _own_at(stack: Sequence[str]) -> int:
    return next((at for at in range(len(stack) - 1, -1, -1) if not _of_library(stack[at])), len(stack) - 1)


def _place(trace: Trace, sums: Sequence[SampleSum], functions: dict[str, Counter[str]], state: str) -> Place | None:
    """The function with most of a state, and the line in it where it was at least half of that time, else its first."""
    frame = max(functions, key=lambda each: functions[each][state], default=None)
    if frame is None or not functions[frame][state]:
        return None
    lines, callees = Counter[int](), Counter[str]()
    for each in sums:
        if _state(each) != state:
            continue
        if each.stack[-1] == frame:
            lines[each.line * (with_line(each.stack) == frame)] += each.ran_ns + each.other_ns
        own, called = own_and_called(each.stack)
        if called and own == frame:
            callees[_INTERNAL.sub("", called.partition(" (")[0])] += each.ran_ns + each.other_ns
    name, file, line = frame_of(frame)
    generates = (file, line) in generators(trace)
    (at, ns), *_ = lines.most_common(1) or [(0, 0)]
    if at and 2 * ns >= functions[frame][state]:
        line = at
    share = functions[frame][state] / sum(each[state] for each in functions.values())
    files = functions[frame]["file"] > STRAY * functions[frame][state]
    callee, in_it = next(iter(callees.most_common(1)), ("", 0))
    callee = callee if in_it >= MOSTLY * functions[frame][state] else ""
    return Place(name, f"{file}:{line}" if file else "", share, generates, files, callee=callee)


def _take(left: Counter[str], states: Sequence[str], ns: int) -> None:
    """Take so much from the states, in this order."""
    for state in states:
        taken = min(left[state], ns)
        left[state] -= taken
        ns -= taken
