"""Matrix products, convolutions and attention of a run: what each computes, on which GPU, and for how long.

Of operators inside each other (linear, addmm) only the outermost counts; the type of its operands is that of the
innermost, as autocast converts them in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from strobe.errors import UsageError
from strobe.gpu.devices import Device, devices
from strobe.gpu.launches import launches
from strobe.gpu.nvidia.peaks import Peak, peak, uses_tf32
from strobe.gpu.work import KINDS
from strobe.operators.flops import ITEM_BYTES, Product, convolution_of, dtype_of, is_product, parsed, product
from strobe.sums.attributes import Attributes
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.trace import Trace

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Why a table about matrix products has no rows, or lacks columns.
NO_SHAPES = (
    "no matrix product whose shapes were recorded: profile with torch.profiler.profile(record_shapes=True) "
    "and open its trace"
)
NO_FLOPS = (
    "{} of {} operators without FLOPs: their shapes alone do not say what is computed (a convolution's stride or "
    "gradients; newer versions of PyTorch record them)"
)
NO_PEAK = "peak unknown for {}: give --peak-gflops and --bandwidth-gb-s"
# Name of an operator, and what the trace holds of its inputs: shapes, types, values.
_Inputs = tuple[str, str, str, str]
_TEXTS = ("shapes", "types", "concrete_inputs")
_COMPUTES = KINDS.index("computation")


@dataclass(frozen=True)
class Kind:
    """An operator with certain inputs. `shapes` as recorded; `product` is None where they do not define it."""

    name: str
    shapes: str
    dtype: str
    product: Product | None

    def moved_bytes(self, dtype: str) -> int | None:
        """Bytes of operands and result of a type, each once; None where unknown."""
        size = ITEM_BYTES.get(dtype)
        return None if size is None or self.product is None else size * self.product.elements


@dataclass
class Gemms:
    """The products that one thread called, in order of start; equally long columns.

    `kind`, `dtype_kind`: numbers of kinds: the one that it counts as, and the innermost one in it. `device`: index of
    the GPU in `devices`, -1 where no kernel is known. `device_ns`: sum of the durations of the kernels launched inside.
    `replays`: launches of the CUDA graph that it was captured into, 0 where it was computed as it was called.
    `others`: kernels that other operators launched between the product before it and this one.
    """

    location: int
    process: int
    row: Ints
    start_ns: Ints
    end_ns: Ints
    call_path: Ints
    last_row: Ints
    kind: Ints
    dtype_kind: Ints
    device: Ints = field(init=False)
    device_ns: Ints = field(init=False)
    replays: Ints = field(init=False)
    others: Ints = field(init=False)
    tf32: Bools = field(init=False)

    def __post_init__(self) -> None:
        """Begin without kernels."""
        self.device = np.full(len(self), -1, dtype=np.int64)
        self.device_ns, self.replays, self.others = (np.zeros(len(self), dtype=np.int64) for _ in range(3))
        self.tf32 = np.zeros(len(self), dtype=bool)

    def __len__(self) -> int:
        """Return the number of products."""
        return len(self.row)

    @property
    def runs(self) -> Ints:
        """How often each was computed."""
        return np.maximum(self.replays, 1)

    def chosen(self, which: Bools) -> Gemms:
        """Return those for which `which` holds, before their kernels are known."""
        columns = (self.row, self.start_ns, self.end_ns, self.call_path, self.last_row, self.kind, self.dtype_kind)
        return Gemms(self.location, self.process, *(column[which] for column in columns))


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
        """Floating-point operations of one call, None where unknown."""
        return self.kind.product.flop if self.kind.product else None

    def hardware(self, trace: Trace) -> str:
        """Return what the trace calls the GPU, or the processor."""
        name = str(_properties(trace, self.device).get("name", "")) if self.device else "the host"
        return name or "a GPU without a name"


@dataclass(frozen=True)
class Found:
    """All products of a run, the kinds that they refer to, and the GPUs."""

    threads: list[Gemms]
    kinds: list[Kind]
    devices: list[Device]

    def dtype(self, kind: int, dtype_kind: int) -> str:
        """Return the type of the operands of a product, "" where unknown."""
        return self.kinds[dtype_kind].dtype or self.kinds[kind].dtype


def find(trace: Trace, without: Bools | None = None) -> Found:
    """Find the matrix products, convolutions and attentions of all ranks, and the kernels that they launched.

    Memory grows with the number of products alone, about 100 bytes each. `without`: by region, kernels that are
    somebody else's matter; products that launched one are as those without a GPU.
    """
    regions = region_rows(trace)
    names = [each.name for each in regions]
    wanted = np.array([each.role == "operator" and is_product(each.name) for each in regions], dtype=bool)
    inputs: dict[_Inputs, int] = {}
    threads = []
    if wanted.any():
        for location in location_rows(trace):
            if location.kind != "stream" and location.span_count:
                number, process = location.location, location.process
                threads.append(_candidates(trace, number, process, wanted, names, inputs))
    kinds = _kinds(list(inputs))
    computable = np.array([kind.product is not None for kind in kinds], dtype=bool)
    threads = [_outermost(gemms, computable) for gemms in threads if len(gemms)]
    found = devices(trace) if threads else []
    by_location = {gemms.location: gemms for gemms in threads}
    tf32 = np.array([uses_tf32(name) for name in names], dtype=bool)
    for index, device in enumerate(found):
        if any(gemms.process == device.process for gemms in threads):
            _add_kernels(trace, device, index, by_location, tf32, without)
    return Found(threads, kinds, found)


def sums(found: Found) -> list[Sum]:
    """Sum what is alike on the same GPU, over all threads of a process."""
    rows: dict[tuple[int, int, str, str, str, bool], Sum] = {}
    for gemms in found.threads:
        columns = (gemms.device, gemms.kind, gemms.dtype_kind, gemms.tf32.astype(np.int64))
        first, which = _alike(columns)
        calls, device_ns, host_ns = (np.zeros(len(first), dtype=np.int64) for _ in range(3))
        np.add.at(calls, which, gemms.runs)
        np.add.at(device_ns, which, gemms.device_ns)
        np.add.at(host_ns, which, gemms.end_ns - gemms.start_ns)
        for at, (device, number, innermost, tf32) in enumerate(np.stack(columns, axis=1)[first].tolist()):
            kind, dtype = found.kinds[number], found.dtype(number, innermost)
            gpu = found.devices[device] if device >= 0 else None
            on_tensor_cores = bool(tf32) and dtype == "float32"
            key = (gemms.process, device, kind.name, kind.shapes, dtype, on_tensor_cores)
            row = rows.setdefault(key, Sum(gemms.process, gpu, kind, dtype, on_tensor_cores))
            row.calls += int(calls[at])
            row.device_ns += int(device_ns[at])
            row.host_ns += int(host_ns[at])
    return list(rows.values())


def stated_peak(gflops: float | None, gb_s: float | None) -> Peak:
    """Return a peak as the user states it. Raises UsageError where it is none."""
    if (gflops is not None and not gflops > 0) or (gb_s is not None and not gb_s > 0):
        raise UsageError("the peak of a GPU is more than 0", do="Give --peak-gflops and --bandwidth-gb-s as positive")
    return Peak(gflops, gb_s)


def peak_of(trace: Trace, device: Device | None, dtype: str, tf32: bool, stated: Peak) -> Peak:
    """Return what a GPU does at most with a type: as stated, else by what GPU the trace names."""
    by_name = peak(_properties(trace, device), "tf32" if tf32 else dtype) if device else Peak()
    return Peak(stated.gflops or by_name.gflops, stated.gb_s or by_name.gb_s)


def _properties(trace: Trace, device: Device) -> Mapping[str, Any]:
    """Return what the recorder, or the imported file, knows about a GPU; empty where that is nothing."""
    for said in trace.device_properties():
        if device.number is not None and said.get("id") == device.number:
            return said
    files = cast("Sequence[Mapping[str, object]]", trace.job.imported.get("files", ()))
    name = trace.files[device.process].blocks.stem if trace.files else ""
    origin = trace.job.processes.get(name, {}).get("file")
    for each in files:
        if origin in (None, each.get("name")):
            told = cast("Mapping[str, object]", each.get("properties") or {}).get("deviceProperties")
            known = [gpu for gpu in told if isinstance(gpu, dict)] if isinstance(told, list) else []
            return next((gpu for gpu in known if gpu.get("id") == device.number), known[0] if len(known) == 1 else {})
    return {}


def _candidates(
    trace: Trace,
    location: int,
    process: int,
    wanted: Bools,
    names: Sequence[str],
    inputs: dict[_Inputs, int],
) -> Gemms:
    """Return all products of a thread whose shapes are known, also those inside each other.

    Adds what their inputs are to `inputs`; kinds are the numbers there.
    """
    attributes = Attributes(trace, "operator_spans", location, _TEXTS)
    done: list[Ints] = []
    still_open = np.zeros((6, 0), dtype=np.int64)
    for spans in trace.span_batches(location):
        (at,) = np.nonzero(wanted[spans["region"]])
        new = np.zeros((6, len(at)), dtype=np.int64)
        start = spans["start_ns"]
        for line, column in enumerate((spans["row"], start, start + spans["duration_ns"], spans["call_path"])):
            new[line] = column[at]
        new[4] = new[0]
        new[5] = _numbered(attributes, new[0], spans["region"][at].astype(np.int64), names, inputs)
        both = np.concatenate((still_open, new[:, new[5] >= 0]), axis=1)
        # Inside a span is what begins before its end.
        inside = int(spans["row"][0]) + np.searchsorted(start, both[2], side="left") - 1
        both[4] = np.maximum(both[4], inside)
        is_open = both[2] > start[-1]
        done.append(both[:, ~is_open])
        still_open = both[:, is_open]
    row, start, end, path, last, kind = np.concatenate((*done, still_open), axis=1) if done else still_open
    order = np.argsort(row)
    return Gemms(location, process, *(column[order] for column in (row, start, end, path, last, kind, kind)))


def _numbered(
    attributes: Attributes, rows: Ints, regions: Ints, names: Sequence[str], inputs: dict[_Inputs, int]
) -> Ints:
    """Return the number of the inputs of each operator, -1 where no shapes were recorded."""
    if not len(rows):
        return rows
    table = attributes.of(rows)
    texts = [table.column(name).combine_chunks().dictionary_encode() for name in _TEXTS]
    codes = [text.indices.fill_null(-1).to_numpy() for text in texts]
    first, which = _alike((regions, *codes))
    numbers = np.full(len(first), -1, dtype=np.int64)
    for number, at in enumerate(first.tolist()):
        shapes, types, values = (
            text.dictionary[int(code[at])].as_py() if code[at] >= 0 else ""
            for text, code in zip(texts, codes, strict=True)
        )
        if shapes:
            numbers[number] = inputs.setdefault((names[regions[at]], shapes, types, values), len(inputs))
    return numbers[which]


def _alike(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the first of each set of equal rows, and of which set every row is. Numbers count from -1 up."""
    first = which = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = which * (int(column.max()) + 2) + column + 1
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return first, which


def _kinds(inputs: Sequence[_Inputs]) -> list[Kind]:
    """Return what operators with these inputs compute."""
    read = [(name, shapes, types, parsed(shapes, values)) for name, shapes, types, values in inputs]
    seen = {convolution_of(name, each) for name, _, _, each in read}
    known = [each for each in seen if each is not None]
    return [Kind(name, shapes, dtype_of(name, types), product(name, each, known)) for name, shapes, types, each in read]


def _outermost(gemms: Gemms, computable: Bools) -> Gemms:
    """Return the outermost operators whose work is known; of the others those neither around nor inside of them."""
    known = computable[gemms.kind]
    row, last = gemms.row, gemms.last_row
    reach = np.maximum.accumulate(np.where(known, last, -1))
    counts = known & (row > np.concatenate(([-1], reach[:-1])))
    # How many known operators begin up to each one's end, and before it.
    before = np.concatenate(([0], np.cumsum(known)))
    end = np.searchsorted(row, last, side="right")
    alone = ~known & (row > reach) & (before[end] == before[np.arange(len(row))])
    reach_alone = np.maximum.accumulate(np.where(alone, last, -1))
    counts |= alone & (row > np.concatenate(([-1], reach_alone[:-1])))
    # The last one inside an operator is the one that computes: linear, linear (cast), addmm.
    innermost = end - 1
    out = gemms.chosen(counts)
    out.dtype_kind = gemms.kind[innermost[counts]]
    return out


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
                there = set(zip(*launch.tolist(), strict=True))
                for product, *_ in there - before.get(location, set()):
                    gemms.replays[product] += 1
                before[location] = there
            # Kernels that no operator launched are in the way all the same.
            bare = computes & (launched.operator.location < 0) & (launched.code.location == location)
            first = np.searchsorted(gemms.start_ns, launched.code.start_ns[bare], side="right")
            following = np.concatenate((at[~inside] + 1, first))
            np.add.at(gemms.others, following[following < len(gemms)], 1)
    for location, products in others.items():
        threads[location].device[np.concatenate([np.zeros(0, dtype=np.int64), *products])] = -1
