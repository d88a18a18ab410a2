"""By how much the clocks of processes may be wrong."""

from __future__ import annotations

import numpy as np

from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import process_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


@cached_on_trace
def clock_errors(trace: Trace, first: int = 0) -> Ints:
    """Return by process how far its clock may be off from that of the process `first`, in ns.

    It is -1 where that is unknown and their hosts differ.
    """
    hosts = [process.host for process in process_rows(trace)]
    quality = trace.quality.to_arrow().to_pylist()
    errors: dict[int, int | None] = {row["process"]: row["value"] for row in quality if row["what"] == "clock_error_ns"}
    reference = min((process for process, error in errors.items() if error is None), default=None)
    compared = any(error is not None for error in errors.values())

    def error(process: int) -> int:
        if process not in errors:  # one clock for all, as far as they are on one machine
            return 0 if hosts[process] == hosts[first] else -1
        value = errors[process]
        return value if value is not None else 0 if compared and process == reference else -1

    return np.array([error(process) for process in range(len(hosts))], dtype=np.int64)


def on_one_host(trace: Trace, one: Ints, other: Ints) -> Bools:
    """Return which pairs of processes ran on one host, and so have one clock."""
    hosts = np.unique([process.host or "" for process in process_rows(trace)], return_inverse=True)[1]
    return np.asarray(hosts[one] == hosts[other])


def errors_between(trace: Trace, one: Ints, other: Ints) -> Ints:
    """Return by how much the clocks of pairs of processes may be off against each other, in ns; 0 where unknown."""
    errors = np.maximum(0, clock_errors(trace))
    return np.where(on_one_host(trace, one, other), 0, errors[one] + errors[other])
