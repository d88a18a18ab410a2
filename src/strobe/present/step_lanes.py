"""The typical step as lanes of one time axis: what the thread of the loop did, and what the GPUs did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from strobe.breakdown.host_time import HostTime, host_times
from strobe.model.kinds import HOST_KINDS, Group
from strobe.model.plugins import Evidence
from strobe.model.units import format_ns, format_number_of, format_share
from strobe.present.gpus import Gpu
from strobe.steps.selection import select, select_steps
from strobe.steps.thread_spans import kinds_of, main_location
from strobe.steps.usual_steps import Usual
from strobe.sums.path_statistics import PathStatistics, location_statistics, one_for_each_name
from strobe.trace.definition_rows import location_rows, process_rows, ranks_of, region_rows
from strobe.trace.trace import Trace

# GPUs shown: of more, those with the most idle time.
MOST_GPUS = 4
# Functions that have a segment of their own: this many, with this share of the step each.
_MOST_FUNCTIONS, _LEAST_SHARE = 6, 0.03


class _Look(NamedTuple):
    """Name, colour, and page with the evidence of what passes time."""

    name: str
    group: Group
    page: str = "profile"
    region: str = ""


_PHASES = {
    "data_wait": _Look("data_wait", "data", "data"),
    "forward": _Look("forward", "compute", "timeline"),
    "backward": _Look("backward", "compute", "timeline"),
    "optimizer": _Look("optimizer", "compute", "timeline"),
    "validation": _Look("validation", "compute", "steps"),
    "rest": _Look("rest", "host", "timeline"),
}
# Kinds of host time, and cells.
_KINDS = {
    "data": _Look("waits for data", "data", "data"),
    "data_wait": _Look("waits for data", "data", "data"),
    "communication": _Look("communicates", "communication", "ranks"),
    "operators": _Look("operators", "compute", "operators"),
    "gpu_wait": _Look("waits for the GPU", "sync", "timeline"),
    "gpu_call": _Look("calls of the GPU’s interface", "copy"),
    "native": _Look("native code", "compute"),
    "python": _Look("Python", "host"),
    "collecting": _Look("collects garbage", "other"),
    "threads": _Look("waits for native threads that compute", "compute"),
    "gil": _Look("waits for the GIL", "sync"),
    "lock": _Look("waits for a lock", "sync"),
    "file": _Look("files", "copy"),
    "socket": _Look("waits for a socket", "sync"),
    "sleep": _Look("sleeps", "other"),
    "waiting": _Look("waits", "sync"),
    "unobserved": _Look("not observed", "other", "timeline"),
    "host": _Look("other host code", "host"),
}
# States of samples that are not kinds of host time.
_STATES = {"ready": _Look("waits for a core", "other")}
# What is left of a kind beside its functions.
_OTHER = {
    "communication": "other communication",
    "gpu_wait": "other waits for the GPU",
    "gpu_call": "other calls of the GPU’s interface",
    "host": "other host code",
}
_CAUSES = {
    "data": "the launching thread waited for data",
    "sync": "the launching thread waited for the GPU",
    "copy": "the launching thread was in a copy that blocks it",
    "host": "the host launched the next activity only later",
    "kernel": "launched in time: the GPU’s own time between two kernels",
    "other": "launched in time, and waited for something else; or its launch is not known",
}


def look_of_state(state: str) -> tuple[str, Group]:
    """Return the name and the group of a state of samples, as all pages show it."""
    look = (_STATES | _KINDS).get(state, _Look(state, "other"))
    return look.name, look.group


@dataclass(frozen=True)
class Segment:
    """A part of a lane: its mean time, ns, its share of the lane, 0 to 1, and how both were computed.

    page: of the view, with its evidence; `evidence` is a place on the timeline where one place shows it. region: the
    name of the function that it is, "" where it is none.
    """

    name: str
    group: Group
    duration_ns: int
    share: float
    formula: str
    page: str
    evidence: Evidence | None = None
    region: str = ""


@dataclass(frozen=True)
class Lane:
    """What passed the time of a thread or a GPU: segments that add up to `duration_ns`. `of`: what it is a mean of."""

    name: str
    of: str
    duration_ns: int
    segments: tuple[Segment, ...]
    idle_from: int | None = None  # number of the first segment in which nothing ran


def step_lanes(trace: Trace, usual: Usual | None, on_gpus: Sequence[Gpu]) -> tuple[Lane, ...]:
    """Return the lane of the thread of the loop, then those of GPUs; of the whole run where there are no steps."""
    times = host_times(trace)
    process = usual.steps.process if usual else None
    time = next((each for each in times if process in (None, each.process)), None)
    host = _host(trace, usual, time, bool(on_gpus))
    shown = sorted(on_gpus, key=lambda each: -each.idle)[:MOST_GPUS] if len(on_gpus) > MOST_GPUS else on_gpus
    several = len({each.rank for each in on_gpus}) > 1
    gpus = (_gpu(each, several) for each in shown if (each.steps > 0) == (usual is not None))
    return (*([host] if host else []), *gpus)


def _host(trace: Trace, usual: Usual | None, time: HostTime | None, on_gpus: bool) -> Lane | None:
    if usual is None:
        if time is None or not time.duration_ns:
            return _of_run(trace)
        return _lane("host", "the run without its imports", time.duration_ns, _of_kinds(time.kinds_ns, 1, "of the run"))
    rank = ranks_of(trace)[usual.steps.process]
    of = f"mean of {format_number_of(usual.count, 'steady step')}" + (f" of rank {rank}" if rank is not None else "")
    if any(usual.parts_ns[part] for part in ("forward", "backward", "optimizer", "validation")):
        of_parts = ((_PHASES[part], ns, "mean of the part in all steady steps") for part, ns in usual.parts_ns.items())
        return _lane("host", of, usual.mean_ns, of_parts)
    calls_gpu = usual.steps.cells.columns is not None and on_gpus
    if time is not None and not time.kinds_ns["unobserved"] and not calls_gpu:
        segments = _of_kinds(time.kinds_ns, max(1, time.steps), "mean of the steady steps")
    else:
        segments = _of_cells(trace, usual)
    return _lane("host", of, usual.mean_ns, segments)


_Timed = tuple[_Look, float, str]


def _of_kinds(kinds_ns: dict[str, int], count: int, of: str) -> Iterator[_Timed]:
    measured = ("data", "communication", "operators", "file")
    for kind, ns in kinds_ns.items():
        yield _KINDS[kind], ns / count, f"{'measured by spans' if kind in measured else 'estimated by samples'}, {of}"


def _of_cells(trace: Trace, usual: Usual) -> Iterator[_Timed]:
    """Yield the kinds of time by the cells of steps, and functions with much of it."""
    steps, formula = usual.steps, "mean of the kind in all steady steps (strobe breakdown)"
    rows = np.flatnonzero(steps.steady & (steps.loop == usual.loop))
    location = main_location(trace, steps.process)
    if steps.cells.columns is None or location is None:
        yield _KINDS["data"], usual.waiting_ns, formula
        yield _KINDS["unobserved"], usual.mean_ns - usual.waiting_ns, "what is left of the step"
        return
    mean = dict(zip(HOST_KINDS, (steps.cells.sums(rows).sum(axis=0) / len(rows)).tolist(), strict=True))
    own = location_statistics(trace, select_steps(trace, {steps.process: rows + steps.first_number}), location)
    yield from _with_functions(trace, own, len(rows), mean, formula)


def _of_run(trace: Trace) -> Lane | None:
    """The lane of the first thread of a run of which neither steps nor samples are known; None if it has no spans."""
    process = next((each.process for each in process_rows(trace) if each.main), 0)
    location = main_location(trace, process) if len(trace.processes) else None
    if location is None or not trace.span_count:
        return None
    thread, own = location_rows(trace)[location], location_statistics(trace, select(trace, "all"), location)
    by_kind = np.bincount(_kinds_of_regions(trace)[own.region], own.own_ns, minlength=len(HOST_KINDS))
    mean, duration = dict(zip(HOST_KINDS, by_kind.tolist(), strict=True)), thread.last_ns - thread.first_ns
    if not duration:
        return None
    mean["host"] += max(0.0, duration - by_kind.sum())
    parts = _with_functions(trace, own, 1, mean, "own time of its calls in the whole run")
    return _lane("host", f"{thread.name} from its first to its last span", duration, parts)


def _with_functions(
    trace: Trace, own: PathStatistics, count: int, mean: Mapping[str, float], formula: str
) -> Iterator[_Timed]:
    """Yield kinds of time, and before each the functions with much of it. count: of how many steps they are means."""
    regions, kinds, one_of = region_rows(trace), _kinds_of_regions(trace), one_for_each_name(trace)
    by_region = np.bincount(one_of[own.region], own.own_ns, minlength=len(regions)) / count
    largest = np.argsort(-by_region, kind="stable")[:_MOST_FUNCTIONS].tolist()
    for kind, ns in mean.items():
        look, left = _KINDS[kind], ns
        for region in largest if kind in _OTHER else ():
            time_ns = float(by_region[region])
            if HOST_KINDS[kinds[region]] == kind and _LEAST_SHARE * sum(mean.values()) <= time_ns <= left:
                left -= time_ns
                name = regions[region].name
                yield look._replace(name=name, region=name), time_ns, "its own time, without what it calls"
        yield (look._replace(name=_OTHER[kind]), left, "what is left of the kind") if left < ns else (look, ns, formula)


def _kinds_of_regions(trace: Trace) -> npt.NDArray[np.int8]:
    facts = [(each.name, each.paradigm, each.role) for each in region_rows(trace)]
    return kinds_of(*map(list, zip(*facts, strict=True))) if facts else np.zeros(0, dtype=np.int8)


def _lane(name: str, of: str, duration_ns: float, parts: Iterator[_Timed]) -> Lane:
    segments = tuple(
        Segment(look.name, look.group, round(ns), ns / duration_ns, formula, look.page, region=look.region)
        for look, ns, formula in parts
        if round(ns) > 0
    )
    return Lane(name, of, round(duration_ns), segments)


def _gpu(gpu: Gpu, several: bool) -> Lane:
    count = max(1, gpu.steps)
    of = f"mean of {format_number_of(gpu.steps, 'steady step')}" if gpu.steps else "the whole run"
    length = gpu.duration_ns / count
    whole = f"{format_ns(length)} on the GPU"
    runs = (
        ("computes", "compute", gpu.computation, "kernels", "a kernel computes"),
        ("only communicates", "communication", gpu.communication, "kernels", "kernels communicate, none computes"),
        ("only copies", "copy", gpu.copy, "devices", "memory is copied, no kernel runs"),
    )
    segments = [
        Segment(name, group, round(share * length), share, f"{what}: {format_share(share)} of {whole} ({of})", page)
        for name, group, share, page, what in runs
        if share
    ]
    idle_from = len(segments)
    shown = f"idle {format_share(gpu.idle)} of {whole} ({of})"
    for each in gpu.causes if gpu.idle else ():
        share = gpu.idle * each.share
        formula = f"{shown}, times {format_share(each.share)} of its gaps: {_CAUSES[each.cause]}"
        place: Evidence | None = None
        if each.start_ns is not None and each.longest_ns:
            place = {"start_ns": each.start_ns, "duration_ns": each.longest_ns, "text": "the longest gap"}
        segments.append(Segment(f"idle: {each.cause}", "sync", round(share * length), share, formula, "devices", place))
    if gpu.idle and not gpu.causes:
        segments.append(Segment("idle", "sync", round(gpu.idle * length), gpu.idle, shown, "devices"))
    name = gpu.name if gpu.rank is None or not several else f"rank {gpu.rank}, {gpu.name}"
    return Lane(name, of, round(length), tuple(segments), idle_from)
