"""Samples: what Python threads were doing, by function, line or thread; Python, C code and waiting apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace


def run(trace: Trace, *, by: str = "function") -> Table:
    """Sum samples by function, by line, or by thread; those of folded steps are among them.

    A sample stands for the time since its thread's sample before. python and native are CPU time: the interpreter ran,
    or it was inside of one call or operator of C code. ready: the thread waited for the GIL or for a processor, and
    what is left of the time of samples that ran. waiting: it slept in the kernel. All of these are of the innermost
    function; total is the time that ran (python and native) in it and in what it calls, recursion counted once. share:
    python + native as a part of that of everything. By line: the line of the innermost function, of steps that were
    kept. Of imported samples that tell no time, a sample counts as 1 ns.
    """
    from strobe.model.schema import Column
    from strobe.store.sample_sums import RUNNING, STATES, frame_of, sample_sums
    from strobe.store.table import make_table

    sums = sample_sums(trace)
    own: dict[tuple[object, ...], Counter[str]] = defaultdict(Counter)
    total = Counter[tuple[object, ...]]()
    samples = Counter[tuple[object, ...]]()
    threads = trace.locations.column("name")
    everything = 0
    for each in sums:
        state = each.state if each.state in STATES else "python"
        inner = frame_of(each.stack[-1])
        key: tuple[object, ...]
        if by == "thread":
            key = (threads[each.location], each.location)
        elif by == "line":
            key = (inner[0], inner[1], each.line or None)
        else:
            key = inner
        own[key][state] += each.ran_ns
        own[key]["waiting" if state == "waiting" else "ready"] += each.other_ns
        samples[key] += each.samples
        running = each.ran_ns * (state in RUNNING)
        everything += running
        if by == "function":
            for frame in set(each.stack):
                total[frame_of(frame)] += running
    rows = []
    for key in own.keys() | total.keys():
        times = [own[key][state] for state in STATES]
        ran = sum(times[: len(RUNNING)])
        rows.append(
            (*key, samples[key], ran / max(1, everything), *times, *((total[key],) if by == "function" else ()))
        )
    whose = {
        "function": (
            Column("name", "string", "", "function"),
            Column("file", "string", "", "source file"),
            Column("line", "int64", "", "first line of the function"),
        ),
        "line": (
            Column("name", "string", "", "function"),
            Column("file", "string", "", "source file"),
            Column("line", "int64", "", "line that ran, null of folded steps"),
        ),
        "thread": (
            Column("name", "string", "", "name of the thread"),
            Column("location", "uint32", "", "its location"),
        ),
    }[by]
    columns = (
        *whose,
        Column("samples", "int64", "", "samples in it"),
        Column("share", "float64", "", "part of the time that ran, 0 to 1"),
        Column("python_ns", "int64", "ns", "the interpreter ran it"),
        Column("native_ns", "int64", "ns", "it was in C code"),
        Column("ready_ns", "int64", "ns", "it waited for the GIL or for a processor"),
        Column("waiting_ns", "int64", "ns", "it waited for something else"),
        *((Column("total_ns", "int64", "ns", "time that ran in it and in what it calls"),) if by == "function" else ()),
    )
    note = "" if rows else "nothing was sampled: strobe run --sample 1000 looks a thousand times a second"
    table = make_table(columns, rows, name="samples", about="samples of Python threads", note=note)
    return table.sort("share")


ANALYSIS = Analysis(
    "samples",
    "What were the Python threads doing, by samples: Python, C code, or waiting?",
    run,
    options=(
        Option(
            "by", "one row a function, a line, or a thread", default="function", choices=("function", "line", "thread")
        ),
    ),
)
