"""A run on one page, as plain data: its summary, and four cards of sentences and numbers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from operator import itemgetter

from strobe.answers.ask import ask
from strobe.model.schema import SCHEMA_VERSION
from strobe.model.units import format_bytes, format_count, format_ns, format_share
from strobe.present.summary import Row, Summary, rows_of, summarise
from strobe.present.text_page import sentence
from strobe.tables.table import Table
from strobe.trace.trace import Trace

_MOST_TYPES = 5
# Longest acceptable time before the forward pass of a step; MindInsight advises from there on.
_LONG_INTERVAL_NS = 500_000


@dataclass(frozen=True)
class Figure:
    """A number with its name. `unit` is ns, bytes, or empty for a count; `share` is a part of a whole, 0 to 1."""

    name: str
    value: float | None
    unit: str = ""
    share: float | None = None

    @property
    def text(self) -> str:
        """The number for people; empty if there is none."""
        if self.value is None:
            return ""
        if self.unit == "ns":
            return format_ns(self.value)
        return format_bytes(self.value) if self.unit == "bytes" else format_count(round(self.value))


@dataclass(frozen=True)
class Card:
    """One question about the run: its answer in sentences, and the numbers behind it."""

    name: str
    title: str
    sentences: tuple[str, ...]
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The content of the page. Its cards are step trace, operators, data preparation and timeline.

    `notes`: the rows of `strobe notes`; `labels`: those of the run, in words.
    """

    schema_version: int
    summary: Summary
    cards: tuple[Card, ...]
    notes: tuple[Row, ...] = ()
    labels: str = ""

    def to_json(self) -> str:
        """Return schema_version, program, processes, duration_ns, verdict, cards and notes as JSON text."""
        summary = self.summary
        body = {
            "schema_version": self.schema_version,
            "program": summary.program,
            "processes": summary.process_count,
            "duration_ns": summary.duration_ns,
            "verdict": asdict(summary.verdict),
            "cards": [asdict(card) for card in self.cards],
            "notes": [dict(row) for row in self.notes],
        }
        return json.dumps(body, allow_nan=False)


def snapshot(trace: Trace) -> Snapshot:
    """Compute the page from the answers of analyses."""
    cards = (_step_trace(trace), _operators(trace), _data(trace), _timeline(trace))
    noted = ask(trace, "notes")
    return Snapshot(SCHEMA_VERSION, summarise(trace), cards, tuple(rows_of(noted)), noted.about)


def _missing(name: str, title: str, table: Table) -> Card:
    return Card(name, title, (sentence(table.note),))


def _worst(table: Table, column: str) -> tuple[Row, str]:
    """Return the row of the worst process, and its name in brackets if there are others."""
    rows = rows_of(table)
    worst = max(rows, key=itemgetter(column))
    if len(rows) == 1:
        return worst, ""
    who = f"process {worst['process']}" if worst["rank"] is None else f"rank {worst['rank']}"
    return worst, f" ({who}, the worst of {len(rows)})"


def _step_trace(trace: Trace) -> Card:
    """MindInsight's step trace: the time before forward and backward, the passes, and the tail."""
    table = ask(trace, "step_trace")
    title = "Step trace"
    if not len(table):
        return _missing("step_trace", title, table)
    row, who = _worst(table, "duration_ns")
    whole = f"A step takes {format_ns(row['duration_ns'])} on average{who}"
    figures = [Figure("steps", row["steps"]), Figure("step", row["duration_ns"], "ns", 1.0)]
    if not row["forward_backward_ns"]:
        text = f"{whole}; no forward or backward pass was recognised."
        return Card("step_trace", title, (text,), tuple(figures))
    sentences = [
        f"{whole}: {format_share(row['interval_share'])} before its forward pass, "
        f"{format_share(row['forward_backward_share'])} in forward and backward, "
        f"{format_share(row['tail_share'])} after them."
    ]
    if row["interval_ns"] > _LONG_INTERVAL_NS:
        before = f"{format_ns(row['interval_ns'])} pass before the forward pass"
        sentences.append(
            f"{before}, {format_ns(row['wait_ns'])} of them waiting for data: check data preparation first."
            if row["wait_ns"] > row["interval_ns"] / 2
            else f"{before}, mostly not waiting for data: check what the loop does between its steps."
        )
    figures += [
        Figure("iteration interval", row["interval_ns"], "ns", row["interval_share"]),
        Figure("forward and backward", row["forward_backward_ns"], "ns", row["forward_backward_share"]),
        Figure("tail", row["tail_ns"], "ns", row["tail_share"]),
    ]
    return Card("step_trace", title, tuple(sentences), tuple(figures))


def _operators(trace: Trace) -> Card:
    """MindInsight's ranking of operator types, by GPU time if there is any; else of kernels, or functions."""
    table = ask(trace, "operators", by="type")
    rows = rows_of(table)
    on_gpu = any(row["device_self_ns"] for row in rows)
    ranking = ("Operator ranking", "operators" + (" on GPUs" if on_gpu else ""), "type")
    column = "device_self_ns" if on_gpu else "self_ns"
    if not rows and (rows := rows_of(ask(trace, "kernels"))):
        ranking, column = ("Kernel ranking", "kernels", "kernel"), "total_ns"
    if not rows:
        table = ask(trace, "profile")
        rows, ranking = rows_of(table), ("Function ranking", "functions", "name")
    title, kind, name = ranking
    if not rows:
        return _missing("operators", title, table)
    times = Counter[str]()  # GPUs and ranks in one
    for row in rows:
        times[str(row[name])] += row[column]
    everything = times.total() or 1
    top = times.most_common(_MOST_TYPES)
    part = sum(time for _, time in top) / everything
    sentences = (
        f"'{top[0][0]}' takes {format_share(top[0][1] / everything)} of the time of all {kind}; "
        f"{'the first' if len(times) > len(top) else 'all'} {len(top)} of {len(times)} take {format_share(part)}.",
    )
    figures = tuple(Figure(each, time, "ns", time / everything) for each, time in top)
    return Card("operators", title, sentences, figures)


def _data(trace: Trace) -> Card:
    """MindInsight's data preparation: the verdict, and how often no batch was ready."""
    title = "Data preparation"
    table = ask(trace, "data_pipeline")
    if not len(table):
        return _missing("data", title, table)
    row, who = _worst(table, "wait_share")
    wait = f"waits {format_ns(row['wait_ns'])} ({format_share(row['wait_share'])}) of a step on average for data{who}"
    sentences = [
        {
            "data processing": f"Batches are not ready in time: the loop {wait}.",
            "data transmission": f"Batches are ready, but do not arrive in time: the loop {wait}, and the copy to the "
            f"GPU delays it by {format_ns(row['copy_ns'])}.",
        }.get(row["verdict"], f"The data pipeline keeps up: the loop {wait}.")
    ]
    if row["asked"] is not None:
        sentences.append(f"In {row['empty']} of {row['asked']} requests no batch was ready.")
    if row["verdict"] == "data processing" and row["predicted_gain"]:
        gain = format_share(row["predicted_gain"])
        sentences.append(
            f"With enough workers a step is expected to take {format_ns(row['predicted_step_ns'])}, {gain} less."
        )
    sentences.append(sentence(row["advice"]))
    figures = [
        Figure("wait for data", row["wait_ns"], "ns", row["wait_share"]),
        Figure("copy to the GPU", row["copy_ns"] or None, "ns", row["copy_share"]),
        Figure("times without a batch", row["empty"], "", row["empty"] / row["asked"] if row["asked"] else None),
        Figure("workers", row["workers"]),
    ]
    return Card("data", title, tuple(sentences), tuple(figure for figure in figures if figure.value is not None))


def _timeline(trace: Trace) -> Card:
    """MindInsight's timeline summary of the whole run: operators, streams, kernels, and their executions."""
    used = [row for row in rows_of(trace.locations) if row["kind"] == "stream" and row["span_count"]]
    # A stream that ran several things at once has several locations with its number.
    streams = len({(row["process"], row["device"], row["thread_id"]) for row in used})
    rows = rows_of(ask(trace, "operators", step="all"))
    operators = [row for row in rows if row["calls"] is not None]
    kernels = rows_of(ask(trace, "kernels")) if streams else []
    executions = sum(row["calls"] for row in operators)
    on_host = sum(row["self_ns"] for row in operators)
    on_gpu = sum(row["total_ns"] for row in kernels)
    names = {row["name"] for row in kernels}
    sentences, figures = [], [Figure("streams", streams)]
    if operators:
        sentences.append(
            f"{format_count(len(operators))} operators run {format_count(executions)} times and take "
            f"{format_ns(on_host)} on the host."
        )
        figures += [
            Figure("total operator time", on_host, "ns"),
            Figure("operators", len(operators)),
            Figure("executions", executions),
        ]
    elif rows:
        sentences.append(f"Kernels name {format_count(len(rows))} operations of XLA.")
    else:
        sentences.append("No framework operators were recorded.")
    if kernels:
        launched = sum(row["calls"] for row in kernels)
        sentences.append(
            f"{format_count(len(names))} kernels run {format_count(launched)} times on {format_count(streams)} "
            f"stream{'' if streams == 1 else 's'} and take {format_ns(on_gpu)} in total."
        )
        figures += [
            Figure("total kernel time", on_gpu, "ns"),
            Figure("kernels", len(names)),
            Figure("kernel executions", launched),
        ]
    return Card("timeline", "Timeline", tuple(sentences), tuple(figures))
