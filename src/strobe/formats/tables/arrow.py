"""Arrow IPC (Feather): a folder with a file for every table, to be mapped into memory."""

from __future__ import annotations

from pathlib import Path

from strobe.formats.writing.every_table import every_table
from strobe.formats.writing.output_files import new_folder, only_files
from strobe.model.plugins import Format
from strobe.tables.lazy_pyarrow import pa
from strobe.trace.trace import Trace


def write(trace: Trace, path: Path) -> list[str]:
    """Write every table of model/schema.py as TABLE.arrow, in batches of at most 64 k rows, packed with zstd."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with new_folder(path, *only_files(".arrow")) as work:
        for name, schema, pieces in every_table(trace):
            with pa.ipc.new_file(work / f"{name}.arrow", schema, options=options) as out:
                for piece in pieces:
                    out.write_table(piece.cast(schema), max_chunksize=1 << 16)
    return []


FORMAT = Format("arrow", "Arrow IPC (Feather), a folder with a file for every table", (".arrow",), write=write)
