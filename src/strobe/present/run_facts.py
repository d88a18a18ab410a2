"""Facts about a run beside its times: what ran, on what, and how much of the host it used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from strobe.breakdown.cpu_time import CpuTime, cpu_times, of_machines
from strobe.gpu.capabilities import gpu_name, properties_of
from strobe.gpu.devices import devices
from strobe.model.kinds import CHILDREN_CPU, CORES
from strobe.model.units import format_bytes, format_ns, format_number_of, format_share
from strobe.operators.compilations import compilation_events
from strobe.trace.definition_rows import process_rows, processes_of_locations
from strobe.trace.metrics.readings import Readings
from strobe.trace.trace import Trace

_LONGEST = 300
# Kinds of CPU time are facts where they are such a part of CPU time, or of the cores of machines.
_MUCH_SYSTEM, _MUCH_WAITING, _MUCH_OF_MACHINE = 0.2, 0.25, 0.05
_MOST_HOSTS = 4
# Compiling is a fact from this share of the run on.
_MUCH_COMPILING = 0.05
COMPILING = "compiling"
# Of the threads of a process, without the recorder's own; and what children used that have ended.
_CPU = ("cpu main thread", "cpu python threads", "cpu compute threads", "cpu other threads")


@dataclass(frozen=True)
class Fact:
    """A fact in words; `title` has its source or formula."""

    name: str
    value: str
    title: str = ""


def run_facts(trace: Trace) -> tuple[Fact, ...]:
    """Return what is known of a run, and what it used of the host by its readings; nothing that is not known."""
    info, machine = trace.info, trace.job.machine
    command = " ".join([*(Path(each).name for each in info.command[:1]), *info.command[1:]])
    started = datetime.fromtimestamp(info.started_unix_ns // 10**9, UTC) if info.started_unix_ns > 0 else None
    known = (
        Fact("GPUs", _gpus(trace), "GPUs that did any work"),
        Fact("processes", _processes(trace)),
        Fact("host", _hosts(trace), machine.get("cpu", "")),
        Fact("Python", info.python),
        Fact("driver", machine.get("driver", ""), "NVIDIA's driver"),
        Fact("command", command if len(command) <= _LONGEST else f"{command[:_LONGEST]} ...", info.working_directory),
        Fact("started", f"{started:%Y-%m-%d %H:%M} UTC" if started else ""),
        *_compiling(trace),
        *_used(trace),
        *_kinds_of_cpu_time(trace),
    )
    return tuple(each for each in known if each.value)


def _gpus(trace: Trace) -> str:
    names = Counter(
        str(properties_of(trace, each.number, each.process).get("name") or gpu_name(trace, each.number) or "GPU")
        for each in devices(trace)
    )
    return ", ".join(f"{count} x {name}" for name, count in names.most_common())


def _processes(trace: Trace) -> str:
    ranks = {each.rank for each in process_rows(trace)} - {None}
    processes = f"{len(trace.processes)} process{'' if len(trace.processes) == 1 else 'es'}"
    return f"{format_number_of(len(ranks), 'rank')}, {processes}" if len(ranks) > 1 else processes


def _hosts(trace: Trace) -> str:
    names = sorted({each.host for each in process_rows(trace) if each.host}) or [trace.info.host]
    more = f" ... {names[-1]}, {len(names)} in all" if len(names) > _MOST_HOSTS else ""
    return ", ".join(names[: _MOST_HOSTS - 1] if more else names) + more


def _compiling(trace: Trace) -> list[Fact]:
    """Return the time of torch.compile where it is much of the run; of several processes, that of the one with most."""
    process_of, ns = processes_of_locations(trace), Counter[int]()
    compiled = [each for each in compilation_events(trace) if each.event == "compile"]
    for each in compiled:
        ns[process_of[each.location]] += each.duration_ns
    ((process, most_ns), *_) = ns.most_common(1) or [(0, 0)]
    if not trace.info.duration_ns or most_ns < _MUCH_COMPILING * trace.info.duration_ns:
        return []
    graphs = {each.compile_id for each in compiled if process_of[each.location] == process and not each.reason}
    share = format_share(most_ns / trace.info.duration_ns)
    text = f"{format_ns(most_ns)}, {share} of the run, for {format_number_of(len(graphs), 'graph')}"
    return [Fact(COMPILING, text, "durations of what torch.compile compiled, in one process: strobe compile")]


def _used(trace: Trace) -> list[Fact]:
    """Return cores, memory and I/O of all processes, by the readings of the recorder."""
    cpu_s, read, written, largest, cores = 0.0, 0.0, 0.0, 0.0, dict[str, int]()
    there, processes, begun = set[str](), process_rows(trace), dict[int, int]()
    readings = [each for each in trace.readings() if each.location is None and len(each.values)]
    for each in readings:
        first = int(each.time_ns[0])
        begun[each.process] = min(begun.get(each.process, first), first)
    for each in readings:
        there.add(each.metric)
        if each.metric in _CPU or (each.metric == CHILDREN_CPU and len(processes) == 1):
            cpu_s += _integral(each, begun[each.process])
        elif each.metric == "read":
            read += _integral(each, begun[each.process])
        elif each.metric == "written":
            written += _integral(each, begun[each.process])
        elif each.metric == "peak resident memory":
            largest = max(largest, float(np.nanmax(each.values)))
        elif each.metric == CORES:
            host = processes[each.process].host or ""
            cores[host] = max(cores.get(host, 0), math.ceil(each.values[-1]))
    found = []
    if _CPU[0] in there and trace.info.duration_ns:
        used, whole = cpu_s / (trace.info.duration_ns / 1e9), sum(cores.values())
        text = f"{used:.2f} on average"
        if whole and len(cores) == len({each.host or "" for each in processes}):
            text = f"{used:.2f} of {whole} on average, {format_share(used / whole)}"
        found.append(Fact("cores used", text, "CPU time of all recorded processes, by readings, / duration of the run"))
    if largest:
        which = "" if len(processes) == 1 else " in one process"
        found.append(Fact("peak memory", f"{format_bytes(largest)}{which}", "the highest resident memory of a process"))
    if {"read", "written"} & there:
        text = f"{format_bytes(read)} read, {format_bytes(written)} written"
        found.append(Fact("I/O", text, "bytes that calls of read and write moved, also from and to caches"))
    return found


def _kinds_of_cpu_time(trace: Trace) -> list[Fact]:
    """Return system time, waits for cores and what machines waited for, where they are much; as `strobe cpu` has it."""
    processes, machines = [each for each in cpu_times(trace) if each.what == "process"], of_machines(trace)

    def total_ns(of: Sequence[CpuTime], *kinds: str) -> float:
        return sum(each.time_ns(kind) or 0.0 for each in of for kind in kinds)

    found, cpu_ns = [], total_ns(processes, "user", "system")
    if (system_ns := total_ns(processes, "system")) > _MUCH_SYSTEM * cpu_ns:
        text = f"{format_share(system_ns / cpu_ns)} of the CPU time"
        found.append(Fact("system time", text, "CPU time of all recorded processes in the kernel: strobe cpu"))
    if (waiting_ns := total_ns(processes, "waiting")) > _MUCH_WAITING * cpu_ns:
        text = f"{format_ns(waiting_ns)}, beside {format_ns(cpu_ns)} of CPU time"
        title = "how long threads could run while others had the cores, the sum of all threads: strobe cpu"
        found.append(Fact("waiting for a core", text, title))
    core_ns = sum(each.core_ns or 0.0 for each in machines)
    for kind, name, title in (
        ("io_wait", "I/O wait", "cores that were idle while a disk was waited for, whoever waited: strobe cpu"),
        ("stolen", "stolen", "the virtual machine could run, and others had the hardware: strobe cpu"),
    ):
        if core_ns and (ns := total_ns(machines, kind)) > _MUCH_OF_MACHINE * core_ns:
            found.append(Fact(name, f"{format_share(ns / core_ns)} of the cores of the machine", title))
    return found


def _integral(readings: Readings, started_ns: int) -> float:
    """Return the sum of a rate over time. A reading is the mean since the one before it, the first one since the start.

    The start is the first reading of anything.
    """
    before = np.concatenate(([started_ns], readings.time_ns[:-1]))
    return float(np.nansum(readings.values * (readings.time_ns - before)) / 1e9)
