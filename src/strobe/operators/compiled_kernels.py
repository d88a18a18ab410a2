"""Kernels of Inductor: calls and time of each, and which lines of the program they work for, or why that is unknown.

On the host they are spans of their own, at a line of the generated code. On GPUs they are kernels that compiled code
launched: inside a span `Torch-Compiled Region`, or of the same name as one of the generated code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from strobe.gpu.launched_by_path import launched
from strobe.sums.path_statistics import PathStatistics
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.trace import Trace

_REGION = re.compile(r"^Torch-Compiled Region: (\S+)")
_GRAPH = re.compile(r"^## Call CompiledFxGraph (\S+) ##")
_INDUCTOR = re.compile(r"^(triton_(poi|per|red|tem|for|mm|split_scan)_|cpp_fused_)")
_KERNEL_FILE = "kernel_file"
OUTSIDE = "nothing recorded shows the compiled region that launched it"
NO_LINES = "profiles hold no source lines of its graph"


@dataclass
class CompiledKernel:
    """A kernel, or an operator that generated code calls; `file` and `line` of the call where they are known.

    region: of torch.compile, FRAME/NUMBER. graph: hash of the fx graph. reason: why `source_lines` are not known.
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

    @property
    def attributed(self) -> bool:
        """Whether it is known what it works for: lines of the program, or of a GPU the compiled region."""
        return bool(self.source_lines or (self.on_gpu and self.region))


def compiled_kernels(trace: Trace, sums: PathStatistics) -> list[CompiledKernel]:
    """Return the kernels of compiled code that ran. `sums`: of all threads."""
    calls = _generated_calls(trace)
    return [*_of_host(trace, sums, calls), *_of_gpus(trace, sums, calls)]


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
    above = _above(trace, sums, _REGION)
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
    return iter(rows.values())


def _of_gpus(
    trace: Trace, sums: PathStatistics, calls: dict[tuple[str, str, int], CompiledKernel]
) -> Iterator[CompiledKernel]:
    regions = region_rows(trace)
    paths = np.arange(len(sums.parent))
    work = launched(trace, lambda work, who: work.end_ns - work.start_ns, paths, np.arange(len(regions)))
    of_region, of_graph, files = _above(trace, sums, _REGION), _above(trace, sums, _GRAPH), _kernel_files(trace)
    by_name: dict[str, list[CompiledKernel]] = {}
    for each in calls.values():
        by_name.setdefault(each.kernel, []).append(each)
    rows: dict[tuple[str, str, str], CompiledKernel] = {}
    for path, number, count, ns in zip(
        *(each.tolist() for each in (work.path, work.region, work.calls, work.ns)), strict=True
    ):
        name = regions[number].name
        region, graph = (of_region[path], of_graph[path]) if path >= 0 else ("", "")
        if regions[number].role != "kernel" or not (region or name in by_name or _INDUCTOR.match(name)):
            continue
        row = rows.setdefault((name, region, graph), CompiledKernel(name, True, files.get(name, ""), 0, region, graph))
        same = by_name.get(name, [])
        row.operators = tuple(dict.fromkeys(one for each in same for one in each.operators))
        row.source_lines = tuple(dict.fromkeys(one for each in same for one in each.source_lines))
        row.file = row.file or next((each.file for each in same), "")
        row.reason = "" if row.source_lines else next((each.reason for each in same), NO_LINES if region else OUTSIDE)
        row.calls += count
        row.total_ns += ns
    return iter(rows.values())


def _kernel_files(trace: Trace) -> dict[str, str]:
    """Return the file of each kernel that a profile has one for: an argument of the operator that launches it."""
    files: dict[str, str] = {}
    regions = region_rows(trace)
    for location in location_rows(trace):
        for batch in trace.side_batches("arguments", location.location):
            found = batch.filter(pc.equal(batch.column("key"), _KERNEL_FILE))
            if len(found):
                region = trace.span_arrays(location.location)["region"]
                for row, file in zip(found.column("row").to_pylist(), found.column("value").to_pylist(), strict=True):
                    files.setdefault(regions[int(region[row])].name, str(json.loads(file)))
    return files


def _above(trace: Trace, sums: PathStatistics, pattern: re.Pattern[str]) -> list[str]:
    """Return by call path what the pattern finds in its own region, or in the innermost one around it."""
    of_region = [found[1] if (found := pattern.match(each.name)) else "" for each in region_rows(trace)]
    above: list[str] = []
    for parent, region in zip(sums.parent.tolist(), sums.region.tolist(), strict=True):
        above.append(of_region[region] or (above[parent] if parent >= 0 else ""))
    return above
