"""What the summary and the snapshot share as pages of text: blocks between two rules, bars, and plain ASCII."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TextIO, TypeVar

from strobe.model.terminal import visible_line
from strobe.model.units import format_count
from strobe.present.text import supports

Content = TypeVar("Content")
WIDTH = 100
# A first word that is one, and no name of a function: those keep their case.
_WORD_FIRST = re.compile(r"[a-z][a-z'-]*[,:;]?( |$)(?!itself )")
_BOX, _ASCII = "─█▌·…", "-#=-."


def as_shown(content: Content) -> Content:
    """Return the content of a page with all its texts, on every level, as they can be shown within a line."""
    if isinstance(content, str):
        return visible_line(content)  # type: ignore[return-value]
    if isinstance(content, tuple):
        return tuple(map(as_shown, content))  # type: ignore[return-value]
    if not is_dataclass(content) or isinstance(content, type):
        return content
    return replace(content, **{each.name: as_shown(getattr(content, each.name)) for each in fields(content)})


def has_box_characters(stream: TextIO) -> bool:
    """Return whether a stream can print the characters of a page beyond ASCII."""
    return supports(_BOX, stream)


def page(blocks: Iterable[Sequence[str]], width: int, *, unicode: bool) -> str:
    """Return the blocks that have lines, with an empty line between them. `unicode=False`: plain ASCII."""
    rule = "─" * width
    lines = [rule, *(line for block in blocks if block for line in (*block, ""))]
    lines[-1] = rule
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text if unicode else text.translate(str.maketrans(_BOX, _ASCII)).encode("ascii", "replace").decode("ascii")


def bar(share: float, width: int) -> str:
    """Return a bar as long as a share from 0 to 1 of `width` characters, to half a character."""
    filled = share * width
    return "█" * int(filled) + ("▌" if filled % 1 >= 0.5 else "")


def sentence(text: str) -> str:
    """Return a text as a sentence, with a capital and a full stop."""
    begin = text[:1].upper() if _WORD_FIRST.match(text) else text[:1]
    return f"{begin}{text[1:]}" + ("" if text.endswith(".") else ".")


def steps(count: int) -> str:
    """Return a number of steps in words."""
    return f"{format_count(count)} step" + ("s" if count != 1 else "")


def processes(count: int) -> str:
    """Return a number of processes in words."""
    return f"{count} process" + ("es" if count != 1 else "")
