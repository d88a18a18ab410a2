"""The summary as a table, with a row per fact, for filtering, sorting and CSV."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.model.schema import Column
from strobe.present.summary import Summary
from strobe.tables.table import Table, make_table

COLUMNS = (
    Column("section", "string", "", "verdict, step, class, finding, hot, or quality"),
    Column("name", "string", "", "part of the step, class of steps, rule, region, or fact"),
    Column("count", "int64", "", "steps of the class, calls of the region"),
    Column("duration_ns", "int64", "ns", "of the typical step; largest gain of a finding; self time of a region"),
    Column("share", "float64", "", "of the step, of the run, or of all self time, 0 to 1"),
    Column("text", "string", "", "the meaning in words"),
)
_Row = tuple[str, str, int | None, int | None, float | None, str]


def summary_table(summary: Summary) -> Table:
    """Return the facts of a summary in its own order."""
    return make_table(COLUMNS, list(_rows(summary)), name="summary")


def _rows(summary: Summary) -> Iterator[_Row]:
    verdict, step, quality = summary.verdict, summary.step, summary.quality
    yield ("verdict", verdict.kind, None, None, verdict.share, verdict.text)
    if step:
        yield ("step", step.class_name, step.class_count, step.median_ns, 1.0, f"{step.confidence}: {step.reason}")
        if step.kept_count < step.count:
            facts = (step.kept_count, None, step.representativeness)
            yield (
                "step",
                "kept in detail",
                *facts,
                f"of {step.count} steps; share: their mean relative to that of all steps",
            )
        for part in step.parts:
            yield ("step", part.name, None, part.duration_ns, part.share, part.group)
    for each in summary.classes:
        yield ("class", each.name, each.count, each.median_ns, None, "")
    for finding in summary.findings:
        yield (
            "finding",
            finding.rule,
            None,
            finding.gain_high_ns,
            None,
            ": ".join(filter(None, (finding.what, finding.do))),
        )
    for hot in summary.hot:
        yield ("hot", hot.name, hot.calls, hot.self_ns, hot.share, summary.hot_kind)
    yield ("quality", "complete" if quality.complete else "incomplete", None, None, None, quality.ended)
    for loss in quality.losses:
        yield ("quality", "loss", None, None, None, loss)
    for remark in quality.remarks:
        yield ("quality", "remark", None, None, None, remark)
    if quality.source:
        yield ("quality", "source", None, None, None, quality.source)
    else:
        yield ("quality", "recording cost", None, None, quality.estimated_cost, "estimated")
    if quality.folded_count:
        yield (
            "quality",
            "folded",
            quality.folded_count,
            None,
            None,
            "executions in statistics, in addition to the spans",
        )
    yield ("quality", "spans", quality.span_count, None, None, f"{quality.bytes_per_span:.2f} bytes per span")
