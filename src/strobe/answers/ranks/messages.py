"""Who sends how much to whom, and how fast: the communication matrix, and messages by size, tag, call and more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from strobe.analyses.ranks.messages import ANALYSIS
from strobe.model.units import format_bytes, format_number_of
from strobe.ranks.call_path_texts import numbered_texts
from strobe.ranks.clusters import rank_clusters, rank_profiles
from strobe.ranks.messages import message_texts
from strobe.ranks.transfers import MESSAGE, Kept, Transfers, as_data, log_parts, unlogged
from strobe.ranks.waits.wait_columns import STATES, Waits
from strobe.steps.selection import chosen_numbers
from strobe.steps.step_times import step_of_process
from strobe.sums.groups import Texts
from strobe.sums.side_columns import in_parts
from strobe.tables.column_arrays import Bools, Floats, Ints, combined
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


_KEYS: Mapping[str, tuple[str, ...]] = {
    "pair": ("sender", "receiver"),
    "size": ("from_bytes",),
    "tag": ("tag",),
    "communicator": ("communicator",),
    "step": ("step",),
    "call": ("sender_call", "receiver_call"),
    "node": ("sender_host", "receiver_host"),
    "cluster": ("sender_cluster", "receiver_cluster"),
}
_OF_PLACES = ("pair", "node", "cluster")
_OF_TOTALS = ("kind", "sender", "receiver")
_JOINED = {
    **dict.fromkeys(("messages", "unknown", "unmatched", "total_bytes"), np.add),
    **dict.fromkeys(("durations", "duration_ns", "transfers", "transfer_ns", "sure_ns", "sure_bytes"), np.add),
    **dict.fromkeys(("late_sender_ns", "late_receiver_ns"), np.add),
    **dict.fromkeys(("max_bytes", "duration_max_ns", "transfer_max_ns"), np.maximum),
    "min_bytes": np.minimum,
}


def run(trace: Trace, *, by: str, step: str, step_class: str | None, collectives: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.messages`."""
    chosen = chosen_numbers(trace, step, step_class)
    return in_parts(lambda whole: _answer(trace, by, chosen, as_messages=collectives == "as-data", whole=whole))


def _answer(trace: Trace, by: str, chosen: Mapping[int, Ints] | None, *, as_messages: bool, whole: bool) -> Table:
    kept, notes, lone, names = _kept(trace, chosen), list[str](), np.zeros(2, dtype=np.int64), ["kind", *_KEYS[by]]
    rows, logged = _rows(trace, Transfers.joined(()), by), _rows(trace, Transfers.joined(()), "pair")

    def add(to: dict[str, Ints], more: dict[str, Ints], keys: Sequence[str]) -> dict[str, Ints]:
        return combined({name: np.append(to[name], more[name]) for name in (*keys, *_JOINED)}, keys, _JOINED)[0]

    for part in log_parts(trace, whole=whole, waits=by in _OF_PLACES):
        lone += part.lone_sends, part.lone_receives
        transfers = part.transfers
        logged = add(logged, _rows(trace, transfers, "pair"), _OF_TOTALS)
        if chosen is not None:
            transfers = transfers.chosen(kept(transfers.process, transfers.time_ns))
        rows = add(rows, _rows(trace, transfers, by), names)
        if len(part.waits):
            rows = add(rows, _rows_of_waits(trace, part.waits, by, kept), names)
        del part, transfers
    if lone.any():
        sends, receives = (
            format_number_of(n, name) for n, name in zip(lone.tolist(), ("send", "receive"), strict=True)
        )
        notes.append(_LONE.format(sends, receives))
    rest = unlogged(trace, logged)
    if len(rest):
        notes.append(_UNLOGGED.format(format_bytes(int(rest.size_bytes.sum()))))
    if chosen is None:
        rows = add(rows, _rows(trace, rest, by), names)
    if as_messages:
        data, undefined = as_data(trace, message_texts(trace), kept, each_pair=by in _OF_PLACES)
        rows = add(rows, _rows(trace, data, by), names)
        if undefined:
            notes.append(_UNDEFINED.format(format_number_of(undefined, "collective")))
    # Waits count for their step, messages for that in which they were sent.
    rows = {name: values[(rows["messages"] > 0) | (rows["unknown"] > 0)] for name, values in rows.items()}
    about = format_number_of(int(rows["messages"].sum()), "message")
    note = "; ".join(notes) or ("" if len(rows["kind"]) else _NOT_HERE if len(logged["kind"]) else _NOTHING)
    columns = {name: _named(*_texts_of(trace, name, rows[name])) for name in names} | _columns(rows)
    table = make_table(ANALYSIS.columns_with(by=by), columns, about=about, note=note)
    return table if by in ("size", "step") else table.sort("total_bytes")


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


def _rows(trace: Trace, transfers: Transfers, by: str) -> dict[str, Ints]:
    """Return a row for each transfer: its keys as numbers, and what is summed. unknown: how many have no count."""
    size, count = np.maximum(0, transfers.size_bytes), transfers.count
    duration, transfer = transfers.duration_ns, transfers.transfer_ns
    sure = (transfer > 0) & (transfer >= 2 * transfers.clock_error_ns)
    nothing = np.zeros_like(size)
    return {
        "kind": transfers.kind,
        **_keys(trace, transfers, by),
        "messages": count,
        "unknown": (count == 0).astype(np.int64),
        "unmatched": transfers.unmatched,
        "total_bytes": size * np.maximum(1, count),
        "min_bytes": size,
        "max_bytes": size,
        "durations": (duration >= 0).astype(np.int64),
        "duration_ns": np.maximum(0, duration),
        "duration_max_ns": duration,
        "transfers": (transfer >= 0).astype(np.int64),
        "transfer_ns": np.maximum(0, transfer),
        "transfer_max_ns": transfer,
        "sure_ns": transfer * sure,
        "sure_bytes": size * sure,
        "late_sender_ns": nothing,
        "late_receiver_ns": nothing,
    }


def _rows_of_waits(trace: Trace, waits: Waits, by: str, kept: Kept) -> dict[str, Ints]:
    """Return rows of waits of messages for senders and for receivers, without a message."""
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    rank = np.array([-1 if each is None else each for each in ranks_of(trace)], dtype=np.int64)
    of_sender, of_receiver = (waits.state == STATES.index(name) for name in ("late_sender", "late_receiver"))
    certain = ~waits.uncertain & kept(process[waits.location], waits.call_ns)
    waits = waits.chosen((of_sender | of_receiver) & certain)
    of_sender = waits.state == STATES.index("late_sender")
    waiting, awaited = rank[process[waits.location]], rank[process[waits.cause]]
    ends = np.where(of_sender, (awaited, waiting), (waiting, awaited))
    nothing = np.zeros(len(waits), dtype=np.int64)
    return {
        **dict.fromkeys(_JOINED, nothing),
        "kind": np.full(len(waits), message_texts(trace).number(MESSAGE)),
        **{name: _places(trace, each, by)[0] for name, each in zip(_KEYS[by], ends, strict=True)},
        "min_bytes": np.full(len(waits), np.iinfo(np.int64).max),
        "late_sender_ns": waits.wait_ns * of_sender,
        "late_receiver_ns": waits.wait_ns * ~of_sender,
    }


def _keys(trace: Trace, transfers: Transfers, by: str) -> dict[str, Ints]:
    """Return the columns that are the same for all transfers of a row, as numbers."""
    if by in _OF_PLACES:
        return {name: _places(trace, ends, by)[0]
                for name, ends in zip(_KEYS[by], (transfers.sender, transfers.receiver), strict=True)}  # fmt: skip
    if by == "size":
        known = (transfers.size_bytes >= 0) & (transfers.count > 0)
        exponent = np.frexp(transfers.size_bytes.astype(np.float64))[1].astype(np.int64)
        return {"from_bytes": np.where(known, (1 << exponent) >> 1, -1)}
    if by == "step":
        return {"step": _steps(trace, transfers.process, transfers.time_ns)}
    if by == "call":
        return {"sender_call": transfers.sender_path, "receiver_call": transfers.receiver_path}
    return {by: getattr(transfers, by)}


def _texts_of(trace: Trace, key: str, numbers: Ints) -> tuple[Ints, Sequence[str] | None]:
    """Return the numbers of a key as they are, or the texts that they are numbers of."""
    if key in ("kind", "communicator"):
        return numbers, message_texts(trace).texts
    if key in _KEYS["call"]:
        return numbered_texts(trace, numbers)
    return numbers, _places(trace, numbers[:0], "node")[1] if key in _KEYS["node"] else None


def _places(trace: Trace, rank: Ints, by: str) -> tuple[Ints, Sequence[str] | None]:
    """Return ranks as they are, or the numbers of their clusters or hosts, -1 if unknown, and the names of these."""
    if by == "pair":
        return rank, None
    hosts = Texts()
    if by == "cluster":
        clusters = zip(rank_profiles(trace).rank, rank_clusters(trace).cluster.tolist(), strict=True)
        of_rank = {each: cluster for each, cluster in clusters if each is not None}
    else:
        of_rank = {each.rank: hosts.number(each.host) for each in process_rows(trace) if each.rank is not None}
    most = max(-1, *of_rank, rank.max(initial=-1))
    place = np.array([of_rank.get(each, -1) for each in range(most + 1)] + [-1], dtype=np.int64)
    return place[rank], hosts.texts if by == "node" else None


def _named(numbers: Ints, names: Sequence[str] | None) -> pa.ChunkedArray:
    """Return a column of numbers, or of their texts; null for -1."""
    column = pa.array(numbers, mask=numbers < 0)
    return pa.chunked_array([column if names is None else pa.array(names, pa.string()).take(column)])


def _columns(rows: dict[str, Ints]) -> dict[str, pa.ChunkedArray]:
    """Return the columns of sums and means; null where a row has nothing of the kind, or not all of it."""
    complete, matched = rows["unknown"] == 0, rows["durations"] > 0
    columns: dict[str, tuple[Ints | Floats, Bools]] = {}
    columns |= {name: (rows[name], complete) for name in ("messages", "unmatched", "min_bytes", "max_bytes")}
    columns["mean_bytes"] = rows["total_bytes"] / np.maximum(1, rows["messages"]), complete
    columns["total_bytes"] = rows["total_bytes"], complete | True
    for name in ("duration", "transfer"):
        timed = rows[f"{name}s"]
        columns[f"{name}_mean_ns"] = rows[f"{name}_ns"] / np.maximum(1, timed), timed > 0
        columns[f"{name}_max_ns"] = rows[f"{name}_max_ns"], timed > 0
    columns["rate_gb_s"] = rows["sure_bytes"] / np.maximum(1, rows["sure_ns"]), rows["sure_ns"] > 0
    columns |= {name: (rows[name], matched) for name in ("late_sender_ns", "late_receiver_ns")}
    return {name: pa.chunked_array([pa.array(values, mask=~known)]) for name, (values, known) in columns.items()}
