"""Cards of traces and tables for Jupyter: small pieces of HTML without scripts, in the colours of the notebook."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from strobe.model.units import format_count, format_ns, format_share
from strobe.present.html_parts import bar, escape, stacked
from strobe.present.snapshot_text import first_steps, trust
from strobe.present.summary import Summary, summarise
from strobe.present.text import people
from strobe.present.text_page import processes, sentence, steps
from strobe.tables.table import Table
from strobe.trace.trace import Trace

MOST_ROWS = 200
# Characters of a cell, and of its tooltip.
_MOST_CELL, _MOST_TIP = 80, 400
_CARD = "max-width:900px;border:1px solid rgba(128,128,128,0.4);border-radius:8px;padding:10px 14px;line-height:1.45"
_WEAK = "opacity:0.72"


def trace_card(trace: Trace, below: Iterable[str] = ()) -> str:
    """Return the card of a trace: the verdict, the typical step as a bar, and the three most valuable findings.

    `below`: sentences at the end.
    """
    summary = summarise(trace)
    findings = "".join(f"<li>{escape(text)}</li>" for text in first_steps(summary)) if summary.findings else ""
    listed = f'<ol style="margin:0.6em 0 0.4em;padding-left:1.4em">{findings}</ol>' if findings else ""
    return (
        f'<div style="{_CARD}"><div style="{_WEAK}">{escape(_facts(summary))}</div>'
        f'<div style="font-weight:600;font-size:1.1em">{escape(sentence(summary.verdict.text))}</div>'
        f"{_step(summary)}{listed}{_weak(trust(summary), *below)}</div>"
    )


def framed_card(trace: Trace, address: str, height: int, proxied: bool) -> str:
    """Return the card of a trace above its live page, which is `height` pixels high.

    Without an address, a sentence takes the place of the page. A saved notebook keeps the card wherever it is read.
    """
    command = f"strobe view {shlex.quote(str(trace.path))}"
    if not address:
        return trace_card(trace, [f"This notebook cannot show the page itself; in a terminal: {command}"])
    frame = (
        f'<iframe src="{escape(address)}" title="strobe: {escape(trace.path.name)}" width="100%" height="{height}" '
        'style="border:1px solid rgba(128,128,128,0.4);border-radius:8px;margin-top:8px"></iframe>'
    )
    lines = ["The page below is there as long as this kernel runs."]
    if not proxied:
        lines.append(
            "If it stays empty, the browser does not reach the kernel's machine: install jupyter-server-proxy beside "
            f"JupyterLab, or in a terminal there: {command} --remote"
        )
    return trace_card(trace, lines) + frame


def _weak(*lines: str) -> str:
    return "".join(f'<div style="{_WEAK}">{escape(line)}</div>' for line in lines)


def _facts(summary: Summary) -> str:
    step = [steps(summary.step.count)] if summary.step else []
    facts = [summary.program or summary.name, processes(summary.process_count), format_ns(summary.duration_ns)]
    return " · ".join(["strobe", *facts, *step])


def _step(summary: Summary) -> str:
    """Return the typical step as a bar of its parts; without one, the activity of the GPUs."""
    if step := summary.step:
        title = f"one step, mean of {format_count(step.steady_count)}: {format_ns(step.mean_ns)}"
        if drawn := stacked(step.parts, title):
            return f'<div style="margin-top:0.5em">{escape(title)}</div>{drawn}'
    rows = [f"{gpu.name} computes {format_share(gpu.computation)} {bar(gpu.computation)}" for gpu in summary.gpus[:4]]
    return "".join(f"<div>{row}</div>" for row in rows)


def table_card(table: Table, most_rows: int = MOST_ROWS) -> str:
    """Return at most `most_rows` rows of a table with units, and the number of further rows."""
    shown = table.head(most_rows)
    shown = shown.select([name for name in shown.columns if name not in shown.extra])
    headings, numeric, rows = people(shown)
    align = ["right" if right else "left" for right in numeric]
    head = "".join(
        f'<th style="text-align:{side}">{escape(name)}</th>' for name, side in zip(headings, align, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(cell, side) for cell, side in zip(row, align, strict=True)) + "</tr>" for row in rows
    )
    title = " · ".join(filter(None, (table.name, table.about)))
    more = [f"{format_count(len(table) - len(rows))} more rows"] if len(table) > len(rows) else []
    more += [f"more columns: {', '.join(table.extra)}"] if table.extra and rows else []
    lines = [sentence(table.note)] if table.note else []
    lines += ["; ".join(more)] if more else []
    drawn = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div>{_weak(title)}{drawn}{_weak(*lines)}</div>"


def _cell(text: str, side: str) -> str:
    if len(text) <= _MOST_CELL:
        return f'<td style="text-align:{side}">{escape(text)}</td>'
    return f'<td style="text-align:{side}" title="{escape(text[:_MOST_TIP])}">{escape(text[:_MOST_CELL])}…</td>'
