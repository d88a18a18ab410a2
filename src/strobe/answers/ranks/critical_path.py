"""What the time of a step depends on: the chain of work and waiting that is as long as the step itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from strobe.analyses.ranks.critical_path import ANALYSIS
from strobe.breakdown.what_if.changes import changes
from strobe.breakdown.what_if.weights import changed
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.critical_path.call_paths import CallPaths, call_paths
from strobe.ranks.critical_path.graph import Window, graph, processes_of, unlinked, windows
from strobe.ranks.critical_path.longest_path import KINDS, Graph, Parts, Path, longest_path, parts
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import process_rows
from strobe.trace.trace import Trace


def run(trace: Trace, *, by: str, rank: str, step: str, what_if: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.critical_path`."""
    what = changes(what_if)
    rows: list[Mapping[str, object]] = []
    sentences: list[str] = []
    for processes in processes_of(trace, rank):
        chosen, which = windows(trace, processes, step)
        whole = graph(trace, chosen)
        path = longest_path(whole)
        if not path.length_ns:
            continue
        found, after, changed_to = parts(whole, path), None, (path, whole.edges.weight_ns)
        text = f"{which}: {path.length_ns / 1e6:.3f} ms" + _beyond(whole, path, chosen)
        if what:
            _, weights = changed(trace, whole, what)
            path_after = longest_path(whole, weights)
            after, changed_to = parts(whole, path_after, weights), (path_after, weights)
            part = path_after.length_ns / path.length_ns - 1
            text += f"; with {what_if}: {path_after.length_ns / 1e6:.3f} ms ({part:+.1%})"
        own = trace.processes.column("rank")[processes[0]] if len(processes) == 1 else None
        sentences.append(_whose(trace, processes, own) + text)
        if by in ("call", "location"):
            rows += _calls(trace, by, own, call_paths(trace, whole, path, changed_to, by_location=by == "location"))
        else:
            rows += _segments(trace, found, after) if by == "segment" else _sums(trace, by, own, found, after)
    note = "" if rows else "nothing in this trace has a duration, neither of threads nor of GPUs"
    return make_table(ANALYSIS.columns_with(by=by, what_if=what_if), rows, about="; ".join(sentences), note=note)


def _whose(trace: Trace, processes: Sequence[int], rank: object) -> str:
    """Return, in words, whose path it is, if it is not that of all that ran."""
    if rank is not None:
        return f"rank {rank}, "
    others = set(unlinked(trace)) - set(processes)
    if len(processes) > 1 or not others:
        return ""
    own = process_rows(trace)[processes[0]]
    return f"process {own.process} ({own.name or f'pid {own.pid}'}) of {len(others) + 1} that nothing links, "


def _beyond(whole: Graph, path: Path, chosen: Sequence[Window]) -> str:
    """Return, in words, how the path is not the time of its window: GPUs end later, and work for earlier ones first."""
    first_ns = int(whole.time_ns[whole.edges.source[path.edges[0]]])
    last_ns = int(whole.time_ns[whole.edges.target[path.edges[-1]]])
    later_ns = last_ns - max(window.end_ns for window in chosen)
    earlier_ns = last_ns - first_ns - path.length_ns
    text = f", its last work ends {later_ns / 1e6:.3f} ms later" if later_ns > 0 else ""
    if earlier_ns > 0:
        text += f", without {earlier_ns / 1e6:.3f} ms in which GPUs did what was launched before"
    return text


def _segments(trace: Trace, found: Parts, after: Parts | None) -> list[Mapping[str, object]]:
    """Return a row for each part of a path: of the path after a change where there is one."""
    names, places = trace.regions.column("name"), trace.locations.to_arrow().to_pylist()
    ranks = trace.processes.column("rank")
    rows: list[Mapping[str, object]] = []
    columns = (column.tolist() for column in after or found)
    for start, predicted, kind, location, row, region, recorded in zip(*columns, strict=True):
        place = places[location] if location >= 0 else None
        rows.append(
            {
                "rank": ranks[place["process"]] if place else None,
                "start_ns": start,
                "location": place["name"] if place else None,
                "region": names[region] if region >= 0 else None,
                "kind": KINDS[kind],
                "time_ns": recorded,
                "predicted_ns": predicted,
                "location_id": location if location >= 0 else None,
                "row": row if row >= 0 else None,
            }
        )
    return rows


def _sums(trace: Trace, by: str, rank: object, found: Parts, after: Parts | None) -> list[Mapping[str, object]]:
    """Return a row for each kind, or each region and kind, most time first."""
    names = trace.regions.column("name")
    sums: dict[tuple[int, int], list[int]] = {}
    for at, each in ((0, found), *(((2, after),) if after else ())):
        keys = np.stack((each.region if by == "region" else np.zeros_like(each.kind), each.kind))
        different, which = np.unique(keys, axis=1, return_inverse=True)
        times, counts = np.bincount(which.ravel(), each.weight_ns), np.bincount(which.ravel())
        for k, key in enumerate(different.T.tolist()):
            row = sums.setdefault((key[0], key[1]), [0, 0, 0])
            row[at] = int(times[k])
            row[1] += int(counts[k]) if at == 0 else 0
    whole = int(found.weight_ns.sum())
    return [
        {
            "rank": rank,
            "region": names[region] if by == "region" and region >= 0 else None,
            "kind": KINDS[kind],
            "time_ns": time,
            "predicted_ns": predicted,
            "share": time / whole,
            "parts": count,
        }
        for (region, kind), (time, count, predicted) in sorted(sums.items(), key=lambda each: -each[1][0])
    ]


def _calls(trace: Trace, by: str, rank: object, found: CallPaths) -> list[Mapping[str, object]]:
    """Return a row for each call path, or each call path and location: most time in the path first."""
    places, ranks = trace.locations.to_arrow().to_pylist(), trace.processes.column("rank")
    whole = int(found.time_ns.sum())
    found = found.chosen(np.lexsort((-found.own_ns, -found.time_ns)))
    rows: list[Mapping[str, object]] = []
    for each in zip(*(column.tolist() for column in vars(found).values()), strict=True):
        call_path, kind, location, time, predicted, own, imbalance, impact, slack = each
        place = places[location] if by == "location" and location >= 0 else None
        rows.append(
            {
                "rank": ranks[place["process"]] if place else rank,
                "call_path": call_path_text(trace, call_path) if call_path >= 0 else None,
                "location": place["name"] if place else None,
                "kind": KINDS[kind],
                "time_ns": time,
                "predicted_ns": predicted,
                "own_ns": own,
                "imbalance_ns": round(imbalance),
                "impact_ns": round(impact),
                "slack_ns": slack,
                "share": time / whole,
            }
        )
    return rows
