"""How the time in the rows of a table is spread over the steps: what the small pictures in tables are drawn from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from strobe.errors import InconclusiveError
from strobe.model.schema import Column
from strobe.server.routing.endpoints import MB, parameter, route
from strobe.server.run.step_list import OverSteps, even_edges
from strobe.server.trace_context import TraceContext
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Bools, Floats, Ints
from strobe.tables.table import Table, make_table

_MOST_ROWS = 256
_MOST_BARS = 60
# Rows of a table by steps, of which an answer is made in about two seconds.
_MOST_SUMS = 400_000
# Numbers that belong to what a row is about, as all its texts do.
_PLACES = frozenset({"rank", "process", "device"})
# The time that a table is sorted by; of operators that only kernels name it is that on GPUs.
_TIMES = {"kernels": ("total_ns",), "operators": ("self_ns", "device_self_ns")}
# Tables that leave out steps which are not steady.
_STEADY = frozenset({"operators"})
COLUMNS = (
    Column("row", "uint32", "", "number of the row in the table"),
    Column("first_step", "int64", "", "first step of the bar"),
    Column("last_step", "int64", "", "last step of the bar"),
    Column("in_detail", "int64", "", "steps of the bar whose spans are in the trace, on every rank"),
    Column("step_ns", "float64", "ns", "mean time in a step of these, null without one", nullable=True),
)


@route(
    "over_steps",
    parameter("analysis", "whose table", str, choices=tuple(_TIMES)),
    parameter("by", "what its rows are, as the analysis takes it", str, "name"),
    parameter("rows", "rows of the table, by number", most=100_000, items=_MOST_ROWS),
    columns=COLUMNS,
    most_bytes=4 * MB,
    slow=True,
)
def over_steps(context: TraceContext, analysis: str, by: str, rows: tuple[int, ...]) -> pa.Table:
    """The time in rows of a table, step by step, or as means of neighbouring steps where there are more than 60.

    The times are those that the analysis answers `per` step. Steps that the table leaves out have no bar; steps that
    are statistics only count in no mean. Without steps there are no rows. More than 400 000 sums are refused.
    """
    key = f"{analysis} {by}"
    found = context.over_steps.get(key)
    if found is None:
        found = _found(context, analysis, by)
        context.over_steps.put(key, found, found.mean_ns.size)
    wanted = np.array([row for row in rows if row < len(found.mean_ns)], dtype=np.int64)
    bars = len(found.first_step)
    columns: dict[str, object] = {
        "row": np.repeat(wanted, bars).astype(np.uint32),
        **{name: np.tile(vars(found)[name], len(wanted)) for name in ("first_step", "last_step", "in_detail")},
        "step_ns": pa.array(found.mean_ns[wanted].ravel(), from_pandas=True),  # NaN is null
    }
    return make_table(COLUMNS, columns).to_arrow()


def _found(context: TraceContext, analysis: str, by: str) -> OverSteps:
    table = context.read.ask(analysis, by=by)
    processes = find_steps(context.read).processes
    nothing = np.zeros(0, dtype=np.int64)
    if not processes:
        return OverSteps(nothing, nothing, nothing, np.zeros((len(table), 0)))
    main = max(processes, key=len)
    steps = np.flatnonzero(main.steady) if analysis in _STEADY else np.arange(len(main))
    numbers, known = steps + main.first_number, _in_detail(processes, main)[steps]
    if (sums := len(table) * int(known.sum())) > _MOST_SUMS:
        raise InconclusiveError(
            f"the times of {len(table)} rows in {int(known.sum())} steps are {sums} sums, too many for pictures",
            do=f"strobe {analysis} --per step has them all.",
        )
    edges = even_edges(len(numbers), _MOST_BARS)
    bar = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    in_detail = np.bincount(bar[known], minlength=len(edges) - 1)
    total = np.zeros((len(table), len(edges) - 1))
    row, step, ns = _by_step(table, context.read.ask(analysis, by=by, per="step"), _TIMES[analysis])
    at = np.minimum(np.searchsorted(numbers, step), max(0, len(numbers) - 1))
    there = (numbers[at] == step) & known[at] if len(numbers) else np.zeros(len(step), dtype=bool)
    np.add.at(total, (row[there], bar[at[there]]), ns[there])
    mean = np.divide(total, in_detail, out=np.full_like(total, np.nan), where=in_detail > 0)
    return OverSteps(numbers[edges[:-1]], numbers[edges[1:] - 1], in_detail, mean)


def _in_detail(processes: tuple[ProcessSteps, ...] | list[ProcessSteps], main: ProcessSteps) -> Bools:
    """Return which steps of a process are in detail in all processes that have them: sums of others lack some."""
    known = main.kept.copy()
    for each in processes:
        at = np.arange(len(main)) + main.first_number - each.first_number
        inside = (at >= 0) & (at < len(each))
        known[inside] &= each.kept[at[inside]]
    return known


def _by_step(table: Table, per_step: Table, times: tuple[str, ...]) -> tuple[Ints, Ints, Floats]:
    """Return row of the table, step, and ns of each row of the answer by step; what is outside of steps is left out."""
    arrow, each = table.to_arrow(), per_step.to_arrow()
    time = next((name for name in times if arrow.column(name).null_count < len(table)), times[0])
    names = [
        field.name
        for field in arrow.schema
        if (field.name in _PLACES or pa.types.is_string(field.type)) and field.name in each.column_names
    ]
    row_of = {key: row for row, key in enumerate(zip(*(arrow.column(name).to_pylist() for name in names), strict=True))}
    keys = list(zip(*(each.column(name).to_pylist() for name in names), strict=True))
    row = np.array([row_of.get(key, -1) for key in keys], dtype=np.int64)
    step = np.array([-1 if step is None else step for step in each.column("step").to_pylist()], dtype=np.int64)
    ns = np.nan_to_num(each.column(time).to_numpy().astype(np.float64))
    inside = (row >= 0) & (step >= 0)
    return row[inside], step[inside], ns[inside]
