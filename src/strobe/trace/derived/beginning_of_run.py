"""The beginning of a large run, small enough to be summed up at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from strobe.model.units import format_count, format_ns
from strobe.trace.definition_rows import location_rows
from strobe.trace.processes.process_part import PartReader
from strobe.trace.processes.process_reader import ProcessReader
from strobe.trace.trace import Trace

_AnyTrace = TypeVar("_AnyTrace", bound=Trace)


def beginning_of(trace: _AnyTrace, most_spans: int) -> tuple[_AnyTrace, str]:
    """Return the run, or as many of its first processes as have at most `most_spans` spans together.

    If the first process has more, return its beginning. Numbers of processes, locations, regions and call paths stay.
    Return also which part it is, in words; "" for all.
    """
    counts = trace.spans_of_processes
    whole = int(np.searchsorted(np.cumsum(counts), most_spans, side="right"))
    if whole == len(counts):
        return trace, ""
    files = trace.files[: max(1, whole)]
    if whole:
        amount = f"first {whole}" if whole > 1 else "first"
        words = f"the {amount} of {len(counts)} processes"
        readers: list[ProcessReader] = list(trace.readers[:whole])
    else:
        # The last moment before which there are not too many.
        first, until = 0, trace.info.duration_ns + 1
        while until - first > 1:
            middle = (first + until) // 2
            few = trace.readers[0].spans_before(middle + trace.zero_of(0)) <= most_spans
            first, until = (middle, until) if few else (first, middle)
        run = f" of the first of {len(counts)} processes" if len(counts) > 1 else ""
        words = f"the first {format_ns(first)}{run}"
        begin = min(0, *(row.first_ns for row in location_rows(trace) if row.process == 0))
        readers = [PartReader(trace.readers[0], begin + trace.zero_of(0), first + trace.zero_of(0))]
    part = trace.with_readers(readers, files, replace(trace.job, zero_ns=trace.zero_ns))
    return part, f"found in {words}: {format_count(part.span_count)} of {format_count(trace.span_count)} spans"
