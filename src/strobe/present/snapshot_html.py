"""The snapshot as one file of HTML: no script, nothing from the network, light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Iterable

from strobe.model.units import format_ns, format_share
from strobe.present.html_parts import bar, escape, stacked
from strobe.present.snapshot import Card, Figure, Snapshot
from strobe.present.snapshot_text import first_steps, head, note_text, trust
from strobe.present.summary import StepSummary, Summary
from strobe.present.text_page import sentence

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --weak: color-mix(in srgb, CanvasText 65%, Canvas); }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1.2rem;
  background: Canvas; color: CanvasText; }
h1 { font-size: 1.25rem; margin: 0.2rem 0 1.2rem; }
h2 { font-size: 1rem; margin: 0 0 0.5rem; }
p { margin: 0.3rem 0; }
.head, .trust { color: var(--weak); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1rem; margin: 1rem 0; }
section { border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.1rem; }
table { border-collapse: collapse; width: 100%; margin-top: 0.6rem; font-size: 0.9em; table-layout: fixed; }
th { text-align: left; font-weight: 400; width: 40%; overflow-wrap: anywhere; }
td.number { text-align: right; width: 6.5em; white-space: nowrap; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 6px 2px 0; border-top: 1px solid var(--line); }
ol { margin: 0; padding-left: 1.2rem; }
section { margin: 1rem 0; }
.cards section { margin: 0; }
.wide { overflow: auto; max-height: 30rem; }
.wide table { width: auto; table-layout: auto; }
.wide th, .wide td { padding: 2px 8px; white-space: nowrap; width: auto; }
.wide thead th { position: sticky; top: 0; background: Canvas; }
.wide td.number { width: auto; }
canvas, svg { width: 100%; height: auto; display: block; }
@page { margin: 12mm; }
@media print {
  :root { color-scheme: light; }
  body { max-width: none; margin: 0; padding: 0; font-size: 10pt; print-color-adjust: exact; }
  .cards { display: block; }
  .cards section { margin: 1rem 0; }
  .wide { overflow: visible; max-height: none; font-size: 7pt; }
  .wide table { width: 100%; }
  .wide th, .wide td { white-space: normal; overflow-wrap: anywhere; padding: 1px 3px; }
  .wide td[style*="right"] { white-space: nowrap; }
  .wide thead th { position: static; }
  .cards section, tr, li, canvas, svg { break-inside: avoid; }
  h2 { break-after: avoid; }
  .on-screen { display: none; }
}
"""
SECTIONS = ("verdict", "step", "findings", "notes", "cards", "quality")
_COLOURS = {"step_trace": "forward", "operators": "compute", "data": "data", "timeline": "host"}


def snapshot_html(page: Snapshot) -> str:
    """Return the whole document."""
    return document(page.summary, sections(page).values())


def sections(page: Snapshot) -> dict[str, str]:
    """Return the HTML of each of SECTIONS."""
    summary = page.summary
    cards = "\n".join(_card(card) for card in page.cards)
    advice = "".join(f"<li>{escape(text)}</li>" for text in first_steps(summary))
    parts = (
        f"<h1>{escape(sentence(summary.verdict.text))}</h1>",
        _step(summary.step) if summary.step else "",
        f"<section><h2>What to do first</h2><ol>{advice}</ol></section>",
        _notes(page),
        f'<div class="cards">\n{cards}\n</div>',
        f'<p class="trust">{escape(trust(summary))}</p>',
    )
    return dict(zip(SECTIONS, parts, strict=True))


def document(summary: Summary, parts: Iterable[str], scripts: str = "'none'") -> str:
    """Return a document of these parts. The browser must load nothing, whatever the names in the trace are.

    `scripts`: which may run, as a source of its security policy.
    """
    body = "\n".join(filter(None, parts))
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {scripts}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(summary.program or summary.name)} - strobe snapshot</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<p class="head">{escape(head(summary))}</p>
{body}
</main>
</body>
</html>
"""


def _step(step: StepSummary) -> str:
    title = f"One step, mean of {step.steady_count}: {format_ns(step.mean_ns)}"
    drawn = stacked(step.parts, title)
    return f"<section><h2>{escape(title)}</h2>{drawn}</section>" if drawn else ""


def _notes(page: Snapshot) -> str:
    if not page.notes and not page.labels:
        return ""
    items = "".join(f"<li>{escape(note_text(note))}</li>" for note in page.notes)
    labels = f"<p>{escape(sentence(page.labels))}</p>" if page.labels else ""
    return f'<section id="notes"><h2>Notes</h2>{labels}<ol>{items}</ol></section>'


def _card(card: Card) -> str:
    sentences = "".join(f"<p>{escape(text)}</p>" for text in card.sentences)
    rows = "".join(_row(figure, _COLOURS[card.name]) for figure in card.figures)
    table = f"<table>{rows}</table>" if rows else ""
    return f'<section id="{card.name}"><h2>{escape(card.title)}</h2>{sentences}{table}</section>'


def _row(figure: Figure, colour: str) -> str:
    share = "" if figure.share is None else format_share(figure.share)
    drawn = "" if figure.share is None else bar(figure.share, colour)
    return (
        f'<tr><th scope="row">{escape(figure.name)}</th><td class="number">{escape(figure.text)}</td>'
        f'<td class="number">{escape(share)}</td><td>{drawn}</td></tr>'
    )
