"""OpenMP: parallel regions, work, barriers, locks and tasks of every thread, from the runtime's interface for tools.

A runtime with OMPT (LLVM's, Intel's) loads `libstrobe_ompt.so` when it is first used. GCC's has none: in programs
without Python `libstrobe_threads.so` stands before its functions, and tells our tool what such a runtime would.
"""

from __future__ import annotations

import os

from strobe.record.adapter import Adapter

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Mapping

    from strobe.record.options.session_settings import Session

_LIBRARIES = "OMP_TOOL_LIBRARIES"


def _with_ours(libraries: str) -> str:
    """Return a list of tools with ours as the last: the runtime takes the first that wants to be its tool."""
    from strobe.native import adapter_library

    each = [library for library in libraries.split(os.pathsep) if library and library != adapter_library("ompt")]
    return os.pathsep.join([*each, adapter_library("ompt")])


class _OpenMP(Adapter):
    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Name the tool to the runtime. Tools of the user's stay, as does OMP_TOOL=disabled."""
        return {_LIBRARIES: _with_ours(environment.get(_LIBRARIES, ""))}

    def start(self, settings: Session) -> None:
        """Name it also where the program records itself."""
        os.environ[_LIBRARIES] = _with_ours(os.environ.get(_LIBRARIES, ""))


ADAPTER = _OpenMP("openmp", order=76, presets=("auto", "light", "sampling"))
