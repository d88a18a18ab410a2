"""The pyramid of a trace: pictures of any window at the cost of their pixels.

Tiles are built at the end of a run, or by the first picture; without them everything works, only slower. Their
contents: docs/format/tiles.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.model.kinds import GROUPS
from strobe.trace.archive import ProcessFiles
from strobe.trace.definitions import Definitions, LocalLocation
from strobe.trace.pictures.matching_locations import Place
from strobe.trace.processes.process_reader import ALWAYS, NO_REGION, ProcessReader

Regions = npt.NDArray[np.uint32]
Shares = npt.NDArray[np.uint8]
OVERVIEW = "overview.tiles"
_BUILDERS = 2  # building one needs a core, and memory for a few thousand spans


class Pyramid:
    """All processes of a trace behind one native call for each picture. Threads may share it.

    `zeros` is the trace's zero on the clock of each process; without `files` nothing is built.
    """

    def __init__(
        self,
        readers: Sequence[ProcessReader],
        zeros: Sequence[int],
        files: Sequence[ProcessFiles],
        definitions: Definitions,
        places: Callable[[], Sequence[Place]],
    ) -> None:
        from strobe import native

        self._files, self._find_places, self._definitions = files, places, definitions
        self._readers, self._zeros = readers, zeros
        self._whole = all(reader.window == ALWAYS for reader in readers)
        self._whole &= len(files) == len(readers) and all(each.rings is None for each in files)
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

    @property
    def _places(self) -> Sequence[Place]:
        return self._find_places()

    @property
    def _has_rows(self) -> bool:
        """Whether some stand for many locations."""
        return any(len(place.locations) > 1 for place in self._places)

    def build(self) -> None:
        """Build the tiles that pictures are made from, where they are missing or out of date.

        Otherwise the first picture does so. Where the folder cannot be written, there are none.
        """
        self._open(range(len(self._files)))
        self._open_places()

    def has_tiles(self, *, of_rows: bool = False) -> bool:
        """Return whether all tiles exist, with `of_rows` also those of `row_cells`; a picture builds missing ones.

        Only the begin of each file is read: tiles of other blocks are noticed when they are opened.
        """
        paths = [each.tiles for each in self._files if each.rings is None]
        if of_rows and len(paths) == len(self._files) and self._has_rows:
            paths.append(paths[0].parent / OVERVIEW)
        return all(self._core.looks_sound(str(path)) for path in paths)

    def cells(
        self, locations: Iterable[int], start_ns: int, end_ns: int, width: int
    ) -> tuple[Regions, Shares, Regions]:
        """Return, per location and pixel of [start_ns, end_ns), the innermost region with most time, its share, a mark.

        Three arrays (locations, width): region (NO_REGION where nothing ran), its share of the pixel in 255ths, and the
        region of the longest exceptional stretch in the pixel (NO_REGION where there is none, GAP for a gap).
        """
        return self._core.cells(*self._homes(locations), start_ns, end_ns, width)

    def group_shares(self, locations: Iterable[int], start_ns: int, end_ns: int, width: int) -> Shares:
        """Return, per location and pixel of [start_ns, end_ns), what each group of model.kinds.GROUPS fills of it.

        One array (locations, width, groups), in 255ths of the pixel, each rounded by itself. What counts is the
        innermost region.
        """
        return self._core.group_shares(*self._homes(locations), start_ns, end_ns, width)

    def row_cells(
        self, place: int, row_level: int, first: int, count: int, start_ns: int, end_ns: int, width: int
    ) -> tuple[Shares, Regions]:
        """Return group shares and marks of rows of a place, where a row stands for 8**row_level of its locations.

        Rows are numbered from 0, row i being the locations from i * 8**row_level on; those behind the last are empty.
        Two arrays: shares of groups (count, width, groups), in 255ths of the pixel, the mean of the locations; marks
        (count, width) as `cells` gives them, the longest of all locations.
        """
        if not 0 <= place < len(self._places):
            raise UsageError(f"no place {place}: this trace has {len(self._places)}, numbered from 0")
        self._open_places()
        return self._core.row_cells(place, row_level, first, count, start_ns, end_ns, width)

    def profile(
        self, locations: Iterable[int], start_ns: int, end_ns: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return, per location and region, the executions that begin in [start_ns, end_ns), and exclusive ns in it.

        Two arrays (locations, regions), exact.
        """
        homes = [self._definitions.home(location) for location in locations]
        self._open(self._with_many_spans(homes))
        return self._core.profile(*_processes_and_ids(homes), start_ns, end_ns, len(self._definitions.regions))

    def has_sums(self) -> bool:
        """Return whether `profile` of all locations builds no tiles."""
        large = self._with_many_spans(self._definitions.homes) if self._files else ()
        return all(self._core.looks_sound(str(self._files[process].tiles)) for process in large)

    def _with_many_spans(self, homes: Iterable[LocalLocation]) -> set[int]:
        # Sums of few spans need no tiles: most ranks of a large job have few, and to build tiles of all takes long.
        return {home.process for home in homes if self._core.needs_tiles(home.process, home.local_id)}

    def stack_cells(
        self, location: int, start_ns: int, end_ns: int, width: int, max_depth: int
    ) -> tuple[Regions, Shares]:
        """Return, per depth and pixel of [start_ns, end_ns), the region with most time, and how full the pixel is.

        Two arrays (depths, width): region (NO_REGION where nothing ran), and what all spans of the depth together fill
        of the pixel, in 255ths. No more than `width` blocks of 4096 spans are read: where more are in the window, the
        one in the middle of each pixel stands for all of it.
        """
        home = self._definitions.home(location)
        zero, regions = self._zeros[home.process], self._definitions.region_maps[home.process]
        stack = self._readers[home.process].stack_cells
        local, filled = stack(home.local_id, start_ns + zero, end_ns + zero, width, max_depth)
        known = local < len(regions)
        region = regions[np.where(known, local, 0)] if len(regions) else NO_REGION
        return np.where(known, region, NO_REGION).astype(np.uint32), filled.astype(np.uint8, copy=False)

    def _homes(self, locations: Iterable[int]) -> tuple[Regions, Regions]:
        homes = [self._definitions.home(location) for location in locations]
        self._open({home.process for home in homes})
        return _processes_and_ids(homes)

    def _open(self, processes: Iterable[int]) -> None:
        with self._lock:
            missing = [process for process in processes if process not in self._opened]
            # A process that still writes has no tiles.
            closed = [process for process in missing if self._files and self._files[process].rings is None]
            unsound = [process for process in closed if not self._core.open(process, str(self._files[process].tiles))]
            if unsound:
                from concurrent.futures import ThreadPoolExecutor  # most commands draw nothing

                with ThreadPoolExecutor(_BUILDERS) as pool:
                    list(pool.map(self._build_one, unsound))
            self._opened.update(missing)

    def _open_places(self) -> None:
        self._open(range(len(self._files)))
        with self._lock:
            if self._places_opened:
                return
            members = [self._definitions.homes[location] for place in self._places for location in place.locations]
            bounds = np.cumsum([0, *(len(place.locations) for place in self._places)], dtype=np.uint32)
            self._core.set_places(*_processes_and_ids(members), bounds)
            # A part of a run has no overview, nor has a run whose places have one location each.
            if self._whole and self._has_rows:
                path = self._files[0].blocks.parent / OVERVIEW
                if not self._core.open_places(str(path)):
                    self._build(path, self._core.open_places, self._core.build_places)
            self._places_opened = True

    def _build_one(self, process: int) -> None:
        path = self._files[process].tiles
        self._build(path, partial(self._core.open, process), partial(self._core.build, process))

    @staticmethod
    def _build(path: Path, open_it: Callable[[str], bool], build: Callable[[str], None]) -> None:
        # Under another name first: a reader never meets half a file, and two readers may build at once.
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            build(str(unfinished))
            unfinished.replace(path)
        except OSError:  # the folder is not ours to write in, or the disk is full
            unfinished.unlink(missing_ok=True)
            return
        open_it(str(path))


def _processes_and_ids(homes: Sequence[LocalLocation]) -> tuple[Regions, Regions]:
    """Return the numbers of processes and the ids there, as the native pyramid takes them."""
    columns = ([home.process for home in homes], [home.local_id for home in homes])
    process, local_id = (np.array(column, dtype=np.uint32) for column in columns)
    return process, local_id
