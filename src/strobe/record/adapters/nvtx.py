"""NVTX ranges of anybody, and calls of NCCL: libstrobe is the injection library that NVTX loads by name."""

from __future__ import annotations

import os

from strobe.native import library
from strobe.record.config import Session

VARIABLE = "NVTX_INJECTION64_PATH"


class Nvtx:
    """The adapter. NVTX reads its variable at the first NVTX call in each shared object."""

    name = "nvtx"

    def available(self) -> str:
        """Another tool's injection (Nsight Systems sets the same variable) stays."""
        if os.environ.get(VARIABLE, library()) != library():
            return f"{VARIABLE} names another tool: {os.environ[VARIABLE]}"
        return ""

    def start(self, settings: Session) -> None:
        """Name the injection library."""
        os.environ[VARIABLE] = library()

    def stop(self) -> None:
        """Nothing to undo: without a session the injected functions return at once."""


ADAPTER = Nvtx()
