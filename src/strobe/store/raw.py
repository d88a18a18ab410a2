"""The only door to the native reader of block files. What comes out is local to one process."""

from __future__ import annotations

import fcntl
import json
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

    class Reader(native.ProcessReader):  # type: ignore[misc]  # an extension class
        def process(self) -> Mapping[str, object]:
            return _process_facts(super().process(), running(files))

        def quality(self) -> dict[str, int]:
            counted: dict[str, int] = super().quality()
            for text in super().process()["end_json"]:
                counted |= json.loads(text)["counters"]
            return counted

    try:
        reader: ProcessReader = Reader(str(files.blocks), str(files.rings) if files.rings else None)
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


def running(files: ProcessFiles) -> bool:
    """Whether the process still records: it holds a lock on its block file as long as it lives."""
    if files.rings is None:
        return False
    try:
        with files.blocks.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def complete(files: ProcessFiles) -> int:
    """Write into the block file what the rings of a dead process still hold, and remove them.

    Returns the number of records recovered; 0 for a process that still runs or closed its files itself. Raises
    TraceError when the folder cannot be written: reading recovers the same in memory, each time.
    """
    from strobe import native

    if files.rings is None or running(files):
        return 0
    try:
        records: int = native.recover(str(files.blocks), str(files.rings))
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot complete '{files.blocks.name}': {error}", where=str(files.blocks.parent)) from error
    return records


def _process_facts(raw: Mapping[str, object], alive: bool) -> dict[str, object]:
    """Make one description of what the process wrote when it began and when it ended."""
    begun, ended = raw["process_json"], raw["end_json"]
    assert isinstance(begun, list)
    assert isinstance(ended, list)
    facts: dict[str, object] = {"pid": 0, "parent_pid": 0, "started_ns": raw["last_ns"], "main": False}
    for text in begun[:1]:
        described = json.loads(text)
        facts |= described.pop("description", {})
        facts |= described
    if facts.get("forked"):  # a forked child repeats its parent's description
        facts["main"] = False
    if ended:
        facts |= json.loads(ended[-1])
    else:
        facts |= {"end_state": "running" if alive else "lost", "exit_code": None, "ended_ns": raw["last_ns"]}
    facts["ended_ns"] = max(int(str(facts["ended_ns"])), int(str(raw["last_ns"])))
    if facts.get("exit_code") == -1:
        facts["exit_code"] = None
    return facts
