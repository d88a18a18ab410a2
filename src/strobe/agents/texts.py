"""Answers as text of at most 2,000 tokens: what fits, and a sentence that names how to get the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from strobe.model.terminal import visible
from strobe.tables.table import Table

MOST_TOKENS = 2_000
# Names and numbers have 3 characters in a token and more. Characters beyond ASCII have fewer: bytes are counted.
MOST_BYTES = 3 * MOST_TOKENS
_ROOM_FOR_THE_END = 250
_LONGEST_LINE = 1_000  # of what stands above the rows
_SHORT = 100  # characters of a cell, where whole cells do not fit

Line = Sequence[str]


def answer(head: Iterable[str], lines: Sequence[Line], *, skip: int = 0, top: int = 0, count: str = "") -> str:
    """Return `head`, and the lines after the first `skip`, `top` at most (0: all), as many as fit.

    A line is its cells. `count`: how many lines there are in words, where there are more than these.
    """
    above = [_cut(line, _LONGEST_LINE) for line in head if line]
    room = MOST_BYTES - _ROOM_FOR_THE_END - _size(above)
    chosen = lines[skip : skip + top if top else None]
    if _size("\t".join(line) for line in chosen) > room:
        chosen = [[_cut(cell, _SHORT) for cell in line] for line in chosen]
    shown, used = list[str](), 0
    for line in chosen:
        text = "\t".join(line)
        used += _size([text])
        if used > room:
            break
        shown.append(text)
    is_short = any(
        cell not in whole for cut, whole in zip(chosen[: len(shown)], lines[skip:], strict=False) for cell in cut
    )
    if chosen and not shown:
        shown = ["\t".join(chosen[0]).encode()[: room - 1].decode(errors="ignore")]
    return "\n".join([*above, *shown, *_end(len(shown), len(lines), skip, is_short, count)])


def _end(shown: int, known: int, skip: int, is_short: bool, count: str) -> Iterator[str]:
    after = skip + shown
    if after < known or count:
        yield f"[lines {skip + 1} to {after} of {count or known}; the next: skip={after}]"
    elif skip and not shown:
        yield f"[there are {known} lines: nothing is left after {skip}]"
    if is_short:
        yield f"[texts are cut at {_SHORT} characters: whole ones with top=1, or with fewer columns]"


def rows(table: Table) -> list[Line]:
    """Return the rows of a table as lines."""
    return [[_plain(value) for value in row] for row in table.rows()]


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (float, Decimal)):
        return f"{value:.10g}"
    return " ".join(visible(str(value)).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)
