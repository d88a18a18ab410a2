"""The summary of a run as plain data: a verdict, one step and its parts, findings, and the quality of the data."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strobe.advice import rank
from strobe.advice.rank import Checked
from strobe.answers.ask import ask
from strobe.breakdown.growth import waited_for_core_ns
from strobe.breakdown.lost_data import sure_with_losses
from strobe.breakdown.outside_of_calls import outside_of_calls
from strobe.breakdown.recording_cost import recording_cost
from strobe.gpu import out_of_memory
from strobe.model.cancellation import piece, pieces
from strobe.model.kinds import Group
from strobe.model.losses import loss_sentences, records_sentence
from strobe.model.manifest import sealed, unsealed
from strobe.model.plugins import Finding
from strobe.model.private_files import opener
from strobe.model.schema import SCHEMA_VERSION
from strobe.model.units import format_count, format_ns, format_number_of, format_share
from strobe.present.engine import EngineRow, LatencyRow, engine_rows, latency_rows
from strobe.present.gpus import Gpu, gpus
from strobe.present.memory_verdict import memory_verdict
from strobe.present.run_facts import Fact, run_facts
from strobe.present.step_lanes import Lane, step_lanes
from strobe.present.verdict import verdict
from strobe.present.verdict_parts import Verdict
from strobe.ranks.flight_recorder.in_words import in_words
from strobe.ranks.flight_recorder.unfinished import unfinished
from strobe.ranks.mesh.in_words import of_pipelines
from strobe.ranks.step_waits import step_waits
from strobe.steps.steps import find_steps
from strobe.steps.usual_steps import Usual, representativeness, usual_steps
from strobe.sums.samples import NO_STACK
from strobe.sums.weight_unit import weight_unit
from strobe.tables.table import Table
from strobe.trace.definition_rows import process_rows, ranks_of
from strobe.trace.derived.beginning_of_run import beginning_of
from strobe.trace.info import Info
from strobe.trace.quality import counters
from strobe.trace.quality import losses as missing
from strobe.trace.trace import Trace

# Spans read while the user waits: steps and sums of a million spans take about 0.7 s of CPU time.
SOON_SPANS = 6_000_000
LARGEST_JSON_BYTES = 64_000
_FILE = "summary.json"
_STRIP = 48  # bars of a small picture of all steps

Row = dict[str, Any]
# Group of each part of a step, for its colour.
_GROUP_OF_PART = {
    "data_wait": "data",
    "forward": "compute",
    "backward": "compute",
    "optimizer": "compute",
    "validation": "compute",
    "rest": "host",
}
_OF_RUN = ("program", "command", "host", "process_count", "started_unix_ns", "duration_ns")  # as in Info

# Waiting for a core is told from this share of the time of all steps on.
_LEAST_WAIT = 0.05


@dataclass(frozen=True)
class Part:
    """One part of the typical step: its time in ns, and its share of the step, 0 to 1."""

    name: str
    group: Group
    duration_ns: int
    share: float


@dataclass(frozen=True)
class StepSummary:
    """The typical step. Median, p95 and best are over the steady steps of its class.

    mean_ns, to which the parts add up, is over the steady steps of the loop, of all classes.

    rank: whose steps these are, None where the run has no ranks.

    strip_ns: durations of all steps in order; of more than 48 the longest of each of 48 stretches.

    kept_count: steps whose spans are in the trace; statistics hold the others. representativeness: mean duration of
    the typical kept steps, relative to that of all typical steps; None if there are none.
    """

    count: int
    kept_count: int
    representativeness: float | None
    steady_count: int
    warm_up_count: int
    outlier_count: int
    class_name: str
    class_count: int
    median_ns: int
    p95_ns: int
    best_ns: int
    mean_ns: int
    confidence: str
    reason: str
    parts: tuple[Part, ...]
    strip_ns: tuple[int, ...] = ()
    rank: int | None = None


@dataclass(frozen=True)
class StepClass:
    """A class of steps: how many, and the median duration of one, ns."""

    name: str
    count: int
    median_ns: int


@dataclass(frozen=True)
class Hot:
    """A row of the table of hot spots: an operator, or a function if no operator ran.

    Self times are in ns, or in what the profile counts: see `Summary.hot_unit`. `calls` of sampled functions are
    samples.
    """

    name: str
    calls: int
    self_ns: int
    share: float
    self_per_step_ns: float | None


@dataclass(frozen=True)
class TopRow:
    """A row of a table of what takes the time: its own time, ns, its share of the table's, 0 to 1, and that of all rows
    up to it."""

    name: str
    calls: int
    self_ns: int
    share: float
    cumulative: float


@dataclass(frozen=True)
class Top:
    """The first rows of a table by its own time: of the analysis `name`, called `title`. `page` shows all of it."""

    name: str
    title: str
    page: str
    rows: tuple[TopRow, ...]


@dataclass(frozen=True)
class Ranks:
    """How several ranks compare: in a sentence, "" where none is known, and which value of their steps shows it."""

    text: str
    value: str


@dataclass(frozen=True)
class Quality:
    """How far the data can be trusted.

    `state` is that in a few words each: whether they are complete, how many steps are in detail.
    `estimated_cost` is the time of the recorder as a share of the run, 0 to 1; None if another tool recorded the run,
    whose file and format are then in `source`. `losses` are sentences about missing or wrong data; `remarks` are good
    to know, but nothing is missing. `folded_count` executions are in the statistics, in addition to the spans; the
    bytes per span include both. `records` is what became of the records of imported files.
    """

    complete: bool
    state: tuple[str, ...]
    losses: tuple[str, ...]
    remarks: tuple[str, ...]
    ended: str
    estimated_cost: float | None
    source: str
    span_count: int
    folded_count: int
    size_bytes: int
    bytes_per_span: float
    records: str = ""


@dataclass(frozen=True)
class Summary:
    """The content of the end-of-run summary, of `strobe summary` and of the overview page.

    `part` describes the part of the run that was read, if the run is too long to be read while the user waits; else "".
    `checked` are rules that found too little for a finding. `lanes` are of the typical step; without steps, of the run.
    `top` are the tables of kernels, operators, functions and source lines that have rows.
    `engine` has a row for each class of steps that a serving engine marks, or of a loop that generates tokens:
    that has `latency`, too.
    `hot_unit` is ns, or what a profile without times counts (samples, bytes, ...; "units" if that is unknown).
    """

    schema_version: int
    name: str
    path: str
    program: str
    command: tuple[str, ...]
    host: str
    process_count: int
    started_unix_ns: int
    duration_ns: int
    verdict: Verdict
    step: StepSummary | None
    gpus: tuple[Gpu, ...]
    classes: tuple[StepClass, ...]
    findings: tuple[Finding, ...]
    hot_kind: str
    hot_unit: str
    hot: tuple[Hot, ...]
    quality: Quality
    facts: tuple[Fact, ...] = ()
    lanes: tuple[Lane, ...] = ()
    checked: tuple[Checked, ...] = ()
    top: tuple[Top, ...] = ()
    ranks: Ranks | None = None
    engine: tuple[EngineRow, ...] = ()
    latency: tuple[LatencyRow, ...] = ()
    part: str = ""

    def to_json(self) -> str:
        """Return the summary as JSON text of at most 64 kB; evidence, then findings are left out if they do not fit."""
        kept, places = len(self.findings), 5
        while True:
            findings = [replace(finding, evidence=finding.evidence[:places]) for finding in self.findings[:kept]]
            text = json.dumps(asdict(replace(self, findings=tuple(findings))), allow_nan=False)
            if len(text) <= LARGEST_JSON_BYTES or not kept:
                return text
            kept, places = (kept, places - 1) if places else (kept // 2, 0)


def summarise_soon(trace: Trace) -> Summary:
    """Compute the summary of a trace within seconds: of its beginning only if it is long, which `part` then states."""
    return summarise_part(trace, *beginning_of(trace, SOON_SPANS))


def write_summary(trace: Trace) -> Summary:
    """Compute the summary of a trace within seconds, and write it into its folder, whence pages and lists read it."""
    summary = summarise_soon(trace)
    with open(trace.path / _FILE, "w", encoding="utf-8", opener=opener) as file:
        file.write(sealed(summary.to_json()) + "\n")
    return summary


def written_summary(folder: Path) -> str:
    """Return the summary in a trace folder as JSON text.

    "" where there is none, where it is damaged, and where the trace was changed since.
    """
    written = folder / _FILE
    newest = max((file.stat().st_mtime_ns for file in folder.glob("*.blocks")), default=0)
    if not written.is_file() or written.stat().st_mtime_ns < newest:
        return ""
    text = written.read_text(encoding="utf-8", errors="replace").strip()
    if text != sealed(text) or '"lanes": ' not in text:  # an older strobe wrote less
        return ""
    return unsealed(text) + "}"


def summarise_part(trace: Trace, beginning: Trace, part: str) -> Summary:
    """Compute the summary of a part of a trace (`Trace.beginning`), with the size and end of the whole run."""
    found = summarise(beginning)
    if not part:
        return found
    info = trace.info
    quality = replace(found.quality, **_size(info))
    return replace(found, part=part, process_count=info.process_count, duration_ns=info.duration_ns, quality=quality)


def summarise(trace: Trace) -> Summary:
    """Compute the summary of a trace."""
    info = trace.info
    # As much of the work as they are of a training's with 6 million spans of 111 ranks.
    with piece(0.0, 0.3):
        usual = usual_steps(trace)
    with piece(0.3, 0.73):
        tables = {name: ask(trace, name) for name, *_ in pieces(_TOPS)}
        hot_kind, hot = _hot(trace, tables)
    with piece(0.73, 1.0):
        on_gpus = gpus(trace)
        found, checked = rank.judged(trace)
        engine = engine_rows(trace)
        latency = latency_rows(trace) if engine else ()
    return Summary(
        schema_version=SCHEMA_VERSION,
        name=trace.path.name,
        path=str(trace.path.absolute()),
        **{name: getattr(info, name) for name in _OF_RUN},
        verdict=_with_failures(trace, _verdict(trace, usual, on_gpus, hot)),
        step=_step(trace, usual, bool(engine)) if usual else None,
        gpus=on_gpus,
        classes=_classes(usual) if usual else (),
        findings=tuple(found),
        hot_kind=hot_kind,
        hot_unit=_hot_unit(trace),
        hot=hot,
        quality=_quality(trace, usual),
        facts=run_facts(trace),
        lanes=step_lanes(trace, usual, on_gpus),
        checked=tuple(checked),
        top=tuple(_tops(tables)),
        engine=engine,
        latency=latency,
        ranks=_ranks(trace) if info.process_count > 1 else None,
    )


def _verdict(trace: Trace, usual: Usual | None, on_gpus: tuple[Gpu, ...], hot: tuple[Hot, ...]) -> Verdict:
    if dumped := in_words(trace):
        return Verdict("unfinished" if unfinished(trace) else "finished", dumped)
    if about_memory := memory_verdict(trace):
        return about_memory
    if trace.span_count + trace.folded_count or any(
        len(trace.side_table(name)) for name in ("samples", "sample_totals")
    ):
        unit = _hot_unit(trace)
        what = "the recorded time is" if unit == "ns" else f"all {unit} are"
        known = hot and hot[0].name != NO_STACK
        busiest = f"{format_share(hot[0].share)} of {what} in {hot[0].name} itself" if known else ""
        found = verdict(trace, usual, on_gpus, busiest)
        return replace(found, confidence=sure_with_losses(found.confidence, trace))
    counted = counters(trace)
    if "unrecorded_ms" in counted:  # 0 where the program ended within a millisecond
        closed = max(1, counted["unrecorded_ms"]) * 10**6
        text = "nothing was recorded: the recording window never opened, or nothing ran while it was open"
        return Verdict("empty", f"{text} (it was closed for {format_ns(closed)})")
    if trace.job.imported:
        tables = {"memory": trace.side_table("allocations"), "metrics": trace.metrics()}
        verb = next((name for name, table in tables.items() if len(table)), "")
        where = f": `strobe {verb}` shows what is" if verb else ""
        return Verdict("empty", f"nothing that ran is in this file{where}")
    if loss_sentences(counted):
        return Verdict("empty", "nothing of what was recorded is left: see what is lost")
    return Verdict("empty", "nothing was recorded: the program ran neither a Python function nor an operator")


def _with_failures(trace: Trace, found: Verdict) -> Verdict:
    """Return a verdict that begins with the last allocation that failed."""
    failed = out_of_memory.failures(trace)
    return replace(found, text=f"{out_of_memory.in_words(failed[-1])}. {found.text}") if failed else found


def _ranks(trace: Trace) -> Ranks | None:
    """Return how ranks compare: stages of a pipeline by its bubbles, others by collectives, waits or durations."""
    if len({each.rank for each in process_rows(trace)} - {None}) < 2 or not find_steps(trace).processes:
        return None
    if text := of_pipelines(trace):  # stages wait for each other whatever nodes they run on
        return Ranks(text, "wait")
    if late := rows_of(ask(trace, "stragglers")):
        most = max(late, key=lambda row: row["delay_ns"])
        text = "no rank came later to collectives than clocks may be wrong"
        if most["delay_ns"] > 0:
            text = f"rank {most['rank']} delays collectives most: it came last to {most['last']} of "
            text += f"{most['collectives']}, which could have begun {format_ns(most['delay_ns'])} sooner in all"
        return Ranks(text, "lateness")
    waits = step_waits(trace)
    if waits is None or not waits.wait_ns:
        return Ranks("", "duration")
    return Ranks(f"ranks wait {format_share(waits.share)} of their steps for one another", "wait")


def _hot_unit(trace: Trace) -> str:
    unit = None if trace.span_count else weight_unit(trace)
    return "ns" if unit is None else unit or "units"


def _step(trace: Trace, usual: Usual, of_engine: bool) -> StepSummary:
    steps = usual.steps
    duration = steps.duration_ns[usual.members]
    begins = np.arange(min(len(steps), _STRIP)) * len(steps) // min(len(steps), _STRIP)
    parts = tuple(
        Part(name, _GROUP_OF_PART[name], round(part), part / usual.mean_ns)
        for name, part in usual.parts_ns.items()
        if part or (name != "validation" and not of_engine)  # few steps have one; engines do not train
    )
    return StepSummary(
        count=len(steps),
        kept_count=int(steps.kept.sum()),
        representativeness=representativeness(usual),
        steady_count=usual.count,
        warm_up_count=int(steps.warm_up.sum()),
        outlier_count=int((steps.outlier & steps.steady).sum()),
        class_name=usual.class_name,
        class_count=int(usual.members.sum()),
        median_ns=round(usual.median_ns),
        p95_ns=round(float(np.quantile(duration, 0.95))),
        best_ns=int(duration.min()),
        mean_ns=round(usual.mean_ns),
        confidence=steps.confidence,
        reason=steps.reason,
        parts=parts,
        strip_ns=tuple(np.maximum.reduceat(steps.duration_ns, begins).tolist()),
        rank=ranks_of(trace)[steps.process],
    )


def _classes(usual: Usual) -> tuple[StepClass, ...]:
    steps = usual.steps
    names = steps.class_names
    return tuple(
        StepClass(str(name), count, round(float(np.median(steps.duration_ns[names == name]))))
        for name, count in Counter(steps.classes).most_common(12)
    )


def _hot(trace: Trace, tables: Mapping[str, Table]) -> tuple[str, tuple[Hot, ...]]:
    """Return the operators, or functions if there are none, with the most self time; sampled ones with CPU time."""
    if trace.span_count and weight_unit(trace) is not None:  # times of annotations beside bytes of functions
        return "functions", ()
    for kind, analysis in (("operators", "operators"), ("functions", "profile")):
        if rows := [row for row in rows_of(tables[analysis].head(5)) if row["self_ns"] is not None]:
            return kind, tuple(
                Hot(row["name"], row["calls"], row["self_ns"], row["share"] or 0.0, row["self_per_step_ns"])
                for row in rows
            )
    sampled = rows_of(ask(trace, "samples").head(5)) if not any(each.python for each in process_rows(trace)) else []
    return "sampled functions" if sampled else "functions", tuple(
        Hot(row["name"], row["samples"], row["python_ns"] + row["native_ns"], row["share"], None)
        for row in sampled
        if row["share"]
    )


# Tables whose first rows are shown: analysis, title, page, and columns of name and own time.
_TOPS = (
    ("kernels", "kernels", "kernels", "kernel", "total_ns"),
    ("operators", "operators", "operators", "name", "self_ns"),
    ("profile", "functions", "profile", "name", "self_ns"),
    ("lines", "source lines", "profile", "line", "total_ns"),
)
_TOP_ROWS = 6


def _tops(tables: Mapping[str, Table]) -> Iterator[Top]:
    """Yield the tables that have rows with times, in their own order: the rows with most time first."""
    for name, title, page, label, time in _TOPS:
        rows = tables[name].to_arrow()
        if name == "profile":  # it has what ran on GPUs, too: that is no time of the host
            rows = rows.filter(pc.invert(pc.is_in(rows.column("role"), pa.array(["kernel", "copy"]))))
        whole, total, shown = pc.sum(rows.column(time)).as_py() or 0, 0, []
        for row in rows.slice(0, _TOP_ROWS).to_pylist() if whole else ():
            if not row[time]:
                continue
            total += row[time]
            words, calls = row[label], row.get("calls", row.get("hits")) or 0
            if name == "lines":
                words = f"{os.path.basename(row['file'])}:{words}  {row['function']}"
            shown.append(TopRow(words, calls, round(row[time]), row[time] / whole, total / whole))
        if shown:
            yield Top(name, title, page, tuple(shown))


_REMARKS = ("other_pythons", "other_programs", "gpus_not_read", "left_out", "written_for")
# Rows of the quality table about GPUs that are not losses. Counters have sentences of their own.
_NO_GPU_LOSS = ("gpu_recorded_with",)


def _quality(trace: Trace, usual: Usual | None) -> Quality:
    info = trace.info
    total = counters(trace)
    processes, quality = rows_of(trace.processes), rows_of(trace.quality)
    losses = missing(trace)
    notes = [(row["what"], str(row["text"])) for row in quality if row["value"] is None or row["process"] is None]
    losses += dict.fromkeys(text for what, text in notes if what.startswith("gpu_") and what not in _NO_GPU_LOSS)
    remarks = [text for what, text in notes if what in _REMARKS]
    if usual:
        waited = waited_for_core_ns(trace, usual.steps.process, usual.steps.start_ns, usual.steps.end_ns)
        share = waited / max(1, int(usual.steps.duration_ns.sum()))
        if share >= _LEAST_WAIT:
            remarks.append(f"other programs ran: the main thread waited for a core {format_share(share)} of its time")
    remarks += filter(None, [outside_of_calls(trace) if trace.span_count else ""])
    lines = _asked_for(trace, "lines")
    if lines and not len(trace.side_table("lines")):
        remarks.append(f"--lines {lines}: no line was counted, because no function of that name ran")
    ends = {row["end_state"] for row in processes if row["main"]}
    complete = not losses and ends <= {"closed", "exited", "replaced", "left"}
    state = ["complete" if complete else "not complete"]
    if usual and not (kept := usual.steps.kept).all():
        state.append(f"{format_count(int(kept.sum()))} of {format_number_of(len(kept), 'step')} in detail")
    return Quality(
        complete=complete,
        state=tuple(state),
        losses=tuple(losses),
        remarks=tuple(remarks),
        estimated_cost=recording_cost(trace),
        source=info.source,
        records=records_sentence(total),
        **_size(info),
    )


def _size(info: Info) -> dict[str, Any]:
    known = {name: getattr(info, name) for name in ("ended", "span_count", "folded_count", "size_bytes")}
    return {**known, "bytes_per_span": info.size_bytes / max(1, info.span_count + info.folded_count)}


def _asked_for(trace: Trace, option: str) -> str:
    """Return the text of an option with which the trace was recorded."""
    options = trace.job.settings.get("options")
    setting = options.get(option) if isinstance(options, Mapping) else None
    return str(setting.get("value", "")) if isinstance(setting, Mapping) else ""


def rows_of(table: Table) -> list[Row]:
    """Return the rows of a table."""
    rows: list[Row] = table.to_arrow().to_pylist()
    return rows
