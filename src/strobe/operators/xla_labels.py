"""Labels of the operations of XLA that kernels name. No call on the host has them: their times are those of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from strobe.gpu.launches import Launches
from strobe.gpu.work import Work
from strobe.gpu.xla_operations import XlaOperations
from strobe.operators.labels import Cells, Labels
from strobe.sums.groups import Groups, Texts
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.trace import Trace

_NUMBER = re.compile(r"(?:\.\d+)+$")  # `fusion.12` is a fusion
_Texts = Sequence[str | None]


def type_of_operation(name: str) -> str:
    """Return the type of an operation of XLA: its name without module and number."""
    return _NUMBER.sub("", name.rpartition("/")[2])


def _name(texts: _Texts) -> Cells:
    return ("/".join(filter(None, texts)),)


# By kind of label: the arguments of kernels that it is made of, and how.
_MADE_OF: dict[str, tuple[tuple[str, ...], Callable[[_Texts], Cells]]] = {
    "name": (("hlo_module", "hlo_op"), _name),
    "type": (("hlo_op",), lambda texts: (type_of_operation(texts[0] or ""),)),
    "shape": (("hlo_module", "hlo_op"), lambda texts: (*_name(texts), None)),
    "module": (("hlo_module",), tuple),
    "line": (("source", "source_function"), tuple),
}


class XlaLabels(Labels):
    """Labels by operation; a node is a label."""

    def __init__(self, trace: Trace, by: str) -> None:
        """Begin without any: they are numbered as kernels are met."""
        self.is_operator = np.zeros(len(trace.regions), dtype=bool)
        self.cells, self.known = [], False
        self._trace, self._by = trace, by
        self._keys, self._cells_of = _MADE_OF[by]
        self._texts, self._groups = Texts(), Groups()
        self._number: dict[Cells, int] = {}
        self._label_of_group: list[int] = []
        self._operations: dict[int, XlaOperations] = {}

    def of_work(self, found: Work, launched: Launches) -> Ints:
        """Return the nodes of activities, -1 for those that name no operation; stretches must come in order of time."""
        node = np.full(len(found), -1, dtype=np.int64)
        for location in np.unique(found.location).tolist():
            (at,) = np.nonzero(found.location == location)
            operations = self._operations.setdefault(location, XlaOperations(self._trace, location))
            operation, *texts = operations.texts(found.row[at], ("hlo_op", *self._keys))
            numbers = [self._texts.numbers(column) for column in texts]
            named = self._texts.numbers(operation) >= 0
            group = self._groups.numbers([each[named] for each in numbers])
            for key in self._groups.keys[len(self._label_of_group) :]:
                cells = self._cells_of([self._texts.text(each) for each in key])
                self._label_of_group.append(self._number.setdefault(cells, len(self._number)))
            node[at[named]] = np.array(self._label_of_group, dtype=np.int64)[group]
            self.known |= self._by != "shape" and any(bool((each[named] >= 0).any()) for each in numbers)
        self.cells = list(self._number)
        return node

    def tree(self) -> tuple[Ints, Ints, Bools]:
        """Return the same as of call paths: no node is in another."""
        count = len(self.cells)
        return np.full(count, -1, dtype=np.int64), np.arange(count), np.ones(count, dtype=bool)
