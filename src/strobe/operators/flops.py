"""Floating-point operations of PyTorch's operators, and the elements that they must move: from shapes alone.

A multiplication and an addition count as two, so a matrix product takes 2 m n k (m n (2k - 1) to be exact; every peak
of a GPU is stated in the same way). A causal mask is not subtracted, bias and activation are not counted. The counts
are those of `torch.utils.flop_counter`, but for the weight gradient of a convolution in groups: there it counts all
pairs of channels, and only those within a group are multiplied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

Shape = tuple[int, ...]
# Input, weight and output of a convolution.
Convolution = tuple[Shape, Shape, Shape]

# Bytes of an element, by the short name of its type.
ITEM_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8": 1, "int8": 1}
# Types as PyTorch's profiler writes them.
_SHORT = {
    "double": "float64",
    "float": "float32",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8",
    "c10::Float8_e5m2": "float8",
    "signed char": "int8",
}


@dataclass(frozen=True)
class Product:
    """The computation of an operator: `batch` products of (m, k) and (k, n) matrices, or their equivalent.

    Of a convolution m = positions of the output in all images, n = output channels and k = elements of a filter, of
    one group; batch = groups. Of attention m = queries, n = keys, k = size of a head, batch = heads in all; `flop`
    holds both its products. Gradients of these have the numbers of the forward operator. `elements`: of the operands
    and the result, each once, which is the least that is moved.
    """

    batch: int
    m: int
    n: int
    k: int
    flop: int
    elements: int

    @property
    def result_elements(self) -> int:
        """Elements of the result of a matrix product."""
        return self.batch * self.m * self.n


@dataclass(frozen=True)
class Inputs:
    """Inputs of an operator in order: shapes (empty if it is not a tensor), and the values of the others."""

    shapes: tuple[Shape, ...]
    values: tuple[object, ...] = ()

    def shape(self, at: int) -> Shape:
        """Return a shape, empty if there is none."""
        return self.shapes[at] if at < len(self.shapes) else ()

    def value(self, at: int) -> object:
        """Return the value of an input, None if it is not known."""
        return self.values[at] if at < len(self.values) else None


def parsed(shapes: str | None, values: str | None) -> Inputs:
    """Read inputs as the profiler wrote them: `Input Dims` and `Concrete Inputs` as JSON."""
    dims = _json_list(shapes)
    return Inputs(tuple(_shape(each) for each in dims), tuple(_value(each) for each in _json_list(values)))


def dtype_of(name: str, types: str | None) -> str:
    """Return the short name of the type of an operator's operands; "" if unknown."""
    formula = _FORMULAS.get(_base(name))
    given = _json_list(types)
    at = formula[0] if formula else 0
    found = str(given[at]) if at < len(given) else ""
    return _SHORT.get(found, found)


def is_product(name: str) -> bool:
    """Return whether the operator of this name is a matrix product, a convolution or attention."""
    return _base(name) in _FORMULAS


def product(name: str, inputs: Inputs, known: Sequence[Convolution] = ()) -> Product | None:
    """Return the computation of an operator; None if its shapes (and values) do not define it.

    `known`: convolutions of the same trace, for operators whose stride or filter was not recorded. They help if exactly
    one of them fits.
    """
    formula = _FORMULAS.get(_base(name))
    try:
        return formula[1](inputs, known) if formula else None
    except (ValueError, IndexError, TypeError):  # shapes that fit no such operator
        return None


def convolution_of(name: str, inputs: Inputs) -> Convolution | None:
    """Return input, weight and output of a convolution from the shapes of its gradient; None for other operators."""
    base = _base(name)
    if base not in ("convolution_backward", "cudnn_convolution_backward"):
        return None
    gradient, image = (0, 1) if base == "convolution_backward" else (1, 0)
    if inputs.value(7) is True and base == "convolution_backward":  # transposed: the roles are others
        return None
    found = inputs.shape(image), inputs.shape(2), inputs.shape(gradient)
    return found if all(len(each) > 2 for each in found) else None


def matrices(a: Shape, b: Shape, *, bias: Shape = ()) -> Product:
    """Return the product of two matrices, or stacks of them, as `torch.matmul` takes them. Raises ValueError."""
    if not a or not b:
        raise ValueError("a scalar is not a matrix")
    rows = a if len(a) > 1 else (1, *a)
    columns = b if len(b) > 1 else (*b, 1)
    if rows[-1] != columns[-2]:
        raise ValueError(f"{a} and {b} do not fit")
    k, n = columns[-2:]
    if len(columns) == 2:  # one right matrix for all: one product of all rows
        batch, m = 1, prod(rows[:-1])
    else:
        batch, m = prod(_broadcast(rows[:-2], columns[:-2])), rows[-2]
    moved = prod(a) + prod(b) + batch * m * n + (prod(bias) if bias else 0)
    return Product(batch, m, n, k, 2 * batch * m * n * k, moved)


def convolution(image: Shape, weight: Shape, output: Shape, *, transposed: bool = False, gradients: int = 1) -> Product:
    """Return a convolution, or `gradients` of it, each with the same work. Raises ValueError.

    `weight` is (output channels, input channels of a group, filter...), of a transposed convolution (input channels,
    output channels of a group, filter...): there every element of the input meets the filter.
    """
    met, other = (image, output) if transposed else (output, image)
    if len(met) != len(weight) or len(other) != len(weight) or met[1] != weight[0] or other[1] % weight[1]:
        raise ValueError("the shapes are not those of a convolution")
    groups = other[1] // weight[1]
    m, n, k = met[0] * prod(met[2:]), met[1] // groups, prod(weight[1:])
    moved = prod(image) + prod(weight) + prod(output)
    return Product(groups, m, n, k, gradients * 2 * groups * m * n * k, gradients * moved)


def attention(query: Shape, key: Shape, value: Shape, *, backward: bool = False) -> Product:
    """Return attention over (batch, heads, tokens, size of a head). Raises ValueError.

    Forward: query x key and scores x value. Backward five products: the scores anew, the gradients of the scores, of
    value, query and key. Keys may have fewer heads than queries (grouped queries): each then serves several.
    """
    (b, heads, queries, size), (b2, few, keys, size2), (b3, few2, keys2, value_size) = query, key, value
    if (b, size, keys, few) != (b2, size2, keys2, few2) or b != b3 or heads % few:
        raise ValueError("the shapes are not those of attention")
    pairs = 2 * b * heads * queries * keys
    output = b * heads * queries * value_size
    moved = prod(query) + prod(key) + prod(value) + output
    flop = pairs * (3 * size + 2 * value_size) if backward else pairs * (size + value_size)
    return Product(b * heads, queries, keys, size, flop, 2 * moved if backward else moved)


def output_size(image: Shape, weight: Shape, stride: object, padding: object, dilation: object) -> Shape:
    """Return the shape of a convolution's output (the formula of `torch.nn.Conv2d`). Raises ValueError."""
    sizes = len(image) - 2
    options = zip(*(_each(value, sizes) for value in (stride, padding, dilation)), strict=True)
    spatial = (
        (size + 2 * around - apart * (reach - 1) - 1) // step + 1
        for size, reach, (step, around, apart) in zip(image[2:], weight[2:], options, strict=True)
    )
    return (image[0], weight[0], *spatial)


def transposed_size(
    image: Shape, weight: Shape, stride: object, padding: object, dilation: object, extra: object
) -> Shape:
    """Return the shape of a transposed convolution's output (the formula of `torch.nn.ConvTranspose2d`).

    `weight` as without groups; `extra`: the output padding. Raises ValueError.
    """
    sizes = len(image) - 2
    options = zip(*(_each(value, sizes) for value in (stride, padding, dilation, extra)), strict=True)
    spatial = (
        (size - 1) * step - 2 * around + apart * (reach - 1) + more + 1
        for size, reach, (step, around, apart, more) in zip(image[2:], weight[2:], options, strict=True)
    )
    return (image[0], weight[1], *spatial)


_Formula = Callable[[Inputs, Sequence[Convolution]], Product | None]


def _products(a: int, b: int, bias: int | None = None) -> tuple[int, _Formula]:
    """Formula of an operator that multiplies its inputs `a` and `b`."""

    def formula(inputs: Inputs, _: Sequence[Convolution]) -> Product:
        return matrices(inputs.shape(a), inputs.shape(b), bias=() if bias is None else inputs.shape(bias))

    return a, formula


def _linear(inputs: Inputs, _: Sequence[Convolution]) -> Product:
    weight = inputs.shape(1)
    return matrices(inputs.shape(0), (*weight[:-2], weight[-1], weight[-2]), bias=inputs.shape(2))


def _forward(stride: int, padding: int, dilation: int) -> tuple[int, _Formula]:
    """Formula of a convolution; the numbers are the places of its options."""

    def formula(inputs: Inputs, known: Sequence[Convolution]) -> Product | None:
        image, weight = _with_batch(inputs.shape(0), inputs.shape(1)), inputs.shape(1)
        options = [inputs.value(at) for at in (stride, padding, dilation)]
        if all(isinstance(each, list | int) for each in options):
            return convolution(image, weight, output_size(image, weight, *options))
        output = _only({output for i, w, output in known if (i, w) == (image, weight)})
        return None if output is None else convolution(image, weight, output)

    return 0, formula


def _transposed(stride: int, padding: int, dilation: int, extra: int, groups: int) -> tuple[int, _Formula]:
    """Formula of a transposed convolution; the numbers are the places of its options."""

    def formula(inputs: Inputs, _: Sequence[Convolution]) -> Product:
        image, weight = _with_batch(inputs.shape(0), inputs.shape(1)), inputs.shape(1)
        (in_groups,) = _each(inputs.value(groups), 1)
        output = transposed_size(
            image,
            (*weight[:1], weight[1] * in_groups, *weight[2:]),
            *(inputs.value(at) for at in (stride, padding, dilation, extra)),
        )
        return convolution(image, weight, output, transposed=True)

    return 0, formula


def _either(inputs: Inputs, known: Sequence[Convolution]) -> Product | None:
    """convolution(input, weight, bias, stride, padding, dilation, transposed, output padding, groups)."""
    _, formula = _transposed(3, 4, 5, 7, 8) if inputs.value(6) is True else _forward(3, 4, 5)
    return formula(inputs, known)


def _backward(inputs: Inputs, _: Sequence[Convolution]) -> Product | None:
    """convolution_backward(gradient, input, weight, .., .., .., .., transposed, .., .., which gradients)."""
    mask, transposed = inputs.value(10), inputs.value(7)
    if not isinstance(mask, list) or not isinstance(transposed, bool):
        return None
    gradients = sum(map(bool, mask[:2]))  # of input and weight; that of the bias is a sum
    image, weight = inputs.shape(1), inputs.shape(2)
    if not gradients:
        return None
    return convolution(image, weight, inputs.shape(0), transposed=transposed, gradients=gradients)


def _input_gradient(inputs: Inputs, known: Sequence[Convolution]) -> Product | None:
    """cudnn_convolution_backward_input(input sizes, gradient, weight, ...), PyTorch before 1.11."""
    output, weight = inputs.shape(1), inputs.shape(2)
    fits = [convolution(image, weight, output) for image, w, o in known if (w, o) == (weight, output)]
    # They differ in the stride, so in the size of the image, but not in the products: the least counts.
    return min(fits, key=lambda each: each.elements, default=None)


def _weight_gradient(inputs: Inputs, known: Sequence[Convolution]) -> Product | None:
    """cudnn_convolution_backward_weight(weight sizes, gradient, input, ...), PyTorch before 1.11."""
    output, image = inputs.shape(1), inputs.shape(2)
    weight = _only({weight for i, weight, o in known if (i, o) == (image, output)})
    return None if weight is None else convolution(image, weight, output)


def _attends(query: int, *, backward: bool = False, lengths: int | None = None) -> tuple[int, _Formula]:
    """Formula of attention whose query, key and value begin at `query`.

    `lengths`: where the lengths of sequences that were put after each other are; then tokens come before heads.
    """

    def formula(inputs: Inputs, _: Sequence[Convolution]) -> Product | None:
        shapes = [inputs.shape(query + i) for i in range(3)]
        if lengths is not None:
            if inputs.shape(lengths):
                return None  # their shapes do not contain the lengths
            shapes = [(b, heads, tokens, size) for b, tokens, heads, size in shapes]
        return attention(*shapes, backward=backward)

    return query, formula


_KINDS_OF_ATTENTION = (
    *("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention"),
    "fused_attention_overrideable",
)
# By name: which input has the type of the operands, and the formula. Options of convolutions are counted as in
# PyTorch's native_functions.yaml.
_FORMULAS: dict[str, tuple[int, _Formula]] = {
    **dict.fromkeys(("mm", "bmm", "mv", "matmul", "_int_mm", "_scaled_mm"), _products(0, 1)),
    **dict.fromkeys(("addmm", "addmv", "baddbmm", "_addmm_activation"), _products(1, 2, bias=0)),
    "linear": (0, _linear),
    **{f"conv{d}d": _forward(3, 4, 5) for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": _transposed(3, 4, 7, 5, 6) for d in (1, 2, 3)},
    **dict.fromkeys(("convolution", "_convolution", "convolution_overrideable"), (0, _either)),
    "cudnn_convolution": _forward(3, 2, 4),
    **dict.fromkeys(("mkldnn_convolution", "miopen_convolution"), _forward(4, 3, 5)),
    "convolution_backward": (0, _backward),
    "cudnn_convolution_backward": (0, lambda *_: None),  # its gradients show in the operators inside
    "cudnn_convolution_backward_input": (1, _input_gradient),
    "cudnn_convolution_backward_weight": (1, _weight_gradient),
    "scaled_dot_product_attention": _attends(0),
    **{
        f"_scaled_dot_product_{kind}{suffix}": _attends(1 if suffix else 0, backward=bool(suffix))
        for kind in _KINDS_OF_ATTENTION
        for suffix in ("", "_backward")
    },
    "_flash_attention_forward": _attends(0, lengths=3),
    "_efficient_attention_forward": _attends(0, lengths=4),
    "_flash_attention_backward": _attends(1, backward=True, lengths=6),
    "_efficient_attention_backward": _attends(1, backward=True, lengths=6),
}


def _base(name: str) -> str:
    """Return the name of an operator of PyTorch without name space and in-place mark."""
    return name.removeprefix("aten::").rstrip("_") if name.startswith("aten::") else ""


def _broadcast(a: Shape, b: Shape) -> Shape:
    """Return the common shape of two stacks. Raises ValueError."""
    length = max(len(a), len(b))
    left, right = (1,) * (length - len(a)) + a, (1,) * (length - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(left, right, strict=True)):
        raise ValueError(f"{a} and {b} do not fit")
    return tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))


def _with_batch(image: Shape, weight: Shape) -> Shape:
    """Return the shape of a convolution's input; one image may come without the batch of one."""
    return (1, *image) if len(image) == len(weight) - 1 else image


def _only(found: set[Shape]) -> Shape | None:
    return next(iter(found)) if len(found) == 1 else None


def _each(value: object, count: int) -> list[int]:
    """Return an option of a convolution for each of `count` dimensions."""
    values = value if isinstance(value, list) else [value]
    numbers = [each for each in values if isinstance(each, int)]
    if len(numbers) != len(values) or len(numbers) not in (1, count):
        raise ValueError("no number for each dimension")
    return numbers * count if len(numbers) == 1 else numbers


def _json_list(text: str | None) -> list[object]:
    found = _json(text or "[]")
    return found if isinstance(found, list) else []


def _json(text: str) -> object:
    """Return what a text holds as JSON, None if it is none."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    return found


def _shape(dims: object) -> Shape:
    return tuple(dims) if isinstance(dims, list) and all(type(size) is int for size in dims) else ()


def _value(text: object) -> object:
    """Return a value as Python writes it: `[2, 2]`, `False`; None for anything else."""
    return _json(text.replace("True", "true").replace("False", "false")) if isinstance(text, str) else None
