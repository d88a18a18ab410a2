"""Reads a file of rocprofv3, with what else there is of its run, or one of rocmProfileData."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import PurePosixPath

from strobe.formats.reading.inputs import SQLITE_MAGIC
from strobe.formats.reading.sqlite_input import SqliteInput
from strobe.formats.rocm.first_bytes import is_json
from strobe.formats.rocm.rocpd import read_rocpd
from strobe.formats.rocm.rpd import is_rpd, read_rpd
from strobe.formats.rocm.texts import FILES, read_csv, read_json
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_WHOLE = ("results.db", "results.json")  # what rocprofv3 calls them, behind the number of the process
_OF_RUN = (*_WHOLE, *(f"{name}.csv" for name in FILES))
_RUN = re.compile(f"(.*?)({'|'.join(map(re.escape, _OF_RUN))})")


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file; if the database or the JSON of the same run lies beside it, that, which has more.

    Times are the file's own: nanoseconds since the node started. Raises ValueError if it is damaged from the beginning.
    """
    run = _RUN.fullmatch(PurePosixPath(source.name.replace(":", "/")).name)
    # All are looked up, so that none of them is a trace of its own.
    beside = {each: source.beside(f"{run[1]}{each}") for each in _OF_RUN if run is not None and each != run[2]}
    files = [source, *(beside.get(each) for each in _WHOLE)]
    found = [(next(iter(each.chunks()), b""), each) for each in files if each is not None]
    for head, each in found:
        if head.startswith(SQLITE_MAGIC) and b"rocpd_" in head:
            with closing(SqliteInput(each.local_path())) as database:
                return (read_rpd if is_rpd(database) else read_rocpd)(source, target, database)
    return next((read_json(each, target) for head, each in found if is_json(head)), None) or read_csv(source, target)
