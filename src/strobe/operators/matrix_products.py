"""Matrix products, convolutions and attention of a run: their work, their GPUs and their times.

Of operators inside each other (linear, addmm) only the outermost counts; the type of its operands is that of the
innermost, as autocast converts them in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from strobe.errors import UsageError
from strobe.gpu.capabilities import imported_files
from strobe.gpu.devices import Device, devices
from strobe.gpu.launches import launches
from strobe.gpu.nvidia.peaks import Peak, peak, uses_tf32
from strobe.gpu.work import KINDS
from strobe.operators.flops import ITEM_BYTES, Product, convolution_of, dtype_of, is_product, parsed, product
from strobe.sums.attributes import Attributes
from strobe.tables.column_arrays import Bools, Columns, Ints, alike
from strobe.trace.definition_rows import location_rows, processes_of_locations, region_rows
from strobe.trace.trace import Trace

# Why a table about matrix products has no rows, or lacks columns.
NO_SHAPES = (
    "no matrix product whose shapes were recorded: profile with torch.profiler.profile(record_shapes=True) "
    "and open its trace"
)
NO_FLOPS = (
    "{} of {} operators without FLOPs: their shapes alone do not define the computation (a convolution's stride or "
    "gradients; newer versions of PyTorch record them)"
)
NO_PEAK = "peak unknown for {}: give --peak-gflops and --bandwidth-gb-s"
# Name of an operator, and shapes, types and values of its inputs as recorded.
_Inputs = tuple[str, str, str, str]
_TEXTS = ("shapes", "types", "concrete_inputs")
_COMPUTES = KINDS.index("computation")


@dataclass(frozen=True)
class Kind:
    """An operator with certain inputs. `shapes` as recorded; `product` is None if they do not define it."""

    name: str
    shapes: str
    dtype: str
    product: Product | None

    def moved_bytes(self, dtype: str) -> int | None:
        """Bytes of operands and result of a type, each once; None if unknown."""
        size = ITEM_BYTES.get(dtype)
        return None if size is None or self.product is None else size * self.product.elements


@dataclass(frozen=True)
class _Candidates(Columns):
    """Products of a thread, also those inside each other. `last_row`: up to this row spans lie inside."""

    row: Ints
    start_ns: Ints
    end_ns: Ints
    call_path: Ints
    last_row: Ints
    kind: Ints


@dataclass(frozen=True)
class Gemms(_Candidates):
    """The products that one thread called, in order of start.

    `kind`, `dtype_kind`: numbers of kinds: the one that it counts as, and the innermost one in it. `device`: index of
    the GPU in `devices`, -1 if no kernel is known. `device_ns`: sum of the durations of the kernels launched inside.
    `replays`: launches of the CUDA graph that it was captured into, 0 if it was computed as it was called.
    `others`: kernels that other operators launched between the product before it and this one.
    """

    dtype_kind: Ints
    device: Ints
    device_ns: Ints
    replays: Ints
    others: Ints
    tf32: Bools

    @property
    def runs(self) -> Ints:
        """How often each was computed."""
        return np.maximum(self.replays, 1)


@dataclass
class Sum:
    """Products of the same operator with the same shapes and type, on the same GPU (None: no kernel is known).

    `calls`: how often they were computed, in CUDA graphs, too. `host_ns`: of the operators that called or captured
    them.
    """

    process: int
    device: Device | None
    kind: Kind
    dtype: str
    tf32: bool
    calls: int = 0
    device_ns: int = 0
    host_ns: int = 0

    @property
    def flop(self) -> int | None:
        """Floating-point operations of one call, None if unknown."""
        return self.kind.product.flop if self.kind.product else None

    def hardware(self, trace: Trace) -> str:
        """Return the name of the GPU or the processor in the trace."""
        name = str(_properties(trace, self.device).get("name", "")) if self.device else "the host"
        return name or "a GPU without a name"


@dataclass(frozen=True)
class Found:
    """All products of a run by location, the process of every location, the kinds that they refer to, and the GPUs."""

    threads: dict[int, Gemms]
    process_of: Sequence[int]
    kinds: list[Kind]
    devices: list[Device]

    def dtype(self, kind: int, dtype_kind: int) -> str:
        """Return the type of the operands of a product, "" if unknown."""
        return self.kinds[dtype_kind].dtype or self.kinds[kind].dtype


def find(trace: Trace, without: Bools | None = None) -> Found:
    """Find the matrix products, convolutions and attentions of all ranks, and the kernels that they launched.

    Memory grows with the number of products alone, about 100 bytes each. `without`: regions of kernels that do not
    count; products that launched one are treated as those without a GPU.
    """
    regions = region_rows(trace)
    names = [each.name for each in regions]
    wanted = np.array([each.role == "operator" and is_product(each.name) for each in regions], dtype=bool)
    inputs: dict[_Inputs, int] = {}
    called: dict[int, _Candidates] = {}
    for each in location_rows(trace) if wanted.any() else ():
        if each.kind != "stream" and each.span_count:
            called[each.location] = _candidates(trace, each.location, wanted, names, inputs)
    kinds = _kinds(list(inputs))
    computable = np.array([kind.product is not None for kind in kinds], dtype=bool)
    threads = {location: _outermost(each, computable) for location, each in called.items() if len(each)}
    process_of, found = processes_of_locations(trace), devices(trace) if threads else []
    tf32 = np.array([uses_tf32(name) for name in names], dtype=bool)
    for index, device in enumerate(found):
        if any(process_of[location] == device.process for location in threads):
            _add_kernels(trace, device, index, threads, tf32, without)
    return Found(threads, process_of, kinds, found)


def sums(found: Found) -> list[Sum]:
    """Sum equal products on the same GPU, over all threads of a process."""
    rows: dict[tuple[int, int, str, str, str, bool], Sum] = {}
    for location, gemms in found.threads.items():
        process = found.process_of[location]
        columns = (gemms.device, gemms.kind, gemms.dtype_kind, gemms.tf32.astype(np.int64))
        first, which = alike(columns)
        calls, device_ns, host_ns = (np.zeros(len(first), dtype=np.int64) for _ in range(3))
        np.add.at(calls, which, gemms.runs)
        np.add.at(device_ns, which, gemms.device_ns)
        np.add.at(host_ns, which, gemms.end_ns - gemms.start_ns)
        for at, (device, number, innermost, tf32) in enumerate(np.stack(columns, axis=1)[first].tolist()):
            kind, dtype = found.kinds[number], found.dtype(number, innermost)
            gpu = found.devices[device] if device >= 0 else None
            on_tensor_cores = bool(tf32) and dtype == "float32"
            key = (process, device, kind.name, kind.shapes, dtype, on_tensor_cores)
            row = rows.setdefault(key, Sum(process, gpu, kind, dtype, on_tensor_cores))
            row.calls += int(calls[at])
            row.device_ns += int(device_ns[at])
            row.host_ns += int(host_ns[at])
    return list(rows.values())


def stated_peak(gflops: float | None, gb_s: float | None) -> Peak:
    """Return the peak that a user gave. Raises UsageError if it is not positive."""
    if (gflops is not None and not gflops > 0) or (gb_s is not None and not gb_s > 0):
        raise UsageError("the peak of a GPU is more than 0", do="Give --peak-gflops and --bandwidth-gb-s as positive")
    return Peak(gflops, gb_s)


def peak_of(trace: Trace, device: Device | None, dtype: str, tf32: bool, stated: Peak) -> Peak:
    """Return the peak of a GPU for a type: the stated one, else that of the GPU's model."""
    by_name = peak(_properties(trace, device), "tf32" if tf32 else dtype) if device else Peak()
    return Peak(stated.gflops or by_name.gflops, stated.gb_s or by_name.gb_s)


def _properties(trace: Trace, device: Device) -> Mapping[str, Any]:
    """Return the properties of a GPU from the recorder or the imported file; empty if unknown."""
    for properties in trace.device_properties():
        if device.number is not None and properties.get("id") == device.number:
            return properties
    name = trace.files[device.process].blocks.stem if trace.files else ""
    origin = trace.job.processes.get(name, {}).get("file")
    for file in imported_files(trace):
        if origin in (None, file.get("name")):
            listed = (file.get("properties") or {}).get("deviceProperties")
            known = [gpu for gpu in listed if isinstance(gpu, dict)] if isinstance(listed, list) else []
            return next((gpu for gpu in known if gpu.get("id") == device.number), known[0] if len(known) == 1 else {})
    return {}


def _candidates(
    trace: Trace, location: int, wanted: Bools, names: Sequence[str], inputs: dict[_Inputs, int]
) -> _Candidates:
    """Return all products of a thread whose shapes are known, also those inside each other.

    Adds their inputs to `inputs`; kinds are the numbers there.
    """
    attributes = Attributes(trace, "operator_spans", location, _TEXTS)
    done: list[_Candidates] = []
    still_open = _Candidates.joined(())
    for spans in trace.span_batches(location):
        (at,) = np.nonzero(wanted[spans["region"]])
        row, start, region = spans["row"][at], spans["start_ns"][at], spans["region"][at].astype(np.int64)
        kind = _numbered(attributes, row, region, names, inputs)
        path = spans["call_path"][at].astype(np.int64)
        new = _Candidates(row, start, start + spans["duration_ns"][at], path, row, kind)
        both = _Candidates.joined((still_open, new.chosen(kind >= 0)))
        # Spans that begin before the end of another one are inside of it.
        inside = int(spans["row"][0]) + np.searchsorted(spans["start_ns"], both.end_ns, side="left") - 1
        both = replace(both, last_row=np.maximum(both.last_row, inside))
        is_open = both.end_ns > spans["start_ns"][-1]
        done.append(both.chosen(~is_open))
        still_open = both.chosen(is_open)
    found = _Candidates.joined((*done, still_open))
    return found.chosen(np.argsort(found.row))


def _numbered(
    attributes: Attributes, rows: Ints, regions: Ints, names: Sequence[str], inputs: dict[_Inputs, int]
) -> Ints:
    """Return the number of the inputs of each operator, -1 if no shapes were recorded."""
    if not len(rows):
        return rows
    table = attributes.of(rows)
    texts = [table.column(name).combine_chunks().dictionary_encode() for name in _TEXTS]
    codes = [text.indices.fill_null(-1).to_numpy() for text in texts]
    first, which = alike((regions, *codes))
    numbers = np.full(len(first), -1, dtype=np.int64)
    for number, at in enumerate(first.tolist()):
        shapes, types, values = (
            text.dictionary[int(code[at])].as_py() if code[at] >= 0 else ""
            for text, code in zip(texts, codes, strict=True)
        )
        if shapes:
            numbers[number] = inputs.setdefault((names[regions[at]], shapes, types, values), len(inputs))
    return numbers[which]


def _kinds(inputs: Sequence[_Inputs]) -> list[Kind]:
    read = [(name, shapes, types, parsed(shapes, values)) for name, shapes, types, values in inputs]
    seen = {convolution_of(name, each) for name, _, _, each in read}
    known = [each for each in seen if each is not None]
    return [Kind(name, shapes, dtype_of(name, types), product(name, each, known)) for name, shapes, types, each in read]


def _outermost(called: _Candidates, computable: Bools) -> Gemms:
    """Return the outermost operators whose work is known; of the others those neither around nor inside of them."""
    known = computable[called.kind]
    row, last = called.row, called.last_row
    reach = np.maximum.accumulate(np.where(known, last, -1))
    counts = known & (row > np.concatenate(([-1], reach[:-1])))
    # How many known operators begin up to each one's end, and before it.
    before = np.concatenate(([0], np.cumsum(known)))
    end = np.searchsorted(row, last, side="right")
    alone = ~known & (row > reach) & (before[end] == before[np.arange(len(row))])
    reach_alone = np.maximum.accumulate(np.where(alone, last, -1))
    counts |= alone & (row > np.concatenate(([-1], reach_alone[:-1])))
    # The last one inside an operator is the one that computes: linear, linear (cast), addmm.
    innermost = called.kind[end - 1][counts]
    chosen = called.chosen(counts)
    sums = {name: np.zeros(len(chosen), dtype=np.int64) for name in ("device_ns", "replays", "others")}
    device, tf32 = np.full(len(chosen), -1), np.zeros(len(chosen), dtype=bool)
    return Gemms(**vars(chosen), **sums, dtype_kind=innermost, device=device, tf32=tf32)


def _add_kernels(
    trace: Trace, device: Device, index: int, threads: Mapping[int, Gemms], tf32: Bools, without: Bools | None
) -> None:
    """Add the kernels of a GPU to the products that launched them, or captured them into a CUDA graph."""
    # By thread: which products were computed in which launch of a graph, in the stretch before.
    before: dict[int, set[tuple[int, ...]]] = {}
    others: dict[int, list[Ints]] = {location: [] for location in threads}
    for found, launched in launches(trace, device):
        captured = launched.captured
        computes = found.kind == _COMPUTES
        for location, gemms in threads.items():
            own = computes & (launched.operator.location == location)
            row = launched.operator.row[own]
            at = np.searchsorted(gemms.row, row, side="right") - 1
            inside = (at >= 0) & (row <= gemms.last_row[at])
            mine = at[inside]
            np.add.at(gemms.device_ns, mine, (found.end_ns - found.start_ns)[own][inside])
            np.logical_or.at(gemms.tf32, mine, tf32[found.region[own][inside]])
            if without is not None:
                others[location].append(np.unique(mine[without[found.region[own][inside]]]))
            gemms.device[mine] = index
            replayed = np.flatnonzero(own)[inside][captured[own][inside]]
            if len(replayed):
                which = at[inside][captured[own][inside]]
                launch = np.stack((which, launched.call.location[replayed], launched.call.row[replayed]))
                replayed_here = set(zip(*launch.tolist(), strict=True))
                for product, *_ in replayed_here - before.get(location, set()):
                    gemms.replays[product] += 1
                before[location] = replayed_here
            # Kernels that no operator launched count as well.
            bare = computes & (launched.operator.location < 0) & (launched.code.location == location)
            first = np.searchsorted(gemms.start_ns, launched.code.start_ns[bare], side="right")
            following = np.concatenate((at[~inside] + 1, first))
            np.add.at(gemms.others, following[following < len(gemms)], 1)
    for location, products in others.items():
        threads[location].device[np.concatenate([np.zeros(0, dtype=np.int64), *products])] = -1
