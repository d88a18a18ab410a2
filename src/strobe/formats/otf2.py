"""OTF2 archives: what Score-P writes (Vampir and Scalasca read it), and Extrae, TAU, EZTrace.

An archive is an anchor (traces.otf2), its definitions (traces.def), and a folder of that name with two files a
location: its events, and definitions of its own. Any of its files may lie compressed, or all in a tar or zip archive.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from strobe import native
from strobe.model.plugins import Format, Imported

if TYPE_CHECKING:
    from strobe.model.plugins import ImportSource, ImportTarget

_SUFFIX = ".otf2"
_ANCHOR_BYTES = 64 << 20


def sniff(head: bytes) -> bool:
    """Say whether it is an anchor: a byte 3, the byte order, and the name of the format."""
    return head[:1] == b"\3" and head[1:2] in (b"B", b"#") and head[2:7] == b"OTF2\0"


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import an archive: one process of it after the other, and its locations one after the other."""
    anchor = b""
    for chunk in source.chunks():
        anchor += chunk
        if len(anchor) > _ANCHOR_BYTES:
            raise ValueError("the anchor file is longer than any")
    reader = native.Otf2Reader(str(target.folder), target.buffer_bytes, anchor)
    name = Path(source.name.rpartition(":")[2]).name
    stem = name[: -len(_SUFFIX)] if name.endswith(_SUFFIX) else name
    definitions = source.beside(f"{stem}.def")
    if definitions is None:
        raise ValueError(f"its definitions are not there ('{stem}.def', in the same folder)")
    for chunk in definitions.chunks():
        reader.definitions(chunk)
    reader.end_definitions()
    processes = reader.processes()
    if not processes:
        raise ValueError(f"its definitions ('{stem}.def') name no location")
    # All of them before any is read: then it is known how much there is to do.
    files = {
        location: (source.beside(f"{stem}/{location}.def"), source.beside(f"{stem}/{location}.evt"))
        for locations in processes
        for location in locations
    }
    for process, locations in enumerate(processes):
        reader.begin_process(process, target.next_number())
        for location in locations:
            own, events = files[location]
            reader.begin_location(location, events is not None)
            for chunk in own.chunks() if own is not None else ():
                reader.local_definitions(chunk)
            for chunk in events.chunks() if events is not None else ():
                reader.events(chunk)
            reader.end_location()
        reader.end_process(source.name)
    report = json.loads(reader.report().decode("utf-8", "replace"))
    told = report["properties"]
    found = [each for each in report["processes"] if each["spans"]] or report["processes"]
    return Imported(
        processes=len(processes),
        first_ns=min((each["first_ns"] for each in found), default=0),
        last_ns=max((each["last_ns"] for each in found), default=0),
        base_ns=told.get("unix_ns"),
        host=told["machine"],
        properties=told,
        counters=report["counters"],
    )


FORMAT = Format(
    "otf2",
    "OTF2 archive: Score-P, Extrae, TAU, EZTrace",
    suffixes=(".otf2",),
    sniff=sniff,
    read=read,
    whole_folder=True,
)
