"""Calls that read and write files as records of OTF2: handles, seeks, and operations with their bytes."""

from __future__ import annotations

import numpy as np

from strobe.formats.otf2.definitions import Definitions
from strobe.formats.otf2.side_table_rows import BYTE, U32, U64, UNDEFINED, Batch, Records, Texts, Whole

_CREATE, _DESTROY, _SEEK, _BEGIN, _COMPLETE = 69, 70, 72, 75, 78
_READ_WRITE, _FROM_START = 2, 0  # OTF2_IoAccessMode: how a file was opened is not recorded; OTF2_IoSeekOption
_MODES = {"read": 0, "write": 1, "flush": 2}  # OTF2_IoOperationMode


class IoWriter:
    """The I/O of one location, one of `locations`, of a process; the cells of rows are attributes of their calls."""

    def __init__(self, texts: Texts, definitions: Definitions, process: int, location: int, locations: int) -> None:
        self._texts, self._definitions, self._process = texts, definitions, process
        self._location, self._locations = location, locations

    def write(self, batch: Batch, first: list[Records], last: list[Records]) -> None:
        """Add the records of rows, right after the enters (`first`) and right before the leaves (`last`) of spans."""
        (operation, _), (file, has_file), (number, opened) = map(batch.get, ("operation", "file", "descriptor"))
        file, number = np.where(has_file, file, -1), np.where(opened, number, -1)
        pairs, at = np.unique(np.stack([file, number], axis=1), axis=0, return_inverse=True)
        known = [self._definitions.io_handle(self._process, self._texts.text(of), each) for of, each in pairs.tolist()]
        handle: Whole = np.array(known, dtype=np.int64)[at.reshape(-1)]
        # Of all calls with a handle, whichever thread makes them.
        matching = batch.row * self._locations + self._location
        for each in np.unique(operation[opened]).tolist():
            which = opened & (operation == each)
            name = self._texts.text(each)
            if name == "seek":
                which &= batch.get("offset_bytes")[1]
            row, of = batch.row[which], (U32, handle[which])
            offset, asked, moved, match = (
                (U64, column[which])
                for column in (
                    batch.get("offset_bytes")[0],
                    _cells(batch, "requested_bytes", UNDEFINED),
                    _cells(batch, "size_bytes", UNDEFINED if name == "flush" else 0),
                    matching,
                )
            )
            if name == "open":
                last.append((_CREATE, row, [of, (BYTE, _READ_WRITE), (U32, 0), (U32, 0)], []))
            elif name == "close":
                last.append((_DESTROY, row, [of], []))
            elif name == "seek":
                last.append((_SEEK, row, [of, offset, (BYTE, _FROM_START), offset], []))
            elif name in _MODES:
                first.append((_BEGIN, row, [of, (BYTE, _MODES[name]), (U32, 0), asked, match], []))
                last.append((_COMPLETE, row, [of, moved, match], []))


def _cells(batch: Batch, name: str, otherwise: int) -> Whole:
    """Return the values of a column, with another one where there is none."""
    values, has_value = batch.get(name)
    return np.where(has_value, values, otherwise)
