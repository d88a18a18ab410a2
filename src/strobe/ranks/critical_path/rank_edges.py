"""What links ranks in the critical path: collectives, where they wait for the last to come or a root, and messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strobe.ranks.collectives import collectives
from strobe.ranks.critical_path.gpu_edges import Activities, Calls, Syncs
from strobe.ranks.critical_path.longest_path import COMMUNICATION, Bools, Builder, Ints
from strobe.ranks.critical_path.thread_edges import Chain
from strobe.sums.attributes import Attributes, integers
from strobe.sums.groups import Texts
from strobe.trace.trace import Trace

# Phase of the moments in which all have come to a collective, see Builder.
_ALL_THERE = 3


@dataclass
class Part:
    """What one process did in its window. `early`: by activity, whether it is a collective that waited for others."""

    rank: int | None
    chains: list[Chain]
    calls: Calls
    work: Activities
    syncs: Syncs
    early: Bools


def link(trace: Trace, builder: Builder, parts: list[Part]) -> None:
    """Add what ranks waited for in others: the last of them to come to a collective, its root, and messages."""
    if len(parts) > 1:
        _collectives(trace, builder, parts)
        _with_root(trace, parts)
        _messages(trace, parts)


def _collectives(trace: Trace, builder: Builder, parts: list[Part]) -> None:
    """Add a moment for each collective in which all are there; from then on it takes its time everywhere."""
    found = collectives(trace)
    waits = np.array([not party.hands_over for party in found.parties], dtype=bool)[found.party]
    members: list[tuple[Part, Chain | None, Ints, Ints]] = []  # where: of the GPU or a thread, which, which collective
    for part in parts:
        for chain in (None, *part.chains):
            rows = part.work.row if chain is None else chain.spans["row"]
            where = part.work.location if chain is None else np.full(len(rows), chain.location)
            for location in np.unique(where).tolist():
                (own,) = np.nonzero(where == location)
                own = own[np.argsort(rows[own])]
                (told,) = np.nonzero((found.location == location) & (found.collective >= 0) & waits)
                at = np.searchsorted(rows[own], found.row[told])
                at[at == len(own)] = 0
                there = rows[own[at]] == found.row[told]
                members.append((part, chain, own[at[there]], found.collective[told[there]]))
    number = np.concatenate([np.zeros(0, dtype=np.int64), *(each[3] for each in members)])
    known, counts = np.unique(number, return_counts=True)
    known = known[counts > 1]
    last_ns = np.full(len(known), -(2**62), dtype=np.int64)
    for part, chain, which, number in members:
        mine = np.isin(number, known)
        begin_ns = part.work.start_ns[which] if chain is None else chain.time_ns[chain.begins[which]]
        np.maximum.at(last_ns, np.searchsorted(known, number[mine]), begin_ns[mine])
    together = builder.moments(last_ns, _ALL_THERE)
    for part, chain, which, number in members:
        which, at = which[np.isin(number, known)], np.searchsorted(known, number[np.isin(number, known)])
        if chain is None:
            work = part.work
            begins, begin_ns, end_ns = work.begins[which], work.start_ns[which], work.end_ns[which]
        else:
            begins, ends = chain.node[chain.begins[which]], chain.ends[which]
            begin_ns, end_ns = chain.time_ns[chain.begins[which]], chain.time_ns[ends]
        builder.edges(begins, together[at], np.zeros(len(at), dtype=np.int64), COMMUNICATION)
        # Where clocks differ, it may seem to end before the last one has come: then nothing is known.
        sound = end_ns > last_ns[at]
        which, at = which[sound], at[sound]
        if chain is None:
            part.early[which] = begin_ns[sound] < last_ns[at]
            builder.edges(together[at], work.ends[which], end_ns[sound] - last_ns[at], COMMUNICATION,
                          work.location[which], work.row[which], work.region[which],
                          work.call_path[which])  # fmt: skip
        else:
            chain.wait(ends[sound], together[at], last_ns[at], COMMUNICATION, transfers=True)


def _with_root(trace: Trace, parts: list[Part]) -> None:
    """Add who waited in collectives of MPI with a root: all for it, or it for the last of them.

    Scalasca: Late Broadcast (and scatter), Early Reduce (and gather). The n-th of a communicator is the same on all
    ranks, where all have as many.
    """
    chains = [chain for part in parts for chain in part.chains]
    texts = Texts()
    found = [np.zeros((6, 0), dtype=np.int64)]  # communicator, collective, root, rank, chain, span
    for number, chain in enumerate(chains):
        own = Attributes(trace, "collective_spans", chain.location, _WITH_ROOT).of(chain.spans["row"])
        communicator, collective = (texts.numbers(own.column(name)) for name in _WITH_ROOT[:2])
        root, rank, request = (integers(own.column(name)) for name in _WITH_ROOT[2:])
        (span,) = np.nonzero((root >= 0) & (rank >= 0) & (request < 0))
        columns = communicator[span], collective[span], root[span], rank[span]
        found.append(np.stack((*columns, np.full(len(span), number), span)))
    whole = np.concatenate(found, axis=1)
    for communicator, collective in np.unique(whole[:2], axis=1).T.tolist():
        of_all = whole[2:, (whole[0] == communicator) & (whole[1] == collective)]
        members, count = np.unique(of_all[2], return_counts=True)
        if len(members) < 2 or (count != count[0]).any():
            continue
        # By member, in order of time: columns are in order of chain and span.
        root, rank, _, span = of_all.reshape(4, len(members), -1)
        at = [chains[number] for number in members.tolist()]
        begins = np.stack([chain.begins[span[k]] for k, chain in enumerate(at)])
        node, begin_ns = (np.stack([column[begins[k]] for k, column in enumerate(columns)])
                          for columns in ([chain.node for chain in at], [chain.time_ns for chain in at]))  # fmt: skip
        from_root = any(word in (texts.text(collective) or "") for word in ("cast", "scatter"))
        is_root = rank == root
        late_ns = np.where(is_root == from_root, begin_ns, np.iinfo(np.int64).min)
        late, column = late_ns.argmax(axis=0), np.arange(int(count[0]))
        known = is_root.sum(axis=0) == 1
        for k, chain in enumerate(at):
            waits = known & (is_root[k] != from_root)
            source, source_ns = node[late, column][waits], begin_ns[late, column][waits]
            chain.wait(chain.ends[span[k][waits]], source, source_ns, COMMUNICATION)


_WITH_ROOT = ("communicator", "collective", "root", "rank", "request")


def _messages(trace: Trace, parts: list[Part]) -> None:
    """Add which calls waited for the other side of a message.

    The call in which one was received waits for the call that sent it (Scalasca: Late Sender), a blocking send for the
    call that receives (Late Receiver), as far as either began after it. The n-th message of a sender, receiver,
    communicator and tag is the n-th that was received, where there are as many of both.
    """
    chains = [(part.rank, chain) for part in parts if part.rank is not None for chain in part.chains]
    texts = Texts()
    found = [np.zeros((7, 0), dtype=np.int64)]
    for number, (rank, chain) in enumerate(chains):
        for batch in trace.side_batches("messages", chain.location):
            time = integers(batch.column("time_ns"))
            direction = texts.numbers(batch.column("direction"))
            sent = (direction == texts.number("send")).astype(np.int64)
            inside = (sent == 1) | (direction == texts.number("receive"))
            inside &= (time >= chain.time_ns[0]) & (time <= chain.time_ns[-1]) if len(chain.time_ns) else False
            peer, own = integers(batch.column("peer_rank")), np.full(len(time), rank)
            of = texts.numbers(batch.column("communicator"))
            blocking = (integers(batch.column("request")) < 0).astype(np.int64)
            pair = np.where(sent, own, peer), np.where(sent, peer, own)
            tag = integers(batch.column("tag"))
            columns = np.stack((*pair, of, tag, time, np.full(len(time), number), 2 * sent + blocking))
            found.append(columns[:, inside])
    whole = np.concatenate(found, axis=1)
    _, key = np.unique(whole[:4], axis=1, return_inverse=True)
    key = key.ravel()
    whole, key = (each[..., np.lexsort((whole[4], key))] for each in (whole, key))
    sent = whole[6] >= 2
    counts = [np.bincount(key[which], minlength=int(key.max(initial=-1)) + 1) for which in (sent, ~sent)]
    as_many = (counts[0] == counts[1])[key]
    send, receive = whole[4:, sent & as_many], whole[4:, ~sent & as_many]
    for one in np.unique(send[1]).tolist():
        for other in np.unique(receive[1][send[1] == one]).tolist():
            which = (send[1] == one) & (receive[1] == other)
            _message(chains[one][1], chains[other][1], send[:, which], receive[:, which])


def _message(sender: Chain, receiver: Chain, send: Ints, receive: Ints) -> None:
    """Link messages between two threads; `send`, `receive`: time, thread, 2 or 0 and 1 if the call blocks."""
    begun = sender.last_until(send[0])
    done = np.searchsorted(receiver.time_ns, receive[0])
    receiver.wait(done, np.where(begun < 0, -1, sender.node[begun]), sender.time_ns[begun], COMMUNICATION)
    blocking = (send[2] == 3) & (begun >= 0) & (begun + 1 < len(sender.time_ns)) & (done > 0)
    begun, asked = begun[blocking], done[blocking] - 1
    sender.wait(begun + 1, receiver.node[asked], receiver.time_ns[asked], COMMUNICATION)
