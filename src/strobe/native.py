"""The native core: everything else gets `libstrobe` and the reading kernels from here."""

from __future__ import annotations

import os
import sys

from strobe.errors import RecordError

if "t" in sys.abiflags:  # what the hooks keep is guarded by the GIL
    raise RecordError(
        "this is a free-threaded build of Python, which strobe does not support",
        do="Use the standard build of Python",
    )
try:
    import strobe._native
except ImportError as error:
    raise RecordError(
        f"the native core of strobe does not load: {error}",
        do="Install strobe with the Python that runs the program: pip install strobe",
    ) from error

core = strobe._native
ImportTotals = core.ImportTotals
ImportedProcess = core.ImportedProcess
Otf2DefinitionFile = core.Otf2DefinitionFile
Otf2EventFile = core.Otf2EventFile
Otf2Reader = core.Otf2Reader
ProcessReader = core.ProcessReader
Pyramid = core.Pyramid
RemoteScript = core.RemoteScript
SampledProcess = core.SampledProcess
TraceTemplate = core.TraceTemplate
ZstdStream = core.ZstdStream
append_note = core.append_note
chrome_reader = core.chrome_reader
is_held = core.is_held
perfetto_reader = core.perfetto_reader
read_xplane = core.read_xplane
recover = core.recover


def library() -> str:
    """Path of `libstrobe.so`, which ITT and NVTX load by name."""
    return os.path.join(os.path.dirname(core.__file__), "lib", "libstrobe.so")


def adapter_library(adapter: str) -> str:
    """Path of the library of an adapter that is preloaded, or that a runtime loads by name: `libstrobe_mpi.so`."""
    return os.path.join(os.path.dirname(core.__file__), "lib", f"libstrobe_{adapter}.so")
