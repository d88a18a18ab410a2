"""The pyramid of a trace: pictures of any window at the cost of their pixels.

Tiles are built at the end of a run, or by the first picture; nothing is wrong without them, only slower. What they
hold: docs/format/tiles.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from strobe.model.kinds import GROUPS
from strobe.store.archive import ProcessFiles
from strobe.store.merge import Definitions
from strobe.store.places import Place
from strobe.store.raw import ALWAYS, ProcessReader

Regions = npt.NDArray[np.uint32]
Shares = npt.NDArray[np.uint8]
OVERVIEW = "overview.tiles"
_BUILDERS = 2  # building one needs a core, and memory for a few thousand spans


@dataclass(frozen=True)
class Window:
    """A picture's [start_ns, end_ns) since the trace's zero, and its pixels."""

    start_ns: int
    end_ns: int
    width: int


def has_tiles(files: Sequence[ProcessFiles], places: Sequence[Place] = ()) -> bool:
    """Return whether tiles lie beside all block files, in the form of this version: else a picture builds some.

    With `places`, also those of rows that stand for many. Only where each file begins is read: one that was made from
    something else is found when it is opened.
    """
    from strobe.native import Pyramid

    paths = [each.tiles for each in files if each.rings is None]
    if len(paths) == len(files) and any(len(place.locations) > 1 for place in places):
        paths.append(paths[0].parent / OVERVIEW)
    return all(Pyramid.looks_sound(str(path)) for path in paths)


class Pyramid:
    """All processes of a trace behind one native call for each picture. Threads may share it.

    `zeros` is the trace's zero on the clock of each process; `files` may be empty: then there are no tiles.
    """

    def __init__(
        self,
        readers: Sequence[ProcessReader],
        zeros: Sequence[int],
        files: Sequence[ProcessFiles],
        definitions: Definitions,
        places: Sequence[Place],
    ) -> None:
        from strobe import native

        self._files, self._places = files, places
        self._whole = all(reader.window == ALWAYS for reader in readers)
        self._whole &= len(files) == len(readers) and all(each.rings is None for each in files)
        self._region_count = len(definitions.regions)
        self._process = np.array([home.process for home in definitions.homes], dtype=np.uint32)
        self._local = np.array([home.local_id for home in definitions.homes], dtype=np.uint32)
        # The last entry is for regions that the trace does not know: a damaged file may name some.
        numbers = [GROUPS.index(row[4]) for row in definitions.regions]
        group = np.array([*numbers, GROUPS.index("other")], dtype=np.uint8)
        self._core = native.Pyramid(len(GROUPS))
        for reader, zero, regions in zip(readers, zeros, definitions.region_maps, strict=True):
            groups = group[np.minimum(regions, len(group) - 1)]
            begin_ns, end_ns = reader.window
            self._core.add_process(reader.core, regions, groups, zero, begin_ns - zero, end_ns - zero)
        self._opened: set[int] = set()
        self._places_opened = False
        self._lock = threading.Lock()

    def build(self) -> None:
        """Build what is missing, or was built from something else."""
        self._open(range(len(self._files)))
        self._open_places()

    def cells(self, locations: Iterable[int], window: Window) -> tuple[Regions, Shares, Regions]:
        """Return region, share and mark by location and pixel: see `Trace.cells`."""
        process, local = self._homes(locations)
        return self._core.cells(process, local, window.start_ns, window.end_ns, window.width)

    def group_shares(self, locations: Iterable[int], window: Window) -> Shares:
        """Return the shares of groups by location, pixel and group: see `Trace.group_shares`."""
        process, local = self._homes(locations)
        return self._core.group_shares(process, local, window.start_ns, window.end_ns, window.width)

    def row_cells(self, place: int, row_level: int, first: int, count: int, window: Window) -> tuple[Shares, Regions]:
        """Return group shares and marks of rows of 8**row_level locations each: see `Trace.row_cells`."""
        self._open_places()
        return self._core.row_cells(place, row_level, first, count, window.start_ns, window.end_ns, window.width)

    def profile(
        self, locations: Iterable[int], start_ns: int, end_ns: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return executions and exclusive ns by location and region: see `Trace.window_profile`."""
        process, local = self._homes(locations)
        return self._core.profile(process, local, start_ns, end_ns, self._region_count)

    def _homes(self, locations: Iterable[int]) -> tuple[Regions, Regions]:
        wanted = np.fromiter(locations, dtype=np.intp)
        process = self._process[wanted]
        self._open(np.unique(process).tolist())
        return process, self._local[wanted]

    def _open(self, processes: Iterable[int]) -> None:
        with self._lock:
            missing = [process for process in processes if process not in self._opened]
            if not missing:
                return
            if self._files:
                with ThreadPoolExecutor(_BUILDERS) as pool:
                    list(pool.map(self._open_one, missing))
            self._opened.update(missing)

    def _open_places(self) -> None:
        self._open(range(len(self._files)))
        with self._lock:
            if self._places_opened:
                return
            members = np.array([location for place in self._places for location in place.locations], dtype=np.intp)
            bounds = np.cumsum([0, *(len(place.locations) for place in self._places)], dtype=np.uint32)
            self._core.set_places(self._process[members], self._local[members], bounds)
            # A part of a run has no rows of its own, and one place is no row of several.
            if self._whole and any(len(place.locations) > 1 for place in self._places):
                path = self._files[0].blocks.parent / OVERVIEW
                self._open_or_build(path, self._core.open_places, self._core.build_places)
            self._places_opened = True

    def _open_one(self, process: int) -> None:
        files = self._files[process]
        if files.rings is not None:  # what a process that still writes has written is read as it is
            return
        self._open_or_build(
            files.tiles, lambda path: self._core.open(process, path), lambda path: self._core.build(process, path)
        )

    @staticmethod
    def _open_or_build(path: Path, open_it: Callable[[str], bool], build: Callable[[str], None]) -> None:
        if open_it(str(path)):
            return
        # Under another name first: a reader never meets half a file, and two readers may build at once.
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            build(str(unfinished))
            unfinished.replace(path)
        except OSError:  # the folder is not ours to write in, or the disk is full
            unfinished.unlink(missing_ok=True)
            return
        open_it(str(path))
