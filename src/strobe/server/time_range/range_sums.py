"""What happens in a time range: exclusive time by group and by name, over all locations, cut at its ends.

Where all folded steps of a process lie in it, their statistics are added: the sums are exact. Where only some do, it is
not known what these called: their time is a row of its own, split by the parts of their records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from strobe.model.kinds import GROUPS, PARTS
from strobe.model.schema import Column
from strobe.server.routing.endpoints import MB, TIME_RANGE, route
from strobe.server.spans.span_tables import expected_spans
from strobe.server.time_range.folded_steps import FoldedProcess, folded_process
from strobe.server.trace_context import TraceContext
from strobe.steps.folded_time import Stretches
from strobe.tables.column_arrays import Floats, Ints
from strobe.tables.table import make_table
from strobe.trace.definition_rows import location_rows, processes_of_locations
from strobe.trace.spans import SpanArrays, chosen_spans

_WORTH_KEEPING = 50_000
_MOST_NAMES = 14
# Rows that split the time of folded steps, beside the parts of a step: of those cut by an end of the window, and what
# other threads did meanwhile, or other processes in iterations of their own.
CUT, MEANWHILE = "cut", "meanwhile"

COLUMNS = (
    Column(
        "kind",
        "string",
        "",
        "what the row is about: a group, a name, or folded steps",
        values=("group", "name", "folded"),
    ),
    Column("name", "string", "", "name of the group, the region, or the part of a step"),
    Column("group", "string", "", "what it is drawn as, empty for folded steps"),
    Column("self_ns", "int64", "ns", "exclusive time inside the stretch"),
    Column("count", "int64", "", "executions that begin in the stretch"),
)


@dataclass
class Sums:
    """Exclusive time by region, and executions that begin; what is only known to be the time of folded steps, ns."""

    own: Floats
    count: Ints
    folded: dict[str, int] = field(default_factory=dict)
    # Steps whose statistics are in the sums, and steps of which only the time is known.
    counted_steps: int = 0
    folded_steps: int = 0
    # What was folded outside of all steps, or as too short, and may have run at any time.
    unplaced: int = 0

    def add_folded(self, name: str, time_ns: int) -> None:
        """Add to what is only known to be the time of folded steps."""
        if time_ns:
            self.folded[name] = self.folded.get(name, 0) + time_ns


def clipped_self_ns(arrays: SpanArrays, start_ns: int, end_ns: int, without: Stretches | None = None) -> Ints:
    """Return each span's exclusive time inside [start_ns, end_ns); the spans are all that overlap it, by row.

    `without`: stretches of time that do not count.
    """
    ends = (arrays["start_ns"], arrays["start_ns"] + arrays["duration_ns"])
    begin, end = (np.clip(each, start_ns, end_ns) for each in ends)
    inside = end - begin
    if without is not None and len(without):
        inside = inside - (without.before(end) - without.before(begin))
    # A span that overlaps the window has a parent that does too, so every parent is among the rows.
    child = np.flatnonzero(arrays["parent"] >= 0)
    parent = np.searchsorted(arrays["row"], arrays["parent"][child])
    own: Ints = inside - np.bincount(parent, weights=inside[child], minlength=len(inside)).astype(np.int64)
    return own


def spans_in(context: TraceContext, location: int, start_ns: int, end_ns: int) -> SpanArrays:
    """Return the spans of a location that overlap [start_ns, end_ns)."""
    if expected_spans(context, location, start_ns, end_ns) < _WORTH_KEEPING:
        return context.trace.span_arrays(location, start_ns, end_ns)
    # Wide windows of one location follow each other while zooming: decoding it once serves them all.
    arrays = context.whole_location(location)
    start = arrays["start_ns"]
    return chosen_spans(arrays, np.flatnonzero((start < end_ns) & (start + arrays["duration_ns"] > start_ns)))


def _add_spans(sums: Sums, context: TraceContext, location: int, start_ns: int, end_ns: int, folded: Stretches) -> int:
    """Add the spans of a location of which a part was folded; return how much of their time lies in that, ns."""
    arrays = spans_in(context, location, start_ns, end_ns)
    if not len(arrays["row"]):
        return 0
    size = len(sums.own)
    own = clipped_self_ns(arrays, start_ns, end_ns, folded)
    sums.own += np.bincount(arrays["region"], weights=own, minlength=size)
    sums.count += np.bincount(arrays["region"][arrays["start_ns"] >= start_ns], minlength=size)
    return int(clipped_self_ns(arrays, start_ns, end_ns).sum() - own.sum())


def _add_statistics(sums: Sums, context: TraceContext, folded: FoldedProcess) -> None:
    """Add all that was folded of a process, and take from its spans' own time what ran inside of them."""
    _, region_of_path = context.call_path_arrays
    running = np.array(_running(context), dtype=bool)
    statistics = folded.statistics.chosen(running[folded.statistics.location])
    region = region_of_path[statistics.call_path]
    np.add.at(sums.own, region, statistics.own_ns)
    np.add.at(sums.count, region, statistics.count)
    sums.counted_steps = max(sums.counted_steps, len(folded.stretches))


def _running(context: TraceContext) -> list[bool]:
    """Return which locations do what is time of the program."""
    # Tasks are not threads: their time is not the program's (a profiler's own row, asynchronous work).
    return [row.kind != "task" for row in location_rows(context.trace)]


def _add_records(sums: Sums, folded: FoldedProcess, start_ns: int, end_ns: int) -> None:
    """Add the time of the folded steps in a window: by the parts of those that lie in it as a whole."""
    inside = folded.stretches.overlapping(start_ns, end_ns)
    iterations = folded.iterations
    begin = iterations.start_ns[inside.rows]
    last = begin + iterations.duration_ns[inside.rows]
    # The parts are those of whole steps: they are too large for a step whose end is kept in detail.
    whole = (inside.begin_ns == begin) & (inside.end_ns == last) & (begin >= start_ns) & (last <= end_ns)
    for part, time_ns in zip(PARTS, iterations.parts_ns[inside.rows[whole]].sum(axis=0).tolist(), strict=True):
        sums.add_folded(part, int(time_ns))
    sums.add_folded(CUT, inside.inside_ns(start_ns, end_ns) - int(iterations.duration_ns[inside.rows[whole]].sum()))
    sums.folded_steps = max(sums.folded_steps, len(inside))


def running_locations(context: TraceContext) -> list[int]:
    """Return the threads and streams, whose time is the program's."""
    return [location for location, runs in enumerate(_running(context)) if runs]


def process_sums(context: TraceContext, start_ns: int, end_ns: int) -> tuple[Floats, Ints, dict[int, Sums]]:
    """Return what each process did in [start_ns, end_ns), over all its locations.

    Exclusive time and executions: arrays (processes, regions). With them, the sums of those that folded steps.
    """
    shape = len(context.trace.processes), len(context.names.names)
    own, count = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    found = {process: Sums(own[process], count[process]) for process in context.trace.folded}
    unknown: dict[int, FoldedProcess] = {}
    for process, sums in found.items():
        folded = folded_process(context, process)
        if folded.whole_in(context, start_ns, end_ns):
            _add_statistics(sums, context, folded)
        else:
            unknown[process] = folded
            sums.unplaced += folded.unplaced
    # Workers of a loader, for example, fold by iterations of their own; "the steps" are those of the process with most.
    main = max(unknown, key=lambda process: len(unknown[process].stretches), default=None)
    for process, folded in unknown.items():
        if process == main:
            _add_records(found[process], folded, start_ns, end_ns)
        else:
            found[process].add_folded(MEANWHILE, folded.stretches.inside_ns(start_ns, end_ns))
    running = _running(context)
    owners = processes_of_locations(context.trace)
    plain = [location for location, process in enumerate(owners) if running[location] and process not in unknown]
    for locations, executions, own_ns in context.profiles(plain, start_ns, end_ns):
        of_locations = [owners[location] for location in locations]
        np.add.at(count, of_locations, executions)
        np.add.at(own, of_locations, own_ns)
    for location, process in enumerate(owners):
        if running[location] and process in unknown:
            around = unknown[process]
            stretches = around.of_location(context, location)
            meanwhile = _add_spans(found[process], context, location, start_ns, end_ns, stretches)
            if location != around.main:
                found[process].add_folded(MEANWHILE, meanwhile)
    return own, count, found


def summed(context: TraceContext, start_ns: int, end_ns: int) -> Sums:
    """Return what all processes together did in [start_ns, end_ns)."""
    own, count, found = process_sums(context, start_ns, end_ns)
    sums = Sums(own.sum(axis=0), count.sum(axis=0))
    for each in found.values():
        for name, time_ns in each.folded.items():
            sums.add_folded(name, time_ns)
        sums.counted_steps = max(sums.counted_steps, each.counted_steps)
        sums.folded_steps = max(sums.folded_steps, each.folded_steps)
        sums.unplaced += each.unplaced
    return sums


@route("window", *TIME_RANGE, columns=COLUMNS, most_bytes=MB, slow=True)
def window_table(context: TraceContext, start_ns: int, end_ns: int, limit: int = _MOST_NAMES) -> pa.Table:
    """Which groups and names take the time of a window, over all locations.

    There is a row for each group, and for each of the `limit` names with most exclusive time (`kind`: group, name).
    `kind` folded: time of steps of which it is not known what they called, by part of a step; `cut`: of steps of which
    only a part is in the window; `meanwhile`: of other threads and processes. Metadata: how many steps these are
    (`folded_steps`), of how many the statistics are in the other rows (`counted_steps`), and how many executions were
    folded outside of all steps, or as too short, and are in no row (`unplaced`).
    """
    sums = summed(context, start_ns, end_ns)
    rows = [*_rows(context, sums, limit), *(("folded", name, "", ns, 0) for name, ns in sums.folded.items())]
    table = make_table(COLUMNS, rows).to_arrow()
    about = {name: str(vars(sums)[name]) for name in ("folded_steps", "counted_steps", "unplaced")}
    return table.replace_schema_metadata(about)


def _rows(context: TraceContext, sums: Sums, limit: int) -> Iterator[tuple[str, str, str, int, int]]:
    names, groups = context.names.names, context.names.groups
    number = np.array([GROUPS.index(group) for group in groups], dtype=np.int64)
    by_group = np.bincount(number, weights=sums.own, minlength=len(GROUPS))
    group_count = np.bincount(number, weights=sums.count, minlength=len(GROUPS))
    for at in np.argsort(-by_group, kind="stable").tolist():
        if by_group[at] > 0:
            yield "group", GROUPS[at], GROUPS[at], int(by_group[at]), int(group_count[at])
    # Calls of MPI from several places are regions of one name.
    by_name, count = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for region in np.flatnonzero(sums.own > 0).tolist():
        key = names[region], groups[region]
        by_name[key] += sums.own[region]
        count[key] += int(sums.count[region])
    for (name, group), own_ns in by_name.most_common(limit):
        yield "name", name, group, int(own_ns), count[name, group]
