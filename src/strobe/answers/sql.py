"""What SQL sees of a trace: the tables of model/schema.py, and every analysis by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from strobe import registry
from strobe.answers.ask import ask
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES, Column
from strobe.steps.step_times import step_at
from strobe.tables import query_engine
from strobe.tables.table import Table
from strobe.trace.trace import Trace

# What a row of spans or statistics is called, and where it ran.
_NAMES = 'r.name, r.paradigm, r.role, r."group", l.process, l.name as thread'
VIEWS = {
    "spans": f"""
        select s.*, {_NAMES}
        from _spans s join regions r using (region) join locations l using (location)
    """,
    "statistics": f"""
        select s.*, p.region, {_NAMES}
        from _statistics s join call_paths p using (call_path) join regions r using (region)
        join locations l using (location)
    """,
    # Everything that ran, as spans or in statistics, summed up.
    "totals": f"""
        select t.location, t.call_path, sum(t.count)::bigint as count, sum(t.total_ns)::bigint as total_ns,
            sum(t.self_ns)::bigint as self_ns, min(t.min_ns) as min_ns, max(t.max_ns) as max_ns, p.region, {_NAMES}
        from (
            select location, call_path, count(*) as count, sum(duration_ns) as total_ns, sum(self_ns) as self_ns,
                min(duration_ns) as min_ns, max(duration_ns) as max_ns
            from _spans group by all
            union all
            select location, call_path, count, total_ns, self_ns, if(count = 0, null, min_ns),
                if(count = 0, null, max_ns)
            from _statistics
        ) t join call_paths p using (call_path) join regions r using (region) join locations l using (location)
        group by all
    """,
    # Cause and effect. A call and what it started on a GPU share a correlation id; of calls inside of each other
    # (runtime and driver) it is the outer one. Forward and backward operators are tied by flows that begin with them.
    "links": """
        select * from (
            select distinct on (g.location, g.row) 'launch' as kind, c.location as from_location, c.row as from_row,
                g.location as to_location, g.row as to_row
            from (
                select location, row, correlation from _kernel_spans
                union all select location, row, correlation from _copy_spans
                union all select location, row, correlation from _sync_spans
            ) g
            join locations at_gpu on g.location = at_gpu.location
            join _call_spans c using (correlation)
            join locations at_host on c.location = at_host.location and at_host.process = at_gpu.process
            where g.correlation <> 0
            order by g.location, g.row, c.location, c.row
        )
        union all
        select distinct 'forward_backward', f.location, f.row, b.location, b.row
        from _flow_ends f join _flow_ends b using (process, flow)
        where f.phase = 's' and b.phase = 'f'
    """,
    "_flow_ends": """
        select l.process, flows.flow, flows.phase, o.location, o.row
        from flows join locations l using (location)
        join _spans s on s.location = flows.location and s.start_ns = flows.time_ns
        join _operator_spans o on o.location = s.location and o.row = s.row
        where flows.category = 'fwdbwd'
    """,
    # Spans with what only they have.
    **{
        name: f"""
            select s.start_ns, s.duration_ns, a.*, s.region, s.call_path, {_NAMES}
            from _{name} a join _spans s using (location, row) join regions r using (region)
            join locations l using (location)
        """
        for name in SPAN_TABLES
    },
}


def query(trace: Trace, text: str, *, timeout_s: float | None = None, rows: tuple[int, int] | None = None) -> Table:
    """Answer one SELECT. Tables: those of model/schema.py, and every analysis by its name; see `query_engine.query`."""
    found = query_engine.query(text, tables(trace, text), VIEWS, timeout_s=timeout_s, rows=rows)
    return Table(found, name="sql", note=_note(trace, text))


def columns_of_tables() -> dict[str, tuple[Column, ...]]:
    """Return the columns of every table but those of analyses, by its name."""
    located = (Column("process", "uint32", "", "number of the process"), Column("thread", "string", "", "name"))
    named = tuple(
        Column(name, "string", "", meaning)
        for name, meaning in (("name", "of the region"), ("paradigm", "what reported it"), ("role", "what it is"))
    )
    more = (*named, Column("group", "string", "", "kind of work"), *located)
    times = ("total_ns", "self_ns", "min_ns", "max_ns")
    ends = tuple(
        Column(f"{side}_{what}", "int64", "", f"{what} of the {side} end")
        for side in ("from", "to")
        for what in ("location", "row")
    )
    region = Column("region", "uint32", "", "what ran")
    views = {
        "totals": (
            *TABLES["spans"][:1],
            Column("call_path", "uint32", "", "which chain of regions"),
            Column("count", "int64", "", "executions, in detail and folded"),
            *(Column(name, "int64", "ns", f"{name.removesuffix('_ns')} of their time") for name in times),
            region,
            *more,
        ),
        "links": (Column("kind", "string", "", "launch or forward_backward"), *ends),
        "spans": (*TABLES["spans"], Column("step", "int64", "", "step that it begins in"), *more),
        "statistics": (*TABLES["statistics"], region, *more),
    }
    of_span = [each for each in TABLES["spans"] if each.name in ("start_ns", "duration_ns", "region", "call_path")]
    known = {
        # The engine numbers the second of two columns with a name.
        name: (
            *columns,
            *of_span,
            *(
                replace(each, name=f"{each.name}_1") if each.name in (c.name for c in columns) else each
                for each in more
            ),
        )
        if name in SPAN_TABLES
        else columns
        for name, columns in TABLES.items()
    }
    return {**known, **views}


def tables(trace: Trace, query: str) -> Mapping[str, Callable[[], pa.Table]]:
    """Return the source of every table that the query may name."""

    def arrow(table: Callable[..., Table], *of: object) -> Callable[[], pa.Table]:
        return lambda: table(*of).to_arrow()

    # Finding the steps takes longer than everything else in most queries: only where the query can see them.
    with_steps = re.search(r"\bstep\b|\*", query.lower().replace("(*)", "")) is not None
    return {
        **{name: arrow(ask, trace, name) for name in registry.names("analyses") if name not in VIEWS},
        "_statistics": arrow(ask, trace, "statistics"),
        "processes": lambda: trace.processes.to_arrow(),
        "locations": lambda: trace.locations.to_arrow(),
        "regions": lambda: trace.regions.to_arrow(),
        "call_paths": lambda: trace.call_paths.to_arrow(),
        "quality": lambda: trace.quality.to_arrow(),
        **{f"_{name}": arrow(trace.side_table, name) for name in SPAN_TABLES},
        **{name: arrow(trace.side_table, name) for name in EVENT_TABLES},
        "metrics": arrow(trace.metrics),
        "_spans": lambda: _spans(trace, with_steps),
    }


def _note(trace: Trace, query: str) -> str:
    """Return what a query does not see: where steps were folded, spans are not everything."""
    if not trace.folded or re.search(r"\bspans\b", query.lower()) is None:
        return ""
    return (
        f"spans of {trace.folded_count} executions were folded: `totals` counts them, too, `statistics` only them; "
        "self_ns of a span holds what was folded directly inside"
    )


def _spans(trace: Trace, with_steps: bool) -> pa.Table:
    """All spans, with the step of their process that they start in (null outside of every step)."""
    parts = []
    for location in range(len(trace.locations)):
        spans = trace.spans(location).to_arrow()
        start_ns = spans.column("start_ns").to_numpy()
        step = step_at(trace, location, start_ns) if with_steps else np.full(len(start_ns), -1)
        parts.append(spans.append_column("step", pa.array(step, mask=step < 0)))
    if not parts:  # nothing was recorded, and the columns are there all the same
        parts = [trace.spans().to_arrow().append_column("step", pa.array([], type=pa.int64()))]
    return pa.concat_tables(parts)
