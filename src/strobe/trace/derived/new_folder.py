"""A new trace folder: it gets its name when it is complete."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from strobe.errors import StrobeError, TraceError
from strobe.model import manifest
from strobe.model.private_files import folder_mode, opener
from strobe.trace.archive import FORMAT_VERSION, require_utf_8
from strobe.trace.processes import job_in_blocks


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Make a trace folder. Raises TraceError if it exists, StrobeError if a file cannot be written."""
    require_utf_8(folder)
    if folder.exists():
        raise TraceError(f"'{folder}' is there already", do="Choose another name: -o")
    work = folder.with_name(f".{folder.name}.unfinished-{os.getpid()}")
    try:
        work.mkdir(folder_mode(), parents=True)
        yield work
        work.rename(folder)
    except OSError as error:
        raise StrobeError(f"cannot write '{error.filename or folder}': {error.strerror or error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_job(folder: Path, job: Mapping[str, object]) -> None:
    """Write job.json, and what it holds into the block files, which are there already."""
    with open(folder / "job.json", "w", encoding="utf-8", opener=opener) as file:
        file.write(manifest.sealed(json.dumps({"format_version": FORMAT_VERSION, **job}, indent=1)) + "\n")
    job_in_blocks.keep(folder)
