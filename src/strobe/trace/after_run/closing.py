"""The closing of a trace after its program is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from strobe.errors import TraceError
from strobe.trace.after_run import symbols
from strobe.trace.archive import process_files
from strobe.trace.processes import process_reader
from strobe.trace.trace import Trace


def close_trace(folder: Path) -> None:
    """Do the work that the first reader would otherwise do: recover the rings of dead processes, build tiles.

    Errors (a full disk, a file that is not a block file) are passed over: a reader gets them when it opens the trace.
    """
    for files in process_files(folder):
        with suppress(TraceError, OSError):
            process_reader.open_process(files)  # a file that is not sound stays as it is
            if files.rings is not None and not process_reader.is_alive(files.pid):
                process_reader.recover(files)
    with suppress(TraceError, OSError):
        symbols.resolve(folder, _regions(folder))
    with suppress(TraceError, OSError):
        Trace.read(folder).pyramid.build()


def _regions(folder: Path) -> Iterator[symbols.Region]:
    for files in process_files(folder):
        with suppress(TraceError, OSError):
            yield from process_reader.open_process(files).core.regions()
