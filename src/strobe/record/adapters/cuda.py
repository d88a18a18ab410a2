"""What GPUs do, through CUPTI: libstrobe is the injection library that the CUDA driver loads when a program starts it.

A process that does not use CUDA never loads anything of it (native/adapters/cupti/).
"""

from __future__ import annotations

import os
import sys

from strobe.native import library
from strobe.record.config import Session

VARIABLE = "CUDA_INJECTION64_PATH"
# Read by native/adapters/cupti/library.cpp: files to try, with colons.
CANDIDATES = "STROBE_CUPTI_CANDIDATES"


class Cuda:
    """The adapter. The driver reads its variable inside of cuInit, once."""

    name = "cuda"

    def available(self) -> str:
        """Another tool's injection (Nsight Systems, Nsight Compute, compute-sanitizer) stays."""
        if os.environ.get(VARIABLE, library()) != library():
            return f"{VARIABLE} names another tool, or none: {os.environ[VARIABLE]}"
        return ""

    def start(self, settings: Session) -> None:
        """Name the injection library, and the CUPTI of this interpreter's packages."""
        os.environ[VARIABLE] = library()
        if found := of_packages(sys.path):
            os.environ[CANDIDATES] = os.pathsep.join(found)

    def stop(self) -> None:
        """Nothing to undo: without a session the core takes no records."""


def of_packages(path: list[str]) -> list[str]:
    """Return every libcupti of NVIDIA's packages on PyPI that lies in `path`, newer releases first."""
    found = []
    for folder in path:
        nvidia = os.path.join(folder, "nvidia")
        if not os.path.isdir(nvidia):
            continue
        toolkits = sorted(
            (name for name in os.listdir(nvidia) if name[:2] == "cu" and name[2:].isdigit()), reverse=True
        )
        for name in (*toolkits, "cuda_cupti"):
            libraries = os.path.join(nvidia, name, "lib")
            if os.path.isdir(libraries):
                names = sorted((n for n in os.listdir(libraries) if n.startswith("libcupti.so")), reverse=True)
                found += [os.path.join(libraries, each) for each in names]
    return found


ADAPTER = Cuda()
