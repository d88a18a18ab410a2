"""The closing of a trace after its program is over."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from strobe.errors import TraceError
from strobe.trace.after_run import symbols
from strobe.trace.archive import process_files
from strobe.trace.processes import job_in_blocks, process_reader
from strobe.trace.trace import Trace


def recover_flight(folder: Path) -> None:
    """Recover what the rings hold that a flight recorder has copied. The processes run on, so that theirs are in use.

    Errors are passed over, as by `close_trace`.
    """
    for files in process_files(folder):
        with suppress(TraceError, OSError):
            if files.rings is not None:
                process_reader.recover(files, "left")
    job_in_blocks.keep(folder)


def close_trace(folder: Path) -> None:
    """Do the work that the first reader would otherwise do: recover the rings of dead processes, build tiles.

    Errors (a full disk, a file that is not a block file) are passed over: a reader gets them when it opens the trace.
    """
    for files in process_files(folder):
        with suppress(TraceError, OSError):
            process_reader.open_process(files)  # a file that is not sound stays as it is
            if files.rings is not None and not process_reader.is_alive(files):
                process_reader.recover(files)
    job_in_blocks.keep(folder)
    job_in_blocks.sync(folder)
    with suppress(TraceError, OSError):
        _resolve(folder)
    with suppress(TraceError, OSError):
        Trace.read(folder).pyramid.build()


def _resolve(folder: Path) -> None:
    functions: set[symbols.Address] = set()
    callers: set[symbols.Address] = set()
    variables: set[symbols.Address] = set()
    for files in process_files(folder):
        with suppress(TraceError, OSError):
            reader = process_reader.open_process(files)
            functions.update((row[6], row[1]) for row in reader.core.regions() if symbols.is_address(row))
            callers.update(reader.call_sites.values())
            texts = reader.core.texts()
            for found, before in ((functions, None), (variables, "("), (callers, "@")):
                found |= symbols.addresses_in(texts, before)
    symbols.resolve(folder, functions, callers, variables)
