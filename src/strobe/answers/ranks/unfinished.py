"""What a job hangs in: the operations that were not complete when PyTorch's flight recorder was dumped."""

from __future__ import annotations

from strobe.analyses.ranks.unfinished import ANALYSIS
from strobe.model.units import format_number_of
from strobe.ranks.flight_recorder.in_words import in_words
from strobe.ranks.flight_recorder.unfinished import MISSING, Part, Unfinished, unfinished
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_NO_DUMP = "this trace has no dump of PyTorch's flight recorder (TORCH_FR_BUFFER_SIZE)"


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.ranks.unfinished`."""
    found = unfinished(trace)
    rows = [_row(one, part) for one in found for part in one.parts]
    note = in_words(trace) or _NO_DUMP
    return make_table(ANALYSIS.columns, rows, about=format_number_of(len(found), "unfinished operation"), note=note)


def _row(one: Unfinished, part: Part) -> dict[str, object]:
    own, shown = part.entry, part.entry or part.last
    return {
        "group": one.group.name,
        "description": one.group.description,
        "sequence": one.sequence,
        "rank": part.rank,
        "state": part.state,
        "difference": "missing" if part.state == MISSING else part.difference,
        "operation": own.call.operation if own else None,
        "in_shapes": own.call.in_shapes if own else None,
        "out_shapes": own.call.out_shapes if own else None,
        "dtype": own.call.in_types if own else None,
        "called_at": shown.called_at if shown else "",
        "last_call": part.last.title if part.last else None,
        "called_ns": shown.start_ns if shown else None,
        "location": shown.location if shown else None,
        "row": shown.row if shown else None,
    }
