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


def _row(
    section: str,
    name: str,
    text: str = "",
    *,
    count: int | None = None,
    duration_ns: int | None = None,
    share: float | None = None,
) -> _Row:
    return section, name, count, duration_ns, share, text


def _rows(summary: Summary) -> Iterator[_Row]:
    verdict, step, quality = summary.verdict, summary.step, summary.quality
    yield _row("verdict", verdict.kind, verdict.text, share=verdict.share)
    if step:
        why = f"{step.confidence}: {step.reason}"
        yield _row("step", step.class_name, why, count=step.class_count, duration_ns=step.median_ns, share=1.0)
        if step.kept_count < step.count:
            text = f"of {step.count} steps; share: their mean relative to that of all steps"
            yield _row("step", "kept in detail", text, count=step.kept_count, share=step.representativeness)
        for part in step.parts:
            yield _row("step", part.name, part.group, duration_ns=part.duration_ns, share=part.share)
    for each in summary.classes:
        yield _row("class", each.name, count=each.count, duration_ns=each.median_ns)
    for finding in summary.findings:
        text = ": ".join(filter(None, (finding.what, finding.do)))
        yield _row("finding", finding.rule, text, duration_ns=finding.gain_high_ns)
    for hot in summary.hot:
        yield _row("hot", hot.name, summary.hot_kind, count=hot.calls, duration_ns=hot.self_ns, share=hot.share)
    yield _row("quality", "complete" if quality.complete else "incomplete", quality.ended)
    if quality.records:
        yield _row("quality", "records", quality.records)
    for loss in quality.losses:
        yield _row("quality", "loss", loss)
    for remark in quality.remarks:
        yield _row("quality", "remark", remark)
    if quality.source:
        yield _row("quality", "source", quality.source)
    else:
        yield _row("quality", "recording cost", "estimated", share=quality.estimated_cost)
    if quality.folded_count:
        text = "executions in statistics, in addition to the spans"
        yield _row("quality", "folded", text, count=quality.folded_count)
    yield _row("quality", "spans", f"{quality.bytes_per_span:.2f} bytes per span", count=quality.span_count)
