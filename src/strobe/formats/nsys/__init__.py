"""NVIDIA Nsight Systems: the SQLite files that `nsys export --type sqlite` writes, schema 2.x to 3.x.

Reports are exported by nsys, where it is installed.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from pathlib import Path

from strobe.formats.nsys import timed_rows
from strobe.formats.nsys.export import Export
from strobe.formats.nsys.ranges import Ranges
from strobe.formats.nsys.ranks import ranks_of
from strobe.formats.nsys.tables import KINDS, PARADIGMS, named
from strobe.formats.reading.conversion import INPUT, OUTPUT, converted
from strobe.formats.reading.database_tables import TIMES, SpanTable
from strobe.formats.reading.inputs import SQLITE_MAGIC
from strobe.formats.reading.sqlite_input import NONE, SqliteInput
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

# Only StringIds is always there, and columns come and go with versions: each is looked up before it is read. Unknown
# tables are kept all the same: those with a start and an end become spans, those with one time become marks, the others
# become properties. Unknown columns become arguments.

# How the names of those begin that need no reader of their own.
_KNOWN = (*(start for start, _ in PARADIGMS), "DIAGNOSTIC_EVENT", "TARGET_INFO_", "ANALYSIS_")
# .qdrep and .nsys-rep begin alike; a stream is what nsys leaves where it cannot make a report.
_REPORT, _STREAM = b"NVIDIA Tegra Profiler Report ", re.compile(rb"[^\n]{0,60}\[END\]NVIDIA (?:Nsight|Tegra)")
_EXPORT = ("nsys", "export", "--type", "sqlite", "--output", OUTPUT, "--force-overwrite", "true", INPUT)
_IMPORT = ("QdstrmImporter", "-i", INPUT, "-o", OUTPUT)


def sniff(head: bytes) -> bool:
    """Return whether it is a SQLite file with the table of texts that every export begins with, or a report."""
    return (head.startswith(SQLITE_MAGIC) and b"StringIds" in head) or _is_report(head)


def _is_report(head: bytes) -> bool:
    return head.startswith(_REPORT) or _STREAM.match(head) is not None


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import every table of an export.

    Times are the file's own: nanoseconds since the session began; `base_ns` is when that was. A thread's calls and push
    ranges share its location; start/end ranges, times on a processor, waits on GPU work and the profiler's own overhead
    have locations beside it, because they do not nest into calls. Raises ValueError if the database is damaged, or a
    report cannot be exported.
    """
    head = next(iter(source.chunks()), b"")
    if not _is_report(head):
        return _opened(source, target, source.local_path())
    with ExitStack() as stack:
        report = source
        if not head.startswith(_REPORT):
            report = stack.enter_context(converted(source, _IMPORT, ".nsys-rep"))
        return _opened(source, target, stack.enter_context(converted(report, _EXPORT, ".sqlite")).local_path())


def _opened(source: ImportSource, target: ImportTarget, path: Path) -> Imported:
    with closing(SqliteInput(path)) as database:
        if "StringIds" not in database.tables:
            raise ValueError("it has no table StringIds")
        return _read(Export(source, target, database))


def _read(export: Export) -> Imported:
    ranges, tables = Ranges(export), export.tables
    for kind in KINDS:
        tables.spans(kind)
    timed_rows.read_messages(export)
    ranges.read()
    timed_rows.read_scheduling(export)
    timed_rows.read_samples(export)
    timed_rows.read_gpu_metrics(export)
    timed_rows.read_allocations(export)
    handled = {
        *("StringIds", "PROCESSES", "ThreadNames", "MPI_RANKS", "NVTX_EVENTS", "SCHED_EVENTS", "UnwindMethodType"),
        *("COMPOSITE_EVENTS", "GPU_METRICS", "CUDA_GPU_MEMORY_USAGE_EVENTS"),
        *(kind.table for kind in KINDS),
    }
    properties: dict[str, object] = {}
    for name, table in tables.database.tables.items():
        columns = table.columns
        if name in handled or name.startswith("ENUM_") or name.endswith("CALLCHAINS"):
            continue
        names = tuple(each for each in ("nameId", "textId", "name", "text") if each in columns)[:1]
        title = name.lower().replace("_", " ")
        if TIMES & columns.keys() and not name.startswith(_KNOWN):
            tables.kept_unknown(name)
        if "start" in columns and "end" in columns:
            tables.spans(_other_table(name, names, title))
        elif "start" in columns or "timestamp" in columns:
            tables.marks(name, "start" if "start" in columns else "timestamp", names, title)
        else:
            tables.property(properties, name)
    return _finished(export, properties)


def _other_table(table: str, names: tuple[str, ...], title: str) -> SpanTable:
    """Return how an unknown table becomes spans: named by its texts if it has some, else by itself."""
    paradigm = next((each for start, each in PARADIGMS if table.startswith(start)), "other")
    # Calls have names and nest into each other; others get a location of their own.
    if names:
        return SpanTable(table, names, named(paradigm, "other", title))
    return SpanTable(table, (), lambda _: (title, paradigm, "other", ""), row=title)


def _finished(export: Export, properties: dict[str, object]) -> Imported:
    database = export.tables.database
    names = database.pairs("PROCESSES", "globalPid", "name")
    began = database.pairs("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "utcEpochNs")
    return export.tables.finish(
        lambda key: str(names.get(key << 24, f"process {export.pid(key)}")),
        properties=properties,
        base_ns=next(iter(began), None),
        host=_host(export),
        ranks=ranks_of(export),
    )


def _host(export: Export) -> str:
    for batch in export.tables.database.batches("TARGET_INFO_SYSTEM_ENV", ("name", "value")):
        if {"name", "value"} <= batch.coded.keys():
            for name, value in zip(batch.coded["name"].tolist(), batch.coded["value"].tolist(), strict=True):
                if NONE not in (name, value) and batch.words["name"][name] == "Hostname":
                    return str(batch.words["value"][value])
    return ""


FORMAT = Format(
    "nsys",
    "Nsight Systems reports (through nsys) and SQLite (nsys export --type sqlite)",
    suffixes=(".sqlite", ".db", ".nsys-rep", ".qdrep", ".qdstrm"),
    sniff=sniff,
    read=read,
)
