"""The labels by which operators are summed: name, type, shapes of the inputs, module, line.

Names, and the Python around operators, follow from call paths; shapes, call stacks and module hierarchies are
attributes of each operator. Either way operators get *nodes*: numbers of a tree in which the parent of a node is the
node around it. So costs are summed by node first, and each label of a chain counts once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from strobe.gpu.launches import Launches, Numbering
from strobe.gpu.work import Work
from strobe.steps.thread_spans import innermost
from strobe.sums.attributes import Attributes, integers
from strobe.sums.groups import Groups, Texts
from strobe.sums.path_statistics import outermost
from strobe.tables.column_arrays import Bools, Ints, place_of
from strobe.trace.definition_rows import (
    Region,
    location_rows,
    path_tree,
    processes_of_locations,
    region_rows,
    regions_where,
)
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

# The cells of a table for a label, one for each of its columns.
Cells = tuple[str | None, ...]

# Number of cells by kind of label; the others have 1.
CELLS = {"shape": 2, "line": 2}
MODULE = "nn.Module: "
_BACKWARD = re.compile(r"^(?:autograd::engine::evaluate_function: )?(?:torch::autograd::)?(\w+?)Backward\d*$")
# Frames of installed packages, of the interpreter, and paths that torch.profiler shortens to those below sys.path.
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
    """Whether a source file belongs to the user: not to Python, PyTorch, or an installed package."""
    if not file or _INSTALLED.search(file):
        return False
    first = re.split(r"[/\\]", file)[0].removesuffix(".py")
    return first not in _SHORTENED and first not in sys.stdlib_module_names


def operators_of(trace: Trace) -> Bools:
    """By region: whether it is an operator, or a range that PyTorch reports like one (optimizer steps, autograd)."""
    return regions_where(trace, lambda r: r.role == "operator" or (r.paradigm == "torch" and r.role == "range"))


class Labels:
    """The labels of a trace's operators by their call paths. `cells`: the cells of a table for each label.

    `known`: whether the trace contains the labels; else operators cannot be distinguished.
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
        by = np.arange(len(parent)) if around is None else innermost(parent, around[region])
        labels = np.where(by >= 0, of_region[region[by]], number[nothing]) if len(parent) else parent
        self._label: Ints = np.where(self.is_operator[region], labels, -1)
        self._parent = parent
        self._once = outermost(parent, self._label)
        self.known = True if around is None else bool(around.any())

    def of_path(self, call_path: Ints) -> Ints:
        """Return the labels of the operators at the ends of these call paths, -1 for other regions."""
        return self._label[call_path]

    def numbering(self, location: int) -> Numbering:
        """Return the function that gives the spans of a location their nodes: here, their call paths."""
        return lambda spans, new: spans["call_path"].astype(np.int64)

    def of_work(self, found: Work, launched: Launches) -> Ints:
        """Return the nodes of activities of a GPU: those around the calls whose code wants them; -1 for none."""
        return launched.path

    def tree(self) -> tuple[Ints, Ints, Bools]:
        """Return parent (-1 at the root) and label of all nodes, and which of them lie in no other of their label."""
        return self._parent, self._label, self._once


class AttributeLabels(Labels):
    """Labels that follow from an attribute of each operator."""

    # Side table and columns that labels are made of.
    columns: tuple[str, ...] = ()

    def __init__(
        self, trace: Trace, column: str, cells_of: Callable[[str, str], Cells], *, names: bool, inherited: bool
    ) -> None:
        """Label operators with `cells_of(name, attribute)`; names do not count without `names`.

        Operators that lack the attribute have the label of the one around them if it is `inherited`.
        """
        self.is_operator = operators_of(trace)
        self.columns = (column,)
        self._trace, self._cells_of, self._inherited = trace, cells_of, inherited
        self._names = [region.name for region in region_rows(trace)] if names else []
        self._texts, self._pairs = Texts(), Groups()
        self._label_of_pair: list[int] = []
        self._number: dict[Cells, int] = {}
        self.cells, self.known = [], False
        self._region_of_path = path_tree(trace)[1]
        self._nodes, self._known_nodes = Groups(), np.zeros((0, 3), dtype=np.int64)

    def of_path(self, call_path: Ints) -> Ints:
        """Return the labels of operators that are known by their call paths only."""
        region = self._region_of_path[call_path].astype(np.int64)
        labels = self._numbers(region, np.full(len(region), -1, dtype=np.int64))
        return np.where(self.is_operator[region], labels, -1)

    def numbering(self, location: int) -> Numbering:
        """Return the function that gives the spans of a location their nodes; stretches must come in order of time."""
        attributes = Attributes(self._trace, "operator_spans", location, self.columns)
        open_rows = open_nodes = np.zeros(0, dtype=np.int64)

        def number(spans: SpanArrays, new: Ints) -> Ints:
            nonlocal open_rows, open_nodes
            row = spans["row"]
            node = np.append(open_nodes, -1)[place_of(row, open_rows)]
            (at,) = np.nonzero(self.is_operator[spans["region"][new]])
            own = self._own_labels(spans, new[at], attributes.of(row[new[at]]), location)
            self._add_nodes(spans, new, at, own, node)
            if len(new):
                still = spans["start_ns"] + spans["duration_ns"] >= spans["start_ns"][new[-1]]
                open_rows, open_nodes = row[still], node[still]
            return node

        return number

    def tree(self) -> tuple[Ints, Ints, Bools]:
        """Return the same as of call paths, of the nodes so far."""
        parent, label, _ = self._node_columns().T
        return parent, label, outermost(parent, label)

    def _node_columns(self) -> Ints:
        """Return the nodes so far, a row each: parent, label, whether that holds for all inside."""
        new = self._nodes.keys[len(self._known_nodes) :]
        if new:
            self._known_nodes = np.concatenate((self._known_nodes, np.array(new, dtype=np.int64)))
        return self._known_nodes

    def _own_labels(self, spans: SpanArrays, at: Ints, attributes: pa.Table, location: int) -> tuple[Ints, Bools]:
        """Return the labels of operators, and whether these hold for all operators inside.

        The latter is true for a label of the operator's own; the others inherit the label around them, if that holds.
        """
        import pyarrow.compute as pc  # 13 MB, which most commands do not need

        column = attributes.column(self.columns[0])
        text = self._texts.numbers(pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column))
        self.known |= bool((text >= 0).any())
        labels = self._numbers(spans["region"][at].astype(np.int64), text)
        return labels, (text >= 0) | (not self._inherited)

    def _add_nodes(self, spans: SpanArrays, new: Ints, at: Ints, own: tuple[Ints, Bools], node: Ints) -> None:
        """Fill in the nodes of new spans, from the outermost to the innermost; spans new[at] are operators.

        Other spans have the node around them. A node consists of the node around it, its label, and whether that label
        holds for all inside.
        """
        label, holds = (np.zeros(len(new), dtype=np.int64) for _ in range(2))
        label[at], holds[at] = own
        operator = np.zeros(len(new), dtype=bool)
        operator[at] = True
        parent = spans["parent"][new]
        above = np.where(parent >= 0, np.searchsorted(spans["row"], np.maximum(parent, 0)), -1)
        depth = spans["depth"][new]
        order = np.argsort(depth, kind="stable")
        for level in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if len(order) else ():
            around = np.where(above[level] >= 0, node[above[level]], -1)
            node[new[level]] = around
            here, outer = level[operator[level]], around[operator[level]]
            if not len(here):
                continue
            if not holds[here].all() and len(self._nodes):
                _, outer_label, outer_holds = self._node_columns()[outer].T
                inherits = (holds[here] == 0) & (outer >= 0) & (outer_holds == 1)
                label[here] = np.where(inherits, outer_label, label[here])
                holds[here] |= inherits
            node[new[here]] = self._nodes.numbers([outer, label[here], holds[here]])

    def _numbers(self, region: Ints, text: Ints) -> Ints:
        """Return the labels of operators by region and number of the attribute's text."""
        pair = self._pairs.numbers([region if self._names else np.zeros_like(region), text])
        for name, attribute in self._pairs.keys[len(self._label_of_pair) :]:
            cells = self._cells_of(self._names[name] if self._names else "", self._texts.text(attribute) or "")
            self._label_of_pair.append(self._number.setdefault(cells, len(self._number)))
        self.cells = list(self._number)
        return np.array(self._label_of_pair, dtype=np.int64)[pair]


class ForwardLabels(AttributeLabels):
    """Labels by call path, but for the backward pass: a node of it has the label of the operator that it belongs to.

    PyTorch gives both the same sequence number, and the backward one the number of the thread that ran the other.
    Memory grows with the number of such operators, 16 bytes each.
    """

    columns = ("sequence_number", "forward_thread")

    def __init__(self, trace: Trace, by_path: Labels) -> None:
        """Begin with the labels that call paths have."""
        self._trace, self._by_path = trace, by_path
        self._nodes, self._known_nodes = Groups(), np.zeros((0, 3), dtype=np.int64)
        self.is_operator, self.cells, self.known = by_path.is_operator, by_path.cells, by_path.known
        self._process_of = processes_of_locations(trace)
        self._forward: dict[int, tuple[Ints, Ints]] = {}
        for location in location_rows(trace):
            if location.kind == "thread" and location.span_count:
                self._read_forward(location.location, location.process)

    def of_path(self, call_path: Ints) -> Ints:
        """Return the labels of operators that are known by their call paths only."""
        return self._by_path.of_path(call_path)

    def _own_labels(self, spans: SpanArrays, at: Ints, attributes: pa.Table, location: int) -> tuple[Ints, Bools]:
        label = self._by_path.of_path(spans["call_path"][at].astype(np.int64))
        number, backward = _sequence(attributes)
        numbers, labels = self._forward.get(self._process_of[location], (number[:0], number[:0]))
        # The latest of those with the number: operators share it with their callees.
        found = np.searchsorted(numbers, number, side="right") - 1
        known = backward & (found >= 0)
        known[known] = numbers[found[known]] == number[known]
        label[known] = labels[found[known]]
        return label, known

    def _read_forward(self, location: int, process: int) -> None:
        """Remember the labels of the forward operators, of the thread of the process that has most of them.

        Each thread counts on its own, so that the others' numbers would be taken for its.
        """
        attributes = Attributes(self._trace, "operator_spans", location, self.columns)
        parts = [(np.zeros(0, dtype=np.int64),) * 2]
        for spans in self._trace.span_batches(location):
            (at,) = np.nonzero(self.is_operator[spans["region"]])
            number, backward = _sequence(attributes.of(spans["row"][at]))
            forward = (number >= 0) & ~backward
            parts.append((number[forward], self._by_path.of_path(spans["call_path"][at[forward]].astype(np.int64))))
        numbers, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(numbers) > len(self._forward.get(process, (numbers[:0],))[0]):
            order = np.argsort(numbers, kind="stable")
            self._forward[process] = numbers[order], labels[order]


def _sequence(attributes: pa.Table) -> tuple[Ints, Bools]:
    """Return the sequence numbers of operators, -1 for those without, and which of them are of the backward pass."""
    number, thread = (integers(attributes.column(name)) for name in ForwardLabels.columns)
    return number, (number >= 0) & (thread > 0)


def labels_by(trace: Trace, by: str) -> Labels:
    """Return the labels of a trace's operators: by `name`, `type`, `shape`, `module` or `line`."""
    regions = region_rows(trace)
    if by == "shape":
        return AttributeLabels(
            trace, "shapes", lambda name, shapes: (name, shapes or None), names=True, inherited=False
        )
    if by == "module":
        named = any(region.name.startswith(MODULE) for region in regions)
        modules = [module_of(each) if each.name.startswith(MODULE) or not named else None for each in regions]
        if any(modules):
            return ForwardLabels(trace, Labels(trace, [(each,) if each else None for each in modules], _there(modules)))
        return AttributeLabels(trace, "module_hierarchy", lambda _, text: (text or None,), names=False, inherited=True)
    if by == "line":
        lines = [line_of(region) for region in regions]
        if any(lines):
            return Labels(trace, lines, _there(lines))
        return AttributeLabels(trace, "call_stack", lambda _, text: line_of_stack(text), names=False, inherited=True)
    return Labels(trace, [(type_of(r.name) if by == "type" else r.name,) for r in regions])


def line_of_stack(stack: str) -> tuple[str | None, str | None]:
    """Return file:line and function of the innermost frame of a call stack of PyTorch that is the user's own.

    Frames are `file.py(12): function`, innermost first, with semicolons between them.
    """
    for frame in stack.split(";"):
        found = _FRAME.fullmatch(frame.strip())
        if found and is_users(found["file"]):
            return f"{found['file']}:{found['line']}", found["function"]
    return None, None


def innermost_line(trace: Trace, path: int) -> str:
    """Return file:line of the user's innermost function on a call path, "" if there is none (or the path is -1)."""
    parent, region = path_tree(trace)
    regions = region_rows(trace)
    while path >= 0:
        if found := line_of(regions[region[path]]):
            return found[0] or ""
        path = int(parent[path])
    return ""


def module_of(region: Region) -> str | None:
    """Return the module that a region is a call of: as PyTorch names it, else the class of a function `forward`."""
    name = region.name
    if region.paradigm != "python" or region.role != "function":
        return None
    if name.startswith(MODULE):
        return name.removeprefix(MODULE)
    return name.removesuffix(".forward") if name.endswith(".forward") else None


def line_of(region: Region) -> Cells | None:
    """Return file, line and name of a function of the user, None for others."""
    file = region.file
    if region.paradigm != "python" or region.role != "function" or not is_users(file):
        return None
    return f"{file}:{region.line}", region.name


def _there(values: Sequence[object]) -> Bools:
    return np.array([value is not None for value in values], dtype=bool)
