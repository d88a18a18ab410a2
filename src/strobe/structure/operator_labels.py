"""What operators are summed by: name, type, shapes of the inputs, module, line. A label for each operator of a trace.

Names, and the Python around operators, follow from call paths; shapes, call stacks and module hierarchies are
attributes of each operator. Either way operators get *nodes*: numbers of a tree in which a node's parent is what is
around it, so that what they cost can be summed by node first, and each label of a chain be counted once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strobe.structure.attributes import Attributes
from strobe.structure.groups import Groups, Texts
from strobe.structure.statistics import outermost, path_tree

if TYPE_CHECKING:
    from strobe.store.trace import SpanArrays, Trace
    from strobe.structure.launches import Numbering

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# What a table shows of a label, a cell for each of its columns.
Cells = tuple[str | None, ...]

MODULE = "nn.Module: "
_BACKWARD = re.compile(r"^(?:autograd::engine::evaluate_function: )?(?:torch::autograd::)?(\w+?)Backward\d*$")
# Frames of installed packages, of the interpreter, and of what torch.profiler shortens to a path below sys.path.
_INSTALLED = re.compile(r"(^|[/\\])(site-packages|dist-packages|python\d[.\d]*)[/\\]|^<")
_SHORTENED = frozenset({"torch", "torchvision", "torchaudio", "torchdata", "functorch", "numpy", "triton"})
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)")


def type_of(name: str) -> str:
    """Return the type of an operator: its name without name space, in-place mark and variant.

    `aten::add_` and `aten::add` are `add`; `ConvolutionBackward0` and `aten::convolution_backward` are `convolution
    backward`.
    """
    backward = _BACKWARD.match(name)
    if backward:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", backward[1]).lower()
        return f"{words.strip('_')} backward"
    if name.startswith("Optimizer."):
        return name.partition("#")[0]
    base = name.rpartition("::")[2].partition("#")[0].strip("_")
    return f"{base.removesuffix('_backward')} backward" if base.endswith("_backward") else base


def is_users(file: str) -> bool:
    """Whether a source file is none of Python's own, of PyTorch, or of an installed package."""
    if not file or _INSTALLED.search(file):
        return False
    first = re.split(r"[/\\]", file)[0].removesuffix(".py")
    return first not in _SHORTENED and first not in sys.stdlib_module_names


def operators_of(trace: Trace) -> Bools:
    """By region: whether it is an operator, or a range that PyTorch reports like one (optimizer steps, autograd)."""
    regions = trace.regions.to_arrow().to_pylist()
    return np.array(
        [r["role"] == "operator" or (r["paradigm"] == "torch" and r["role"] == "range") for r in regions], dtype=bool
    )


class Labels:
    """The labels of a trace's operators by their call paths. `cells`: what a table shows of each label.

    `known`: whether the trace holds what the labels are made of; else there is nothing that tells operators apart.
    """

    def __init__(self, trace: Trace, cells_of_region: Sequence[Cells | None], around: Bools | None = None) -> None:
        """Label operators with the cells of their own region, or with those of the innermost region `around` them."""
        self.is_operator = operators_of(trace)
        parent, region = path_tree(trace)
        number: dict[Cells, int] = {}
        nothing: Cells = (None,) * max((len(cells) for cells in cells_of_region if cells), default=1)
        for cells in (*cells_of_region, nothing):
            number.setdefault(cells or nothing, len(number))
        self.cells: list[Cells] = list(number)
        of_region = np.array([number[cells or nothing] for cells in cells_of_region], dtype=np.int64)
        by = np.arange(len(parent)) if around is None else _innermost(parent, around[region])
        labels = np.where(by >= 0, of_region[region[by]], number[nothing]) if len(parent) else parent
        self._label: Ints = np.where(self.is_operator[region], labels, -1)
        self._parent = parent
        self.known = True if around is None else bool(around.any())

    def of_path(self, call_path: Ints) -> Ints:
        """Return the labels of the operators at the ends of these call paths, -1 for what is no operator."""
        return self._label[call_path]

    def numbering(self, location: int) -> Numbering:
        """Return what gives the spans of a location their nodes: here, their call paths."""
        return lambda spans, new: spans["call_path"].astype(np.int64)

    def tree(self) -> tuple[Ints, Ints, Bools]:
        """Return parent (-1 at the root) and label of all nodes, and which of them lie in no other of their label."""
        return self._parent, self._label, outermost(self._parent, self._label)


class AttributeLabels(Labels):
    """Labels that follow from an attribute of each operator."""

    def __init__(
        self, trace: Trace, column: str, cells_of: Callable[[str, str], Cells], *, names: bool, inherited: bool
    ) -> None:
        """Label operators with `cells_of(name, attribute)`; names do not count without `names`.

        Operators that lack the attribute have the label of the one around them if it is `inherited`.
        """
        self.is_operator = operators_of(trace)
        self._trace, self._column, self._cells_of = trace, column, cells_of
        self._inherited = inherited
        self._names = cast("list[str]", trace.regions.column("name")) if names else []
        self._texts, self._pairs, self._nodes = Texts(), Groups(), Groups()
        self._label_of_pair: list[int] = []
        self._number: dict[Cells, int] = {}
        self.cells, self.known = [], False
        self._region_of_path = path_tree(trace)[1]

    def of_path(self, call_path: Ints) -> Ints:
        """Return the labels of operators of which no more is known than their call paths."""
        region = self._region_of_path[call_path]
        missing = np.full(len(region), -1, dtype=np.int64)
        return np.where(self.is_operator[region], self._labels(region, missing, missing), -1)

    def numbering(self, location: int) -> Numbering:
        """Return what gives the spans of a location their nodes; stretches must come in order of time."""
        attributes = Attributes(self._trace, "operator_spans", location, (self._column,))
        open_rows = open_nodes = np.zeros(0, dtype=np.int64)

        def number(spans: SpanArrays, new: Ints) -> Ints:
            nonlocal open_rows, open_nodes
            row = spans["row"]
            node = np.full(len(row), -1, dtype=np.int64)
            at = np.minimum(np.searchsorted(open_rows, row), max(0, len(open_rows) - 1))
            if len(open_rows):
                node = np.where(open_rows[at] == row, open_nodes[at], -1)
            self._number_new(spans, new, node, attributes)
            if len(new):
                still = spans["start_ns"] + spans["duration_ns"] >= spans["start_ns"][new[-1]]
                open_rows, open_nodes = row[still], node[still]
            return node

        return number

    def tree(self) -> tuple[Ints, Ints, Bools]:
        """Return the same as of call paths, of the nodes so far."""
        keys = np.array(self._nodes.keys, dtype=np.int64).reshape(-1, 2)
        return keys[:, 0], keys[:, 1], outermost(keys[:, 0], keys[:, 1])

    def _number_new(self, spans: SpanArrays, new: Ints, node: Ints, attributes: Attributes) -> None:
        """Fill in the nodes of the new spans, from the outermost to the innermost. Others have that around them."""
        region = spans["region"][new].astype(np.int64)
        operator = self.is_operator[region]
        text = np.full(len(new), -1, dtype=np.int64)
        column = attributes.of(spans["row"][new[operator]]).column(self._column)
        text[operator] = self._texts.numbers(pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column))
        self.known |= bool((text >= 0).any())
        parent = spans["parent"][new]
        above = np.where(parent >= 0, np.searchsorted(spans["row"], np.maximum(parent, 0)), -1)
        depth = spans["depth"][new]
        order = np.argsort(depth, kind="stable")
        ends = np.flatnonzero(np.diff(depth[order])) + 1
        for level in np.split(order, ends) if len(order) else ():
            around = np.where(above[level] >= 0, node[above[level]], -1)
            node[new[level]] = around
            which = operator[level]
            here, outer = level[which], around[which]
            if len(here):
                label = self._labels(region[here], text[here], outer)
                node[new[here]] = self._nodes.numbers([outer, label])

    def _labels(self, region: Ints, text: Ints, outer: Ints) -> Ints:
        """Return the labels of operators by region, number of the attribute's text, and node of what is around."""
        pair = self._pairs.numbers([region if self._names else np.zeros_like(region), text])
        for name, attribute in self._pairs.keys[len(self._label_of_pair) :]:
            cells = self._cells_of(self._names[name] if self._names else "", self._texts.text(attribute) or "")
            self._label_of_pair.append(self._number.setdefault(cells, len(self._number)))
        self.cells = list(self._number)
        label = np.array(self._label_of_pair, dtype=np.int64)[pair]
        if self._inherited and len(self._nodes):
            of_node = np.array(self._nodes.keys, dtype=np.int64)[:, 1]
            label = np.where((text < 0) & (outer >= 0), of_node[outer], label)
        return label


def labels_by(trace: Trace, by: str) -> Labels:
    """Return the labels of a trace's operators: by `name`, `type`, `shape`, `module` or `line`."""
    regions = trace.regions.to_arrow().to_pylist()
    if by == "shape":
        return AttributeLabels(
            trace, "shapes", lambda name, shapes: (name, shapes or None), names=True, inherited=False
        )
    if by == "module":
        modules = [_module_of(region) for region in regions]
        named = any(region["name"].startswith(MODULE) for region in regions)
        if named:
            modules = [
                each if region["name"].startswith(MODULE) else None
                for each, region in zip(modules, regions, strict=True)
            ]
        if any(modules):
            return Labels(trace, [(each,) if each else None for each in modules], _there(modules))
        return AttributeLabels(trace, "module_hierarchy", lambda _, text: (text or None,), names=False, inherited=True)
    if by == "line":
        lines = [_line_of(region) for region in regions]
        if any(lines):
            return Labels(trace, lines, _there(lines))
        return AttributeLabels(trace, "call_stack", lambda _, text: line_of_stack(text), names=False, inherited=True)
    return Labels(trace, [(type_of(r["name"]) if by == "type" else r["name"],) for r in regions])


def line_of_stack(stack: str) -> tuple[str | None, str | None]:
    """Return file:line and function of the innermost frame of a call stack of PyTorch that is the user's own.

    Frames are `file.py(12): function`, innermost first, with semicolons between them.
    """
    for frame in stack.split(";"):
        found = _FRAME.fullmatch(frame.strip())
        if found and is_users(found["file"]):
            return f"{found['file']}:{found['line']}", found["function"]
    return None, None


def _module_of(region: Mapping[str, object]) -> str | None:
    """Return the module that a region is a call of: as PyTorch names it, else the class of a function `forward`."""
    name = str(region["name"])
    if region["paradigm"] != "python" or region["role"] != "function":
        return None
    if name.startswith(MODULE):
        return name.removeprefix(MODULE)
    return name.removesuffix(".forward") if name.endswith(".forward") else None


def _line_of(region: Mapping[str, object]) -> Cells | None:
    """Return where a function of the user's own is, None for anything else."""
    file = str(region["file"])
    if region["paradigm"] != "python" or region["role"] != "function" or not is_users(file):
        return None
    return f"{file}:{region['line']}", str(region["name"])


def _there(values: Sequence[object]) -> Bools:
    return np.array([value is not None for value in values], dtype=bool)


def _innermost(parent: Ints, wanted: Bools) -> Ints:
    """Return for each call path the innermost one that is wanted, of itself and those above it; -1 if none is."""
    at = np.arange(len(parent))
    while len(left := np.flatnonzero((at >= 0) & ~wanted[at])):
        at[left] = parent[at[left]]
    return at
