"""Tools that ask any question: an analysis, what if, a comparison, SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from strobe import registry
from strobe.agents.handles import FORMS, Place, place_of
from strobe.agents.runs import Runs
from strobe.agents.texts import Line, answer, rows
from strobe.agents.tools import SKIP, TOP, TRACE, mapping, pairs, tool
from strobe.answers import sql as answers_sql
from strobe.api.methods import documentation
from strobe.api.trace import Trace
from strobe.errors import UsageError
from strobe.model.option import Option
from strobe.model.plugins import Analysis
from strobe.model.schema import TABLES
from strobe.server.routing.endpoints import parameter, read_values
from strobe.server.trace_context import TraceContext
from strobe.tables.table import Table
from strobe.trace.archive import Job

_TIMEOUT_S = 20.0
_SORT = parameter("sort", "column to sort by: numbers from large to small", str, "")
_COLUMNS = parameter("columns", "only these, with commas; all: those that are left out first, too", str, "")


@tool(parameter("analysis", "describe this one: how it is computed, options, columns with units", str, ""), SKIP)
def analyses(runs: Runs, analysis: str, skip: int) -> str:
    """List the analyses that the tool ask runs, with the question that each answers."""
    if analysis:
        return answer([analysis], [(line,) for line in documentation(_declared(analysis)).splitlines()], skip=skip)
    lines = [(name, _declared(name).question) for name in registry.names("analyses")]
    return answer([], lines, skip=skip)


@tool(
    TRACE,
    parameter("analysis", "its name, one of `analyses`", str),
    Option("options", 'options of the analysis: {"by": "shape"}', parse=mapping, default=""),
    parameter("where", f"only in this part of the run: {FORMS}", str, ""),
    _SORT,
    _COLUMNS,
    TOP,
    SKIP,
)
def ask(
    runs: Runs,
    trace: str,
    analysis: str,
    options: Mapping[str, object] | None,
    where: str,
    sort: str,
    columns: str,
    top: int,
    skip: int,
) -> str:
    """Run an analysis: kernels, operators, profile, messages, waits, memory, ... Times are exact, in ns."""
    context = runs.open(trace)
    place = place_of(context, where)
    part = _part(context.read, place) if where else context.read
    table = _asked(runs, part, analysis, options or {})
    if sort:
        table = table.sort(sort)
    left_out = table.extra if not columns else []
    if columns and columns != "all":
        table = table.select([name.strip() for name in columns.split(",")])
    only = f"only {where}" + (", whose steps are numbered anew" if place.steps else "") if where else ""
    return _answered(context, table, left_out, top, skip, only)


@tool(
    TRACE,
    parameter("change", "what changes: 'nccl*=0.5', 'gemm*=0.4..0.6,no-sync', 'no-launch', 'half', 'ranks=2x'", str),
    parameter("rank", "all: all ranks together; or the number of a rank", str, "all"),
    SKIP,
)
def what_if(runs: Runs, trace: str, change: str, rank: str, skip: int) -> str:
    """How long would a step take if something in it took another time? A replay, with its error and the gain as an
    interval. `analyses` with analysis=what_if has all changes."""
    context = runs.open(trace)
    table = _asked(runs, context.read, "what_if", {"change": change, "rank": rank.removeprefix("rank:")})
    return _answered(context, table, [], 0, skip)


@tool(
    TRACE,
    parameter("other", "the run to compare with (B), a name of `runs`; default: the same run", str, ""),
    parameter("ranks", "rank of A and of B: 0,1", str, ""),
    parameter("classes", "class of steps of A and of B: train,train+validation", str, ""),
    parameter("steps", "steps of A and of B: 10..20,30..40; default: steady ones", str, ""),
    TOP,
    SKIP,
)
def compare(runs: Runs, trace: str, other: str, ranks: str, classes: str, steps: str, top: int, skip: int) -> str:
    """What does B do otherwise than A in a step, and what does each difference cost? The largest first."""
    context = runs.open(trace)
    given = {"other": other, "ranks": ranks, "classes": classes, "steps": steps}
    table = _asked(runs, context.read, "compare", {name: text for name, text in given.items() if text})
    return _answered(context, table, table.extra, top, skip)


@tool(
    TRACE,
    parameter("query", "one SELECT; without it: the tables", str, ""),
    parameter("table", "describe the columns of this table", str, ""),
    parameter("top", "rows at most", int, 50, least=1, most=1000),
    SKIP,
)
def sql(runs: Runs, trace: str, query: str, table: str, top: int, skip: int) -> str:
    """Answer one SELECT (DuckDB), read-only, in at most 20 s. Tables: spans (name, role, group, process, thread, step,
    start_ns, duration_ns, self_ns), totals (spans and statistics of folded steps, summed up), kernel_spans,
    messages, ..., and every analysis by its name. `trace` is the run; without a query the answer is the schema."""
    if not query:
        return _schema(table, skip)
    context = runs.open(trace)
    found = answers_sql.query(context.read, query, timeout_s=_TIMEOUT_S, rows=(skip, skip + top + 1))
    head = [_head(context, found), "\t".join(found.columns)]
    # What was left out before is not known: its lines stand for themselves.
    return answer(
        head, [()] * skip + rows(found)[:top], skip=skip, count=f"{skip + top} and more" if len(found) > top else ""
    )


def _schema(table: str, skip: int) -> str:
    names = [*TABLES, "totals", "links"]
    if not table:
        known_names = [("tables", ", ".join(names)), ("analyses", ", ".join(registry.names("analyses")))]
        return answer(["columns of one: table=NAME. Times are ns since the start of the run."], known_names)
    if table in registry.names("analyses"):
        columns = _declared(table).columns
    elif table in names:
        nothing = Trace(Path("nothing.strobe"), Job(zero_ns=0), [])
        known = {column.name: column for column in TABLES.get(table, ())}
        found = nothing.sql(f'select * from "{table}"').to_arrow().schema
        one = TABLES["spans"][0]
        columns = tuple(
            known.get(field.name, replace(one, name=field.name, type=str(field.type), unit="", meaning=""))
            for field in found
        )
    else:
        raise UsageError(f"no table '{table}'", do=f"Tables: {', '.join(names)}, and every analysis.")
    lines: list[Line] = [(each.name, each.type, each.unit, each.meaning) for each in columns]
    return answer([table, "column\ttype\tunit\tmeaning"], lines, skip=skip)


def _asked(runs: Runs, trace: Trace, name: str, options: Mapping[str, object]) -> Table:
    declared = _declared(name)
    values: dict[str, object] = {**read_values(name, declared.options, pairs(options), lambda option: option.most)}
    if other := values.get("other"):
        values["other"] = runs.open(str(other)).read
    return trace.ask(declared.name, **values)


def _declared(name: str) -> Analysis:
    name = name.replace("-", "_")
    if name not in registry.names("analyses"):
        raise UsageError(f"no analysis '{name[:60]}'", do=f"Analyses: {', '.join(registry.names('analyses'))}")
    analysis = registry.load("analyses", name)
    assert isinstance(analysis, Analysis)
    return analysis


def _part(trace: Trace, place: Place) -> Trace:
    if place.location is not None:
        raise UsageError("an analysis cannot be asked of one thread", do="Name a rank, a step or a time.")
    if place.process is not None and place.rank is None:
        raise UsageError("this process has no rank: only ranks, steps and times can be chosen here")
    ranks = None if place.rank is None else (place.rank, place.rank)
    return trace.part(ranks=ranks, steps=place.steps, time_ns=None if place.steps else place.time_ns)


def _answered(context: TraceContext, table: Table, left_out: list[str], top: int, skip: int, only: str = "") -> str:
    more = f"columns that are left out: {', '.join(left_out)} (columns=all)" if left_out else ""
    table = table.select([name for name in table.columns if name not in left_out])
    lines: list[Line] = rows(table)
    return answer([_head(context, table, only), more, "\t".join(table.columns)], lines, skip=skip, top=top)


def _head(context: TraceContext, table: Table, only: str = "") -> str:
    source = f"from {table.source}" if table.source else ""
    parts = (f"{context.name}: {table.name}", only, table.about, table.note, source, context.read_part)
    return "; ".join(filter(None, parts))
