"""I/O of files: `libstrobe_io.so`, preloaded, interposes open, read, write, fsync, close and their relatives.

Off by default: `--trace +io`. What the C library does inside of itself (fprintf, fgets) is not seen, nor is what a
program does by system calls of its own (Go, io_uring).
"""

from __future__ import annotations

from strobe.record.adapter import Adapter, preloaded, preloading

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Mapping

    from strobe.record.options.session_settings import Session


class _Io(Adapter):
    def available(self) -> str:
        """Only `strobe run` can preload a library."""
        return "" if preloaded("io") else "I/O of files is recorded under `strobe run` only"

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Preload the library."""
        return preloading("io", environment)


ADAPTER = _Io("io")
