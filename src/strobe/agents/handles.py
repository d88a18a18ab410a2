"""Handles: names of parts of a run in answers and arguments: `step:14`, `rank:3`, `span:2.1207`, `finding:1`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from strobe.errors import UsageError
from strobe.model.durations import duration_ns
from strobe.model.plugins import Finding
from strobe.server.trace_context import TraceContext
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.sums.single_spans import span_of_row
from strobe.trace.definition_rows import location_rows, process_rows
from strobe.trace.spans import SpanArrays

FORMS = (
    "step:14, rank:3, process:0, thread:2, time:1.5ms-2ms, span:2.1207, finding:1; several with a space between: "
    "all must hold"
)


@dataclass
class Place:
    """A part of a run: a time range [start_ns, end_ns), processes and threads, where they are given."""

    start_ns: int | None = None
    end_ns: int | None = None
    process: int | None = None
    location: int | None = None
    rank: int | None = None
    steps: tuple[int, int] | None = None

    @property
    def time_ns(self) -> tuple[int, int] | None:
        """The time range; None for all of the run."""
        return None if self.start_ns is None or self.end_ns is None else (self.start_ns, self.end_ns)

    def narrow(self, start_ns: int, end_ns: int) -> None:
        """Take away what is outside of a time range."""
        self.start_ns = start_ns if self.start_ns is None else max(self.start_ns, start_ns)
        self.end_ns = end_ns if self.end_ns is None else min(self.end_ns, end_ns)

    def locations(self, context: TraceContext) -> set[int] | None:
        """Return the threads and streams; None for all."""
        if self.location is not None:
            return {self.location}
        if self.process is None:
            return None
        return {row.location for row in location_rows(context.trace) if row.process == self.process}


def place_of(context: TraceContext, text: str) -> Place:
    """Return the part of a run that handles describe. Raises UsageError where one does not exist."""
    place = Place()
    # Steps are those of a process: which one, other handles decide.
    for handle in sorted(text.split(), key=lambda handle: handle.startswith("step")):
        kind, _, value = handle.partition(":")
        if kind not in _KINDS:
            raise UsageError(f"'{handle}' is not a handle", do=f"Handles: {FORMS}.")
        _KINDS[kind](context, place, value)
    return place


def number(handle: str, kind: str) -> int:
    """Return the number in `step:14`, or in `14`. Raises UsageError."""
    digits = handle.removeprefix(f"{kind}:")
    if not re.fullmatch(r"[0-9]{1,15}", digits):
        raise UsageError(f"'{handle}' is not a handle of a {kind}", do=f"Example: {kind}:1")
    return int(digits)


def steps_of(context: TraceContext, process: int | None = None) -> ProcessSteps:
    """Return the steps of a process, or of the one that has most of them. Raises UsageError where there are none."""
    found = find_steps(context.read)
    own = [each for each in found.processes if len(each) and process in (None, each.process)]
    if not own:
        whose = "" if process is None else f" of process {process}"
        raise UsageError(f"this run has no steps{whose}: {found.reason}")
    return max(own, key=len)


def step_handle(context: TraceContext, process: int, step: int) -> str:
    """Return the handle of a step: without its process where that is the one that has most steps."""
    return f"step:{step}" + ("" if process == steps_of(context).process else f" process:{process}")


def span_handle(location: int, row: int) -> str:
    """Return the handle of a span."""
    return f"span:{location}.{row}"


def span_of(context: TraceContext, handle: str) -> tuple[int, SpanArrays]:
    """Return the location of a span, and the span as arrays of length one. Raises UsageError where there is none."""
    match = re.fullmatch(r"(?:span:)?([0-9]{1,9})\.([0-9]{1,15})", handle)
    location, row = map(int, match.groups()) if match else (-1, -1)
    found = span_of_row(context.trace, location, row) if 0 <= location < len(context.span_counts) else None
    if found is None:
        raise UsageError(f"no span '{handle}' in this run", do="The tool `spans` lists them: span:THREAD.ROW")
    return location, found


def finding_of(context: TraceContext, handle: str) -> tuple[int, Finding]:
    """Return the number of a finding, from 1, and the finding. Raises UsageError where there is none."""
    findings, at = context.summary.findings, number(handle, "finding")
    if not 1 <= at <= len(findings):
        raise UsageError(f"no finding {at} in this run; it has {len(findings)}")
    return at, findings[at - 1]


def _rank(context: TraceContext, place: Place, value: str) -> None:
    place.rank = number(value, "rank")
    ranks = {row.rank: row.process for row in reversed(process_rows(context.trace)) if row.rank is not None}
    if place.rank not in ranks:
        known = f"Ranks: {min(ranks)} to {max(ranks)}" if ranks else "Its processes have no ranks."
        raise UsageError(f"no rank {place.rank} in this run", do=known)
    place.process = ranks[place.rank]


def _process(context: TraceContext, place: Place, value: str) -> None:
    place.process = number(value, "process")
    if place.process >= len(process_rows(context.trace)):
        raise UsageError(f"no process {place.process} in this run; it has {len(process_rows(context.trace))}")
    place.rank = process_rows(context.trace)[place.process].rank


def _thread(context: TraceContext, place: Place, value: str) -> None:
    place.location = number(value, "thread")
    if place.location >= len(context.span_counts):
        raise UsageError(f"no thread or stream {place.location} in this run; it has {len(context.span_counts)}")


def _step(context: TraceContext, place: Place, value: str) -> None:
    first, _, last = value.partition("-")
    begin, end = number(first, "step"), number(last or first, "step")
    steps = steps_of(context, place.process)
    numbers = np.arange(len(steps)) + steps.first_number
    inside = np.flatnonzero((numbers >= begin) & (numbers <= end))
    if not len(inside):
        raise UsageError(f"no step {value} in this run", do=f"Steps: {numbers[0]} to {numbers[-1]}")
    place.steps = begin, end
    place.narrow(int(steps.start_ns[inside].min()), int(steps.end_ns[inside].max()))


def _time(_: TraceContext, place: Place, value: str) -> None:
    begin, _dash, end = value.partition("-")
    try:
        place.narrow(duration_ns(begin, "ns"), duration_ns(end, "ns"))
    except ValueError as error:
        raise UsageError(f"'time:{value}' is not a time range: {error}", do="Examples: time:1.5ms-2ms") from None
    if place.start_ns is not None and place.end_ns is not None and place.end_ns <= place.start_ns:
        raise UsageError(f"the time range {value} ends before it begins")


def _span(context: TraceContext, place: Place, value: str) -> None:
    place.location, span = span_of(context, value)
    start_ns = int(span["start_ns"][0])
    place.narrow(start_ns, start_ns + max(1, int(span["duration_ns"][0])))


def _finding(context: TraceContext, place: Place, value: str) -> None:
    at, finding = finding_of(context, value)
    if not finding.evidence:
        raise UsageError(f"finding {at} has no place in the run that shows it")
    shown = finding.evidence[0]
    # Of all threads: a GPU that idles is explained by what others do meanwhile.
    place.narrow(shown["start_ns"], shown["start_ns"] + max(1, shown["duration_ns"]))


_KINDS: dict[str, Callable[[TraceContext, Place, str], None]] = {
    "rank": _rank,
    "process": _process,
    "thread": _thread,
    "step": _step,
    "time": _time,
    "span": _span,
    "finding": _finding,
}
