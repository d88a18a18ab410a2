"""Readings of the GPUs of a run: how busy, how full, how hot, and how much energy.

Sum up the readings of every GPU of the nodes of the run, whoever used it: means and extremes of all readings.

utilisation = part of the time in which some kernel ran; that fills the GPU only where SM activity and occupancy are
high, too. throttled = part of the readings in which power, temperature or the board held the clocks down. energy =
difference of the GPU's counter, else power summed over time; per step of those between first and last reading.
Of imported files: the GPUs that worked, with the readings that the file has (Nsight Systems: GPU metrics).
"""

from strobe.model.plugins import Analysis
from strobe.model.schema import Column

ANALYSIS = Analysis(
    __name__,
    "How busy, full and hot was each GPU, and how much energy did it take?",
    columns=(
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
    ),
)
