"""Writes native/attach/interpreter_layouts.generated.h: where each CPython keeps what `strobe sample` reads.

    python tools/interpreter_layouts.py python3.11 python3.12 python3.13 python3.14 python3.15

Each interpreter, with its headers, prints its own layout: what `native/python/calls/frame_layout.c` fills in a recorded
program, and what `tools/interpreter_layout.c` adds. Bugfix releases of CPython keep these structures as they are; what
3.13 and later publish about theirs is compared with the row before a process is read.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_TARGET = _ROOT / "native/attach/interpreter_layouts.generated.h"
_HEAD = """\
// Written by tools/interpreter_layouts.py from the headers of CPython
// {versions}: do not edit.
#pragma once
#include "attach/interpreter_layout.h"

// clang-format off
inline constexpr interpreter_layout kInterpreterLayouts[] = {{
{rows}}};
// clang-format on
"""


def layout_of(python: str) -> tuple[str, str]:
    """Return the version of an interpreter, and its layout as an initialiser in C++."""
    ask = "import platform, sysconfig; print(platform.python_version(), sysconfig.get_path('include'))"
    version, include = subprocess.check_output([python, "-c", ask], text=True).split()
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/layout.so"
        source = str(_ROOT / "tools/interpreter_layout.c")
        flags = ["-shared", "-fPIC", "-Wall", "-Werror", f"-I{include}", f"-I{_ROOT / 'native'}"]
        subprocess.check_call(["cc", *flags, source, "-o", library])
        load = f"import ctypes; ctypes.PyDLL({library!r}).print_layout()"
        printed = subprocess.check_output([python, "-c", load], text=True)
    return version, re.sub("(?m)^.{121,}$", _lines, printed)


def _lines(long: re.Match[str]) -> str:
    """Break a line into those of a sensible length."""
    return re.sub(r"(.{1,115}[,{])(?: |(?=\d))", r"\1\n      ", long[0])


def main(pythons: list[str]) -> None:
    """Write the file for these interpreters."""
    found = [layout_of(python) for python in pythons]
    versions = ", ".join(version for version, _ in found)
    _TARGET.write_text(_HEAD.format(versions=versions, rows="".join(row for _, row in found)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or [f"python3.{minor}" for minor in range(11, 16)])
