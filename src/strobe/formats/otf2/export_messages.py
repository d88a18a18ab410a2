"""The messages of MPI as records of OTF2: sends and receives, with the requests of those that do not block, and RMA."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from strobe import native
from strobe.formats.otf2.communicators import Communicator, Communicators
from strobe.formats.otf2.definitions import Definitions
from strobe.formats.otf2.side_table_rows import BYTE, LARGEST, U32, U64, Batch, Field, Numbers, Texts, Whole, carriers

_SEND, _ISEND, _ISEND_COMPLETE, _IRECEIVE_REQUEST, _RECEIVE, _IRECEIVE = 14, 15, 16, 17, 18, 19
_TRANSFERS = {"put": 46, "get": 47, "atomic": 48}
_TRANSFER_COMPLETE = 49


class MessageWriter:
    """Writes the messages of one location of a process; `ticks` is when the rows of a batch were."""

    def __init__(
        self,
        out: native.Otf2EventFile,
        texts: Texts,
        process: int,
        definitions: Definitions,
        communicators: Communicators,
        ticks: Callable[[Batch], Whole],
    ) -> None:
        self._out, self._texts, self._process = out, texts, process
        self._definitions, self._communicators, self._ticks = definitions, communicators, ticks

    def write(self, batch: Batch) -> None:
        """Write messages of the process."""
        directions, has_direction = batch.get("direction")
        comms, has_comm = batch.get("communicator")
        directions, comms = np.where(has_direction, directions, -1), np.where(has_comm, comms, -1)
        for direction, comm in np.unique(np.stack([directions, comms], axis=1), axis=0).tolist():
            part = batch.take((directions == direction) & (comms == comm))
            known = self._communicators.find(self._texts.text(comm))
            rest = self._exact_messages(part, self._texts.text(direction), known)
            self._other_messages(rest, self._texts.text(direction))

    def _exact_messages(self, batch: Batch, direction: str, comm: Communicator | None) -> Batch:
        """Write the messages that OTF2 can hold completely; return the rest."""
        if comm is None or direction not in ("send", "receive", *_TRANSFERS):
            return batch
        (rank, has_rank), (peer, has_peer) = batch.get("communicator_rank"), batch.get("peer_rank")
        (label, has_label), (tag, has_tag) = batch.get("peer"), batch.get("tag")
        (size, has_size), (request, has_request) = batch.get("size_bytes"), batch.get("request")
        pending, has_pending = batch.get("pending_ns")
        inside = has_rank & (rank >= 0) & (rank < len(comm.members))
        of_job = comm.members[np.where(inside, rank, 0)]
        labels = np.array([self._definitions.string(each) for each in self._communicators.labels], dtype=np.int64)
        exact = inside & has_peer & (peer == of_job) & has_size & (size >= 0) & (pending >= 0)
        exact &= has_label & (self._texts.strings(np.where(has_label, label, -1)) == labels[of_job])
        one_sided = direction in _TRANSFERS
        exact &= ~has_tag & has_request if one_sided else has_tag & (tag >= 0) & (tag <= LARGEST)
        exact &= has_request | ~has_pending
        time = self._ticks(batch)

        def put(record: int, which: npt.NDArray[np.bool_], at: Whole, *fields: tuple[int, Numbers]) -> None:
            if which.any():
                taken = [(kind, each if isinstance(each, int) else each[which]) for kind, each in fields]
                self._out.points((record, at[which], taken, []))

        ends: tuple[tuple[int, Numbers], ...] = ((U64, request),)
        if one_sided:
            window = self._communicators.window(comm)
            split = ((BYTE, 0), (U64, size), (U64, 0)) if direction == "atomic" else ((U64, size),)
            put(_TRANSFERS[direction], exact, time, (U32, window), (U32, rank), *split, *ends)
            put(_TRANSFER_COMPLETE, exact & has_pending, time + pending, (U32, window), *ends)
            return batch.take(~exact)
        about = ((U32, rank), (U32, comm.number), (U32, tag), (U64, size))
        waited = exact & has_request
        if direction == "send":
            put(_SEND, exact & ~has_request, time, *about)
            put(_ISEND, waited, time, *about, *ends)
            put(_ISEND_COMPLETE, waited & has_pending, time + pending, *ends)
        else:
            put(_RECEIVE, exact & ~has_request, time, *about)
            put(_IRECEIVE_REQUEST, waited & has_pending, np.maximum(time - pending, 0), *ends)
            put(_IRECEIVE, waited, time, *about, *ends)
        return batch.take(~exact)

    def _other_messages(self, batch: Batch, direction: str) -> None:
        """Write the other messages: from rank to rank if these are known, with all cells as attributes."""
        peer, known = batch.get("peer_rank")
        size, has_size = batch.get("size_bytes")
        tag, has_tag = batch.get("tag")
        shown = known & (peer >= 0) & (peer < len(self._communicators)) & has_size & (size >= 0)
        shown &= direction in ("send", "receive") and self._communicators.rank_of[self._process] is not None
        if shown.any():
            part = batch.take(shown)
            tags = np.where(has_tag & (tag >= 0) & (tag <= LARGEST), tag, 0)[shown]
            fields: list[Field] = [(U32, peer[shown]), (U32, 0), (U32, tags), (U64, size[shown])]
            record = _SEND if direction == "send" else _RECEIVE
            attributes = self._texts.attributes(part)
            self._out.points((record, self._ticks(part), fields, attributes))
        if len(rest := batch.take(~shown)):
            self._out.points(carriers(self._texts, self._definitions, rest, self._ticks(rest)))
