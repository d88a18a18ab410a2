"""Kernels of which nothing tells what they do: they count as computation, and this is how much of it they are."""

from __future__ import annotations

import re

import numpy as np

from strobe.gpu.communication import lies_elsewhere
from strobe.gpu.devices import devices
from strobe.gpu.work import COMPUTATION, beginning, kind_of_region, stretches
from strobe.model.units import format_share
from strobe.trace.definition_rows import regions_where
from strobe.trace.group_rules import VARIABLE, group_by_rules
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# Addresses, and names that any program may give any kernel, without a template argument that would tell more.
_NAMELESS = re.compile(
    r"(void )?(0x[0-9a-f]+|[0-9a-f]{12,}|[\[<(]?(unknown|unnamed|no name).*|(main|device)?_*kernel(_?\d+)?|)(\(.*\))?",
    re.IGNORECASE,
)


def is_nameless(kernel: str) -> bool:
    """Return whether the name of a kernel is evidence of nothing."""
    return _NAMELESS.fullmatch(kernel) is not None


@cached_on_trace
def unclassified_note(trace: Trace) -> str:
    """Return a sentence about the kernels whose names tell nothing; "" if there are none."""
    nameless = regions_where(
        trace, lambda each: each.role == "kernel" and is_nameless(each.name) and group_by_rules(each.name) is None
    )
    if not nameless.any() or lies_elsewhere(trace):
        return ""
    nameless &= kind_of_region(trace) == COMPUTATION.bit_length() - 1
    if not nameless.any():
        return ""
    whole_ns, unknown_ns = 0, 0
    for device in devices(trace):
        for begin, end in stretches(device):
            found = beginning(trace, device, begin, end)
            took = found.end_ns - found.start_ns
            whole_ns += int(took.sum())
            unknown_ns += int(np.where(nameless[found.region], took, 0).sum())
    if 1000 * unknown_ns < whole_ns:
        return ""
    return (
        f"{format_share(unknown_ns / whole_ns)} of the time of GPU work is in kernels with meaningless names: they "
        f"count as computation, unless a file of rules that {VARIABLE} names has their group"
    )
