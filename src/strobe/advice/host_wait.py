"""Rule `host.wait`: the main thread waits for a lock, the GIL or files, or collects garbage, for much of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from strobe.breakdown.host_time import MOSTLY, host_times, own_frame
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.steps.thread_spans import main_location
from strobe.sums.samples import frame_of, sample_sums
from strobe.trace.definition_rows import location_rows
from strobe.trace.trace import Trace

LEAST_SHARE = 0.1
# Of a smaller part of the step no gain is promised: any program collects some garbage.
_LEAST_GAIN = 0.2
# What others keep from the main thread is saved to this part at least, if they keep less.
_LEAST_OF = {"gil": 0.7, "collecting": 0.25}
# Fewer samples of a kind may be chance.
_FEWEST = 10

_WORDS = {
    "lock": ("waits {} for a lock or another thread", "hold the lock for less time"),
    "gil": ("waits {} for the GIL", "let other threads do less in Python: C code without the GIL, or processes"),
    "file": ("waits {} for files", "read and write beside the loop, in larger pieces, or less often"),
    "collecting": (
        "collects garbage for {}",
        "gc.freeze() after the set-up, a higher gc.set_threshold(), fewer cycles",
    ),
}


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each of these kinds of host time that takes 10 % of the steps of a rank (the one with most).

    At most all of it is saved, and at least 70 % of the waits for the GIL, a quarter of collecting, nothing of other
    waits: what they wait for may be needed. Below 20 %, and where there are no steps, no gain is promised.
    """
    times = host_times(trace)
    for kind, (words, do) in _WORDS.items() if times else ():
        found = max(times, key=lambda each: each.kinds_ns[kind] / each.duration_ns)
        share, place = found.kinds_ns[kind] / found.duration_ns, found.places.get(kind)
        if share < LEAST_SHARE and found.samples:
            yield Below(share, LEAST_SHARE)
        if share < LEAST_SHARE or share * found.samples < _FEWEST:
            continue
        per_step = found.per_step_ns[kind]
        spent = f"{format_ns(per_step)} ({format_share(share)}) {'a step on average' if found.steps else 'of the run'}"
        who = f"the main thread of rank {found.rank}" if len(times) > 1 else "the main thread"
        place = place if place is not None and place.share >= MOSTLY else None
        beside = _other_threads(trace, found.process) if kind in ("lock", "gil") else ""
        gains = found.steps > 0 and share >= _LEAST_GAIN
        yield Finding(
            rule="host.wait",
            what=f"{who} {words.format(spent)}" + (f", mostly in {place.name}" if place else ""),
            where=place.where if place else "",
            do=f"{do}{beside}",
            gain_low_ns=round(_LEAST_OF.get(kind, 0.0) * per_step) if gains else 0,
            gain_high_ns=round(per_step) if gains else 0,
            confidence="medium",
            informative=not gains,
        )


def _other_threads(trace: Trace, process: int) -> str:
    """What other threads of the process do most, but for waiting for locks themselves; "" where nothing is known."""
    main = main_location(trace, process)
    others = {each.location: each.name for each in location_rows(trace) if each.process == process}
    busy = Counter[tuple[int, str]]()
    for each in sample_sums(trace):
        if each.location in others and each.location != main and each.state not in ("lock", "waiting"):
            busy[each.location, own_frame(each.stack)] += each.ran_ns + each.other_ns
    if not busy:
        return ""
    location, frame = busy.most_common(1)[0][0]
    name, file, line = frame_of(frame)
    return f"; thread {others[location]} is in {name}{f' ({file}:{line})' if file else ''} most"


RULE = Rule("host.wait", "The main thread waits", run, of_waits=True)
