"""Files of other tools that are text, line by line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator

from strobe.model.plugins import ImportSource

_LONGEST_LINE = 1 << 20


def lines_of(source: ImportSource, too_long: Callable[[], None] | None = None) -> Iterator[bytes]:
    """Return the lines of a file without their ends, in memory that does not grow with it.

    The last one may be the first half of a line, where the file was cut off. Of a line above 1 MiB only the end is
    returned, and `too_long` called; raises ValueError without one.
    """
    left = b""
    for chunk in source.chunks():
        *lines, left = (left + chunk).split(b"\n")
        yield from lines
        if len(left) > _LONGEST_LINE:
            if too_long is None:
                raise ValueError("a line is longer than 1 MiB")
            too_long()
            left = b""
    if left:
        yield left


def first_cells(head: bytes) -> list[str]:
    """Return the cells of the first line of a text, none if it has none."""
    line = head.split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8-sig", "replace")
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])] if line.isprintable() else []
    except csv.Error:  # a cell above 128 KiB
        return []
