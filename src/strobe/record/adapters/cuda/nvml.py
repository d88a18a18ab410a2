"""Values that the GPUs of this node report, through nvidia-ml-py (its module `pynvml` over libnvidia-ml).

Read in the launcher, never in the measured program: NVML opened in a process that forks has broken its children. CUDA
is not initialised. Every metric is tried once when a GPU is opened; those that it refuses are left out.
Source: NVML API reference, docs.nvidia.com/deploy/nvml-api.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from types import ModuleType
from typing import Any

_S = 10**9
_ALL_LINKS = 0xFFFFFFFF
_GIVEN_UP = 10  # failures in a row after which a metric that had worked is not asked for any more
_UNION = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by nvmlValueType_t


@dataclass(frozen=True)
class Quantity:
    """A metric of a GPU, and its unit."""

    name: str
    unit: str


@dataclass(frozen=True)
class Refusal:
    """Metrics that a GPU, its driver or nvidia-ml-py does not give, and the reason in NVML's words."""

    names: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class _Field:
    """A field of nvmlDeviceGetFieldValues: `kind` is value, total (since the first reading), or rate (per second)."""

    quantity: Quantity
    constant: str
    factor: float
    kind: str
    scope: int = 0


_FIELDS = (
    _Field(Quantity("power", "W"), "NVML_FI_DEV_POWER_INSTANT", 1e-3, "value"),
    _Field(Quantity("energy", "J"), "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e-3, "total"),
    _Field(Quantity("PCIe sent", "bytes/s"), "NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 1.0, "rate"),
    _Field(Quantity("PCIe received", "bytes/s"), "NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 1.0, "rate"),
    _Field(Quantity("NVLink sent", "bytes/s"), "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", 1024.0, "rate", _ALL_LINKS),
    _Field(Quantity("NVLink received", "bytes/s"), "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 1024.0, "rate", _ALL_LINKS),
)
# Of GPM, which Hopper and later have: percent.
_GPM = (
    (Quantity("SM activity", "%"), "NVML_GPM_METRIC_SM_UTIL"),
    (Quantity("SM occupancy", "%"), "NVML_GPM_METRIC_SM_OCCUPANCY"),
    (Quantity("tensor activity", "%"), "NVML_GPM_METRIC_ANY_TENSOR_UTIL"),
    (Quantity("DRAM bandwidth", "%"), "NVML_GPM_METRIC_DRAM_BW_UTIL"),
)


class Source:
    """A call of NVML that returns one number for each of `quantities`, NaN if there is none now."""

    def __init__(self, quantities: Sequence[Quantity], ask: Callable[[], Sequence[float]], period_ns: int = 0) -> None:
        self.quantities = tuple(quantities)
        self.period_ns = period_ns  # not more often than this
        self._ask = ask
        self._failures = 0

    @property
    def given_up(self) -> bool:
        """Whether it failed too often."""
        return self._failures >= _GIVEN_UP

    def read(self) -> tuple[int, Sequence[float]]:
        """Ask, and return CLOCK_MONOTONIC in the middle of the call, and the values. Never raises."""
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        try:
            asked = self._ask()
            self._failures = 0
        except Exception as error:
            self._failures += 1
            self.why = _words(error)
            asked = ()
        middle = (begin + time.clock_gettime_ns(time.CLOCK_MONOTONIC)) // 2
        return middle, self._made(middle, asked) if asked else [nan] * len(self.quantities)

    def _made(self, ns: int, asked: Sequence[float]) -> Sequence[float]:
        return asked


class _Fields(Source):
    """All field values of a GPU in one call; counters become totals since the first reading, or rates."""

    def __init__(self, nvml: ModuleType, handle: object, fields: Sequence[tuple[_Field, int]]) -> None:
        super().__init__([field.quantity for field, _ in fields], lambda: _field_values(nvml, handle, fields)[0])
        self._fields = [field for field, _ in fields]
        self._first: dict[int, float] = {}
        self._last: dict[int, tuple[int, float]] = {}

    def _made(self, ns: int, asked: Sequence[float]) -> Sequence[float]:
        return [self._one(ns, at, value) for at, value in enumerate(asked)]

    def _one(self, ns: int, at: int, value: float) -> float:
        kind = self._fields[at].kind
        if value != value or kind == "value":
            return value
        if kind == "total":
            return value - self._first.setdefault(at, value)
        before = self._last.get(at)
        self._last[at] = ns, value
        if before is None or ns <= before[0] or value < before[1]:  # a counter that began anew
            return nan
        return (value - before[1]) * _S / (ns - before[0])


class _Gpm(Source):
    """Metrics of GPM, from two samples: means between this reading and the one before it."""

    def __init__(self, nvml: ModuleType, handle: object, numbers: Sequence[tuple[Quantity, int]]) -> None:
        # NVIDIA asks for 100 ms between samples.
        super().__init__([quantity for quantity, _ in numbers], self._sample, _S // 10)
        self._nvml, self._handle = nvml, handle
        self._numbers = [number for _, number in numbers]
        self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        self._filled = 0

    def _sample(self) -> Sequence[float]:
        nvml = self._nvml
        now, before = self._samples[self._filled % 2], self._samples[(self._filled + 1) % 2]
        nvml.nvmlGpmSampleGet(self._handle, now)
        self._filled += 1
        if self._filled < 2:
            return [nan] * len(self._numbers)
        wanted = nvml.c_nvmlGpmMetricsGet_t()
        wanted.version = nvml.NVML_GPM_METRICS_GET_VERSION
        wanted.numMetrics = len(self._numbers)
        wanted.sample1, wanted.sample2 = before, now
        for at, number in enumerate(self._numbers):
            wanted.metrics[at].metricId = number
        nvml.nvmlGpmMetricsGet(wanted)
        found = (wanted.metrics[at] for at in range(len(self._numbers)))
        return [float(each.value) if each.nvmlReturn == 0 else nan for each in found]


def _pcie(counter: str) -> Callable[[Any, object], Sequence[float]]:
    return lambda nvml, handle: (float(nvml.nvmlDeviceGetPcieThroughput(handle, getattr(nvml, counter))) * 1000.0,)


# Calls for fields that a GPU does not have, and how often: those for PCIe measure for 20 ms.
_OLDER: dict[str, tuple[Quantity, Callable[[Any, object], Sequence[float]], int]] = {
    "power": (_FIELDS[0].quantity, lambda nvml, handle: (float(nvml.nvmlDeviceGetPowerUsage(handle)) * 1e-3,), 0),
    "PCIe sent": (_FIELDS[2].quantity, _pcie("NVML_PCIE_UTIL_TX_BYTES"), _S),
    "PCIe received": (_FIELDS[3].quantity, _pcie("NVML_PCIE_UTIL_RX_BYTES"), _S),
}


@dataclass(frozen=True)
class Gpu:
    """One GPU: its number for NVML, facts about it, the sources of its metrics, and the metrics that it refuses."""

    index: int
    handle: object
    facts: dict[str, object]
    sources: list[Source]
    refused: list[Refusal]


def open_gpus(nvml: ModuleType) -> list[Gpu]:
    """Return every GPU that NVML shows here; every metric is tried once. `nvml`: pynvml, initialised."""
    found = []
    for index in range(int(nvml.nvmlDeviceGetCount())):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:  # of a container that may not use it, or lost
            found.append(Gpu(index, None, {"index": index}, [], [Refusal(("everything",), _words(error))]))
            continue
        sources, refused = _sources(nvml, handle)
        found.append(Gpu(index, handle, _facts(nvml, handle, index), sources, refused))
    return found


def memory_by_process(nvml: ModuleType, gpu: Gpu) -> list[tuple[int, int]]:
    """Return pid and bytes of every process that computes on a GPU, if NVML knows them. Never raises."""
    try:
        running = nvml.nvmlDeviceGetComputeRunningProcesses(gpu.handle)
        return [(int(each.pid), int(each.usedGpuMemory)) for each in running if each.usedGpuMemory is not None]
    except Exception:
        return []


def _facts(nvml: ModuleType, handle: object, index: int) -> dict[str, object]:
    facts: dict[str, object] = {"index": index}
    asked: tuple[tuple[str, Callable[[], object]], ...] = (
        ("uuid", lambda: _text(nvml.nvmlDeviceGetUUID(handle))),
        ("name", lambda: _text(nvml.nvmlDeviceGetName(handle))),
        ("bus", lambda: _text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
        ("memory_bytes", lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
        ("mig", lambda: bool(nvml.nvmlDeviceGetMigMode(handle)[0])),
    )
    for name, ask in asked:
        try:
            facts[name] = ask()
        except Exception:  # not known of this GPU
            continue
    return facts


def _sources(nvml: ModuleType, handle: object) -> tuple[list[Source], list[Refusal]]:
    found: list[Source] = []
    refused: list[Refusal] = []

    def add(make: Callable[[], Source], *quantities: Quantity) -> bool:
        try:
            source = make()
            source._ask()
        except Exception as error:
            refused.append(Refusal(tuple(each.name for each in quantities), _words(error)))
            return False
        found.append(source)
        return True

    for quantities, ask in _simple(nvml, handle):
        add(partial(Source, quantities, ask), *quantities)
    given, refusals = _given_fields(nvml, handle)
    if given:
        found.append(_Fields(nvml, handle, given))
    for refusal in refusals:
        older = _OLDER.get(refusal.names[0])
        if older is None:
            refused.append(refusal)
        else:
            quantity, ask_older, period_ns = older
            add(partial(Source, [quantity], partial(ask_older, nvml, handle), period_ns), quantity)
    gpm = [quantity for quantity, _ in _GPM]
    add(lambda: _open_gpm(nvml, handle), *gpm)
    return found, refused


def _simple(nvml: ModuleType, handle: object) -> Iterator[tuple[tuple[Quantity, ...], Callable[[], Sequence[float]]]]:
    def utilisation() -> Sequence[float]:
        rates = nvml.nvmlDeviceGetUtilizationRates(handle)
        return float(rates.gpu), float(rates.memory)

    def reasons() -> Sequence[float]:
        ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        return (float((ask or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)),)

    yield (Quantity("utilisation", "%"), Quantity("memory utilisation", "%")), utilisation
    yield (Quantity("memory used", "bytes"),), lambda: (float(nvml.nvmlDeviceGetMemoryInfo(handle).used),)
    yield (Quantity("SM clock", "MHz"),), lambda: (float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),)
    yield (Quantity("memory clock", "MHz"),), lambda: (float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),)
    yield (Quantity("clock reasons", ""),), reasons
    yield (
        (Quantity("temperature", "°C"),),
        lambda: (float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),),
    )


def _given_fields(nvml: ModuleType, handle: object) -> tuple[list[tuple[_Field, int]], list[Refusal]]:
    """Return the fields that a GPU has, with their numbers, and those that it refuses."""
    numbers = [(field, getattr(nvml, field.constant, None)) for field in _FIELDS]
    known = [(field, int(number)) for field, number in numbers if number is not None]
    unknown = [field.quantity.name for field, number in numbers if number is None]
    refused = [Refusal((name,), "nvidia-ml-py does not know it") for name in unknown]
    try:
        _, states = _field_values(nvml, handle, known)
    except Exception as error:
        return [], refused + [Refusal((field.quantity.name,), _words(error)) for field, _ in known]
    given = []
    for (field, number), state in zip(known, states, strict=True):
        if state == 0:
            given.append((field, number))
        else:
            refused.append(Refusal((field.quantity.name,), _words(nvml.NVMLError(state))))
    return given, refused


def _field_values(
    nvml: ModuleType, handle: object, fields: Sequence[tuple[_Field, int]]
) -> tuple[list[float], list[int]]:
    """Return a number for each field, NaN without one, and the return code of NVML for each."""
    asked = [(number, field.scope) if field.scope else number for field, number in fields]
    values, states = [], []
    for (field, _), each in zip(fields, nvml.nvmlDeviceGetFieldValues(handle, asked), strict=True):
        kind = int(each.valueType)
        fits = each.nvmlReturn == 0 and 0 <= kind < len(_UNION)
        values.append(float(getattr(each.value, _UNION[kind])) * field.factor if fits else nan)
        states.append(int(each.nvmlReturn))
    return values, states


def _open_gpm(nvml: ModuleType, handle: object) -> Source:
    if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
        raise RuntimeError("this GPU has no GPM")
    return _Gpm(nvml, handle, [(quantity, int(getattr(nvml, constant))) for quantity, constant in _GPM])


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _words(error: Exception) -> str:
    return f"nvidia-ml-py lacks {error.name}" if isinstance(error, AttributeError) else str(error)
