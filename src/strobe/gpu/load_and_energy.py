"""Readings of GPUs while the program ran: by our recorder or another tool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from strobe.gpu.capabilities import gpu_memory_bytes, gpu_name
from strobe.gpu.devices import devices
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Floats, Ints
from strobe.trace.definition_rows import process_rows
from strobe.trace.trace import Trace

_OF_GPU = re.compile(r"GPU (\d+): (.+)")
# Names of Nsight Systems for our metrics (`--gpu-metrics-devices`), in percent as ours.
_OTHERS_NAMES = {"SMs Active": "SM activity", "Tensor Active": "tensor activity", "GR Active": "utilisation"}
_REASON = "throttled: "
_S = 1e9


@dataclass
class GpuReadings:
    """A GPU and its readings by metric: time (ns since the trace's zero) and value. `process`: shown with that one."""

    process: int
    number: int | None
    host: str = ""
    name: str = ""
    uuid: str = ""
    memory_bytes: int | None = None
    series: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)

    def values(self, metric: str) -> Floats:
        """Return the readings of a metric, maybe none."""
        return self.series[metric][1] if metric in self.series else np.zeros(0)

    @property
    def throttled_by(self) -> tuple[str, ...]:
        """Why its clocks were held down at some time, the most frequent reason first."""
        found = {name: float(values.sum()) for name, (_, values) in self.series.items() if name.startswith(_REASON)}
        return tuple(name.removeprefix(_REASON) for name in sorted(found, key=lambda name: -found[name]))

    def energy(self) -> tuple[Ints, Floats] | None:
        """Return joules up to each moment: the GPU's own counter, else the sum of its power over time."""
        if "energy" in self.series:
            return self.series["energy"]
        if "power" not in self.series:
            return None
        time_ns, watts = self.series["power"]
        joules = np.concatenate([[0.0], np.cumsum((watts[1:] + watts[:-1]) / 2 * np.diff(time_ns) / _S)])
        return time_ns, joules[: len(time_ns)]


def gpu_readings(trace: Trace) -> list[GpuReadings]:
    """Return every GPU with readings, in order of process and number; and those of imported files that worked."""
    hosts = [process.host for process in process_rows(trace)]
    found: dict[tuple[int, int | None], GpuReadings] = {}

    def of(process: int, number: int | None) -> GpuReadings:
        return found.setdefault((process, number), GpuReadings(process, number, hosts[process] or ""))

    for process, node in trace.gpus.items():
        for index, gpu in node.content.gpus.items():
            known = of(process, index)
            known.name, known.uuid, known.memory_bytes = gpu.name, gpu.uuid, gpu.memory_bytes
    for each in trace.readings():
        named = _OF_GPU.fullmatch(each.metric)
        if named and each.location is None and len(each.values) and named[2] != "memory of the process":
            metric = _OTHERS_NAMES.get(named[2], named[2])
            of(each.process, int(named[1])).series[metric] = each.time_ns, each.values
    if not trace.gpus:
        for device in devices(trace):
            known = of(device.process, device.number)
            known.name, known.memory_bytes = gpu_name(trace, device.number), gpu_memory_bytes(trace, device.number)
    return [found[key] for key in sorted(found, key=lambda key: (key[0], -1 if key[1] is None else key[1]))]


def step_energy(trace: Trace, gpus: Sequence[GpuReadings]) -> Mapping[int, float]:
    """Return joules of a step on average, by place in `gpus`: of steps between the first and the last reading.

    The steps are those of the process that the GPU is shown with, else of the first that has some.
    """
    by_process = {each.process: each for each in find_steps(trace).processes}
    found = {}
    for place, gpu in enumerate(gpus):
        steps = by_process.get(gpu.process, next(iter(by_process.values()), None))
        curve = gpu.energy()
        if steps is None or curve is None or len(curve[0]) < 2:
            continue
        time_ns, joules = curve
        begin, end = steps.start_ns, steps.start_ns + steps.duration_ns
        inside = (begin >= time_ns[0]) & (end <= time_ns[-1]) & steps.complete
        if inside.any():
            used = np.interp(end[inside], time_ns, joules) - np.interp(begin[inside], time_ns, joules)
            found[place] = float(used.mean())
    return found
