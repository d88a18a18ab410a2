"""Data that went from rank to rank: messages, one-sided communication, and collectives whose call defines it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from strobe.ranks.clock_errors import errors_between
from strobe.ranks.collective_columns import FROM_ROOT, TO_ROOT
from strobe.ranks.collectives import collectives
from strobe.ranks.messages import ONE_SIDED, MessageEnds, message_ends, message_texts, numbered
from strobe.ranks.waits.message_calls import Messages, calls_of, message_parts
from strobe.ranks.waits.wait_columns import Waits
from strobe.ranks.waits.wait_states import waits_of_messages
from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Columns, Ints, alike
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

MESSAGE = "message"
_OF_ENDS = ("kind", "sender", "receiver", "communicator", "tag", "size_bytes", "time_ns")
_ATOMIC = dict.fromkeys(("accumulate", "fetch_and_op", "compare_and_swap"), "atomic")
_ONE_SIDED_BY_WORD = {**_ATOMIC, "put": "put", "get": "get"}  # MPI_Get_accumulate is atomic
_SHMEM_PUT, _SHMEM_GET = re.compile("put|_p$"), re.compile("get|_g$")
# In these, a rank sends equally much to each. Of an all-to-all with counts of its own for each, these are not recorded.
_TO_ALL = ("allgather", "alltoall")
Kept = Callable[[Ints, Ints], Bools]  # from processes and moments to which ones are wanted


@dataclass(frozen=True)
class Transfers(Columns):
    """Data that went from one rank to another; -1 is unknown, or nothing.

    kind, communicator: numbers of texts. count: how many transfers are alike; 0: bytes of an unknown number of them.
    size_bytes: of each, as sent. process, time_ns: of the sender, when it began; of the receiver, when it was over,
    where the trace lacks the sender. sender_path, receiver_path: call paths of the calls that completed it.
    duration_ns: from the begin of the send to the completion of the receive. transfer_ns: from when both had begun.
    clock_error_ns: by how much these may be wrong. unmatched: 1 of messages of which the trace has one end.
    """

    kind: Ints
    sender: Ints
    receiver: Ints
    communicator: Ints
    tag: Ints
    count: Ints
    size_bytes: Ints
    process: Ints
    time_ns: Ints
    sender_path: Ints
    receiver_path: Ints
    duration_ns: Ints
    transfer_ns: Ints
    clock_error_ns: Ints
    unmatched: Ints


@dataclass(frozen=True)
class Log:
    """Transfers of messages and one-sided communication of a trace or a part of it, and the texts of their numbers.

    lone_sends, lone_receives: ends of messages without the other end in the trace. Such a receive is a transfer if no
    such send may be its other end. waits: those of messages, if asked for.
    """

    transfers: Transfers
    texts: Texts
    lone_sends: int
    lone_receives: int
    waits: Waits


@cached_on_trace
def log(trace: Trace) -> Log:
    """Return the messages and the one-sided communication of a trace, also those of folded steps.

    Matched ones come first, in order of sender, receiver, communicator, tag and time.
    """
    parts = [*log_parts(trace, whole=True)]
    sends, receives = sum(part.lone_sends for part in parts), sum(part.lone_receives for part in parts)
    return Log(
        Transfers.joined(part.transfers for part in parts), message_texts(trace), sends, receives, Waits.joined(())
    )


def log_parts(trace: Trace, *, whole: bool, waits: bool = False) -> Iterator[Log]:
    """Yield the log in parts that fit into memory, each transfer in one; see message_parts."""
    nothing = Waits.joined(())
    if waits:
        for part, found in waits_of_messages(trace, whole=whole):
            of_part = _of_messages(trace, part, found.waits)
            del part, found
            yield of_part
            del of_part
    else:
        for part in message_parts(trace, whole=whole):
            of_part = _of_messages(trace, part, nothing)
            del part
            yield of_part
            del of_part
    accesses = message_ends(trace, ONE_SIDED)
    accesses = replace(accesses, call_path=calls_of(trace, accesses).call_path)
    process = np.array(processes_of_locations(trace), dtype=np.int64)[accesses.place]
    one_sided = _transfers(accesses, np.arange(len(accesses)), process)
    yield Log(one_sided, message_texts(trace), 0, 0, nothing)


def _of_messages(trace: Trace, found: Messages, waits: Waits) -> Log:
    texts, calls, lone = message_texts(trace), found.calls, found.alone
    send, receive = (each if found.new.all() else each[found.new] for each in (found.send, found.receive))
    ends = replace(found.ends, call_path=calls.call_path)
    group = numbered(*(column[lone] for column in (ends.sender, ends.receiver, ends.communicator, ends.tag)))
    is_send = ends.sent[lone] != 0
    counted = lone[is_send | ~np.isin(group, group[is_send])]

    sent_ns, asked_ns, done_ns = ends.time_ns[send], calls.asked_ns[receive], ends.time_ns[receive]
    is_known = (calls.call_path[receive] >= 0) | ~ends.blocking[receive]
    process = np.array(processes_of_locations(trace), dtype=np.int64)[ends.place]
    pairs = _transfers(
        ends,
        send,
        process,
        kind=np.full(len(send), texts.number(MESSAGE)),
        receiver_path=ends.call_path[receive],
        duration_ns=np.maximum(0, done_ns - sent_ns),
        transfer_ns=np.where(is_known, np.maximum(0, done_ns - np.maximum(sent_ns, asked_ns)), -1),
        clock_error_ns=errors_between(trace, process[send], process[receive]),
    )
    kind, unmatched = np.full(len(counted), texts.number(MESSAGE)), np.ones(len(counted), dtype=np.int64)
    alone_here = _transfers(ends, counted, process, kind=kind, unmatched=unmatched)
    lone_sends = int(is_send.sum())
    return Log(Transfers.joined([pairs, alone_here]), texts, lone_sends, len(lone) - lone_sends, waits)


def _transfers(ends: MessageEnds, at: Ints, process: Ints, **known: Ints) -> Transfers:
    """Return the transfers that some ends are: what these know of them, and what else is known."""
    path, sent = ends.call_path[at], ends.sent[at] != 0
    columns = {name: getattr(ends, name)[at] for name in _OF_ENDS}
    columns |= {"process": process[at], "count": np.ones(len(at), dtype=np.int64), "unmatched": np.zeros_like(at)}
    columns |= {"sender_path": np.where(sent, path, -1), "receiver_path": np.where(sent, -1, path), **known}
    return _of_columns(columns)


def _of_columns(columns: dict[str, Ints]) -> Transfers:
    nothing = np.full(len(columns["count"]), -1, dtype=np.int64)
    return Transfers(**{each.name: columns.get(each.name, nothing) for each in fields(Transfers)})


def unlogged(trace: Trace, log: Mapping[str, Ints]) -> Transfers:
    """Return the bytes that the exact totals of the run have from rank to rank beyond its log.

    log: columns kind, sender, receiver, total_bytes, of all its transfers or sums of them.

    Totals of senders count; those of receivers only where the trace lacks the sender.
    """
    totals, texts = trace.side_table("message_totals").to_arrow(), message_texts(trace)
    if not totals.num_rows:
        return Transfers.joined([])
    ranks = np.array([-1 if rank is None else rank for rank in ranks_of(trace)], dtype=np.int64)
    process = np.array(processes_of_locations(trace), dtype=np.int64)[integers(totals.column("location"))]
    own, peer = ranks[process], integers(totals.column("peer_rank"))
    function = texts.numbers(totals.column("function"))
    kind = np.array([texts.number(_kind(text)) for text in list(texts.texts)], dtype=np.int64)[function]
    sent, received = (integers(totals.column(f"{way}_bytes"), 0) for way in ("sent", "received"))
    is_get, is_atomic = (kind == texts.number(each) for each in ("get", "atomic"))
    inward = is_get | ((kind == texts.number(MESSAGE)) & ~np.isin(peer, ranks))
    known = (own >= 0) & (peer >= 0)
    out, into = known & ~is_get, known & inward
    ends = (
        np.concatenate((kind[out], kind[into], log["kind"])),
        np.concatenate((own[out], peer[into], log["sender"])),
        np.concatenate((peer[out], own[into], log["receiver"])),
    )
    in_totals = np.concatenate(((sent + received * is_atomic)[out], received[into]))
    first, which = alike(ends)
    more = np.zeros(len(first), dtype=np.int64)
    np.add.at(more, which, np.concatenate((in_totals, -log["total_bytes"])))
    beyond, first = more[more > 0], first[more > 0]
    nothing = np.zeros_like(beyond)
    columns = {name: column[first] for name, column in zip(("kind", "sender", "receiver"), ends, strict=True)}
    return _of_columns({**columns, "size_bytes": beyond, "count": nothing, "unmatched": nothing})


def _kind(function: str) -> str:
    """Return the kind of transfers that a function of MPI or OpenSHMEM makes if it has a peer."""
    if function.startswith("shmem_"):
        return "put" if _SHMEM_PUT.search(function) else "get" if _SHMEM_GET.search(function) else "atomic"
    return next((kind for word, kind in _ONE_SIDED_BY_WORD.items() if word in function.lower()), MESSAGE)


def as_data(trace: Trace, texts: Texts, kept: Kept, *, each_pair: bool) -> tuple[Transfers, int]:
    """Return what collectives of MPI move from rank to rank where the call defines it, and how many do not define it.

    Broadcast and scatter: from the root. Gather and reduce: to the root. All-gather and all-to-all: from each to each;
    these have no receiver, and count for each, unless `each_pair`.
    """
    found = collectives(trace)
    rank = np.array([-1 if each.rank is None else each.rank for each in found.parties], dtype=np.int64)[found.party]
    process = np.array([each.process for each in found.parties], dtype=np.int64)[found.party]
    on_gpu = np.array([each.on_gpu or each.hands_over for each in found.parties], dtype=bool)[found.party]
    wanted = (found.collective >= 0) & ~found.of_kinds(("barrier", "fence")) & kept(process, found.start_ns)
    every = np.unique(found.collective[wanted])
    (at,) = np.nonzero(wanted & (found.part_bytes >= 0) & (rank >= 0) & ~on_gpu)
    collective, is_root = found.collective[at], found.root[at] == 1
    members, roots = np.bincount(collective, minlength=1), np.bincount(collective, is_root, minlength=1)
    root = np.full(len(members), -1, dtype=np.int64)
    root[collective[is_root]] = rank[at[is_root]]
    outward, inward, to_all = (found.of_kinds(kinds)[at] for kinds in (FROM_ROOT, TO_ROOT, _TO_ALL))
    with_root = (outward | inward) & (roots[collective] == 1)
    to_all &= members[collective] == found.size[at]
    undefined = len(every) - len(np.unique(collective[with_root | to_all]))
    # A root that works in place moves nothing to itself.
    with_root &= ~is_root | (found.part_bytes[at] > 0)

    kinds, groups = (np.array([texts.number(line[k]) for line in found.lines], dtype=np.int64) for k in (0, 1))

    def transfers(of: Ints, sender: Ints, receiver: Ints, count: Ints) -> Transfers:
        columns = {"kind": kinds[found.line[of]], "communicator": groups[found.line[of]]}
        columns |= {"sender": sender, "receiver": receiver, "count": count, "size_bytes": found.part_bytes[of]}
        columns |= {"process": process[of], "time_ns": found.start_ns[of], "unmatched": np.zeros_like(of)}
        columns["sender_path"] = np.where(sender == rank[of], found.call_path[of], -1)
        columns["receiver_path"] = np.where(receiver == rank[of], found.call_path[of], -1)
        return _of_columns(columns)

    roots_of, to_all_of = at[with_root], at[to_all]
    from_root, other = outward[with_root], root[collective[with_root]]
    own, once = rank[roots_of], np.ones(len(roots_of), dtype=np.int64)
    rooted = transfers(roots_of, np.where(from_root, other, own), np.where(from_root, own, other), once)
    own, nobody, count = rank[to_all_of], np.full(len(to_all_of), -1), found.size[to_all_of]
    if each_pair:
        # What a rank sent alike is one row for each member of the communicator.
        line = found.line[to_all_of]
        one, _ = alike((line, own))
        first, which = alike((line, own, found.part_bytes[to_all_of]))
        begin, end = (np.searchsorted(line[one], line[first], side) for side in ("left", "right"))
        row = np.repeat(np.arange(len(first)), end - begin)
        place = np.arange(len(row)) + (begin - np.cumsum(end - begin) + (end - begin))[row]
        nobody, count = own[one[place]], np.bincount(which, minlength=1)[row]
        own, to_all_of = own[first[row]], to_all_of[first[row]]
    return Transfers.joined([rooted, transfers(to_all_of, own, nobody, count)]), undefined
