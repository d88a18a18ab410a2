"""Printed averages of PyTorch's profiler (`prof.key_averages().table()`), alone or among other text.

Every operator is a root, with the time of its calls with and without what they call: the table has no tree. Where rows
have a stack (group_by_stack_n), the operator is called from it: calls and time of the functions are those of the
operators inside, by their own time. Rows that take time on a GPU alone are kernels and copies. Times of GPUs and memory
of operators are in `path_metrics`. Values are as exact as they were printed. The same operator with several shapes is
summed up: these columns are not kept, nor FLOPs, nor averages and percentages, which follow from the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from strobe.formats.reading.profile_import import NANOSECONDS, ROOT, Function, ProfileProcess, Weight, clean
from strobe.formats.reading.text_input import lines_of
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_RULE = re.compile(r"\s*-{4,}(?:\s+-{4,}){5,}\s*")
_TIME = re.compile(r"(\d{1,15}\.\d{1,6})(us|ms|s)")
_MEMORY = re.compile(r"(-?\d{1,18}(?:\.\d{1,6})?) ([KMGT]?)b", re.IGNORECASE)
_GPU_TOTAL = re.compile(r"(?!CPU)([A-Z0-9]+) total")  # CUDA, XPU, MTIA, HPU, or what a backend is called
_MORE = re.compile(r"Input Shapes|Total .?FLOPs|Overload Name|Node ID")
_SELF_CPU, _CPU_TOTAL, _CALLS, _STACK = "Self CPU", "CPU total", "# of Calls", "Source Location"
_FRAME = re.compile(r"(.*)\((\d{1,9})\): (.+)")  # torch/nn/modules/linear.py(130): forward
_LARGEST = 1 << 62


def sniff(head: bytes) -> bool:
    """Return whether a line has the headings of such a table."""
    return any(line.lstrip(b" ").startswith(b"Name ") and _has_headings(line) for line in head.splitlines())


def _has_headings(line: bytes) -> bool:
    at = 0
    for heading in (b"Self CPU ", b"CPU total ", b"# of Calls"):
        at = line.find(heading, at)
        if at < 0:
            return False
        at += len(heading)
    return True


class _Column(NamedTuple):
    name: str
    start: int
    end: int


class _Row(NamedTuple):
    name: str
    cells: dict[str, str]
    stack: list[str]  # innermost first


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import the tables of a file, each as a location. Raises ValueError if none has a row."""
    process = ProfileProcess(source, target)
    tables = 0
    for number, (columns, rows) in enumerate(_tables(source, process)):
        title = f"table {number + 1}"
        names = {column.name for column in columns}
        process.core.count("columns_not_kept", sum(_MORE.fullmatch(name) is not None for name in names))
        gpu = next((found[1] for name in names if (found := _GPU_TOTAL.fullmatch(name))), "")
        on_host = {name for name, cells, _ in rows if _ns(cells.get(_CPU_TOTAL, ""))}
        host = process.location(title, number + 1)
        on_gpu = process.location(f"{title} {gpu}", number + 1) if gpu else host
        seen: Counter[int] = Counter()
        inside_ns: Counter[int] = Counter()
        for name, cells, stack in rows:
            own, total = (_ns(cells.get(column, "")) for column in (_SELF_CPU, _CPU_TOTAL))
            calls = int(cells[_CALLS])
            own_gpu, total_gpu = (_ns(cells.get(column, "")) for column in (f"Self {gpu}", f"{gpu} total"))
            if own is None or total is None:
                process.core.count("functions_not_understood")
                continue
            tables += 1
            if gpu and not total and own_gpu:
                # What is marked on the host, too, is a range there is GPU work in.
                role = "copy" if name.startswith(("Memcpy", "Memset")) else "range" if name in on_host else "kernel"
                path = process.path(ROOT, process.region(Function(name), paradigm="other", role=role))
                process.totals(on_gpu, path, calls, own_gpu, own_gpu)
                continue
            caller = ROOT
            for frame in reversed(stack):
                caller = process.path(caller, process.region(_function(frame), paradigm="python"))
            path = process.path(caller, process.region(Function(name), paradigm="torch", role="operator"))
            process.totals(host, path, calls, total, own)
            while caller != ROOT:
                seen[caller] += calls
                inside_ns[caller] += own
                caller = process.parent(caller)
            if own_gpu or total_gpu:
                time = Weight(f"{gpu} time", "ns")
                process.path_metric(host, path, time, float(own_gpu or 0), float(total_gpu or 0))
            for memory in ("CPU", gpu):
                both = [_bytes(cells.get(column, "")) for column in (f"Self {memory} Mem", f"{memory} Mem")]
                if memory and any(both):
                    process.path_metric(host, path, Weight(f"{memory} memory", "bytes"), both[0], both[1])
        for path, count in seen.items():
            process.totals(host, path, count, inside_ns[path], 0)
    if not tables:
        raise ValueError("it has no row")
    return process.finish({})


def _function(frame: str) -> Function:
    found = _FRAME.fullmatch(frame)
    return Function(found[3], found[1], int(found[2])) if found else Function(frame)


def _tables(source: ImportSource, process: ProfileProcess) -> Iterator[tuple[list[_Column], list[_Row]]]:
    """Return the columns of each table, and its rows."""
    columns: list[_Column] = []
    rows: list[_Row] = []
    rule = ""  # under the headings, as above them
    for raw in lines_of(source, lambda: process.core.count("lines_not_understood")):
        line = clean(raw.decode("utf-8", "replace")).rstrip("\r")
        if _RULE.fullmatch(line):
            if rows:
                yield columns, rows
                columns, rows, line = [], [], ""
            rule = line
        elif rule and not columns:
            spans = [match.span() for match in re.finditer(r"-+", rule)]
            names = re.split(r" {2,}", line.strip())  # a long one, CUDA time avg, moves those behind it
            if len(names) == len(spans) and names[0] == "Name" and _CALLS in names:
                columns = [_Column(name, *span) for name, span in zip(names, spans, strict=True)]
            else:
                rule = ""
        elif columns and line.strip():
            cells = _cells(line, columns)
            if cells is None:
                process.core.count("functions_not_understood")
            elif cells["Name"]:
                if not re.fullmatch(r"\d{1,18}", cells[_CALLS]):
                    process.core.count("functions_not_understood")
                else:
                    rows.append(_Row(cells["Name"], cells, [cells[_STACK]] if cells.get(_STACK) else []))
            elif rows and cells.get(_STACK):
                rows[-1].stack.append(cells[_STACK])
    if rows:
        process.core.count("truncated")
        yield columns, rows


def _cells(line: str, columns: Sequence[_Column]) -> dict[str, str] | None:
    """Return the cells of a row; one with a cell that is too wide for its column is divided by its blanks."""
    between = [line[one.end : other.start] for one, other in pairwise(columns)]
    if any(text.strip() for text in between):
        found = re.split(r" {2,}", line.strip())
        return (
            {each.name: cell for each, cell in zip(columns, found, strict=True)} if len(found) == len(columns) else None
        )
    return {each.name: line[each.start : each.end].strip() for each in columns}


def _ns(cell: str) -> int | None:
    found = _TIME.fullmatch(cell)
    exact = Fraction(Decimal(found[1])) * NANOSECONDS[found[2]] if found else Fraction(_LARGEST)
    return round(exact) if exact < _LARGEST else None


def _bytes(cell: str) -> float | None:
    found = _MEMORY.fullmatch(cell)
    return float(Decimal(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else None


FORMAT = Format(
    "key_averages",
    "PyTorch's printed averages (key_averages().table())",
    suffixes=(".txt", ".log"),
    sniff=sniff,
    read=read,
)
