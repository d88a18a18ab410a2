"""Which kernels communicate although their names are no evidence: by their arguments, or by what launched them.

What names tell is `strobe.model.kinds.communicates`. Evidence counts for all kernels of a name, as names do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from strobe.gpu.devices import devices
from strobe.model.kinds import GPU_PARADIGMS
from strobe.steps.thread_spans import innermost
from strobe.sums.attributes import Attributes, integers
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import Region, path_tree, regions_where
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace
from strobe.workers.remote_processes import RemoteProcess

# Spans of a location that are looked at: the first launches of a kernel tell what it is.
_MOST_SPANS = 1 << 20
# Functions of torch.distributed, in profiles with Python stacks.
_DISTRIBUTED = "torch/distributed/distributed_c10d.py"


def communicating_by_evidence(trace: Trace, open_question: Bools) -> Bools:
    """Return which regions communicate, of the kernels in `open_question`.

    A kernel does if it has the name of a collective among its arguments (Kineto), or if all calls that are known to
    have launched it lie directly in a collective: an operator (`c10d::`, `nccl:`, `record_param_comms`), a function of
    torch.distributed, a range of NCCL, a call of MPI. A copy for it, `aten::copy_` in `c10d::`, is an operator between.
    """
    count = len(open_question)
    if lies_elsewhere(trace):  # its parts are asked where they lie
        return np.zeros(count, dtype=bool)
    named, launched, inside = (np.zeros(count, dtype=np.int64) for _ in range(3))
    collective = _in_collectives(trace)
    for process in {device.process for device in devices(trace)}:
        streams = [each for device in devices(trace) if device.process == process for each in device.locations]
        calls = _launching_calls(trace, process, collective)
        for location in streams:
            attributes = Attributes(trace, "collective_spans", location, ("collective",))
            kernels = Attributes(trace, "kernel_spans", location, ("correlation",))
            for spans in _beginning_of(trace, location):
                chosen = open_question[spans["region"]]
                region, rows = spans["region"][chosen], spans["row"][chosen]
                if not len(rows):
                    continue
                named += _by_region(region[attributes.of(rows).column("collective").is_valid().to_numpy()], count)
                if calls is not None:
                    of_kernel = integers(kernels.of(rows).column("correlation"))
                    launched += _by_region(region[np.isin(of_kernel, calls[0])], count)
                    inside += _by_region(region[np.isin(of_kernel, calls[1])], count)
    found: Bools = (named > 0) | ((launched > 0) & (launched == inside))
    return found


def lies_elsewhere(trace: Trace) -> bool:
    """Return whether only the workers on other computers can read the spans."""
    return any(isinstance(reader, RemoteProcess) for reader in trace.readers)


def _by_region(region: npt.NDArray[np.uint32], count: int) -> Ints:
    return np.bincount(region, minlength=count)


def _beginning_of(trace: Trace, location: int) -> Iterator[SpanArrays]:
    seen = 0
    for spans in trace.span_batches(location):
        yield spans
        seen += len(spans["row"])
        if seen >= _MOST_SPANS:
            return


def _in_collectives(trace: Trace) -> Bools:
    """Return of each call path whether a collective is the innermost operator, function, range or library in it."""
    parent, region = path_tree(trace)
    outside = regions_where(trace, lambda each: each.paradigm not in GPU_PARADIGMS)
    inner = innermost(parent, outside[region])
    collective = regions_where(trace, _is_collective)
    found: Bools = np.append(collective[region], False)[inner]
    return found


def _is_collective(region: Region) -> bool:
    if region.paradigm == "python":
        return region.file.endswith(_DISTRIBUTED)
    return region.role in ("collective", "p2p") or region.name.startswith(("c10d::", "nccl:", "hccl:", "xccl:"))


def _launching_calls(trace: Trace, process: int, collective: Bools) -> tuple[Ints, Ints] | None:
    """Return the correlations of the calls of a process, and of those that lie in a collective; None without one."""
    if not collective.any():
        return None
    calls = regions_where(trace, lambda each: each.paradigm in GPU_PARADIGMS and each.role == "function")
    every, inside = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for location in trace.locations.to_arrow().to_pylist():
        if location["process"] != process or location["kind"] == "stream" or not location["span_count"]:
            continue
        attributes = Attributes(trace, "call_spans", location["location"], ("correlation",))
        for spans in _beginning_of(trace, location["location"]):
            (at,) = np.nonzero(calls[spans["region"]])
            number = integers(attributes.of(spans["row"][at]).column("correlation"))
            every.append(number[number > 0])
            inside.append(number[(number > 0) & collective[spans["call_path"][at]]])
    return np.concatenate(every), np.concatenate(inside)
