"""Counted source lines, summed over threads and processes; and their text, where the file is unchanged."""

from __future__ import annotations

import inspect
import io
import tokenize
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from strobe.tables.table import Table


@dataclass
class CountedFunction:
    """A function and its lines: line -> (hits, nanoseconds); on GPUs, where that was looked at: (ns, kernels)."""

    file: str
    name: str
    function_line: int | None
    lines: dict[int, tuple[int, int]] = field(default_factory=dict)
    on_gpu: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def total_ns(self) -> int:
        """Time of all lines."""
        return sum(ns for _, ns in self.lines.values())

    def add(self, other: CountedFunction) -> None:
        """Add what was counted elsewhere."""
        for sums, more in ((self.lines, other.lines), (self.on_gpu, other.on_gpu)):
            for line, (first, second) in more.items():
                known = sums.get(line, (0, 0))
                sums[line] = (known[0] + first, known[1] + second)


@dataclass(frozen=True)
class Source:
    """The text of a function's lines by number, empty if there is none. `changed`: the file is newer than the run."""

    lines: dict[int, str] = field(default_factory=dict)
    changed: bool = False


def summed_lines(table: Table) -> list[CountedFunction]:
    """Return one function for each (file, first line, name) of the side table `lines`."""
    functions: dict[tuple[str, int | None, str], CountedFunction] = {}
    for row in table.to_arrow().to_pylist():
        key = (row["file"] or "", row["function_line"], row["function"] or "")
        function = functions.setdefault(key, CountedFunction(key[0], key[2], key[1]))
        on_gpu = {} if row["gpu_ns"] is None else {row["line"]: (row["gpu_ns"], row["kernels"] or 0)}
        lines = {row["line"]: (row["hits"] or 0, row["total_ns"] or 0)}
        function.add(CountedFunction("", "", None, lines, on_gpu))
    return list(functions.values())


def source_of(function: CountedFunction, run_unix_ns: int) -> Source:
    """Return the text of a function from its first line (or first counted line) to its end.

    `run_unix_ns`: when the run began, as unix time; 0 where unknown, then the file is trusted.
    """
    path = Path(function.file)
    try:
        if run_unix_ns and path.stat().st_mtime_ns > run_unix_ns:
            return Source(changed=True)
        # Lines as Python counts them: str.splitlines also splits at a form feed, and more.
        text = io.StringIO(path.read_text(encoding="utf-8", errors="replace")).readlines()
    except (OSError, ValueError):
        return Source()
    first = function.function_line or min(function.lines, default=1)
    last = max(function.lines, default=first)
    if function.function_line and first <= len(text):
        # Of a file that is not what it was, what was counted is shown.
        with suppress(tokenize.TokenError, SyntaxError):
            last = max(last, first - 1 + len(inspect.getblock(text[first - 1 :])))
    return Source({number: text[number - 1].rstrip() for number in range(first, min(last, len(text)) + 1)})
