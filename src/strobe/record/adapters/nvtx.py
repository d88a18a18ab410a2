"""NVTX ranges of anybody, and calls of NCCL: libstrobe is the injection library that NVTX loads by name.

NVTX reads its variable at the first NVTX call in each shared object.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strobe.record.doctor.finding import Finding


class _Nvtx(Adapter):
    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return whether Python's package is there."""
        from strobe.record.doctor.finding import NOTE, OK, Finding, installed

        if version := installed("nvtx"):
            yield Finding("frameworks", "nvtx", OK, f"{version}: its ranges are recorded")
        else:
            yield Finding("frameworks", "nvtx", NOTE, "Python's package is not installed (C and C++ need none)")


ADAPTER = _Nvtx("nvtx", order=60, presets=("auto", "light", "sampling"), injection="NVTX_INJECTION64_PATH")
