"""Import of profiles that contain callers and callees, but no call paths.

A function with a single caller is shown below it. A function with several callers is a root: the file divides its cost
by caller for its own calls (table `call_edges`), but not for the calls that these make, and nothing is guessed.

Such a file contains the own cost of each function, and of its calls. The cost with all callees is computed: its own and
its calls', without those of itself. In a circle of functions that call each other, costs would count as often as they
go round: there the sum is at most the cost of the circle as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from strobe.formats.reading.profile_import import ROOT, Function, ProfileProcess, Weight

_Key = TypeVar("_Key")


class CallGraph:
    """Costs of one location: of functions (known by numbers), their calls and lines; a value for each weight.

    The first weight that is a time is the time of the tables. Without one, the first weight stands in for it, a unit as
    a nanosecond, and `weights_are_no_time` is counted. Lines and calls are written in this weight only. More weights
    may be appended to the list while costs are added: earlier costs have 0 of them.
    """

    def __init__(self, weights: Sequence[Weight]) -> None:
        self._weights = weights
        self._shown = next((i for i, weight in enumerate(weights) if weight.ns is not None), 0)
        self._scale = int(weights[self._shown].ns or 1)  # units of time are whole numbers of nanoseconds
        self._own: dict[int, list[int]] = {}
        self._calls: dict[int, dict[int, list[int]]] = {}  # by caller and callee: how often, then the values
        self._lines: dict[tuple[int, str, int], int] = {}

    def add_own(self, function: int, file: str, line: int, values: Sequence[int]) -> None:
        """Add the own cost of a function. `line` is 0 if unknown."""
        _add(self._own, function, values)
        if line:
            key = function, file, line
            self._lines[key] = self._lines.get(key, 0) + values[self._shown]

    def add_calls(self, caller: int, callee: int, count: int, values: Sequence[int]) -> None:
        """Add calls of one function by another: their number, and their cost including callees."""
        _add(self._calls.setdefault(caller, {}), callee, [count, *values])

    def save(self, process: ProfileProcess, location: int, functions: Sequence[Function]) -> None:
        """Write the sums of functions, and the tables `call_edges`, `lines` and `path_metrics`."""
        called: dict[int, int] = {}
        for callees in self._calls.values():
            for callee, (count, *_) in callees.items():
                called[callee] = called.get(callee, 0) + count
        circle_of = strong_components(self._calls)
        circles = self._circles(circle_of)
        numbers = sorted({*self._own, *self._calls, *called})
        callers = self._callers(circle_of)
        paths = _paths(process, functions, numbers, callers)
        is_time = self._weights[self._shown].ns is not None
        for number in numbers:
            path, bound = paths[number], circles.get(number)
            own = self._padded(self._own.get(number, ()))
            total = self._total([number], {number})
            if bound is not None:
                total = [min(pair) for pair in zip(total, bound, strict=True)]
            # A function without callers ran from the start on.
            process.totals(location, path, called.get(number, 1), self._ns(total), self._ns(own))
            for i, weight in enumerate(self._weights):
                if not (is_time and i == self._shown) and (own[i] or total[i]):
                    whole = float(total[i]) if bound is None else None
                    process.path_metric(location, path, weight, float(own[i]), whole)
        for number, callees in self._calls.items():
            for other, (count, *values) in callees.items():
                ends = functions[number], functions[other]
                process.call_edge(location, *ends, calls=count, total_ns=self._ns(values))
        for (number, file, line), value in self._lines.items():
            if value:
                process.line(location, functions[number], file, line, value * self._scale)
        for what, number in (
            ("weights_are_no_time", 0 if is_time else len(self._own)),
            ("functions_in_circles", len(circles)),
            ("functions_of_several_callers", sum(len(found) > 1 for found in callers.values())),
            ("calls_not_counted", 0 if self._calls else len(self._own)),
            ("weights_by_function_only", len(self._weights) - 1),
        ):
            process.core.count(what, number)

    def _ns(self, values: Sequence[int]) -> int:
        return values[self._shown] * self._scale

    def _padded(self, values: Sequence[int]) -> list[int]:
        return [*values, *[0] * (len(self._weights) - len(values))]

    def _total(self, members: Iterable[int], inside: set[int]) -> list[int]:
        """Return the cost of functions including callees, but without calls among them."""
        total = [0] * len(self._weights)
        for number in members:
            outside = (values[1:] for other, values in self._calls.get(number, {}).items() if other not in inside)
            for values in (self._own.get(number, ()), *outside):
                for i, value in enumerate(values):
                    total[i] += value
        return total

    def _callers(self, circle_of: Mapping[int, int]) -> dict[int, set[int]]:
        """Return the callers of functions from outside of their circle."""
        callers: dict[int, set[int]] = {}
        for number, callees in self._calls.items():
            for callee in callees:
                if circle_of[number] != circle_of[callee]:
                    callers.setdefault(callee, set()).add(number)
        return callers

    def _circles(self, circle_of: Mapping[int, int]) -> dict[int, list[int]]:
        """Return the cost of the whole circle, for functions that call each other in one."""
        members: dict[int, set[int]] = {}
        for number, first in circle_of.items():
            members.setdefault(first, set()).add(number)
        costs = {first: self._total(inside, inside) for first, inside in members.items() if len(inside) > 1}
        return {number: cost for first, cost in costs.items() for number in members[first]}


def _paths(
    process: ProfileProcess, functions: Sequence[Function], numbers: Iterable[int], callers: Mapping[int, set[int]]
) -> dict[int, int]:
    """Return the call path of every function: below its caller, if it is the only one."""
    above = {number: next(iter(found)) for number, found in callers.items() if len(found) == 1}
    paths: dict[int, int] = {}
    for number in numbers:
        chain = [number]
        while chain[-1] in above and chain[-1] not in paths:
            chain.append(above[chain[-1]])
        for each in reversed(chain):
            if each not in paths:
                region = process.region(functions[each])
                paths[each] = process.path(paths[above[each]] if each in above else ROOT, region)
    return paths


def strong_components(edges: Mapping[int, Iterable[int]]) -> dict[int, int]:
    """Return, for every node, one node for all from which it can be reached and which it can reach.

    Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1 (1972); without recursion.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    found: dict[int, int] = {}
    open_nodes: list[int] = []
    for root in edges:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        open_nodes.append(root)
        work = [(root, iter(edges[root]))]
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in order:
                    order[other] = low[other] = len(order)
                    open_nodes.append(other)
                    work.append((other, iter(edges.get(other, ()))))
                    break
                if other not in found:
                    low[node] = min(low[node], order[other])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                while low[node] == order[node] and node not in found:
                    found[open_nodes.pop()] = node
    return found


def _add(sums: dict[_Key, list[int]], key: _Key, values: Sequence[int]) -> None:
    known = sums.get(key)
    if known is None:
        sums[key] = list(values)
        return
    known.extend([0] * (len(values) - len(known)))
    for i, value in enumerate(values):
        known[i] += value
