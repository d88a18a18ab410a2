"""Links: which spans belong to a span because it started them, or they started it, sent to it, or met it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.ranks.collectives import collectives
from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# The tables of what GPUs do; a call shares its correlation with what it started.
_ON_GPU = ("kernel_spans", "copy_spans", "sync_spans")
# Rows of tables, and for collectives spans, up to which an index is made while somebody waits: some seconds, once.
MOST_INDEXED = 20_000_000
# Flows that repeat what correlations hold.
_OF_LAUNCHES = ("ac2g", "async_gpu", "async_cpu_to_gpu")


@dataclass(frozen=True)
class Link:
    """The other end of a link: a span by its row, or whatever runs in a location at a moment (`row` -1).

    kind: launch, backward (of a forward operator), message, collective, or the category of a flow. way: `to` what
    follows from the span, `from` what it follows from, `with` who took part in the same. inside: it is a link of a
    span inside of the one that was asked about.
    """

    kind: str
    way: str
    location: int
    row: int
    time_ns: int
    inside: bool = False


@dataclass(frozen=True)
class Chosen:
    """The span whose links are asked for: its row, up to which row spans lie inside of it, when and what it runs."""

    location: int
    row: int
    last_row: int
    start_ns: int
    end_ns: int
    communicates: bool = True


def left_out(trace: Trace, span: Chosen) -> list[str]:
    """Return the kinds of links that are not looked for, as the run holds more of them than can be read meanwhile."""
    process = _process_of(trace, span.location)
    sizes = {
        "launch": _rows_of(trace, [process], ("call_spans", *_ON_GPU)),
        "backward": _rows_of(trace, [process], ("operator_spans",)),
        "message": _rows_of(trace, range(len(trace.readers)), ("messages",)),
        "flow": _rows_of(trace, range(len(trace.readers)), ("flows",)),
        "collective": trace.span_count if span.communicates and _has_collectives(trace) else 0,
    }
    return [kind for kind, size in sizes.items() if size > MOST_INDEXED]


def _rows_of(trace: Trace, processes: Iterable[int], tables: Sequence[str]) -> int:
    return sum(_table_sizes(trace, process).get(table, 0) for process in processes for table in tables)


@cached_on_trace
def _table_sizes(trace: Trace, process: int) -> dict[str, int]:
    return trace.readers[process].tables()


def _process_of(trace: Trace, location: int) -> int:
    return processes_of_locations(trace)[location]


def links_of(trace: Trace, span: Chosen) -> Iterator[Link]:
    """Yield the links of a span, and those of calls and messages inside of it, kind by kind, each in order of time."""
    process, without = _process_of(trace, span.location), left_out(trace, span)
    if "launch" not in without:
        yield from _launched(trace, process, span)
    if "backward" not in without:
        yield from _backward(trace, process, span)
    if "message" not in without:
        yield from _messages(trace, span)
    if "collective" not in without and span.communicates and _has_collectives(trace):
        yield from _collectives(trace, span)
    if "flow" not in without:
        yield from _flows(trace, span)


class _Numbered:
    """Spans that share numbers with others; `second` is the side of the link."""

    def __init__(self, parts: Sequence[Ints]) -> None:
        """Take columns of number, location, row, and side (0 or 1)."""
        columns = np.concatenate([np.zeros((4, 0), dtype=np.int64), *parts], axis=1)
        columns = columns[:, np.lexsort((columns[2], columns[1], columns[0]))]
        self.number, self.location, self.row = columns[0], columns[1], columns[2]
        self.second = columns[3] > 0
        key = _key(self.location, self.row)
        self._by_row = np.argsort(key, kind="stable")
        self._key = key[self._by_row]

    def own(self, span: Chosen) -> Ints:
        """Return which entries are of the span or of spans inside of it, in order of row."""
        first, last = _key(span.location, span.row), _key(span.location, span.last_row)
        found: Ints = self._by_row[np.searchsorted(self._key, first) : np.searchsorted(self._key, last)]
        return found

    def others(self, entry: int) -> Ints:
        """Return the entries on the other side with the same number, in order of location and row."""
        number = self.number[entry]
        begin, end = np.searchsorted(self.number, (number, number + 1))
        found: Ints = begin + np.flatnonzero(self.second[begin:end] != self.second[entry])
        return found


def _key(location: Ints | int, row: Ints | int) -> Ints:
    return np.asarray(location, dtype=np.int64) * 2**40 + row


def _launched(trace: Trace, process: int, span: Chosen) -> Iterator[Link]:
    known = _launch_numbers(trace, process)
    for entry in known.own(span).tolist():
        others = known.others(entry)
        if known.second[entry]:
            # Of several calls with the same correlation (the driver's inside the runtime's) the outermost counts.
            others = others[:1]
        for other in others.tolist():
            way = "from" if known.second[entry] else "to"
            inside = bool(known.row[entry] != span.row)
            yield Link("launch", way, int(known.location[other]), int(known.row[other]), 0, inside)


def launching_call(trace: Trace, location: int, row: int) -> tuple[int, int] | None:
    """Return location and row of the call that launched an activity; None where that is not known."""
    span = Chosen(location, row, row + 1, 0, 0)
    if "launch" in left_out(trace, span):
        return None
    found = next(iter(_launched(trace, _process_of(trace, location), span)), None)
    return (found.location, found.row) if found and found.way == "from" else None


@cached_on_trace
def _launch_numbers(trace: Trace, process: int) -> _Numbered:
    parts: list[Ints] = []
    for location in _locations(trace, process):
        parts += _entries(trace, "call_spans", location, "correlation", 0)
        for table in _ON_GPU:
            parts += _entries(trace, table, location, "correlation", 1)
    return _Numbered(parts)


def _entries(trace: Trace, table: str, location: int, column: str, side: int) -> Iterator[Ints]:
    for batch in trace.side_batches(table, location):
        number = integers(batch.column(column))
        yield _stacked(number, location, integers(batch.column("row")), side)[:, number > 0]


def _stacked(number: Ints, location: int, row: Ints, side: int | Ints) -> Ints:
    return np.stack(np.broadcast_arrays(number, location, row, side)).astype(np.int64)


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
        if known.row[entry] != span.row:
            continue
        others = known.others(entry)
        if known.second[entry]:
            others = others[-1:]
        elif _later_forward(known, entry):
            continue
        else:
            others = others[:1]
        for other in others.tolist():
            way = "from" if known.second[entry] else "to"
            yield Link("backward", way, int(known.location[other]), int(known.row[other]), 0)


def _later_forward(known: _Numbered, entry: int) -> bool:
    """Whether a forward operator with the same number began later in the same thread."""
    return bool(
        entry + 1 < len(known.number)
        and known.number[entry + 1] == known.number[entry]
        and known.location[entry + 1] == known.location[entry]
        and not known.second[entry + 1]
    )


@cached_on_trace
def _operator_numbers(trace: Trace, process: int) -> _Numbered:
    parts = []
    for location in _locations(trace, process):
        for batch in trace.side_batches("operator_spans", location):
            number = integers(batch.column("sequence_number"))
            backward = integers(batch.column("forward_thread")) > 0
            rows = integers(batch.column("row"))
            parts.append(_stacked(number, location, rows, backward.astype(np.int64))[:, number >= 0])
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


def _messages(trace: Trace, span: Chosen) -> Iterator[Link]:
    yield from _matched_messages(trace).of(span)


@cached_on_trace
def _matched_messages(trace: Trace) -> _Moments:
    """Match messages: the n-th of a sender, receiver, communicator and tag is the n-th received, if as many are."""
    ranks = ranks_of(trace)
    texts = Texts()
    parts = [np.zeros((7, 0), dtype=np.int64)]  # sender, receiver, communicator, tag, location, time, whether sent
    for location, process in enumerate(processes_of_locations(trace)):
        rank = ranks[process]
        if rank is None:
            continue
        for batch in trace.side_batches("messages", location):
            direction = texts.numbers(batch.column("direction"))
            sent = direction == texts.number("send")
            chosen = sent | (direction == texts.number("receive"))
            peer, own = integers(batch.column("peer_rank")), np.full(len(batch), rank)
            pair = np.where(sent, own, peer), np.where(sent, peer, own)
            of = texts.numbers(batch.column("communicator")), integers(batch.column("tag"))
            time = integers(batch.column("time_ns"))
            parts.append(np.stack((*pair, *of, np.full(len(time), location), time, sent))[:, chosen])
    whole = np.concatenate(parts, axis=1)
    whole = whole[:, np.lexsort((whole[5], whole[4]))]
    other = np.full(whole.shape[1], -1, dtype=np.int64)
    if len(other):
        key, _ = _keys(whole[:4])
        order = np.lexsort((whole[5], whole[6], key))
        sorted_key, sent = key[order], whole[6][order] > 0
        counts = [np.bincount(sorted_key[which], minlength=int(sorted_key[-1]) + 1) for which in (sent, ~sent)]
        as_many = (counts[0] == counts[1])[sorted_key]
        # In each group the received ones come first, both in order of time: the n-th of one is the n-th of the other.
        other[order[sent & as_many]] = order[~sent & as_many]
        other[order[~sent & as_many]] = order[sent & as_many]
    way = np.where(whole[6] > 0, "to", "from").tolist()
    return _Moments(whole[4], whole[5], way, ["message"] * len(other), other)


def _keys(columns: Ints) -> tuple[Ints, Ints]:
    """Number the combinations in columns; return the number of each, and how often it is there."""
    if not columns.shape[1]:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    _, key, counts = np.unique(columns, axis=1, return_inverse=True, return_counts=True)
    key = key.ravel()
    return key, counts[key]


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


def _flows(trace: Trace, span: Chosen) -> Iterator[Link]:
    yield from _matched_flows(trace).of(span)


@cached_on_trace
def _matched_flows(trace: Trace) -> _Moments:
    """Put the points of each flow one after the other: start, steps, end. A flow is its number, name and category."""
    texts = Texts()
    parts = [np.zeros((7, 0), dtype=np.int64)]  # flow, its name, name, category, process, location, time
    for location, process in enumerate(processes_of_locations(trace)):
        for batch in trace.side_batches("flows", location):
            category = texts.numbers(batch.column("category"))
            chosen = ~np.isin(category, [texts.number(each) for each in _OF_LAUNCHES])
            named = texts.numbers(batch.column("flow_name")), texts.numbers(batch.column("name"))
            time = integers(batch.column("time_ns"))
            where = (np.full(len(batch), each) for each in (process, location))
            columns = np.stack((integers(batch.column("flow")), *named, category, *where, time))
            parts.append(columns[:, chosen])
    whole = np.concatenate(parts, axis=1)
    key, count = _keys(whole[:5])
    # Files of several ranks number flows each from the start; only what has no other end at home may go elsewhere.
    key, _ = _keys(np.vstack((whole[:4], np.where(count > 1, whole[4], -1))))
    whole = whole[[0, 1, 2, 3, 5, 6]]
    order = np.lexsort((whole[5], key))
    first, second = order[:-1], order[1:]
    joined = key[first] == key[second]
    first, second = first[joined], second[joined]
    # Each pair of neighbours is one link, seen from both of its ends.
    columns = np.concatenate((whole[:, first], whole[:, second]), axis=1)
    other = np.concatenate((np.arange(len(first)) + len(first), np.arange(len(first))))
    way = np.repeat((0, 1), len(first))
    place = np.lexsort((columns[5], columns[4]))
    moved = np.empty_like(place)
    moved[place] = np.arange(len(place))
    kinds = ["backward" if text == "fwdbwd" else text or "flow" for text in map(texts.text, columns[3][place].tolist())]
    ways = ["to" if each == 0 else "from" for each in way[place].tolist()]
    return _Moments(columns[4][place], columns[5][place], ways, kinds, moved[other[place]])
