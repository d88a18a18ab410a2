"""The definitions of a new OTF2 archive, to which the numbers in its events refer, and its anchor.

Numbers of records and their fields: OTF2_GlobalDefWriter.h of the OTF2 library 3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from enum import IntEnum
from pathlib import Path

import numpy as np

from strobe import native
from strobe.tables.column_arrays import Ints

EVENT_CHUNK_BYTES, _DEFINITION_CHUNK_BYTES = 1 << 20, 4 << 20  # as the OTF2 library has them
_LONGEST_TEXT = _DEFINITION_CHUNK_BYTES - 64
_VERSIONS = {2: (2, 3, 0), 3: (3, 1, 0)}
UNDEFINED = None


class Type(IntEnum):
    """Types of attributes and properties: OTF2_Type."""

    U64 = 4
    I64 = 8
    REAL = 10
    STRING = 11


class _Record(IntEnum):
    CLOCK = 5
    IO_PARADIGM = 8
    STRING = 10
    ATTRIBUTE = 11
    SYSTEM_NODE = 12
    LOCATION_GROUP = 13
    LOCATION = 14
    REGION = 15
    GROUP = 18
    METRIC_MEMBER = 19
    METRIC_CLASS = 20
    METRIC_INSTANCE = 21
    COMM = 22
    PARAMETER = 23
    WINDOW = 24
    LOCATION_GROUP_PROPERTY = 28
    LOCATION_PROPERTY = 29
    CALLING_CONTEXT = 34
    INTERRUPT_GENERATOR = 36
    IO_REGULAR_FILE = 38
    IO_HANDLE = 40


class GroupType(IntEnum):
    """Types of groups: OTF2_GroupType."""

    REGIONS = 2
    COMM_LOCATIONS = 4
    COMM_GROUP = 5


def number(value: int | None) -> bytes:
    """Return a number as OTF2 compresses it: how many bytes follow, then these; undefined (all bits set) is 255."""
    if value is None:
        return b"\xff"
    value %= 1 << 64
    body = value.to_bytes(8, "little").rstrip(b"\0")
    return bytes((len(body),)) + body


def zero_ended(text: str) -> bytes:
    """Return a text as OTF2 has it. It ends with a zero, so that those inside become the sign for it."""
    return text.encode("utf-8", "surrogateescape").replace(b"\0", "\u2400".encode()) + b"\0"


class Definitions:
    """The definitions of an archive. Events refer to them while they grow; `write` puts them into a file at the end."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._attributes: dict[tuple[str, Type], int] = {}
        self._parameters: dict[str, int] = {}
        self._contexts: dict[tuple[int | None, str], int] = {}
        self._handles: dict[tuple[int, str, int], int] = {}
        self._records: list[tuple[_Record, bytes]] = []
        self.texts_cut = 0

    # What events refer to

    def string(self, text: str) -> int:
        """Return the number of a text."""
        return self._strings.setdefault(text, len(self._strings))

    def attribute(self, name: str, kind: Type) -> int:
        """Return the number of an attribute."""
        return self._attributes.setdefault((name, kind), len(self._attributes))

    def parameter(self, name: str) -> int:
        """Return the number of a parameter whose values are texts."""
        return self._parameters.setdefault(name, len(self._parameters))

    def calling_context(self, stack: Sequence[str]) -> int:
        """Return the number of a call stack, outermost function first; it has one at least."""
        parent: int | None = None
        for line in stack:
            parent = self._contexts.setdefault((parent, line), len(self._contexts))
        assert parent is not None
        return parent

    def io_handle(self, process: int, file: str, descriptor: int) -> int:
        """Return the number of a handle: a file that a process has open under the number `descriptor`."""
        return self._handles.setdefault((process, file, descriptor), len(self._handles))

    # What is written once

    def _add(self, record: _Record, *fields: int | bytes | None) -> None:
        """Add a record: numbers are compressed, bytes stand for themselves."""
        body = b"".join(each if isinstance(each, bytes) else number(each) for each in fields)
        self._records.append((record, body))

    def system_node(self, node: int, name: str, kind: str, parent: int | None) -> None:
        """Define a node of the system tree: the machine, a host."""
        self._add(_Record.SYSTEM_NODE, node, self.string(name), self.string(kind), parent)

    def location_group(self, group: int, name: str, kind: int, node: int, creator: int | None) -> None:
        """Define a process (kind 1) or an accelerator (2) of one."""
        self._add(_Record.LOCATION_GROUP, group, self.string(name), bytes((kind,)), node, creator)

    def location(self, location: int, name: str, kind: int, events: int, group: int) -> None:
        """Define a thread (kind 1), a stream (2), or where metrics are recorded (3)."""
        self._add(_Record.LOCATION, location, self.string(name), bytes((kind,)), events, group)

    def region(self, region: int, name: str, about: str, file: str, line: int, role: int, paradigm: int) -> None:
        """Define a region."""
        named, source = self.string(name), self.string(file) if file else UNDEFINED
        kinds = bytes((role, paradigm))
        self._add(_Record.REGION, region, named, self.string(about), b"\0", source, line, 0, named, kinds, 0)

    def group(self, group: int, name: str, kind: GroupType, paradigm: int, members: Iterable[int]) -> None:
        """Define a group of regions or locations."""
        old = {GroupType.COMM_LOCATIONS: 6, GroupType.COMM_GROUP: 4}.get(kind, int(kind))
        listed = list(members)
        inside = b"".join(map(number, listed))
        kinds = bytes((kind, paradigm))
        self._add(_Record.GROUP, group, self.string(name), bytes((old,)), len(listed), inside, kinds, 0)

    def communicator(self, comm: int, name: str, group: int, parent: int | None) -> None:
        """Define a communicator of MPI."""
        self._add(_Record.COMM, comm, self.string(name), group, parent, 0)

    def threads(self, first_group: int, first: int, paradigm: int, teams: Sequence[tuple[str, Ints]]) -> None:
        """Define a group of all locations of teams (name, locations), and a group and communicator for each."""
        if not teams:
            return
        every = np.unique(np.concatenate([members for _, members in teams]))
        self.group(first_group, "", GroupType.COMM_LOCATIONS, paradigm, every.tolist())
        for number, (name, members) in enumerate(teams):
            own = np.searchsorted(every, members).tolist()
            self.group(first_group + 1 + number, "", GroupType.COMM_GROUP, paradigm, own)
            self.communicator(first + number, name, first_group + 1 + number, None)

    def window(self, window: int, name: str, comm: int) -> None:
        """Define a window of one-sided communication."""
        self._add(_Record.WINDOW, window, self.string(name), comm, 0)

    def metric(self, metric: int, name: str, unit: str, recorder: int, of_location: int | None, of_group: int) -> int:
        """Define a metric of a location, or else of a process; return the number that its readings refer to."""
        absolute_at_point, other = 1 | 1 << 4, 0
        decimal, asynchronous, abstract = 1, 2, 1
        kinds = bytes((other, absolute_at_point, Type.REAL, decimal))
        self._add(_Record.METRIC_MEMBER, metric, self.string(name), 0, kinds, 0, self.string(unit))
        self._add(_Record.METRIC_CLASS, 2 * metric, b"\1", metric, bytes((asynchronous, abstract)))
        kind, scope = (b"\0", of_location) if of_location is not None else (b"\1", of_group)
        self._add(_Record.METRIC_INSTANCE, 2 * metric + 1, 2 * metric, recorder, kind, scope)
        return 2 * metric + 1

    def group_property(self, group: int, name: str, value: int | str) -> None:
        """Add a property to a location group."""
        self._add(_Record.LOCATION_GROUP_PROPERTY, group, *self._property(name, value))

    def location_property(self, location: int, name: str, value: int | str) -> None:
        """Add a property to a location."""
        self._add(_Record.LOCATION_PROPERTY, location, *self._property(name, value))

    def io(self, nodes: Sequence[int]) -> None:
        """Define all handles and their files, on the nodes of their processes; what is not a file is a name."""
        serial, of_system = b"\0", 1  # OTF2_IoParadigmClass, OTF2_IoParadigmFlag
        if self._handles:
            identity = self.string("POSIX"), self.string("POSIX I/O")
            self._add(_Record.IO_PARADIGM, 0, *identity, serial, of_system, b"\0")
        files: dict[tuple[int, str], int] = {}
        for (process, name, _), handle in self._handles.items():
            node, is_file = nodes[process], name.startswith("/")
            if is_file and (node, name) not in files:
                files[node, name] = len(files)
                self._add(_Record.IO_REGULAR_FILE, files[node, name], self.string(name), node)
            file = files[node, name] if is_file else None
            self._add(_Record.IO_HANDLE, handle, self.string("" if is_file else name), file, b"\0", 0, None, None)

    def _property(self, name: str, value: int | str) -> tuple[int | bytes | None, ...]:
        # Before version 2.0 all of them were texts: that has a place of its own.
        if isinstance(value, str):
            text = self.string(value)
            return self.string(name), text, bytes((Type.STRING,)), text
        return self.string(name), UNDEFINED, bytes((Type.I64,)), value

    def write(self, path: Path, zero_ticks: int, ticks: int, unix_ns: int | None, first_context_region: int) -> int:
        """Write everything; return the number of records.

        Clocks count nanoseconds, from `zero_ticks` on, for `ticks`; `unix_ns` is the time of the first moment. Regions
        of call stacks get numbers from `first_context_region` on.
        """
        self._about_events(first_context_region)
        out = native.Otf2DefinitionFile(str(path), _DEFINITION_CHUNK_BYTES)
        out.record(_Record.CLOCK, number(10**9) + number(zero_ticks) + number(ticks) + number(unix_ns))
        for text, string in self._strings.items():
            body = zero_ended(text)
            if len(body) > _LONGEST_TEXT:
                body = body[:_LONGEST_TEXT].decode("utf-8", "ignore").encode() + b"\0"
                self.texts_cut += 1
            out.record(_Record.STRING, number(string) + body)
        for record, body in self._records:
            if not out.record(record, body):
                raise ValueError("a group has more members than a definition of OTF2 holds")
        out.finish()
        return int(out.records)

    def _about_events(self, first_region: int) -> None:
        for (name, kind), attribute in self._attributes.items():
            self._add(_Record.ATTRIBUTE, attribute, self.string(name), bytes((kind,)), 0)
        for name, parameter in self._parameters.items():
            self._add(_Record.PARAMETER, parameter, self.string(name), b"\0")
        function, sampling = 1, 21
        regions: dict[str, int] = {}
        for (parent, line), context in self._contexts.items():
            if line not in regions:
                regions[line] = first_region + len(regions)
                self.region(regions[line], line, "", "", 0, function, sampling)
            self._add(_Record.CALLING_CONTEXT, context, regions[line], UNDEFINED, parent)
        if self._contexts:
            every_nanosecond = (b"\0\1", -9, 1)  # mode time, to the base 10
            self._add(_Record.INTERRUPT_GENERATOR, 0, self.string("samples"), *every_nanosecond)


def write_anchor(
    path: Path, version: int, host: str, locations: int, definitions: int, properties: dict[str, str]
) -> None:
    """Write the file that stands for an archive."""

    def fixed(value: int, size: int = 8) -> bytes:
        return value.to_bytes(size, "little")

    named = b"".join(zero_ended(text) for pair in properties.items() for text in pair)
    about = zero_ended(host) + zero_ended("strobe") + zero_ended("")
    content = fixed(locations) + fixed(definitions) + about + fixed(len(properties), 4) + named
    digest = hashlib.blake2b(content, digest_size=8).digest()
    kinds = b"\1\1"  # files as they are, not compressed
    head = b"\3BOTF2\0\3\2" + bytes(_VERSIONS[version]) + fixed(EVENT_CHUNK_BYTES) + fixed(_DEFINITION_CHUNK_BYTES)
    path.write_bytes(head + kinds + content + digest + bytes(8) + b"\2\1\0")
