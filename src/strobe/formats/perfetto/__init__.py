"""Perfetto's protobuf traces (.pftrace, .perfetto-trace), of its SDK, Chromium, Android and many converters.

Exports are read again as they were: see `export.py`.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from strobe import native
from strobe.formats.perfetto.export import Writer
from strobe.formats.reading import protobuf
from strobe.formats.writing.left_out import sums_left_out
from strobe.formats.writing.output_files import new_file
from strobe.model.kinds import PARADIGMS, ROLES
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.trace.trace import Trace

_ZLIB_PACKETS, _ZSTD_PACKETS = 50, 133
_MOST_UNPACKED = 64 << 20  # of one compressed packet
_SNIFFED_PACKETS = 16
_HEAD_BYTES = 1 << 16
# Fields of TracePacket (protos/perfetto/trace/trace_packet.proto) that are numbers; the others are messages.
_NUMBERS = frozenset((3, 8, 10, 13, 41, 42, 58, 79, 87, 98))
_LAST_FIELD, _TESTING = 135, 900
_ZERO = "strobe.zero_ns"  # an attribute of our own exports
_FIRST_OF_ITS_OWN = 7  # smaller fields other formats have, too


def sniff(head: bytes) -> bool:
    """Return whether it begins with packets: messages with fields of packets only, one at least of their own.

    XPlane begins alike, with messages in field 1: its planes have fields up to 6 only.
    """
    own, packets, cut = False, 0, False
    try:
        for number, kind, _, body in protobuf.fields(head):
            if number != 1 or kind != protobuf.BYTES:
                return False
            for field, inner, _, _ in protobuf.fields(body):
                if inner != (protobuf.VARINT if field in _NUMBERS else protobuf.BYTES):
                    return False
                if field > _LAST_FIELD and field != _TESTING:
                    return False
                own |= field >= _FIRST_OF_ITS_OWN
            packets += 1
            if packets >= _SNIFFED_PACKETS:
                break
    except protobuf.CutError:
        cut = True  # a packet that is longer than the head of the file
    except ValueError:
        return False
    return own and (packets > 0 or (cut and len(head) >= _HEAD_BYTES))


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file, in pieces as they come."""
    reader = native.perfetto_reader(
        str(target.folder), target.next_number(), target.buffer_bytes, PARADIGMS, ROLES, _inflated
    )
    for chunk in source.chunks():
        reader.feed(chunk)
    report = json.loads(reader.finish(source.name).decode("utf-8", "replace"))
    processes, properties = report["processes"], report["properties"]
    for _ in processes[1:]:
        target.next_number()
    found = [each for each in processes if each["first_ns"] <= each["last_ns"]]
    first = min((each["first_ns"] for each in found), default=0)
    zero = properties["attributes"].get(_ZERO, "")
    return Imported(
        processes=len(processes),
        first_ns=int(zero) if zero.lstrip("-").isdigit() else first,
        last_ns=max((each["last_ns"] for each in found), default=0),
        base_ns=properties.get("unix_ns"),
        properties=properties,
        counters=report["counters"],
    )


def _inflated(field: int, packed: bytes) -> bytes:
    """Return compressed packets; nothing if they are damaged, or more than any writer packs together."""
    try:
        if field == _ZLIB_PACKETS:
            stream = zlib.decompressobj()
            found = stream.decompress(packed, _MOST_UNPACKED)
            return found if stream.eof else b""
        found, left = native.ZstdStream().decompress(packed, _MOST_UNPACKED)
        return b"" if left else found
    except (zlib.error, ValueError):
        return b""


def write(trace: Trace, path: Path) -> list[str]:
    """Write a trace: a sequence of packets a location, with interned texts and times that count from packet to packet.

    Returns sentences about what the file cannot hold. One batch of spans is in memory at a time, and the flows of one
    location as far as they are few.
    """
    with new_file(path) as work, work.open("wb") as out:
        Writer(trace, out).write()
    return sums_left_out(trace, "Perfetto's format")


FORMAT = Format(
    "perfetto",
    "Perfetto protobuf trace",
    suffixes=(".pftrace", ".perfetto-trace"),
    sniff=sniff,
    read=read,
    write=write,
)
