"""The answer of MindSpore's `Profiler.op_analyse`: what operators of a type cost by shapes of their inputs, as JSON.

    trace.op_analyse("conv2d")                      # {"conv2d": [{"op_side": "gpu", "input_shape": ..., ...}], ...}
    trace.op_analyse(["conv2d", "aten::add_"], device_id=1)

Keys, their order and the units are those of MindSpore 2.0 (profiler/parser/framework_parser.py,
GpuFrameWorkParser.combine_performance_data). Other than there, occurrences are those of the shape, not of the type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.gpu.devices import Device, devices
from strobe.gpu.launches import launches
from strobe.operators.labels import operators_of, type_of
from strobe.sums.attributes import Attributes
from strobe.sums.groups import Texts
from strobe.sums.path_statistics import outermost
from strobe.trace.definition_rows import path_tree
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# By side (gpu, cpu) and shapes of the inputs: occurrences, and ns in all.
_Sums = dict[tuple[str, str], list[int]]


class OperatorNotFoundError(UsageError, RuntimeError):
    """No operator has this name or type. It is also a RuntimeError, which scripts for MindSpore catch."""


@dataclass
class _Executions:
    """The outermost executions of the operators that are asked for in one location, in order of start.

    shapes: number of the text. device_ns: time of the GPU that is asked for in what they launched; launched: whether
    they launched anything there; elsewhere: whether they did on another GPU.
    """

    row: Ints
    end_ns: Ints
    duration_ns: Ints
    shapes: Ints
    device_ns: Ints = field(init=False)
    launched: Bools = field(init=False)
    elsewhere: Bools = field(init=False)

    def __post_init__(self) -> None:
        """Begin without work of GPUs."""
        self.device_ns = np.zeros(len(self.row), dtype=np.int64)
        self.launched, self.elsewhere = (np.zeros(len(self.row), dtype=bool) for _ in range(2))

    def number(self, spans: SpanArrays, _: Ints) -> Ints:
        """Number spans by the execution that they are in, -1 for those in none."""
        at = np.searchsorted(self.row, spans["row"], side="right") - 1
        if not len(self.row):
            return at
        return np.where(spans["start_ns"] + spans["duration_ns"] <= self.end_ns[at], at, -1)


def op_analyse(trace: Trace, op_name: str | Sequence[str], device_id: int | None = None) -> str:
    """Return JSON: what operators cost by the shapes of their inputs.

    `op_name`: a type (`conv2d`, in any case) or the name of an operator (`aten::conv2d`), or several. The result has a
    list for each, and `device_id`. An entry: `op_side` (`gpu` for executions that launched work on a GPU, else `cpu`),
    `input_shape` (`[32, 3, 224, 224],[64, 3, 7, 7]`, empty where it was not recorded), `op_occurrences`,
    `op_total_time(us)`, `op_avg_time(us)`: microseconds with 4 decimals; of the kernels, copies and sets that were
    launched on the GPU (or captured into a CUDA graph, each time that it ran), or on the host. An operator inside of
    one that is asked for by the same name is a part of it. A run without operators, as of an NPU alone, has those that
    its kernels name themselves (`MatMulV2`, or `aclnnMatmul_MatMulV2`). `device_id` is the number of a GPU (default:
    0): only processes that use it count; without GPUs all do. Raises OperatorNotFoundError for a name that is not in
    the run, TypeError for an argument that is not a name.
    """
    names = [op_name] if isinstance(op_name, str) else op_name
    if not isinstance(names, Sequence) or not names or not all(isinstance(each, str) and each for each in names):
        raise TypeError("op_name must be the name or type of an operator, or a list of them")
    if device_id is not None and (isinstance(device_id, bool) or not isinstance(device_id, int)):
        raise TypeError("device_id must be the number of a GPU")
    gpus = devices(trace)
    chosen = _number(gpus, device_id)
    using = {device.process for device in gpus if (device.number or 0) == chosen}
    answer: dict[str, object] = {}
    of_kernels = bool(gpus) and not operators_of(trace).any()
    for name in names:
        sums = _of_kernels(trace, name, gpus, chosen) if of_kernels else {}
        entries = _entries(sums or _sums(trace, _wanted(trace, name), gpus, chosen, using))
        if not entries:
            raise OperatorNotFoundError(f"operator '{name}' was not executed by a process that uses GPU {chosen}")
        answer[name] = entries
    answer["device_id"] = chosen
    return json.dumps(answer)


def _number(gpus: Sequence[Device], device_id: int | None) -> int:
    """Return the number of the GPU that is asked for: 0, or the lowest, if none is."""
    numbers = sorted({device.number or 0 for device in gpus})
    if device_id is None:
        return numbers[0] if numbers else 0
    if numbers and device_id not in numbers:
        raise UsageError(f"no GPU {device_id} in this trace", do=f"GPUs: {', '.join(map(str, numbers))}")
    return device_id


def _wanted(trace: Trace, name: str) -> Bools:
    """By region: whether it is an operator of this name or type."""
    operator = operators_of(trace)
    names = trace.regions.texts("name")
    types = [type_of(each).lower() for each in names]
    wanted: Bools = operator & np.array([each == name for each in names], dtype=bool)
    if not wanted.any():
        wanted = operator & np.array([each == name.lower() for each in types], dtype=bool)
    if not wanted.any():
        known = {each for texts in (names, types) for each, is_one in zip(texts, operator, strict=True) if is_one}
        close = get_close_matches(name.lower(), sorted(known), n=3)
        do = (
            f"Similar: {', '.join(close)}" if close else "Types and names: strobe operators --by type, strobe operators"
        )
        raise OperatorNotFoundError(f"no operator has the name or type '{name}'", do=do)
    return wanted


def _sums(trace: Trace, wanted: Bools, gpus: Sequence[Device], chosen: int, using: set[int]) -> _Sums:
    texts = Texts()
    threads = {
        int(each["location"]): _executions(trace, int(each["location"]), wanted, texts)
        for each in trace.locations.to_arrow().to_pylist()
        if each["kind"] != "stream" and each["span_count"] and (not gpus or each["process"] in using)
    }
    for device in gpus:
        if device.process in using:
            _add_work(trace, device, threads, is_chosen=(device.number or 0) == chosen)
    sums: _Sums = {}
    for found in threads.values():
        for side, which, time_ns in (
            ("gpu", found.launched, found.device_ns),
            ("cpu", ~found.launched & ~found.elsewhere, found.duration_ns),
        ):
            for number in np.unique(found.shapes[which]).tolist():
                mine = which & (found.shapes == number)
                _add(sums, side, texts.text(number), int(mine.sum()), int(time_ns[mine].sum()))
    parent, region = path_tree(trace)
    is_wanted = wanted[region]
    once = is_wanted & outermost(parent, np.where(is_wanted, 0, -1))
    for process, folded in trace.folded.items():
        some = folded.chosen(once[folded.call_path] & (folded.count > 0))
        if len(some) and (not gpus or process in using):
            _add(sums, "cpu", None, int(some.count.sum()), int(some.total_ns.sum()))
    return sums


def _of_kernels(trace: Trace, name: str, gpus: Sequence[Device], chosen: int) -> _Sums:
    """Return the sums of kernels whose name, or type of operator, is this one."""
    sums: _Sums = {}
    names = trace.regions.texts("name")
    for location in (at for device in gpus if (device.number or 0) == chosen for at in device.locations):
        shapes: dict[int, str] = {}
        for batch in trace.side_batches("arguments", location):
            cells = zip(*(batch.column(column).to_pylist() for column in ("row", "key", "value")), strict=True)
            shapes |= {row: str(json.loads(value)) for row, key, value in cells if key == "shapes"}
        attributes = Attributes(trace, "kernel_spans", location, ("short_name",))
        for spans in trace.span_batches(location):
            types = attributes.of(spans["row"]).column("short_name").to_pylist()
            columns = (spans[column].tolist() for column in ("row", "region", "duration_ns"))
            for row, region, duration_ns, of_type in zip(*columns, types, strict=True):
                if name == names[region] or name.lower() == (of_type or "").lower():
                    # As Ascend has them: 128,64;64,32.
                    parts = shapes[row].strip('"').split(";") if row in shapes else []
                    text = ",".join(f"[{part}]" for part in parts)
                    _add(sums, "gpu", f"[{text}]", 1, duration_ns)
    return sums


def _executions(trace: Trace, location: int, wanted: Bools, texts: Texts) -> _Executions:
    """Return the executions in a location, but for those inside of others."""
    attributes = Attributes(trace, "operator_spans", location, ("shapes",))
    columns: list[list[Ints]] = [[np.zeros(0, dtype=np.int64)] for _ in range(4)]
    reach = np.iinfo(np.int64).min
    for spans in trace.span_batches(location):
        (at,) = np.nonzero(wanted[spans["region"]])
        start, duration = spans["start_ns"][at], spans["duration_ns"][at]
        ends = np.maximum.accumulate(np.concatenate(([reach], start + duration)))
        first = start >= ends[:-1]
        at, start, duration, reach = at[first], start[first], duration[first], int(ends[-1])
        shapes = texts.numbers(attributes.of(spans["row"][at]).column("shapes"))
        for column, values in zip(columns, (spans["row"][at], start + duration, duration, shapes), strict=True):
            column.append(values)
    return _Executions(*(np.concatenate(parts) for parts in columns))


def _add_work(trace: Trace, device: Device, threads: dict[int, _Executions], *, is_chosen: bool) -> None:
    """Add what executions launched on a GPU."""
    nothing = _Executions(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    for found, by in launches(trace, device, numbering=lambda at: threads.get(at, nothing).number):
        known = by.code.row >= 0
        location = np.where(known, by.code.location, by.operator.location)
        execution = np.where(known, by.code.path, by.operator.path)
        for each in np.unique(location[execution >= 0]).tolist():
            mine = (location == each) & (execution >= 0)
            if is_chosen:
                np.add.at(threads[each].device_ns, execution[mine], (found.end_ns - found.start_ns)[mine])
                threads[each].launched[execution[mine]] = True
            else:
                threads[each].elsewhere[execution[mine]] = True


def _add(sums: _Sums, side: str, shapes: str | None, count: int, time_ns: int) -> None:
    # As JSON: [[32,3,224,224],[64,3,7,7]].
    text = "" if shapes is None else shapes.strip()[1:-1].replace(",", ", ").replace("], [", "],[")
    entry = sums.setdefault((side, text), [0, 0])
    entry[0] += count
    entry[1] += time_ns


def _entries(sums: _Sums) -> list[dict[str, object]]:
    """Return the entries as MindSpore has them, those of the GPU first, the longest of each side first."""
    ordered = sorted(sums.items(), key=lambda each: (each[0][0] != "gpu", -each[1][1], each[0][1]))
    return [
        {
            "op_side": side,
            "input_shape": shapes,
            "op_occurrences": count,
            "op_total_time(us)": round(time_ns / 1000, 4),
            "op_avg_time(us)": round(time_ns / count / 1000, 4),
        }
        for (side, shapes), (count, time_ns) in ordered
    ]
