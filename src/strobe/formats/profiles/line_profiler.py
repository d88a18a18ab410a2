"""line_profiler's `.lprof`: time by line.

The file is a pickle, but it is not unpickled: its operations are read one by one (pickletools), the few that build
dictionaries, lists, tuples, numbers and texts are carried out, and all that call or import are refused.

A line's time includes its callees. So does a function's, the sum of its lines; its own time is not in the file and is
shown as the same.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from strobe.errors import InconclusiveError
from strobe.formats.reading.profile_import import ROOT, Function, ProfileProcess, function_of, read_whole
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.sums.source_lines import CountedFunction, summed_lines
from strobe.trace.trace import Trace

_CLASSES = {"LineStats"}
_MODULES = {"line_profiler", "line_profiler.line_profiler", "line_profiler._line_profiler", "_line_profiler"}


def sniff(head: bytes) -> bool:
    """Return whether it is a pickle whose first class is line_profiler's."""
    return head[:1] in (b"\x80", b"c") and b"line_profiler" in head[:200] and b"LineStats" in head[:200]


class _Mark:
    pass


class _Statistics:
    """Stands for the LineStats object, with the state that would be set on it."""

    def __init__(self) -> None:
        self.state: dict[object, object] = {}


class _Class:
    pass


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], object]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "BINSTRING"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "SHORT_BINSTRING"),
}
_NOTHING = {"PROTO", "FRAME"}


def _flat(items: list[object]) -> tuple[object, ...]:
    """Return a tuple. No tuple of line_profiler's holds another one: the hash of a deep one overflows the C stack."""
    if any(isinstance(item, tuple) for item in items):
        raise TypeError
    return tuple(items)


class _Machine:
    """Carries out a pickle's operations that build plain values."""

    def __init__(self) -> None:
        self._stack: list[object] = []
        self._memo: dict[int, object] = {}

    def run(self, data: bytes) -> object:
        try:
            for operation, argument, _ in pickletools.genops(data):
                if operation.name == "STOP":
                    return self._stack.pop()
                self._step(operation.name, argument)
        except (IndexError, KeyError, TypeError, OverflowError) as error:
            raise ValueError("its operations do not fit together") from error
        raise ValueError("it is cut off")

    def _step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _NOTHING:
            pass
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            stack.append(_Mark())
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            size = int(name[-1])
            stack[-size:] = [_flat(stack[-size:])]
        elif name in ("TUPLE", "LIST", "DICT"):
            items = self._since_mark()
            pairs = zip(items[::2], items[1::2], strict=True)
            stack.append(_flat(items) if name == "TUPLE" else items if name == "LIST" else dict(pairs))
        else:
            self._put_together(name, argument)

    def _put_together(self, name: str, argument: object) -> None:
        stack = self._stack
        if name in ("APPEND", "APPENDS"):
            items = self._since_mark() if name == "APPENDS" else [stack.pop()]
            into = stack[-1]
            if not isinstance(into, list):
                raise TypeError
            into.extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            onto = stack[-1]
            if not isinstance(onto, dict):
                raise TypeError
            onto.update(zip(items[::2], items[1::2], strict=True))
        elif name == "STACK_GLOBAL":
            called = stack.pop()
            self._class(stack.pop(), called)
        elif name == "GLOBAL":
            module, _, called = str(argument).partition(" ")
            self._class(module, called)
        elif name in ("NEWOBJ", "REDUCE"):
            stack.pop()
            if not isinstance(stack.pop(), _Class):
                raise TypeError
            stack.append(_Statistics())
        elif name == "BUILD":
            state = stack.pop()
            made = stack[-1]
            if not isinstance(made, _Statistics) or not isinstance(state, dict):
                raise TypeError
            made.state = state
        else:
            raise ValueError(f"it contains more than numbers ({name})")

    def _class(self, module: object, name: object) -> None:
        # copyreg._reconstructor(LineStats, object, None) is NEWOBJ in protocols 0 and 1.
        if module in _MODULES and name in _CLASSES:
            self._stack.append(_Class())
            return
        raise ValueError(f"it wants to import {str(module)[:80]}.{str(name)[:80]}, which is never done")

    def _since_mark(self) -> list[object]:
        items: list[object] = []
        while not isinstance(each := self._stack.pop(), _Mark):
            items.append(each)
        return items[::-1]


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if line_profiler did not write it."""
    data = read_whole(source)
    found = _Machine().run(data)
    timings = found.state.get("timings") if isinstance(found, _Statistics) else None
    unit = found.state.get("unit") if isinstance(found, _Statistics) else None
    if not isinstance(timings, dict) or not isinstance(unit, (int, float)) or not 0 < unit < 1e6:
        raise ValueError("it contains no timings")
    # 1e-09 is not a binary fraction: its printed form is meant.
    ns = Fraction(str(unit)) * 1_000_000_000
    process = ProfileProcess(source, target)
    location = process.location("lines")
    rows = 0
    for key, lines in timings.items():
        function = function_of(key)
        if function is None or not isinstance(lines, list):
            process.core.left_out("functions_not_understood")
            continue
        rows += len(lines) + 1
        if rows > len(data):
            raise ValueError("its lines are more than it has bytes")
        _lines(process, location, function, lines, ns)
    return process.finish({"unit_s": str(unit), "time": "of lines and functions: with what they call"})


def _line(each: object) -> tuple[int, int, int] | None:
    if not isinstance(each, tuple) or len(each) != 3:
        return None
    known = all(isinstance(value, int) and 0 <= value < 1 << 53 for value in each)
    return (each[0], each[1], each[2]) if known else None


def _lines(process: ProfileProcess, location: int, function: Function, lines: list[object], ns: Fraction) -> None:
    known = [line for each in lines if (line := _line(each)) is not None]
    process.core.left_out("lines_not_understood", len(lines) - len(known))
    process.core.taken(len(known))
    total_ns = calls = rounded = 0
    for number, hits, time in sorted(known):
        exact = time * ns
        rounded += round(exact) != exact
        total_ns += round(exact)
        calls = calls or hits  # of the first line: as often as it began
        process.line(location, function, function.file, number, round(exact), hits)
    process.core.count("times_rounded", rounded)
    path = process.path(ROOT, process.region(function, paradigm="python"))
    process.totals(location, path, calls, total_ns, total_ns)


def pickled(functions: Iterable[CountedFunction]) -> bytes:
    """Return counted lines as line_profiler's LineStats, pickled; times are nanoseconds."""
    timings = {
        (each.file, each.function_line or min(each.lines), each.name): [
            (line, hits, ns) for line, (hits, ns) in sorted(each.lines.items())
        ]
        for each in functions
    }
    state = pickle.dumps({"timings": timings, "unit": 1e-9}, protocol=2)
    # An object of line_profiler's class, which need not be installed here: PROTO 2, GLOBAL, EMPTY_TUPLE, NEWOBJ, its
    # state (without its own PROTO and STOP), BUILD, STOP.
    return b"\x80\x02cline_profiler.line_profiler\nLineStats\n)\x81" + state[2:-1] + b"b."


def write(trace: Trace, path: Path) -> list[str]:
    """Write the counted lines of all threads and processes together. Raises InconclusiveError without any."""
    functions = summed_lines(trace.side_table("lines"))
    if not functions:
        raise InconclusiveError("no lines were counted in this run", do="Record it again: strobe run --lines PATTERN")
    path.write_bytes(pickled(functions))
    return []


FORMAT = Format(
    "line_profiler",
    "line_profiler's .lprof (kernprof -l)",
    suffixes=(".lprof",),
    sniff=sniff,
    read=read,
    write=write,
)
