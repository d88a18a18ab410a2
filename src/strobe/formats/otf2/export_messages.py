"""The messages of MPI as records of OTF2: sends and receives, with the requests of those that do not block, and RMA."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from strobe import native
from strobe.formats.otf2.communicators import Communicator, Communicators
from strobe.formats.otf2.definitions import Definitions
from strobe.formats.otf2.exported_time import ExportedTime
from strobe.formats.otf2.side_table_rows import (
    BYTE,
    LARGEST,
    U32,
    U64,
    Attribute,
    Batch,
    Field,
    Records,
    Texts,
    Whole,
    carriers,
)

_SEND, _ISEND, _ISEND_COMPLETE, _IRECEIVE_REQUEST, _RECEIVE, _IRECEIVE = 14, 15, 16, 17, 18, 19
_TRANSFERS = {"put": 46, "get": 47, "atomic": 48}
_TRANSFER_COMPLETE = 49
_IN_RECORDS = (
    *("time_ns", "direction", "communicator", "communicator_rank", "peer_rank", "peer"),
    *("tag", "size_bytes", "request", "pending_ns"),
)
_MARKS = {"MpiRequestTest": 20, "MpiRequestCancelled": 21}  # what such events of an imported archive became
# How long a request is pending is measured by another clock than calls: it may seem to be made before its call.
_EARLY_NS = 1000
_Which = npt.NDArray[np.bool_]


class MessageWriter:
    """Writes the messages of one location of a process; `ticks` is when the rows of a batch were.

    `lacking` counts what is `folded`, and therefore left out, and what is written as `blocking` because its request
    or its completion is not in `time`.
    """

    def __init__(
        self,
        out: native.Otf2EventFile,
        texts: Texts,
        process: int,
        definitions: Definitions,
        communicators: Communicators,
        ticks: Callable[[Batch], Whole],
        time: ExportedTime,
        lacking: Counter[str],
    ) -> None:
        self._out, self._texts, self._process = out, texts, process
        self._definitions, self._communicators, self._ticks = definitions, communicators, ticks
        self._exported, self._lacking = time, lacking

    def write(self, batch: Batch) -> None:
        """Write messages of the process."""
        folded = self._exported.is_folded(self._ticks(batch))
        self._lacking["folded"] += int(folded.sum())
        batch = batch.take(~folded)
        directions, has_direction = batch.get("direction")
        comms, has_comm = batch.get("communicator")
        directions, comms = np.where(has_direction, directions, -1), np.where(has_comm, comms, -1)
        for direction, comm in np.unique(np.stack([directions, comms], axis=1), axis=0).tolist():
            part = batch.take((directions == direction) & (comms == comm))
            known = self._communicators.find(self._texts.text(comm))
            name = self._texts.text(direction)
            if name in _TRANSFERS and known is not None:
                part = self._transfers(part, name, known)
            elif name in ("send", "receive"):
                part = self._messages(part, name == "send", known)
            if len(part):
                self._out.points(carriers(self._texts, self._definitions, part, self._ticks(part)))

    def _put(
        self,
        record: int,
        which: _Which,
        at: Whole,
        *fields: Field,
        attributes: Sequence[Attribute] = (),
        early_ns: int = 0,
    ) -> None:
        if which.any():
            taken = [(kind, each if isinstance(each, int) else each[which]) for kind, each in fields]
            self._out.points((record, at[which], taken, list(attributes)), early_ns)

    def _known(self, batch: Batch, comm: Communicator) -> tuple[_Which, _Which]:
        """Return whose other side is a member of the communicator, and which of these have no other cells."""
        (rank, has_rank), (peer, has_peer) = batch.get("communicator_rank"), batch.get("peer_rank")
        (label, has_label), (size, has_size) = batch.get("peer"), batch.get("size_bytes")
        (_, has_request), (pending, has_pending) = batch.get("request"), batch.get("pending_ns")
        inside = has_rank & (rank >= 0) & (rank < len(comm.members)) & has_size & (size >= 0)
        of_job = comm.members[np.where(inside, rank, 0)]
        inside &= has_peer & (peer == of_job)
        labels = np.array([self._definitions.string(each) for each in self._communicators.labels], dtype=np.int64)
        named = has_label & (self._texts.strings(np.where(has_label, label, -1)) == labels[of_job])
        return inside, inside & named & (pending >= 0) & (has_request | ~has_pending) & batch.only_has(*_IN_RECORDS)

    def _transfers(self, batch: Batch, direction: str, comm: Communicator) -> Batch:
        """Write the one-sided communication that OTF2 can hold completely; return the rest."""
        (rank, _), (size, _) = batch.get("communicator_rank"), batch.get("size_bytes")
        (request, has_request), (pending, has_pending) = batch.get("request"), batch.get("pending_ns")
        window, has_window = batch.get("tag")
        own = [each for each in np.unique(window[has_window]).tolist() if self._communicators.has_window(comm, each)]
        exact = self._known(batch, comm)[1] & np.isin(window, own) & has_window & has_request
        time = self._ticks(batch)
        split: tuple[Field, ...] = ((BYTE, 0), (U64, size), (U64, 0)) if direction == "atomic" else ((U64, size),)
        self._put(_TRANSFERS[direction], exact, time, (U32, window), (U32, rank), *split, (U64, request))
        self._put(_TRANSFER_COMPLETE, exact & has_pending, time + pending, (U32, window), (U64, request))
        return batch.take(~exact)

    def _messages(self, batch: Batch, sends: bool, comm: Communicator | None) -> Batch:
        """Write messages whose ranks are known; return the rest.

        Those that OTF2 cannot hold completely have all cells as attributes.
        """
        (rank, _), (peer, has_peer) = batch.get("communicator_rank"), batch.get("peer_rank")
        (size, has_size), (tag, has_tag) = batch.get("size_bytes"), batch.get("tag")
        (request, waited), (pending, has_pending) = batch.get("request"), batch.get("pending_ns")
        time, has_tag = self._ticks(batch), has_tag & (tag >= 0) & (tag <= LARGEST)
        inside, exact = np.zeros((2, len(batch)), dtype=bool) if comm is None else self._known(batch, comm)
        other = time + pending if sends else np.maximum(time - pending, 0)
        cut_off = waited & has_pending & self._exported.lacks(other)
        exact = exact & has_tag & ~cut_off
        shown = has_peer & (peer >= 0) & (peer < len(self._communicators)) & has_size & (size >= 0)
        shown &= exact | (self._communicators.rank_of[self._process] is not None)
        self._lacking["blocking"] += int((shown & cut_off).sum())
        waited = waited & ~cut_off
        about = (
            (U32, np.where(inside, rank, peer)),
            (U32, np.where(inside, comm.number if comm is not None else 0, 0)),
            (U32, np.where(has_tag, tag, 0)),
            (U64, size),
        )
        blocking, non_blocking = (_SEND, _ISEND) if sends else (_RECEIVE, _IRECEIVE)
        requests = shown & waited & has_pending
        if not sends:
            self._put(_IRECEIVE_REQUEST, requests & exact, other, (U64, request))
            # The others have their times in attributes.
            self._put(_IRECEIVE_REQUEST, requests & ~exact, other, (U64, request), early_ns=_EARLY_NS)
        for which, with_more in (exact, False), (shown & ~exact, True):
            for record, chosen, ends in (blocking, ~waited, ()), (non_blocking, waited, ((U64, request),)):
                more = self._texts.attributes(batch.take(which & chosen)) if with_more else ()
                self._put(record, which & chosen, time, *about, *ends, attributes=more)
        if sends:
            self._put(_ISEND_COMPLETE, requests, other, (U64, request))
        return batch.take(~shown)


def requests_of_marks(batch: Batch, texts: Texts, ticks: Whole) -> Iterator[tuple[_Which, Records]]:
    """Yield the marks that are events of requests (tested in vain, cancelled): which of the rows, and as records."""
    (names, _), (arguments, _) = batch.get("name"), batch.get("arguments")
    categories, _ = batch.get("category")
    keys, place = np.unique(np.stack([names, categories, arguments], axis=1), axis=0, return_inverse=True)
    found = [_request(*(texts.text(each) for each in key)) for key in keys.tolist()]
    for record in _MARKS.values():
        requests = np.array([request if kind == record else -1 for kind, request in found], dtype=np.int64)
        request = requests[place.reshape(-1)]
        if (which := request >= 0).any():
            yield which, (record, ticks[which], [(U64, request[which])], texts.attributes(batch.take(which)))


def _request(name: str, category: str, arguments: str) -> tuple[int, int]:
    request = re.fullmatch(r'\{"request": (\d{1,18})\}', arguments)
    return (_MARKS.get(name, 0), int(request[1])) if request and category == "otf2" else (0, -1)
