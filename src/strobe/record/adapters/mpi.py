"""MPI calls: `libstrobe_mpi.so`, preloaded, interposes them in every process, whether it is a Python or not.

`strobe run` preloads it where the program runs under an MPI launcher, is one, or is linked with MPI
(`record/ranks.py`); everywhere else one has to ask for it: `--trace +mpi`.
"""

from __future__ import annotations

import os

from strobe.record.config import Session

LIBRARY = "libstrobe_mpi.so"


class Mpi:
    """The adapter. The library was loaded before Python was; it is silent until a session begins."""

    name = "mpi"

    def available(self) -> str:
        """Only `strobe run` can preload a library."""
        if LIBRARY not in os.environ.get("LD_PRELOAD", ""):
            return "MPI calls are recorded under `strobe run` only"
        return ""

    def start(self, settings: Session) -> None:
        """Nothing to do: the library looks for a session at every call."""

    def stop(self) -> None:
        """Nothing to undo: without a session the calls go straight through."""


ADAPTER = Mpi()
