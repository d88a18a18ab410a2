"""The entries of flight recorders' dumps: what each rank called, in which group, and whether that was complete."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow.compute as pc

from strobe.ranks.collective_kernels import of_dump
from strobe.trace.definition_rows import location_rows, ranks_of, region_rows, regions_where
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

_COLLECTIVE = (
    *("group", "group_description", "group_ranks", "sequence", "collective", "source_rank", "destination_rank"),
)
_OPERATOR = ("shapes", "types", "call_stack")
_ARGUMENTS = ("state", "retired", "output_sizes", "output_dtypes", "record_id")
Span = tuple[int, int]  # location, row
# Frames of PyTorch itself are not where the program called the operation.
_OF_TORCH = ("/torch/", "\\torch\\")


class Group(NamedTuple):
    """A process group: its name, what it is for ("" if unknown), and its ranks as JSON, None if unknown."""

    name: str
    description: str
    ranks: str | None

    @property
    def title(self) -> str:
        """Its name in sentences."""
        return f"group {self.name}" + (f" ({self.description})" if self.description not in ("", self.name) else "")


class Call(NamedTuple):
    """What was called: shapes and types are JSON; "" where the dump lacks them."""

    operation: str
    in_shapes: str
    in_types: str
    out_shapes: str
    out_types: str


@dataclass(frozen=True)
class Entry:
    """An operation that a rank called at start_ns.

    sequence: number in the group; messages have their own. source, destination: ranks in the group, of messages only.
    called_at: the function and line of the program, "" if the dump has no stacks. record: number of the entry on its
    rank, from 0, -1 if unknown. location, row: of its span.
    """

    rank: int
    group: Group
    sequence: int
    message: bool
    source: int | None
    destination: int | None
    call: Call
    state: str
    complete: bool
    called_at: str
    record: int
    start_ns: int
    location: int
    row: int

    @property
    def title(self) -> str:
        """Its name in sentences: `all_reduce 5 of group 0 (default_pg)`."""
        return f"{self.call.operation} {self.sequence} of {self.group.title}"


def has_dumps(trace: Trace) -> bool:
    """Return whether a trace is made of flight recorders' dumps."""
    return bool(regions_where(trace, of_dump).any())


@cached_on_trace
def entries(trace: Trace) -> Mapping[int, list[Entry]]:
    """Return the entries of each rank with a dump, in order; those of dumps without a rank are left out.

    An operation within a coalesced one is complete when that is: PyTorch follows only the whole.
    """
    if not has_dumps(trace):
        return {}
    found: dict[int, list[Entry]] = {rank: [] for rank in ranks_of(trace) if rank is not None}
    for each in _all(trace):
        found[each.rank].append(each)
    for rank, own in found.items():
        own.sort(key=lambda each: (each.start_ns, each.location, each.row))
        found[rank] = _with_coalesced(own)
    return found


def _all(trace: Trace) -> Iterator[Entry]:
    ranks, regions = ranks_of(trace), region_rows(trace)
    collectives = _of_spans(trace, "collective_spans", _COLLECTIVE)
    operators = _of_spans(trace, "operator_spans", _OPERATOR)
    arguments = _arguments(trace)
    for place in location_rows(trace):
        rank = ranks[place.process]
        if rank is None or not place.span_count:
            continue
        for spans in trace.span_batches(place.location):
            columns = (spans[name].tolist() for name in ("row", "start_ns", "region"))
            for row, start_ns, region in zip(*columns, strict=True):
                span = place.location, row
                if span not in collectives or not of_dump(regions[region]):
                    continue
                name, description, ranks_text, sequence, operation, source, destination = collectives[span]
                shapes, types, stack = operators.get(span, (None, None, None))
                about = arguments.get(span, {})
                state = about.get("state", "").strip('"')
                # Gloo does not note when an operation ended, only that its entry is no longer in use.
                retired = regions[region].name.startswith("gloo:") and about.get("retired") == "true"
                record = about.get("record_id", "")
                yield Entry(
                    rank=rank,
                    group=Group(name or "", description or "", ranks_text),
                    sequence=-1 if sequence is None else sequence,
                    message=regions[region].role == "p2p",
                    source=source,
                    destination=destination,
                    call=Call(
                        operation or "",
                        shapes or "",
                        types or "",
                        about.get("output_sizes", ""),
                        about.get("output_dtypes", ""),
                    ),
                    state="completed" if retired else state,
                    complete=retired or state == "completed",
                    called_at=_called_at(stack or ""),
                    record=int(record) if record.isdecimal() else -1,
                    start_ns=start_ns,
                    location=place.location,
                    row=row,
                )


def _arguments(trace: Trace) -> dict[Span, dict[str, str]]:
    arguments = trace.side_table("arguments").to_arrow()
    found: dict[Span, dict[str, str]] = {}
    for key in _ARGUMENTS:
        rows = arguments.filter(pc.equal(arguments.column("key"), key))
        columns = (rows.column(name).to_pylist() for name in ("location", "row", "value"))
        for location, row, value in zip(*columns, strict=True):
            found.setdefault((location, row), {})[key] = value or ""
    return found


def _of_spans(trace: Trace, table: str, columns: tuple[str, ...]) -> dict[Span, tuple[Any, ...]]:
    rows = trace.side_table(table).to_arrow()
    spans, cells = (
        zip(*(rows.column(name).to_pylist() for name in names), strict=True) for names in (("location", "row"), columns)
    )
    return dict(zip(spans, cells, strict=True))


def _with_coalesced(own: list[Entry]) -> list[Entry]:
    whole = {_unit(each): each for each in own if each.call.operation.endswith("coalesced")}
    found = []
    for each in own:
        of = whole.get(_unit(each), each)
        found.append(each if of is each else replace(each, state=of.state, complete=of.complete))
    return found


def _unit(entry: Entry) -> tuple[object, ...]:
    return entry.group, entry.message, entry.sequence


def _called_at(stack: str) -> str:
    """Return the innermost frame of the program, `function (file:line)`; the innermost one if all are PyTorch's."""
    frames = stack.splitlines()[::-1]
    return next((each for each in frames if not any(part in each for part in _OF_TORCH)), frames[0] if frames else "")


def members(group: Group, found: Mapping[int, list[Entry]]) -> list[int] | None:
    """Return the ranks of a group in the order of their numbers in it; None if they are not known.

    Dumps of gloo lack them: all ranks are in the default group.
    """
    if group.ranks is not None:
        return sorted(json.loads(group.ranks))
    return sorted(found) if group.description == "default_pg" else None


def listed(text: str) -> list[Any]:
    """Return shapes or types as a list; empty if there are none."""
    found = json.loads(text) if text else []
    return found if isinstance(found, list) else []
