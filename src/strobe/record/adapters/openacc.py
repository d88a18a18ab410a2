"""OpenACC: its constructs, kernel launches, copies and waits, from the runtime's profiling interface.

The runtime (GCC's, NVIDIA's) loads `libstrobe_openacc.so` when it is first used.
"""

from __future__ import annotations

import os

from strobe.record.adapter import Adapter

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Mapping

    from strobe.record.options.session_settings import Session

_LIBRARIES = "ACC_PROFLIB"


def _with_ours(libraries: str) -> str:
    """Return a list of profiling libraries with ours as the last; the runtime loads all of them."""
    from strobe.native import adapter_library

    ours = adapter_library("openacc")
    return ";".join([*(each for each in libraries.split(";") if each and each != ours), ours])


class _OpenACC(Adapter):
    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Name the library to the runtime. Libraries of the user's stay."""
        return {_LIBRARIES: _with_ours(environment.get(_LIBRARIES, ""))}

    def start(self, settings: Session) -> None:
        """Name it also where the program records itself."""
        os.environ[_LIBRARIES] = _with_ours(os.environ.get(_LIBRARIES, ""))


ADAPTER = _OpenACC("openacc", order=77, presets=("auto", "light", "sampling"))
