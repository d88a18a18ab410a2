"""Tools about a run as a whole: which runs there are, the summary, the findings, the steps."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.agents.handles import Place, finding_of, place_of, span_handle, step_handle, steps_of
from strobe.agents.runs import Runs
from strobe.agents.texts import Line, answer, rows
from strobe.agents.tools import SKIP, TOP, TRACE, tool
from strobe.errors import UsageError
from strobe.model.plugins import Evidence, Finding
from strobe.model.units import format_interval_ns
from strobe.present.summary_text import summary_text
from strobe.server.routing.endpoints import parameter
from strobe.server.time_range.flat_profile import flat_profile
from strobe.server.trace_context import TraceContext
from strobe.tables.table import Table

_RANK = parameter("rank", "of this rank, rank:3; default: the process with most steps", str, "")
_PROFILED = 12  # names that a step shows
_EVIDENCE = 2  # places that each of all findings shows
_FIGURES = ("median_ns", "p95_ns", "best_ns", "mean_ns", "count", "steady_count", "warm_up_count", "outlier_count")


@tool(parameter("folder", "folder below those that are served; default: all of these", str, ""), TOP, SKIP)
def runs(runs: Runs, folder: str, top: int, skip: int) -> str:
    """List the runs that can be asked: recorded ones, the newest first, then files of other tools, and folders."""
    return answer(["name\tkind\tfrom"], runs.listed(folder), skip=skip, top=top)


@tool(TRACE)
def summary(runs: Runs, trace: str) -> str:
    """Where the time of a run goes: verdict, the typical step by its parts, GPUs, findings, quality of the data. Ask
    this first. Figures in ns are exact."""
    context = runs.open(trace)
    found = context.summary
    lines = [line for line in summary_text(found).splitlines() if line.strip("─")]
    head = [found.part and f"of {found.part}"]
    if step := found.step:
        head.append("step: " + " ".join(f"{name}={getattr(step, name)}" for name in _FIGURES))
        head.append("parts of a mean step, ns: " + " ".join(f"{each.name}={each.duration_ns}" for each in step.parts))
    head.append(f"findings: {len(found.findings)}, see the tool findings" if found.findings else "")
    return answer(lines + [line for line in head if line], [])


@tool(TRACE, parameter("finding", "only this one, finding:2, with all its evidence", str, ""), SKIP)
def findings(runs: Runs, trace: str, finding: str, skip: int) -> str:
    """What is worth fixing in a run, what gains most first: the gain per step as an interval, how sure it is, where,
    what to do, and places that show it."""
    context = runs.open(trace)
    found = list(enumerate(context.summary.findings, 1))
    most = _EVIDENCE
    if finding:
        at, one = finding_of(context, finding)
        found, most = [(at, one)], len(one.evidence)
    lines = [line for at, each in found for line in _finding(context, at, each, most)]
    return answer([f"{_named(context)}: {len(context.summary.findings)} findings"], lines, skip=skip)


def _finding(context: TraceContext, at: int, found: Finding, most: int) -> Iterator[Line]:
    low, high = found.gain_low_ns, found.gain_high_ns
    interval = f"gain per step {format_interval_ns(low, high)} ({low}..{high} ns)"
    gain = "no gain promised" if found.informative else interval
    yield (f"finding:{at} [{found.rule}] {found.what}; {gain}; confidence {found.confidence}",)
    for name, text in (("where", found.where), ("do", found.do)):
        if text:
            yield (f"  {name}: {text}",)
    for evidence in found.evidence[:most]:
        yield (f"  evidence: {evidence_handle(context, evidence)} {evidence.get('text') or ''}".rstrip(),)
    if len(found.evidence) > most:
        yield (f"  {len(found.evidence) - most} more places: finding=finding:{at}",)


def evidence_handle(context: TraceContext, evidence: Evidence) -> str:
    """Return the handle of a place that shows a finding: of the span that fills it, or of the time and the thread."""
    start_ns, duration_ns = evidence["start_ns"], evidence["duration_ns"]
    location = evidence.get("location")
    if location is None:
        return f"time:{start_ns}-{start_ns + duration_ns}"
    spans = context.trace.span_arrays(location, start_ns, start_ns + 1)
    same = spans["row"][(spans["start_ns"] == start_ns) & (spans["duration_ns"] == duration_ns)]
    if len(same):
        return span_handle(location, int(same[0]))
    return f"thread:{location} time:{start_ns}-{start_ns + duration_ns}"


@tool(
    TRACE,
    _RANK,
    parameter("only", "all steps, or only those that take much longer than usual", str, "all", ("all", "outliers")),
    parameter("sort", "column to sort by, the largest first: duration_ns, data_wait_ns; default: by time", str, ""),
    TOP,
    SKIP,
)
def steps(runs: Runs, trace: str, rank: str, only: str, sort: str, top: int, skip: int) -> str:
    """List the steps of a run (iterations of its main loop): start, duration, class, whether one is unusually slow and
    why, and its parts, in ns."""
    context = runs.open(trace)
    process = _process_of(context, place_of(context, _handle("rank", rank)))
    table = context.read.ask("steps", only=only).filter(f"process = {process}")
    table = table.sort(sort) if sort else table
    shown = table.select(["start_ns", *(name for name in table.columns if name not in table.extra and name != "step")])
    lines = [
        [step_handle(context, process, step or 0), *line]
        for step, line in zip(table.integers("step"), rows(shown), strict=True)
    ]
    about = context.steps.of(process).about
    classes = ", ".join(
        f"{each['name']}: {each['count']} steps, median {each['median_ns']:.10g} ns, {each['outliers']} outliers"
        for each in about["classes"]
    )
    head = [
        f"{_named(context)}: steps of process {process}; {table.about}",
        classes,
        "\t".join(["step", *shown.columns]),
    ]
    return answer(head, lines, skip=skip, top=top)


@tool(TRACE, parameter("step", "the step, step:14", str), _RANK, SKIP)
def step(runs: Runs, trace: str, step: str, rank: str, skip: int) -> str:
    """One step: how long it takes beside others of its class, where the time of the thread of the loop goes by part and
    kind of work, and what ran in it on all threads and GPUs."""
    context = runs.open(trace)
    place = place_of(context, f"{_handle('step', step)} {_handle('rank', rank)}")
    if place.steps is None or place.time_ns is None:
        raise UsageError(f"'{step}' is not a handle of a step", do="Example: step:1")
    process, (asked, _) = _process_of(context, place), place.steps
    table = context.read.ask("steps").filter(f"process = {process} and step = {asked}")
    (row,) = table.to_pylist()
    of_class = next(each for each in context.steps.of(process).about["classes"] if each["name"] == row["class"])
    slow = f"; it is an outlier, because of {row['cause']}" if row["outlier"] else ""
    head = [
        f"{_named(context)}: {step_handle(context, process, asked)} of process {process}, class {row['class']}",
        f"start_ns={row['start_ns']} duration_ns={row['duration_ns']}; the median of the {of_class['count']} steps of "
        f"its class is {of_class['median_ns']:.10g} ns{slow}; spans in detail: {row['detail']}",
    ]
    parts = context.read.ask("breakdown", by="step").filter(f"process = {process} and step = {asked}")
    parts = parts.select([name for name in parts.columns if name not in ("rank", "process", "step", "class")])
    ran = Table(flat_profile(context, *place.time_ns))
    lines: list[Line] = [
        ("on the thread of the loop:",),
        parts.columns,
        *rows(parts),
        ("on all threads and GPUs, by exclusive time:",),
        ran.columns,
        *rows(ran.head(_PROFILED)),
    ]
    if len(ran) > _PROFILED:
        lines.append((f"{len(ran) - _PROFILED} more names: the tool ask, analysis=profile, where=step:{asked}",))
    return answer(head, lines, skip=skip)


def _handle(kind: str, text: str) -> str:
    """Return a text as a handle, `14` being one, too."""
    return text if ":" in text or not text else f"{kind}:{text}"


def _process_of(context: TraceContext, place: Place) -> int:
    """Return the process whose steps are meant."""
    return steps_of(context, place.process).process


def _named(context: TraceContext) -> str:
    return "; ".join(filter(None, (context.name, context.read_part)))
