"""What the GPUs of a run said of themselves: how busy, how full, how hot, and what it cost in energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strobe.model.plugins import Analysis

if TYPE_CHECKING:
    from strobe.model.schema import Column
    from strobe.store.table import Table
    from strobe.store.trace import Trace
    from strobe.structure.gpu_metrics import GpuReadings

_NOTHING = (
    "no GPU was asked while this ran: `strobe doctor` says what is missing for it, and --gpu-metrics off asks none"
)
_NO_READINGS = "the file says which GPUs there were, and not how busy they were"


def run(trace: Trace) -> Table:
    """Sum up the readings of every GPU of the nodes of the run, whoever used it: means and extremes of all readings.

    utilisation = part of the time in which some kernel ran; that fills the GPU only where SM activity and occupancy are
    high, too. throttled = part of the readings in which power, temperature or the board held the clocks down. energy =
    difference of the GPU's counter, else power summed over time; per step of those between first and last reading.
    Of imported files: the GPUs that worked, with the readings that the file has (Nsight Systems: GPU metrics).
    """
    from strobe.store.table import make_table
    from strobe.structure.gpu_metrics import gpu_readings, step_energy

    gpus = gpu_readings(trace)
    per_step = step_energy(trace, gpus)
    rows = [_row(gpu, per_step.get(place)) for place, gpu in enumerate(gpus)]
    note = "" if any(gpu.series for gpu in gpus) else _NO_READINGS if gpus else _not_read(trace)
    return make_table(_columns(), rows, name="devices", about="GPUs over the whole run", note=note)


def _not_read(trace: Trace) -> str:
    told = [str(row["text"]) for row in trace.quality.to_pylist() if row["what"] == "gpus_not_read"]
    return told[0] if told else _NOTHING


def _row(gpu: GpuReadings, step_j: float | None) -> tuple[object, ...]:
    def mean(metric: str, factor: float = 1.0) -> float | None:
        values = gpu.values(metric)
        return float(values.mean()) * factor if len(values) else None

    def most(metric: str, factor: float = 1.0) -> float | None:
        values = gpu.values(metric)
        return float(values.max()) * factor if len(values) else None

    peak, energy = most("memory used"), gpu.energy()
    return (
        gpu.host,
        gpu.number,
        gpu.name,
        gpu.uuid or None,
        gpu.process,
        mean("utilisation", 0.01),
        most("utilisation", 0.01),
        mean("memory utilisation", 0.01),
        mean("SM activity", 0.01),
        mean("SM occupancy", 0.01),
        mean("tensor activity", 0.01),
        mean("DRAM bandwidth", 0.01),
        None if peak is None else round(peak),
        gpu.memory_bytes,
        mean("power"),
        most("power"),
        float(energy[1][-1] - energy[1][0]) if energy is not None and len(energy[1]) else None,
        step_j,
        mean("SM clock"),
        mean("memory clock"),
        most("temperature"),
        mean("throttled"),
        ", ".join(gpu.throttled_by) or None,
        mean("PCIe sent", 1e-9),
        mean("PCIe received", 1e-9),
        mean("NVLink sent", 1e-9),
        mean("NVLink received", 1e-9),
        max((len(values) for _, values in gpu.series.values()), default=0),
    )


def _columns() -> tuple[Column, ...]:
    from strobe.model.schema import Column

    return (
        Column("host", "string", "", "name of the machine", extra=True),
        Column("device", "int64", "", "number of the GPU, as NVML counts (imported: as the file does)"),
        Column("name", "string", "", "its model"),
        Column("uuid", "string", "", "its own number, null where unknown", extra=True),
        Column("process", "uint32", "", "process that its metrics are shown with", extra=True),
        Column("utilisation_share", "float64", "", "mean part of the time in which a kernel ran, 0 to 1"),
        Column("utilisation_max_share", "float64", "", "the highest reading of it", extra=True),
        Column("memory_utilisation_share", "float64", "", "mean part in which memory was read or written", extra=True),
        Column("sm_activity_share", "float64", "", "mean part of the multiprocessors that were busy (GPM)"),
        Column("occupancy_share", "float64", "", "mean part of the warps that could be there (GPM)", extra=True),
        Column("tensor_share", "float64", "", "mean part of the time of tensor operations (GPM)", extra=True),
        Column("dram_share", "float64", "", "mean part of the memory's bandwidth (GPM)", extra=True),
        Column("memory_peak_bytes", "int64", "bytes", "most memory in use at a reading, of all processes"),
        Column("memory_bytes", "int64", "bytes", "memory that it has", extra=True),
        Column("power_w", "float64", "W", "mean power"),
        Column("power_max_w", "float64", "W", "highest power", extra=True),
        Column("energy_j", "float64", "J", "energy from the first to the last reading"),
        Column("step_energy_j", "float64", "J", "energy of a step on average; null without steps"),
        Column("sm_clock_mhz", "float64", "MHz", "mean clock of the multiprocessors", extra=True),
        Column("memory_clock_mhz", "float64", "MHz", "mean clock of the memory", extra=True),
        Column("temperature_max_c", "float64", "°C", "highest temperature"),
        Column("throttled_share", "float64", "", "part of the readings in which its clocks were held down"),
        Column("throttled_by", "string", "", "by what, the most frequent first; null if by nothing"),
        Column("pcie_sent_gb_s", "float64", "GB/s", "mean traffic from the GPU over PCIe", extra=True),
        Column("pcie_received_gb_s", "float64", "GB/s", "mean traffic to the GPU over PCIe", extra=True),
        Column("nvlink_sent_gb_s", "float64", "GB/s", "mean traffic from the GPU over NVLink", extra=True),
        Column("nvlink_received_gb_s", "float64", "GB/s", "mean traffic to the GPU over NVLink", extra=True),
        Column("readings", "int64", "", "readings that this is made of; 0: only the GPU is known", extra=True),
    )


ANALYSIS = Analysis("devices", "How busy, full and hot was each GPU, and how much energy did it take?", run)
