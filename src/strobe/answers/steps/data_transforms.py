"""Data transforms: what the data loader spends its time in, as a tree of calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from strobe.analyses.steps.data_transforms import ANALYSIS
from strobe.breakdown.data_pipeline import FETCH
from strobe.steps.selection import select
from strobe.steps.training_activities import DATA_WAIT, part_of_regions
from strobe.sums.path_statistics import path_statistics
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import Region, region_rows
from strobe.trace.trace import Trace

_ITEM = ("__getitem__", "__getitems__")


@dataclass
class _Node:
    region: Region | None
    calls: int = 0
    total_ns: int = 0
    self_ns: int = 0
    inside: dict[str, _Node] = field(default_factory=dict)


def run(trace: Trace, *, min_share: float) -> Table:
    """Return the answer; see `strobe.analyses.steps.data_transforms`."""
    root = _tree(trace)
    everything = max(1, sum(node.total_ns for node in root.inside.values()))
    rows: list[dict[str, object]] = []
    waiting = [(0, node) for node in _longest_last(root)]
    while waiting:
        depth, node = waiting.pop()
        if node.total_ns < min_share * everything or node.region is None:
            continue
        rows.append(
            {
                "name": node.region.name,
                "depth": depth,
                "calls": node.calls,
                "total_ns": node.total_ns,
                "self_ns": node.self_ns,
                "share": node.total_ns / everything,
                "avg_ns": node.total_ns / node.calls,
                "file": node.region.file,
                "line": node.region.line or None,
            }
        )
        waiting += [(depth + 1, inner) for inner in _longest_last(node)]
    note = "" if rows or trace.missing(("spans",)) else "no data loader was seen at work"
    return make_table(ANALYSIS.columns, rows, note=note)


def _tree(trace: Trace) -> _Node:
    """Everything that makes batches, merged by names: the fetches are the nodes inside the root."""
    sums, regions = path_statistics(trace, select(trace, "all")), region_rows(trace)
    waits = part_of_regions([each.name for each in regions], [each.paradigm for each in regions]) == DATA_WAIT
    root = _Node(None)
    # By call path: its node in the tree, and whether it lies in a wait for data.
    nodes: list[_Node | None] = []
    waiting: list[bool] = []
    for path, (above, number) in enumerate(zip(sums.parent.tolist(), sums.region.tolist(), strict=True)):
        region = regions[number]  # paths come after their parents
        waiting.append(bool(waits[number]) or (above >= 0 and waiting[above]))
        parent = nodes[above] if above >= 0 else None
        if parent is None and (region.name == FETCH or (waiting[path] and region.name.endswith(_ITEM))):
            parent = root
        if parent is None:
            nodes.append(None)
            continue
        node = parent.inside.setdefault(region.name, _Node(region))
        node.calls += int(sums.calls[path])
        node.total_ns += int(sums.total_ns[path])
        node.self_ns += int(sums.own_ns[path])
        nodes.append(node)
    return root


def _longest_last(node: _Node) -> list[_Node]:
    """What is inside and was called; taking from the end begins with the longest."""
    return sorted((inner for inner in node.inside.values() if inner.calls), key=lambda inner: inner.total_ns)
