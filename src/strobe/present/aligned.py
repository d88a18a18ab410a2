"""Rows of cells as lines with aligned columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from strobe.model.terminal import visible_line

_NARROWEST = 12  # characters: narrower columns of text are not folded


def aligned_rows(
    rows: Sequence[Sequence[str]], numeric: Sequence[bool] | None = None, width: int | None = None
) -> list[str]:
    """Return rows of cells as lines with aligned columns, `numeric` ones to the right.

    With `width`, the widest columns of text are folded until the lines fit.
    """
    rows = [[visible_line(cell) for cell in row] for row in rows]  # which are as wide as what is shown
    widths = column_widths(rows)
    right = numeric or [False] * len(widths)
    texts = [column for column, number in enumerate(right) if not number]
    while width is not None and texts and sum(widths) + 2 * len(widths) - 2 > width:
        widest = max(texts, key=lambda column: widths[column])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    lines = []
    for row in rows:
        parts = [
            [cell] if len(cell) <= wide else textwrap.wrap(cell, wide) or [""]
            for cell, wide in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*parts, fillvalue=""):
            cells = zip(line, widths, right, strict=True)
            lines.append("  ".join(c.rjust(wide) if number else c.ljust(wide) for c, wide, number in cells).rstrip())
    return lines


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the number of characters of the longest cell of each column."""
    return [max(1, *map(len, column)) for column in zip(*rows, strict=True)]
