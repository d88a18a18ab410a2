"""What runs in `strobe run` beside a program that may use NVIDIA's GPUs: a trial of CUPTI, and the readings of NVML."""

from __future__ import annotations

import contextlib
import os

from strobe.record.adapters.cuda import cupti_probe, gpu_readings
from strobe.record.adapters.cuda.readings_file import Limit
from strobe.record.options.recorder_options import gpu_period, length, size
from strobe.record.options.session_settings import Session

_SHARE = 8  # readings take this part of a flight recorder's size at most


class CudaCompanion:
    """Begins once the program has been started: it does not wait for our imports, or for CUPTI."""

    def __init__(self, settings: Session, environment: dict[str, str], *, probes: bool) -> None:
        self._folder = settings.folder
        self._period_ns = gpu_period(settings.options["gpu-metrics"])
        flight, flight_bytes = settings.options["flight"], settings.options["flight-size"]
        self._limit = Limit(length(flight), size(flight_bytes) // _SHARE) if flight else None
        self._environment = environment
        # In the trace folder while the program runs.
        self._verdict = os.path.join(settings.folder, f"cupti-{os.getpid()}.verdict")
        self._probes = probes and settings.options["with-torch-profiler"] != "only"
        self._readers: list[gpu_readings.Sampler] = []
        if self._probes:
            environment["STROBE_CUPTI_VERDICT"] = self._verdict

    def started(self) -> None:
        """Try CUPTI out, and begin to read GPUs."""
        if self._probes:
            cupti_probe.start(self._verdict, self._environment)
        if self._period_ns:
            self._readers = gpu_readings.start(self._folder, self._period_ns, self._limit)

    def stop(self) -> None:
        """Read a last time."""
        for each in self._readers:
            each.stop()
        if self._probes:
            with contextlib.suppress(OSError):
                os.unlink(self._verdict)
