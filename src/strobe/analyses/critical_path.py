"""What the time of a step depends on: the chain of work and waiting that is as long as the step itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis, Option

if TYPE_CHECKING:
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.critical_path import Ints, Parts


def run(trace: Trace, *, by: str = "kind", rank: str = "all", step: str = "", what_if: str = "") -> Table:
    """Find the critical path of a step, and what bounds it: only making something on it faster makes the step faster.

    Moments are where spans of threads and work of GPUs begin and end. A moment waits for the one before it in its
    thread or stream; a kernel also for its launch and for events of other streams; a call that synchronises for the
    last work that it waits for; the main thread for the threads of autograd. The time until a moment belongs to what
    came last of all that it waited for. So the path is walked back from the last moment of the step, and its parts
    add up to its length. Without synchronisation events in the profile, a call is taken to wait for what ended last
    before it returned, and a kernel that begins more than 30 us after its launch and after the kernel before it for
    what ended last on any stream. Ranks are linked by collectives: where all wait for all (NCCL, MPI, gloo), for the
    last to come; with a root (MPI), all for it, or it for the last of them. And by messages of MPI: a call that
    receives waits for the one that sends, and one that sends and blocks for the one that receives.

    The step: by default a steady one of median length; without steps, the whole run (the middle of one of more than
    half a million spans). On threads its time, on GPUs what was launched in it. Kinds: host (Python, operators, calls),
    data (waiting for data), launch (from the launching call to the start), queue (between two kernels of a stream),
    computation, communication, copy, sync (from the end of what was waited for).

    --what-if multiplies the time of a kind, or of what runs in regions of a name, and finds the longest path anew.
    """
    from strobe.model.schema import Column
    from strobe.store.table import make_table
    from strobe.structure.critical_graph import graph
    from strobe.structure.critical_path import changed, changes, longest_path, parts
    from strobe.structure.critical_windows import processes_of, windows

    what = changes(what_if)
    rows: list[tuple[object, ...]] = []
    said: list[str] = []
    for processes in processes_of(trace, rank):
        chosen, which = windows(trace, processes, step)
        whole = graph(trace, chosen)
        path = longest_path(whole)
        if not path.length_ns:
            continue
        found, after, text = parts(whole, path), None, f"{which}: {path.length_ns / 1e6:.3f} ms"
        if what:
            weights = changed(whole.edges, what, *_names(trace))
            path_after = longest_path(whole, weights)
            after = parts(whole, path_after, weights)
            part = path_after.length_ns / path.length_ns - 1
            text += f"; with {what_if}: {path_after.length_ns / 1e6:.3f} ms ({part:+.1%})"
        own = trace.processes.column("rank")[processes[0]] if len(processes) == 1 else None
        said.append(text if own is None else f"rank {own}, {text}")
        rows += _segments(trace, found, after) if by == "segment" else _sums(trace, by, own, found, after)
    columns = (
        Column("rank", "int64", "", "rank, null where there is none or the path goes through all"),
        *(
            (
                Column("start_ns", "int64", "ns", "when it began"),
                Column("location", "string", "", "thread or stream", extra=True),
            )
            if by == "segment"
            else ()
        ),
        *((Column("region", "string", "", "what ran, or was waited in or for"),) if by != "kind" else ()),
        Column("kind", "string", "", "what bounds it: see above"),
        Column("time_ns", "int64", "ns", "its time in the path"),
        *((Column("predicted_ns", "int64", "ns", "its time in the path after the change"),) if what else ()),
        *(
            (
                Column("location_id", "uint32", "", "number of the location", extra=True),
                Column("row", "int64", "", "number of the span in its location, null between spans", extra=True),
            )
            if by == "segment"
            else (
                Column("share", "float64", "", "its part of the path, 0 to 1"),
                Column("parts", "int64", "", "parts of the path that it is", extra=True),
            )
        ),
    )
    note = "" if rows else "no thread and no GPU did anything in this trace that has a duration"
    return make_table(columns, rows, name="critical_path", about="; ".join(said), note=note)


def _names(trace: Trace) -> tuple[list[str], Ints, Ints]:
    """Return the names of regions, and the last region and the parent (-1 at roots) of every call path."""
    import numpy as np

    paths = trace.call_paths.to_arrow()
    parent = np.array([-1 if p is None else p for p in paths.column("parent").to_pylist()], dtype=np.int64)
    names = [str(name) for name in trace.regions.column("name")]
    return names, paths.column("region").to_numpy().astype(np.int64), parent


def _segments(trace: Trace, found: Parts, after: Parts | None) -> list[tuple[object, ...]]:
    """Return a row for each part of a path: of the path after a change where there is one."""
    from strobe.structure.critical_path import KINDS

    names, places = trace.regions.column("name"), trace.locations.to_arrow().to_pylist()
    ranks = trace.processes.column("rank")
    rows: list[tuple[object, ...]] = []
    for start, time, kind, location, row, region, recorded in zip(
        *(column.tolist() for column in (after or found)), strict=True
    ):
        place = places[location] if location >= 0 else None
        rows.append((
            ranks[place["process"]] if place else None,
            start,
            place["name"] if place else None,
            names[region] if region >= 0 else None,
            KINDS[kind],
            recorded,
            *((time,) if after else ()),
            location if location >= 0 else None,
            row if row >= 0 else None,
        ))  # fmt: skip
    return rows


def _sums(trace: Trace, by: str, rank: object, found: Parts, after: Parts | None) -> list[tuple[object, ...]]:
    """Return a row for each kind, or each region and kind, most time first."""
    import numpy as np

    from strobe.structure.critical_path import KINDS

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
        (
            rank,
            *((names[region] if region >= 0 else None,) if by == "region" else ()),
            KINDS[kind],
            time,
            *((predicted,) if after else ()),
            time / whole,
            count,
        )
        for (region, kind), (time, count, predicted) in sorted(sums.items(), key=lambda each: -each[1][0])
    ]


ANALYSIS = Analysis(
    "critical_path",
    "What does the time of a step depend on, across threads, GPUs and ranks?",
    run,
    options=(
        Option("by", "a row for each kind of work, for each region, or for each part of the path in order of time",
               default="kind", choices=("kind", "region", "segment")),
        Option("rank", "all: one path through all ranks; each: a path of every rank; or the number of a rank",
               default="all"),
        Option("step", "number of the step, as in strobe steps; or all: the whole run", default=""),
        Option("what_if", "how long it would take with other times: 'nccl*=0.5,launch=0' (name or kind = factor)",
               default=""),
    ),
)  # fmt: skip
