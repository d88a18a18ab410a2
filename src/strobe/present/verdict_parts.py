"""What verdicts have in common: their form, the kinds of host time that are one cause, how sure one is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from strobe.breakdown.host_time import Place
from strobe.model.units import format_share
from strobe.tables.column_arrays import Floats

# Uneven work limits a job if the ranks lose this share of their time by it, and a single rank is to blame if it works
# so much longer than the one that comes next.
UNEVEN, ALONE = 0.15, 1.2
# What is told beside the main kind takes at least this share of the time.
WORTH_NAMING = 0.1
# The main kind is ahead of the next by this share of the time, and by so many standard deviations of what sampling
# leaves open: the verdict is sure, or fairly sure.
_SURE, _FAIRLY_SURE = (0.2, 3), (0.07, 2)
# The main thread waits for a core for this share of the time: that limits the loop, whatever it does.
STARVED = 0.5
# A function that holds less of a kind is not named.
MOST_OF_IT = 0.3
# A loop that makes its batches for this share of its time is bound by them.
MOSTLY = 0.5

# Kinds of host time that are one cause, what the cause is called, and what the main thread does.
CAUSES = {
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
PLURAL = {
    "compute-bound": "compute",
    "python-bound": "are in the Python interpreter",
    "gc-bound": "collect garbage",
    "gil-bound": "wait for the GIL",
    "lock-bound": "wait for a lock or another thread",
    "io-bound": "wait for files",
    "sleeping": "sleep",
}


@dataclass(frozen=True)
class Verdict:
    """What limits the loop, in a sentence.

    kind: input-bound (waits for its batches, or makes them), transfer-bound, communication-bound, imbalanced (one rank
    or thread works longer), compute-bound, python-bound, gc-bound, gil-bound, lock-bound, io-bound, sleeping, waiting,
    starved, serial-bound (outside of OpenMP's parallel regions), overhead-bound (start and end of many short regions),
    child-bound (waits for child processes), host-bound (what it does is not known), unfinished or finished (dumps of
    PyTorch's flight recorder with and without operations that are not complete), memory (a snapshot of it), no-steps,
    or empty. share: of the time of the steps, 0 to 1. confidence: high, medium or low, "" where nothing is claimed.
    """

    kind: str
    text: str
    share: float | None = None
    confidence: str = ""


def alone(works: Floats, whole: float) -> tuple[int, float, float] | None:
    """Return the one that works longer than any other, the median of the others, what even work saves of the whole."""
    most, lost = int(works.argmax()), float((works.max() - works.mean()) / whole)
    others = np.delete(works, most)
    if lost < UNEVEN or works[most] < ALONE * others.max():
        return None
    return most, float(np.median(others)), lost


def confidence_of(margin: float, both: float = 0.0, samples: int = 0) -> str:
    """Return how sure it is that one share is larger than the next; `both`: their sum, if they come from samples.

    The difference of two shares of a multinomial distribution has the variance (both - margin^2) / samples.
    """
    deviation = math.sqrt(max(0.0, both - margin * margin) / samples) if samples else 0.0
    for name, (least, deviations) in (("high", _SURE), ("medium", _FAIRLY_SURE)):
        if margin >= max(least, deviations * deviation):
            return name
    return "low"


def within(place: Place | None, what: str = "") -> str:
    """Return a phrase for where most of a kind of time passes, with its share or `what` that is; "" if unclear."""
    if place is None or place.share < MOST_OF_IT:
        return ""
    where = f" ({place.where.rpartition('/')[2]})" if place.where else ""
    calls = f", called by {place.caller}" if place.caller else ""
    calls += f", which calls {place.callee}" if place.callee else ""
    return f", {what or f'{format_share(place.share)} of it'} in {place.name}{where}{calls}"


def of_what(steps: bool, imports: bool) -> str:
    """Return of what shares are: the loop with `steps`, or else the run, maybe without its imports."""
    return "of the loop's time" if steps else f"of the run{' without its imports' if imports else ''}"
