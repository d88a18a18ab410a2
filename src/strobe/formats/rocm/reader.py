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
from strobe.formats.rocm.sums import FILES as SUMS
from strobe.formats.rocm.sums import is_sums, read_sums
from strobe.formats.rocm.texts import FILES, read_csv, read_json
from strobe.model.plugins import Imported, ImportSource, ImportTarget

_WHOLE = ("results.db", "results.json")  # what rocprofv3 calls them, behind the number of the process
_TRACES, _SUMS = ([f"{name}.csv" for name in names] for names in (FILES, SUMS))
_OF_RUN = (*_WHOLE, *_TRACES, *_SUMS)
_RUN = re.compile(f"(.*?)({'|'.join(map(re.escape, _OF_RUN))})")


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file; if the database or the JSON of the same run lies beside it, that, which has more.

    Sums are read where there is nothing else. Times are the file's own: nanoseconds since the node started. Raises
    ValueError if it is damaged from the beginning.
    """
    name = PurePosixPath(source.name.replace(":", "/")).name
    run = _RUN.fullmatch(name)
    # All are looked up, so that none of them is a trace of its own.
    beside = {each: source.beside(f"{run[1]}{each}") for each in _OF_RUN if run is not None and each != run[2]}
    whole = [each for each in (source, *map(beside.get, _WHOLE)) if each is not None]
    heads = [next(iter(each.chunks()), b"") for each in whole]
    for head, each in zip(heads, whole, strict=True):
        if head.startswith(SQLITE_MAGIC) and b"rocpd_" in head:
            with closing(SqliteInput(each.local_path())) as database:
                return (read_rpd if is_rpd(database) else read_rocpd)(source, target, database)
    for head, each in zip(heads, whole, strict=True):
        if is_json(head):
            return read_json(each, target)
    older = name.removesuffix(".csv")  # rocprof puts its sums beside its kernels
    if not is_sums(heads[0]):
        source.beside(f"{older}.stats.csv")
        return read_csv(source, target)
    traces = [source.beside(f"{older.removesuffix('.stats')}.csv") if older.endswith(".stats") else None]
    traces += map(beside.get, _TRACES)
    found = next((each for each in traces if each is not None), None)
    sums = (each for each in map(beside.get, _SUMS) if each is not None)
    return read_sums([source, *sums], target) if found is None else read_csv(found, target)
