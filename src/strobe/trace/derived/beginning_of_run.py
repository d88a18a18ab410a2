"""The beginning of a large run: what can be summed up at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from strobe.model.units import format_count, format_ns
from strobe.trace.processes.process_part import PartReader
from strobe.trace.processes.process_reader import ProcessReader
from strobe.trace.trace import Trace

_AnyTrace = TypeVar("_AnyTrace", bound=Trace)


def beginning_of(trace: _AnyTrace, most_spans: int) -> tuple[_AnyTrace, str]:
    """Return the run, or where it has more than `most_spans` spans its first processes, as many as have no more.

    Of a first process that has more, its beginning. Numbers of processes, locations, regions and call paths stay.
    Return also in words which part it is, "" for all.
    """
    counts = np.zeros(len(trace.readers), dtype=np.int64)
    processes, spans = (trace.locations.to_arrow().column(name).to_numpy() for name in ("process", "span_count"))
    np.add.at(counts, processes, spans.astype(np.int64))
    whole = int(np.searchsorted(np.cumsum(counts), most_spans, side="right"))
    if whole == len(counts):
        return trace, ""
    files = trace.files[: max(1, whole)]
    if whole:
        said = f"the first {whole} of {len(counts)} processes" if whole > 1 else f"the first of {len(counts)} processes"
        readers: list[ProcessReader] = list(trace.readers[:whole])
    else:
        # The last moment before which there are not too many.
        first, until = 0, trace.info.duration_ns + 1
        while until - first > 1:
            middle = (first + until) // 2
            few = trace.readers[0].spans_before(middle + trace.zero_of(0)) <= most_spans
            first, until = (middle, until) if few else (first, middle)
        of = f" of the first of {len(counts)} processes" if len(counts) > 1 else ""
        said = f"the first {format_ns(first)}{of}"
        begin = min(0, *(at["first_ns"] for at in trace.locations.to_arrow().to_pylist() if at["process"] == 0))
        readers = [PartReader(trace.readers[0], begin + trace.zero_of(0), first + trace.zero_of(0))]
    part = trace.with_readers(readers, files, replace(trace.job, zero_ns=trace.zero_ns))
    return part, f"found in {said}: {format_count(part.span_count)} of {format_count(trace.span_count)} spans"
