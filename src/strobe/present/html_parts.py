"""Pieces of HTML that need neither script nor style sheet: they keep their look in notebooks and in mails."""

from __future__ import annotations

import html
from collections.abc import Sequence

from strobe.model.terminal import visible
from strobe.model.units import format_ns, format_share
from strobe.present.summary import Part

# Colours that differ visibly on a light and on a dark background; those of the page, in the middle of its two themes.
_COLOURS = {
    "data": "#f0a32f",
    "data_wait": "#f0a32f",
    "forward": "#57a5dd",
    "backward": "#4a6fd0",
    "optimizer": "#3fae90",
    "validation": "#a07ad0",
    "compute": "#4a8bd6",
    "communication": "#d46cac",
    "sync": "#d9652f",
    "copy": "#d8c435",
    "host": "#45a883",
    "idle": "#9aa0aa",
    "rest": "#8b919c",
    "other": "#8b919c",
}


def escape(text: object) -> str:
    """Return text as it can stand in HTML, also between quotes: names come from files of others."""
    return html.escape(visible(str(text)), quote=True)


def colour(name: str) -> str:
    """Return the colour of a part of a step, or of a group of regions."""
    return _COLOURS.get(name, _COLOURS["other"])


def bar(share: float, name: str = "compute") -> str:
    """Return a bar as long as a share from 0 to 1 of where it stands."""
    percent = 100 * min(1.0, max(0.0, share))
    return (
        f'<span style="display:inline-block;height:0.7em;width:{percent:.1f}%;min-width:1px;border-radius:2px;'
        f'background:{colour(name)}"></span>'
    )


def stacked(parts: Sequence[Part], label: str) -> str:
    """Return a bar of the parts of a step and, below, the parts in words; empty if fewer than two take any time."""
    shown = [(part.name.removesuffix("_wait"), part) for part in parts if part.share > 0]
    if len(shown) < 2:
        return ""
    pieces = "".join(
        f'<span style="flex:{part.share:.6f} 1 0;min-width:1px;background:{colour(part.name)}" '
        f'title="{escape(title)} {format_ns(part.duration_ns)}"></span>'
        for title, part in shown
    )
    words = "".join(
        f'<span style="white-space:nowrap;margin-right:1.4em"><span style="display:inline-block;width:0.7em;'
        f'height:0.7em;border-radius:2px;background:{colour(part.name)}"></span> {escape(title)} '
        f"<b>{format_ns(part.duration_ns)}</b> {format_share(part.share)}</span> "
        for title, part in shown
    )
    return (
        f'<div role="img" aria-label="{escape(label)}" style="display:flex;gap:2px;height:1.7em;margin:0.4em 0;'
        f'border-radius:5px;overflow:hidden">{pieces}</div><div>{words}</div>'
    )
