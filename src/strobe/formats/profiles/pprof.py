"""pprof's profile.proto, gzipped or not: Go, Pyroscope, Parca, jemalloc, memray, ...

The last sample type that is a time is the time of the tables; the others are in `path_metrics`. A type `calls/count`
counts executions of a path itself; any other `count` counts samples. Labels named `thread` become locations; other
labels are only counted. Lines of the innermost frames are in `lines`.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from strobe.formats.reading import protobuf
from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight, read_whole
from strobe.formats.writing.output_files import new_file
from strobe.formats.writing.profile_export import Profile, weight_is_time
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.trace.trace import Trace

_VARINT, _BYTES = protobuf.VARINT, protobuf.BYTES
# Fields of Profile, and how each is encoded; repeated numbers may also come packed, as bytes.
_WIRE: dict[int, tuple[int, ...]] = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6, 11), (_BYTES,)),
    **dict.fromkeys((7, 8, 9, 10, 12, 14, 15), (_VARINT,)),
    13: (_VARINT, _BYTES),
}
# Those that are messages or texts, and repeated.
_PARTS = _TYPES, _SAMPLES, _MAPPINGS, _LOCATIONS, _FUNCTIONS, _TEXTS = (1, 2, 3, 4, 5, 6)
_CALLS = Weight("calls", "count")


def sniff(head: bytes) -> bool:
    """Return whether it is a message of Profile's fields, with a sample type or a string table's empty first entry."""
    typed = False
    try:
        for number, kind, _, body in protobuf.fields(head, cut=False):
            if kind not in _WIRE.get(number, ()) or (number in (1, 11) and not _is_value_type(body)):
                return False
            typed |= number == 1
    except protobuf.CutError:
        return typed
    except ValueError:
        return False
    return typed


def _is_value_type(body: bytes) -> bool:
    """Whether a message is two small numbers. Raises ValueError if it is damaged."""
    return all(each.number in (1, 2) and each.kind == protobuf.VARINT for each in protobuf.fields(body, cut=False))


def _by_number(body: bytes) -> dict[int, int]:
    """Return the signed numbers of a message by field, of a repeated one the last; 0 for texts."""
    return {each.number: protobuf.signed(each.integer) for each in protobuf.sound_fields(body)}


class _Message:
    """The content of a file by field; samples are decoded once everything that they refer to is known."""

    def __init__(self, data: bytes) -> None:
        self.parts: dict[int, list[bytes]] = {number: [] for number in _PARTS}
        self.facts: dict[int, list[int]] = {}
        self.truncated = False
        try:
            for each in protobuf.fields(data, cut=False):
                if each.kind != _VARINT and each.number in _PARTS:
                    self.parts[each.number].append(each.body)
                elif each.kind != _VARINT and each.number == 11:
                    kind = protobuf.fields(each.body, cut=False)
                    self.facts[each.number] = [protobuf.signed(field.integer) for field in kind]
                else:
                    self.facts.setdefault(each.number, []).extend(protobuf.integers(each))
        except ValueError:
            self.truncated = True
        self._texts = [body.decode("utf-8", "replace") for body in self.parts[_TEXTS]]

    def text(self, number: int) -> str:
        return self._texts[number] if 0 <= number < len(self._texts) else ""


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if it has no sample type."""
    message = _Message(read_whole(source))
    types = []
    for each in message.parts[_TYPES]:
        named = _by_number(each)
        types.append(Weight(message.text(named.get(1, 0)) or "samples", message.text(named.get(2, 0)) or "count"))
    if not types:
        raise ValueError("it has no sample type")
    process = ProfileProcess(source, target)
    process.core.count("truncated", int(message.truncated))
    _Reader(process, message, types).read()
    return process.finish(_properties(message, types))


@dataclass(frozen=True)
class _Frame:
    region: int
    function: Function
    line: int


class _Reader:
    """Turns samples into call trees, one for each thread in the labels."""

    def __init__(self, process: ProfileProcess, message: _Message, types: Sequence[Weight]) -> None:
        self._process, self._message, self._types = process, message, types
        self._calls = types.index(_CALLS) if _CALLS in types else None
        self._kept = [i for i in range(len(types)) if i != self._calls] or list(range(len(types)))
        self._trees: dict[str, tuple[int, CallTree]] = {}
        self._lines: dict[tuple[int, str, int, str, int], list[int]] = {}  # hits and ns; the module does not count
        self._frames = self._read_frames()
        times = [i for i, each in enumerate(types) if each.ns is not None]
        self._time = times[-1] if times else None

    def read(self) -> None:
        for data in self._message.parts[_SAMPLES]:
            self._sample(data)
        for _, tree in self._trees.values():
            tree.save()
        for (location, file, line, name, first), (hits, own_ns) in self._lines.items():
            total_ns = own_ns if self._time is not None else None
            self._process.line(location, Function(name, file, first), file, line, total_ns, hits)

    def _read_frames(self) -> dict[int, list[_Frame]]:
        """The frames of each location, outermost first: an address may lie in inlined functions."""
        process, text = self._process, self._message.text
        files: dict[int, str] = {}
        for body in self._message.parts[_MAPPINGS]:
            mapping = _by_number(body)
            files[mapping.get(1, 0)] = text(mapping.get(5, 0))
        functions: dict[int, tuple[str, str, int]] = {}
        for body in self._message.parts[_FUNCTIONS]:
            known = _by_number(body)
            name = text(known.get(2, 0)) or text(known.get(3, 0))
            if known.get(1, 0) in functions:
                process.core.count("duplicate_definition_ids")
            functions[known.get(1, 0)] = (name, text(known.get(4, 0)), max(0, known.get(5, 0)))
        by_location: dict[int, list[_Frame]] = {}
        for body in self._message.parts[_LOCATIONS]:
            location = _by_number(body)
            module = files.get(location.get(2, 0), "")
            frames = []
            for part in protobuf.sound_fields(body):
                if part.number != 4 or part.kind == _VARINT:
                    continue
                line = _by_number(part.body)
                name, file, first = functions.get(line.get(1, 0), ("", "", 0))
                if not name:
                    process.core.count("frames_without_function")
                function = Function(name, file, first, module)
                frames.append(_Frame(process.region(function), function, max(0, line.get(2, 0))))
            if not frames:
                function = Function(f"0x{location.get(3, 0) & 0xFFFFFFFFFFFFFFFF:x}", module=module)
                frames = [_Frame(process.region(function), function, 0)]
            if location.get(1, 0) in by_location:
                process.core.count("duplicate_definition_ids")
            by_location[location.get(1, 0)] = frames[::-1]
        return by_location

    def _sample(self, data: bytes) -> None:
        process = self._process
        stack: list[int] = []
        values: list[int] = []
        thread = ""
        for each in protobuf.sound_fields(data):
            if each.number == 1:
                stack.extend(protobuf.integers(each))
            elif each.number == 2:
                values.extend(protobuf.integers(each))
            elif each.number == 3 and each.kind != _VARINT:
                label = _by_number(each.body)
                if self._message.text(label.get(1, 0)) == "thread" and label.get(2):
                    thread = self._message.text(label.get(2, 0))
                else:
                    process.core.count("labels_not_kept")
        if len(values) != len(self._types):
            process.core.left_out("samples_not_understood")
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
            process.core.left_out("samples_without_stack")
            return
        location, tree = self._tree(thread)
        tree.add(path, [values[i] for i in self._kept], 1 if self._calls is None else max(0, values[self._calls]))
        if frame.line:
            function = frame.function
            key = (location, function.file, frame.line, function.name, function.line)
            row = self._lines.setdefault(key, [0, 0])
            counts = [value for value, each in zip(values, self._types, strict=True) if each.unit == "count"]
            row[0] += max(0, counts[0] if counts else 1)
            if self._time is not None:
                ns = self._types[self._time].ns
                row[1] += round(values[self._time] * ns) if ns is not None else 0

    def _tree(self, thread: str) -> tuple[int, CallTree]:
        if thread not in self._trees:
            if len(self._trees) >= 4096:  # labels of single requests are not threads
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
    properties: dict[str, object] = {"sample_types": [f"{each.name}/{each.unit}" for each in types]}
    for number, name in ((9, "time_ns"), (10, "duration_ns"), (12, "period")):
        if facts.get(number):
            properties[name] = facts[number][-1]
    for number, name in ((7, "drop_frames"), (8, "keep_frames"), (14, "default_sample_type"), (15, "documentation")):
        if facts.get(number):
            properties[name] = message.text(facts[number][-1])
    if facts.get(11):
        properties["period_type"] = "/".join(message.text(each) for each in facts[11])
    if facts.get(13):
        properties["comments"] = [message.text(each) for each in facts[13]]
    return properties


# Writing


class _Numbers:
    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def write(trace: Trace, path: Path) -> None:
    """Write the call tree of all locations: `calls/count`, `time/nanoseconds`, and the metrics of `path_metrics`.

    A sample is a call path in a location, which is its label `thread`.
    """
    profile, texts = Profile(trace), _Numbers()
    metrics: dict[tuple[int, int], dict[tuple[str, str], float]] = {}
    kinds: dict[tuple[str, str], int] = {}
    for row in trace.side_table("path_metrics").to_arrow().to_pylist():
        key = (row["metric"], row["unit"])
        kinds.setdefault(key, len(kinds))
        metrics.setdefault((row["location"], row["call_path"]), {})[key] = row["self_value"] or 0.0
    # Before the time: the last type that is a time is the one that is read as such.
    types = [("calls", "count"), *kinds, *([("time", "nanoseconds")] if weight_is_time(trace) else [])]
    modules = {module: i + 1 for i, module in enumerate(dict.fromkeys(f.module for f in profile.frames if f.module))}
    numbers = [protobuf.varint(region + 1) for region in range(len(profile.frames))]
    with new_file(path) as work, gzip.open(work, "wb", compresslevel=6) as out:
        for name, unit in types:
            out.write(protobuf.message(1, {1: texts[name], 2: texts[unit]}))
        for location, totals in profile.totals():
            label = protobuf.message(3, {1: texts["thread"], 2: texts[profile.locations[location]]})
            for each in totals:
                values = [each.count]
                found = metrics.get((location, each.path), {})
                values += [round(found.get(kind, 0)) for kind in kinds]
                values += [each.own_ns] if weight_is_time(trace) else []
                stack = b"".join(numbers[region] for region in reversed(profile.regions_of(each.path)))
                out.write(protobuf.message(2, {1: stack, 2: b"".join(map(protobuf.varint, values))}, label))
        for module, number in modules.items():
            out.write(protobuf.message(3, {1: number, 5: texts[module]}))
        for region, frame in enumerate(profile.frames, start=1):
            out.write(
                protobuf.message(4, {1: region, 2: modules.get(frame.module, 0)}, protobuf.message(4, {1: region}))
            )
            out.write(protobuf.message(5, {1: region, 2: texts[frame.name], 4: texts[frame.file], 5: frame.line}))
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
