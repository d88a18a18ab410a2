"""Samples: what threads were doing, by function, line or thread; Python, C code and waiting apart."""

from __future__ import annotations

from collections import Counter, defaultdict

from strobe.analyses.program.samples import ANALYSIS
from strobe.sums.samples import READY, RUNNING, STATES, WAITING, frame_of, sample_sums, with_line
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

# Columns of what a row stands for.
_KEYS = {"function": ("name", "file", "line"), "line": ("name", "file", "line"), "thread": ("name", "location")}


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.program.samples`."""
    sums = sample_sums(trace)
    own: dict[tuple[object, ...], Counter[str]] = defaultdict(Counter)
    total = Counter[tuple[object, ...]]()
    samples = Counter[tuple[object, ...]]()
    threads = trace.locations.column("name")
    everything = 0
    for each in sums:
        state = each.state if each.state in STATES else "python"
        inner = frame_of(with_line(each.stack) if by == "line" else each.stack[-1])
        key: tuple[object, ...] = (threads[each.location], each.location) if by == "thread" else inner
        if by == "line":
            key = (inner[0], inner[1], each.line or None)
        own[key][state] += each.ran_ns
        own[key]["ready" if state in RUNNING else state] += each.other_ns
        samples[key] += each.samples
        running = each.ran_ns * (state in RUNNING)
        everything += running
        if by == "function":
            for frame in dict.fromkeys(each.stack):  # in an order that no hash decides
                total[frame_of(frame)] += running
    rows = [
        {
            **dict(zip(_KEYS[by], key, strict=True)),
            "samples": samples[key],
            "share": sum(own[key][state] for state in RUNNING) / max(1, everything),
            **{f"{state}_ns": own[key][state] for state in STATES},
            "ready_ns": sum(own[key][state] for state in READY),
            "waiting_ns": sum(own[key][state] for state in WAITING),
            "total_ns": total[key],
        }
        for key in dict.fromkeys([*own, *total])
    ]
    note = "" if rows else "nothing was sampled: strobe run --sample 1000 samples a thousand times a second"
    table = make_table(ANALYSIS.columns_with(by=by), rows, about="samples of threads", note=note)
    return table.sort("share")
