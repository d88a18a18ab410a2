"""I/O of files: how often, how long and how fast a program opens, reads, writes and syncs which file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from strobe.analyses.program.io import ANALYSIS
from strobe.answers import sql
from strobe.model.units import format_ns, format_share
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace

_KEYS = {"file": ("file", "function"), "function": ("function",), "rank": ("rank", "process")}


class _Total(NamedTuple):
    """Sums of a function and a file."""

    interface: str
    process: int
    rank: int | None
    function: str
    file: str | None
    calls: int
    read_bytes: int
    written_bytes: int
    total_ns: int
    max_ns: int


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.program.io`."""
    totals = [*(_totals(trace, "posix") if len(trace.side_table("io_totals")) else _of_calls(trace))]
    totals += _totals(trace, "mpi")
    groups: dict[tuple[object, ...], list[_Total]] = {}
    for each in totals:
        key = (each.interface, *(getattr(each, name) for name in _KEYS[by]))
        groups.setdefault(key, []).append(each)
    rows = [{**dict(zip(("interface", *_KEYS[by]), key, strict=True)), **_sums(own)} for key, own in groups.items()]
    note = _sentence(totals) if rows else trace.missing(ANALYSIS.needs)
    return make_table(ANALYSIS.columns_with(by=by), rows, note=note).sort("total_ns")


def _totals(trace: Trace, interface: str) -> Iterator[_Total]:
    posix = interface == "posix"
    table = trace.side_table("io_totals" if posix else "message_totals")
    numbers = ("calls", *(("read_bytes", "written_bytes") if posix else ("received_bytes", "sent_bytes")))
    ranks, process_of = ranks_of(trace), processes_of_locations(trace)
    files = table.column("file") if posix else [None] * len(table)
    cells = [[cell or 0 for cell in table.integers(name)] for name in ("location", *numbers, "total_ns", "max_ns")]
    for function, file, location, *sums in zip(table.texts("function"), files, *cells, strict=True):
        if posix or function.startswith("MPI_File_"):
            process = process_of[location]
            yield _Total(interface, process, ranks[process], function, None if file is None else str(file), *sums)


def _of_calls(trace: Trace) -> Iterator[_Total]:
    """Yield the same of a trace of another tool, which has single calls."""
    moved = "coalesce(sum(size_bytes) filter (operation = '{}'), 0)::bigint"
    sums = f"count(*)::bigint, {moved.format('read')}, {moved.format('write')}, sum(duration_ns)::bigint"
    query = f"select process, name, file, {sums}, max(duration_ns) from io_spans group by all"
    ranks, columns = ranks_of(trace), sql.query(trace, query).to_arrow().columns
    for process, name, file, *numbers in zip(*(each.to_pylist() for each in columns), strict=True):
        yield _Total("posix", process, ranks[process], name, file, *numbers)


def _sums(totals: Iterable[_Total]) -> dict[str, object]:
    calls, read, written, total_ns, longest = zip(*(each[-5:] for each in totals), strict=True)
    moved = sum(read) + sum(written)
    moving_ns = sum(each.total_ns for each in totals if each.read_bytes + each.written_bytes)
    return {
        "calls": sum(calls),
        "bytes": moved,
        "total_ns": sum(total_ns),
        "bandwidth_gb_s": moved / moving_ns if moved and moving_ns else None,
        "max_ns": max(longest),
        "read_bytes": sum(read),
        "written_bytes": sum(written),
    }


def _sentence(totals: Iterable[_Total]) -> str:
    """Return where the time of files goes; "" if there is none."""
    by_call = Counter[tuple[str, str]]()
    for each in totals:
        if each.file and each.file.startswith("/"):
            by_call[each.function, each.file] += each.total_ns
    total_ns = by_call.total()
    if not total_ns:
        return ""
    ((function, file), most_ns), *_ = by_call.most_common(1)
    return f"I/O of files takes {format_ns(total_ns)}, {format_share(most_ns / total_ns)} of it {function} of {file}"
