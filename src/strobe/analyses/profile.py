"""Call-path profile: where the time goes, by function (flat), callers first (tree), callees first (inverted)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.statistics import PathStatistics


def run(
    trace: Trace, *, form: str = "flat", step: str = "auto", step_class: str | None = None, min_share: float = 0.0
) -> Table:
    """Sum all spans, and the statistics of those that were folded, by call path.

    flat: a row per region; total counts recursion once. tree: a row per call path, callers before callees. inverted: a
    row per region with its callers below it, each with the self time of the region that it is responsible for.
    share: self time (in the tree: total time) as a part of the self time of everything, which is the sum of the busy
    times of all locations. Rows with a share (of total time) below `min_share` are left out.
    """
    from strobe.store.table import Table
    from strobe.structure.selection import select
    from strobe.structure.statistics import path_statistics

    selection = select(trace, step, step_class)
    sums = path_statistics(trace, selection)
    table = {"flat": _flat, "tree": _tree, "inverted": _inverted}[form](trace, sums, selection.step_count, min_share)
    arrow = table.to_arrow().replace_schema_metadata({"source": selection.source})
    return Table(arrow, name=table.name, about=selection.about, note=selection.note)


def _flat(trace: Trace, sums: PathStatistics, steps: int | None, min_share: float) -> Table:
    import numpy as np

    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.statistics import one_for_each_name

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
    rows = [
        (
            region["name"],
            region["paradigm"],
            region["role"],
            region["group"],
            int(calls[i]),
            int(total[i]),
            int(own[i]),
            float(own[i] / everything),
            float(total[i] / calls[i]),
            int(low[i]),
            int(high[i]),
            float(own[i] / steps) if steps else None,
            region["file"] if region["paradigm"] != "mpi" else "",
            region["line"],
        )
        for i, region in enumerate(regions)
        if calls[i] and total[i] >= min_share * everything
    ]
    columns = (
        Column("name", "string", "", "name of the region"),
        Column("paradigm", "string", "", "who reported it"),
        Column("role", "string", "", "what it is"),
        Column("group", "string", "", "what it is summed as"),
        Column("calls", "int64", "", "executions"),
        Column("total_ns", "int64", "ns", "time in it and in what it calls, recursion counted once"),
        Column("self_ns", "int64", "ns", "time in it alone"),
        Column("share", "float64", "", "self time as a part of the self time of everything, 0 to 1"),
        Column("avg_ns", "float64", "ns", "total time per call"),
        Column("min_ns", "int64", "ns", "shortest call"),
        Column("max_ns", "int64", "ns", "longest call"),
        Column("self_per_step_ns", "float64", "ns", "self time per step"),
        Column("file", "string", "", "source file"),
        Column("line", "uint32", "", "first line of the definition"),
    )
    return make_table(columns, rows, name="profile").sort("self_ns")


def _tree(trace: Trace, sums: PathStatistics, steps: int | None, min_share: float) -> Table:
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
    rows: list[tuple[object, ...]] = []
    waiting = [(0, path) for path in _by_time(children.get(-1, []), weight)]
    while waiting:
        depth, path = waiting.pop()
        total = int(sums.total_ns[path])
        # A path that the selection left out may still hold paths that it kept.
        if sums.calls[path]:
            if total < min_share * everything:
                continue
            facts = (int(sums.calls[path]), total, int(sums.own_ns[path]), total / everything)
            rows.append((names[int(sums.region[path])], depth, *facts, total / steps if steps else None, path))
        waiting.extend((depth + bool(sums.calls[path]), child) for child in _by_time(children.get(path, []), weight))
    return _make_tree(rows, "call path")


def _inverted(trace: Trace, sums: PathStatistics, steps: int | None, min_share: float) -> Table:
    from strobe.structure.statistics import one_for_each_name

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
    rows = [
        (names[chain[-1]], len(chain) - 1, calls, own, own, own / everything, own / steps if steps else None, None)
        for chain in order
        for calls, own in [kept[chain]]
    ]
    return _make_tree(rows, "region, below it its callers")


def _by_time(paths: list[int], weight: list[int]) -> list[int]:
    """Sort so that popping from the end takes the biggest first."""
    return sorted(paths, key=lambda path: weight[path])


def _make_tree(rows: Sequence[tuple[object, ...]], what: str) -> Table:
    from strobe.model.schema import Column
    from strobe.store.table import make_table

    columns = (
        Column("name", "string", "", f"name of the last region of the {what}"),
        Column("depth", "int64", "", "number of rows above it that it belongs to"),
        Column("calls", "int64", "", "executions"),
        Column("total_ns", "int64", "ns", "time in it and in what it calls"),
        Column("self_ns", "int64", "ns", "time in it alone"),
        Column("share", "float64", "", "part of the self time of everything, 0 to 1"),
        Column("per_step_ns", "float64", "ns", "time per step"),
        Column("call_path", "uint32", "", "id of the call path"),
    )
    return make_table(columns, rows, name="profile")


ANALYSIS = Analysis(
    "profile",
    "Which functions take the time?",
    run,
    needs=("spans",),
    options=(
        Option(
            "form",
            "a row per function, or a tree of callers or callees",
            default="flat",
            choices=("flat", "tree", "inverted"),
            flags=True,
        ),
        Option("step", "steps to look at: steady, all, 14, 10..20", default="auto"),
        Option("step_class", "class of steps to look at", default=None, also=("--class",)),
        Option("min_share", "leave out what takes a smaller part of the time, 0 to 1", type=float, default=0.0),
    ),
)
