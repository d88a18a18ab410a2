"""Parquet: a folder with a file for every table, as small and as fast to read as DuckDB, pyarrow and Polars like it."""

from __future__ import annotations

from pathlib import Path

from strobe.formats.writing.every_table import every_table
from strobe.formats.writing.output_files import new_folder, only_files
from strobe.model.option import Option
from strobe.model.plugins import Format
from strobe.tables.lazy_pyarrow import pa
from strobe.trace.trace import Trace

_ROWS = 1 << 16  # a row group
_GROWING = ("start_ns", "time_ns", "row", "location")


def write(trace: Trace, path: Path, *, small: bool = False) -> list[str]:
    """Write every table of model/schema.py as TABLE.parquet: zstd 1, row groups of 64 k, by location and start.

    Integers are DELTA_BINARY_PACKED, which every reader knows. `small`: those that do not grow, and reals, are
    BYTE_STREAM_SPLIT instead, which takes a fifth less; DuckDB before 2.0 and pyarrow before 16 cannot read it.
    """
    import pyarrow.parquet as pq

    with new_folder(path, *only_files(".parquet")) as work:
        for name, schema, pieces in every_table(trace):
            sorting = [pq.SortingColumn(i) for i, field in enumerate(schema) if field.name in ("location", "start_ns")]
            with pq.ParquetWriter(
                work / f"{name}.parquet",
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[field.name for field in schema if pa.types.is_string(field.type)],
                column_encoding=_encodings(schema, small),
                sorting_columns=sorting if name == "spans" else None,
            ) as out:
                waiting: list[pa.Table] = []
                for piece in pieces:
                    waiting.append(piece.cast(schema))
                    if sum(each.num_rows for each in waiting) >= _ROWS:
                        joined = pa.concat_tables(waiting)
                        whole = joined.num_rows // _ROWS * _ROWS
                        out.write_table(joined.slice(0, whole), row_group_size=_ROWS)
                        waiting = [joined.slice(whole)]
                if any(each.num_rows for each in waiting):
                    out.write_table(pa.concat_tables(waiting), row_group_size=_ROWS)
    return []


def _encodings(schema: pa.Schema, small: bool) -> dict[str, str]:
    found = {}
    for field in schema:
        number = pa.types.is_integer(field.type)
        if small and (pa.types.is_floating(field.type) or (number and field.name not in _GROWING)):
            found[field.name] = "BYTE_STREAM_SPLIT"
        elif number:
            found[field.name] = "DELTA_BINARY_PACKED"
    return found


FORMAT = Format(
    "parquet",
    "Parquet, a folder with a file for every table",
    suffixes=(".parquet",),
    write=write,
    options=(Option("small", "parquet: Write files that are a fifth smaller, for readers from 2024 on.", bool, False),),
)
