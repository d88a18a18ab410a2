"""pprof's profile.proto, gzipped or not: Go, Pyroscope, Parca, jemalloc, memray, ...

The last sample type that is a time is the time of the tables; the others are in `path_metrics`. A type `calls/count`
counts executions of a path itself; any other `count` counts samples. Labels named `thread` become locations, other
labels are counted only. Lines of the innermost frames are in `lines`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strobe.model.plugins import Format, Imported
from strobe.store import protobuf
from strobe.store.profile_export import Profile, weight_is_time
from strobe.store.profile_import import ROOT, CallTree, ProfileProcess, Weight, read_whole

if TYPE_CHECKING:
    from pathlib import Path

    from strobe.model.plugins import ImportSource, ImportTarget
    from strobe.store.trace import Trace

Value = int | bytes
_SIGN = 1 << 63
_VARINT, _BYTES = protobuf.VARINT, protobuf.BYTES
# Fields of Profile, and how each is encoded; repeated numbers may also come packed, as bytes.
_WIRE: dict[int, tuple[int, ...]] = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6, 11), (_BYTES,)),
    **dict.fromkeys((7, 8, 9, 10, 12, 14, 15), (_VARINT,)),
    13: (_VARINT, _BYTES),
}
_CALLS = Weight("calls", "count")


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message: number, and an unsigned number or bytes. Raises ValueError where it is damaged."""
    at = 0
    while at < len(data):
        tag, at = protobuf.varint_at(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = protobuf.varint_at(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = protobuf.varint_at(data, at)
        elif wire in (protobuf.FIXED64, protobuf.FIXED32):
            size = 8 if wire == protobuf.FIXED64 else 4
        else:
            raise ValueError("a field has no known encoding")
        if number == 0 or size > len(data) - at:
            raise ValueError("a field is cut off")
        yield number, data[at : at + size]
        at += size


def _numbers(value: Value) -> Iterable[int]:
    """The numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = protobuf.varint_at(value, at)
        found.append(number)
    return found


def _signed(value: Value) -> int:
    number = value & 0xFFFFFFFFFFFFFFFF if isinstance(value, int) else 0
    return number - 2 * _SIGN if number >= _SIGN else number


def sniff(head: bytes) -> bool:
    """Say whether it is a message of Profile's fields, with a sample type or a string table's empty first entry."""
    at, typed = 0, False
    try:
        while at < len(head):
            tag, at = protobuf.varint_at(head, at)
            number, wire = tag >> 3, tag & 7
            if wire not in _WIRE.get(number, ()):
                return False
            if wire == _VARINT:
                _, at = protobuf.varint_at(head, at)
                continue
            size, at = protobuf.varint_at(head, at)
            if at + size > len(head):
                break
            if number in (1, 11):  # ValueType: two small numbers
                if any(
                    inner not in (1, 2) or not isinstance(value, int) for inner, value in _fields(head[at : at + size])
                ):
                    return False
                typed = typed or number == 1
            at += size
    except ValueError:
        return typed and len(head) - at < 12  # the head ends inside of a number
    return typed


@dataclass
class _Message:
    """What a file holds, by kind; samples are decoded once everything they refer to is known."""

    types: list[bytes] = field(default_factory=list)
    samples: list[bytes] = field(default_factory=list)
    mappings: list[bytes] = field(default_factory=list)
    locations: list[bytes] = field(default_factory=list)
    functions: list[bytes] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    facts: dict[int, list[int]] = field(default_factory=dict)
    truncated: bool = False

    def text(self, number: Value) -> str:
        return self.texts[number] if isinstance(number, int) and 0 <= number < len(self.texts) else ""


def _message(data: bytes) -> _Message:
    found = _Message()
    lists = {1: found.types, 2: found.samples, 3: found.mappings, 4: found.locations, 5: found.functions}
    try:
        for number, value in _fields(data):
            if number in lists and isinstance(value, bytes):
                lists[number].append(value)
            elif number == 6 and isinstance(value, bytes):
                found.texts.append(value.decode("utf-8", "replace"))
            elif number == 11 and isinstance(value, bytes):
                found.facts[number] = [_signed(v) for _, v in _fields(value)]
            else:
                found.facts.setdefault(number, []).extend(map(_signed, _numbers(value)))
    except ValueError:
        found.truncated = True
    return found


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError where it has no sample type."""
    message = _message(read_whole(source))
    types = []
    for each in message.types:
        named = dict(_sound(each))
        types.append(Weight(message.text(named.get(1, 0)) or "samples", message.text(named.get(2, 0)) or "count"))
    if not types:
        raise ValueError("it has no sample type")
    process = ProfileProcess(source, target)
    if message.truncated:
        process.core.count("truncated")
    _Reader(process, message, types).read()
    return process.finish(_properties(message, types))


def _sound(data: bytes) -> list[tuple[int, Value]]:
    """The fields of a message up to where it is damaged."""
    found = []
    try:
        for each in _fields(data):
            found.append(each)
    except ValueError:
        pass
    return found


@dataclass(frozen=True)
class _Frame:
    region: int
    line: tuple[str, int, str, int]  # file, line, function, its first line


class _Reader:
    """Samples into call trees, one for each thread that labels name."""

    def __init__(self, process: ProfileProcess, message: _Message, types: Sequence[Weight]) -> None:
        self._process, self._message, self._types = process, message, types
        self._calls = types.index(_CALLS) if _CALLS in types else None
        self._kept = [i for i in range(len(types)) if i != self._calls] or list(range(len(types)))
        self._trees: dict[str, tuple[int, CallTree]] = {}
        self._lines: dict[tuple[int, tuple[str, int, str, int]], list[int]] = {}
        self._frames = self._read_frames()
        times = [i for i, each in enumerate(types) if each.ns is not None]
        self._time = times[-1] if times else None

    def read(self) -> None:
        for data in self._message.samples:
            self._sample(data)
        for _, tree in self._trees.values():
            tree.save()
        for (location, (file, line, function, first)), (hits, own_ns) in self._lines.items():
            self._process.row(
                "lines",
                location,
                file=file,
                line=line,
                function=function,
                function_line=first or None,
                hits=hits,
                total_ns=own_ns if self._time is not None else None,
            )

    def _read_frames(self) -> dict[int, list[_Frame]]:
        """By location, its frames from the outermost: an address may lie in functions that were inlined."""
        process, text = self._process, self._message.text
        files: dict[int, str] = {}
        for data in self._message.mappings:
            told = dict(_sound(data))
            files[_signed(told.get(1, 0))] = text(told.get(5, 0))
        functions: dict[int, tuple[str, str, int]] = {}
        for data in self._message.functions:
            told = dict(_sound(data))
            name = text(told.get(2, 0)) or text(told.get(3, 0))
            if _signed(told.get(1, 0)) in functions:
                process.core.count("duplicate_definition_ids")
            functions[_signed(told.get(1, 0))] = (name, text(told.get(4, 0)), max(0, _signed(told.get(5, 0))))
        found: dict[int, list[_Frame]] = {}
        for data in self._message.locations:
            fields = _sound(data)
            told = dict(fields)
            module = files.get(_signed(told.get(2, 0)), "")
            address = told.get(3, 0)
            frames = []
            for number, value in fields:
                if number != 4 or not isinstance(value, bytes):
                    continue
                line = dict(_sound(value))
                name, file, first = functions.get(_signed(line.get(1, 0)), ("", "", 0))
                if not name:
                    process.core.count("frames_without_function")
                region = process.region(name, file, first, module)
                frames.append(_Frame(region, (file, max(0, _signed(line.get(2, 0))), name, first)))
            if not frames:
                shown = f"0x{address:x}" if isinstance(address, int) else ""
                frames = [_Frame(process.region(shown, "", 0, module), ("", 0, shown, 0))]
            if _signed(told.get(1, 0)) in found:
                process.core.count("duplicate_definition_ids")
            found[_signed(told.get(1, 0))] = frames[::-1]
        return found

    def _sample(self, data: bytes) -> None:
        process = self._process
        stack: list[int] = []
        values: list[int] = []
        thread = ""
        for number, value in _sound(data):
            if number == 1:
                stack.extend(map(_signed, _numbers(value)))
            elif number == 2:
                values.extend(map(_signed, _numbers(value)))
            elif number == 3 and isinstance(value, bytes):
                label = dict(_sound(value))
                if self._message.text(label.get(1, 0)) == "thread" and label.get(2):
                    thread = self._message.text(label.get(2, 0))
                else:
                    process.core.count("labels_not_kept")
        if len(values) != len(self._types):
            process.core.count("samples_not_understood")
            return
        path, frame = ROOT, None
        for location in reversed(stack):
            frames = self._frames.get(location)
            if frames is None:
                process.core.count("frames_without_location")
                continue
            for frame in frames:
                path = process.path(path, frame.region)
        if path == ROOT or frame is None:
            process.core.count("samples_without_stack")
            return
        location, tree = self._tree(thread)
        tree.add(path, [values[i] for i in self._kept], 1 if self._calls is None else max(0, values[self._calls]))
        if frame.line[1]:
            row = self._lines.setdefault((location, frame.line), [0, 0])
            counts = [value for value, each in zip(values, self._types, strict=True) if each.unit == "count"]
            row[0] += max(0, counts[0] if counts else 1)
            if self._time is not None:
                ns = self._types[self._time].ns
                row[1] += round(values[self._time] * ns) if ns is not None else 0

    def _tree(self, thread: str) -> tuple[int, CallTree]:
        if thread not in self._trees:
            if len(self._trees) >= 4096:  # a label of every request is no thread
                self._process.core.count("threads_folded")
                return next(iter(self._trees.values()))
            location = self._process.location(thread or "samples", len(self._trees) + 1)
            tree = CallTree(
                self._process, location, [self._types[i] for i in self._kept], calls=self._calls is not None
            )
            self._trees[thread] = (location, tree)
        return self._trees[thread]


def _properties(message: _Message, types: Sequence[Weight]) -> dict[str, object]:
    facts = message.facts
    told: dict[str, object] = {"sample_types": [f"{each.name}/{each.unit}" for each in types]}
    for number, name in ((9, "time_ns"), (10, "duration_ns"), (12, "period")):
        if facts.get(number):
            told[name] = facts[number][-1]
    for number, name in ((7, "drop_frames"), (8, "keep_frames"), (14, "default_sample_type"), (15, "documentation")):
        if facts.get(number):
            told[name] = message.text(facts[number][-1])
    if facts.get(11):
        told["period_type"] = "/".join(message.text(each) for each in facts[11])
    if facts.get(13):
        told["comments"] = [message.text(each) for each in facts[13]]
    return told


# Writing


class _Texts:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def write(trace: Trace, path: Path) -> None:
    """Write the call tree of all locations: `calls/count`, `time/nanoseconds`, and what `path_metrics` holds.

    A sample is a call path in a location, which is its label `thread`.
    """
    profile, texts = Profile(trace), _Texts()
    metrics: dict[tuple[int, int], dict[tuple[str, str], float]] = {}
    kinds: dict[tuple[str, str], int] = {}
    for row in trace.side_table("path_metrics").to_pylist():
        key = (str(row["metric"]), str(row["unit"]))
        kinds.setdefault(key, len(kinds))
        metrics.setdefault((int(str(row["location"])), int(str(row["call_path"]))), {})[key] = float(
            str(row["self_value"] or 0)
        )
    # Before the time: the last type that is a time is the one that is read as such.
    types = [("calls", "count"), *kinds, *([("time", "nanoseconds")] if weight_is_time(trace) else [])]
    modules = {module: i + 1 for i, module in enumerate(dict.fromkeys(f.module for f in profile.frames if f.module))}
    numbers = [protobuf.varint(region + 1) for region in range(len(profile.frames))]
    with gzip.open(path, "wb", compresslevel=6) as out:
        for name, unit in types:
            out.write(protobuf.text(1, protobuf.number(1, texts[name]) + protobuf.number(2, texts[unit])))
        for location, totals in profile.totals():
            label = protobuf.text(
                3, protobuf.number(1, texts["thread"]) + protobuf.number(2, texts[profile.locations[location]])
            )
            for each in totals:
                values = [each.count]
                found = metrics.get((location, each.path), {})
                values += [round(found.get(kind, 0)) for kind in kinds]
                values += [each.own_ns] if weight_is_time(trace) else []
                stack = b"".join(numbers[region] for region in reversed(profile.regions_of(each.path)))
                out.write(
                    protobuf.text(
                        2, protobuf.text(1, stack) + protobuf.text(2, b"".join(map(protobuf.varint, values))) + label
                    )
                )
        for module, number in modules.items():
            out.write(protobuf.text(3, protobuf.number(1, number) + protobuf.number(5, texts[module])))
        for region, frame in enumerate(profile.frames):
            line = protobuf.text(4, protobuf.number(1, region + 1))
            out.write(
                protobuf.text(
                    4, protobuf.number(1, region + 1) + protobuf.number(2, modules.get(frame.module, 0)) + line
                )
            )
            named = (
                protobuf.number(2, texts[frame.name])
                + protobuf.number(4, texts[frame.file])
                + protobuf.number(5, frame.line)
            )
            out.write(protobuf.text(5, protobuf.number(1, region + 1) + named))
        out.write(protobuf.number(14, texts[types[-1][0]]))
        for text in texts.numbers:
            out.write(protobuf.text(6, text.encode("utf-8", "replace")))


FORMAT = Format(
    "pprof",
    "pprof: Go, Pyroscope, Parca, ... (profile.proto)",
    suffixes=(".pb.gz", ".pprof", ".prof"),
    sniff=sniff,
    read=read,
    write=write,
)
