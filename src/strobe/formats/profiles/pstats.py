"""cProfile's statistics (`python -m cProfile -o FILE`, `Profile.dump_stats`).

The file is marshal, which is never handed to Python's own reader: a malicious file may crash that. A small decoder
reads the few types that it needs. The file contains a call graph, not a tree: every function is a root here, with its
exact sums, and callers and callees are in the table `call_edges`.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from strobe.formats.reading.profile_import import ROOT, Function, ProfileProcess, Weight, function_of, read_whole
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_REF = 0x80
_MOST_DEPTH = 16


def sniff(head: bytes) -> bool:
    """Return whether it is a marshalled dictionary whose first key is a tuple of three."""
    if len(head) < 6 or head[0] & 0x7F != ord("{"):
        return False
    kind = head[1] & 0x7F
    return (kind == ord(")") and head[2] == 3) or (kind == ord("(") and head[2:6] == b"\x03\0\0\0")


class _Marshal:
    """Decodes dictionaries, tuples, numbers and texts; anything else is refused with ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._refs: list[object] = []
        self._names: list[str] = []  # of Python 2, which writes each name once

    def value(self, depth: int = 0) -> object:
        if depth > _MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        code = self._take(1)[0]
        kind, kept = chr(code & 0x7F), bool(code & _REF)
        if kind == "r":
            number = self._whole()
            if not 0 <= number < len(self._refs) or self._refs[number] is _UNFINISHED:
                raise ValueError("it refers to a missing value")
            return self._refs[number]
        place = len(self._refs)
        if kept:
            self._refs.append(_UNFINISHED)
        found = self._value(kind, depth)
        if kept:
            self._refs[place] = found
        return found

    def _value(self, kind: str, depth: int) -> object:
        if kind in ")(":
            size = self._take(1)[0] if kind == ")" else self._size()
            return tuple(self.value(depth + 1) for _ in range(size))
        if kind == "{":
            found: dict[object, object] = {}
            while self._peek() != ord("0"):
                key = self.value(depth + 1)
                if not isinstance(key, (str, tuple)):
                    raise ValueError("a key is not a function")
                found[key] = self.value(depth + 1)
            self._at += 1
            return found
        if kind == "i":
            return self._whole()
        if kind == "I":  # of Python 2
            return int(struct.unpack("<q", self._take(8))[0])
        if kind == "l":
            return self._long()
        if kind == "g":
            return struct.unpack("<d", self._take(8))[0]
        if kind == "f":  # as text: versions 0 and 1
            return float(self._take(self._take(1)[0]))
        if kind in "zZ":
            return self._take(self._take(1)[0]).decode("ascii", "replace")
        if kind in "aA":
            return self._take(self._size()).decode("ascii", "replace")
        if kind in "ust":
            text = self._take(self._size()).decode("utf-8", "replace")
            if kind == "t":
                self._names.append(text)
            return text
        if kind == "R":
            number = self._whole()
            if not 0 <= number < len(self._names):
                raise ValueError("it refers to a missing value")
            return self._names[number]
        constants = {"N": None, "T": True, "F": False}
        if kind in constants:
            return constants[kind]
        raise ValueError(f"it contains a value that statistics do not ({kind!r} at byte {self._at - 1})")

    def _long(self) -> int:
        digits = self._whole()
        if abs(digits) > 8:
            raise ValueError("a number is too large")
        found = sum(int.from_bytes(self._take(2), "little") << 15 * i for i in range(abs(digits)))
        return -found if digits < 0 else found

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise ValueError("it is cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def _peek(self) -> int:
        if self._at >= len(self._data):
            raise ValueError("it is cut off")
        return self._data[self._at]

    def _whole(self) -> int:
        return int(struct.unpack("<i", self._take(4))[0])

    def _size(self) -> int:
        size = self._whole()
        if not 0 <= size <= len(self._data) - self._at:
            raise ValueError("it is cut off")
        return size


_UNFINISHED = object()
_PRIMITIVE_CALLS = Weight("primitive calls", "count")


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if it is not a dictionary of functions."""
    data = read_whole(source)
    try:
        found = _Marshal(data).value()
    except TypeError:
        raise ValueError("a key is not a function") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a dictionary of functions")
    process = ProfileProcess(source, target)
    location = process.location("profile")
    rows = 0
    for key, value in found.items():
        function = _function(key)
        if function is None or not isinstance(value, tuple) or len(value) not in (4, 5):
            process.core.left_out("functions_not_understood")
            continue
        primitive, calls, own, total = (_number(each) for each in value[:4])
        process.core.taken()
        path = process.path(ROOT, process.region(function, paradigm="python"))
        process.totals(location, path, int(calls), _ns(total), _ns(own))
        if primitive != calls:
            process.path_metric(location, path, _PRIMITIVE_CALLS, float(primitive))
        callers = value[4] if len(value) == 5 and isinstance(value[4], dict) else {}
        rows += len(callers) + 1
        if rows > len(data):
            raise ValueError("its callers are more than it has bytes")
        for caller, edge in callers.items():
            _edge(process, location, _function(caller), function, edge)
    return process.finish({"calls": "functions are roots; who calls whom: call_edges"})


def _edge(process: ProfileProcess, location: int, caller: Function | None, callee: Function, edge: object) -> None:
    # cProfile: (calls, primitive calls, own, total). The module `profile` has only the calls.
    known = edge if isinstance(edge, tuple) and len(edge) == 4 else (edge,)
    if caller is None or not all(isinstance(each, (int, float)) for each in known):
        process.core.left_out("callers_not_understood")
        return
    process.core.taken()
    calls, primitive, own, total = (*known, None, None, None) if len(known) == 1 else known
    process.call_edge(
        location,
        caller,
        callee,
        calls=int(_number(calls)),
        primitive_calls=None if primitive is None else int(_number(primitive)),
        total_ns=None if total is None else _ns(_number(total)),
        self_ns=None if own is None else _ns(_number(own)),
    )


def _function(key: object) -> Function | None:
    function = function_of(key)
    return replace(function, file="") if function and function.file == "~" else function  # written in C


def _number(value: object) -> int | float:
    number = value if isinstance(value, (int, float)) else 0
    return number if abs(number) < 1e18 else 0  # also for NaN


def _ns(seconds: float) -> int:
    return round(seconds * 1e9) if abs(seconds) < 1e9 else 0


FORMAT = Format(
    "pstats",
    "cProfile's statistics (python -m cProfile -o FILE)",
    suffixes=(".prof", ".pstats"),
    sniff=sniff,
    read=read,
)
