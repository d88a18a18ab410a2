"""OTF2 archives of Score-P (read by Vampir and Scalasca), Extrae, TAU and EZTrace.

An archive is an anchor (traces.otf2), its definitions (traces.def), and a folder of that name with two files a
location: its events, and definitions of its own. Any of its files may lie compressed, or all in a tar or zip archive.
"""

from __future__ import annotations

import json
from pathlib import Path

from strobe import native
from strobe.errors import UsageError
from strobe.formats.otf2.export import Writer
from strobe.formats.writing.left_out import sums_left_out
from strobe.formats.writing.output_files import new_folder
from strobe.model.kinds import PARADIGMS, ROLES
from strobe.model.option import Option
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget
from strobe.trace.trace import Trace

_SUFFIX = ".otf2"
_ANCHOR_BYTES = 64 << 20
_LONGEST_NUMBER = 19


def sniff(head: bytes) -> bool:
    """Return whether it is an anchor: a byte 3, the byte order, and the name of the format."""
    return head[:1] == b"\3" and head[1:2] in (b"B", b"#") and head[2:7] == b"OTF2\0"


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import an archive: one process of it after the other, and its locations one after the other."""
    anchor = b""
    for chunk in source.chunks():
        anchor += chunk
        if len(anchor) > _ANCHOR_BYTES:
            raise ValueError("the anchor file is longer than any")
    reader = native.Otf2Reader(str(target.folder), target.buffer_bytes, anchor, PARADIGMS, ROLES)
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
    properties = report["properties"]
    found = [each for each in report["processes"] if each["spans"]] or report["processes"]
    first = min((each["first_ns"] for each in found), default=0)
    zero = str(properties.get("STROBE::ZERO_NS", ""))
    return Imported(
        processes=len(processes),
        first_ns=int(zero) if zero.isdecimal() and len(zero) < _LONGEST_NUMBER else first,
        last_ns=max((each["last_ns"] for each in found), default=0),
        base_ns=properties.get("unix_ns"),
        host=properties["machine"],
        properties=properties,
        counters=report["counters"],
    )


def write(trace: Trace, path: Path, *, otf2_version: int = 3) -> list[str]:
    """Write a trace as an archive: a folder with the anchor `traces.otf2`, which Vampir and otf2-print open.

    `otf2_version` 2 leaves out what readers before OTF2 3.0 do not know (groups of accelerators, records of
    collectives that do not block), and what those before 3.1 do not know (the role of kernels).
    Returns sentences about what the archive cannot hold.
    """
    if otf2_version not in (2, 3):
        raise UsageError(f"no version {otf2_version} of OTF2 can be written", do="--otf2-version 2 or 3")
    notes = sums_left_out(trace, "OTF2")
    with new_folder(path, _is_ours, "it is not an archive that strobe wrote") as work:
        writer = Writer(trace, work, otf2_version)
        writer.write()
    if writer.incomplete:
        notes.append(f"{writer.incomplete} spans that were cut off look like whole ones in OTF2")
    if writer.attributes_left_out:
        notes.append(f"{writer.attributes_left_out} events have more attributes than OTF2 holds: they are left out")
    if folded := writer.lacking["folded"]:
        notes.append(f"{folded} messages of folded steps are left out: the calls that they belong to are not there")
    if blocking := writer.lacking["blocking"]:
        notes.append(
            f"{blocking} non-blocking messages and collectives look like blocking ones in OTF2: "
            "their request or completion lies outside of what is exported"
        )
    if writer.texts_cut:
        notes.append(f"{writer.texts_cut} texts are longer than OTF2 holds: they are cut")
    return notes


def _is_ours(folder: Path) -> bool:
    anchor = folder / "traces.otf2"
    if not any(folder.iterdir()):
        return True
    complete = {each.name for each in folder.iterdir()} == {"traces.otf2", "traces.def", "traces"}
    return complete and b"STROBE::ZERO_NS" in anchor.read_bytes()


FORMAT = Format(
    "otf2",
    "OTF2 archive: Score-P, Extrae, TAU, EZTrace",
    suffixes=(".otf2",),
    sniff=sniff,
    read=read,
    write=write,
    whole_folder=True,
    options=(Option("otf2_version", "otf2: Version of the format: 2 for readers before OTF2 3.1.", int, 3),),
)
