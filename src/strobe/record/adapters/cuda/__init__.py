"""What GPUs do, through CUPTI: libstrobe is the injection library that the CUDA driver loads."""

from __future__ import annotations

from strobe.model.option import Option
from strobe.record.adapter import Adapter
from strobe.record.options.recorder_options import gpu_period

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strobe.record.adapter import Companion
    from strobe.record.doctor.finding import Finding
    from strobe.record.options.session_settings import Session


class _Cuda(Adapter):
    """A process that does not use CUDA never loads anything of it (native/adapters/cupti/)."""

    def environment(self, settings: Session, environment: Mapping[str, str]) -> dict[str, str]:
        """Name the injection library, unless only torch.profiler records GPUs."""
        return {} if settings.options[_PROFILER] == "only" else super().environment(settings, environment)

    def companion(self, settings: Session, environment: dict[str, str]) -> Companion | None:
        """Return what tries CUPTI out and reads GPUs, if there is a driver."""
        from strobe.record.adapters.cuda.driver import driver_is_there

        if not driver_is_there():
            return None
        from strobe.record.adapters.cuda.companion import CudaCompanion

        return CudaCompanion(settings, environment, probes=self.name in settings.adapters)

    def findings(self, environment: Mapping[str, str]) -> Iterable[Finding]:
        """Return what recording of GPUs needs."""
        from strobe.record.adapters.cuda.doctor import gpu_findings

        return gpu_findings(environment)


_PROFILER = "with-torch-profiler"
ADAPTER = _Cuda(
    "cuda",
    order=70,
    presets=("auto", "light", "sampling"),
    levels=("memory", "events"),
    options=(
        Option(
            "gpu-metrics",
            "Time between two readings of load, memory, clocks, power and temperature of NVIDIA GPUs; off disables "
            "them.",
            default="100ms",
            group="what",
            parse=gpu_period,
            metavar="TIME|off",
        ),
        Option(
            "cuda-graph-trace",
            "How to record CUDA graphs: node = each kernel with the code that captured it; graph = only each launch as "
            "a whole, which costs less.",
            default="node",
            group="what",
            choices=("node", "graph"),
            metavar="node|graph",
        ),
        Option(
            _PROFILER,
            "While torch.profiler is active: yield = it records and strobe imports its events; keep = strobe records; "
            "only = strobe never records GPUs.",
            default="yield",
            group="what",
            choices=("yield", "keep", "only"),
            metavar="WHO",
        ),
    ),
    injection="CUDA_INJECTION64_PATH",
    events="GPU activity",
    # native/adapters/cupti/library.h, probe.cpp
    variables=("STROBE_CUPTI", "STROBE_CUPTI_CANDIDATES", "STROBE_CUPTI_VERDICT"),
    hooks="strobe.record.adapters.cuda.hooks",
)
