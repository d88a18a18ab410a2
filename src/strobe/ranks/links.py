"""Links: spans that a span started, that started it, sent to it, or took part in the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.ranks.collectives import collectives
from strobe.ranks.messages import MessageEnds, matched, message_ends, numbered
from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Columns, Ints
from strobe.trace.definition_rows import processes_of_locations
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# The tables of activities of GPUs; a call shares its correlation with those that it started.
_ON_GPU = ("kernel_spans", "copy_spans", "sync_spans")
# Up to so many rows of tables (for collectives: spans) an index is made while a user waits: some seconds, once.
MOST_INDEXED = 20_000_000
# Flows that repeat correlations.
_OF_LAUNCHES = ("ac2g", "async_gpu", "async_cpu_to_gpu")


@dataclass(frozen=True)
class Link:
    """The other end of a link: a span by its row, or whatever runs in a location at a moment (`row` -1).

    kind: launch, backward (of a forward operator), message, collective, or the category of a flow. way: `to` what
    follows from the span, `from` what it follows from, `with` those that took part in the same. inside: the link is
    that of a span inside of the chosen one.
    """

    kind: str
    way: str
    location: int
    row: int
    time_ns: int
    inside: bool = False


@dataclass(frozen=True)
class Chosen:
    """The span whose links are wanted. `last_row`: spans up to this row lie inside of it."""

    location: int
    row: int
    last_row: int
    start_ns: int
    end_ns: int
    communicates: bool = True


def left_out(trace: Trace, span: Chosen) -> list[str]:
    """Return the kinds of links that are skipped because the run has too many of them."""
    process = trace.home(span.location).process
    sizes = {
        "launch": _rows_of(trace, [process], ("call_spans", *_ON_GPU)),
        "backward": _rows_of(trace, [process], ("operator_spans",)),
        "message": size_of_messages(trace),
        "flow": _rows_of(trace, range(len(trace.readers)), ("flows",)),
        "collective": trace.span_count if span.communicates and _has_collectives(trace) else 0,
    }
    return [kind for kind, size in sizes.items() if size > MOST_INDEXED]


def _rows_of(trace: Trace, processes: Iterable[int], tables: Sequence[str]) -> int:
    return sum(_table_sizes(trace, process).get(table, 0) for process in processes for table in tables)


@cached_on_trace
def _table_sizes(trace: Trace, process: int) -> dict[str, int]:
    return trace.readers[process].tables()


def links_of(trace: Trace, span: Chosen) -> Iterator[Link]:
    """Yield the links of a span, and those of calls and messages inside of it, kind by kind, each in order of time."""
    process, without = trace.home(span.location).process, left_out(trace, span)
    if "launch" not in without:
        yield from _launched(trace, process, span)
    if "backward" not in without:
        yield from _backward(trace, process, span)
    if "message" not in without:
        yield from _matched_messages(trace).of(span)
    if "collective" not in without and span.communicates and _has_collectives(trace):
        yield from _collectives(trace, span)
    if "flow" not in without:
        yield from _matched_flows(trace).of(span)


@dataclass(frozen=True)
class _Entries(Columns):
    """Spans with a number that they share with others; `second` is the side of the link."""

    number: Ints
    location: Ints
    row: Ints
    second: Bools


class _Numbered:
    """Entries in order of number, location and row."""

    def __init__(self, parts: Iterable[_Entries]) -> None:
        entries = _Entries.joined(parts)
        self.entries = entries.chosen(np.lexsort((entries.row, entries.location, entries.number)))
        key = _key(self.entries.location, self.entries.row)
        self._by_row = np.argsort(key, kind="stable")
        self._key = key[self._by_row]

    def own(self, span: Chosen) -> Ints:
        """Return which entries are of the span or of spans inside of it, in order of row."""
        first, last = _key(span.location, span.row), _key(span.location, span.last_row)
        return self._by_row[np.searchsorted(self._key, first) : np.searchsorted(self._key, last)]

    def others(self, entry: int) -> Ints:
        """Return the entries on the other side with the same number, in order of location and row."""
        number, second = self.entries.number, self.entries.second
        begin, end = np.searchsorted(number, (number[entry], number[entry] + 1))
        found: Ints = begin + np.flatnonzero(second[begin:end] != second[entry])
        return found

    def link(self, kind: str, entry: int, other: int, *, inside: bool = False) -> Link:
        way = "from" if self.entries.second[entry] else "to"
        return Link(kind, way, int(self.entries.location[other]), int(self.entries.row[other]), 0, inside)


def _key(location: Ints | int, row: Ints | int) -> Ints:
    return np.asarray(location, dtype=np.int64) * 2**40 + row


def _launched(trace: Trace, process: int, span: Chosen) -> Iterator[Link]:
    known = _launch_numbers(trace, process)
    for entry in known.own(span).tolist():
        # Of several calls with the same correlation (the driver's inside the runtime's) the outermost counts.
        others = known.others(entry)[: 1 if known.entries.second[entry] else None]
        for other in others.tolist():
            yield known.link("launch", entry, other, inside=bool(known.entries.row[entry] != span.row))


def launching_call(trace: Trace, location: int, row: int) -> tuple[int, int] | None:
    """Return location and row of the call that launched an activity; None if unknown."""
    span = Chosen(location, row, row + 1, 0, 0)
    if "launch" in left_out(trace, span):
        return None
    found = next(iter(_launched(trace, trace.home(location).process, span)), None)
    return (found.location, found.row) if found and found.way == "from" else None


@cached_on_trace
def _launch_numbers(trace: Trace, process: int) -> _Numbered:
    parts = []
    for location in _locations(trace, process):
        for table in ("call_spans", *_ON_GPU):
            for batch in trace.side_batches(table, location):
                number, row = integers(batch.column("correlation")), integers(batch.column("row"))
                second = np.full(len(row), table in _ON_GPU)
                parts.append(_Entries(number, np.full(len(row), location), row, second).chosen(number > 0))
    return _Numbered(parts)


def _locations(trace: Trace, process: int) -> list[int]:
    owners = processes_of_locations(trace)
    return [location for location, owner in enumerate(owners) if owner == process]


def _backward(trace: Trace, process: int, span: Chosen) -> Iterator[Link]:
    """Link forward and backward operators by PyTorch's sequence numbers.

    As libkineto does (generateForwardBackwardLinks): of several forward operators with the same number the one that
    began last made the node of the backward pass.
    """
    known = _operator_numbers(trace, process)
    for entry in known.own(span).tolist():
        if known.entries.row[entry] == span.row and not _later_forward(known.entries, entry):
            others = known.others(entry)
            for other in (others[-1:] if known.entries.second[entry] else others[:1]).tolist():
                yield known.link("backward", entry, other)


def _later_forward(known: _Entries, entry: int) -> bool:
    """Whether this is a forward operator, and one with the same number began later in the same thread."""
    return bool(
        entry + 1 < len(known)
        and known.number[entry + 1] == known.number[entry]
        and known.location[entry + 1] == known.location[entry]
        and not known.second[entry]
        and not known.second[entry + 1]
    )


@cached_on_trace
def _operator_numbers(trace: Trace, process: int) -> _Numbered:
    parts = []
    for location in _locations(trace, process):
        for batch in trace.side_batches("operator_spans", location):
            number, row = integers(batch.column("sequence_number")), integers(batch.column("row"))
            backward = integers(batch.column("forward_thread")) > 0
            parts.append(_Entries(number, np.full(len(row), location), row, backward).chosen(number >= 0))
    return _Numbered(parts)


@dataclass(frozen=True)
class _Moments:
    """Ends of links that have a time and no span, by location and time. `other`: the entry at the other end."""

    location: Ints
    time_ns: Ints
    way: list[str]
    kind: list[str]
    other: Ints

    def of(self, span: Chosen) -> Iterator[Link]:
        begin, end = np.searchsorted(self.location, (span.location, span.location + 1))
        first = begin + int(np.searchsorted(self.time_ns[begin:end], span.start_ns))
        last = begin + int(np.searchsorted(self.time_ns[begin:end], span.end_ns, side="right"))
        for entry in range(first, last):
            other = int(self.other[entry])
            if other >= 0:
                where, when = int(self.location[other]), int(self.time_ns[other])
                yield Link(self.kind[entry], self.way[entry], where, -1, when)


@cached_on_trace
def matched_ends(trace: Trace) -> tuple[MessageEnds, Ints, Ints]:
    """Return all ends of messages by location and time, and which sends and receives of them are one message."""
    ends = message_ends(trace)
    ends = ends.chosen(np.lexsort((ends.time_ns, ends.place)))
    return ends, *matched(ends)


def size_of_messages(trace: Trace) -> int:
    """Return how many ends of messages are in the trace."""
    return _rows_of(trace, range(len(trace.readers)), ("messages",))


@cached_on_trace
def _matched_messages(trace: Trace) -> _Moments:
    ends, send, receive = matched_ends(trace)
    other = np.full(len(ends), -1, dtype=np.int64)
    other[send], other[receive] = receive, send
    way = np.where(ends.sent, "to", "from").tolist()
    return _Moments(ends.place, ends.time_ns, way, ["message"] * len(ends), other)


def _collectives(trace: Trace, span: Chosen) -> Iterator[Link]:
    found = collectives(trace)
    own = np.flatnonzero((found.location == span.location) & (found.row == span.row) & (found.collective >= 0))
    for entry in own.tolist():
        same = np.flatnonzero(found.collective == found.collective[entry])
        for other in same[found.party[same] != found.party[entry]].tolist():
            where, row = int(found.location[other]), int(found.row[other])
            yield Link("collective", "with", where, row, int(found.start_ns[other]))


@cached_on_trace
def _has_collectives(trace: Trace) -> bool:
    return len(trace.processes) > 1 and "communication" in trace.regions.column("group")


@dataclass(frozen=True)
class _Points(Columns):
    """Points of flows: start, steps, end."""

    flow: Ints
    flow_name: Ints
    name: Ints
    category: Ints
    process: Ints
    location: Ints
    time_ns: Ints


@cached_on_trace
def _matched_flows(trace: Trace) -> _Moments:
    """Link neighbours among the points of each flow, in order of time. A flow is its number, name and category."""
    texts = Texts()
    parts = []
    for location, process in enumerate(processes_of_locations(trace)):
        for batch in trace.side_batches("flows", location):
            points = _Points(
                flow=integers(batch.column("flow")),
                flow_name=texts.numbers(batch.column("flow_name")),
                name=texts.numbers(batch.column("name")),
                category=texts.numbers(batch.column("category")),
                process=np.full(len(batch), process),
                location=np.full(len(batch), location),
                time_ns=integers(batch.column("time_ns")),
            )
            parts.append(points.chosen(~np.isin(points.category, [texts.number(each) for each in _OF_LAUNCHES])))
    points = _Points.joined(parts)
    named = (points.flow, points.flow_name, points.name, points.category)
    at_home = numbered(*named, points.process)
    # Files of several ranks number flows each from the start; only a point that is alone at home may have its other end
    # elsewhere.
    key = numbered(*named, np.where(np.bincount(at_home)[at_home] > 1, points.process, -1))
    order = np.lexsort((points.time_ns, key))
    first, second = order[:-1], order[1:]
    joined = key[first] == key[second]
    # Each pair of neighbours is one link, seen from both of its ends.
    count = int(joined.sum())
    ends = points.chosen(np.concatenate((first[joined], second[joined])))
    other = np.concatenate((np.arange(count) + count, np.arange(count)))
    place = np.lexsort((ends.time_ns, ends.location))
    moved = np.empty_like(place)
    moved[place] = np.arange(len(place))
    categories = map(texts.text, ends.category[place].tolist())
    kinds = ["backward" if text == "fwdbwd" else text or "flow" for text in categories]
    ways = np.where(place < count, "to", "from").tolist()
    return _Moments(ends.location[place], ends.time_ns[place], ways, kinds, moved[other[place]])
