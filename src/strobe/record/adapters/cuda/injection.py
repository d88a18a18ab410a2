"""How CUPTI gets into a program: the variable that the driver reads, and files that the program's packages have."""

from __future__ import annotations

import os

VARIABLE = "CUDA_INJECTION64_PATH"
# Read by native/adapters/cupti/library.cpp: files to try, with colons.
CANDIDATES = "STROBE_CUPTI_CANDIDATES"


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
