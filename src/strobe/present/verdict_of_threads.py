"""Verdicts of threads: what those of OpenMP and pthreads lose by one another, and one that computes longest."""

from __future__ import annotations

from collections import Counter

import numpy as np

from strobe.breakdown.host_time import HostTime, own_frame
from strobe.model.units import format_ns, format_number_of, format_share
from strobe.present.verdict_parts import ALONE, STARVED, UNEVEN, WORTH_NAMING, Verdict, alone, confidence_of
from strobe.ranks.waits.thread_waits import TeamTime, rows_of, team_times
from strobe.sums.samples import NO_STACK, RUNNING, frame_of, sample_sums
from strobe.trace.definition_rows import location_rows, process_rows
from strobe.trace.trace import Trace

# What threads lose by one another is not seen in the main one alone. Why it works by itself, it may be: for files.
BETWEEN_THREADS = ("imbalanced", "lock-bound")
_OF_TEAMS = {
    "imbalance": ("imbalanced", "threads wait {} of their time at barriers for the last one, most in {}"),
    "locks": ("lock-bound", "threads wait {} of their time for one another's locks, most in {}"),
    "tasks": ("imbalanced", "threads have no task {} of their time while others run theirs, most in {}"),
    "serial": ("serial-bound", "{} of the time passes outside of parallel regions, most before {}"),
    "regions": ("overhead-bound", "the start and end of parallel regions take {} of the time, most in {}"),
    "cores": ("starved", "threads wait {} of their time for a core that other threads or programs have"),
    "parallel": ("compute-bound", "threads compute {} of their time in parallel regions, most in {}"),
}


def of_teams(trace: Trace) -> Verdict | None:
    """Return the verdict of a program whose threads wait for one another: what they lose; of OpenMP, or that they work.

    Who waits at barriers because others have no core loses nothing by uneven work. Of OpenMP, no wait has that.
    """
    times = {each.kind: each for each in team_times(trace)}
    losses = [each for each in times.values() if each.kind not in ("parallel", "cores", "regions")]
    if not losses:
        return None
    if (regions := times.get("regions")) is not None and regions.share >= max(UNEVEN, losses[0].share / 2):
        text = f"{_said(regions)}: {format_number_of(regions.regions, 'region')} of {format_ns(regions.region_ns)} on"
        text += f" average, {format_ns(regions.cost_ns)} of it start and end"
        text += f"; {_said(times['cores'])}" if times["cores"].share >= STARVED else ""
        return Verdict("overhead-bound", f"overhead-bound: {text}", regions.share, "medium")
    cores, openmp = times["cores"], "serial" in times
    chosen = losses[0] if losses[0].share >= UNEVEN else times["parallel"]
    if chosen.kind == "parallel" and not openmp:
        return None
    if chosen.kind == "parallel" and cores.share >= STARVED:
        return Verdict("starved", f"starved: {_said(cores)}; with one, {_said(chosen)}", cores.share, "medium")
    uneven = chosen.kind == "imbalance" and (openmp or _computes_longest(trace, chosen.awaited))
    if chosen.kind == "imbalance" and not uneven and cores.share > chosen.share:
        chosen = cores
    other = max(each.share for each in losses if each is not chosen)
    kind, text = _OF_TEAMS[chosen.kind][0], _said(chosen)
    if kind in BETWEEN_THREADS and chosen.awaited >= 0:  # what OpenMP's threads compute most is a wait of its library
        name = location_rows(trace)[chosen.awaited].name
        text += f"; most of it for {name if openmp else at_work(trace, chosen.awaited)}"
    return Verdict(kind, f"{kind}: {text}", chosen.share, confidence_of(chosen.share - other))


def _computes_longest(trace: Trace, location: int) -> bool:
    """Whether a thread computes so much longer than the median of the others that these wait for it."""
    ran = Counter[int]()
    for each in sample_sums(trace):
        ran[each.location] += each.ran_ns
    others = [ns for other, ns in ran.items() if other != location]
    return bool(others) and ran[location] >= ALONE * float(np.median(others))


def _said(time: TeamTime) -> str:
    return _OF_TEAMS[time.kind][1].format(format_share(time.share), time.where or "a region of unknown place")


def uneven_threads(trace: Trace, time: HostTime) -> Verdict | None:
    """Return the verdict of threads that begin with one function, of which one that main waits for computes longest.

    Or it is waited for by the one that main waits for most. Only the main thread's waits count: what it joins may join
    others itself.
    """
    pid = process_rows(trace)[time.process].pid
    own = {each.location: each.thread_id for each in location_rows(trace) if each.process == time.process}
    joins = rows_of(trace, "thread_join")
    of_main = np.array([own.get(location) == pid for location in joins.location.tolist()], dtype=bool)
    begin_ns, end_ns = time.window_ns or (0, trace.info.duration_ns)
    joins = joins.chosen(of_main & (joins.cause >= 0) & (joins.begin_ns >= begin_ns) & (joins.begin_ns < end_ns))
    waits = float(joins.wait_ns.sum() / max(1, time.duration_ns))
    if waits < UNEVEN:
        return None
    ran, waited, begins = Counter[int](), Counter[int](), dict[int, str]()
    for each in sample_sums(trace):
        if each.location not in own:
            continue
        ran[each.location] += each.ran_ns
        waited[each.location] += 0 if each.state in RUNNING else each.other_ns
        if each.ran_ns:
            begins[each.location] = each.stack[0]
    joined_ns = np.bincount(joins.cause, weights=joins.wait_ns, minlength=len(location_rows(trace)))
    awaited = int(joined_ns.argmax())
    alike = [each for each, begin in begins.items() if begin == begins.get(awaited)]
    computes = np.array([ran[each] for each in alike], dtype=np.float64)
    found = alone(computes, float(computes.max())) if len(alike) > 1 else None
    if found is None:
        return None
    most, usual, lost = found
    if computes[most] < WORTH_NAMING * joins.wait_ns.sum():  # it does nothing that main could wait for
        return None
    if joined_ns[alike[most]] < UNEVEN * time.duration_ns and waited[awaited] <= ran[awaited]:
        return None
    text = f"imbalanced: the main thread waits {format_share(waits)} of its time in pthread_join; one of {len(alike)}"
    text += f" threads computes {format_ns(computes[most])}, the median of the rest {format_ns(usual)}: it is"
    text += f" {at_work(trace, alike[most])}"
    return Verdict("imbalanced", text, lost, "medium")


def at_work(trace: Trace, location: int) -> str:
    """Return the name of a thread, and the program's function that it computes in most, if it was sampled."""
    ran = Counter[str]()
    for each in sample_sums(trace, location):
        ran[own_frame(each.stack)] += each.ran_ns if each.stack != (NO_STACK,) else 0
    function, file, line = frame_of(max(ran, key=ran.__getitem__, default=""))
    place = f" ({file.rpartition('/')[2]}:{line})" if file else ""
    name = location_rows(trace)[location].name
    return f"{name}, which computes most in {function}{place}" if ran.total() else name
