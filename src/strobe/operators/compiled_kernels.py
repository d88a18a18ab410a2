"""Kernels of Inductor: calls and time of each, and which lines of the program they work for, or why that is unknown.

On the host they are spans of their own, at a line of the generated code. On GPUs they are kernels that compiled code
launched: inside a span `Torch-Compiled Region`, or of the same name as one of the generated code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from strobe.gpu.devices import devices
from strobe.gpu.launched_by_path import launch_path, launched
from strobe.gpu.launches import launches
from strobe.model.compiled_code import COMPILED_REGION, FX_GRAPH, INDUCTOR_KERNEL
from strobe.operators.kernel_launchers import Launchers
from strobe.steps.selection import select
from strobe.sums.path_statistics import PathStatistics, path_statistics
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

OUTSIDE = "nothing recorded shows the compiled region that launched it"
NO_LINES = "profiles hold no source lines of its graph"


@dataclass
class CompiledKernel:
    """A kernel, or an operator that generated code calls; `file` and `line` of the call where they are known.

    region: of torch.compile, FRAME/NUMBER. graph: hash of the fx graph. reason: why `source_lines` are not known.
    size_bytes: of all tensors that its calls get, each once per call; None if unknown. paths: call paths of its
    calls, of a GPU those that launched it, each with the region of the kernel.
    """

    kernel: str
    on_gpu: bool
    file: str = ""
    line: int = 0
    region: str = ""
    graph: str = ""
    operators: tuple[str, ...] = ()
    source_lines: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    reason: str = ""
    calls: int = 0
    total_ns: int = 0
    size_bytes: int | None = None
    paths: set[tuple[int, int]] = field(default_factory=set)

    @property
    def attributed(self) -> bool:
        """Whether it is known what it works for: lines of the program, or of a GPU the compiled region."""
        return bool(self.source_lines or (self.on_gpu and self.region))


@cached_on_trace
def compiled_kernels(trace: Trace) -> list[CompiledKernel]:
    """Return the kernels of compiled code that ran, those with the longest time first."""
    sums, calls = path_statistics(trace, select(trace, "all", None)), _generated_calls(trace)
    found = [*_of_host(trace, sums, calls), *_of_gpus(trace, sums, calls)]
    return sorted(found, key=lambda each: -each.total_ns)


def spans_of(trace: Trace, kernels: Collection[CompiledKernel]) -> dict[int, Ints]:
    """Return the rows of the spans of these kernels, by location."""
    wanted, count = set[int](), len(region_rows(trace))
    for kernel in kernels:
        wanted.update(path * count + region for path, region in kernel.paths)
    keys = np.array(sorted(wanted), dtype=np.int64)
    rows: dict[int, list[Ints]] = {}
    if any(not each.on_gpu for each in kernels):
        for each in location_rows(trace):
            if each.kind != "stream" and each.span_count:
                spans = trace.span_arrays(each.location)
                key = spans["call_path"].astype(np.int64) * count + spans["region"]
                rows[each.location] = [spans["row"][np.isin(key, keys)]]
    if any(each.on_gpu for each in kernels):
        paths = np.arange(len(trace.call_paths))
        for device in devices(trace):
            for work, who in launches(trace, device):
                chosen = np.isin(launch_path(who, paths) * count + work.region, keys)
                for location in device.locations:
                    rows.setdefault(location, []).append(work.row[chosen & (work.location == location)])
    return {location: np.concatenate(parts) for location, parts in rows.items()}


def _generated_calls(trace: Trace) -> dict[tuple[str, str, int], CompiledKernel]:
    """Return what is known of each call in generated code, by kernel, file and line."""
    found = {}
    for row in trace.side_table("compiled_kernels").to_arrow().to_pylist():
        operators, lines, shapes = (
            tuple((row[name] or "").splitlines()) for name in ("operators", "source_lines", "shapes")
        )
        found[row["kernel"], row["file"], row["line"]] = CompiledKernel(
            row["kernel"], False, row["file"], row["line"], "", "", operators, lines, shapes, row["reason"] or ""
        )
    return found


def _of_host(
    trace: Trace, sums: PathStatistics, calls: dict[tuple[str, str, int], CompiledKernel]
) -> Iterator[CompiledKernel]:
    regions = region_rows(trace)
    rows: dict[int, CompiledKernel] = {}
    above = _above(trace, sums, COMPILED_REGION)
    for path in np.flatnonzero(sums.calls > 0).tolist():
        number = int(sums.region[path])
        region = regions[number]
        known = calls.get((region.name, region.file, region.line))
        if known is None:
            continue
        row = rows.setdefault(number, known)
        row.region = row.region or above[path]
        row.calls += int(sums.calls[path])
        row.total_ns += int(sums.total_ns[path])
        row.paths.add((path, number))
    return iter(rows.values())


def _of_gpus(
    trace: Trace, sums: PathStatistics, calls: dict[tuple[str, str, int], CompiledKernel]
) -> Iterator[CompiledKernel]:
    regions = region_rows(trace)
    paths = np.arange(len(sums.parent))
    work = launched(trace, lambda work, who: work.end_ns - work.start_ns, paths, np.arange(len(regions)))
    of_region, of_graph = _above(trace, sums, COMPILED_REGION), _above(trace, sums, FX_GRAPH)
    launchers = Launchers(trace)
    by_name: dict[str, list[CompiledKernel]] = {}
    for each in calls.values():
        by_name.setdefault(each.kernel, []).append(each)
    rows: dict[tuple[str, str, str], CompiledKernel] = {}
    for path, number, count, ns in zip(
        *(each.tolist() for each in (work.path, work.region, work.calls, work.ns)), strict=True
    ):
        name = regions[number].name
        region, graph = (of_region[path], of_graph[path]) if path >= 0 else ("", "")
        if regions[number].role != "kernel" or not (region or name in by_name or INDUCTOR_KERNEL.match(name)):
            continue
        row = rows.setdefault((name, region, graph), CompiledKernel(name, True, region=region, graph=graph))
        same = by_name.get(name, [])
        row.operators = tuple(dict.fromkeys(one for each in same for one in each.operators))
        row.source_lines = tuple(dict.fromkeys(one for each in same for one in each.source_lines))
        row.file = launchers.files.get(name) or next((each.file for each in same), "")
        row.reason = "" if row.source_lines else next((each.reason for each in same), NO_LINES if region else OUTSIDE)
        row.calls += count
        row.total_ns += ns
        row.paths.add((path, number))
    launcher_of = _launcher_of(trace, sums, launchers)
    for row in rows.values():
        at = {launcher_of[path] for path, _ in row.paths if path >= 0}
        # Each of its calls must be one of a launcher whose tensors are known.
        if at <= launchers.size_bytes.keys() and sum(launchers.calls[path] for path in at) == row.calls:
            row.size_bytes = sum(launchers.size_bytes[path] for path in at)
    return iter(rows.values())


def _launcher_of(trace: Trace, sums: PathStatistics, launchers: Launchers) -> list[int]:
    """Return by call path the innermost launcher of a kernel in it, -1 for none."""
    found: list[int] = []
    for path, parent in enumerate(sums.parent.tolist()):
        found.append(path if path in launchers.calls else found[parent] if parent >= 0 else -1)
    return found


def _above(trace: Trace, sums: PathStatistics, pattern: re.Pattern[str]) -> list[str]:
    """Return by call path what the pattern finds in its own region, or in the innermost one around it."""
    of_region = ["/".join(found.groups()) if (found := pattern.match(each.name)) else "" for each in region_rows(trace)]
    above: list[str] = []
    for parent, region in zip(sums.parent.tolist(), sums.region.tolist(), strict=True):
        above.append(of_region[region] or (above[parent] if parent >= 0 else ""))
    return above
