"""The compilers of `strobe cc --filter`: a program compiled without hooks in the functions that a filter excludes.

gcc leaves out functions whose name has a part (-finstrument-functions-exclude-function-list). So each file is compiled
twice: first to see which functions it has, then without hooks in those that the filter excludes, by their names or
files. A function stays recorded if leaving it out would take others with it that the filter includes.

    python -m strobe.cli.compile_filter FILTER COMPILER ARGUMENTS
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from tempfile import TemporaryDirectory
from typing import NamedTuple

from strobe.model.terminal import talk
from strobe.record.options.filters import FILE, read_filter_file
from strobe.trace.after_run.symbols import of_fortran, readable

Rule = tuple[int, bool, str]  # of a filter: what it is matched against, whether it includes, the pattern
_SOURCE = re.compile(r".*\.(c|cc|cp|cpp|cxx|c\+\+|f|for|ftn|fpp|f77|f90|f95|f03|f08)", re.IGNORECASE)
_FUNCTION = re.compile(r"[0-9a-f]+ [tTwW] ([^\t]+)\t(.+):\d+")  # of nm -l
_MODULE = re.compile(r"__\w+_MOD_")  # a procedure of gfortran
_CLONE = re.compile(r"\.(constprop|part|isra|cold|lto_priv).*")


class Function(NamedTuple):
    """A function that was compiled: its name in the object, that of the source, and the source file."""

    symbol: str
    name: str
    file: str

    @property
    def part(self) -> str:
        """What names it to gcc: the qualified name, or, as templates have another one there, what is behind the last
        `::`."""
        without_arguments = re.sub(r"\([^()]*\)( const)?$", "", self.name)
        plain = without_arguments
        while "<" in plain and (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
            plain = shorter
        as_it_is = plain == without_arguments and "(" not in plain and not _MODULE.match(self.symbol)
        return plain.rpartition(" ")[2] if as_it_is else re.split(r"::| ", plain)[-1]


def excluded(rules: Sequence[Rule], function: Function) -> bool:
    """Whether a filter excludes a function: of each kind of rule the last one that matches counts."""
    names = (function.symbol, function.name, function.name.partition("(")[0])
    of_file = of_name = True
    for kind, included, pattern in rules:
        shape = re.sub(r"\\(.)", r"[\1]", pattern)
        if kind == FILE:
            of_file = included if fnmatchcase(function.file, shape) else of_file
        elif any(fnmatchcase(name, shape) for name in names):
            of_name = included
    return not (of_file and of_name)


def flags(rules: Sequence[Rule], functions: Iterable[Function]) -> tuple[list[str], list[str]]:
    """Return the options of gcc for a filter, and the names of functions that it cannot leave out alone."""
    out, stay = set[Function](), set[Function]()
    for function in functions:
        (out if excluded(rules, function) else stay).add(function)
    parts = {function.part for function in out}
    shared = {part for part in parts if any(part in function.part for function in stay)}
    option = "-finstrument-functions-exclude-function-list="
    return [option + part.replace(",", "\\,") for part in sorted(parts - shared)], sorted(shared)


def functions_of(command: Sequence[str]) -> list[Function]:
    """Compile and return the functions that there are; none if it fails, which the compiler will show."""
    with TemporaryDirectory() as folder:
        made = os.path.join(folder, "made")
        if subprocess.run([*command, "-o", made], capture_output=True).returncode:
            return []
        lines = subprocess.run(["nm", "-l", made], capture_output=True, text=True, errors="replace").stdout.splitlines()
    found = []
    for line in filter(None, map(_FUNCTION.fullmatch, lines)):
        symbol = _CLONE.sub("", line[1])
        found.append(Function(symbol, of_fortran(readable(symbol), line[2]), os.path.normpath(line[2])))
    return found


def main(words: Sequence[str]) -> None:
    """Become the compiler."""
    path, *command = words
    if any(map(_SOURCE.fullmatch, command)):
        options, shared = flags(read_filter_file(path), functions_of(command))
        if shared:
            talk(f"gcc cannot leave out {', '.join(shared)} alone: recorded all the same")
        command[1:1] = options
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
