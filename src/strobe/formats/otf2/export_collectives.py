"""The collectives of MPI as records of OTF2: blocking ones begin and end, others have a request and complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from strobe.formats.otf2.communicators import Communicator, Communicators
from strobe.formats.otf2.exported_time import ExportedTime
from strobe.formats.otf2.side_table_rows import (
    BYTE,
    LARGEST,
    U32,
    U64,
    UNDEFINED,
    Batch,
    Field,
    Records,
    Rows,
    Texts,
    Whole,
)
from strobe.trace.definition_rows import location_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

_BEGIN, _END, _REQUEST, _COMPLETE = 22, 23, 85, 86
# Their numbers are those of OTF2_CollectiveOp.
_OPERATIONS = (
    *("barrier", "broadcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv"),
    *("alltoall", "alltoallv", "alltoallw", "allreduce", "reduce", "reduce_scatter", "scan", "exscan"),
    *("reduce_scatter_block", "create_handle", "destroy_handle", "allocate", "deallocate"),
    *("create_handle_and_allocate", "destroy_handle_and_deallocate"),
)


class CollectiveWriter:
    """The collectives of a location that are records of MPI; those of NCCL, for example, are attributes of their spans.

    Either all of a location are records alone, or all of them have attributes: rows that were read stay in order.
    `lacking` counts what is written as `blocking` because its request is not in `time`.
    """

    def __init__(
        self,
        trace: Trace,
        location: int,
        communicators: Communicators,
        texts: Texts,
        version: int,
        time: ExportedTime,
        lacking: Counter[str],
    ) -> None:
        self._trace, self._location, self._version = trace, location, version
        self._exported, self._lacking = time, lacking
        self._communicators, self._texts = communicators, texts
        self._rank = communicators.rank_of[location_rows(trace)[location].process]
        self._is_mpi = location_rows(trace)[location].kind == "thread" and len(communicators) > 0
        self._exact, asks = self._is_mpi, False
        if self._is_mpi:
            for raw in trace.raw_side_batches("collective_spans", location):
                batch = Batch("collective_spans", raw, slice(None))
                self._exact = self._exact and bool(self._fits(batch)[1].all())
                asks = asks or bool(batch.get("request")[1].any())
        self._asks = asks and version >= 3
        # Of a recording, requests are known only nearly: they may be moved if attributes have the times.
        self._exact = self._exact and not (self._asks and not trace.job.imported)
        self._exact = self._exact and not any(self._requests(batch, at)[2].any() for batch, at in self._non_blocking())

    def _non_blocking(self) -> Iterator[tuple[Batch, SpanArrays]]:
        """Yield all rows with their spans, if there is a request among them."""
        rows = Rows(self._trace, "collective_spans", self._location)
        for spans in self._trace.span_batches(self._location) if self._asks else ():
            for batch in rows.before(int(spans["row"][-1]) + 1):
                yield batch, spans

    def _requests(self, batch: Batch, spans: SpanArrays) -> tuple[Whole, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return when what completed in spans was asked for, of which rows that is known and in the archive's time,
        and of which it is known and not in it.
        """
        (_, asked), (pending, known) = batch.get("request"), batch.get("pending_ns")
        asked_at = np.maximum(_ends(spans, batch.row) + self._exported.zero_ns - pending, 0)
        lacks = self._exported.lacks(asked_at)
        return asked_at, asked & known & ~lacks, asked & known & lacks

    @property
    def late_ns(self) -> int:
        """How much the requests may be too late: a call ends after what is completed in it."""
        return 0 if self._exact else 1000

    def requests(self) -> Iterator[Records]:
        """Yield the requests of collectives that did not block: some time before the spans that completed them."""
        for batch, spans in self._non_blocking():
            asked_at, which, _ = self._requests(batch, spans)
            which &= self._fits(batch)[0]
            if which.any():
                yield _REQUEST, asked_at[which], [(U64, batch.get("request")[0][which])], []

    def write(
        self, batch: Batch, spans: SpanArrays, first: list[Records], last: list[Records]
    ) -> npt.NDArray[np.bool_]:
        """Write records, which begin and end with their spans, as far as possible. Returns the rows written."""
        if not self._is_mpi:
            return np.zeros(len(batch), dtype=bool)
        fits, _ = self._fits(batch)
        operation, comm = self._operations(batch), self._in_communicator(batch, lambda comm: comm.number)
        root, has_root = batch.get("root")
        request, asked = batch.get("request")
        (sent, has_sent), (received, has_received) = batch.get("sent_bytes"), batch.get("received_bytes")
        cut_off = self._requests(batch, spans)[2]
        asked = asked & ~cut_off & (self._version >= 3)
        if self._asks:
            self._lacking["blocking"] += int((fits & cut_off).sum())
        for end, which in (_END, fits & ~asked), (_COMPLETE, fits & asked):
            if not which.any():
                continue
            part = batch.take(which)
            fields: list[Field] = [
                (BYTE, operation[which]),
                (U32, comm[which]),
                (U32, np.where(has_root, root, UNDEFINED)[which]),
                (U64, np.where(has_sent, sent, UNDEFINED)[which]),
                (U64, np.where(has_received, received, UNDEFINED)[which]),
            ]
            if end == _END:
                first.append((_BEGIN, part.row, [], []))
            else:
                fields.append((U64, request[which]))
            last.append((end, part.row, fields, [] if self._exact else self._texts.attributes(part)))
        return fits

    def _looked_up(self, batch: Batch, name: str, what: Callable[[str], int]) -> Whole:
        """Return the number that `what` gives each text of a column, -1 without a text."""
        values, present = batch.get(name)
        distinct, at = np.unique(np.where(present, values, -1), return_inverse=True)
        known = [what(self._texts.text(value)) if value >= 0 else -1 for value in distinct.tolist()]
        found: Whole = np.array(known, dtype=np.int64)[at.reshape(-1)]
        return found

    def _operations(self, batch: Batch) -> Whole:
        numbers = {name: number for number, name in enumerate(_OPERATIONS)}
        return self._looked_up(batch, "collective", lambda name: numbers.get(name, -1))

    def _in_communicator(self, batch: Batch, what: Callable[[Communicator], int | None]) -> Whole:
        def of(name: str) -> int:
            found = self._communicators.find(name)
            value = what(found) if found is not None else None
            return -1 if value is None else value

        return self._looked_up(batch, "communicator", of)

    def _fits(self, batch: Batch) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which rows can be records of MPI, and which of these have no other cells."""
        sizes = self._in_communicator(batch, lambda comm: len(comm.members))
        ranks = self._in_communicator(batch, lambda comm: comm.own_rank(self._rank))
        fits = (self._operations(batch) >= 0) & (sizes >= 0) & (ranks >= 0)
        for name, most in ("root", LARGEST), ("sent_bytes", 2**62), ("received_bytes", 2**62):
            value, present = batch.get(name)
            fits &= ~present | ((value >= 0) & (value <= most))
        (size, has_size), (rank, has_rank) = batch.get("group_size"), batch.get("rank")
        (_, asked), (pending, waited) = batch.get("request"), batch.get("pending_ns")
        exact = fits & has_size & (size == sizes) & has_rank & (rank == ranks) & (asked | ~waited) & (pending >= 0)
        exact &= batch.only_has(
            *("collective", "communicator", "group_size", "rank", "root", "sent_bytes", "received_bytes"),
            *(("request", "pending_ns") if self._version >= 3 else ()),
        )
        return fits, exact


def _ends(spans: SpanArrays, rows: Whole) -> Whole:
    at = np.searchsorted(spans["row"], rows)
    found: Whole = spans["start_ns"][at] + spans["duration_ns"][at]
    return found
