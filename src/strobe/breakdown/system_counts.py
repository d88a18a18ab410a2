"""What the operating system counted of a process: its small reads and writes, and the CPU time of its children.

The recorder reads both with the metrics of a process (`/proc/self/io`, `getrusage(RUSAGE_CHILDREN)`), all calls of it
together, so that nothing stands before a call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strobe.breakdown.host_time import HostTime
from strobe.model.kinds import CHILDREN_CPU
from strobe.sums.samples import CHILD, IDLE, sample_sums
from strobe.tables.column_arrays import Floats
from strobe.trace.definition_rows import location_rows, process_rows
from strobe.trace.trace import Trace

# Calls that move fewer bytes than this, in a reading that has at least so many of them per second, are small and many.
_SMALL_BYTES, _MANY_PER_S = 256, 2000
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")


@dataclass(frozen=True)
class SmallCalls:
    """Calls that moved few bytes. what: reads or writes. calls: how many. bytes_each: on average.

    cpu_ns: CPU time of the main thread in the steps, or in the run.
    """

    what: str
    calls: int
    bytes_each: float
    cpu_ns: int


@dataclass(frozen=True)
class Children:
    """Programs that a process started. cpu_ns: of those that ended.

    names: how often each was started; where that was not noted, in how many samples the main thread slept beside it
    (`seen`). waited_ns: how long it was seen to wait in Python's module `subprocess`, or to sleep beside a child.
    """

    names: Counter[str]
    seen: bool
    cpu_ns: int
    waited_ns: int


def small_calls(trace: Trace, time: HostTime) -> SmallCalls | None:
    """Return the small reads or writes of a process in its steps, or in the run, those with more calls.

    None where there are hardly any, or where the metrics of the process were not read.
    """
    found = []
    for what, calls_name, bytes_name in (("reads", "read calls", "read"), ("writes", "write calls", "written")):
        calls, moved = (_counted(trace, time, name) for name in (calls_name, bytes_name))
        if not len(calls[0]) or len(calls[0]) != len(moved[0]):
            continue
        many = (calls[1] >= _MANY_PER_S * calls[0]) & (moved[1] < _SMALL_BYTES * calls[1])
        if count := round(calls[1][many].sum()):
            cpu_ns = round(_counted(trace, time, "cpu main thread")[1].sum() * 1e9)
            found.append(SmallCalls(what, count, float(moved[1][many].sum() / count), cpu_ns))
    return max(found, key=lambda each: each.calls, default=None)


def children(trace: Trace, time: HostTime) -> Children:
    """Return the programs that a process started in its steps, or in the run, and what is known of them."""
    process = process_rows(trace)[time.process]
    begin_ns, end_ns = time.window_ns or (0, trace.info.duration_ns)
    zero_ns, names = trace.zero_of(time.process), Counter[str]()
    for each in trace.starts:
        if each.parent == process.pid and each.how in ("start", "shell") and begin_ns <= each.at_ns - zero_ns < end_ns:
            words = each.argv[2].split() if Path(each.executable).name in _SHELLS and each.argv[1:2] == ("-c",) else ()
            names[Path(words[0] if words else each.executable).name] += 1
    seen, waited_ns = Counter[str](), 0
    for location in location_rows(trace):
        if (location.process, location.thread_id) != (time.process, process.pid):
            continue
        for sample in sample_sums(trace, location.location, time.window_ns):
            child = sample.stack[-1].startswith(CHILD)
            if child:
                seen[sample.stack[-1].removeprefix(CHILD).removesuffix(">")] += sample.samples
            if child or (sample.state in IDLE and any("/subprocess.py:" in frame for frame in sample.stack)):
                waited_ns += sample.ran_ns + sample.other_ns
    cpu_ns = round(_counted(trace, time, CHILDREN_CPU)[1].sum() * 1e9)
    return Children(names or seen, not names, cpu_ns, waited_ns)


def _counted(trace: Trace, time: HostTime, metric: str) -> tuple[Floats, Floats]:
    """Return for each reading in the steps, or in the run: the seconds that it stands for, and what it counted."""
    readings = {each.metric: each for each in trace.readings(time.process)}
    found = readings.get(metric)
    if found is None or not len(found.time_ns):
        return np.zeros(0), np.zeros(0)
    first_ns = min(int(each.time_ns[0]) for each in readings.values() if len(each.time_ns))
    seconds = np.diff(found.time_ns, prepend=min(first_ns, int(found.time_ns[0]))) / 1e9
    begin_ns, end_ns = time.window_ns or (0, trace.info.duration_ns)
    inside = (found.time_ns > begin_ns) & (found.time_ns - seconds * 1e9 < end_ns)
    return seconds[inside], (seconds * found.values)[inside]
