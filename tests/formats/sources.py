"""What a file of another tool holds, read again by a few plain lines for each format; and the comparison with strobe.

Nothing here is taken from the readers of strobe. `records` counts what the format's quality rows count. `sums` are by
name: calls and durations of spans, or the own weight of functions, in ns or in the unit of the file.
"""

import csv
import gzip
import io
import json
import pickle
import pstats
import re
import sqlite3
import struct
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import strobe

TIMES = {"start", "timestamp"}
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_NS |= {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
# Of Cube: the cells of such a metric are no plain numbers, and it counts as one record.
_ODD_NUMBERS = ("TAU_ATOMIC", "RATE", "COMPLEX", "HISTOGRAM", "NDOUBLES", "SCALE_FUNC")
_NUMBER = r"-?\d+(?:\.\d*)?"


@dataclass
class Source:
    """What a file holds. Sums that a format does not have, or that differ by rounding, stay empty."""

    records: int
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    own: dict[str, Fraction] = field(default_factory=dict)


def counted(trace: strobe.Trace) -> Counter[str]:
    """The counters of the quality table, of all processes together."""
    total: Counter[str] = Counter()
    for row in trace.quality.to_pylist():
        if row["value"] is not None:
            total[str(row["what"])] += int(str(row["value"]))
    return total


def records(trace: strobe.Trace) -> tuple[int, int, int]:
    """Records taken, left out, and of unknown kinds."""
    total = counted(trace)
    return total["records_taken"], total["records_left_out"], total["records_unknown"]


def sums(rows: Iterable[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """How many there are of each name, and the sum of their durations."""
    found: dict[str, list[int]] = {}
    for name, duration_ns in rows:
        of_name = found.setdefault(name, [0, 0])
        of_name[0] += 1
        of_name[1] += duration_ns
    return {name: (count, total_ns) for name, (count, total_ns) in found.items()}


def differences(trace: strobe.Trace, source: Source) -> list[str]:
    """What differs between a file as strobe opened it and as it was read here."""
    found = []
    if sum(records(trace)) != source.records:
        found.append(f"{source.records} records, of which {records(trace)} are taken, left out, unknown")
    if source.spans:
        rows = trace.sql("select name, duration_ns from spans").rows()
        spans = sums((str(name), int(str(duration))) for name, duration in rows)
        found += _different({name: spans.get(name) for name in source.spans}, source.spans)
    if source.own:
        rows = trace.sql(
            "select name, sum(self_ns)::BIGINT from statistics group by name having sum(self_ns) <> 0"
        ).rows()
        own = {str(name): Fraction(int(str(value))) for name, value in rows}
        expected = {name: value for name, value in source.own.items() if value}
        # Each call path is rounded once.
        paths = int(str(trace.sql("select count(*) from call_paths").rows()[0][0]))
        wrong = {name: value for name, value in expected.items() if abs(value - own.get(name, 0)) > Fraction(paths, 2)}
        found += _different({name: own.get(name) for name in wrong}, wrong)
        found += [f"{name} is not in the file" for name in own.keys() - expected.keys() if own[name] > paths]
    return found


def _different(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    return [f"{name[:60]}: {ours[name]} instead of {theirs[name]}" for name in theirs if ours[name] != theirs[name]]


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def _text(path: Path) -> str:
    data = _bytes(path)
    marked = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}.get(data[:2], "utf-8-sig")
    return data.decode(marked, "replace")


def _printed(path: Path, *command: str) -> str:
    """What a tool prints of its binary file; a text as it is."""
    if _bytes(path)[:8] != b"PERFILE2" and _bytes(path)[:4] != b"FLR\0":
        return _text(path)
    return subprocess.run([*command, str(path)], capture_output=True, text=True, check=True).stdout


def _json(path: Path) -> Any:
    return json.loads(_text(path), parse_float=Decimal)


# Traces


def events_of(path: Path) -> list[Any]:
    """The events of Chrome's JSON; one that ends early is closed."""
    text = _text(path).replace(": N/A", ": null")
    try:
        found = json.loads(text, parse_float=Decimal, strict=False)
    except json.JSONDecodeError:
        found = json.loads(text.rstrip().rstrip(",") + "]", parse_float=Decimal, strict=False)
    return list(found if isinstance(found, list) else found["traceEvents"])


def chrome(path: Path) -> Source:
    """Spans by name: X, and B with E where they nest as they should; names that open spans in other ways are left."""
    events = [event for event in events_of(path) if isinstance(event, dict)]
    rows: list[tuple[str, int]] = []
    others = {str(event.get("name")) for event in events if event.get("ph") in set("benSTpF")}
    stacks: dict[tuple[Any, Any], list[tuple[str, int]]] = {}
    # Functions of Python are named differently: by file and line.
    for event in (each for each in events if str(each.get("cat")).lower() not in ("python_function", "fee")):
        phase, name, stack = (
            event.get("ph"),
            event.get("name"),
            stacks.setdefault((event.get("pid"), event.get("tid")), []),
        )
        if phase == "X" and "dur" in event:
            rows.append((str(name), round(Decimal(event["dur"]) * 1000)))
        elif phase == "X":
            others.add(str(name))
        elif phase == "B":
            stack.append((str(name), round(Decimal(event["ts"]) * 1000)))
        elif phase == "E" and stack and name in (None, stack[-1][0]):
            opened, start = stack.pop()
            rows.append((opened, round(Decimal(event["ts"]) * 1000) - start))
        elif phase == "E" and stack:
            return Source(len(events_of(path)))
    others |= {name for stack in stacks.values() for name, _ in stack}
    return Source(len(events_of(path)), {name: each for name, each in sums(rows).items() if name not in others})


def tables(path: Path) -> Source:
    """Rows of SQLite tables with times; kernels by name, where their names are plain references."""
    database = sqlite3.connect(path)
    number, spans = 0, {}
    names = [table for (table,) in database.execute("select name from sqlite_master where type = 'table'")]
    for table in names:
        columns = {column[1] for column in database.execute(f'pragma table_info("{table}")')}
        if columns & TIMES:
            number += database.execute(f'select count(*) from "{table}"').fetchone()[0]
    if "CUPTI_ACTIVITY_KIND_KERNEL" in names and "StringIds" in names:
        kernels = "select value, end - start from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = demangledName"
        spans = sums(iter(database.execute(kernels).fetchall()))
    return Source(number, spans)


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number, and value or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, data[at : at + size]
            at += size


def parts(data: bytes, number: int) -> list[bytes]:
    """The messages in a field of this number."""
    return [value for field, value in fields(data) if field == number]


def xplane(path: Path) -> Source:
    """Events by name, but for those that are summed up; a function of Python is `$file.py:31 name`."""
    rows: list[tuple[str, int]] = []
    number = 0
    for plane in parts(_bytes(path), 1):
        entries = map(dict, map(fields, parts(plane, 4)))
        names = {entry[1]: dict(fields(entry[2])).get(2, b"").decode("utf-8", "replace") for entry in entries}
        for event in (dict(fields(each)) for line in parts(plane, 3) for each in parts(line, 4)):
            number += 1
            name, offset, duration = names[event[1]], event.get(2, 0), event.get(3, 0)
            name = re.sub(r"^\$(<[^<>]*>)?[^ ]* ", "", name)
            if 5 not in event:
                rows.append((name, (offset + duration) // 1000 - offset // 1000))
    return Source(number, sums(rows))


def perfetto(path: Path) -> Source:
    """Packets, and slices by name: of track events (field 11) from their begin (type 1) to their end (type 2)."""
    packets = parts(_bytes(path), 1)
    names: dict[tuple[int, int], str] = {}
    opened: dict[tuple[int, int], list[tuple[str, int]]] = {}
    rows: list[tuple[str, int]] = []
    for packet in packets:
        cells = dict(fields(packet))
        sequence, now = cells.get(10, 0), cells.get(8, 0)
        if cells.get(13, 0) & 1:  # the sequence forgets its names
            names = {key: name for key, name in names.items() if key[0] != sequence}
        for table in parts(packet, 12):
            for entry in map(dict, map(fields, parts(table, 2))):
                names[sequence, entry[1]] = entry[2].decode("utf-8", "replace")
        for event in map(dict, map(fields, parts(packet, 11))):
            stack = opened.setdefault((sequence if 11 not in event else 0, event.get(11, 0)), [])
            if event.get(9) == 1:
                own = (
                    event[23].decode("utf-8", "replace") if 23 in event else names.get((sequence, event.get(10, 0)), "")
                )
                stack.append((own, now))
            elif event.get(9) == 2 and stack:
                name, start = stack.pop()
                rows.append((name, now - start))
    open_names = {name for stack in opened.values() for name, _ in stack}
    return Source(len(packets), {name: each for name, each in sums(rows).items() if name not in open_names})


def otf2(path: Path) -> Source:
    """Read by the official package."""
    from tests.formats.otf2_archives import oracle

    told = oracle(path)
    return Source(told.events, sums((region, duration_ns) for _, region, _, duration_ns in told.spans))


# Profiles


def _add(own: dict[str, Fraction], name: str, value: Any) -> None:
    own[name] = own.get(name, Fraction(0)) + Fraction(value)


def collapsed(path: Path) -> Source:
    own: dict[str, Fraction] = {}
    lines = [line.strip() for line in _text(path).splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    for line in lines:
        if (row := re.fullmatch(rf"(.*\S)\s+({_NUMBER})", line)) and row[1]:
            leaf = row[1].rpartition(";")[2].strip()
            placed = re.fullmatch(r"(?:[^:]+\.py|<[^<>]+>):(.+):\d+|(.+) \([^()]+:\d+\)", leaf)
            _add(own, (placed[1] or placed[2]) if placed else leaf, row[2])
    return Source(len(lines), own=own)


def speedscope(path: Path) -> Source:
    body, own, number = _json(path), dict[str, Fraction](), 0
    names = [frame["name"] for frame in body["shared"]["frames"]]
    rows: list[tuple[str, int]] = []
    for profile in body["profiles"]:
        number += len(profile.get("events", profile.get("samples", ())))
        unit = _NS.get(profile["unit"])
        for stack, weight in zip(profile.get("samples", ()), profile.get("weights", ()), strict=False):
            if stack:
                _add(own, names[stack[-1]], Fraction(weight) * (unit or 1))
        opened: list[tuple[int, Any]] = []
        before: Any = 0
        for event in profile.get("events", ()):
            if opened and not unit:
                _add(own, names[opened[-1][0]], event["at"] - before)
            before = event["at"]
            if event["type"] == "O":
                opened.append((event["frame"], event["at"]))
            elif opened and opened[-1][0] == event["frame"]:
                _, start = opened.pop()
                if unit:
                    rows.append((names[event["frame"]], round(event["at"] * unit) - round(start * unit)))
            else:
                return Source(number)
    return Source(number, sums(rows), own)


def pprof(path: Path) -> Source:
    data, own = _bytes(path), dict[str, Fraction]()
    texts = [text.decode("utf-8", "replace") for text in parts(data, 6)]
    types = [dict(fields(each)) for each in parts(data, 1)]
    units = [_NS.get(texts[each.get(2, 0)]) for each in types]
    shown = max((i for i, unit in enumerate(units) if unit), default=len(types) - 1)
    functions = {each[1]: texts[each.get(2, 0)] for each in map(dict, map(fields, parts(data, 5)))}
    leaf = {}
    for place in parts(data, 4):
        lines = [dict(fields(line)) for line in parts(place, 4)]
        address = f"0x{dict(fields(place)).get(3, 0):x}"
        leaf[dict(fields(place))[1]] = functions.get(lines[0].get(1), "") if lines else address
    for sample in parts(data, 2):
        places, values = _numbers(sample, 1), _numbers(sample, 2)
        if places:
            signed = values[shown] - (1 << 64 if values[shown] >> 63 else 0)
            _add(own, leaf[places[0]] or "(no name)", signed * (units[shown] or 1))
    return Source(len(parts(data, 2)), own=own)


def _numbers(message: bytes, number: int) -> list[int]:
    """Repeated numbers, packed or not."""
    found = []
    for each, value in fields(message):
        if each == number:
            found += [value] if isinstance(value, int) else [one for _, one in fields(_keyed(value))]
    return found


def _keyed(packed: bytes) -> bytes:
    """Packed numbers, each with a key before it."""
    return b"".join(b"\x08" + each for each in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", packed, re.DOTALL))


def cprofile(path: Path) -> Source:
    stats: Any = pstats.Stats(str(path))
    own: dict[str, Fraction] = {}
    for (_, _, name), (_, _, spent, _, _) in stats.stats.items():
        _add(own, re.sub(" at 0x[0-9a-fA-F]*", "", name), round(spent * 10**9))
    return Source(sum(1 + len(callers) for *_, callers in stats.stats.values()), own=own)


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return type(name, (), {})


def line_profiler(path: Path) -> Source:
    stats = _Plain(io.BytesIO(path.read_bytes())).load()
    own: dict[str, Fraction] = {}
    for (_, _, name), lines in stats.timings.items():
        _add(own, name, sum(spent for _, _, spent in lines) * Fraction(stats.unit) * 10**9)
    return Source(sum(len(lines) for lines in stats.timings.values()), own=own)


def callgrind(path: Path) -> Source:
    """Own costs: the lines that follow no call, in the first event or the one that is a time."""
    lines = [line.strip() for line in _text(path).split("\n")]
    own, names, function, positions, called = dict[str, Fraction](), dict[str, str](), "", 1, False
    shown, unit = 0, 1
    for line in lines:
        if line.startswith("positions:"):
            positions = len(line.split()[1:])
        elif line.startswith("events:"):
            timed = [re.fullmatch(r".*\((\d*)(ns|us|ms|s)\)", each) for each in line.split()[1:]]
            shown = next((i for i, each in enumerate(timed) if each), 0)
            unit = int(timed[shown][1] or 1) * _NS[timed[shown][2]] if any(timed) else 1  # type: ignore[index]
        elif found := re.fullmatch(r"(c?fn)=\s*(\(\d+\))?\s*(.*)", line):
            name = names.setdefault(found[2], found[3]) if found[2] else found[3]
            function = name if found[1] == "fn" else function
        elif line.startswith("calls="):
            called = True
        elif line[:1] in tuple("0123456789+-*"):
            costs = line.split()[positions:]
            if not called and len(costs) > shown and costs[shown].isalnum():  # with a sign it is no cost
                _add(own, function, int(costs[shown], 0) * unit)
            called = False
    return Source(sum(bool(line) and not line.startswith("#") for line in lines), own=own)


def cube(path: Path) -> Source:
    """The cells of the metrics, and the own time where it is stored as exclusive numbers."""
    with tarfile.open(path, ignore_zeros=True) as archive:
        members = {each.name: each for each in archive}
        anchor = archive.extractfile(members["anchor.xml"]).read().decode("utf-8", "replace")  # type: ignore[union-attr]
        places, cells = len(re.findall("<location ", anchor)), 0
        for name, member in members.items():
            if name.endswith(".index"):
                content = archive.extractfile(member).read()  # type: ignore[union-attr]
                order = "<" if content[11:15] == b"\1\0\0\0" else ">"
                kind = re.search(rf'<metric id="{name[:-6]}".*?<dtype>(.*?)</dtype>', anchor, re.DOTALL)
                odd = kind is not None and kind[1].startswith(_ODD_NUMBERS)
                cells += 1 if odd else struct.unpack_from(f"{order}I", content, 18)[0] * places
    return Source(cells)


def perf(path: Path) -> Source:
    """Samples by the name of their innermost frame: periods of clocks, else one each."""
    events: list[list[str | None]] = []  # event, period, name
    for line in _printed(path, "perf", "script", "-i").splitlines():
        event = re.match(r"\s*\S.*?\s\d+(?:/\d+)?\s.*?(?:(\d+)\s+)?([A-Za-z][\w:/.,=-]*):(?:\s+(.*))?$", line)
        frame = re.match(r"\s+[0-9a-f]+\s+(.*)", line)
        if "PERF_RECORD_" in line or line.startswith("#"):
            continue
        if not line.strip() and events:
            events[-1][2] = events[-1][2] or ""  # its stack ends here
        elif event and not line.startswith("\t") and not re.match(r"\s+[0-9a-f]{6,}\s", line):
            only = re.match(r"\s*[0-9a-f]+ (.*\))$", event[3] or "")
            events.append([event[2], event[1], only[1] if only else None])
        elif frame and events and events[-1][2] is None:
            events[-1][2] = frame[1]
    own: dict[str, Fraction] = {}
    clocks = [each for each in events if (each[0] or "").split(":")[0] in ("cpu-clock", "task-clock") and each[1]]
    for _, period, frame_text in clocks or events:
        if frame_text:
            _add(own, _symbol(frame_text), int(period or 1) if clocks else 1)
    return Source(len(events), own=own)


def _symbol(frame: str) -> str:
    """The name in `name+0x1f (module)` and `name (inlined)`; a module for one that has no name."""
    name, _, module = frame.strip().rpartition(" (") if frame.rstrip().endswith(")") else (frame.strip(), "", "")
    name, module = re.sub(r"\+0x[0-9a-f]+$", "", name.strip()), module.strip("()[]")
    if name in ("", "[unknown]"):
        return f"[{module.rpartition('/')[2] or 'unknown'}]"
    return name.removeprefix("py::").partition(":")[0] if name.startswith("py::") else name


def _column(thread: Any, shared: Any, table: str, name: str) -> list[Any]:
    found = thread.get(table) or shared.get(table) or {}
    if "schema" in found:
        place = found["schema"].get(name)
        return [] if place is None else [(row[place] if len(row) > place else None) for row in found["data"]]
    return list(found.get(name) or ())


def firefox(path: Path) -> Source:
    """Samples with a stack, each for an interval; markers and samples of memory are records, too."""
    body = _json(path)
    body = body.get("profile", body)
    own, number, waiting = dict[str, Fraction](), 0, [body]
    for profile in waiting:
        waiting += profile.get("processes", ())
        waiting += [json.loads(thread) for thread in profile["threads"] if isinstance(thread, str)]
        for thread in (each for each in profile["threads"] if isinstance(each, dict)):
            shared = profile.get("shared", {})
            stacks = _column(thread, shared, "samples", "stack")
            given = _column(thread, shared, "samples", "weight") or [1] * len(stacks)
            number += len(stacks)
            for table in ("markers", "jsAllocations", "nativeAllocations"):
                rows = thread.get(table) or {}
                number += len(rows["data"]) if "schema" in rows else len(rows.get("name") or rows.get("time") or ())
            frames, functions = (
                _column(thread, shared, *of) for of in (("stackTable", "frame"), ("frameTable", "func"))
            )
            texts = thread.get("stringArray") or thread.get("stringTable") or shared.get("stringArray")
            names, places = (_column(thread, shared, *of) for of in (("funcTable", "name"), ("frameTable", "location")))
            for stack, weight in zip(stacks, given, strict=True):
                if stack is not None:
                    frame = frames[stack]
                    name = texts[places[frame]].partition(" (")[0] if places else texts[names[functions[frame]]]
                    name = name.removeprefix("py::").partition(":")[0] if name.startswith("py::") else name
                    _add(own, name or "(no name)", Fraction(weight) * Fraction(body["meta"]["interval"]) * 10**6)
    return Source(number, own=own)


def cpuprofile(path: Path) -> Source:
    """A sample lasts until the next one, in order of time."""
    body, own = _json(path), dict[str, Fraction]()
    nodes, waiting = {}, list(body.get("nodes") or [body["head"]])
    for node in waiting:
        nodes[node.get("id", len(nodes))] = node
        waiting += [child for child in node.get("children", ()) if isinstance(child, dict)]
    name_of = {number: node.get("callFrame", node)["functionName"] or "(anonymous)" for number, node in nodes.items()}
    if any("selfSize" in node for node in nodes.values()):
        for number, node in nodes.items():
            _add(own, name_of[number], node["selfSize"])
        return Source(sum(node["selfSize"] != 0 for node in nodes.values()), own=own)
    samples, now, times = body["samples"], Fraction(body["startTime"]), list[Fraction]()
    for delta in body.get("timeDeltas", ()):
        now += Fraction(delta)
        times.append(now)
    times = times or [Fraction(stamp) for stamp in body["timestamps"]]
    end = Fraction(body["endTime"]) * (1 if "timeDeltas" in body else 10**6)
    ordered = sorted(zip(times, samples, strict=False), key=lambda each: each[0])
    ends = [*(at for at, _ in ordered[1:]), max(end, ordered[-1][0])]
    for (at, sample), until in zip(ordered, ends, strict=True):
        if name_of[sample] != "(root)":
            _add(own, name_of[sample], (until - at) * 1000)
    return Source(len(samples), own=own)


def pyinstrument(path: Path) -> Source:
    body = _json(path)
    own: dict[str, Fraction] = {}
    for stack, seconds in body.get("frame_records", ()):
        code, *more = stack[-1].split("\x01")
        owner = [each[1:] for each in more if each[0] == "c" and each[1:]]
        _add(own, ".".join([*owner, code.split("\0")[0]]), Fraction(seconds) * 10**9)
    frames = [body["root_frame"]] if "root_frame" in body else []
    for frame in frames:
        inside = [each for each in frame["children"] if each["function"] != "[self]"]
        spent = Fraction(frame["time"]) - sum(Fraction(each["time"]) for each in inside)
        name = ".".join(filter(None, (frame.get("class_name"), frame["function"])))
        _add(own, name, spent * 10**9)
        frames += inside
    return Source(len(frames) or len(body["frame_records"]), own=own)


def stackprof(path: Path) -> Source:
    """The samples of the frames: raw ones hold the same, stack by stack."""
    body, own = _json(path), dict[str, Fraction]()
    timed = body["mode"] == "cpu" or (body["mode"] == "wall" and "raw_timestamp_deltas" not in body)
    step = Fraction(body["interval"]) * (1000 if timed else 1) if timed or body["mode"] == "object" else Fraction(1)
    for frame in body["frames"].values():
        _add(own, frame.get("name") or "(no name)", frame["samples"] * step)
    at, raw, number = 0, body.get("raw") or [], 0
    while at < len(raw):
        at += raw[at] + 2
        number += raw[at - 1]
    return Source(number or len(body["frames"]), own={} if body["mode"] == "wall" and not timed else own)


def memray(path: Path) -> Source:
    if not _bytes(path).startswith(b"allocator"):
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "x.csv")
            subprocess.run(["memray", "transform", "csv", "-o", table, path], capture_output=True, check=True)
            return memray(table)
    rows = list(csv.DictReader(io.StringIO(_text(path))))
    own: dict[str, Fraction] = {}
    for row in rows:
        _add(own, row["stack_trace"].split("|")[0].partition(";")[0] or "<no Python function>", int(row["size"]))
    return Source(len(rows), own=own)


def jfr(path: Path) -> Source:
    kinds = "jdk.ExecutionSample,jdk.NativeMethodSample"
    printed = _printed(path, "jfr", "print", "--json", "--stack-depth", "2048", "--events", kinds)
    events = json.loads(printed)["recording"]["events"]
    own: dict[str, Fraction] = {}
    for event in events:
        frames = (event["values"].get("stackTrace") or {}).get("frames")
        if frames and event["type"] in ("jdk.ExecutionSample", "jdk.NativeMethodSample"):
            method = frames[0]["method"]
            _add(own, f"{method['type']['name']}.{method['name']}".replace("/", "."), 1)
    return Source(len(events), own=own)


def tau(path: Path) -> Source:
    """Functions that are timed, without the rows of their call paths and the samples in them."""
    rows = [line for line in _text(path).splitlines() if line.startswith('"')]
    own: dict[str, Fraction] = {}
    timed = re.match(r"\d+ templated_functions(_MULTI_(TIME|LINUXTIMERS|CPU_TIME))?\s", _text(path))
    for row in rows if timed else ():
        found = re.fullmatch(r'"([^[].*)" (\S+) \S+ (\S+) (\S+) \S+ +GROUP=".*"\s*', row)
        if found and " => " not in found[1]:
            _add(own, re.sub(r" *\[\{.*\]$", "", found[1].strip()), Fraction(found[3]) * 1000)
    return Source(len(rows), own=own)


def rocm(path: Path) -> Source:
    """What the buffers of a JSON hold, or the tables of a database."""
    if path.read_bytes()[:6] == b"SQLite":
        return tables(path)
    buffers = [each["buffer_records"] for each in _json(path)["rocprofiler-sdk-tool"]]
    return Source(sum(len(rows) for each in buffers for rows in each.values() if isinstance(rows, list)))


def ncu(path: Path) -> Source:
    """Launches, or the rows of a summary."""
    table = re.search(r'^"(?:ID|Process ID)",.*', _text(path), re.DOTALL | re.MULTILINE)
    lines = table[0].splitlines() if table else []
    rows = list(csv.DictReader(line for line in lines if line.startswith('"')))
    if "Average" in rows[0]:
        return Source(len(rows))
    return Source(len({(row.get("Process ID"), row["ID"]) for row in rows if row["ID"]}))


_TYPE = re.compile(r'(?:GPU activities|API calls|OpenACC \(\w+\)|OpenMP \(\w+\)):\s+|"(?:GPU activities|API calls)",')


def nvprof_text(path: Path) -> Source:
    """Rows begin with a number, behind the names of their type or device and the levels of a call tree."""
    rows = [re.sub(r"^(\| )*", "", _TYPE.sub("", line.strip())) for line in _text(path).splitlines()]
    return Source(sum(re.match(r"\d|\"[^\"]*\",\d*,", row) is not None for row in rows))


READERS: dict[str, Callable[[Path], Source]] = {
    "chrome": chrome,
    "nsys": tables,
    "nvprof": tables,
    "xplane": xplane,
    "perfetto": perfetto,
    "otf2": otf2,
    "collapsed": collapsed,
    "speedscope": speedscope,
    "pprof": pprof,
    "pstats": cprofile,
    "line_profiler": line_profiler,
    "callgrind": callgrind,
    "cube4": cube,
    "perf": perf,
    "firefox": firefox,
    "cpuprofile": cpuprofile,
    "pyinstrument": pyinstrument,
    "stackprof": stackprof,
    "memray": memray,
    "jfr": jfr,
    "tau": tau,
    "rocm": rocm,
    "ncu": ncu,
    "nvprof_text": nvprof_text,
}


def format_of(trace: strobe.Trace) -> str:
    """The name of the format that strobe read a file as."""
    return trace.info.source.rpartition("(")[2].rstrip(")")
