"""Verdicts of a main thread that waits for others: child processes, threads, recorded processes of its own."""

from __future__ import annotations

from strobe.breakdown.host_time import HostTime, others_of
from strobe.breakdown.system_counts import Children, children
from strobe.model.units import format_count, format_ns, format_share
from strobe.present.verdict_of_threads import uneven_threads
from strobe.present.verdict_parts import CAUSES, MOSTLY, PLURAL, WORTH_NAMING, Verdict, confidence_of, of_what, within
from strobe.sums.samples import CHILD, IDLE
from strobe.trace.trace import Trace

# What others do for less of their time is not what the main thread waits for.
_OF_OTHERS = 0.15


def of_who_is_awaited(trace: Trace, time: HostTime, waits: float, works_ns: int = 0) -> Verdict | None:
    """Return the verdict of a loop that waits for child processes, or for threads and recorded processes of its own."""
    found, wait_ns = children(trace, time), waits * time.duration_ns
    in_each = 0 < time.steps <= 2 * found.names.total() and not found.seen and found.cpu_ns >= WORTH_NAMING * wait_ns
    if (in_each or max(found.cpu_ns, found.waited_ns) >= MOSTLY * wait_ns) and found.cpu_ns >= works_ns:
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
    computes = found.cpu_ns >= WORTH_NAMING * waits * time.duration_ns
    text = f"the main thread waits {format_share(waits)} {of_what(time.steps > 0, time.imports_ns > 0)} for {who}"
    text += f", {'computing' if computes else 'hardly computing'} for {format_ns(found.cpu_ns)} of CPU time"
    place = time.places.get(max(IDLE, key=time.kinds_ns.__getitem__))
    text += within(place) if place is not None and not place.name.startswith(CHILD) else ""
    return Verdict("child-bound", f"child-bound: {text}", waits, "medium")


def _of_others(trace: Trace, time: HostTime, waits: float, works_ns: int = 0) -> Verdict | None:
    """The verdict of a loop that waits for threads or processes of its own: what these do most.

    None where the main thread works for longer than the busiest of them: `works_ns`.
    """
    if (uneven := uneven_threads(trace, time)) is not None:
        return uneven
    if (others := others_of(trace, time)) is None or others.busiest_ns < works_ns:
        return None
    names = {kind: tuple(name for name in of if name not in IDLE) for kind, (of, _) in CAUSES.items()}
    causes = {kind: sum(others.shares.get(name, 0.0) for name in of) for kind, of in names.items()}
    kind, second, *_ = sorted(causes, key=lambda each: -causes[each])
    if causes[kind] < _OF_OTHERS:
        return None
    does = PLURAL[kind] if not others.who.startswith("1 ") else CAUSES[kind][1]
    of = of_what(time.steps > 0, time.imports_ns > 0)
    text = f"{kind}: the main thread waits {format_share(waits)} {of}; meanwhile {others.who} {does}"
    text += f" {format_share(causes[kind])} of the time"
    text += within(others.places.get(max(names[kind], key=lambda name: others.shares.get(name, 0.0))))
    margin, both = causes[kind] - causes[second], causes[kind] + causes[second]
    confidence = confidence_of(margin, both, others.samples)
    if others.one:
        of_them = f"{format_share(others.of_one)} of what they run is in {others.one} alone"
        kind, text = "imbalanced", f"imbalanced{text.removeprefix(kind)}; {of_them}"
    return Verdict(kind, text, waits, "medium" if confidence == "high" else confidence)
