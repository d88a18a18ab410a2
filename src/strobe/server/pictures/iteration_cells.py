"""The iteration stack for the page: one byte a cell, no more rows than a screen has; and one row in exact numbers.

A body is

    4 bytes "STK1", u32 length of the header, header (JSON, padded with spaces to 8 bytes), u8 cell[rows][columns].

Cell 0 is "this step has no such position"; cells from 1 to 255 are log2(value / median of the position), from -OCTAVES
to OCTAVES, 128 being the median itself. Where several steps share a row, or several positions a column, each cell is
the one farthest from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.model.kinds import Group, Part
from strobe.server.routing.bodies import CELLS_TYPE, Body, picture_body
from strobe.server.routing.endpoints import LOOP, MB, parameter, route
from strobe.server.run.step_list import even_edges, shown_rows
from strobe.server.trace_context import TraceContext
from strobe.steps.iteration_stack.stack import METRICS, Stack
from strobe.steps.training_activities import PARTS
from strobe.tables.column_arrays import Bools, Ints

MAGIC = b"STK1"
OCTAVES = 3
SORTS = ("time", "class", "duration")
MOST_ROWS = 2048
MOST_COLUMNS = 1024
_MOST_EXTRAS = 200
_NAME_LENGTH = 200


class Position(TypedDict):
    """A column: one position of the usual path, or several neighbours, then with the name of the longest.

    band: what it is of: the main thread, another thread, a GPU. module: the module that calls it, "" for none. folded:
    whether it stands for a group that was folded.
    """

    position: int
    count: int
    name: str
    group: Group
    part: Part
    band: str
    module: str
    folded: bool
    median_ns: int
    median_gap_ns: int
    present: float


_Rows = TypedDict(
    "_Rows",
    {
        "step": list[int],
        "count": list[int],
        "start_ns": list[int],
        "step_ns": list[int],
        "class": list[str],
        "class_rank": list[int],
        "outlier": list[bool],
        "path": list[int],
        "same_path": list[int],
        "extra": list[int],
    },
)


class NamedSteps(TypedDict):
    """A name, and how many steps have it, or lack it."""

    name: str
    steps: int


class PathFacts(TypedDict):
    """How the paths of the steps differ: see PathDifferences."""

    aligned: float
    usual_steps: int
    paths: int
    absent: list[NamedSteps]
    extra: list[NamedSteps]


class StackHeader(_Rows):
    """The header of a body: facts about the stack, its columns, and column by column its rows."""

    metric: str
    sort: str
    process: int
    reason: str
    steps: int
    shown: int
    folded: int
    thinned: int
    octaves: int
    position_count: int
    positions: list[Position]
    path_facts: PathFacts


class Extra(TypedDict):
    """A span beyond the usual path, and the position that it lies before."""

    name: str
    group: Group
    start_ns: int
    duration_ns: int
    before: int


Iteration = TypedDict(
    "Iteration",
    {
        "step": int,
        "start_ns": int,
        "step_ns": int,
        "class": str,
        "path": int,
        "duration_ns": list[int | None],
        "gap_ns": list[int | None],
        "offset_ns": list[int | None],
        "extra_count": int,
        "extras": list[Extra],
    },
)
Iteration.__doc__ = "One step in exact numbers, by position."


@route(
    "iterations",
    parameter("metric", "the metric of a cell", str, "duration", choices=METRICS),
    parameter("sort", "order of the rows", str, "time", choices=SORTS),
    parameter("rows", "rows at most", default=MOST_ROWS, least=1, most=MOST_ROWS, argument="most_rows"),
    parameter("fold", "groups of positions to sum up: first_end, with ~ between them", str, "", most=16_384),
    LOOP,
    about=StackHeader,
    most_bytes=8 * MB,
    media=(CELLS_TYPE,),
    slow=True,
)
def iterations(context: TraceContext, metric: str, sort: str, most_rows: int, fold: str, level: str) -> Body:
    """Steps x positions, one byte a cell. A folded group is one column: the sum of its positions."""
    chosen = context.chosen(level)
    stack, ranks = chosen.stack, chosen.steps.class_ranks
    order = _order(stack, ranks, sort)
    begins = _unfolded(len(stack.names), fold)
    rows, columns = even_edges(len(order), most_rows), _column_edges(stack.bands, begins)
    cells = cells_of(stack.values(metric, begins)[order], rows[:-1], columns[:-1])
    edges = np.append(begins, len(stack.names))[columns]
    facts = stack.path_differences()
    header: StackHeader = {
        "metric": metric,
        "sort": sort,
        "process": stack.process,
        "reason": stack.reason,
        "steps": len(stack) + stack.folded + stack.thinned,
        "shown": len(stack),
        "folded": stack.folded,
        "thinned": stack.thinned,
        "octaves": OCTAVES,
        "position_count": len(stack.names),
        "positions": _positions(context, stack, metric, edges, np.diff(columns) == 1),
        "path_facts": {
            "aligned": round(facts.aligned, 4),
            "usual_steps": facts.usual_steps,
            "paths": facts.paths,
            "absent": [{"name": name[:_NAME_LENGTH], "steps": steps} for name, steps in facts.absent],
            "extra": [{"name": name[:_NAME_LENGTH], "steps": steps} for name, steps in facts.extra],
        },
        **_rows(stack, ranks, order, rows),
    }
    return picture_body(MAGIC, header, cells)


@route("iteration", parameter("step", "number of the step"), LOOP, most_bytes=16 * MB, slow=True)
def iteration(context: TraceContext, step: int, level: str) -> Iteration | None:
    """One step of the stack in exact numbers; null where it was not kept in detail."""
    stack = context.chosen(level).stack
    rows = np.flatnonzero(stack.step == step)
    if not len(rows):
        return None
    row = int(rows[0])
    extras = np.flatnonzero(stack.extras.row == row)
    return {
        "step": step,
        "start_ns": int(stack.start_ns[row]),
        "step_ns": int(stack.step_ns[row]),
        "class": stack.classes[row],
        "path": int(stack.path[row]),
        "duration_ns": _whole(stack.durations_ns[row]),
        "gap_ns": _whole(stack.gaps_ns[row]),
        "offset_ns": _whole(stack.offsets_ns[row]),
        "extra_count": len(extras),
        "extras": [
            {
                "name": stack.region_names[stack.extras.region[at]][:_NAME_LENGTH],
                "group": context.names.groups[stack.extras.region[at]],
                "start_ns": int(stack.extras.start_ns[at]),
                "duration_ns": int(stack.extras.duration_ns[at]),
                "before": int(stack.extras.before[at]),
            }
            for at in extras[np.argsort(-stack.extras.duration_ns[extras], kind="stable")][:_MOST_EXTRAS].tolist()
        ],
    }


def _order(stack: Stack, class_ranks: Mapping[str, int], sort: str) -> Ints:
    """Rows of the stack in the order in which they are shown."""
    if sort == "duration":
        return np.argsort(-stack.step_ns, kind="stable")
    if sort == "class":
        ranks = np.array([class_ranks[name] for name in stack.classes], dtype=np.int64)
        return np.lexsort((stack.step, stack.path, ranks))
    return np.arange(len(stack))


def cells_of(values: npt.NDArray[np.float32], rows: Ints, columns: Ints) -> npt.NDArray[np.uint8]:
    """Return a byte for each block of values, which begin at `rows` and `columns`: its value farthest from 0."""
    if not values.size:
        return np.zeros(values.shape, dtype=np.uint8)
    high, low = (pick.reduceat(pick.reduceat(values, rows, axis=0), columns, axis=1) for pick in (np.fmax, np.fmin))
    farthest = np.where(-low > high, low, high)
    scaled = np.clip(np.rint(farthest * (127 / OCTAVES)), -127, 127) + 128
    return np.where(np.isnan(scaled), 0, scaled).astype(np.uint8)


def _unfolded(positions: int, fold: str) -> Ints:
    """Where the columns begin: every position, but only the first one of each folded group."""
    begins = np.ones(positions, dtype=bool)
    for group in filter(None, fold.split("~")):
        first, _, end = group.partition("_")
        if not (first.isdecimal() and end.isdecimal()):
            raise UsageError(f"fold: '{group[:40]}' is not a group of positions", do="Example: fold=0_12~30_41")
        begins[int(first) + 1 : int(end)] = False
    return np.flatnonzero(begins)


def _column_edges(bands: Sequence[str], begins: Ints) -> Ints:
    """Where columns begin among what is unfolded, and its end.

    No column has two bands; folded groups, and the end of the step, are alone.
    """
    folded = np.diff(begins) > 1  # for all but the last one, the end of the step
    groups = [(bands[at], at if alone else -1) for at, alone in zip(begins.tolist(), folded.tolist(), strict=False)]
    edges = [np.zeros(1, dtype=np.int64)]
    for _, run in groupby(groups):
        count = len(list(run))
        edges.append(edges[-1][-1] + even_edges(count, max(1, MOST_COLUMNS * count // len(begins)))[1:])
    return np.append(np.concatenate(edges), len(begins)) if len(begins) else np.zeros(1, dtype=np.int64)


def _positions(context: TraceContext, stack: Stack, metric: str, edges: Ints, single: Bools) -> list[Position]:
    """Facts about each column: those of its longest position, with the number of all of them and their time."""
    medians = {name: np.nan_to_num(values.astype(np.float64)) for name, values in stack.medians_ns.items()}
    present = (~np.isnan(stack.to_numpy(metric))).mean(axis=0) if len(stack) else np.zeros(len(stack.names))
    described: list[Position] = []
    for (low, high), alone in zip(pairwise(edges.tolist()), single.tolist(), strict=True):
        at = low + int(medians["duration"][low:high].argmax())
        region = int(stack.regions[at])
        described.append(
            {
                "position": low,
                "count": high - low,
                "name": stack.names[at][:_NAME_LENGTH],
                "group": context.names.groups[region] if region >= 0 else "other",
                "part": PARTS[int(stack.parts[at])],
                "band": stack.bands[at],
                "module": stack.region_names[stack.modules[at]][:_NAME_LENGTH] if stack.modules[at] >= 0 else "",
                "folded": alone and high - low > 1,
                "median_ns": round(medians["duration"][low:high].sum()),
                "median_gap_ns": round(medians["gap"][low:high].sum()),
                "present": round(float(present[at]), 4),
            }
        )
    return described


def _rows(stack: Stack, class_ranks: Mapping[str, int], order: Ints, edges: Ints) -> _Rows:
    """Facts about each row of cells: those of the outlier among its steps, else of the longest."""
    shown = order[shown_rows(stack.step_ns[order], stack.outlier[order], edges)]
    paths = Counter(stack.path.tolist())
    return {
        "step": stack.step[shown].tolist(),
        "count": np.diff(edges).tolist(),
        "start_ns": stack.start_ns[shown].tolist(),
        "step_ns": stack.step_ns[shown].tolist(),
        "class": [stack.classes[row] for row in shown.tolist()],
        "class_rank": [class_ranks[stack.classes[row]] for row in shown.tolist()],
        "outlier": stack.outlier[shown].tolist(),
        "path": stack.path[shown].tolist(),
        "same_path": [paths[path] for path in stack.path[shown].tolist()],
        "extra": stack.extra_counts[shown].tolist(),
    }


def _whole(values: npt.NDArray[np.float32]) -> list[int | None]:
    """Return whole nanoseconds; None for NaN."""
    return [None if np.isnan(value) else round(value) for value in values.tolist()]
