"""XPlane (.xplane.pb): profiles of JAX and TensorFlow, for XProf and TensorBoard.

Times of events are picoseconds since the start of their line. Both ends are rounded down to nanoseconds, so that nested
events stay nested; the number of rounded events is counted (`times_rounded`).
"""

from __future__ import annotations

import json
import mmap

import numpy as np

from strobe import native
from strobe.formats.reading import protobuf
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

# Fields of XSpace and XPlane (tsl/profiler/protobuf/xplane.proto), and of the entries of XPlane's maps.
_SPACE = {1: protobuf.BYTES, 2: protobuf.BYTES, 3: protobuf.BYTES, 4: protobuf.BYTES}
_PLANE = {1: protobuf.VARINT, **dict.fromkeys((2, 3, 4, 5, 6), protobuf.BYTES)}
_ENTRY = {1: protobuf.VARINT, 2: protobuf.BYTES}
# Clocks that count from a moment of their own are far from 2001 in unix time.
_UNIX_NS = 1_000_000_000 * 1_000_000_000


def sniff(head: bytes) -> bool:
    """Return whether it begins with a plane that has a name and only fields of planes."""
    try:
        for number, kind, _, body in protobuf.fields(head):
            if _SPACE.get(number) != kind:
                return False
            if number == 1:
                return _is_plane(body)
    except ValueError:
        pass
    return False


def _is_plane(body: bytes) -> bool:
    named = False
    try:
        for number, kind, _, inside in protobuf.fields(body):
            if _PLANE.get(number) != kind:
                return False
            if number == 2:
                named = bool(inside) and inside.decode("utf-8").isprintable()
            elif number in (4, 5) and not _is_entry(inside):
                return False
    except protobuf.CutError:
        pass  # the plane is longer than the head of the file
    except ValueError:
        return False
    return named


def _is_entry(body: bytes) -> bool:
    try:
        return all(_ENTRY.get(field.number) == field.kind for field in protobuf.fields(body))
    except protobuf.CutError:
        return True


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file: its planes one after the other, read in place."""
    path = source.local_path()
    number = target.next_number()
    blocks = str(target.folder / f"process-{number}.blocks")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        whole = np.frombuffer(mapped, dtype=np.uint8)
        try:
            result = native.read_xplane(whole, blocks, target.buffer_bytes, source.name)
        finally:
            del whole  # else the file cannot be closed
    report = json.loads(result.decode("utf-8", "replace"))
    first = report["first_ns"]
    return Imported(
        processes=1,
        first_ns=first,
        last_ns=report["last_ns"],
        # Older files count from 1970, newer ones from the start of the profile.
        base_ns=0 if first > _UNIX_NS else report["profile_start_ns"] or None,
        host=report["host"],
        properties=report["properties"],
        counters=report["counters"],
    )


FORMAT = Format("xplane", "XPlane: JAX, TensorFlow", suffixes=(".xplane.pb",), sniff=sniff, read=read)
