"""What a gate knows of one run, by class of steps: step times, exact counts, time by function. As data, for a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from strobe.comparison.counts import Counts, lost
from strobe.model.kinds import GPU_CALL_PARADIGMS, RANK_PARADIGMS
from strobe.steps.process_steps import Steps
from strobe.steps.selection import Selection, select, select_steps
from strobe.steps.steps import find_steps
from strobe.sums.attributes import integers
from strobe.sums.path_statistics import path_statistics
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.definition_rows import Region, region_rows
from strobe.trace.trace import Trace

LOCATIONS: Mapping[str, Callable[[Floats | Ints], Any]] = {
    "median": np.median,
    "mean": np.mean,
    "p99": lambda times: np.quantile(times, 0.99),
}
WHOLE_RUN = "run"  # what a run without steps has instead of classes
_SINGLE = 15  # steps that are counted one by one
# PyTorch compiles what follows a graph break as a function of this name.
_RESUMED = "torch_dynamo_resume_in_"


@dataclass(frozen=True)
class StepClass:
    """The steady steps of a class: how many, their times in ns by LOCATIONS, counts by kind, own ns per step."""

    steps: int
    times_ns: Mapping[str, float]
    counts: Mapping[str, Counts] = field(default_factory=dict)
    functions_ns: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run. `machine`: model of its CPU and GPUs, driver. `lost`: why counts are too low, or "".

    `throttled`: functions that were recorded for a while only, so that they have no counts.
    """

    name: str
    started_unix_ns: int
    machine: Mapping[str, str]
    lost: str
    throttled: Sequence[str]
    classes: Mapping[str, StepClass]

    @staticmethod
    def read(raw: Mapping[str, Any]) -> Run:
        """Return the run whose `dataclasses.asdict` this is. Raises TypeError, KeyError or AttributeError."""
        classes = {
            name: StepClass(**{**each, "counts": {kind: Counts(**of) for kind, of in each["counts"].items()}})
            for name, each in raw["classes"].items()
        }
        return Run(**{**raw, "classes": classes})


def timed_run(name: str, started_unix_ns: int, machine: Mapping[str, str], times_ns: Floats) -> Run:
    """Return a run of which only the times of its steps are known."""
    return Run(name, started_unix_ns, machine, "", (), {WHOLE_RUN: StepClass(len(times_ns), _locations(times_ns))})


def run_of(trace: Trace, name: str) -> Run:
    """Return what a gate knows of a trace. Steps count if they are steady: complete, and not of the warm-up."""
    steps = find_steps(trace)
    names = sorted({each for process in steps.processes for each in process.class_names[process.steady]})
    classes = {each: _class_of(trace, steps, each) for each in names}
    if not classes:
        duration_ns = max(1, trace.info.duration_ns)  # a profile without times has none
        classes = {WHOLE_RUN: _counted(trace, 1, np.array([duration_ns]), select(trace, "all"))}
    return Run(name, trace.info.started_unix_ns, machine_of(trace), *lost(trace), classes)


def machine_of(trace: Trace) -> dict[str, str]:
    """Return the models of a trace's CPU and GPUs and its driver, as far as they are known."""
    gpus = sorted({str(each.get("name", "")) for each in trace.device_properties()})
    machine = {**trace.job.machine, "gpu": ", ".join(gpus)}
    return {name: value for name, value in machine.items() if value}


def _locations(times_ns: Floats | Ints) -> dict[str, float]:
    return {name: float(location(times_ns)) for name, location in LOCATIONS.items()}


def _class_of(trace: Trace, steps: Steps, name: str) -> StepClass:
    wanted = {each.process: each.steady & (each.class_names == name) for each in steps.processes}
    times = [each.duration_ns[wanted[each.process]] for each in steps.processes]
    kept = {
        each.process: np.flatnonzero(wanted[each.process] & each.kept) + each.first_number for each in steps.processes
    }
    return _counted(trace, max(map(len, times)), np.concatenate(times), select(trace, "steady", name), kept)


def _counted(
    trace: Trace, steps: int, times_ns: Ints, chosen: Selection, kept: Mapping[int, Ints] | None = None
) -> StepClass:
    """Return a class with its counts: calls of all chosen steps, and what only steps in detail have, of `kept`."""
    labels = [(kind_of(each), _name_of(each)) for each in region_rows(trace)]
    number = chosen.step_count or steps
    calls, own_ns = _sums(trace, labels, chosen)
    in_detail = max(map(len, kept.values())) if kept else 1
    uneven = [label for label, count in calls.items() if count % number]
    single = [_sums(trace, labels, select_steps(trace, each))[0] for each in _single_steps(kept or {}) if uneven]
    usual = {label: int(np.median([each[label] for each in single])) for label in uneven if single}
    counts = {kind: Counts(number, {}, {}) for kind, _ in calls}
    for (kind, name), count in calls.items():
        counts[kind].of[name] = count
    for (kind, name), count in usual.items():
        counts[kind].usual[name] = count
    if in_detail:
        part = select_steps(trace, kept) if kept else chosen
        details = {"bytes copied": _bytes_copied(trace, part), "allocations": _allocations(trace, part)}
        counts |= {kind: Counts(in_detail, dict(each), {}) for kind, each in details.items() if each}
    return StepClass(steps, _locations(times_ns), counts, {name: ns / number for (_, name), ns in own_ns.items()})


def _single_steps(kept: Mapping[int, Ints]) -> list[dict[int, Ints]]:
    """Return the last steps that all processes kept, each as a selection of its own."""
    common = sorted(set.intersection(*(set(each.tolist()) for each in kept.values()))) if kept else []
    return [{process: np.array([number]) for process in kept} for number in common[-_SINGLE:]]


def _sums(
    trace: Trace, labels: Sequence[tuple[str, str]], chosen: Selection
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return calls and own ns by label of the region."""
    sums = path_statistics(trace, chosen)
    calls, own_ns = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for region, count, ns in zip(sums.region.tolist(), sums.calls.tolist(), sums.own_ns.tolist(), strict=True):
        if count:
            calls[labels[region]] += count
            own_ns[labels[region]] += ns
    return calls, own_ns


def _name_of(region: Region) -> str:
    return f"{region.name} ({PurePath(region.file).name})" if region.file else region.name


def kind_of(region: Region) -> str:
    """Return what an execution of a region is counted as."""
    if _RESUMED in region.name:
        return "graph breaks"
    if region.name.startswith("Torch-Compiled Region"):
        return "compiled regions"
    if region.role == "collective" or (region.role == "sync" and region.paradigm in RANK_PARADIGMS):
        return "collectives"
    if region.paradigm in GPU_CALL_PARADIGMS and region.role == "function" and "launch" in region.name.lower():
        return "launches"
    return {"kernel": "kernels", "copy": "copies", "sync": "syncs", "p2p": "messages"}.get(region.role, "calls")


def _bytes_copied(trace: Trace, chosen: Selection) -> Counter[str]:
    names = [region.name for region in region_rows(trace)]
    found: Counter[str] = Counter()
    rows = trace.side_table("copy_spans").to_arrow()
    location, row, size = (integers(rows.column(name), 0) for name in ("location", "row", "size_bytes"))
    for each in np.unique(location).tolist():
        spans, here = trace.span_arrays(each), location == each
        at = row[here]
        keep = chosen.keep(each, spans["start_ns"][at])
        kept_bytes = size[here] if keep is None else size[here] * keep
        for region, size_bytes in zip(spans["region"][at].tolist(), kept_bytes.tolist(), strict=True):
            found[names[region]] += size_bytes
    return +found


def _allocations(trace: Trace, chosen: Selection) -> Counter[str]:
    found: Counter[str] = Counter()
    rows = trace.side_table("allocations").to_arrow()
    names = ("location", "time_ns", "size_bytes", "device")
    location, time, size, device = (integers(rows.column(name), -1) for name in names)
    for each in np.unique(location).tolist():
        made = (location == each) & (size > 0)
        keep = chosen.keep(each, time[made])
        for number in device[made] if keep is None else device[made][keep]:
            found["on the host" if number < 0 else f"on GPU {number}"] += 1
    return found
