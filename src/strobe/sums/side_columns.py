"""Columns of a side table of all processes at once, as numbers: for what has millions of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Ints, freed_memory_kept
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Of all processes together, about, in a part of a table. A column is 16 MB: memory of up to 32 MB is used again.
PART_ROWS = 2_000_000
Part = tuple[int, int]  # the number of a part from 0, and how many parts there are
WHOLE: Part = (0, 1)
_NOT_MET = -2
_Maps = tuple[Ints, Ints, Ints]  # of a process: see _maps_of
_Value = TypeVar("_Value")


class NeedsWholeLogError(Exception):
    """What was read in parts needs rows that other parts have."""


def in_parts(answer: Callable[[bool], _Value]) -> _Value:
    """Return an answer that reads logs in parts, or, where it has to, as a whole: then its argument is true."""
    with freed_memory_kept():
        try:
            return answer(False)
        except NeedsWholeLogError:
            return answer(True)


def parts_of(trace: Trace, table: str) -> int:
    """Return in how many parts to read a side table: of about PART_ROWS, and of whole chunks or pieces of one."""
    readers = [reader for reader in trace.readers if reader.tables().get(table)]
    count = max(1, -(-sum(reader.tables()[table] for reader in readers) // PART_ROWS))
    chunks = max((int(reader.table(table, -1, 0, 0)["chunks"]) for reader in readers), default=1)
    return count if count < chunks else chunks * round(count / chunks)


def side_columns(
    trace: Trace, table: str, names: Sequence[str], texts: Texts, part: Part = WHOLE
) -> tuple[Ints, dict[str, Ints]]:
    """Return the location of every row of a side table, in order of locations and rows, and some of its columns.

    Whole numbers only; -1 where a cell is null. Texts are their numbers in `texts`, times and call paths those of the
    trace. A part of a table has the rows of all processes from one fraction of their rows to the next.
    """
    maps = _maps(trace, texts)
    parts = [
        _of_process(trace, process, table, names, texts, part, maps)
        for process, reader in enumerate(trace.readers)
        if reader.tables().get(table)
    ]
    location, columns = (list(each) for each in zip(*parts, strict=True)) if parts else ([], [])
    nothing = np.zeros(0, dtype=np.int64)
    # What has been joined is not kept beside it.
    joined = {name: np.concatenate([nothing, *(each.pop(name) for each in columns)]) for name in names}
    return np.concatenate([nothing, *location]), joined


def _of_process(
    trace: Trace, process: int, table: str, names: Sequence[str], texts: Texts, part: Part, maps: dict[int, _Maps]
) -> tuple[Ints, dict[str, Ints]]:
    of_row, cells = trace.readers[process].numbers(table, names, *part)
    if process not in maps:
        maps[process] = _maps_of(trace, process)
    locations, paths, words = maps[process]
    location, columns = _mapped(locations, of_row), {}
    for name in names:
        is_text, values = cells[name]
        if is_text:
            new = values[_mapped(words, values) == _NOT_MET]
            for number in np.unique(new).tolist() if len(new) else ():
                words[number] = texts.number(trace.texts(process)[number])
            columns[name] = _mapped(words, values)
        elif name == "call_path":
            columns[name] = _mapped(paths, values)
        else:
            columns[name] = values - trace.zero_of(process) if name == "time_ns" else values
    # A damaged file may have lost locations.
    if len(location) and (location[0] < 0 or (location[1:] < location[:-1]).any()):
        order = np.argsort(location, kind="stable")
        order = order[location[order] >= 0]
        location, columns = location[order], {name: values[order] for name, values in columns.items()}
    return location, columns


@cached_on_trace
def _maps(trace: Trace, texts: Texts) -> dict[int, _Maps]:
    """Return what is known of processes so far."""
    return {}


def _maps_of(trace: Trace, process: int) -> _Maps:
    """Return what locations, call paths and texts of a process are in the trace and in `texts`; the last one is none.

    Texts have a number once they are met.
    """
    ids = [each["id"] for each in trace.readers[process].locations()]
    known = [trace.location_of(process, local_id) for local_id in range(max(ids, default=-1) + 1)]
    locations = np.array([-1 if each is None else each for each in known] + [-1], dtype=np.int64)
    paths = np.append(trace.definitions.path_maps[process].astype(np.int64), -1)
    return locations, paths, np.append(np.full(len(trace.texts(process)), _NOT_MET), -1)


def _mapped(known: Ints, numbers: Ints) -> Ints:
    """Return what numbers refer to."""
    try:
        return known[numbers]
    except IndexError:  # a damaged file may have lost it
        return known[np.minimum(numbers, len(known) - 1)]
