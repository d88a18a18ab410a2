"""The pyramid of a trace: pictures of any window at the cost of their pixels.

Tiles are built at the end of a run or of an import, or by whoever needs them first; nothing is wrong without them, only
slower. What they hold: docs/format/tiles.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.model.kinds import GROUPS
from strobe.store.archive import ProcessFiles
from strobe.store.merge import Definitions
from strobe.store.raw import ProcessReader

Regions = npt.NDArray[np.uint32]
Shares = npt.NDArray[np.uint8]
_BUILDERS = 2  # building one needs a core, and memory for a few thousand spans


@dataclass(frozen=True)
class Window:
    """A picture's [start_ns, end_ns) since the trace's zero, and its pixels."""

    start_ns: int
    end_ns: int
    width: int


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
    ) -> None:
        from strobe import native

        self._files = files
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
        self._lock = threading.Lock()

    def build(self) -> None:
        """Build what is missing, or was built from something else."""
        self._open(range(len(self._files)))

    def cells(self, locations: Iterable[int], window: Window) -> tuple[Regions, Shares, Regions]:
        """Return region, share and mark by location and pixel: see `Trace.cells`."""
        process, local = self._homes(locations)
        return self._core.cells(process, local, window.start_ns, window.end_ns, window.width)

    def group_shares(self, locations: Iterable[int], window: Window) -> Shares:
        """Return the shares of groups by location, pixel and group: see `Trace.group_shares`."""
        process, local = self._homes(locations)
        return self._core.group_shares(process, local, window.start_ns, window.end_ns, window.width)

    def row_cells(
        self, members: Sequence[int], row_level: int, first: int, count: int, window: Window
    ) -> tuple[Shares, Regions]:
        """Return group shares and marks of rows of 8**row_level of these locations each: see `Trace.row_cells`."""
        size = 8**row_level
        bounds = np.minimum((first + np.arange(count + 1)) * size, len(members)).astype(np.uint32)
        process, local = self._homes(members[bounds[0] : bounds[-1]])
        return self._core.row_cells(process, local, bounds - bounds[0], window.start_ns, window.end_ns, window.width)

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

    def _open_one(self, process: int) -> None:
        files = self._files[process]
        # What a process that still writes has written is read as it is.
        if files.rings is not None or self._core.open(process, str(files.tiles)):
            return
        # Under another name first: a reader never meets half a file, and two readers may build at once.
        unfinished = files.tiles.with_name(f"{files.tiles.name}.{os.getpid()}")
        try:
            self._core.build(process, str(unfinished))
            unfinished.replace(files.tiles)
        except OSError:  # the folder is not ours to write in, or the disk is full
            unfinished.unlink(missing_ok=True)
            return
        self._core.open(process, str(files.tiles))
