"""Cube4 profiles (`profile.cubex` of Score-P, Scalasca's reports): a tar of anchor.xml and matrices of numbers.

anchor.xml names metrics, call paths and locations; N.index lists the call paths of the rows of N.data. Time and visits
become totals (one process for each rank), every other metric of plain numbers a part of `path_metrics`. The XML parser
accepts neither entities nor document types.
"""

from __future__ import annotations

import math
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from strobe import registry
from strobe.formats.reading.cube_tar import CubeMember, is_cube
from strobe.formats.reading.profile_import import MOST_BYTES, ROOT, Function, ProfileProcess, Weight
from strobe.model.kinds import PARADIGMS, ROLES
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_TYPES = {
    "DOUBLE": "f8", "FLOAT": "f8", "MINDOUBLE": "f8", "MAXDOUBLE": "f8", "CHAR": "u1",
    "INT": "i4", "SIGNED INT": "i4", "INT32": "i4", "UNSIGNED INT": "u4", "UINT32": "u4",
    "INTEGER": "i8", "SIGNED INTEGER": "i8", "INT64": "i8", "UNSIGNED INTEGER": "u8", "UINT64": "u8",
    "INT8": "i1", "UINT8": "u1", "INT16": "i2", "SHORT INT": "i2", "SIGNED SHORT INT": "i2",
    "UINT16": "u2", "UNSIGNED SHORT INT": "u2",
}  # fmt: skip
_EXTREMES = ("MINDOUBLE", "MAXDOUBLE")
# Of Score-P's names, those that are ours, too, have the same meaning.
_ROLES = {
    "point2point": "p2p", "barrier": "collective", "one2all": "collective", "all2one": "collective",
    "all2all": "collective", "other collective": "collective", "data transfer": "copy",
}  # fmt: skip
_MOST_TEXT = 1 << 16
# No profile has times above this.
_LARGEST_NS = 1 << 62


def sniff(head: bytes) -> bool:
    """Return whether it is a tar that has a member of Cube's among the first ones."""
    return is_cube(head)


@dataclass
class _Metric:
    number: int
    kind: str
    texts: dict[str, str]

    @property
    def name(self) -> str:
        return self.texts.get("uniq_name") or self.texts.get("disp_name") or str(self.number)


@dataclass
class _CallPath:
    number: int
    region: int
    parent: int  # place in the list, -1 at the root
    parameters: list[str]
    children: list[int] = field(default_factory=list)


@dataclass
class _Group:
    """A rank, and the places of its locations among all."""

    texts: dict[str, str]
    locations: list[tuple[int, dict[str, str]]] = field(default_factory=list)


class _Builder(ElementTree.TreeBuilder):
    def doctype(self, *_: object) -> None:
        raise ValueError("anchor.xml declares a document type, which no profile needs")


class _Anchor:
    """The content of anchor.xml."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        parser = ElementTree.XMLParser(target=_Builder())
        try:
            for piece in pieces:
                parser.feed(piece)
            root = parser.close()
        except ElementTree.ParseError as error:
            raise ValueError(f"anchor.xml: {error}") from error
        self.attributes = {each.get("key", ""): each.get("value", "") for each in root.findall("attr")}
        self.metrics = [
            _Metric(_whole(each.get("id")), each.get("type", "EXCLUSIVE"), _texts(each)) for each in root.iter("metric")
        ]
        self.regions: dict[int, dict[str, str]] = {}
        self.repeated = 0  # regions with the number of an earlier one
        for each in root.iter("region"):
            self.repeated += _whole(each.get("id")) in self.regions
            self.regions[_whole(each.get("id"))] = each.attrib | _texts(each)
        self.groups: list[_Group] = []
        self.locations = 0
        for each in root.iter("locationgroup"):
            listed = [_texts(location) for location in each.iter("location")]
            self.groups.append(_Group(_texts(each), list(enumerate(listed, start=self.locations))))
            self.locations += len(listed)
        self.paths: list[_CallPath] = []
        parents: dict[ElementTree.Element, int] = {}
        for place, each in enumerate(root.iter("cnode")):
            parent = parents.get(each, ROOT)
            parents.update(dict.fromkeys(each.findall("cnode"), place))
            parameters = [f"{one.get('parkey', '')}={one.get('parvalue', '')}" for one in each.findall("parameter")]
            self.paths.append(_CallPath(_whole(each.get("id")), _whole(each.get("calleeId")), parent, parameters))
            if parent != ROOT:
                self.paths[parent].children.append(place)

    def order(self, metric: _Metric) -> list[int]:
        """Return the call paths in the order of a metric's rows.

        Exclusive metrics: depth first, as in the file. Inclusive ones: all children of a path, then all of theirs.
        """
        if metric.kind != "INCLUSIVE":
            return list(range(len(self.paths)))
        order = []
        for root in (i for i, each in enumerate(self.paths) if each.parent == ROOT):
            order.append(root)
            waiting = [root]
            while waiting:
                children = self.paths[waiting.pop()].children
                order.extend(children)
                waiting.extend(reversed(children))
        return order


def _texts(element: ElementTree.Element) -> dict[str, str]:
    return {each.tag: (each.text or "").strip()[:_MOST_TEXT] for each in element}


def _whole(text: str | None) -> int:
    try:
        number = int(text or "-1")
    except ValueError:
        return -1
    return number if abs(number) < 1 << 32 else -1


Matrix = npt.NDArray[np.generic]


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if it has no anchor.xml, or no call paths."""
    try:
        with tarfile.open(source.local_path(), "r:", tarinfo=CubeMember) as archive:
            return _read(archive, source, target)
    except (tarfile.TarError, EOFError, zlib.error, OverflowError) as error:
        raise ValueError(str(error)) from error


def _read(archive: tarfile.TarFile, source: ImportSource, target: ImportTarget) -> Imported:
    members = _members(archive)
    if "anchor.xml" not in members:
        raise ValueError("it has no anchor.xml")
    anchor = _Anchor(_pieces(archive, members["anchor.xml"]))
    if not anchor.paths or not anchor.locations:
        raise ValueError("it has no call paths, or no locations")
    processes = [_Process(anchor, group, source, target) for group in anchor.groups if group.locations]
    repaired = sum(isinstance(each, CubeMember) and each.repaired for each in members.values())
    processes[0].process.core.count("tar_headers_repaired", repaired)
    found: dict[str, Matrix] = {}
    for metric in anchor.metrics:
        matrix = _matrix(archive, members, metric, anchor, processes[0].process)
        if matrix is None:
            continue
        if metric.name in ("time", "visits"):
            found[metric.name] = matrix
        else:
            for each in processes:
                each.metric(metric, matrix)
    kinds = {metric.name: metric for metric in anchor.metrics}
    properties: dict[str, object] = {**anchor.attributes, "metrics": [metric.name for metric in anchor.metrics]}
    for each in processes:
        each.totals(found, kinds)
        each.finish(properties, len(processes))
    return Imported(processes=len(processes), first_ns=0, last_ns=0, properties=properties)


def _members(archive: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    found = {}
    try:
        for member in archive:
            if member.isfile():
                found[member.name] = member
    except tarfile.TarError:
        pass  # cut off: the members listed by then are there
    return found


def _pieces(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    """The bytes of a member in pieces, unpacked if it is a gzip. Raises ValueError if it is too large."""
    stream = archive.extractfile(member)
    assert stream is not None
    unpack = None
    size = 0
    while piece := stream.read(1 << 18):
        if not size and piece.startswith(b"\x1f\x8b"):
            unpack = zlib.decompressobj(31)
        left = piece
        while left:
            out = left if unpack is None else unpack.decompress(left, 1 << 20)
            left = b"" if unpack is None else unpack.unconsumed_tail
            size += len(out)
            if size > MOST_BYTES:
                raise ValueError(f"{member.name[:80]} is larger than any profile")
            yield out


def _matrix(
    archive: tarfile.TarFile,
    members: Mapping[str, tarfile.TarInfo],
    metric: _Metric,
    anchor: _Anchor,
    process: ProfileProcess,
) -> Matrix | None:
    """Values of a metric by call path and location (0 if missing in the file); None if they are not plain numbers."""
    names = [f"{metric.number}.{suffix}" for suffix in ("index", "data")]
    if any(name not in members for name in names):
        return None  # derived from others, or empty
    dtype = _TYPES.get(metric.texts.get("dtype", ""))
    if dtype is None:
        process.core.left_out("metrics_not_kept")
        return None
    try:
        index, data = (b"".join(_pieces(archive, members[name])) for name in names)
        order = "<" if index[11:15] == b"\1\0\0\0" else ">"
        if not index.startswith(b"CUBEX.INDEX") or len(index) < 18:
            raise ValueError("an index is damaged")
        at = 18  # behind a version and a kind
        rows = np.array(anchor.order(metric))
        if len(index) >= at + 4:
            count = struct.unpack_from(order + "I", index, at)[0]
            if count * 4 > len(index) - at - 4:
                raise ValueError("an index is cut off")
            chosen = np.frombuffer(index, dtype=order + "u4", count=count, offset=at + 4)
            if count and int(chosen.max()) >= len(rows):
                raise ValueError("an index refers to an unknown call path")
            rows = rows[chosen]
        values = np.frombuffer(_values(data, order), dtype=order + dtype)
        if len(values) < len(rows) * anchor.locations:
            raise ValueError("data are cut off")
    except (ValueError, zlib.error, struct.error):
        process.core.left_out("metrics_damaged")
        return None
    size = len(anchor.paths) * anchor.locations * np.dtype(dtype).itemsize
    if size > 4 * MOST_BYTES:
        raise ValueError(f"{metric.name[:80]} has more values than fit into memory")
    cells = values[: len(rows) * anchor.locations].reshape(len(rows), anchor.locations)
    # Of the least and the greatest value, an infinite one is that of nothing.
    lost = np.zeros_like(cells, dtype=bool) if metric.texts.get("dtype") in _EXTREMES else ~np.isfinite(cells)
    process.core.left_out("weights_out_of_range", int(lost.sum()))
    process.core.taken(cells.size - int(lost.sum()))
    found = np.zeros((len(anchor.paths), anchor.locations), dtype=dtype)
    found[rows] = np.where(lost, 0, cells)
    return found


def _values(data: bytes, order: str) -> bytes:
    if data.startswith(b"CUBEX.DATA"):
        return data[10:]
    if not data.startswith(b"ZCUBEX.DATA"):
        raise ValueError("data are damaged")
    count = struct.unpack_from(order + "Q", data, 11)[0]
    if count * 24 > len(data):
        raise ValueError("data are cut off")
    at, pieces, size = 19 + 24 * count, [], 0
    for i in range(count):
        packed = struct.unpack_from(order + "3Q", data, 19 + 24 * i)[2]
        unpack = zlib.decompressobj()
        pieces.append(unpack.decompress(data[at : at + packed], MOST_BYTES - size + 1) if packed else b"")
        at, size = at + packed, size + len(pieces[-1])
        if size > MOST_BYTES:
            raise ValueError("data unpack to too much")
    return b"".join(pieces)


class _Process:
    """One rank: its locations are columns of the matrices."""

    def __init__(self, anchor: _Anchor, group: _Group, source: ImportSource, target: ImportTarget) -> None:
        self.process = process = ProfileProcess(source, target)
        self._anchor, self._group = anchor, group
        process.core.count("duplicate_definition_ids", anchor.repeated)
        self._columns = [column for column, _ in group.locations]
        self._locations = [
            process.location(texts.get("name") or f"location {column}", i + 1)
            for i, (column, texts) in enumerate(group.locations)
        ]
        self._paths: list[int] = []
        for each in anchor.paths:
            texts = anchor.regions.get(each.region, {})
            if not texts:
                process.core.count("frames_without_function")
            shown = f" ({', '.join(each.parameters)})" if each.parameters else ""
            name = (texts.get("name") or f"region {each.region}") + shown
            region = process.region(
                Function(name, texts.get("mod", ""), max(0, _whole(texts.get("begin")))),
                paradigm=paradigm if (paradigm := texts.get("paradigm", "")) in PARADIGMS else "other",
                role=role
                if (role := _ROLES.get(texts.get("role", ""), texts.get("role", ""))) in ROLES
                else "function",
            )
            above = self._paths[each.parent] if each.parent != ROOT else ROOT
            self._paths.append(process.path(above, region))

    def totals(self, found: Mapping[str, Matrix], kinds: Mapping[str, _Metric]) -> None:
        """Write time and visits. Seconds are floating point in the file: nanoseconds are rounded once."""
        time = kinds.get("time")
        unit = Weight("time", time.texts.get("uom", "sec") if time is not None else "sec").ns or 1_000_000_000
        for column, location in zip(self._columns, self._locations, strict=True):
            visits, _ = self._both(kinds.get("visits"), self._column(found, "visits", column))
            own, total = self._both(time, self._rounded(self._column(found, "time", column), float(unit)))
            for place, path in enumerate(self._paths):
                if visits[place] or total[place]:
                    count = max(0, int(visits[place]))
                    self.process.totals(location, path, count, int(total[place]), int(own[place]))

    def _column(self, found: Mapping[str, Matrix], name: str, column: int) -> npt.NDArray[np.float64]:
        return found[name][:, column].astype(np.float64) if name in found else np.zeros(len(self._paths))

    def _rounded(self, values: npt.NDArray[np.float64], unit_ns: float) -> npt.NDArray[np.int64]:
        scaled = np.rint(values * unit_ns)
        bad = ~(np.abs(scaled) < _LARGEST_NS)
        self.process.core.count("weights_out_of_range", int(bad.sum()))
        return np.where(bad, 0, scaled).astype(np.int64)

    def _both(self, metric: _Metric | None, values: npt.NDArray[np.generic]) -> tuple[Sequence[float], Sequence[float]]:
        """Return values without and with the call paths below."""
        inclusive = metric is not None and metric.kind == "INCLUSIVE"
        own, total = values.tolist(), values.tolist()
        for place in range(len(own) - 1, -1, -1):
            parent = self._anchor.paths[place].parent
            if parent == ROOT:
                continue
            if inclusive:
                own[parent] -= values[place].item()
            else:
                total[parent] += total[place]
        return own, total

    def metric(self, metric: _Metric, matrix: Matrix) -> None:
        """Write any other metric, if it is not zero."""
        weight = Weight(metric.name, metric.texts.get("uom", ""))
        extreme = metric.texts.get("dtype") in _EXTREMES
        for column, location in zip(self._columns, self._locations, strict=True):
            values = matrix[:, column]
            own, total = (values.tolist(), None) if extreme else self._both(metric, values)
            for place, path in enumerate(self._paths):
                # Sums of counters may have more than 64 bits.
                if values[place] and math.isfinite(own[place]):
                    whole = None if total is None else float(total[place])
                    self.process.path_metric(location, path, weight, float(own[place]), whole)

    def finish(self, properties: Mapping[str, object], ranks: int) -> None:
        rank, name = _whole(self._group.texts.get("rank")), self._group.texts.get("name")
        own = {"name": name} if name else {}
        self.process.finish({**properties, **own}, rank=rank if rank >= 0 else None, ranks=ranks)


FORMAT = Format(
    "cube4",
    "Cube4 profile of Score-P or Scalasca (.cubex)",
    suffixes=(".cubex",),
    sniff=sniff,
    read=read,
    write=registry.later("strobe.formats.profiles.cube4.export:write"),
)
