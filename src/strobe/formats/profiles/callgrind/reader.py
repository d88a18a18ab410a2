"""Reads profiles for KCachegrind, line by line."""

from __future__ import annotations

import re

from strobe.formats.profiles.callgrind.call_graph import CallGraph
from strobe.formats.profiles.callgrind.first_bytes import HEADER, TIMEFRAME
from strobe.formats.reading.profile_import import NANOSECONDS, Function, ProfileProcess, Weight
from strobe.formats.reading.text_input import lines_of
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_POSITION = re.compile(rb"(ob|fl|fi|fe|fn|cob|cfl|cfi|cfn|calls|rcalls|jump|jcnd|jfi|jfn)= *(.*)")
_NUMBERED = re.compile(rb"\((\d{1,18})\) *(.*)")
_WITH_UNIT = re.compile(r"(.+?)_?\((\d{0,9})([a-zµ]{1,5})\)")  # of Xdebug: Time_(10ns)
_BEGINS_PART = {b"pid", b"part", b"thread", b"positions", b"events"}
_SUBPOSITIONS = {b"instr", b"addr", b"line"}
_LONGEST_NUMBER = 20  # digits of 64 bits
_MOST_EVENTS = 64
_MOST_PROPERTIES = 100
_LONGEST_PROPERTY = 1000


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, line by line: memory grows with functions, their calls and lines, not with the file."""
    process = ProfileProcess(source, target)
    reader = _Reader()
    for line in lines_of(source):
        try:
            process.core.taken(int(reader.line(line.strip())))
        except _LineError:
            process.core.left_out("lines_not_understood")
    if not reader.graphs:
        raise ValueError("no costs of functions are in it")
    process.core.count("truncated", int(reader.cut_off))
    functions = reader.described()
    for thread, graph in reader.graphs.items():
        graph.save(process, process.location(f"thread {thread}" if thread else "profile"), functions)
    calls = "functions are below their caller if they have but one, else roots; who calls whom: call_edges"
    return process.finish({**reader.properties, "parts": reader.parts, "calls": calls}, pid=reader.pid)


class _LineError(Exception):
    """A line is not of this format: it is left out and counted."""


class _Reader:
    """Reads line by line. The position is the current function, file, object and line."""

    def __init__(self) -> None:
        self.graphs: dict[str, CallGraph] = {}  # by thread
        self.properties: dict[str, object] = {}
        self.pid = self.parts = 0
        self.cut_off = False
        self._weights: list[Weight] = []
        self._functions: dict[tuple[str, str, str], int] = {}  # name, file, object
        self._first_lines: dict[int, int] = {}
        # Numbers stand for names; that of a function for its file and object, too.
        self._files: dict[bytes, str] = {}
        self._objects: dict[bytes, str] = {}
        self._numbered: dict[bytes, int] = {}
        self._columns: list[tuple[int, int]] = []  # of costs: number of the weight, and its factor
        self._line_at, self._positions = 0, 1  # the place of the line among the subpositions, and their number
        self._in_header = False
        self._begin()

    def _begin(self) -> None:
        """Start a part, which forgets earlier positions."""
        self.parts += 1
        self._in_header = True
        self._thread = ""
        self._graph: CallGraph | None = None
        self._at = [0, 0]
        self._function: int | None = None
        self._object = self._file = self._line_file = ""
        self._called_object: str | None = None
        self._called_file: str | None = None
        self._called: int | None = None
        self._calls: int | None = None

    def line(self, line: bytes) -> bool:
        """Read a line, and return whether there was anything to read. Raises _LineError if it is not of this format."""
        if not line or line.startswith(b"#"):
            return False
        if line[0] in b"0123456789+-*":
            self._in_header = False
            self._costs(line.split())
        elif position := _POSITION.fullmatch(line):
            self._in_header = False
            self._position(position[1], position[2])
        elif header := HEADER.fullmatch(line):
            self._header(header[1], header[2])
        elif not line.startswith(TIMEFRAME):
            raise _LineError
        return True

    def described(self) -> list[Function]:
        return [
            Function(name, file, self._first_lines.get(number, 0), module)
            for (name, file, module), number in self._functions.items()
        ]

    def _header(self, key: bytes, value: bytes) -> None:
        if key in _BEGINS_PART and not self._in_header:
            self._begin()
        text = value.decode("utf-8", "replace")
        if key == b"version" and text != "1":
            self._refuse(f"it is of version {text[:20]}, and only version 1 is known")
        if key == b"events":
            self._events(text.split())
            # Callgrind ends every part with its totals; files of others may lack them.
            self.cut_off = str(self.properties.get("creator", "")).startswith("callgrind")
        elif key == b"positions":
            self._subpositions(value.split())
        elif key == b"thread":
            self._thread = text[:_LONGEST_NUMBER]
        elif key == b"pid":
            self.pid = self.pid or _number(value)
        elif key == b"totals":
            self.cut_off = False
        elif key in (b"creator", b"cmd"):
            self.properties.setdefault(key.decode(), text[:_LONGEST_PROPERTY])
        elif key in (b"desc", b"event"):
            properties = self.properties.setdefault(key.decode(), [])
            if isinstance(properties, list) and len(properties) < _MOST_PROPERTIES and text not in properties:
                properties.append(text[:_LONGEST_PROPERTY])

    def _refuse(self, sentence: str) -> None:
        """Refuse a file for its header. Parts before it are kept."""
        if not self.graphs:
            raise ValueError(sentence)
        raise _LineError

    def _events(self, names: list[str]) -> None:
        found = [_weight(name) for name in names]
        new = dict.fromkeys(weight for weight, _ in found if weight not in self._weights)
        if len(self._weights) + len(new) > _MOST_EVENTS:
            self._refuse(f"it counts more than {_MOST_EVENTS} kinds of events")
        self._weights += new
        self._columns = [(self._weights.index(weight), factor) for weight, factor in found]

    def _subpositions(self, names: list[bytes]) -> None:
        if not names or len(names) > len(self._at) or not _SUBPOSITIONS.issuperset(names):
            found = b" ".join(names)[:40].decode("utf-8", "replace")
            self._refuse(f"its positions are '{found}', and only instr and line are known")
        self._positions = len(names)
        self._line_at = names.index(b"line") if b"line" in names else -1

    def _position(self, key: bytes, value: bytes) -> None:
        if key in (b"fl", b"fi", b"fe"):
            self._line_file = _named(self._files, value)
            if key == b"fl":  # the others are of lines that were inlined
                self._file = self._line_file
        elif key == b"fn":
            self._line_file = self._file
            self._function = self._number_of(value, self._file, self._object)
        elif key == b"ob":
            self._object = _named(self._objects, value)
        elif key == b"cob":
            self._called_object = _named(self._objects, value)
        elif key in (b"cfl", b"cfi"):
            self._called_file = _named(self._files, value)
        elif key == b"cfn":
            file = self._line_file if self._called_file is None else self._called_file
            module = self._object if self._called_object is None else self._called_object
            self._called = self._number_of(value, file, module)
        elif key in (b"calls", b"rcalls"):
            count, *place = value.split() or [b""]
            self._calls = _number(count)
            line = self._moved(place)[self._line_at] if self._line_at >= 0 and place else 0
            if self._called is not None and line > 0:
                self._first_lines.setdefault(self._called, line)
        elif key == b"jfi":
            _named(self._files, value)
        elif key == b"jfn":
            self._number_of(value, self._line_file, self._object)

    def _number_of(self, value: bytes, file: str, module: str) -> int:
        """Return our number of a function, which the file may name or number."""
        short = _NUMBERED.fullmatch(value)
        if short and not short[2] and short[1] in self._numbered:
            return self._numbered[short[1]]
        name = short[2] or value if short else value
        number = self._functions.setdefault((name.decode("utf-8", "replace"), file, module), len(self._functions))
        if short:
            self._numbered[short[1]] = number
        return number

    def _moved(self, fields: list[bytes]) -> list[int]:
        """Return the subpositions, which may be relative to the last ones."""
        if len(fields) < self._positions:
            raise _LineError
        at = []
        for last, field in zip(self._at, fields[: self._positions], strict=False):
            sign = field[:1]
            if sign == b"*":
                at.append(last)
            else:
                at.append(last * (sign in b"+-") + _number(field.lstrip(b"+-")) * (-1 if sign == b"-" else 1))
        return at

    def _costs(self, fields: list[bytes]) -> None:
        if not self._weights:
            raise ValueError("its costs come before the names of what is counted (events:)")
        self._at = at = self._moved(fields)
        costs = fields[self._positions :]
        calls, self._calls = self._calls, None
        if len(costs) > len(self._columns):
            raise _LineError
        values = [0] * len(self._weights)
        for (place, factor), cost in zip(self._columns, costs, strict=False):
            values[place] += _number(cost) * factor
        if self._graph is None:
            self._graph = self.graphs.setdefault(self._thread, CallGraph(self._weights))
        if self._function is None:
            self._function = self._number_of(b"", self._file, self._object)
        if calls is None:
            line = at[self._line_at] if self._line_at >= 0 else 0
            self._graph.add_own(self._function, self._line_file, max(line, 0), values)
        elif self._called is None:
            raise _LineError
        else:
            self._graph.add_calls(self._function, self._called, calls, values)
            self._called_object = self._called_file = None


def _named(known: dict[bytes, str], value: bytes) -> str:
    """Return a name. From its first use on the file may replace it by a number."""
    short = _NUMBERED.fullmatch(value)
    if short and not short[2]:
        return known.get(short[1], value.decode())
    name = (short[2] if short else value).decode("utf-8", "replace")
    name = "" if name == "???" else name
    if short:
        known[short[1]] = name
    return name


def _weight(event: str) -> tuple[Weight, int]:
    """Return the weight of an event, and the number of its units in one of the file's."""
    unit = _WITH_UNIT.fullmatch(event)
    if unit is None or (unit[3] not in NANOSECONDS and unit[3] != "bytes"):
        return Weight(event, "count"), 1
    return Weight(unit[1], unit[3]), int(unit[2] or 1)


def _number(field: bytes) -> int:
    if len(field) <= _LONGEST_NUMBER:
        if field.isdigit():
            return int(field)
        if field == b".":  # of Cachegrind: it cannot happen there
            return 0
        if re.fullmatch(rb"0[xX][0-9a-fA-F]+", field):
            return int(field, 16)
    raise _LineError
