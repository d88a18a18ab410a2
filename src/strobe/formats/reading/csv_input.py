"""CSV files of other tools, row by row, in memory that does not grow with them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator

from strobe.formats.reading.profile_import import clean
from strobe.formats.reading.text_input import lines_of
from strobe.model.plugins import ImportSource


def csv_rows(source: ImportSource, broken: Callable[[], None]) -> Iterator[dict[str, str]]:
    """Return the rows of a file by the names of its columns. `broken` is called for each row with too few or many."""
    texts = (clean(line.decode("utf-8-sig", "replace")).replace("\0", "") + "\n" for line in lines_of(source, broken))
    rows = csv.reader(texts)
    header: list[str] = []
    while True:
        try:
            cells = next(rows, None)
        except csv.Error:
            broken()
            continue
        if cells is None:
            return
        if not header:
            header = [cell.strip() for cell in cells]
        elif len(cells) == len(header):
            yield dict(zip(header, cells, strict=True))
        elif cells:
            broken()


def first_cells(head: bytes) -> list[str]:
    """Return the cells of the first line of a text, none if it has none."""
    line = head.split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8-sig", "replace")
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])] if line.isprintable() else []
    except csv.Error:  # a cell above 128 KiB
        return []
