"""Readings of the GPUs of a run: how busy, how full, how hot, and how much energy."""

from __future__ import annotations

from strobe.analyses.gpu.devices import ANALYSIS
from strobe.gpu.load_and_energy import GpuReadings, gpu_readings, step_energy
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_NOTHING = "no GPU was read while this ran: `strobe doctor` shows what is missing, and --gpu-metrics off reads none"
_NO_READINGS = "the file lists the GPUs, but not how busy they were"


def run(trace: Trace) -> Table:
    """Return the answer; see `strobe.analyses.gpu.devices`."""
    gpus = gpu_readings(trace)
    per_step = step_energy(trace, gpus)
    rows = [_row(gpu, per_step.get(place)) for place, gpu in enumerate(gpus)]
    reasons = (str(row["text"]) for row in trace.quality.to_pylist() if row["what"] == "gpus_not_read")
    note = "" if any(gpu.series for gpu in gpus) else _NO_READINGS if gpus else next(reasons, _NOTHING)
    return make_table(ANALYSIS.columns, rows, about="GPUs over the whole run", note=note)


def _row(gpu: GpuReadings, step_j: float | None) -> dict[str, object]:
    def mean(metric: str, factor: float = 1.0) -> float | None:
        values = gpu.values(metric)
        return float(values.mean()) * factor if len(values) else None

    def most(metric: str, factor: float = 1.0) -> float | None:
        values = gpu.values(metric)
        return float(values.max()) * factor if len(values) else None

    peak, energy = most("memory used"), gpu.energy()
    return {
        **vars(gpu),
        "device": gpu.number,
        "uuid": gpu.uuid or None,
        "utilisation_share": mean("utilisation", 0.01),
        "utilisation_max_share": most("utilisation", 0.01),
        "memory_utilisation_share": mean("memory utilisation", 0.01),
        "sm_activity_share": mean("SM activity", 0.01),
        "occupancy_share": mean("SM occupancy", 0.01),
        "tensor_share": mean("tensor activity", 0.01),
        "dram_share": mean("DRAM bandwidth", 0.01),
        "memory_peak_bytes": None if peak is None else round(peak),
        "power_w": mean("power"),
        "power_max_w": most("power"),
        "energy_j": float(energy[1][-1] - energy[1][0]) if energy is not None and len(energy[1]) else None,
        "step_energy_j": step_j,
        "sm_clock_mhz": mean("SM clock"),
        "memory_clock_mhz": mean("memory clock"),
        "temperature_max_c": most("temperature"),
        "throttled_share": mean("throttled"),
        "throttled_by": ", ".join(gpu.throttled_by) or None,
        "pcie_sent_gb_s": mean("PCIe sent", 1e-9),
        "pcie_received_gb_s": mean("PCIe received", 1e-9),
        "nvlink_sent_gb_s": mean("NVLink sent", 1e-9),
        "nvlink_received_gb_s": mean("NVLink received", 1e-9),
        "readings": max((len(values) for _, values in gpu.series.values()), default=0),
    }
