"""The block format in plain Python, written and read: docs/format/blocks.md, executable.

Everything is little-endian. A file is a sequence of chunks: a header of 32 bytes, checked by its own CRC-32C, and a
payload, checked by another. Reading goes on behind what is damaged, at the next sound header.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

MAGIC, VERSION = b"SRBK", 1
PROCESS, REGIONS, LOCATION, PATHS, SPANS, METRIC, SAMPLES, END = range(1, 9)
LOOPS, CLASSES, ITERATIONS, STATISTICS = range(9, 13)
HEADER = struct.Struct("<4sBBHIIIIII")  # magic, kind, version, flags, payload bytes, location, count, crc, unused, crc
SPANS_HEADER = struct.Struct("<QqqQQII3II")
OPEN_SPAN, CLOSE = struct.Struct("<QqII"), struct.Struct("<Qq")
NO_PATH = 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli, reflected 0x82F63B78), bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def chunk(kind: int, payload: bytes, *, location: int = 0, count: int = 1) -> bytes:
    head = HEADER.pack(MAGIC, kind, VERSION, 0, len(payload), location, count, crc32c(payload), 0, 0)[:28]
    return head + struct.pack("<I", crc32c(head)) + payload


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<H", len(raw)) + raw


def process(**facts: object) -> bytes:
    return chunk(PROCESS, json.dumps({"pid": 1, "parent_pid": 0, "started_ns": 0, **facts}).encode())


def end(**facts: object) -> bytes:
    return chunk(END, json.dumps({"end_state": "closed", "exit_code": 0, "ended_ns": 0, **facts}).encode())


def regions(rows: Iterable[tuple[int, int, int, int, str, str, str]]) -> bytes:
    """Rows are (id, paradigm, role, line, name, file, module)."""
    rows = list(rows)
    parts = [struct.pack("<IBBI", *row[:4]) + b"".join(map(text, row[4:])) for row in rows]
    return chunk(REGIONS, b"".join(parts), count=len(rows))


def location(number: int, thread_id: int, name: str) -> bytes:
    return chunk(LOCATION, struct.pack("<QB", thread_id, 0) + text(name), location=number)


def paths(first: int, rows: Sequence[tuple[int, int]]) -> bytes:
    """Rows are (parent path, region)."""
    return chunk(PATHS, b"".join(struct.pack("<II", *row) for row in rows), location=first, count=len(rows))


def zigzag(value: int) -> int:
    return value << 1 if value >= 0 else -value * 2 - 1


def column(values: Iterable[int]) -> bytes:
    frame = compress(b"".join(map(varint, values)))
    return struct.pack("<I", len(frame)) + frame


def loops(rows: Iterable[tuple[int, int, str, int, int, int, str, str]]) -> bytes:
    """Rows are (number, kind, name, accepted_ns, accepted_iteration, ended_ns, reason, confidence)."""
    rows = list(rows)
    parts = [
        struct.pack("<IB", *row[:2]) + text(row[2]) + struct.pack("<qQq", *row[3:6]) + text(row[6]) + text(row[7])
        for row in rows
    ]
    return chunk(LOOPS, b"".join(parts), count=len(rows))


def classes(rows: Sequence[Sequence[int]]) -> bytes:
    return chunk(CLASSES, b"".join(struct.pack(f"<I{len(row)}I", len(row), *row) for row in rows), count=len(rows))


def iterations(first: int, rows: Sequence[tuple[int, ...]]) -> bytes:
    """Rows are (loop, start, duration, events, path hash, class, detail, detail start, four or five parts in ns)."""
    hashes = list(dict.fromkeys(row[4] for row in rows))
    coded, end, events = [], 0, 0
    for loop, start, duration, began, path_hash, class_id, detail, detail_ns, *parts in rows:
        since = zigzag(detail_ns - start) if detail == 1 else 0
        fixed = [loop, zigzag(start - end), zigzag(duration), zigzag(began - events), hashes.index(path_hash)]
        coded.append([*fixed, class_id, detail, since, *map(zigzag, parts)])
        end, events = start + duration, began
    columns = [column(values) for values in zip(*coded, strict=True)]
    payload = struct.pack("<I", len(hashes)) + b"".join(columns[:12]) + column(hashes) + b"".join(columns[12:])
    return chunk(ITERATIONS, payload, location=first, count=len(rows))


def statistics(rows: Sequence[tuple[int, int, int, int, int, int, int, int, float, dict[int, int]]]) -> bytes:
    """Rows are (location, path, class, count, total, own, min, max, sum of squares, {bucket: count})."""
    coded = []
    for where, path, class_id, count, total, own, least, most, squares, buckets in rows:
        (bits,) = struct.unpack("<Q", struct.pack("<d", squares))
        sizes = [zigzag(least), zigzag(most - least)] if count else [0, 0]
        key = [where, path, (class_id + 1) % 2**32]
        coded.append([*key, count, zigzag(total), zigzag(own), *sizes, bits, len(buckets)])
    columns = [column(values) for values in zip(*coded, strict=True)]
    used = [pair for row in rows for pair in sorted(row[-1].items())]
    payload = struct.pack("<I", len(used)) + b"".join(columns)
    payload += column(bucket for bucket, _ in used) + column(count for _, count in used)
    return chunk(STATISTICS, payload, count=len(rows))


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compress(raw: bytes) -> bytes:
    return bytes(pa.Codec("zstd", 1).compress(raw, asbytes=True))


def block(
    number: int,
    first_row: int,
    rows: Sequence[tuple[int, int | None, int]],
    *,
    last_ns: int,
    carry: Sequence[tuple[int, int, int, int]] = (),
    closes: Sequence[tuple[int, int]] = (),
) -> bytes:
    """Rows are (start ns, duration ns or None while open, path), in order of start.

    `carry` are the spans that are open at the beginning of the block: (row, start ns, path, region), outermost first.
    `closes` are the ends, (row, end ns), of spans that were open when an earlier block was sealed.
    """
    first_ns = rows[0][0] if rows else last_ns
    columns = [bytearray(), bytearray(), bytearray()]
    previous = first_ns
    for start, duration, path in rows:
        columns[0] += varint(start - previous)
        columns[1] += varint(0 if duration is None else duration + 1)
        columns[2] += varint(path)
        previous = start
    frames = [compress(bytes(column)) for column in columns]
    sizes = [len(frame) for frame in frames]
    head = SPANS_HEADER.pack(first_row, first_ns, last_ns, 0, 0, len(carry), len(closes), *sizes, 0)
    tables = b"".join(OPEN_SPAN.pack(*row) for row in carry) + b"".join(CLOSE.pack(*row) for row in closes)
    return chunk(SPANS, head + tables + b"".join(frames), location=number, count=len(rows))


@dataclass
class Contents:
    """What a block file holds. A span is (row, start ns, end ns or None, path)."""

    process: list[dict[str, object]] = field(default_factory=list)
    end: list[dict[str, object]] = field(default_factory=list)
    regions: list[tuple[int, int, int, int, str, str, str]] = field(default_factory=list)
    locations: dict[int, tuple[int, str]] = field(default_factory=dict)
    paths: dict[int, tuple[int, int]] = field(default_factory=dict)
    spans: dict[int, list[tuple[int, int, int | None, int]]] = field(default_factory=dict)
    samples: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    metrics: dict[int, tuple[str, str]] = field(default_factory=dict)
    last_ns: int = 0
    bytes_lost: int = 0


class Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def text(self) -> str:
        (size,) = self.take("H")
        self.at += size
        return self.data[self.at - size : self.at].decode(errors="backslashreplace")


def read(data: bytes) -> Contents:
    """Read a block file as the native reader does."""
    found, ends = Contents(), dict[tuple[int, int], int]()
    at = 0
    while at < len(data):
        if not sound(data, at):
            after = at + 1
            while (after := data.find(MAGIC, after)) != -1 and not sound_header(data, after):
                after += 1
            after = len(data) if after == -1 else after
            found.bytes_lost += after - at
            at = after
            continue
        _, kind, _, _, size, where, count, crc, _, _ = HEADER.unpack_from(data, at)
        payload = data[at + HEADER.size : at + HEADER.size + size]
        at += HEADER.size + size
        if crc32c(payload) != crc:
            found.bytes_lost += HEADER.size + size
            continue
        read_chunk(found, ends, kind, where, count, payload)
    for number, rows in found.spans.items():
        found.spans[number] = [(row, start, ends.get((number, row), stop), path) for row, start, stop, path in rows]
    return found


def sound_header(data: bytes, at: int) -> bool:
    head = data[at : at + HEADER.size]
    return len(head) == HEADER.size and head[:4] == MAGIC and crc32c(head[:28]) == struct.unpack("<I", head[28:])[0]


def sound(data: bytes, at: int) -> bool:
    return sound_header(data, at) and HEADER.unpack_from(data, at)[4] <= len(data) - at - HEADER.size


def read_chunk(
    found: Contents, ends: dict[tuple[int, int], int], kind: int, where: int, count: int, payload: bytes
) -> None:
    cursor = Cursor(payload)
    if kind == PROCESS:
        found.process.append(json.loads(payload))
    elif kind == END:
        found.end.append(json.loads(payload))
    elif kind == REGIONS:
        for _ in range(count):
            number, paradigm, role, line = cursor.take("IBBI")
            found.regions.append((number, paradigm, role, line, cursor.text(), cursor.text(), cursor.text()))
    elif kind == LOCATION:
        thread_id, _ = cursor.take("QB")
        found.locations[where] = (thread_id, cursor.text())
    elif kind == PATHS:
        for number in range(where, where + count):
            parent, region = cursor.take("II")
            found.paths[number] = (parent, region)
    elif kind == METRIC:
        found.metrics[where] = (cursor.text(), cursor.text())
    elif kind == SAMPLES:
        for _ in range(count):
            metric, time_ns, value = cursor.take("Iqd")
            found.samples.setdefault(metric, []).append((time_ns, value))
    elif kind == SPANS:
        first_row, first_ns, last_ns, _, _, carried, closed, *sizes, _ = SPANS_HEADER.unpack_from(payload)
        cursor.at = SPANS_HEADER.size
        carry = [cursor.take("QqII") for _ in range(carried)]
        for _ in range(closed):
            row, end_ns = cursor.take("Qq")
            ends.setdefault((where, row), end_ns)
        columns = []
        for size in sizes:
            frame = payload[cursor.at : cursor.at + size]
            columns.append(varints(pa.CompressedInputStream(pa.BufferReader(frame), "zstd").read(), count))
            cursor.at += size
        start = first_ns
        # What was open already is known from the first sound block, should those before it be damaged.
        rows = found.spans.setdefault(where, [(row, begun, None, path) for row, begun, path, _ in carry])
        for i, (delta, duration, path) in enumerate(zip(*columns, strict=True)):
            start += delta
            rows.append((first_row + i, start, start + duration - 1 if duration else None, path))
        found.last_ns = max(found.last_ns, last_ns)


def varints(raw: bytes, count: int) -> list[int]:
    values, value, shift = [], 0, 0
    for byte in raw:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            values.append(value)
            value, shift = 0, 0
    assert len(values) == count
    return values
