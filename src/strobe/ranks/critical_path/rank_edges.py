"""Links between ranks in the critical path: collectives, which wait for the last to come or a root, and messages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from strobe.ranks.collective_columns import ALL_NEED_ALL, NOBODY
from strobe.ranks.collectives import collectives
from strobe.ranks.critical_path.gpu_edges import Activities, Calls, Syncs
from strobe.ranks.critical_path.longest_path import COMMUNICATION, Builder
from strobe.ranks.critical_path.thread_edges import Chain
from strobe.ranks.messages import MessageEnds, matched, message_ends
from strobe.tables.column_arrays import Bools, Ints, place_of
from strobe.trace.trace import Trace

# Phase of the moments in which all have come to a collective, see Builder.
_ALL_THERE = 3
_NEVER = -(2**62)


@dataclass
class Part:
    """The work of one process in its window. `early`: which activities are collectives that waited for others."""

    rank: int | None
    chains: list[Chain]
    calls: Calls
    work: Activities
    syncs: Syncs
    early: Bools


def link(trace: Trace, builder: Builder, parts: list[Part]) -> None:
    """Add the waits of ranks for others: for the last to come to a collective, for its root, and for messages."""
    if len(parts) > 1:
        _collectives(trace, builder, parts)
        _awaited(trace, parts)
        _messages(trace, parts)


def _collectives(trace: Trace, builder: Builder, parts: list[Part]) -> None:
    """Add the moment in which all have come to each collective; from then on it takes its time everywhere."""
    found = collectives(trace)
    waits = ~np.array([party.hands_over for party in found.parties], dtype=bool)[found.party]
    waits &= found.of_kinds(ALL_NEED_ALL) & found.blocking & (found.row >= 0)
    members: list[_Member] = []
    for part in parts:
        for chain in (None, *part.chains):
            rows = part.work.row if chain is None else chain.spans["row"]
            where = part.work.location if chain is None else np.full(len(rows), chain.location)
            for location in np.unique(where).tolist():
                (own,) = np.nonzero(where == location)
                own = own[np.argsort(rows[own])]
                (known,) = np.nonzero((found.location == location) & (found.collective >= 0) & waits)
                at = place_of(found.row[known], rows[own])
                matches = at >= 0
                members.append(_Member(part, chain, own[at[matches]], found.collective[known[matches]]))
    number = np.concatenate([np.zeros(0, dtype=np.int64), *(each.collective for each in members)])
    shared, counts = np.unique(number, return_counts=True)
    shared = shared[counts > 1]
    members = [each.only(np.isin(each.collective, shared)) for each in members]
    last_ns = np.full(len(shared), _NEVER, dtype=np.int64)
    for each in members:
        np.maximum.at(last_ns, np.searchsorted(shared, each.collective), each.begin_ns)
    together = builder.moments(last_ns, _ALL_THERE)
    for each in members:
        chain, work, which = each.chain, each.part.work, each.which
        at = np.searchsorted(shared, each.collective)
        begins = work.begins[which] if chain is None else chain.node[chain.begins[which]]
        end_ns = work.end_ns[which] if chain is None else chain.time_ns[chain.ends[which]]
        builder.edges(begins, together[at], np.zeros(len(at), dtype=np.int64), COMMUNICATION)
        # If clocks differ, it may seem to end before the last one has come: then nothing is known.
        sound = end_ns > last_ns[at]
        which, at = which[sound], at[sound]
        if chain is None:
            each.part.early[which] = each.begin_ns[sound] < last_ns[at]
            builder.edges(together[at], work.ends[which], end_ns[sound] - last_ns[at], COMMUNICATION,
                          work.location[which], work.row[which], work.region[which],
                          work.call_path[which])  # fmt: skip
        else:
            chain.wait(chain.ends[which], together[at], last_ns[at], COMMUNICATION, transfers=True)


@dataclass
class _Member:
    """Collectives in one location: activities of GPUs, or spans of a thread's chain; and the numbers of both."""

    part: Part
    chain: Chain | None
    which: Ints
    collective: Ints

    @property
    def begin_ns(self) -> Ints:
        if self.chain is None:
            return self.part.work.start_ns[self.which]
        return self.chain.time_ns[self.chain.begins[self.which]]

    def only(self, chosen: Bools) -> _Member:
        return _Member(self.part, self.chain, self.which[chosen], self.collective[chosen])


def _awaited(trace: Trace, parts: list[Part]) -> None:
    """Add the waits in collectives in which some need some: with a root, in order of rank, and those that do not block.

    Scalasca: Late Broadcast (and scatter), Early Reduce (and gather), Early Scan. What does not block is waited for in
    the call that completes it, until the last rank has asked for it.
    """
    found = collectives(trace)
    awaited_ns, who = found.awaited()
    waits = (awaited_ns != NOBODY) & (found.row >= 0) & ~(found.of_kinds(ALL_NEED_ALL) & found.blocking)
    chains = {chain.location: chain for part in parts for chain in part.chains}
    for location, chain in chains.items():
        (own,) = np.nonzero(waits & (found.location == location))
        at = place_of(found.row[own], chain.spans["row"])
        own, at = own[at >= 0], at[at >= 0]
        for other in np.unique(found.location[who[own]]).tolist():
            if other == location or other not in chains:
                continue
            of, which = chains[other], found.location[who[own]] == other
            came = of.last_until(awaited_ns[own[which]])
            source = np.where(came < 0, -1, of.node[came])
            chain.wait(chain.ends[at[which]], source, of.time_ns[came], COMMUNICATION)


def _messages(trace: Trace, parts: list[Part]) -> None:
    """Add the waits of calls for the other side of a message.

    The call in which one was received waits for the call that sent it (Scalasca: Late Sender), a blocking send for the
    call that receives (Late Receiver), as far as either began after it. The n-th message of a sender, receiver,
    communicator and tag is the n-th that was received, if there are as many of both.
    """
    chains = [(part.rank, chain) for part in parts if part.rank is not None for chain in part.chains]
    if not chains:
        return
    of_location = np.full(len(trace.locations), -1, dtype=np.int64)
    of_location[[chain.location for _, chain in chains]] = np.arange(len(chains))
    ends = message_ends(trace)
    ends = replace(ends, place=of_location[ends.place]).chosen(of_location[ends.place] >= 0)
    first = np.array([chain.time_ns[0] if len(chain.time_ns) else -_NEVER for _, chain in chains])
    last = np.array([chain.time_ns[-1] if len(chain.time_ns) else _NEVER for _, chain in chains])
    ends = ends.chosen((ends.time_ns >= first[ends.place]) & (ends.time_ns <= last[ends.place]))
    send, receive = (ends.chosen(side) for side in matched(ends))
    for one in np.unique(send.place).tolist():
        for other in np.unique(receive.place[send.place == one]).tolist():
            which = (send.place == one) & (receive.place == other)
            _message(chains[one][1], chains[other][1], send.chosen(which), receive.chosen(which))


def _message(sender: Chain, receiver: Chain, send: MessageEnds, receive: MessageEnds) -> None:
    begun = sender.last_until(send.time_ns)
    done = np.searchsorted(receiver.time_ns, receive.time_ns)
    receiver.wait(done, np.where(begun < 0, -1, sender.node[begun]), sender.time_ns[begun], COMMUNICATION)
    blocking = send.blocking & (begun >= 0) & (begun + 1 < len(sender.time_ns)) & (done > 0)
    begun, asked = begun[blocking], done[blocking] - 1
    sender.wait(begun + 1, receiver.node[asked], receiver.time_ns[asked], COMMUNICATION)
