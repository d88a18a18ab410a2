"""Samples of programs without Python: call stacks of all threads by CPU time, and what they wait for each other.

`strobe run` preloads `libstrobe_threads.so` where the program is one, or is started by a shell. Samples need glibc 2.35
or newer. A program that uses SIGPROF keeps it, and shows only its waits.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter, preloading
from strobe.record.options.recorder_options import per_second

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from strobe.record.options.recorder_options import Setting
    from strobe.record.options.session_settings import Session

_PER_SECOND, _OF, _USUAL = "STROBE_THREADS_HZ", "STROBE_THREADS_OF", 1000


class _NativeSamples(Adapter):
    def available(self) -> str:
        """A Python samples itself."""
        return "threads of native programs are sampled in processes without Python only"

    def needed_by(self, environment: Mapping[str, str], command: Sequence[str]) -> bool:
        """Whether the program is neither a Python nor calls MPI, or a shell starts it."""
        from strobe.record.launch.parallel_jobs import calls_mpi, is_native

        return is_native(command) and not calls_mpi(environment, command)

    def wanted(self, settings: dict[str, Setting], chosen: bool) -> bool:
        """Return whether it records: a rate of 0 refuses samples."""
        rate = settings["sample"]
        self._rate = _USUAL if rate.origin.startswith(("preset", "default")) else round(per_second(rate.text or "0"))
        return chosen and self._rate > 0

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Preload the library."""
        return {**preloading("threads", environment), _PER_SECOND: str(self._rate), _OF: str(settings.supervisor)}


ADAPTER = _NativeSamples("native_samples", short="native", variables=(_PER_SECOND, _OF))
