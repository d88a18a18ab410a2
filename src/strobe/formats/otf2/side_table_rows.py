"""Rows of side tables as columns of OTF2 records: which of them are attributes, and the names of their texts."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.formats.otf2.definitions import Definitions, Type
from strobe.formats.writing.span_rows import in_order
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES, TABLES
from strobe.trace.trace import Trace

Whole = npt.NDArray[np.int64]
There = npt.NDArray[np.uint8]
Numbers = Whole | int
Attribute = tuple[Numbers, Numbers, Numbers, There | None]  # id, type, value, if there is one
Field = tuple[int, Numbers]
Records = tuple[int, Whole, list[Field], list[Attribute]]  # type, times or rows of spans, fields, attributes
BYTE, U32, U64 = 0, 1, 2  # kinds of fields
PARAMETER_STRING = 32
LARGEST = 2**32 - 4  # number of 32 bits: above are numbers with a meaning of their own
UNDEFINED = -1  # of fields that need not have a value

_TYPES = {"integer": Type.I64, "real": Type.REAL, "text": Type.STRING}
_UNKNOWN, _INTEGER, _TEXT, _JSON = range(4)


class Batch:
    """Rows of one table, in one location."""

    def __init__(self, name: str, raw: Mapping[str, Any], taken: slice | Whole | npt.NDArray[np.bool_]) -> None:
        self.name = name
        self.row = np.ascontiguousarray(raw["row"][taken], dtype=np.int64)
        self.columns: dict[str, tuple[str, Whole, There]] = {
            key: (kind, np.ascontiguousarray(values[taken], dtype=np.int64), np.ascontiguousarray(valid[taken]))
            for key, (kind, values, valid) in raw["columns"].items()
            if key in _column_names(name)
        }

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: npt.NDArray[np.bool_]) -> Batch:
        """Return some of the rows."""
        return Batch(self.name, {"row": self.row, "columns": self.columns}, which)

    def get(self, name: str) -> tuple[Whole, npt.NDArray[np.bool_]]:
        """Return the values of a column, and which cells have one."""
        found = self.columns.get(name)
        if found is None:
            return np.zeros(len(self), dtype=np.int64), np.zeros(len(self), dtype=bool)
        return found[1], found[2] != 0

    def only_has(self, *names: str) -> npt.NDArray[np.bool_]:
        """Return for each row whether all other columns are empty."""
        others = [valid == 0 for key, (_, _, valid) in self.columns.items() if key not in names]
        return np.logical_and.reduce(others) if others else np.ones(len(self), dtype=bool)


@functools.cache
def _column_names(table: str) -> frozenset[str]:
    # A call path is a number that only the trace itself knows.
    return frozenset(column.name for column in TABLES[table] if column.name != "call_path")


class Rows:
    """Rows of a side table in order of their spans, taken as far as the spans are."""

    def __init__(self, trace: Trace, name: str, location: int) -> None:
        self._name = name
        self._batches = trace.raw_side_batches(name, location)
        if not in_order(raw["row"] for raw in trace.raw_side_batches(name, location)):
            # Decoders that know several kinds of such rows write each kind by itself: they need each other's place.
            self._batches = iter([_sorted(list(self._batches))])
        self._left = next(self._batches, None)
        self._taken = 0

    def before(self, row: int) -> Iterator[Batch]:
        """Yield the rows that were not taken yet, of spans before `row`."""
        while self._left is not None:
            until = int(np.searchsorted(self._left["row"], row))
            if until > self._taken:
                yield Batch(self._name, self._left, slice(self._taken, until))
            if until < len(self._left["row"]):
                self._taken = max(until, self._taken)
                return
            self._left, self._taken = next(self._batches, None), 0


def _sorted(batches: list[dict[str, Any]]) -> dict[str, Any]:
    """Join batches in order of row; a stable sort."""
    row = np.concatenate([raw["row"] for raw in batches])
    order = np.argsort(row, kind="stable")
    kinds = {key: column[0] for raw in batches for key, column in raw["columns"].items()}

    def together(key: str, part: int) -> npt.NDArray[Any]:
        kind = (np.int64, np.uint8)[part - 1]
        pieces = [
            raw["columns"][key][part] if key in raw["columns"] else np.zeros(len(raw["row"]), dtype=kind)
            for raw in batches
        ]
        found: npt.NDArray[Any] = np.concatenate(pieces)[order]
        return found

    columns = {key: (kind, together(key, 1), together(key, 2)) for key, kind in kinds.items()}
    return {"row": row[order], "columns": columns}


class Texts:
    """The texts of one process as strings of the archive; unused ones are left out."""

    def __init__(self, trace: Trace, process: int, definitions: Definitions) -> None:
        self._of, self._definitions = trace.texts(process), definitions
        self._strings = np.full(len(self._of) + 1, -1, dtype=np.int64)
        self._contexts = np.full(len(self._of) + 1, -1, dtype=np.int64)
        self._kinds = np.zeros(len(self._of) + 1, dtype=np.int64)
        self._values = np.zeros(len(self._of) + 1, dtype=np.int64)

    def text(self, number: int) -> str:
        """Return a text; empty if it is missing in a damaged file."""
        return self._of[number] if 0 <= number < len(self._of) else ""

    def _known(self, numbers: Whole) -> Whole:
        return np.where((numbers >= 0) & (numbers < len(self._of)), numbers, len(self._of))

    def strings(self, numbers: Whole) -> Whole:
        """Return the strings of texts."""
        at = self._known(numbers)
        for number in np.unique(at[self._strings[at] < 0]).tolist():
            self._strings[number] = self._definitions.string(self.text(number))
        found: Whole = self._strings[at]
        return found

    def contexts(self, numbers: Whole) -> Whole:
        """Return the calling contexts of call stacks; -1 for other texts."""
        at = self._known(numbers)
        for number in np.unique(at[self._contexts[at] == -1]).tolist():
            lines = self.text(number).split("\n")
            self._contexts[number] = self._definitions.calling_context(lines) if all(lines) else -2
        found = self._contexts[at]
        return np.where(found < 0, -1, found)

    # Attributes

    def attributes(self, batch: Batch) -> list[Attribute]:
        """Return the cells of rows as attributes named `table.column`, arguments as ones of their own names.

        Times are those of the events. A row without any cell has an attribute `table.`.
        """
        if batch.name == "arguments":
            return self._arguments(batch)
        found: list[Attribute] = []
        for name, (kind, values, valid) in batch.columns.items():
            if name == "time_ns" or not valid.any():
                continue
            attribute_type = _TYPES[kind]
            attribute = self._definitions.attribute(f"{batch.name}.{name}", attribute_type)
            if attribute_type == Type.STRING:
                values = self.strings(np.where(valid != 0, values, -1))
            found.append((attribute, int(attribute_type), values, None if valid.all() else valid))
        bare = batch.only_has("time_ns")
        if bare.any():
            marked = self._definitions.attribute(f"{batch.name}.", Type.I64)
            found.append((marked, int(Type.I64), 0, bare.astype(np.uint8)))
        return found

    def _arguments(self, batch: Batch) -> list[Attribute]:
        """Numbers and texts are attributes that everybody reads; other JSON is a text, marked by its name."""
        (keys, has_key), (values, has_value) = batch.get("key"), batch.get("value")
        keys, at = np.where(has_key, keys, -1), self._known(np.where(has_value, values, -1))
        for number in np.unique(at[self._kinds[at] == _UNKNOWN]).tolist():
            self._kinds[number], self._values[number] = self._argument(self.text(number) or "null")
        kinds = self._kinds[at]
        pairs, place = np.unique(np.stack([keys, kinds], axis=1), axis=0, return_inverse=True)
        own = np.array([self._key(key, kind) for key, kind in pairs.tolist()], dtype=np.int64).reshape(-1, 3)
        place = place.reshape(-1)
        plain = own[place, 2] == 0
        as_json = self.strings(at[~plain]) if not plain.all() else None
        shown = self._values[at].copy()
        if as_json is not None:
            shown[~plain] = as_json
        return [(np.ascontiguousarray(own[place, 0]), np.ascontiguousarray(own[place, 1]), shown, None)]

    def _argument(self, value: str) -> tuple[int, int]:
        if re.fullmatch(r"0|-?[1-9]\d{0,17}", value):
            return _INTEGER, int(value)
        if re.fullmatch(r'"[^"\\\x00-\x1f]*"', value):
            return _TEXT, self._definitions.string(value[1:-1])
        return _JSON, self._definitions.string(value)

    def _key(self, key: int, kind: int) -> tuple[int, int, int]:
        """Return attribute, type, and whether the value is its JSON."""
        name = self.text(key)
        if kind == _JSON or not name or name.partition(".")[0] in (*SPAN_TABLES, *EVENT_TABLES):
            return self._definitions.attribute(f"arguments.{name}", Type.STRING), Type.STRING, 1
        attribute_type = Type.I64 if kind == _INTEGER else Type.STRING
        return self._definitions.attribute(name, attribute_type), attribute_type, 0


def carriers(texts: Texts, definitions: Definitions, batch: Batch, keys: Whole) -> Records:
    """Return rows that have no record in OTF2 as parameters, which readers show; their cells are attributes."""
    names, named = batch.get("name")
    shown: Numbers = definitions.string(batch.name)
    if named.any():
        shown = np.where(named, texts.strings(np.where(named, names, -1)), shown)
    fields: list[Field] = [(U32, definitions.parameter(f"strobe.{batch.name}")), (U32, shown)]
    return PARAMETER_STRING, keys, fields, texts.attributes(batch)
