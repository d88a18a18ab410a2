"""Call-path profile: where the time goes, by function (flat), callers first (tree), callees first (inverted)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from strobe.analyses.program.profile import ANALYSIS
from strobe.breakdown.outside_of_calls import outside_of_calls
from strobe.model.kinds import RANK_PARADIGMS
from strobe.steps.selection import select
from strobe.sums.path_statistics import PathStatistics, one_for_each_name, path_statistics
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

Rows = list[Mapping[str, Any]]


def run(trace: Trace, *, form: str, step: str, step_class: str | None, min_share: float) -> Table:
    """Return the answer; see `strobe.analyses.program.profile`."""
    selection = select(trace, step, step_class)
    sums = path_statistics(trace, selection)
    note = "; ".join(filter(None, (selection.note, outside_of_calls(trace, step, step_class))))
    rows = {"flat": _flat, "tree": _tree, "inverted": _inverted}[form](trace, sums, selection.step_count, min_share)
    return make_table(ANALYSIS.columns_with(form=form), rows, about=selection.about, note=note, source=selection.source)


def _flat(trace: Trace, sums: PathStatistics, steps: int | None, min_share: float) -> Rows:
    regions = trace.regions.to_arrow().to_pylist()
    size = len(regions)
    row = one_for_each_name(trace)[sums.region]
    calls = np.bincount(row, weights=sums.calls, minlength=size).astype(np.int64)
    total = np.bincount(row, weights=sums.total_ns * sums.outermost, minlength=size).astype(np.int64)
    own = np.bincount(row, weights=sums.own_ns, minlength=size).astype(np.int64)
    called = sums.calls > 0
    low, high = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(low, row[called], sums.min_ns[called])
    np.maximum.at(high, row[called], sums.max_ns[called])
    everything = max(1, int(own.sum()))
    found = [
        {
            **region,
            "calls": int(calls[i]),
            "total_ns": int(total[i]),
            "self_ns": int(own[i]),
            "share": float(own[i] / everything),
            "avg_ns": float(total[i] / calls[i]),
            "min_ns": int(low[i]),
            "max_ns": int(high[i]),
            "self_per_step_ns": float(own[i] / steps) if steps else None,
            "file": region["file"] if region["paradigm"] not in RANK_PARADIGMS else "",
        }
        for i, region in enumerate(regions)
        if calls[i] and total[i] >= min_share * everything
    ]
    return sorted(found, key=lambda each: -each["self_ns"])


def _tree(trace: Trace, sums: PathStatistics, steps: int | None, min_share: float) -> Rows:
    names = trace.regions.column("name")
    # Paths come after their parents, so one pass gives every path its children, and one backward what the selection
    # kept below it.
    children: dict[int, list[int]] = {}
    weight = sums.total_ns.tolist()
    for path in range(len(sums.parent)):
        children.setdefault(int(sums.parent[path]), []).append(path)
    for path in range(len(sums.parent) - 1, -1, -1):
        if not sums.calls[path]:
            weight[path] = sum(weight[child] for child in children.get(path, []))
    everything = max(1, int(sums.own_ns.sum()))
    rows: list[Mapping[str, object]] = []
    waiting = [(0, path) for path in _by_time(children.get(-1, []), weight)]
    while waiting:
        depth, path = waiting.pop()
        total = int(sums.total_ns[path])
        # A path that the selection left out may still hold paths that it kept.
        if sums.calls[path]:
            if total < min_share * everything:
                continue
            rows.append(
                {
                    "name": names[int(sums.region[path])],
                    "depth": depth,
                    "calls": int(sums.calls[path]),
                    "total_ns": total,
                    "self_ns": int(sums.own_ns[path]),
                    "share": total / everything,
                    "per_step_ns": total / steps if steps else None,
                    "call_path": path,
                }
            )
        waiting.extend((depth + bool(sums.calls[path]), child) for child in _by_time(children.get(path, []), weight))
    return rows


def _inverted(trace: Trace, sums: PathStatistics, steps: int | None, min_share: float) -> Rows:
    names = trace.regions.column("name")
    everything = max(1, int(sums.own_ns.sum()))
    row_of = one_for_each_name(trace)
    nodes: dict[tuple[int, ...], list[int]] = {}  # chain of regions, callee first -> calls, self time
    for path in range(len(sums.parent)):
        calls, own = int(sums.calls[path]), int(sums.own_ns[path])
        if not calls:
            continue
        chain: tuple[int, ...] = ()
        at = path
        while at >= 0:
            chain = (*chain, int(row_of[sums.region[at]]))
            node = nodes.setdefault(chain, [0, 0])
            node[0] += calls
            node[1] += own
            at = int(sums.parent[at])
    kept = {chain: node for chain, node in nodes.items() if node[1] >= min_share * everything}
    # Depth first, biggest first: a chain sorts by the self times of all its beginnings.
    order = sorted(kept, key=lambda chain: [(-nodes[chain[: i + 1]][1], chain[i]) for i in range(len(chain))])
    return [
        {
            "name": names[chain[-1]],
            "depth": len(chain) - 1,
            "calls": calls,
            "total_ns": own,
            "self_ns": own,
            "share": own / everything,
            "per_step_ns": own / steps if steps else None,
            "call_path": None,
        }
        for chain in order
        for calls, own in [kept[chain]]
    ]


def _by_time(paths: list[int], weight: list[int]) -> list[int]:
    """Sort so that popping from the end takes the biggest first."""
    return sorted(paths, key=lambda path: weight[path])
