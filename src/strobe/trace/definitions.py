"""From ids that are local to a process to ids of the trace: regions and call paths that are equal become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from strobe.errors import TraceError
from strobe.model.kinds import PARADIGMS, ROLES, group_of
from strobe.model.schema import TABLES
from strobe.tables.table import Table, make_table
from strobe.trace.archive import whole_number
from strobe.trace.processes.process_facts import LocationFacts, ProcessFacts
from strobe.trace.processes.process_reader import NO_REGION, ProcessReader

LOST = "<lost region>"
RegionRow = tuple[int, str, str, str, str, str, int, str]
_MOST_REGIONS = 1 << 26  # regions are numbered in order: a table by number fits into memory


@dataclass(frozen=True)
class LocalLocation:
    """Where a location of the trace lives: number of its process, and its id there."""

    process: int
    local_id: int


@dataclass
class Definitions:
    """The merged definitions of a trace, and the maps from local ids to them (one array per process)."""

    regions: list[RegionRow] = field(default_factory=list)
    path_parent: list[int] = field(default_factory=list)  # NO_REGION at the root
    path_region: list[int] = field(default_factory=list)
    path_depth: list[int] = field(default_factory=list)
    locations: list[LocationFacts] = field(default_factory=list)
    homes: list[LocalLocation] = field(default_factory=list)
    region_maps: Sequence[npt.NDArray[np.uint32]] = ()
    path_maps: Sequence[npt.NDArray[np.uint32]] = ()

    def add_path(self, parent: int, region: int) -> int:
        """Add a call path, and return its id; `parent` is NO_REGION at the root."""
        self.path_parent.append(parent)
        self.path_region.append(region)
        self.path_depth.append(0 if parent == NO_REGION else self.path_depth[parent] + 1)
        return len(self.path_region) - 1


def merge(readers: Sequence[ProcessReader]) -> Definitions:
    """Merge the definitions of all processes, in the order given."""
    merged = Definitions()
    region_ids: dict[tuple[object, ...], int] = {}
    path_ids: dict[tuple[int, int], int] = {}
    alike: dict[tuple[bytes, bytes], npt.NDArray[np.uint32]] = {}
    region_maps, path_maps = [], []
    for process, reader in enumerate(readers):
        region_map = _merge_regions(reader, merged, region_ids)
        region_maps.append(region_map)
        path_maps.append(_merge_paths(reader, region_map, merged, path_ids, alike))
        for location in reader.locations():
            merged.homes.append(LocalLocation(process, location["id"]))
            merged.locations.append({**location, "location": len(merged.homes) - 1, "process": process})
    merged.region_maps, merged.path_maps = region_maps, path_maps
    return merged


def _merge_regions(
    reader: ProcessReader, merged: Definitions, ids: dict[tuple[object, ...], int]
) -> npt.NDArray[np.uint32]:
    rows = reader.regions()
    used = reader.call_paths()["region"]
    described = {row[0] for row in rows}
    # A damaged block may have held the description of a region: its spans are shown all the same.
    rows += [(region, LOST, 0, 0, "", 0, "") for region in sorted(set(used.tolist()) - described)]
    most = max((row[0] for row in rows), default=-1)
    if most >= _MOST_REGIONS:
        raise TraceError(f"a block file is damaged: it numbers a region {most}")
    local_to_global = np.full(most + 1, NO_REGION, dtype=np.uint32)
    for local_id, name, paradigm, role, file, line, module in rows:
        key = (name, paradigm, role, file, line, module)
        known = ids.get(key)
        if known is None:
            known = ids[key] = len(merged.regions)
            who, what = _name(PARADIGMS, paradigm), _name(ROLES, role)
            merged.regions.append((known, name, who, what, group_of(name, who, what), file or "", line, module or ""))
        local_to_global[local_id] = known
    return local_to_global


def _merge_paths(
    reader: ProcessReader,
    region_map: npt.NDArray[np.uint32],
    merged: Definitions,
    ids: dict[tuple[int, int], int],
    alike: dict[tuple[bytes, bytes], npt.NDArray[np.uint32]],
) -> npt.NDArray[np.uint32]:
    local = reader.call_paths()
    regions = region_map[local["region"]]
    same = local["parent"].tobytes(), regions.tobytes()  # ranks of one program often have the same paths in one order
    if same in alike:
        return alike[same]
    local_to_global = alike[same] = np.empty(len(regions), dtype=np.uint32)
    for path, (parent, region) in enumerate(zip(local["parent"].tolist(), regions.tolist(), strict=True)):
        # A path is interned after its parent, so the parent's id is known already; at the root it is beyond all paths.
        above = NO_REGION if parent >= path else int(local_to_global[parent])
        known = ids.get((above, region))
        if known is None:
            known = ids[above, region] = merged.add_path(above, region)
        local_to_global[path] = known
    return local_to_global


def _name(names: Sequence[str], number: int) -> str:
    # A newer recorder may know kinds that we do not: show them as "other" rather than refuse the trace.
    return names[number] if number < len(names) else "other"


def processes_table(processes: Sequence[ProcessFacts], zero_ns: int) -> Table:
    """Return schema `processes`; times count from the trace's zero."""
    rows = []
    for number, process in enumerate(processes):
        argv = process.get("argv")
        shown = " ".join(map(str, argv)) if isinstance(argv, (list, tuple)) else argv
        times = (process["started_ns"] - zero_ns, process["ended_ns"] - zero_ns)
        end = (process["end_state"], process.get("exit_code"), shown)
        names = (process.get("host"), process.get("python"), process.get("rank"), process.get("name"))
        pids = (process["pid"], process["parent_pid"], bool(process.get("main")))
        rows.append((number, *pids, *times, *end, *names))
    return make_table("processes", rows)


def locations_table(definitions: Definitions, zero_of: Callable[[int], int]) -> Table:
    """Return schema `locations`; `zero_of` is the trace's zero on the clock of a process."""
    rows = []
    for location in definitions.locations:
        device = whole_number(location.get("device"))
        # Without a span its times are what they stand for: 0.
        zero = zero_of(location["process"]) if location["span_count"] else location["first_ns"]
        times = {"first_ns": location["first_ns"] - zero, "last_ns": location["last_ns"] - zero}
        row = {**location, **times, "device": device if device is not None and device >= 0 else None}
        rows.append(tuple(row[column.name] for column in TABLES["locations"]))
    return make_table("locations", rows)
