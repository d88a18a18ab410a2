"""The only door to the native reader of block files. What comes out is local to one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from strobe.errors import TraceError
from strobe.store.archive import ProcessFiles

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[tuple[int], np.dtype[np.generic]]
    Image = np.ndarray[tuple[int, int], np.dtype[np.uint32]]

NO_REGION = 0xFFFFFFFF  # a pixel in which nothing ran; also the parent of a root call path


class ProcessReader(Protocol):
    """What `strobe._native.ProcessReader` offers. Tests put hand-made processes behind the same seam."""

    def process(self) -> Mapping[str, object]:
        """Return pid, parent_pid, started_ns, ended_ns, end_state, exit_code, argv, host, python, main."""

    def regions(self) -> list[tuple[int, str, int, int, str, int, str]]:
        """Return (id, name, paradigm, role, file, line, module) of every region."""

    def locations(self) -> list[dict[str, object]]:
        """Return id, name, thread_id, kind, span_count, first_ns, last_ns of every location."""

    def call_paths(self) -> dict[str, Array]:
        """Return parent (0xFFFFFFFF at the root), region, depth, indexed by call path."""

    def spans(self, location: int, start_ns: int, end_ns: int) -> dict[str, Array]:
        """Return every span of a location that overlaps [start_ns, end_ns), in order of start."""

    def metrics(self) -> list[dict[str, object]]:
        """Return name, unit, location (or -1), time_ns, value of every metric."""

    def quality(self) -> dict[str, int]:
        """Return what was lost, cut, or spent, by name."""

    def build_tiles(self, tiles_path: str) -> None:
        """Write the pyramid of this process."""

    def cells(
        self, location: int, start_ns: int, end_ns: int, width: int, tiles_path: str | None
    ) -> tuple[Array, Array]:
        """Return the innermost region with most time per pixel, and its share of the pixel in 255ths."""

    def stack_cells(self, location: int, start_ns: int, end_ns: int, width: int, max_depth: int) -> Image:
        """Return the region with most time, per depth and pixel."""


def open_process(files: ProcessFiles) -> ProcessReader:
    """Open the files of one process; what a torn block file still holds is there, up to its last sound block."""
    from strobe import native

    try:
        reader: ProcessReader = native.ProcessReader(str(files.blocks), str(files.rings) if files.rings else None)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"cannot read '{files.blocks.name}': {reason}", where=str(files.blocks.parent)) from error
    except ValueError as error:
        raise TraceError(
            f"'{files.blocks.name}' is no sound block file: {error}",
            where=str(files.blocks.parent),
            do="Everything else in the folder may still be readable: move this file away and open the trace again.",
        ) from error
    return reader
