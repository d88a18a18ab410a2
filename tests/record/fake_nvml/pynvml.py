# ruff: noqa: N801, N802
"""Stands in for nvidia-ml-py: GPUs whose readings are known functions of time, and that refuse what GPUs refuse.

Names, arguments and structures are those of nvidia-ml-py 13; `FAKE_GPUS` (JSON) says what the GPUs are like. As the
real one, it raises before nvmlInit, for GPUs that are not there, and where a GPU does not have what it is asked for.
Readings are of CLOCK_MONOTONIC: every call also writes down when it was made, and what it answered.
"""

import ctypes
import json
import os
import threading
import time

NVML_SUCCESS = 0
NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
NVML_TEMPERATURE_GPU = 0
NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83
NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 138, 139
NVML_FI_DEV_POWER_INSTANT = 186
NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 197, 198
NVML_GPM_METRIC_SM_UTIL, NVML_GPM_METRIC_SM_OCCUPANCY = 2, 3
NVML_GPM_METRIC_ANY_TENSOR_UTIL, NVML_GPM_METRIC_DRAM_BW_UTIL = 5, 10
NVML_GPM_METRICS_GET_VERSION = 1
_NOT_SUPPORTED, _NO_PERMISSION, _UNINITIALIZED, _INVALID, _LIBRARY, _LOST = 3, 4, 1, 2, 12, 15
_WORDS = {
    _NOT_SUPPORTED: "Not Supported",
    _NO_PERMISSION: "Insufficient Permissions",
    _UNINITIALIZED: "Uninitialized",
    _INVALID: "Invalid Argument",
    _LIBRARY: "NVML Shared Library Not Found",
    _LOST: "GPU is lost",
}
_SETTINGS = json.loads(os.environ.get("FAKE_GPUS", "{}"))
_GPUS = _SETTINGS.get("gpus", [{}])
_LOG = _SETTINGS.get("log")
_initialised = False

with open(f"{_LOG}.imported-{os.getpid()}", "a", encoding="ascii") as _said:
    _said.write(threading.current_thread().name)


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value

    def __str__(self):
        return _WORDS.get(self.value, "Unknown Error")


class _Values(ctypes.Union):
    _fields_ = [("dVal", ctypes.c_double), ("uiVal", ctypes.c_uint), ("ulVal", ctypes.c_ulong),
                ("ullVal", ctypes.c_ulonglong), ("sllVal", ctypes.c_longlong), ("siVal", ctypes.c_int),
                ("usVal", ctypes.c_ushort)]  # fmt: skip


class c_nvmlFieldValue_t(ctypes.Structure):
    _fields_ = [("fieldId", ctypes.c_uint32), ("scopeId", ctypes.c_uint32), ("timestamp", ctypes.c_int64),
                ("latencyUsec", ctypes.c_int64), ("valueType", ctypes.c_uint), ("nvmlReturn", ctypes.c_uint),
                ("value", _Values)]  # fmt: skip


class _Metric(ctypes.Structure):
    _fields_ = [("metricId", ctypes.c_uint), ("nvmlReturn", ctypes.c_uint), ("value", ctypes.c_double)]


class c_nvmlGpmMetricsGet_t(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("numMetrics", ctypes.c_uint), ("sample1", ctypes.c_void_p),
                ("sample2", ctypes.c_void_p), ("metrics", _Metric * 333)]  # fmt: skip


class _Facts:
    def __init__(self, **facts):
        self.__dict__.update(facts)


def _gpu(handle, what):
    if not _initialised:
        raise NVMLError(_UNINITIALIZED)
    settings = _GPUS[handle]
    code = settings.get("refuses", {}).get(what)
    if code is None and _is_lost(settings):
        code = _LOST
    if code is not None:
        raise NVMLError(code)
    return settings


def _is_lost(settings):
    return "lost_file" in settings and os.path.exists(settings["lost_file"])


def _now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _said_so(handle, what, value, ns=None):
    if _LOG:
        with open(f"{_LOG}.{os.getpid()}", "a", encoding="ascii") as log:
            log.write(f"{handle} {what} {ns or _now()} {value}\n")
    return value


def nvmlInit():
    global _initialised
    time.sleep(_SETTINGS.get("init_s", 0))
    if _SETTINGS.get("init"):
        raise NVMLError(_SETTINGS["init"])
    _initialised = True


def nvmlSystemGetDriverVersion():
    return "580.65.06"


def nvmlDeviceGetCount():
    if not _initialised:
        raise NVMLError(_UNINITIALIZED)
    return len(_GPUS)


def nvmlDeviceGetHandleByIndex(index):
    if not 0 <= index < len(_GPUS):
        raise NVMLError(_INVALID)
    return index


def nvmlDeviceGetUUID(handle):
    return _GPUS[handle].get("uuid", f"GPU-0000-{handle}")


def nvmlDeviceGetName(handle):
    return _gpu(handle, "name").get("name", b"NVIDIA H100 80GB HBM3")


def nvmlDeviceGetPciInfo(handle):
    return _Facts(busId=b"00000000:18:00.0")


def nvmlDeviceGetMigMode(handle):
    _gpu(handle, "mig")
    return [int(_GPUS[handle].get("mig", 0)), 0]


def nvmlDeviceGetMemoryInfo(handle):
    settings = _gpu(handle, "memory")
    return _Facts(total=80 << 30, used=_said_so(handle, "memory", settings.get("memory", 3 << 30)))


def nvmlDeviceGetUtilizationRates(handle):
    _gpu(handle, "utilisation")
    ns = _now()
    return _Facts(gpu=_said_so(handle, "utilisation", ns // 10**6 % 101, ns), memory=25)


def nvmlDeviceGetClockInfo(handle, kind):
    _gpu(handle, "clock")
    return {NVML_CLOCK_SM: 1980, NVML_CLOCK_MEM: 2619}[kind]


def nvmlDeviceGetCurrentClocksEventReasons(handle):
    settings = _gpu(handle, "reasons")
    return settings.get("reasons", 0)


def nvmlDeviceGetTemperature(handle, sensor):
    assert sensor == NVML_TEMPERATURE_GPU
    return _gpu(handle, "temperature").get("temperature", 51)


def nvmlDeviceGetPowerUsage(handle):
    _gpu(handle, "old power")
    return 123000


def nvmlDeviceGetPcieThroughput(handle, way):
    _gpu(handle, "old pcie")
    time.sleep(0.02)
    return {NVML_PCIE_UTIL_TX_BYTES: 3, NVML_PCIE_UTIL_RX_BYTES: 4}[way]


def nvmlDeviceGetFieldValues(handle, fields):
    settings = _gpu(handle, "fields")
    values = (c_nvmlFieldValue_t * len(fields))()
    ns = _now()
    for value, field in zip(values, fields, strict=True):
        value.fieldId, value.scopeId = field if isinstance(field, tuple) else (field, 0)
        value.nvmlReturn = settings.get("refuses", {}).get(str(value.fieldId), NVML_SUCCESS)
        if _is_lost(settings):
            value.nvmlReturn = _LOST
        if value.nvmlReturn:
            continue
        value.valueType = 3
        if value.fieldId == NVML_FI_DEV_POWER_INSTANT:
            value.valueType, value.value.uiVal = 1, 400_000
        elif value.fieldId == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:  # 400 W
            value.value.ullVal = 5_000_000 + ns * 400 // 10**6
        elif value.fieldId == NVML_FI_DEV_PCIE_COUNT_TX_BYTES:  # 2 GB/s
            value.value.ullVal = ns * 2
        elif value.fieldId == NVML_FI_DEV_PCIE_COUNT_RX_BYTES:  # 1 GB/s
            value.value.ullVal = ns
        elif value.scopeId != 0xFFFFFFFF:  # of one link: of all is what we want
            value.nvmlReturn = _INVALID
        else:  # KiB, 1024 bytes a microsecond
            value.value.ullVal = ns // 1000 * (1 if value.fieldId == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX else 2)
    return values


def nvmlDeviceGetComputeRunningProcesses(handle):
    settings = _gpu(handle, "processes")
    path = settings.get("pid_file")
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        pid = file.read()
    return [_Facts(pid=int(pid), usedGpuMemory=7 << 20), _Facts(pid=1, usedGpuMemory=None)] if pid else []


def nvmlGpmQueryDeviceSupport(handle):
    return _Facts(isSupportedDevice=int(_gpu(handle, "gpm query").get("gpm", 0)))


_samples = []


def nvmlGpmSampleAlloc():
    _samples.append(None)
    return len(_samples)


def nvmlGpmSampleGet(handle, sample):
    _gpu(handle, "gpm")
    _samples[sample - 1] = _now()
    return sample


def nvmlGpmMetricsGet(wanted):
    before, after = _samples[wanted.sample1 - 1], _samples[wanted.sample2 - 1]
    if wanted.version != 1 or before is None or after is None or after - before < 90_000_000:
        raise NVMLError(_INVALID)
    for metric in wanted.metrics[: wanted.numMetrics]:
        metric.nvmlReturn = _NOT_SUPPORTED if metric.metricId == NVML_GPM_METRIC_ANY_TENSOR_UTIL else NVML_SUCCESS
        metric.value = 10.0 * metric.metricId
    return wanted
