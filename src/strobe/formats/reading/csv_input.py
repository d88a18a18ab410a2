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
