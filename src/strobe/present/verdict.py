"""The verdict: what limits the loop of a run, in one sentence made of the figures of `breakdown.host_time`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.breakdown.data_pipeline import pipelines
from strobe.breakdown.host_time import MEASURED, HostTime, Place, host_times, others_of, own_frame
from strobe.breakdown.system_counts import Children, SmallCalls, children, small_calls
from strobe.model.units import format_count, format_ns, format_number_of, format_share
from strobe.present.gpus import BESIDE, Gpu, gpu_verdict
from strobe.ranks.step_waits import step_waits
from strobe.ranks.waits.thread_waits import TeamTime, rows_of, team_times
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import Usual
from strobe.sums.samples import CHILD, IDLE, NO_STACK, RUNNING, frame_of, sample_sums
from strobe.tables.column_arrays import Floats
from strobe.trace.definition_rows import location_rows, process_rows
from strobe.trace.trace import Trace

# A loop that waits for data this share of its time while its GPU is idle is input-bound.
INPUT_BOUND = 0.2
# Uneven work limits a job if the ranks lose this share of their time by it, and a single rank is to blame if it works
# so much longer than the one that comes next.
_UNEVEN, _ALONE = 0.15, 1.2
_AS_MANY = 1.1  # steps of a rank, to those of another one in the same loop
# What is told beside the main kind takes at least this share of the time.
_WORTH_NAMING = 0.1
# The main kind is ahead of the next by this share of the time, and by so many standard deviations of what sampling
# leaves open: the verdict is sure, or fairly sure.
_SURE, _FAIRLY_SURE = (0.2, 3), (0.07, 2)
# The main thread waits for a core for this share of the time: that limits the loop, whatever it does.
_STARVED = 0.5
# What the main thread waits for in this share of its time is named before what it computes: it may do both at a time.
_WAITS = 0.3
# A function that holds less of a kind is not named.
_MOST_OF_IT = 0.3
# A loop that makes its batches for this share of its time is bound by them.
_MOSTLY = 0.5
# A call of the system that moves a few bytes takes at least this long.
_LEAST_CALL_NS = 300
# What others do for less of their time is not what the main thread waits for.
_OF_OTHERS = 0.15

# Kinds of host time that are one cause, what the cause is called, and what the main thread does.
_CAUSES = {
    "input-bound": (("data",), "waits for its next batch"),
    "communication-bound": (("communication",), "is in calls that communicate"),
    "compute-bound": (("operators", "native", "threads"), "computes"),
    "python-bound": (("python",), "is in the Python interpreter"),
    "gc-bound": (("collecting",), "collects garbage"),
    "gil-bound": (("gil",), "waits for the GIL"),
    "lock-bound": (("lock",), "waits for a lock or another thread"),
    "io-bound": (("file",), "waits for files"),
    "sleeping": (("sleep",), "sleeps"),
    "waiting": (("socket", "waiting"), "waits for a socket, a pipe, or another thread or process"),
    "host-bound": (("unobserved",), "is outside of operators"),
}
_PLURAL = {
    "compute-bound": "compute",
    "python-bound": "are in the Python interpreter",
    "gc-bound": "collect garbage",
    "gil-bound": "wait for the GIL",
    "lock-bound": "wait for a lock or another thread",
    "io-bound": "wait for files",
    "sleeping": "sleep",
}
_WORK, _KNOWN_WAITS = ("compute-bound", "python-bound"), ("gil-bound", "lock-bound", "io-bound")
# What a program sleeps or waits for is not known: it retries, polls, or imitates a slow disk.
_PURPOSE_UNKNOWN = ("sleeping", "waiting")
_FILES = ", which waits for files, too"
_NATIVE = "native code outside of operators"


@dataclass(frozen=True)
class Verdict:
    """What limits the loop, in a sentence.

    kind: input-bound (waits for its batches, or makes them), transfer-bound, communication-bound, imbalanced (one rank
    or thread works longer), compute-bound, python-bound, gc-bound, gil-bound, lock-bound, io-bound, sleeping, waiting,
    starved, serial-bound (outside of OpenMP's parallel regions), overhead-bound (start and end of many short regions),
    child-bound (waits for child processes), host-bound (what it does is not known), no-steps, or
    empty. share: of the time of the steps, 0 to 1. confidence: high, medium or low, "" where nothing is claimed.
    """

    kind: str
    text: str
    share: float | None = None
    confidence: str = ""


def verdict(trace: Trace, usual: Usual | None, on_gpus: Sequence[Gpu], busiest: str) -> Verdict:
    """Return what limits the loop of a run that recorded something.

    `busiest`: a phrase for what takes most of the recorded time, or "".
    """
    times = host_times(trace)
    if not on_gpus and len(times) < 2 and (threads := _of_teams(trace)) is not None:
        main = _of_host(trace, times, busiest).kind if times else "host-bound"
        native = not any(each.python for each in process_rows(trace))
        if main == "host-bound" or (native and (threads.kind in _BETWEEN_THREADS or main not in _NAMES_THE_WAIT)):
            return threads
    if usual is None:
        reason = find_steps(trace).reason.partition(": ")[2]
        marks = not trace.info.source and any(each.python for each in process_rows(trace))
        do = "; strobe.step() at the end of the loop's body marks its steps" if marks else ""
        if not times:
            return Verdict("no-steps", f"{reason}{f'; {busiest}' if busiest else ''}{do}")
        found = _of_host(trace, times, busiest)
        return Verdict(found.kind, f"{found.text}; {reason}{do}", found.share, "low")
    if on_gpus:
        waits = usual.waiting_ns / usual.mean_ns
        if waits >= INPUT_BOUND:  # waiting while the GPU computes is not a loss
            own = (each.wait_share for each in pipelines(trace) if each.steps.process == usual.steps.process)
            waits = next(own, waits)
        if waits >= INPUT_BOUND:
            text = f"input-bound: the loop spends {format_share(waits)} of its time waiting for its next batch"
            return Verdict("input-bound", f"{text} while the GPU is idle", waits, "medium")
        if (late := _late_gpu(on_gpus)) is not None:
            return late
        kind, text, share, margin = gpu_verdict(on_gpus)
        if kind == "host-bound":
            text += f"; {_of_host(trace, times, '').text.partition(': ')[2]}"
        return Verdict(kind, text, share, _confidence(margin))
    found = _uneven(times) or _of_batches(usual, _of_waits(trace, times, _of_host(trace, times, busiest)), len(times))
    if trace.info.source and any(map(_launches, trace.regions.texts("name"), trace.regions.texts("paradigm"))):
        # A file that was cut off or trimmed: GPUs come last in it.
        text = f"{found.text}; kernels were launched, but what the GPU did is not in the file"
        return replace(found, text=text, confidence="low")
    return found


def _launches(name: str, paradigm: str) -> bool:
    return paradigm in ("cuda", "hip") and ("LaunchKernel" in name or "GraphLaunch" in name)


def _of_batches(usual: Usual, found: Verdict, ranks: int) -> Verdict:
    """The verdict of a loop that makes its batches itself for most of its time; of others the one that was found."""
    shares = {part: ns / usual.mean_ns for part, ns in usual.parts_ns.items()}
    made = shares.pop("data_wait")
    if ranks > 1 or made < _MOSTLY or found.kind in ("input-bound", "starved"):
        return found
    text = f"input-bound: the loop makes its batches itself, for {format_share(made)} of its time"
    text += f"; {found.text.partition(': ')[2]}"
    return Verdict("input-bound", text, made, _confidence(made - max(shares.values())))


def _of_waits(trace: Trace, times: Sequence[HostTime], found: Verdict) -> Verdict:
    """The verdict of ranks that mostly wait for one another, where no other cause is known; else the one found."""
    waits = step_waits(trace) if found.kind in ("host-bound", "communication-bound") else None
    if waits is None or waits.wait_ns < _UNEVEN * waits.duration_ns:
        return found
    text = f"communication-bound: ranks wait {format_share(waits.wait_ns / waits.duration_ns)} of their steps for one "
    text += f"another; {found.text.partition(': ')[2]}"
    whole = sum(each.duration_ns for each in times)
    communicates = sum(each.kinds_ns["communication"] for each in times) / max(1, whole)
    confidence = "medium" if found.kind == "host-bound" else found.confidence
    return Verdict("communication-bound", text, communicates, confidence)


def _uneven(times: Sequence[HostTime]) -> Verdict | None:
    """The verdict of a job in which one rank works longer than the others, who wait for it.

    A manager and its workers go through different loops: not their steps are compared, but how much of the time each
    works.
    """
    counts = [each.steps for each in times]
    if len(times) < 2 or not min(counts):
        return None
    alike = max(counts) <= _AS_MANY * min(counts)
    step_ns = np.array([each.duration_ns / each.steps for each in times])
    works_ns = step_ns - np.array([each.per_step_ns["communication"] for each in times])
    works = works_ns if alike else works_ns / step_ns
    if (found := _alone(works, float(step_ns.mean()) if alike else 1.0)) is None:
        return None
    most, usual, lost = found
    shown = format_ns if alike else format_share
    text = f"rank {times[most].rank} works {shown(works[most])} {'a step on average' if alike else 'of the time'}, "
    text += "the other" if len(times) == 2 else f"the median of the {len(times) - 1} others"
    text += f" {shown(usual)}; even work would save up to {format_share(lost)}"
    done = {kind: ns for kind, ns in times[most].kinds_ns.items() if kind not in ("communication", "unobserved")}
    main = max(done, key=done.__getitem__)
    text += _named(times[most : most + 1], main, "most of its work")
    place = times[most].places.get(main)
    if place is not None and place.files and main in ("file", "sleep") and place.share >= _MOST_OF_IT:
        text += _FILES if main == "sleep" else ", which waits for files"
        return Verdict("io-bound", f"io-bound: {text}", lost, "medium")
    # Work that only this rank does is no uneven share of common work: what it is may be what limits the job.
    common = place is None or all(_is_in(place, each.places.get(main)) for each in times)
    sure = lost >= 2 * _UNEVEN and common
    return Verdict("imbalanced", f"imbalanced: {text}", lost, "high" if sure else "medium")


def _is_in(place: Place, other: Place | None) -> bool:
    return other is not None and other.name == place.name


# What threads lose by one another is not seen in the main one alone. Why it works by itself, it may be: for files.
_BETWEEN_THREADS = ("imbalanced", "lock-bound")
_NAMES_THE_WAIT = ("io-bound", "input-bound", "communication-bound")
_OF_TEAMS = {
    "imbalance": ("imbalanced", "threads wait {} of their time at barriers for the last one, most in {}"),
    "locks": ("lock-bound", "threads wait {} of their time for one another's locks, most in {}"),
    "tasks": ("imbalanced", "threads have no task {} of their time while others run theirs, most in {}"),
    "serial": ("serial-bound", "{} of the time passes outside of parallel regions, most before {}"),
    "regions": ("overhead-bound", "the start and end of parallel regions take {} of the time, most in {}"),
    "cores": ("starved", "threads wait {} of their time for a core that other threads or programs have"),
    "parallel": ("compute-bound", "threads compute {} of their time in parallel regions, most in {}"),
}


def _of_teams(trace: Trace) -> Verdict | None:
    """The verdict of a program whose threads wait for one another: their largest loss; of OpenMP, or that they compute.

    Who waits at barriers because others have no core loses nothing by uneven work. Of OpenMP, no wait has that.
    """
    times = {each.kind: each for each in team_times(trace)}
    losses = [each for each in times.values() if each.kind not in ("parallel", "cores", "regions")]
    if not losses:
        return None
    if (regions := times.get("regions")) is not None and regions.share >= max(_UNEVEN, losses[0].share / 2):
        text = f"{_said(regions)}: {format_number_of(regions.regions, 'region')} of {format_ns(regions.region_ns)} on"
        text += f" average, {format_ns(regions.cost_ns)} of it start and end"
        text += f"; {_said(times['cores'])}" if times["cores"].share >= _STARVED else ""
        return Verdict("overhead-bound", f"overhead-bound: {text}", regions.share, "medium")
    cores, openmp = times["cores"], "serial" in times
    chosen = losses[0] if losses[0].share >= _UNEVEN else times["parallel"]
    if chosen.kind == "parallel" and not openmp:
        return None
    if chosen.kind == "parallel" and cores.share >= _STARVED:
        return Verdict("starved", f"starved: {_said(cores)}; with one, {_said(chosen)}", cores.share, "medium")
    uneven = chosen.kind == "imbalance" and (openmp or _computes_longest(trace, chosen.awaited))
    if chosen.kind == "imbalance" and not uneven and cores.share > chosen.share:
        chosen = cores
    other = max(each.share for each in losses if each is not chosen)
    kind, text = _OF_TEAMS[chosen.kind][0], _said(chosen)
    if kind in _BETWEEN_THREADS and chosen.awaited >= 0:  # what OpenMP's threads compute most is a wait of its library
        name = location_rows(trace)[chosen.awaited].name
        text += f"; most of it for {name if openmp else _at_work(trace, chosen.awaited)}"
    return Verdict(kind, f"{kind}: {text}", chosen.share, _confidence(chosen.share - other))


def _computes_longest(trace: Trace, location: int) -> bool:
    """Whether a thread computes so much longer than the median of the others that these wait for it."""
    ran = Counter[int]()
    for each in sample_sums(trace):
        ran[each.location] += each.ran_ns
    others = [ns for other, ns in ran.items() if other != location]
    return bool(others) and ran[location] >= _ALONE * float(np.median(others))


def _said(time: TeamTime) -> str:
    return _OF_TEAMS[time.kind][1].format(format_share(time.share), time.where or "a region of unknown place")


def _at_work(trace: Trace, location: int) -> str:
    """The name of a thread, and the program's function that it computes in most, if it was sampled."""
    ran = Counter[str]()
    for each in sample_sums(trace, location):
        ran[own_frame(each.stack)] += each.ran_ns if each.stack != (NO_STACK,) else 0
    function, file, line = frame_of(max(ran, key=ran.__getitem__, default=""))
    place = f" ({file.rpartition('/')[2]}:{line})" if file else ""
    name = location_rows(trace)[location].name
    return f"{name}, which computes most in {function}{place}" if ran.total() else name


def _late_gpu(on_gpus: Sequence[Gpu]) -> Verdict | None:
    """The verdict of a job in which one rank's GPU hardly waits in collectives, and the others wait for it."""
    ranks = [each for each in on_gpus if each.rank is not None]
    if len(ranks) < 2 or len({each.rank for each in ranks}) < len(ranks):
        return None
    if (found := _alone(np.array([1 - each.communication for each in ranks]), 1.0)) is None:
        return None
    most, usual, lost = found
    text = f"the GPU of rank {ranks[most].rank} only communicates {format_share(ranks[most].communication)} of the time"
    text += f", the median of the others {format_share(1 - usual)}: they wait for it"
    return Verdict("imbalanced", f"imbalanced: {text}", lost, "high" if lost >= 2 * _UNEVEN else "medium")


def _alone(works: Floats, whole: float) -> tuple[int, float, float] | None:
    """The one that works longer than any other; the median of the others; what even work would save of the whole."""
    most, lost = int(works.argmax()), float((works.max() - works.mean()) / whole)
    others = np.delete(works, most)
    if lost < _UNEVEN or works[most] < _ALONE * others.max():
        return None
    return most, float(np.median(others)), lost


def _of_host(trace: Trace, times: Sequence[HostTime], busiest: str) -> Verdict:
    """The verdict by what the main threads of all ranks do most."""
    whole = sum(each.duration_ns for each in times)
    share = {name: sum(each.kinds_ns[name] for each in times) / max(1, whole) for name in times[0].kinds_ns}
    causes = {kind: sum(share[name] for name in names) for kind, (names, _) in _CAUSES.items()}
    kind, second, *_ = sorted(causes, key=lambda each: -causes[each])
    if kind in _WORK and second in _KNOWN_WAITS and causes[second] >= _WAITS:
        kind, second = second, kind
    if kind in _WORK and len(times) == 1 and causes["waiting"] >= _WAITS:
        works_ns = round(causes[kind] * whole)  # others that have more to do are what limits the loop
        if (found := _of_who_is_awaited(trace, times[0], causes["waiting"], works_ns)) is not None:
            return found
    limits = causes[kind]
    sampled = any(share[name] for cause in (kind, second) for name in _CAUSES[cause][0] if name not in MEASURED)
    samples = sum(each.samples for each in times) if sampled else 0
    confidence = _confidence(causes[kind] - causes[second], causes[kind] + causes[second], samples)
    beside = [f"{format_share(causes[second])} it {_CAUSES[second][1]}"]
    if causes[second] < max(_WORTH_NAMING, BESIDE * causes[kind]):
        beside.clear()
    if kind == "host-bound":
        confidence = "low"
        beside += [busiest] if busiest else []
    starved, alone = sum(each.starved_ns for each in times) / max(1, whole), len(times) == 1
    small = small_calls(trace, times[0]) if alone else None
    if small is not None and small.calls * _LEAST_CALL_NS < _UNEVEN * small.cpu_ns:
        small = None
    if small is not None and kind not in ("io-bound", "compute-bound"):
        beside.append(f"it makes {_calls(small)}")
    if starved >= _STARVED and alone:
        text = f"starved: the main thread waits for a core {format_share(starved)} of the loop's time: more threads and"
        text += f" processes run than there are cores; with one, {_does(kind, share, times)}"
        text += f"; it makes {_calls(small)}" if small is not None else ""
        return Verdict("starved", text, starved, "medium")
    if kind == "waiting" and alone and (found := _of_who_is_awaited(trace, times[0], causes[kind])) is not None:
        return found
    if small is not None and kind in ("io-bound", "compute-bound"):
        text = f"io-bound: the program makes {_calls(small)}; {_does(kind, share, times)}"
        return Verdict("io-bound", text, limits, "medium")
    does = _does(kind, share, times)
    cause = _cause_of_wait(kind, share, times)
    if cause is not None:
        kind, why = cause
        does += why
    # Of ranks that exchange objects, native code is also what makes bytes of these.
    packs = len(times) > 1 and share["communication"] > 0 and share["native"] > share["operators"]
    unsure = cause is not None or kind in _PURPOSE_UNKNOWN or (kind == "compute-bound" and packs)
    if unsure and confidence == "high":
        confidence = "medium"
    text = "; ".join((f"{kind}: {does}", *beside))
    if len(times) > 1:
        text += f" (mean of {len(times)} ranks)"
    if starved >= _STARVED:
        text, confidence = f"{text}; they wait for a core {format_share(starved)} of the time", "low"
    return Verdict(kind, text, limits, confidence)


def _cause_of_wait(kind: str, share: dict[str, float], times: Sequence[HostTime]) -> tuple[str, str] | None:
    """What a loop is bound by that waits or sleeps in a function with a purpose, and a phrase for that purpose."""
    if kind not in ("sleeping", "io-bound", "waiting"):
        return None
    main = max(_CAUSES[kind][0], key=share.__getitem__)
    place = _place_of(times, main)
    if place is None or place.share < _MOST_OF_IT:
        return None
    if place.generates:
        return "input-bound", ", a generator that the loop asks for its next item"
    return ("io-bound", _FILES) if kind == "sleeping" and place.files else None


def _calls(small: SmallCalls) -> str:
    size = f"{small.bytes_each:.1f}".removesuffix(".0")
    return f"{format_count(small.calls)} {small.what} of {size} byte{'' if size == '1' else 's'} each"


def _of_who_is_awaited(trace: Trace, time: HostTime, waits: float, works_ns: int = 0) -> Verdict | None:
    """The verdict of a loop that waits for child processes, or for threads and recorded processes of its own."""
    found, wait_ns = children(trace, time), waits * time.duration_ns
    in_each = 0 < time.steps <= 2 * found.names.total() and not found.seen and found.cpu_ns >= _WORTH_NAMING * wait_ns
    if (in_each or max(found.cpu_ns, found.waited_ns) >= _MOSTLY * wait_ns) and found.cpu_ns >= works_ns:
        recorded = others_of(trace, time)
        if recorded is None or "child" not in recorded.who:
            return _of_children(found, time, waits)
    return _of_others(trace, time, waits, works_ns)


def _of_children(found: Children, time: HostTime, waits: float) -> Verdict:
    (name, often), *others = found.names.most_common(1 if found.seen else 3) or [("", 0)]
    if found.seen:
        who = f"child processes {name}".rstrip()
    else:
        who = f"the child process {name}" if often == 1 else f"{format_count(often)} child processes {name}"
        who += "".join(f" and {format_count(count)} {other}" for other, count in others)
    computes = found.cpu_ns >= _WORTH_NAMING * waits * time.duration_ns
    text = f"the main thread waits {format_share(waits)} {_of_what(time.steps > 0, time.imports_ns > 0)} for {who}"
    text += f", {'computing' if computes else 'hardly computing'} for {format_ns(found.cpu_ns)} of CPU time"
    place = time.places.get(max(IDLE, key=time.kinds_ns.__getitem__))
    text += _within(place) if place is not None and not place.name.startswith(CHILD) else ""
    return Verdict("child-bound", f"child-bound: {text}", waits, "medium")


def _of_others(trace: Trace, time: HostTime, waits: float, works_ns: int = 0) -> Verdict | None:
    """The verdict of a loop that waits for threads or processes of its own: what these do most.

    None where the main thread works for longer than the busiest of them: `works_ns`.
    """
    if (uneven := _uneven_threads(trace, time)) is not None:
        return uneven
    if (others := others_of(trace, time)) is None or others.busiest_ns < works_ns:
        return None
    names = {kind: tuple(name for name in of if name not in IDLE) for kind, (of, _) in _CAUSES.items()}
    causes = {kind: sum(others.shares.get(name, 0.0) for name in of) for kind, of in names.items()}
    kind, second, *_ = sorted(causes, key=lambda each: -causes[each])
    if causes[kind] < _OF_OTHERS:
        return None
    does = _PLURAL[kind] if not others.who.startswith("1 ") else _CAUSES[kind][1]
    of = _of_what(time.steps > 0, time.imports_ns > 0)
    text = f"{kind}: the main thread waits {format_share(waits)} {of}; meanwhile {others.who} {does}"
    text += f" {format_share(causes[kind])} of the time"
    text += _within(others.places.get(max(names[kind], key=lambda name: others.shares.get(name, 0.0))))
    margin, both = causes[kind] - causes[second], causes[kind] + causes[second]
    confidence = _confidence(margin, both, others.samples)
    if others.one:
        of_them = f"{format_share(others.of_one)} of what they run is in {others.one} alone"
        kind, text = "imbalanced", f"imbalanced{text.removeprefix(kind)}; {of_them}"
    return Verdict(kind, text, waits, "medium" if confidence == "high" else confidence)


def _uneven_threads(trace: Trace, time: HostTime) -> Verdict | None:
    """The verdict of threads that begin with one function, of which one that main waits for computes longest.

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
    if waits < _UNEVEN:
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
    found = _alone(computes, float(computes.max())) if len(alike) > 1 else None
    if found is None:
        return None
    most, usual, lost = found
    if computes[most] < _WORTH_NAMING * joins.wait_ns.sum():  # it does nothing that main could wait for
        return None
    if joined_ns[alike[most]] < _UNEVEN * time.duration_ns and waited[awaited] <= ran[awaited]:
        return None
    text = f"imbalanced: the main thread waits {format_share(waits)} of its time in pthread_join; one of {len(alike)}"
    text += f" threads computes {format_ns(computes[most])}, the median of the rest {format_ns(usual)}: it is"
    text += f" {_at_work(trace, alike[most])}"
    return Verdict("imbalanced", text, lost, "medium")


def _confidence(margin: float, both: float = 0.0, samples: int = 0) -> str:
    """How sure it is that one share is larger than the next; `both`: their sum, if they come from samples.

    The difference of two shares of a multinomial distribution has the variance (both - margin^2) / samples.
    """
    deviation = math.sqrt(max(0.0, both - margin * margin) / samples) if samples else 0.0
    for name, (least, deviations) in (("high", _SURE), ("medium", _FAIRLY_SURE)):
        if margin >= max(least, deviations * deviation):
            return name
    return "low"


def _does(kind: str, share: dict[str, float], times: Sequence[HostTime]) -> str:
    names, does = _CAUSES[kind]
    of = _of_what(times[0].steps > 0, any(each.imports_ns for each in times))
    most = max(names, key=share.__getitem__)
    if most == "operators":
        text = f"operators take {format_share(share['operators'])} {of}{_named(times, 'operators')}"
        beside = share["native"] >= BESIDE * share["operators"] and share["native"] >= _WORTH_NAMING
        return f"{text}, other native code {format_share(share['native'])}" if beside else text
    if most == "threads":
        waits = f"the main thread waits {format_share(share['threads'])} {of} for native threads that compute"
        return waits + _named(times, "threads")
    if kind == "compute-bound":
        return f"{_NATIVE} takes {format_share(share['native'])} {of}{_named(times, 'native')}"
    if kind == "host-bound":
        return f"{format_share(share['unobserved'])} {of} is spent outside of operators"
    return f"the main thread {does} {format_share(sum(share[name] for name in names))} {of}{_named(times, most)}"


def _named(times: Sequence[HostTime], kind: str, what: str = "") -> str:
    """Where most of a kind passes, on the rank that has most of it; `what` that is instead of its share."""
    return _within(_place_of(times, kind), what)


def _place_of(times: Sequence[HostTime], kind: str) -> Place | None:
    return max(times, key=lambda each: each.kinds_ns[kind]).places.get(kind)


def _within(place: Place | None, what: str = "") -> str:
    if place is None or place.share < _MOST_OF_IT:
        return ""
    where = f" ({place.where.rpartition('/')[2]})" if place.where else ""
    calls = f", called by {place.caller}" if place.caller else ""
    calls += f", which calls {place.callee}" if place.callee else ""
    return f", {what or f'{format_share(place.share)} of it'} in {place.name}{where}{calls}"


def _of_what(steps: bool, imports: bool) -> str:
    return "of the loop's time" if steps else f"of the run{' without its imports' if imports else ''}"
