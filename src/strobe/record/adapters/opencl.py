"""What OpenCL's queues do: libstrobe is a layer that OpenCL's loader puts between the program and the drivers.

The loader reads its variable when it is first called (native/adapters/opencl/). A process that does not use OpenCL
never loads anything of it.
"""

from __future__ import annotations

import os

from strobe.record.adapter import Adapter

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strobe.record.doctor.finding import Finding
    from strobe.record.options.session_settings import Session

_LAYERS = "OPENCL_LAYERS"


def _with_ours(layers: str) -> str:
    """Return a list of layers with ours: the first one is next to the drivers."""
    from strobe.native import library

    each = [layer for layer in layers.split(os.pathsep) if layer and layer != library()]
    return os.pathsep.join([library(), *each])


class _OpenCL(Adapter):
    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Name the layer to the loader. Layers of the user's stay."""
        return {_LAYERS: _with_ours(environment.get(_LAYERS, ""))}

    def start(self, settings: Session) -> None:
        """Name it also where the program records itself."""
        os.environ[_LAYERS] = _with_ours(os.environ.get(_LAYERS, ""))

    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return whether Python's package is there."""
        from strobe.record.doctor.finding import OK, Finding, installed

        if version := installed("pyopencl"):
            yield Finding("gpu", "pyopencl", OK, f"{version}: its kernels and copies are recorded")


ADAPTER = _OpenCL("opencl", order=75, presets=("auto", "light", "sampling"))
