"""What GPUs did, summed up by the call path that launched it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.gpu.devices import devices
from strobe.gpu.launches import Launches, launches
from strobe.gpu.work import Work
from strobe.trace.trace import Trace

Ints = npt.NDArray[np.int64]
# How long each activity counts, ns; less than nothing where it does not.
Count = Callable[["Work", "Launches"], Ints]


@dataclass(frozen=True)
class Launched:
    """Activities of GPUs by launching call path (-1 where that is unknown) and region; equally long columns.

    `ns` is the sum of their durations: of those that run at the same time on several streams, each counts.
    """

    path: Ints
    region: Ints
    calls: Ints
    ns: Ints


def launched(trace: Trace, count: Count, path_of: Ints, region_of: Ints) -> Launched:
    """Sum up the activities of all GPUs, in constant memory. `path_of`, `region_of`: what stands for each of them."""
    regions = max(1, len(trace.regions))
    sums = [np.zeros((3, 0), dtype=np.int64)]  # keys, calls, ns of each stretch
    for device in devices(trace):
        for work, who in launches(trace, device):
            ns = count(work, who)
            key = (launch_path(who, path_of) + 1) * regions + region_of[work.region]
            sums = [_summed(np.concatenate([*sums, np.stack((key, np.ones_like(key), ns))[:, ns >= 0]], axis=1))]
    key, calls, ns = _summed(sums[0])
    return Launched(key // regions - 1, key % regions, calls, ns)


def launch_path(who: Launches, path_of: Ints) -> Ints:
    """Return what stands for the path of the call whose code wants each activity, else of the operator, else -1."""
    path = np.where(who.code_path >= 0, who.code_path, who.operator_path)
    # The entry at -1 is the one after the last.
    return np.append(path_of, -1)[path]


def _summed(rows: Ints) -> Ints:
    keys, at = np.unique(rows[0], return_inverse=True)
    out = np.zeros((3, len(keys)), dtype=np.int64)
    out[0] = keys
    np.add.at(out[1], at, rows[1])
    np.add.at(out[2], at, rows[2])
    return out
