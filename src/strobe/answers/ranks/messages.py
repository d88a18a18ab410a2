"""Who sends how much to whom, and how fast: the communication matrix, and messages by size, tag, call and more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from strobe.analyses.ranks.messages import ANALYSIS
from strobe.model.units import format_bytes, format_number_of
from strobe.ranks.call_path_texts import numbered_texts
from strobe.ranks.transfers import Kept, Log, Transfers, as_data, log, unlogged
from strobe.ranks.waits.wait_columns import STATES
from strobe.ranks.waits.wait_states import wait_states
from strobe.steps.selection import chosen_numbers
from strobe.steps.step_times import step_of_process
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Ints, alike
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import process_rows, processes_of_locations, ranks_of
from strobe.trace.trace import Trace

_NOTHING = "no messages in this trace: recordings of MPI and of gloo have them, and OTF2 files of Score-P"
_NOT_HERE = "no messages in these steps"
_LONE = "{} and {} have no other end in this trace: they count, without times"
_UNLOGGED = "{} are known by the totals of the run only: when and how they were sent was not recorded"
_UNDEFINED = (
    "left out: {} that do not define who sends what to whom, or lack ranks in this trace; strobe collectives has their"
    " bytes"
)


def run(trace: Trace, *, by: str, step: str, step_class: str | None, collectives: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.messages`."""
    found, chosen, notes = log(trace), chosen_numbers(trace, step, step_class), []
    kept = _kept(trace, chosen)
    transfers = found.transfers
    if chosen is not None:
        transfers = transfers.chosen(kept(transfers.process, transfers.time_ns))
    parts = [transfers]
    lone = found.lone_sends, found.lone_receives
    if any(lone):
        sends, receives = (format_number_of(n, name) for n, name in zip(lone, ("send", "receive"), strict=True))
        notes.append(_LONE.format(sends, receives))
    rest = unlogged(trace, found)
    if len(rest):
        notes.append(_UNLOGGED.format(format_bytes(int(rest.size_bytes.sum()))))
    if chosen is None:
        parts.append(rest)
    if collectives == "as-data":
        data, undefined = as_data(trace, found.texts, kept, each_pair=by in ("pair", "node"))
        parts.append(data)
        if undefined:
            notes.append(_UNDEFINED.format(format_number_of(undefined, "collective")))
    transfers = Transfers.joined(parts)
    keys = [("kind", transfers.kind, found.texts.texts), *_keys(trace, transfers, found, by)]
    first, group = alike([numbers for _, numbers, _ in keys])
    columns = {name: _named(numbers[first], names) for name, numbers, names in keys}
    columns |= _sums(transfers, group, len(first))
    if by in ("pair", "node"):
        matched = columns["duration_max_ns"].is_valid().to_numpy()
        columns |= _late(trace, transfers.chosen(first), matched, by, kept)
    rows = make_table(
        ANALYSIS.columns_with(by=by),
        columns,
        about=format_number_of(int(transfers.count.sum()), "message"),
        note="; ".join(notes) or ("" if len(first) else _NOT_HERE if len(found.transfers) else _NOTHING),
    )
    return rows if by in ("size", "step") else rows.sort("total_bytes")


def _kept(trace: Trace, chosen: Mapping[int, Ints] | None) -> Kept:
    """Return the function that decides which moments of processes lie in the chosen steps."""

    def kept(process: Ints, time_ns: Ints) -> Bools:
        if chosen is None:
            return np.ones(len(process), dtype=bool)
        out = np.zeros(len(process), dtype=bool)
        for each, own in _by_process(process):
            # A process without steps of its own lives in those of the first that has some.
            wanted = chosen.get(each, chosen[min(chosen)])
            out[own] = np.isin(step_of_process(trace, each, time_ns[own]), wanted)
        return out

    return kept


def _steps(trace: Trace, process: Ints, time_ns: Ints) -> Ints:
    """Return the step that each process was in at a moment, -1 outside of every step."""
    steps = np.full(len(process), -1, dtype=np.int64)
    for each, own in _by_process(process):
        steps[own] = step_of_process(trace, each, time_ns[own])
    return steps


def _by_process(process: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield every process that is known, and which entries are its own."""
    order = np.argsort(process, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(process[order])) + 1):
        if len(own) and process[own[0]] >= 0:
            yield int(process[own[0]]), own


# Name of a column, by transfer the number that is its value, and the texts that the numbers are of, if it has some.
_Key = tuple[str, Ints, Sequence[str] | None]


def _keys(trace: Trace, transfers: Transfers, found: Log, by: str) -> list[_Key]:
    """Return the columns that are the same for all transfers of a row."""
    if by in ("pair", "node"):
        suffix = "" if by == "pair" else "_host"
        ends = {"sender": transfers.sender, "receiver": transfers.receiver}
        return [(f"{name}{suffix}", *_places(trace, rank, by)) for name, rank in ends.items()]
    if by == "size":
        known = (transfers.size_bytes >= 0) & (transfers.count > 0)
        exponent = np.frexp(transfers.size_bytes.astype(np.float64))[1].astype(np.int64)
        return [("from_bytes", np.where(known, (1 << exponent) >> 1, -1), None)]
    if by == "step":
        return [("step", _steps(trace, transfers.process, transfers.time_ns), None)]
    if by == "call":
        paths = {"sender_call": transfers.sender_path, "receiver_call": transfers.receiver_path}
        return [(name, *numbered_texts(trace, path)) for name, path in paths.items()]
    if by == "tag":
        return [("tag", transfers.tag, None)]
    return [("communicator", transfers.communicator, found.texts.texts)]


def _places(trace: Trace, rank: Ints, by: str) -> tuple[Ints, Sequence[str] | None]:
    """Return ranks as they are, or by node the numbers of their hosts, -1 if unknown, and the names of these."""
    if by == "pair":
        return rank, None
    hosts = Texts()
    of_rank = {each.rank: hosts.number(each.host) for each in process_rows(trace) if each.rank is not None}
    most = max(-1, *of_rank, rank.max(initial=-1))
    host = np.array([of_rank.get(each, -1) for each in range(most + 1)] + [-1], dtype=np.int64)
    return host[rank], hosts.texts


def _named(numbers: Ints, names: Sequence[str] | None) -> pa.ChunkedArray:
    """Return a column of numbers, or of their texts; null for -1."""
    column = pa.array(numbers, mask=numbers < 0)
    return pa.chunked_array([column if names is None else pa.array(names, pa.string()).take(column)])


def _sums(transfers: Transfers, group: Ints, groups: int) -> dict[str, pa.ChunkedArray]:
    """Return the columns of sums and means by group; null where a group has nothing of the kind, or not all of it."""
    order = np.argsort(group, kind="stable")
    group, transfers = group[order], transfers.chosen(order)
    complete = _by_group(np.minimum, group, transfers.count, groups) > 0
    count = _by_group(np.add, group, transfers.count, groups)
    size = np.maximum(0, transfers.size_bytes)
    total = _by_group(np.add, group, size * np.maximum(1, transfers.count), groups)
    columns = {
        "messages": (count, complete),
        "unmatched": (_by_group(np.add, group, transfers.unmatched, groups), complete),
        "total_bytes": (total, complete | True),
        "min_bytes": (_by_group(np.minimum, group, size, groups), complete),
        "mean_bytes": (total / np.maximum(1, count), complete),
        "max_bytes": (_by_group(np.maximum, group, size, groups), complete),
    }
    for name, values in (("duration", transfers.duration_ns), ("transfer", transfers.transfer_ns)):
        known = values >= 0
        timed = _by_group(np.add, group[known], np.ones(int(known.sum()), dtype=np.int64), groups)
        sums = _by_group(np.add, group[known], values[known], groups)
        columns[f"{name}_mean_ns"] = sums / np.maximum(1, timed), timed > 0
        columns[f"{name}_max_ns"] = _by_group(np.maximum, group[known], values[known], groups), timed > 0
    sure = (transfers.transfer_ns > 0) & (transfers.transfer_ns >= 2 * transfers.clock_error_ns)
    took, moved = (_by_group(np.add, group[sure], each[sure], groups) for each in (transfers.transfer_ns, size))
    columns["rate_gb_s"] = moved / np.maximum(1, took), took > 0
    return {name: pa.chunked_array([pa.array(values, mask=~known)]) for name, (values, known) in columns.items()}


def _late(trace: Trace, rows: Transfers, matched: Bools, by: str, kept: Kept) -> dict[str, pa.ChunkedArray]:
    """Return what receivers waited for senders, and senders for receivers, by row; null where nothing is `matched`.

    `rows` has a transfer of each row.
    """
    waits = wait_states(trace).waits
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    rank = np.array([-1 if each is None else each for each in ranks_of(trace)], dtype=np.int64)
    certain = ~waits.uncertain & kept(process[waits.location], waits.call_ns)
    (at,) = np.nonzero(matched)
    columns = {}
    for state in ("late_sender", "late_receiver"):
        own = waits.chosen(certain & (waits.state == STATES.index(state)))
        waiting, awaited = rank[process[own.location]], rank[process[own.cause]]
        ends = (awaited, waiting) if state == "late_sender" else (waiting, awaited)
        of_rows = (rows.sender[at], rows.receiver[at])
        keys = [_places(trace, np.append(row, end), by)[0] for row, end in zip(of_rows, ends, strict=True)]
        first, which = alike(keys)
        sums, wait_ns = np.zeros(len(first), dtype=np.int64), np.full(len(rows), -1, dtype=np.int64)
        np.add.at(sums, which[len(at) :], own.wait_ns)
        wait_ns[at] = sums[which[: len(at)]]
        columns[f"{state}_ns"] = _named(wait_ns, None)
    return columns


def _by_group(join: np.ufunc, group: Ints, values: Ints, groups: int) -> Ints:
    """Return the values of each group as one; groups are in order, those without values have 0."""
    begin = np.flatnonzero(np.diff(group, prepend=-1))
    out = np.zeros(groups, dtype=np.int64)
    if len(begin):
        out[group[begin]] = join.reduceat(values, begin)
    return out
