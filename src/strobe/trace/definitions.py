"""From ids that are local to a process to ids of the trace: regions and call paths that are equal become one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.errors import TraceError, UsageError
from strobe.model.kinds import PARADIGMS, ROLES, group_of
from strobe.model.schema import TABLES
from strobe.tables.table import Table, make_table
from strobe.trace.archive import whole_number
from strobe.trace.group_rules import group_by_rules
from strobe.trace.processes.process_facts import LocationFacts, ProcessFacts
from strobe.trace.processes.process_reader import NO_REGION, ProcessReader
from strobe.trace.spans import depth_column

LOST = "<lost region>"
RegionRow = tuple[int, str, str, str, str, str, int, str]
RegionKey = tuple[object, ...]
Numbers = npt.NDArray[np.uint32]
_MOST_REGIONS = 1 << 26  # regions are numbered in order: a table by number fits into memory


@dataclass(frozen=True)
class LocalLocation:
    """Where a location of the trace lives: number of its process, and its id there."""

    process: int
    local_id: int


@dataclass(frozen=True)
class Numbering:
    """The meaning of ids from 0 on, of regions and call paths; the numbers of processes and locations."""

    regions: Sequence[RegionKey]
    path_parent: Numbers  # NO_REGION at the root
    path_region: Numbers
    processes: int
    locations: int


@dataclass(frozen=True)
class Ids:
    """The ids of a part in the whole: by region and call path; the numbers to add to processes and locations."""

    region: Numbers
    call_path: Numbers
    process: int
    location: int


class Union:
    """Several numberings as one: regions and call paths are numbered in the order in which they first occur."""

    def __init__(self) -> None:
        self._regions: dict[RegionKey, int] = {}
        self._paths: dict[tuple[int, int], int] = {}
        self._processes = self._locations = 0

    def add(self, part: Numbering) -> Ids:
        """Add a part, and return its ids in the whole."""
        regions = np.array([self._regions.setdefault(row, len(self._regions)) for row in part.regions], dtype=np.uint32)
        path_region = regions[part.path_region] if len(part.path_region) else regions[:0]
        paths: list[int] = []
        for parent, region in zip(part.path_parent.tolist(), path_region.tolist(), strict=True):
            # A path comes after its parent; the parent of a root is beyond all paths.
            above = paths[parent] if parent < len(paths) else NO_REGION
            paths.append(self._paths.setdefault((above, region), len(self._paths)))
        ids = Ids(regions, np.array(paths, dtype=np.uint32), self._processes, self._locations)
        self._processes += part.processes
        self._locations += part.locations
        return ids

    @property
    def whole(self) -> Numbering:
        """The numbering of all parts."""
        parent, region = (np.array([key[k] for key in self._paths], dtype=np.uint32) for k in range(2))
        return Numbering(list(self._regions), parent, region, self._processes, self._locations)


class Definitions:
    """The merged definitions of a trace, and the maps from local ids to them (one array per process)."""

    def __init__(self, regions: Iterable[RegionRow], paths: Numbering) -> None:
        self.regions = list(regions)
        self.source_loops: dict[int, str] = {}  # what the loops of a function call, by region
        self.path_parent, self.path_region = paths.path_parent.tolist(), paths.path_region  # NO_REGION at the root
        depth: list[int] = []
        for parent in self.path_parent:
            depth.append(0 if parent == NO_REGION else depth[parent] + 1)
        self.path_depth = np.array(depth, dtype=np.uint32)
        self.locations: list[LocationFacts] = []
        self.homes: list[LocalLocation] = []
        self.region_maps: Sequence[Numbers] = ()
        self.path_maps: Sequence[Numbers] = ()

    def home(self, location: int) -> LocalLocation:
        """Return process and local id of a location of the trace. Raises UsageError if it does not exist."""
        if not 0 <= location < len(self.homes):
            raise UsageError(f"no location {location}: this trace has {len(self.homes)}, numbered from 0")
        return self.homes[location]

    def add_locations(self, process: int, locations: Iterable[LocationFacts]) -> None:
        """Add the locations of a process."""
        for location in locations:
            self.homes.append(LocalLocation(process, location["id"]))
            self.locations.append({**location, "location": len(self.homes) - 1, "process": process})


def merge(readers: Sequence[ProcessReader]) -> Definitions:
    """Merge the definitions of all processes, in the order given."""
    union, maps = Union(), []
    # Ranks of one program often have the same definitions.
    alike: dict[Hashable, tuple[Numbers, Numbers]] = {}
    source_loops: dict[int, str] = {}
    for reader in readers:
        paths, rows = reader.call_paths(), reader.regions()
        same = (*rows, paths["parent"].tobytes(), paths["region"].tobytes())
        if same not in alike:
            alike[same] = _add(union, rows, paths)
        maps.append(alike[same])
        number = alike[same][0]
        texts = reader.source_loops()
        source_loops |= {int(number[region]): text for region, text in texts.items() if region < len(number)}
    whole = union.whole
    merged = Definitions(map(_region_row, range(len(whole.regions)), whole.regions), whole)
    merged.source_loops = source_loops
    merged.region_maps, merged.path_maps = [each for each, _ in maps], [each for _, each in maps]
    for process, reader in enumerate(readers):
        merged.add_locations(process, reader.locations())
    return merged


def _add(union: Union, rows: list[tuple[Any, ...]], paths: Mapping[str, Numbers]) -> tuple[Numbers, Numbers]:
    """Add the definitions of a process; return the maps from its regions and call paths."""
    # A damaged block may have held the description of a region: its spans are shown all the same.
    lost = set(paths["region"].tolist()) - {row[0] for row in rows}
    rows = [*rows, *((region, LOST, 0, 0, "", 0, "") for region in sorted(lost))]
    most = max((row[0] for row in rows), default=-1)
    if most >= _MOST_REGIONS:
        raise TraceError(f"a block file is damaged: it numbers a region {most}")
    number = np.full(most + 1, NO_REGION, dtype=np.uint32)
    number[[row[0] for row in rows]] = np.arange(len(rows), dtype=np.uint32)
    regions = [row[1:] for row in rows]
    ids = union.add(Numbering(regions, paths["parent"], number[paths["region"]], 1, 0))
    defined = number != NO_REGION
    number[defined] = ids.region[number[defined]]
    return number, ids.call_path


def alike_definitions(readers: Sequence[ProcessReader]) -> Definitions:
    """Return the definitions of processes that have the same ones, with the same ids."""
    found = merge(readers[:1])
    found.region_maps, found.path_maps = ([*maps] * len(readers) for maps in (found.region_maps, found.path_maps))
    for process, reader in enumerate(readers[1:], 1):
        found.add_locations(process, reader.locations())
    return found


def _region_row(number: int, region: tuple[Any, ...]) -> RegionRow:
    name, paradigm, role, file, line, module = region
    who, what = _name(PARADIGMS, paradigm), _name(ROLES, role)
    group = (group_by_rules(name) if what == "kernel" else None) or group_of(name, who, what)
    return number, name, who, what, group, file or "", line, module or ""


def _name(names: Sequence[str], number: int) -> str:
    # A newer recorder may have kinds that are unknown here: they are shown as "other".
    return names[number] if number < len(names) else "other"


def processes_table(processes: Sequence[ProcessFacts], zero_ns: int) -> Table:
    """Return schema `processes`; times count from the trace's zero."""
    values: dict[str, list[Any]] = _columns("processes", processes)
    values["process"] = list(range(len(processes)))
    values["main"] = list(map(bool, values["main"]))
    for name in ("started_ns", "ended_ns"):
        values[name] = [ns - zero_ns for ns in values[name]]
    lists = (list, tuple)
    values["argv"] = [" ".join(map(str, argv)) if isinstance(argv, lists) else argv for argv in values["argv"]]
    return make_table("processes", values)


def _columns(table: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {column.name: [row.get(column.name) for row in rows] for column in TABLES[table]}


def call_paths_table(definitions: Definitions) -> Table:
    """Return schema `call_paths`."""
    parents = [None if parent == NO_REGION else parent for parent in definitions.path_parent]
    number = np.arange(len(parents), dtype=np.uint32)
    values = {"call_path": number, "parent": parents}
    values |= {"region": definitions.path_region, "depth": depth_column(definitions.path_depth)}
    return make_table("call_paths", values)


def locations_table(definitions: Definitions, zero_of: Callable[[int], int]) -> Table:
    """Return schema `locations`; `zero_of` is the trace's zero on the clock of a process."""
    values = _columns("locations", definitions.locations)
    # Without a span its times are what they stand for: 0.
    known = zip(values["process"], values["span_count"], values["first_ns"], strict=True)
    zeros = [zero_of(process) if spans else first_ns for process, spans, first_ns in known]
    for name in ("first_ns", "last_ns"):
        values[name] = [ns - zero for ns, zero in zip(values[name], zeros, strict=True)]
    values["device"] = [whole_number(device, 0) for device in values["device"]]
    return make_table("locations", values)
