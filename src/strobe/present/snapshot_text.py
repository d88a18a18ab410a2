"""The snapshot as one page of text, with box characters only if the stream can show them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from strobe.model.plugins import Finding
from strobe.model.units import format_interval_ns, format_ns, format_share
from strobe.present.snapshot import Card, Snapshot
from strobe.present.summary import Row, Summary
from strobe.present.text_page import WIDTH, as_shown, bar, page, processes, sentence

MOST_FINDINGS = 3
_NAME, _BAR = 44, 24
_UNIT = re.compile(r"(\d) (ns|us|ms|s|min|h|%)(?!\w)")


def snapshot_text(snapshot: Snapshot, *, unicode: bool = True, width: int = WIDTH) -> str:
    """Return the snapshot as text, ending with a newline. `unicode=False`: plain ASCII."""
    snapshot = as_shown(snapshot)
    summary = snapshot.summary
    width = max(80, min(width, WIDTH))
    blocks = [
        [head(summary), *_wrapped(sentence(summary.verdict.text), width)],
        *(list(_card(card, width)) for card in snapshot.cards),
        *_notes(snapshot, width),
        ["WHAT TO DO FIRST", *(line for each in first_steps(summary) for line in _wrapped(each, width, "  ", "    "))],
        list(_wrapped(trust(summary), width)),
    ]
    return page(blocks, width, unicode=unicode)


def note_text(note: Row) -> str:
    """Return a note as one line: when, for how long, where, on which span, and its text."""
    at = f"{format_ns(note['start_ns'])} after the start"
    parts = [at, f"for {format_ns(note['duration_ns'])}"] if note["duration_ns"] else [at]
    if note["rank"] is not None:
        parts.append(f"rank {note['rank']}")
    parts += [note[name] for name in ("thread", "span") if note[name]]
    return f"{', '.join(parts)}: {note['text']}"


def _notes(snapshot: Snapshot, width: int) -> list[list[str]]:
    lines = [sentence(snapshot.labels)] * bool(snapshot.labels) + [note_text(note) for note in snapshot.notes]
    return [["NOTES", *(line for each in lines for line in _wrapped(each, width, "  ", "    "))]] if lines else []


def head(summary: Summary) -> str:
    """Return the program, its processes and its duration in one line."""
    facts = (summary.program or summary.name, processes(summary.process_count), format_ns(summary.duration_ns))
    return "strobe snapshot · " + " · ".join(facts)


def first_steps(summary: Summary) -> Iterable[str]:
    """Return the most valuable findings, in a few sentences each."""
    if not summary.findings:
        return ["No rule found a problem in this run."]
    return [_advice(finding) for finding in summary.findings[:MOST_FINDINGS]]


def _advice(finding: Finding) -> str:
    parts = [sentence(finding.what)]
    if finding.gain_high_ns and not finding.informative:
        parts.append(f"Gain: {format_interval_ns(finding.gain_low_ns, finding.gain_high_ns)} per step.")
    if finding.do:
        parts.append(sentence(finding.do))
    return " ".join(parts)


def trust(summary: Summary) -> str:
    """Return how far the numbers can be trusted."""
    quality = summary.quality
    lost = "; ".join(quality.losses)
    state = "The recording is complete" if quality.complete else f"The recording is not complete: {lost or 'cut off'}"
    if quality.records:
        state += f" ({quality.records})"
    cost = quality.estimated_cost
    origin = quality.source if cost is None else f"recording took about {format_share(cost)} of the run"
    return f"{state}; {origin}." if origin else f"{state}."


def _card(card: Card, width: int) -> Iterator[str]:
    yield card.title.upper()
    for text in card.sentences:
        yield from _wrapped(text, width, "  ", "  ")
    for figure in card.figures:
        name = figure.name if len(figure.name) <= _NAME else figure.name[: _NAME - 3] + "..."
        line = f"    {name:<{_NAME}}{figure.text:>12}"
        if figure.share is not None:
            line += f"{format_share(figure.share):>8}  {bar(min(1.0, figure.share), _BAR)}"
        yield line


def _wrapped(text: str, width: int, first: str = "", other: str = "") -> Iterable[str]:
    kept = _UNIT.sub("\\1\u00a0\\2", text)  # a number and its unit stay on one line
    lines = textwrap.wrap(kept, width, initial_indent=first, subsequent_indent=other)
    return [line.replace("\u00a0", " ") for line in lines]
