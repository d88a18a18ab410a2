"""The verdict: what limits the loop of a run, in one sentence made of the figures of `breakdown.host_time`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strobe.breakdown.data_pipeline import HIGH, MODERATE, pipelines
from strobe.breakdown.host_time import MEASURED, HostTime, Place, at_work, host_times
from strobe.breakdown.system_counts import SmallCalls, small_calls
from strobe.model.units import format_count, format_ns, format_share
from strobe.present.gpus import BESIDE, Gpu, gpu_verdict
from strobe.present.verdict_of_others import of_who_is_awaited
from strobe.present.verdict_of_threads import BETWEEN_THREADS, of_teams
from strobe.present.verdict_parts import (
    CAUSES,
    MOST_OF_IT,
    MOSTLY,
    STARVED,
    UNEVEN,
    WORTH_NAMING,
    Verdict,
    alone,
    confidence_of,
    of_what,
    within,
)
from strobe.ranks.mesh.in_words import of_pipelines
from strobe.ranks.mesh.pipelines import bubble_share
from strobe.ranks.step_waits import step_waits
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import Usual
from strobe.trace.definition_rows import process_rows
from strobe.trace.trace import Trace

_AS_MANY = 1.1  # steps of a rank, to those of another one in the same loop
# What the main thread waits for in this share of its time is named before what it computes: it may do both at a time.
_WAITS = 0.3
# A call of the system that moves a few bytes takes at least this long.
_LEAST_CALL_NS = 300

_NAMES_THE_WAIT = ("io-bound", "input-bound", "communication-bound")
_WORK, _KNOWN_WAITS = ("compute-bound", "python-bound"), ("gil-bound", "lock-bound", "io-bound")
# What a program sleeps or waits for is not known: it retries, polls, or imitates a slow disk.
_PURPOSE_UNKNOWN = ("sleeping", "waiting")
_FILES = ", which waits for files, too"
_NATIVE = "native code outside of operators"


def verdict(trace: Trace, usual: Usual | None, on_gpus: Sequence[Gpu], busiest: str) -> Verdict:
    """Return what limits the loop of a run that recorded something.

    `busiest`: a phrase for what takes most of the recorded time, or "".
    """
    times = host_times(trace)
    if not on_gpus and len(times) < 2 and (threads := of_teams(trace)) is not None:
        main = _of_host(trace, times, busiest).kind if times else "host-bound"
        native = not any(each.python for each in process_rows(trace))
        if main == "host-bound" or (native and (threads.kind in BETWEEN_THREADS or main not in _NAMES_THE_WAIT)):
            return threads
    if usual is None:
        reason = find_steps(trace).reason.partition(": ")[2]
        marks = not trace.info.source and any(each.python for each in process_rows(trace))
        sampled = trace.job.settings.get("sampled")  # from outside: nothing in the program could mark anything
        step = "strobe.step() at the end of the loop's body marks its steps"
        do = f"; {'strobe run records its calls' if sampled else step}" if marks else ""
        if not times:
            return Verdict("no-steps", f"{reason}{f'; {busiest}' if busiest else ''}{do}")
        found = _of_host(trace, times, busiest)
        return Verdict(found.kind, f"{found.text}; {reason}{do}", found.share, "low")
    own = (each.wait_share for each in pipelines(trace) if each.steps.process == usual.steps.process)
    waits = next(own, usual.waiting_ns / usual.mean_ns)  # waiting while the GPU computes is not a loss
    found = _of_steps(trace, usual, on_gpus, times, busiest, waits)
    if waits < MODERATE or CAUSES["input-bound"][1] in found.text or found.kind == "input-bound":
        return found
    return replace(found, text=f"{found.text}; the loop waits {format_share(waits)} of its time for its next batch")


def _of_steps(
    trace: Trace, usual: Usual, on_gpus: Sequence[Gpu], times: Sequence[HostTime], busiest: str, waits: float
) -> Verdict:
    """The verdict of a run with steps, whose loop waits this part of its time for data."""
    if on_gpus:
        if waits >= HIGH:
            text = f"input-bound: the loop spends {format_share(waits)} of its time waiting for its next batch"
            return Verdict("input-bound", f"{text} while the GPU is idle", waits, "medium")
        if (late := _late_gpu(on_gpus)) is not None:
            return late
        kind, text, share, margin = gpu_verdict(on_gpus)
        held = sum(each.held for each in on_gpus) / len(on_gpus)
        if kind == "host-bound" and held >= BESIDE * share:
            text = f"waiting: {format_share(held)} of the time work is launched and does not begin, while the GPU runs"
            text += " nothing that is in the trace: it waits for work from before the recording, or of another program"
            return Verdict("waiting", text, held, "low")
        if kind == "host-bound":
            text += f"; {_of_host(trace, times, '').text.partition(': ')[2]}"
        return Verdict(kind, text, share, confidence_of(margin))
    found = _of_batches(usual, _of_waits(trace, times, _of_host(trace, times, busiest)), len(times))
    found = _uneven(trace, times) or found
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
    if ranks > 1 or made < MOSTLY or found.kind in ("input-bound", "starved"):
        return found
    text = f"input-bound: the loop makes its batches itself, for {format_share(made)} of its time"
    text += f"; {found.text.partition(': ')[2]}"
    return Verdict("input-bound", text, made, confidence_of(made - max(shares.values())))


def _of_waits(trace: Trace, times: Sequence[HostTime], found: Verdict) -> Verdict:
    """The verdict of ranks that mostly wait for one another, where no other cause is known; else the one found.

    Stages of a pipeline wait by its schedule: then it is that of its bubbles, which are named beside other causes, too.
    """
    waiting = found.kind in ("host-bound", "communication-bound")
    if (bubbles := bubble_share(trace)) >= UNEVEN:
        if waiting:
            return Verdict("communication-bound", f"communication-bound: {of_pipelines(trace)}", bubbles, "high")
        return replace(found, text=f"{found.text}; {of_pipelines(trace)}")
    waits = step_waits(trace) if waiting else None
    if waits is None or waits.share < UNEVEN:
        return found
    text = f"communication-bound: ranks wait {format_share(waits.share)} of their steps for one "
    text += f"another; {found.text.partition(': ')[2]}"
    whole = sum(each.duration_ns for each in times)
    communicates = sum(each.kinds_ns["communication"] for each in times) / max(1, whole)
    confidence = "medium" if found.kind == "host-bound" else found.confidence
    return Verdict("communication-bound", text, communicates, confidence)


def _uneven(trace: Trace, times: Sequence[HostTime]) -> Verdict | None:
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
    if (found := alone(works, float(step_ns.mean()) if alike else 1.0)) is None:
        return None
    most, usual, lost = found
    shown = format_ns if alike else format_share
    text = f"rank {times[most].rank} works {shown(works[most])} {'a step on average' if alike else 'of the time'}, "
    text += "the other" if len(times) == 2 else f"the median of the {len(times) - 1} others"
    text += f" {shown(usual)}; even work would save up to {format_share(lost)}"
    done = {kind: ns for kind, ns in times[most].kinds_ns.items() if kind not in ("communication", "unobserved")}
    main = max(done, key=done.__getitem__)
    place = times[most].places.get(main)
    if (work := at_work(trace, times[most])) is not None:
        text += within(work, f"{format_share(work.share)} of its work")
    if place is not None and place.files and main in ("file", "sleep") and place.share >= MOST_OF_IT:
        text += _FILES if main == "sleep" else ", which waits for files"
        return Verdict("io-bound", f"io-bound: {text}", lost, "medium")
    # Work that only this rank does is no uneven share of common work: what it is may be what limits the job.
    common = place is None or all(_is_in(place, each.places.get(main)) for each in times)
    sure = lost >= 2 * UNEVEN and common
    return Verdict("imbalanced", f"imbalanced: {text}", lost, "high" if sure else "medium")


def _is_in(place: Place, other: Place | None) -> bool:
    return other is not None and other.name == place.name


def _late_gpu(on_gpus: Sequence[Gpu]) -> Verdict | None:
    """The verdict of a job in which one rank's GPU hardly waits in collectives, and the others wait for it."""
    ranks = [each for each in on_gpus if each.rank is not None]
    if len(ranks) < 2 or len({each.rank for each in ranks}) < len(ranks):
        return None
    if (found := alone(np.array([1 - each.communication for each in ranks]), 1.0)) is None:
        return None
    most, usual, lost = found
    text = f"the GPU of rank {ranks[most].rank} only communicates {format_share(ranks[most].communication)} of the time"
    text += f", the median of the others {format_share(1 - usual)}: they wait for it"
    return Verdict("imbalanced", f"imbalanced: {text}", lost, "high" if lost >= 2 * UNEVEN else "medium")


def _of_host(trace: Trace, times: Sequence[HostTime], busiest: str) -> Verdict:
    """The verdict by what the main threads of all ranks do most."""
    whole = sum(each.duration_ns for each in times)
    share = {name: sum(each.kinds_ns[name] for each in times) / max(1, whole) for name in times[0].kinds_ns}
    causes = {kind: sum(share[name] for name in names) for kind, (names, _) in CAUSES.items()}
    kind, second, *_ = sorted(causes, key=lambda each: -causes[each])
    if kind in _WORK and second in _KNOWN_WAITS and causes[second] >= _WAITS:
        kind, second = second, kind
    if kind in _WORK and len(times) == 1 and causes["waiting"] >= _WAITS:
        works_ns = round(causes[kind] * whole)  # others that have more to do are what limits the loop
        if (found := of_who_is_awaited(trace, times[0], causes["waiting"], works_ns)) is not None:
            return found
    limits = causes[kind]
    sampled = any(share[name] for cause in (kind, second) for name in CAUSES[cause][0] if name not in MEASURED)
    samples = sum(each.samples for each in times) if sampled else 0
    confidence = confidence_of(causes[kind] - causes[second], causes[kind] + causes[second], samples)
    beside = [f"{format_share(causes[second])} it {CAUSES[second][1]}"]
    if causes[second] < max(WORTH_NAMING, BESIDE * causes[kind]):
        beside.clear()
    if kind == "host-bound":
        confidence = "low"
        beside += [busiest] if busiest else []
    starved, alone = sum(each.starved_ns for each in times) / max(1, whole), len(times) == 1
    small = small_calls(trace, times[0]) if alone else None
    if small is not None and small.calls * _LEAST_CALL_NS < UNEVEN * small.cpu_ns:
        small = None
    if small is not None and kind not in ("io-bound", "compute-bound"):
        beside.append(f"it makes {_calls(small)}")
    if starved >= STARVED and alone:
        text = f"starved: the main thread waits for a core {format_share(starved)} of the loop's time: more threads and"
        text += f" processes run than there are cores; with one, {_does(kind, share, times)}"
        text += f"; it makes {_calls(small)}" if small is not None else ""
        return Verdict("starved", text, starved, "medium")
    if kind == "waiting" and alone and (found := of_who_is_awaited(trace, times[0], causes[kind])) is not None:
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
    if starved >= STARVED:
        text, confidence = f"{text}; they wait for a core {format_share(starved)} of the time", "low"
    return Verdict(kind, text, limits, confidence)


def _cause_of_wait(kind: str, share: dict[str, float], times: Sequence[HostTime]) -> tuple[str, str] | None:
    """What a loop is bound by that waits or sleeps in a function with a purpose, and a phrase for that purpose."""
    if kind not in ("sleeping", "io-bound", "waiting"):
        return None
    main = max(CAUSES[kind][0], key=share.__getitem__)
    place = _place_of(times, main)
    if place is None or place.share < MOST_OF_IT:
        return None
    if place.generates:
        return "input-bound", ", a generator that the loop asks for its next item"
    return ("io-bound", _FILES) if kind == "sleeping" and place.files else None


def _calls(small: SmallCalls) -> str:
    size = f"{small.bytes_each:.1f}".removesuffix(".0")
    return f"{format_count(small.calls)} {small.what} of {size} byte{'' if size == '1' else 's'} each"


def _does(kind: str, share: dict[str, float], times: Sequence[HostTime]) -> str:
    names, does = CAUSES[kind]
    of = of_what(times[0].steps > 0, any(each.imports_ns for each in times))
    most = max(names, key=share.__getitem__)
    if most == "operators":
        text = f"operators take {format_share(share['operators'])} {of}{_named(times, 'operators')}"
        beside = share["native"] >= BESIDE * share["operators"] and share["native"] >= WORTH_NAMING
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
    return within(_place_of(times, kind), what)


def _place_of(times: Sequence[HostTime], kind: str) -> Place | None:
    return max(times, key=lambda each: each.kinds_ns[kind]).places.get(kind)
