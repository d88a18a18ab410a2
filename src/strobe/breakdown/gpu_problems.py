"""Which problem each activity of a GPU belongs to: one each, so that two rules never count the same time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from strobe.breakdown.gpu_step import GpuStep, gpu_step
from strobe.gpu.capabilities import properties_of
from strobe.gpu.nvidia.peaks import TF32, Peak, peak
from strobe.gpu.work import KINDS
from strobe.operators.flops import ITEM_BYTES, Product, dtype_of, is_product, parsed, product
from strobe.sums.attributes import Attributes
from strobe.tables.column_arrays import Bools, Ints, alike, rows_by
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# In order: the first that fits counts.
PROBLEMS = (
    "zeros",  # gradients that are filled with zeros
    "copy",
    "communication",
    "optimizer",  # one kernel and more for each parameter
    "attention",  # products with a softmax between them
    "layout",  # transforms of the layout of images
    "contiguous",  # copies that only reorder elements
    "concatenation",
    "scatter",  # atomic additions
    "algorithm",  # convolutions by algorithms that work for all shapes, or for large filters
    "fp64",
    "fp32",  # products without tensor cores, where the GPU has them
    "misaligned",
    "inefficient",  # far from the peaks of the GPU, or of a shape that is
    "product",
    "elementwise",
    "reduction",
    "other",
)
_OPTIMIZER = re.compile(r"^Optimizer\.step#")
_ZEROES = re.compile(r"^Optimizer\.zero_grad|^zero_grad$")
_ACCUMULATES = re.compile(r"AccumulateGrad")
_WHOLE_OPTIMIZER = re.compile(r"multi_tensor|fused_?(adam|sgd|lamb)|FusedAdam|foreach", re.I)
_SOFTMAX = re.compile(r"^aten::_softmax(_backward_data)?$|^aten::softmax")
_BATCHED = re.compile(r"^aten::(bmm|baddbmm)")
_LAYOUT = re.compile(r"nchw_?to_?nhwc|nhwc_?to_?nchw|convert_?tensor|batched_transpose", re.I)
_MOVES = re.compile(r"copy|transpose|permute", re.I)
_REORDERS = re.compile(r"^aten::(contiguous|clone|reshape|permute|_reshape_alias)$|^(Clone|Permute|Transpose)Backward")
_CONCATENATES = re.compile(r"CatArray", re.I)
_SCATTER = re.compile(
    r"embedding_(dense_)?backward|embedding_bag.*backward|EmbeddingBackward|indexing_backward|index_put|index_add"
    r"|scatter_(add|reduce|gather)|atomic|grid_(sampl\w+_)?backward",  # of hash grids, too
    re.I,
)
_ELEMENTWISE = re.compile(r"elementwise|fused_dropout", re.I)
_REDUCES = re.compile(r"reduce_kernel|softmax|norm|reduction", re.I)
_PRODUCT = re.compile(r"gemm|gemv|xmma|cutlass|conv|winograd|cijk|nvjet|wgrad|dgrad|fprop", re.I)
# cuDNN's for any shape (also the deterministic ones), MIOpen's last resort, Fourier transforms with their complex
# products, and what makes a matrix product of a convolution.
_ALGORITHM = re.compile(
    r"implicit_convolve_|(dgrad|wgrad)(_alg\d+)?_engine|naive_conv|fft2d_|cgemm|gemv\w*float2"
    r"|im2col|col2im|vol2col|vol2im",
    re.I,
)
_SINGLE = re.compile(r"(?<![a-z])sgemm|f32f32_f32f32_f32_|scudnn|simt_s|_fp32_", re.I)
_DOUBLE = re.compile(r"(?<![a-z])dgemm|f64f64|d884", re.I)
_BAD_ALIGNMENT = re.compile(r"align[124](?!\d)")
_INPUTS = ("shapes", "types", "concrete_inputs")
_BETWEEN = 12  # activities between a product and the softmax: scale, mask, dropout, casts
WELL = 0.4  # of what computing or moving takes at the peak; good kernels reach 0.6 to 0.8
_WELL_ATTENTION = 0.25  # FlashAttention 2 reaches 0.35 on an H100, less going backward
_WORTH = 0.05  # of a step: less by slow algorithms counts as what else is wrong with it
_SHORT = 64  # tokens: less than a tile of fused attention
# Libraries compute the statistics of a batch and normalise with them in one kernel, faster than compilers do in two.
_BATCH_NORM = re.compile(r"batch_?norm|bn_(fw_tr|bw)", re.I)
_LEAST_IN_CHAIN = 3  # kernels, two of which work by element: of two in a row, one third is saved at best
_LONG_NS = 50_000  # shorter kernels do not reach the peak anyway
_LEAST_FLOP = 1e8  # of products whose sizes matter
_TOKENS = 32  # for each expert: fewer do not fill a tile of a product
_TILES = 32  # 128 x 128 elements of a result each: fewer leave any GPU of a data centre mostly empty


class Kind(NamedTuple):
    """An operator with certain inputs: what it computes, and why that is slow on any GPU; None and "" if unknown."""

    operator: str = ""
    shapes: str = ""
    dtype: str = ""
    product: Product | None = None
    cause: str = ""


@dataclass(frozen=True)
class Problems:
    """The GPU's step, and of each activity the problem (index in PROBLEMS) and kind of operator (index in `kinds`)."""

    step: GpuStep
    problem: Ints
    kinds: list[Kind]
    kind: Ints

    def of(self, *names: str) -> Bools:
        """Return which activities have one of these problems."""
        found: Bools = np.isin(self.problem, [PROBLEMS.index(name) for name in names])
        return found

    def kind_of(self, at: int) -> Kind:
        """Return the operator that launched an activity."""
        return self.kinds[int(self.kind[at])]

    def peak_gflops(self, dtype: str) -> float:
        """Return the peak of the GPU for a type, 0 if unknown."""
        return _peak(self.step, dtype).gflops or 0.0

    def least_ns(self, kind: Kind, dtype: str = "") -> float:
        """Return the least time of an operator, on the units for a type (or its own), ns; 0 if unknown.

        That of elementwise operators is to read all inputs and write as much as the largest one.
        """
        peak, size = _peak(self.step, dtype or kind.dtype), ITEM_BYTES.get(dtype or kind.dtype, 4)
        if kind.product is not None and peak.gflops and peak.gb_s:
            return max(kind.product.flop / peak.gflops, kind.product.elements * size / peak.gb_s)
        elements = [prod(shape) for shape in parsed(kind.shapes, "").shapes if shape]
        if not elements or kind.product is not None or not kind.dtype or not peak.gb_s:
            return 0.0
        return (sum(elements) + max(elements)) * size / peak.gb_s

    def took_ns(self, which: Bools) -> Ints:
        """Return of each of these activities how long all of them took that its operator launched; else 0."""
        step, out = self.step, np.zeros(len(self.problem), dtype=np.int64)
        (at,) = np.nonzero(which & (step.operator.row >= 0))
        if len(at):
            _, execution = alike((step.operator.location[at], step.operator.row[at]))
            length = (step.work.end_ns - step.work.start_ns)[at]
            out[at] = np.bincount(execution, length).astype(np.int64)[execution]
        return out


@cached_on_trace
def gpu_problems(trace: Trace) -> Problems | None:
    """Return the problems of what the busiest GPU of the main process ran; None without a GPU."""
    step = gpu_step(trace)
    if step is None:
        return None
    kinds, kind = _kinds(step)
    found = Problems(step, np.full(len(kind), PROBLEMS.index("other")), kinds, kind)

    def of_kind(holds: Callable[[Kind], bool]) -> Bools:
        which: Bools = np.array([holds(each) for each in kinds], dtype=bool)[kind]
        return which

    elementwise, reduces = step.named(_ELEMENTWISE), step.named(_REDUCES)
    typed = of_kind(lambda k: k.dtype != "" and is_product(k.operator))
    computes = step.named(_PRODUCT) | (of_kind(lambda k: is_product(k.operator)) & ~elementwise & ~reduces)
    single = np.where(typed, of_kind(lambda k: k.dtype == "float32"), step.named(_SINGLE)) & ~step.named(TF32)
    double = np.where(typed, of_kind(lambda k: k.dtype == "float64"), step.named(_DOUBLE))
    optimizer = step.under(_OPTIMIZER)
    optimizer &= not (optimizer & step.named(_WHOLE_OPTIMIZER)).any()
    plain, tensor = found.peak_gflops("float32"), max(found.peak_gflops("tf32"), found.peak_gflops("float16"))
    has_tensor_cores = tensor > 1.5 * plain or not plain  # an unknown GPU has them
    took = found.took_ns(computes | elementwise | of_kind(lambda k: "moe" in k.operator))
    least = np.array([found.least_ns(each) for each in kinds])[kind]
    least[~elementwise & of_kind(lambda k: k.product is None)] = 0
    well = np.where(of_kind(lambda k: "attention" in k.operator), _WELL_ATTENTION, WELL)
    slow = np.where(least > 0, least < well * took, of_kind(lambda k: k.cause != ""))
    algorithm = step.named(_ALGORITHM) & of_kind(lambda k: "conv" in k.operator) & (slow | (least == 0))
    zeros = step.under(_ZEROES)
    if zeros.any():  # then the backward pass adds to them
        zeros |= step.under(_ACCUMULATES) & elementwise
    fits: dict[str, Bools] = {
        "zeros": zeros,
        "copy": step.work.kind == KINDS.index("copy"),
        "communication": step.work.kind == KINDS.index("communication"),
        "optimizer": optimizer,
        "attention": _attention(found),
        "layout": step.named(_LAYOUT),
        "contiguous": step.named(_MOVES) & step.under(_REORDERS),
        "concatenation": step.named(_CONCATENATES),
        "scatter": step.named(_SCATTER),
        "algorithm": algorithm if step.share(step.exposed_ns(algorithm)) >= _WORTH else np.zeros_like(algorithm),
        "fp64": computes & double,
        "fp32": computes & single & of_kind(lambda k: k.cause != "depthwise") & has_tensor_cores,
        "misaligned": computes & (of_kind(_is_odd) | step.named(_BAD_ALIGNMENT)),
        "inefficient": slow & (took > _LONG_NS),
        "product": computes,
        "elementwise": elementwise,
        "reduction": reduces,
    }
    for name, which in reversed(fits.items()):
        found.problem[which] = PROBLEMS.index(name)
    return found


def chains(found: Problems, among: Bools) -> tuple[Ints, Ints]:
    """Return the number of each activity's chain of elementwise kernels, -1 for none, and the lengths of the chains.

    A chain: kernels (of those `among` all) that work by element, or reduce, and directly follow each other on a stream.
    """
    step = found.step
    fits: Bools = found.of("elementwise", "reduction") & step.wanted & among & ~step.named(_BATCH_NORM)
    elementwise = found.of("elementwise")
    chain, lengths = np.full(len(step.work), -1, dtype=np.int64), list[int]()
    for location in np.unique(step.work.location[fits]).tolist():
        at = np.flatnonzero(step.work.location == location)
        runs = np.split(at, np.flatnonzero(np.diff(fits[at])) + 1)
        for each in runs:
            if fits[each[0]] and len(each) >= _LEAST_IN_CHAIN and int(elementwise[each].sum()) >= 2:
                chain[each] = len(lengths)
                lengths.append(len(each))
    return chain, np.array(lengths, dtype=np.int64)


def _peak(step: GpuStep, dtype: str) -> Peak:
    return peak(properties_of(step.trace, step.device.number, step.device.process), dtype)


def _kinds(step: GpuStep) -> tuple[list[Kind], Ints]:
    """Return the kinds of operators, and which of them launched each activity; the first one is unknown."""
    numbers, kind = {("", "", "", ""): 0}, np.zeros(len(step.work), dtype=np.int64)
    for location, at in rows_by(np.where(step.operator.row >= 0, step.operator.location, -1)):
        if location >= 0:
            rows, first, which = np.unique(step.operator.row[at], return_index=True, return_inverse=True)
            table = Attributes(step.trace, "operator_spans", location, _INPUTS).of(rows)
            names = [step.names[region] for region in step.operator.region[at[first]].tolist()]
            texts = ([each or "" for each in table.column(name).to_pylist()] for name in _INPUTS)
            keys = zip(names, *texts, strict=True)
            kind[at] = np.array([numbers.setdefault(key, len(numbers)) for key in keys])[which]
    return [_kind(*key) for key in numbers], kind


def _kind(operator: str, shapes: str, types: str, values: str) -> Kind:
    found = product(operator, parsed(shapes, values)) if shapes and is_product(operator) else None
    if found is not None and "attention" in operator and found.m < _SHORT:
        found = None
    dtype = dtype_of(operator, types)
    return Kind(operator, shapes, dtype if dtype in ITEM_BYTES else "", found, _cause(found, operator, shapes))


def _cause(found: Product | None, operator: str, shapes: str) -> str:
    """Return why an operator with such inputs is slow on any GPU; "" if they do not explain it."""
    inputs = parsed(shapes, "").shapes
    if "conv" in operator:
        filters = next(iter(inputs[2 if "backward" in operator else 1 :]), ())
        return "depthwise" if len(filters) > 2 and filters[1] == 1 < filters[0] else ""
    if "moe" in operator and len(inputs) > 3 and len(inputs[1]) == 3 and inputs[3]:
        return "few tokens" if prod(inputs[3]) < _TOKENS * inputs[1][0] else ""
    if found is None or "attention" in operator:
        return ""
    tiles = found.batch * -(-found.m // 128) * -(-found.n // 128)
    if tiles <= _TILES and found.k >= 16 * max(found.m, found.n):
        return "few tiles"
    sizes = found.m, found.n, found.k
    return "thin" if min(sizes) <= 32 and max(sizes) >= 4096 else ""


def _is_odd(kind: Kind) -> bool:
    """Return whether rows of an operand or of the result of a large product are no multiple of 16 bytes."""
    found = kind.product
    if found is None or kind.dtype not in ("float16", "bfloat16") or re.search("conv|attention", kind.operator):
        return False
    return found.flop >= _LEAST_FLOP and bool(found.k % 8 or found.n % 8)


def _attention(found: Problems) -> Bools:
    """Return the activities of attention that is not fused: from a batched product over a softmax to the next one."""
    step, out = found.step, np.zeros(len(found.kind), dtype=bool)
    softmax, batched = (
        np.array([bool(pattern.search(each.operator)) for each in found.kinds])[found.kind]
        for pattern in (_SOFTMAX, _BATCHED)
    )
    order = np.argsort(np.where(step.call.row >= 0, step.call.start_ns, step.work.start_ns), kind="stable")
    products = np.flatnonzero(batched[order])
    for at in np.flatnonzero(softmax[order]).tolist():
        after = int(np.searchsorted(products, at))
        if 0 < after < len(products) and products[after] - products[after - 1] <= 2 * _BETWEEN:
            out[order[products[after - 1] : products[after] + 1]] = True
    return out
