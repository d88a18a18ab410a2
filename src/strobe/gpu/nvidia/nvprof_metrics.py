"""The tables that nvprof --metrics and --events print, as text and as CSV: values by kernel, over all its launches."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from fractions import Fraction

from strobe.gpu.nvidia.ncu import KernelMetric

# Text: `Invocations  Metric Name  Metric Description  Min  Max  Avg`, of events without a description and with `Total`
# since CUDA 8. The name of the kernel has a line of its own above its rows.
_HEADER = re.compile(r'(?:"Device","Kernel",)?\s*"?Invocations"?(?:,|\s{2,})"?(?:Metric|Event) Name"?(?:,|\s{2,}).*Min')
# With --print-gpu-trace, a row for each launch: `Device  Context  Stream  Kernel`, and a column for each metric.
_PER_LAUNCH = re.compile(
    r'\s*"?Device"?(?:,|\s{2,})"?Context"?(?:,|\s{2,})"?Stream"?(?:,|\s{2,})"?Kernel"?(?:,|\s{2,})'
)
_PLACES = ("Device", "Context", "Stream", "Kernel", "Correlation_ID")
_GAP = re.compile(r"\s{2,}|\t")
_KERNEL = re.compile(r"\s*Kernel: (.*\S)\s*")
_LEVEL = re.compile(r"(?:Idle|Low|Mid|High|Max) \((\d{1,3})\)")
_NUMBER = re.compile(r"(-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*(%|[KMGT]?B(?:/s)?)?")
_NOTHING = ("", "-", "n/a", "<OVERFLOW>")
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_MOST = 1 << 17  # kernels with a metric each: more is not a table that nvprof printed


def is_header(line: str) -> bool:
    """Return whether a line is the header of such a table."""
    return _HEADER.match(line) is not None or _PER_LAUNCH.match(line) is not None


class _Sum:
    """One metric of one kernel, over its launches on all GPUs."""

    def __init__(self) -> None:
        self.launches, self._total, self.unit = 0, Fraction(0), ""
        self.low: float | None = None
        self.high: float | None = None

    @property
    def mean(self) -> float | None:
        return float(self._total / self.launches) if self.launches else None

    def add(self, launches: int, low: float | None, high: float | None, mean: float | None, unit: str) -> None:
        self.unit = self.unit or unit
        if mean is not None:
            self.launches += launches
            self._total += launches * Fraction(mean)
        if low is not None:
            self.low = low if self.low is None else min(self.low, low)
        if high is not None:
            self.high = high if self.high is None else max(self.high, high)


class MetricTables:
    """Tables of one file, read line by line."""

    def __init__(self) -> None:
        self.rows = 0  # that were understood
        self._columns: list[str] = []
        self._kernel = ""
        self._found: dict[tuple[str, str], _Sum] = {}

    def begin(self, header: str) -> None:
        """Begin a table with its header."""
        self._as_csv = header.lstrip().startswith('"')
        self._columns = _csv_cells(header) if self._as_csv else _GAP.split(header.strip())
        self._kernel = ""

    def add(self, line: str) -> bool:
        """Add a line of a table; returns whether it was understood."""
        if not self._as_csv:
            named = _KERNEL.fullmatch(line)
            if named:
                self._kernel = named[1]
            if named or line.startswith("Device "):
                return True
        cells = _csv_cells(line) if self._as_csv else _GAP.split(line.strip())
        if len(cells) != len(self._columns):
            return False
        row = dict(zip(self._columns, cells, strict=True))
        if "Context" in row:
            return self._add_launch(row)
        kernel = row.get("Kernel", self._kernel)
        name = row.get("Metric Name") or row.get("Event Name", "")
        if not kernel or not name or not re.fullmatch(r"\d{1,18}", row["Invocations"]) or len(self._found) >= _MOST:
            return False
        read = [value_and_unit(row.get(column, "")) for column in ("Min", "Max", "Avg")]
        if None in read:
            return False
        low, high, mean = (each[0] if each else None for each in read)
        unit = next((each[1] for each in read if each and each[1]), "")
        self._found.setdefault((kernel, name), _Sum()).add(int(row["Invocations"]), low, high, mean, unit)
        self.rows += 1
        return True

    def _add_launch(self, row: Mapping[str, str]) -> bool:
        if not row["Kernel"]:  # the units of a CSV
            return True
        understood = False
        for name, cell in row.items():
            read = None if name in _PLACES else value_and_unit(cell)
            if read is not None and len(self._found) < _MOST:
                value, unit = read
                self._found.setdefault((row["Kernel"], name), _Sum()).add(1, value, value, value, unit)
                understood = True
        self.rows += understood
        return understood

    def metrics(self) -> list[KernelMetric]:
        """Return a value for each kernel and metric, over all GPUs."""
        return [
            KernelMetric(kernel, name, each.launches, each.mean, each.low, each.high, each.unit)
            for (kernel, name), each in self._found.items()
        ]


def kernel_metrics(text: str) -> list[KernelMetric]:
    """Return what the tables in nvprof's output have, with any text around them."""
    tables, inside = MetricTables(), False
    for line in text.splitlines():
        if is_header(line):
            inside = True
            tables.begin(line)
        elif not line.strip() or line.startswith("=="):
            inside = False
        elif inside:
            tables.add(line)
    return tables.metrics()


def value_and_unit(text: str) -> tuple[float | None, str] | None:
    """Return a value in base units, and its unit; None for a text that is none.

    `62.50%` is (62.5, "%"), `1.5000GB/s` (1610612736, "byte/s"), `Mid (5)` (5, "of 10"), `0.725294` (0.725294, ""). An
    overflow is a value that is unknown.
    """
    text = text.strip()
    if text in _NOTHING:
        return None, ""
    if level := _LEVEL.fullmatch(text):
        return float(level[1]), "of 10"
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    unit = found[2] or ""
    if unit in ("", "%"):
        return float(found[1]), unit
    size, slash, second = unit.partition("/")
    return float(Fraction(found[1]) * _BYTES[size]), f"byte{slash}{second}"


def _csv_cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []
