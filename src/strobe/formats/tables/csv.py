"""CSV: a folder with a file for every table."""

from __future__ import annotations

import json
from pathlib import Path

from strobe.formats.writing.every_table import every_table
from strobe.formats.writing.output_files import new_folder, only_files
from strobe.model.plugins import Format
from strobe.tables.lazy_pyarrow import pa
from strobe.trace.trace import Trace


def write(trace: Trace, path: Path) -> list[str]:
    """Write every table of model/schema.py as TABLE.csv.

    Texts are quoted; what is not there is nothing, without quotes. Lists (histograms) are JSON.
    """
    import pyarrow.csv as pa_csv

    with new_folder(path, *only_files(".csv")) as work:
        for name, schema, pieces in every_table(trace):
            plain = pa.schema([_plain(field) for field in schema])
            with pa_csv.CSVWriter(work / f"{name}.csv", plain) as out:
                for piece in pieces:
                    out.write_table(pa.table([_shown(column) for column in piece.columns], schema=plain))
    return []


def _plain(field: pa.Field) -> pa.Field:
    return pa.field(field.name, pa.string()) if pa.types.is_list(field.type) else pa.field(field.name, field.type)


def _shown(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_list(column.type):
        return column
    texts = [None if each is None else json.dumps(each) for each in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, type=pa.string())])


FORMAT = Format("csv", "CSV, a folder with a file for every table", (".csv",), write=write)
