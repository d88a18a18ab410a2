"""The work of GPUs, summed up by the call path that launched it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from strobe.gpu.devices import devices
from strobe.gpu.launches import Launches, launches
from strobe.gpu.work import Work
from strobe.tables.column_arrays import Columns, Ints
from strobe.trace.trace import Trace

# How long each activity counts, ns; negative if it does not count.
Count = Callable[["Work", "Launches"], Ints]


@dataclass(frozen=True)
class Launched(Columns):
    """Activities of GPUs by launching call path (-1 if unknown) and region.

    `ns` is the sum of their durations: of those that run at the same time on several streams, each counts.
    """

    path: Ints
    region: Ints
    calls: Ints
    ns: Ints


def launched(trace: Trace, count: Count, path_of: Ints, region_of: Ints) -> Launched:
    """Sum up the activities of all GPUs, in constant memory. `path_of`, `region_of`: keys of call paths and regions."""
    sums = Launched.joined(())
    for device in devices(trace):
        for work, who in launches(trace, device):
            ns = count(work, who)
            new = Launched(launch_path(who, path_of), region_of[work.region], np.ones_like(ns), ns)
            sums = _summed(Launched.joined((sums, new.chosen(ns >= 0))))
    return sums


def launch_path(who: Launches, path_of: Ints) -> Ints:
    """Return the key of the call path whose code wants each activity, else of the operator's, else -1."""
    # The entry at -1 is the one after the last.
    return np.append(path_of, -1)[who.path]


def _summed(rows: Launched) -> Launched:
    key = rows.path * (int(rows.region.max(initial=0)) + 1) + rows.region
    _, first, at = np.unique(key, return_index=True, return_inverse=True)
    sums = replace(rows.chosen(first), calls=np.zeros_like(first), ns=np.zeros_like(first))
    np.add.at(sums.calls, at, rows.calls)
    np.add.at(sums.ns, at, rows.ns)
    return sums
