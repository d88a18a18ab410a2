"""Messages between ranks, and which send belongs to which receive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.native import core
from strobe.sums.groups import Texts
from strobe.sums.side_columns import WHOLE, Part, side_columns
from strobe.tables.column_arrays import Bools, Columns, Ints, alike
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

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

    kind: number of the text of the direction. sender, receiver: -1 unknown; a get is sent by its target. `place`: its
    location. time_ns: when it was sent, or had been received.
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


_CELLS = (
    *("direction", "peer_rank", "communicator", "tag", "time_ns", "size_bytes", "request", "pending_ns", "in_call_ns"),
    "call_path",
)


@cached_on_trace
def message_texts(trace: Trace) -> Texts:
    """Return the texts that kinds and communicators of messages are numbers of."""
    return Texts()


def message_ends(trace: Trace, kinds: Sequence[str] = MESSAGES) -> MessageEnds:
    """Return the sends and receives of all locations of ranks, in order of location; `place` is the location.

    `kinds`: the directions that are wanted; of one-sided communication ONE_SIDED and EPOCHS; `probe`.
    """
    if not any(set(kinds) & set(trace.texts(process)) for process in range(len(trace.readers))):
        return MessageEnds.joined(())
    return _of_kinds(trace, _all_ends(trace), kinds)


def messages_in(trace: Trace, part: Part) -> MessageEnds:
    """Return the sends and receives in a part of the log, those of a location in the order of their rows."""
    return _of_kinds(trace, _all_ends(trace) if part == WHOLE else _ends(trace, part), MESSAGES)


def _of_kinds(trace: Trace, every: MessageEnds, kinds: Sequence[str]) -> MessageEnds:
    texts = message_texts(trace)
    wanted = np.array([text in kinds for text in texts.texts] + [False], dtype=bool)[every.kind]
    return every if wanted.all() else every.chosen(wanted)


@cached_on_trace
def _all_ends(trace: Trace) -> MessageEnds:
    return _ends(trace, WHOLE)


def _ends(trace: Trace, part: Part) -> MessageEnds:
    texts = message_texts(trace)
    place, cells = side_columns(trace, "messages", _CELLS, texts, part)
    get, unlock, *ends_at = (texts.number(kind) for kind in ("get", "unlock", *_ENDS))
    ranks = np.array([-1 if rank is None else rank for rank in ranks_of(trace)], dtype=np.int64)
    rank = ranks[np.array(processes_of_locations(trace), dtype=np.int64)][place]
    direction = cells["direction"]
    sent = np.array([number not in ends_at for number in range(len(texts.texts))] + [True], dtype=bool)[direction]
    outward = (sent & (direction != get)) | (direction == unlock)
    ends = MessageEnds(
        kind=direction,
        sender=np.where(outward, rank, cells["peer_rank"]),
        receiver=np.where(outward, cells["peer_rank"], rank),
        communicator=cells["communicator"],
        tag=cells["tag"],
        place=place,
        time_ns=cells["time_ns"],
        sent=sent,
        size_bytes=cells["size_bytes"],
        # A file may have a request without the time that it took.
        pending_ns=np.maximum(cells["pending_ns"], np.minimum(cells["request"], 0)),
        in_call_ns=cells["in_call_ns"],
        call_path=cells["call_path"],
    )
    return ends if (rank >= 0).all() else ends.chosen(rank >= 0)


def from_the_first(trace: Trace) -> bool:
    """Return whether all messages from the first on are in the log, though the last ones may lack their other end.

    Then `matched` need not be `complete`: MPI lets no message overtake another one.
    """
    return not any(reader.quality().get("rows_lost") for reader in trace.readers)


def matched(ends: MessageEnds, *, complete: bool = True) -> tuple[Ints, Ints]:
    """Return the entries of sends and of their receives, in order of sender, receiver, communicator, tag and time.

    The n-th send of these four is the n-th receive, in the order in which they were asked for. `complete`: all ends are
    there, so that nothing is known where there are more of one kind than of the other. Without a sender or receiver, an
    end is of no message.
    """
    columns = (ends.sender, ends.receiver, ends.communicator, ends.tag, ends.asked_ns, ends.sent.view(np.uint8))
    return core.match_fifo(*columns, complete)


def numbered(*columns: Ints) -> Ints:
    """Number the combinations in columns, in their order."""
    return alike(columns)[1]


def places(group: Ints) -> Ints:
    """Return the place of each entry in its group."""
    groups = int(group.max(initial=-1)) + 1
    order, count = core.in_order_of(group, groups), np.bincount(group, minlength=groups)
    place = np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    return place
