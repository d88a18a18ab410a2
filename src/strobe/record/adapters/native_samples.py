"""Samples of native code. Programs without Python: call stacks of all threads by CPU time, and what they wait for each
other. In a Python, if it is asked for (`--trace +native`): the C functions below its own that samples are in.

`strobe run` preloads `libstrobe_threads.so` where the program is compiled or is started by a shell. Ranks of MPI are
sampled, and a Python gets signals, only where that is asked for. Call stacks need glibc 2.35 or newer. A program that
uses SIGPROF keeps it, and shows only its waits.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter, preloaded, preloading
from strobe.record.options.recorder_options import per_second

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from strobe.record.options.recorder_options import Setting
    from strobe.record.options.session_settings import Session

_PER_SECOND, _OF, _IN_PYTHON = "STROBE_THREADS_HZ", "STROBE_THREADS_OF", "STROBE_THREADS_IN_PYTHON"
_USUAL, _BESIDE_MPI = 1000, 200  # per second of CPU time; stacks in MPI are deep, and its calls are recorded, too


class _NativeSamples(Adapter):
    _of_mpi = _in_python = False

    def available(self) -> str:
        """Only `strobe run` can preload a library."""
        return "" if preloaded("threads") else "C functions are sampled under `strobe run` only"

    def needed_by(self, environment: Mapping[str, str], command: Sequence[str]) -> bool:
        """Whether the program is compiled, or a script of a shell, and does not call MPI."""
        from strobe.record.launch.parallel_jobs import calls_mpi, is_native

        self._of_mpi = calls_mpi(environment, command)  # then launchers are not what is of interest
        return is_native(command) and not self._of_mpi

    def wanted(self, settings: dict[str, Setting], chosen: bool) -> bool:
        """Return whether it records: a rate of 0 refuses samples."""
        rate = settings["sample"]
        self._in_python = "+native" in settings["trace"].text.replace(" ", "").split(",")
        usual = _BESIDE_MPI if self._of_mpi else _USUAL
        self._rate = usual if rate.origin.startswith(("preset", "default")) else round(per_second(rate.text or "0"))
        return chosen and self._rate > 0

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Preload the library."""
        of = "mpi" if self._of_mpi else str(settings.supervisor)
        in_python = {_IN_PYTHON: "1"} if self._in_python else {}
        return {**preloading("threads", environment), _PER_SECOND: str(self._rate), _OF: of, **in_python}


ADAPTER = _NativeSamples("native_samples", short="native", variables=(_PER_SECOND, _OF, _IN_PYTHON))
