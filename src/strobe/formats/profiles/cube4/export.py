"""The call tree of a trace as a Cube4 profile: a row of values for each call path, a column for each location.

The layout is what CubeWriter 4.4 writes and CubeLib's grammar (Cube4Parser.yy) accepts. All metrics are exclusive: a
value is that of a call path without those below it, which Cube adds up itself.
"""

from __future__ import annotations

import io
import re
import struct
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from strobe.formats.profiles.cube4.waits import wait_metrics
from strobe.formats.writing.output_files import new_file
from strobe.formats.writing.processes import process_name
from strobe.formats.writing.profile_export import Frame, PathTotal, Profile, weight_is_time
from strobe.model.kinds import RANK_PARADIGMS
from strobe.trace.definition_rows import Location, location_rows, process_rows, region_rows
from strobe.trace.trace import Trace

_ROOT = -1  # what the call paths without a parent have as such
# Our roles that Score-P has another name for.
_ROLES = {"p2p": "point2point", "collective": "other collective", "copy": "data transfer"}
_TYPES = {"UINT64": "<u8", "DOUBLE": "<f8"}
_UNFIT = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # for XML, and line breaks


@dataclass(frozen=True)
class _Metric:
    """A metric as anchor.xml has it, with its values by location and call path, without the paths below it."""

    name: str
    title: str
    data_type: str
    unit: str
    meaning: str
    values: Sequence[tuple[int, int, float]]
    parent: str = ""  # the metric that it is a part of


def write(trace: Trace, path: Path) -> None:
    """Write visits, time in seconds (not of profiles that count something else) and the metrics of `path_metrics`;
    below time those of waits, and delay costs, as Scalasca names them (cube4/waits.py).

    Call paths that have no common root get one, as Score-P gives them: the program. Its time is that of the first
    thread of each process, from the begin to the end of the recording, in which nothing was recorded.
    """
    profile = Profile(trace)
    metrics = list(_metrics(trace, profile))
    children: dict[int, list[int]] = {}
    for each in sorted(_with_parents(profile, metrics)):
        children.setdefault(profile.parent[each], []).append(each)
    roots = children.get(_ROOT, [])
    regions, call_tree, place = _program(trace, profile, children, roots if len(roots) == 1 else [_ROOT])
    columns, system = _system(trace)
    anchor = "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<cube version="4.4">',
            f'<attr key="Creator" value="strobe {version("strobe")}"/>',
            '<metrics title="Metric tree">',
            *_described(metrics, ""),
            '</metrics>\n<program title="Call tree">',
            *regions,
            *call_tree,
            '</program>\n<system title="System tree">',
            *system,
            "</system>\n</cube>\n",
        ]
    )
    index = b"CUBEX.INDEX" + struct.pack("<IhbI", 1, 0, 1, len(place)) + np.arange(len(place), dtype="<u4").tobytes()
    with new_file(path) as work, tarfile.open(work, "w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "anchor.xml", anchor.encode())
        for number, metric in enumerate(metrics):
            values = np.zeros((len(place), len(columns)), dtype=_TYPES[metric.data_type])
            for location, call_path, value in metric.values:
                if call_path in place:  # a single root is the program itself
                    values[place[call_path], columns[location]] += value
            _add(archive, f"{number}.index", index)
            _add(archive, f"{number}.data", b"CUBEX.DATA" + values.tobytes())


def _metrics(trace: Trace, profile: Profile) -> Iterator[_Metric]:
    totals = [(location, total) for location, of_location in profile.totals() for total in of_location]
    totals += _outside(trace, profile)
    visits = [(location, total.path, total.count) for location, total in totals]
    yield _Metric("visits", "Visits", "UINT64", "occ", "Number of visits", visits)
    if weight_is_time(trace):
        time = [(location, total.path, total.own_ns / 1e9) for location, total in totals]
        yield _Metric("time", "Time", "DOUBLE", "sec", "Time in the call path", time)
    others: dict[tuple[str, str], list[tuple[int, int, float]]] = {}
    for row in trace.side_table("path_metrics").to_arrow().to_pylist():
        if row["total_value"] is not None:  # it adds up
            values = others.setdefault((row["metric"], row["unit"]), [])
            values.append((row["location"], row["call_path"], row["self_value"] or 0.0))
    for (name, unit), values in others.items():
        yield _Metric(name, name, "DOUBLE", unit, "", values)
    if weight_is_time(trace):
        for each in wait_metrics(trace):
            yield _Metric(each.name, each.title, "DOUBLE", "sec", each.meaning, each.values, each.parent)


def _outside(trace: Trace, profile: Profile) -> Iterator[tuple[int, PathTotal]]:
    """Yield the first thread of each process, and the time of the process in which it was in no call path."""
    totals = dict(profile.totals())
    seen: set[int] = set()
    for row in location_rows(trace):
        if row.kind != "thread" or row.process in seen:
            continue
        seen.add(row.process)
        process = process_rows(trace)[row.process]
        whole = process.ended_ns - process.started_ns
        inside = sum(total.total_ns for total in totals.get(row.location, ()) if profile.parent[total.path] == _ROOT)
        yield row.location, PathTotal(_ROOT, 1, whole, max(0, whole - inside))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _xml(text: object) -> str:
    return escape(_UNFIT.sub(" ", str(text)), {'"': "&quot;"})


def _described(metrics: Sequence[_Metric], parent: str) -> Iterator[str]:
    """Yield the metrics that are parts of another one, each with its own parts."""
    for number, metric in enumerate(metrics):
        if metric.parent == parent:
            texts = {
                "disp_name": metric.title,
                "uniq_name": metric.name,
                "dtype": metric.data_type,
                "uom": metric.unit,
                "descr": metric.meaning,
            }
            parts = "".join(_described(metrics, metric.name))
            yield f'<metric id="{number}" type="EXCLUSIVE">{_elements(texts)}{parts}</metric>'


def _elements(texts: Mapping[str, object]) -> str:
    return "".join(f"<{tag}>{_xml(text)}</{tag}>" for tag, text in texts.items())


def _with_parents(profile: Profile, metrics: list[_Metric]) -> set[int]:
    """Return the call paths with values, and those above them."""
    found: set[int] = set()
    for metric in metrics:
        for _, path, _ in metric.values:
            while path != _ROOT and path not in found:
                found.add(path)
                path = profile.parent[path]
    return found


def _program(
    trace: Trace, profile: Profile, children: dict[int, list[int]], roots: list[int]
) -> tuple[list[str], list[str], dict[int, int]]:
    """Return the regions, the tree of call paths from these roots, and the row of each call path.

    The tree is depth first, as rows of exclusive metrics are.
    """
    described = _regions(trace, profile)
    numbers: dict[str, int] = {}
    place: dict[int, int] = {}
    tree: list[str] = []
    waiting: list[int | None] = [*reversed(roots)]
    while waiting:
        path = waiting.pop()
        if path is None:
            tree.append("</cnode>")
            continue
        region, site = described[profile.region[path] if path != _ROOT else len(profile.frames)]
        number = numbers.setdefault(region, len(numbers))
        tree.append(f'<cnode id="{len(place)}" mod="{_xml(site)}" calleeId="{number}">')
        place[path] = len(place)
        waiting += [None, *reversed(children.get(path, []))]
    return [f'<region id="{number}" {region}</region>' for region, number in numbers.items()], tree, place


def _regions(trace: Trace, profile: Profile) -> list[tuple[str, str]]:
    """Return of each region, and of the program as the last one, what follows its number, and where it is called.

    Our regions of MPI are a function and where it is called, which Cube keeps in the call path.
    """
    kinds = [(row.paradigm, _ROLES.get(row.role, row.role)) for row in region_rows(trace)]
    kinds += [("other", "function")] * (len(profile.frames) - len(kinds))  # of samples
    program = next((row.argv for row in process_rows(trace) if row.argv), "program")
    frames = [*profile.frames, Frame(program, "", 0, "")]
    found = []
    for frame, (paradigm, role) in zip(frames, [*kinds, ("other", "artificial")], strict=True):
        module, site = (
            (paradigm.upper(), frame.file) if paradigm in RANK_PARADIGMS else (frame.file or frame.module, "")
        )
        about = _elements({"name": frame.name, "paradigm": paradigm, "role": role})
        found.append((f'mod="{_xml(module)}" begin="{frame.line or -1}" end="-1">{about}', site))
    return found


def _system(trace: Trace) -> tuple[dict[int, int], list[str]]:
    """Return the column of each location, and the tree of hosts, processes and locations."""
    locations: dict[int, list[Location]] = {}
    for row in location_rows(trace):
        locations.setdefault(row.process, []).append(row)
    hosts: dict[str, list[int]] = {}
    for process in sorted(locations):
        hosts.setdefault(process_rows(trace)[process].host or "unknown host", []).append(process)
    columns: dict[int, int] = {}
    groups = count()
    lines = [f'<systemtreenode Id="0">{_elements({"name": "machine", "class": "machine"})}']
    for number, (host, processes) in enumerate(hosts.items(), start=1):
        lines.append(f'<systemtreenode Id="{number}">{_elements({"name": host, "class": "node"})}')
        for process in processes:
            about = process_rows(trace)[process]
            rank = process if about.rank is None else about.rank
            texts = {"name": process_name(about), "rank": rank, "type": "process"}
            lines.append(f'<locationgroup Id="{next(groups)}">{_elements(texts)}')
            for place, row in enumerate(locations[process]):
                # Older versions of Cube know no other name for a stream.
                texts = {"name": row.name, "rank": place, "type": "gpu" if row.kind == "stream" else "thread"}
                lines.append(f'<location Id="{len(columns)}">{_elements(texts)}</location>')
                columns[row.location] = len(columns)
            lines.append("</locationgroup>")
        lines.append("</systemtreenode>")
    return columns, [*lines, "</systemtreenode>"]
