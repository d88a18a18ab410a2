"""Names that CPython gives its functions in the profiles of native profilers (python -X perf)."""

from __future__ import annotations

from strobe.formats.reading.profile_import import Function

_MARK = "py::"


def function_of_symbol(symbol: str, file: str = "", line: int = 0, module: str = "") -> Function:
    """Return the function of a symbol: `py::solve:/a/b.py` is the Python function solve of /a/b.py."""
    if symbol.startswith(_MARK):
        name, _, python_file = symbol[len(_MARK) :].partition(":")
        return Function(name, python_file or file, line)
    return Function(symbol, file, line, module)
