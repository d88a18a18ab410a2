"""Messages between ranks, and which send belongs to which receive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.sums.attributes import integers
from strobe.sums.groups import Texts
from strobe.tables.column_arrays import Bools, Columns, Ints, alike
from strobe.trace.definition_rows import location_rows, ranks_of
from strobe.trace.trace import Trace

MESSAGES, ONE_SIDED = ("send", "receive"), ("put", "get", "atomic")
LOCKS = ("lock", "shared_lock")
# What begins and ends epochs of one-sided communication.
EPOCHS = ("post", "start", "complete", "wait", *LOCKS, "unlock")
_ENDS = ("receive", "probe", "start", "wait", "unlock")  # these have the time when they were over


@dataclass(frozen=True)
class MessageEnds(Columns):
    """Sends and receives of MPI and gloo; or one-sided communication, all of which counts as sent.

    Of epochs, a post is sent and the start receives it, a complete is sent and the wait receives it. A lock is sent to
    its target (receiver -1: to all), and its unlock is the other end.

    kind: number of the text of the direction. sender, receiver: -1 unknown; a get is sent by its target. `place`: index
    of the location in the list that was read. time_ns: when it was sent, or had been received.
    pending_ns: from request to completion, -1 where the call blocks. in_call_ns: of the call that completes it, from
    its begin until then; call_path: of that call; -1 where the trace lacks them. size_bytes: -1 unknown.
    """

    kind: Ints
    sender: Ints
    receiver: Ints
    communicator: Ints
    tag: Ints
    place: Ints
    time_ns: Ints
    sent: Bools
    size_bytes: Ints
    pending_ns: Ints
    in_call_ns: Ints
    call_path: Ints

    @property
    def blocking(self) -> Bools:
        """Which ones have no request."""
        return np.asarray(self.pending_ns < 0)

    @property
    def asked_ns(self) -> Ints:
        """When it was asked for: MPI counts messages in this order."""
        return np.where(self.sent, self.time_ns, self.time_ns - np.maximum(self.pending_ns, 0))

    @property
    def done_ns(self) -> Ints:
        """When it was complete. Of a blocking send without a known call: when it was sent."""
        known = np.where(self.blocking, self.in_call_ns, self.pending_ns)
        return np.where(self.sent, self.time_ns + np.maximum(known, 0), self.time_ns)


def all_message_ends(trace: Trace, texts: Texts, kinds: Sequence[str] = MESSAGES) -> MessageEnds:
    """Return the sends and receives of all processes that have a rank; `place` is the location."""
    ranks = ranks_of(trace)
    return message_ends(trace, [(at.location, ranks[at.process]) for at in location_rows(trace)], texts, kinds)


def message_ends(
    trace: Trace, locations: Sequence[tuple[int, int | None]], texts: Texts, kinds: Sequence[str] = MESSAGES
) -> MessageEnds:
    """Return the sends and receives of locations, each given with its rank, in the order of the list.

    `kinds`: the directions that are wanted; of one-sided communication ONE_SIDED and EPOCHS; `probe`.
    """
    parts = []
    get, unlock, *ends_at = (texts.number(kind) for kind in ("get", "unlock", *_ENDS))
    wanted = [texts.number(kind) for kind in kinds]
    for place, (location, rank) in enumerate(locations):
        if rank is None:
            continue
        for batch in trace.side_batches("messages", location):
            direction = texts.numbers(batch.column("direction"))
            sent = ~np.isin(direction, ends_at)
            outward = (sent & (direction != get)) | (direction == unlock)
            peer = integers(batch.column("peer_rank"))
            # A file may have a request without the time that it took.
            pending = np.maximum(integers(batch.column("pending_ns")), np.minimum(integers(batch.column("request")), 0))
            ends = MessageEnds(
                kind=direction,
                sender=np.where(outward, rank, peer),
                receiver=np.where(outward, peer, rank),
                communicator=texts.numbers(batch.column("communicator")),
                tag=integers(batch.column("tag")),
                place=np.full(len(sent), place),
                time_ns=integers(batch.column("time_ns")),
                sent=sent,
                size_bytes=integers(batch.column("size_bytes")),
                pending_ns=pending,
                in_call_ns=integers(batch.column("in_call_ns")),
                call_path=integers(batch.column("call_path")),
            )
            every = np.isin(direction, wanted)
            parts.append(ends if every.all() else ends.chosen(every))
    return MessageEnds.joined(parts)


def from_the_first(trace: Trace) -> bool:
    """Return whether all messages from the first on are in the log, though the last ones may lack their other end.

    Then `matched` need not be `complete`: MPI lets no message overtake another one.
    """
    return not any(reader.quality().get("rows_lost") for reader in trace.readers)


def matched(ends: MessageEnds, *, complete: bool = True) -> tuple[Ints, Ints]:
    """Return the entries of sends and of their receives, in order of sender, receiver, communicator, tag and time.

    The n-th send of these four is the n-th receive, in the order in which they were asked for. `complete`: all ends are
    there, so that nothing is known where there are more of one kind than of the other.
    """
    group = numbered(ends.sender, ends.receiver, ends.communicator, ends.tag)
    order = np.lexsort((ends.asked_ns, group))
    sides = [order[ends.sent[order]], order[~ends.sent[order]]]
    counts = [np.bincount(group[side], minlength=int(group.max(initial=-1)) + 1) for side in sides]
    both = np.where(counts[0] == counts[1], counts[0], 0) if complete else np.minimum(*counts)
    # The n-th of those that are left is the same message on both sides.
    send, receive = (
        side[np.arange(len(side)) - (np.cumsum(count) - count)[group[side]] < both[group[side]]]
        for side, count in zip(sides, counts, strict=True)
    )
    return send, receive


def numbered(*columns: Ints) -> Ints:
    """Number the combinations in columns, in their order."""
    return alike(columns)[1]


def places(group: Ints, time: Ints) -> Ints:
    """Return the place of each entry in its group, in order of time."""
    order = np.lexsort((time, group))
    begin = np.flatnonzero(np.diff(group[order], prepend=-1))
    place = np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - np.repeat(begin, np.diff(begin, append=len(group)))
    return place
