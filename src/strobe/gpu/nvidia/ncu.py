"""Runs a program under Nsight Compute (ncu), and reads its measurements: counters of single kernels.

ncu runs every chosen kernel again until all counters are read, so times of such a run mean nothing. Its own words and
its table go into a file, so that the program's output stays the program's.
"""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from strobe.errors import RecordError, TraceError, UsageError
from strobe.gpu.nvidia import ncu_child
from strobe.model.gpu_metrics import looks_like_counter
from strobe.record.launch.run_program import RunResult, wait_for

_HOW_TO_INSTALL = (
    "It comes with the CUDA toolkit, and alone from https://developer.nvidia.com/nsight-compute; its folder must be "
    "on PATH (or below CUDA_HOME)."
)
_LOOK_EVERY_S = 0.5
_PERMISSION = "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
# context:stream:[regex:]name:invocation, as nvprof's --kernels and ncu's --kernel-id have it. Names may hold colons.
_KERNEL_ID = re.compile(r"(\d*):(\d*):(?:regex:)?(.+):([\d|()\[\]\-,]*)")
_NONE = {"", "n/a", "nan", "(nan)", "no data", "inf"}
# ncu's units, and their factors to base units: bytes, nanoseconds, hertz.
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {
    **dict.fromkeys(("nsecond", "ns", "nanosecond"), 1.0),
    **dict.fromkeys(("usecond", "us", "microsecond"), 1e3),
    **dict.fromkeys(("msecond", "ms", "millisecond"), 1e6),
    **dict.fromkeys(("second", "s", "sec"), 1e9),
}
_DECIMALS = re.compile(r"-?\d[\d.,\s\u2019']*([.,])(?!\d{3}$)\d+")
_DIGITS = 10  # numbers of processes, GPUs, streams, and how many launches
_THOUSANDS = re.compile(r"-?\d{1,3}([.,])\d{3}(?:\1\d{3})+")
_SPACES = re.compile(r"[\s\u2019']")
_VALUES = ("Metric Value", "Minimum", "Maximum", "Average")
# What the page of details calls them: the files *.section of Nsight Compute.
_LABELS = {
    "Duration": "gpu__time_duration.sum",
    "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "Block Limit SM": "launch__occupancy_limit_blocks",
    "Block Limit Registers": "launch__occupancy_limit_registers",
    "Block Limit Shared Mem": "launch__occupancy_limit_shared_mem",
    "Block Limit Warps": "launch__occupancy_limit_warps",
    "Registers Per Thread": "launch__registers_per_thread",
    "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
    "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
    "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
    "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
    "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
}


@dataclass(frozen=True)
class Launch:
    """One execution of a kernel that ncu has measured.

    `invocation` counts those of this name on this stream, from 1, as they were measured. `values` are in base units
    (bytes, nanoseconds, hertz, percent), by counter, None where ncu has none; `units` are their units. `program` is the
    name of the process.
    """

    process: int
    kernel: str
    invocation: int
    context: int | None
    stream: int | None
    device: int | None
    capability: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    values: dict[str, float | None] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    program: str = ""


@dataclass(frozen=True)
class KernelMetric:
    """The values of one metric for all launches of a kernel: how many have one, their mean, lowest and highest."""

    kernel: str
    metric: str
    launches: int
    mean: float | None
    low: float | None
    high: float | None
    unit: str
    limit: str = ""


@dataclass(frozen=True)
class Measured:
    """The result of a run: how the program ended, the kernels, and ncu's complaints."""

    ended: RunResult
    launches: list[Launch]
    complaints: list[str]


def find_ncu() -> str:
    """Return the path of ncu. Raises RecordError if there is none."""
    folders = [os.environ.get("PATH", os.defpath)]
    folders += [os.path.join(os.environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    found = shutil.which("ncu", path=os.pathsep.join(folders))
    if found is None:
        raise RecordError("NVIDIA Nsight Compute (ncu) is not installed here", do=_HOW_TO_INSTALL, exit_code=127)
    return found


def kernel_filter(kernels: str) -> list[str]:
    """Return ncu's options for a regular expression, or for `context:stream:name:invocation` (`::gemm:1`).

    Names are those with templates and arguments, as every table of strobe has them: what ncu looks at by default is
    `Kernel` for all kernels of CUTLASS.
    """
    base = ["--kernel-name-base", "demangled"]
    if not kernels:
        return []
    match = _KERNEL_ID.fullmatch(kernels)
    name = match[3] if match else kernels.removeprefix("regex:")
    try:
        re.compile(name)
    except re.error as error:
        raise UsageError(f"--kernels: '{name}' is not a regular expression: {error}") from error
    if match:
        context, stream, _, invocation = match.groups()
        return [*base, "--kernel-id", f"{context}:{stream}:regex:{name}:{invocation}"]
    return [*base, "--kernel-name", f"regex:{name}"]


def command(
    ncu: str, counters: Iterable[str], log: str, *, kernels: str = "", options: Sequence[str] = ()
) -> list[str]:
    """Return the words before the program: counters of chosen kernels, as CSV with base units, into `log`."""
    return [
        ncu,
        *("--target-processes", "all"),
        *kernel_filter(kernels),
        *("--metrics", ",".join(counters)),
        *("--csv", "--page", "raw", "--print-units", "base"),
        *("--clock-control", "none"),  # locking the clocks needs rights that containers have not
        *("--log-file", log.replace("%", "%%")),  # % begins a placeholder of ncu
        *options,
    ]


def measure(words: Sequence[str], counters: Iterable[str], *, kernels: str, options: Sequence[str] = ()) -> Measured:
    """Run a program under ncu and return what was measured.

    Raises RecordError where ncu is not there, the program cannot be started, or ncu does not start it.
    """
    if shutil.which(words[0]) is None:
        raise RecordError(f"'{words[0]}' not found", exit_code=127)
    ncu = find_ncu()
    with tempfile.TemporaryDirectory(prefix="strobe-ncu-") as folder:
        log, ending = os.path.join(folder, "ncu.csv"), os.path.join(folder, "ended.json")
        started = command(ncu, counters, log, kernels=kernels, options=options)
        whole = [*started, *ncu_child.under(ending, words)]
        # NVIDIA's library and those that read traces start threads.
        code, number = wait_for(ncu, whole, dict(os.environ), look_every_s=_LOOK_EVERY_S)
        ended, text = ncu_child.ended(ending), ""
        if os.path.exists(log):
            with open(log, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
    reported, found = complaints(text), []
    try:
        found = launches(text)
    except TraceError as error:  # the program's end is worth more
        reported.insert(0, error.what)
    if ended is None and not found:
        how = f"was killed by signal {number}" if number else f"ended with {code}"
        raise RecordError(explained(reported) or f"ncu {how} without an explanation", do=what_to_do(reported))
    # ncu stops programs whose kernels it cannot measure: earlier measurements are there.
    return Measured(ended or RunResult(None, code, number), found, reported)


def complaints(text: str) -> list[str]:
    """Return ncu's errors and warnings, each once, with the lines that belong to them."""
    found: list[str] = []
    more = False
    for line in text.splitlines():
        if line.startswith(("==ERROR==", "==WARNING==")):
            found.append(line.partition("== ")[2].strip())
            more = True
        elif line.startswith(("==", '"')) or not line.strip():
            more = False
        elif more:
            found[-1] += f" {line.strip()}"
    return [each for each in dict.fromkeys(found) if not each.startswith("The application returned an error code")]


def explained(reported: Sequence[str]) -> str:
    """Return what went wrong in one sentence, in ncu's own words if it is unknown to us; empty without complaints."""
    for each in reported:
        if "ERR_NVGPUCTRPERM" in each:
            return "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)"
        if "Failed to find metric" in each:
            # ==ERROR== Failed to find metric regex:^NAME\.(sum|min|max|avg|pct|ratio|max_rate)$
            name = each.rpartition("metric ")[2].removeprefix("regex:^").partition("\\.(")[0].rstrip("$")
            return f"this version of ncu does not know the metric '{name}' for this GPU"
    return f"ncu: {reported[0]}" if reported else ""


def what_to_do(reported: Sequence[str]) -> str:
    """Return what to do about what `explained` returns; empty if unknown."""
    if any("ERR_NVGPUCTRPERM" in each for each in reported):
        return f"Run it as root, or let the administrator allow it: {_PERMISSION}"
    if any("Failed to find metric" in each for each in reported):
        return "What it knows: ncu --query-metrics"
    return ""


def launches(text: str, counters: Counter[str] | None = None) -> list[Launch]:
    """Return the kernels of tables that `ncu --csv` wrote, of the pages raw and details, with any text around them.

    A line that has fewer or more cells than the header is counted in `counters`; without them it raises TraceError. On
    the page of details metrics have names for people: those that are a known counter are that, the others stay.
    """
    found: list[Launch] = []
    times: Counter[tuple[object, ...]] = Counter()
    before: tuple[str, ...] = ()
    number = _reader_of_numbers(text)
    for row in _rows(text, counters):
        cells = row.cells
        if "Average" in cells:
            continue
        kernel = tuple(cells.get(name, "") for name in ("Process ID", "Context", "Stream", "Kernel Name"))
        if "Metric Name" not in cells:
            times[kernel] += 1
            found.append(_launch(cells, times[kernel]))
            measured = {
                name: (cell, row.units.get(name, "")) for name, cell in cells.items() if looks_like_counter(name)
            }
        else:  # a line for each metric, and lines of advice without one
            if (cells.get("ID", ""), *kernel) != before:
                before = cells.get("ID", ""), *kernel
                times[kernel] += 1
                found.append(_launch(cells, times[kernel]))
            measured = _of_details(cells, found[-1].values)
        for name, (cell, unit) in measured.items():
            factor, found[-1].units[name] = base_unit(unit)
            found[-1].values[name] = number(cell, factor)
    return found


def kernel_metrics(text: str) -> list[KernelMetric]:
    """Return the table that `ncu --csv --print-summary per-kernel` wrote."""
    found = []
    number = _reader_of_numbers(text)
    for row in _rows(text, Counter()):
        if "Average" not in row.cells:
            continue
        factor, unit = base_unit(row.cells.get("Metric Unit", ""))
        mean, low, high = (number(row.cells.get(each, ""), factor) for each in ("Average", "Minimum", "Maximum"))
        name, launched = row.cells.get("Metric Name", ""), _integer(row.cells.get("Invocations", ""))
        if name and launched:
            kernel = row.cells.get("Kernel Name", "")
            found.append(KernelMetric(kernel, _LABELS.get(name, name), launched, mean, low, high, unit))
    return found


@dataclass(frozen=True)
class _Row:
    """A line of a table: its cells, and the units of the page raw, by column."""

    cells: dict[str, str]
    units: dict[str, str]


def _rows(text: str, counters: Counter[str] | None) -> Iterator[_Row]:
    header: list[str] = []
    units: dict[str, str] = {}
    for row in _cells(text, counters):
        if row[0] == "ID" or (row[0] == "Process ID" and "Kernel Name" in row):
            header, units = row, {}
        elif not header:
            continue
        elif len(row) != len(header):
            if counters is None:
                raise TraceError(f"the table of ncu has {len(row)} cells in a line, and {len(header)} in its header")
            counters["unreadable_rows"] += 1
        elif not row[0]:
            units = dict(zip(header, row, strict=True))
        else:
            yield _Row(dict(zip(header, row, strict=True)), units)


def _cells(text: str, counters: Counter[str] | None) -> Iterator[list[str]]:
    rows = csv.reader(line for line in text.removeprefix("\ufeff").splitlines() if line.startswith('"'))
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:  # a cell above 128 KiB
            if counters is None:
                raise TraceError(f"a line of ncu's table cannot be read: {error}") from error
            counters["unreadable_rows"] += 1
            continue
        if row is None:
            return
        yield row


def _of_details(cells: Mapping[str, str], known: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """Return the metric of a line of the page of details: its value and unit, by counter or by its name there."""
    name = cells["Metric Name"]
    if not name:
        return {}
    name = _LABELS.get(name, name)
    if name in known:  # `Memory Throughput` is a share in one section and a rate in another
        name = f"{name} ({cells.get('Section Name', '')})"
    return {name: (cells.get("Metric Value", ""), cells.get("Metric Unit", ""))}


def _launch(cells: Mapping[str, str], invocation: int) -> Launch:
    numbers = (_integer(cells.get(name, "")) for name in ("Process ID", "Context", "Stream", "Device"))
    process, context, stream, device = numbers
    grid, block = (_shape(cells.get(name, "")) for name in ("Grid Size", "Block Size"))
    where = process or 0, cells.get("Kernel Name", ""), invocation, context, stream, device
    return Launch(*where, cells.get("CC", ""), grid, block, program=cells.get("Process Name", ""))


def base_unit(unit: str) -> tuple[float, str]:
    """Return the factor that brings a unit of ncu to its base unit, and that: `Kbyte/usecond` is (1e9, 'byte/s')."""
    above, slash, below = unit.partition("/")
    factor = 1.0
    if above in _TIMES:
        factor, above = _TIMES[above], "ns"
    elif match := re.fullmatch(r"([KMGT])(byte|hz|B|Hz|bit)", above):
        factor, above = _PREFIXES[match[1]], match[2]
    if above.lower() == "hz":
        above = "hz"
    if slash and below in _TIMES:
        factor, below = factor * 1e9 / _TIMES[below], "s"
    return factor, f"{above}{slash}{below}"


def _reader_of_numbers(text: str) -> Callable[[str, float], float | None]:
    """Return a function that reads numbers as the file has them, times a factor: ncu writes the user's language.

    The decimal point is a comma where some number ends in a comma and other than three digits, or has several points,
    and none has that the other way round.
    """
    points = set()
    for row in _rows(text, Counter()):
        for name, cell in row.cells.items():
            if name in _VALUES or ("Metric Name" not in row.cells and looks_like_counter(name)):
                if match := _DECIMALS.fullmatch(cell.strip()):
                    points.add(match[1])
                elif match := _THOUSANDS.fullmatch(cell.strip()):
                    points.add("," if match[1] == "." else ".")
    point, thousands = (",", ".") if points == {","} else (".", ",")

    def number(cell: str, factor: float) -> float | None:
        cell = cell.strip()
        if cell.lower() in _NONE:
            return None
        try:
            value = factor * float(_SPACES.sub("", cell).replace(thousands, "").replace(point, "."))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    return number


def _integer(text: str) -> int | None:
    text = re.sub(r"[^\w]", "", text)  # thousands are separated as the language has it
    return int(text) if text.isdecimal() and len(text) < _DIGITS else None


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d{1,10}", text))
