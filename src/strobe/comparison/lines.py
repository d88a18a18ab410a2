"""The lines that explain a difference: what changed, by how much, in how often or in how long; they add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.comparison.alignment import Alignment, Pair
from strobe.comparison.counts import Counts, differ
from strobe.comparison.step_trees import GPU, LANES, Node
from strobe.tables.column_arrays import Floats, Ints

ONLY_A, ONLY_B, MORE, FEWER, RENAMED, REORDERED, FUSED, LONGER, SHORTER = CHANGES = (
    *("only in A", "only in B", "more calls", "fewer calls", "renamed", "reordered", "fused differently"),
    *("longer", "shorter"),
)
_OF_COUNTS = CHANGES[:4]
# A time has changed if the steps of A and B are apart, but for this share of either, and so are factors (logarithms).
_TAIL = 0.1
_DEVIATIONS = 4.0
_LEAST_SPREAD = 0.1
_SPREAD_OF_FACTOR = 0.5  # the more two machines differ, the less alike
_SPREAD_OF_WAITS = 0.25  # how long others let a call wait differs more than what a program computes
_WAITING = (" wait", " sync", " collective", " p2p")
_LEAST_STEPS = 5
_LEAST_OTHERS = 0.2  # of the step: else there is nothing to compare with
_LEAST_SHARE = 0.01  # of the step


@dataclass(frozen=True)
class Line:
    """One cause of a difference, per step. ns: without inner calls, but with those that are there because of it."""

    lane: str
    name: str
    where: str
    change: str
    a_calls: float
    b_calls: float
    a_ns: float
    b_ns: float

    @property
    def difference_ns(self) -> float:
        """How much longer B is."""
        return self.b_ns - self.a_ns

    @property
    def by_count_ns(self) -> float:
        """The part of the difference that comes from the number of calls: at the mean time of a call of both sides.

        What one side does not call would take there as long as on the other (Marshall and Edgeworth's index).
        """
        per_call = [ns / calls for ns, calls in ((self.a_ns, self.a_calls), (self.b_ns, self.b_calls)) if calls]
        return (self.b_calls - self.a_calls) * sum(per_call) / max(1, len(per_call))

    @property
    def by_time_ns(self) -> float:
        """The part of the difference that comes from the time of a call."""
        return self.difference_ns - self.by_count_ns


@dataclass
class _Group:
    """Pairs of one line: the head, and what is there as often because of it."""

    head: Pair
    change: str
    lane: str
    members: list[Pair]


def lines(found: Alignment) -> list[Line]:
    """Return the lines of all pairs: over those of a lane, the differences add up to that of the lane.

    A change of counts has one line for a call and all inside of it that is called as often per call as before.
    """
    groups: dict[tuple[int, str], _Group] = {}
    head_of: list[int] = []
    for number, pair in enumerate(found.pairs):
        change = _change(found, pair)
        above = head_of[pair.parent] if pair.parent >= 0 else -1
        counted = above >= 0 and groups[above, found.node(found.pairs[above]).lane].change in _OF_COUNTS
        follows = counted and _follows(found, found.pairs[above], pair)
        head_of.append(above if follows else number)
        lane, head = found.node(pair).lane, found.pairs[head_of[-1]]
        if follows:
            change = groups[above, found.node(head).lane].change
        groups.setdefault((head_of[-1], lane), _Group(head, change, lane, [])).members.append(pair)
    for lane in LANES:
        timed = [group for group in groups.values() if group.lane == lane and not group.change]
        changes = [_time_change(found, each, timed) for each in timed]
        for group, change in zip(timed, changes, strict=True):
            group.change = change
    return [_line(found, group) for group in groups.values()]


def _change(found: Alignment, pair: Pair) -> str:
    """Return what a pair has that is a fact, "" where only times may differ."""
    sides = _nodes(found, _Group(pair, "", "", [pair]))
    more = _more_calls(found, found.node(pair).lane, sides)
    if not pair.both:
        return "" if not more else ONLY_A if pair.a else ONLY_B
    renamed = {node.key for node in sides[0]} != {node.key for node in sides[1]}
    if renamed and (len(pair.a) > 1 or len(pair.b) > 1 or (more and found.node(pair).lane == GPU)):
        return FUSED
    if more and not renamed and not _throttled(sides):
        return MORE if more > 0 else FEWER
    return RENAMED if renamed else REORDERED if pair.reordered else ""


def _throttled(sides: Sequence[Sequence[Node]]) -> bool:
    return any(node.throttled for side in sides for node in side)


def _more_calls(found: Alignment, lane: str, sides: Sequence[Sequence[Node]]) -> float:
    """Return how many more calls of these nodes B has per step, 0 where that may be chance."""
    trees = (found.a, found.b)
    steps = [max(1, tree.counts[lane]) for tree in trees]
    calls, ns = ([sum(getattr(node, name) for node in side) for side in sides] for name in ("calls", "ns"))
    usual = [
        int(np.median(np.sum([node.step_calls for node in side], axis=0))) if side else 0
        for tree, side in zip(trees, sides, strict=True)
        if tree.kept
    ]
    step_ns = max(tree.total_ns[lane] / count for tree, count in zip(trees, steps, strict=True))
    costs = abs(ns[1] / steps[1] - ns[0] / steps[0]) > _LEAST_SHARE * step_ns
    return more_calls(calls, steps, usual if len(usual) == 2 else (), costs=costs)


def more_calls(
    calls: Sequence[int], steps: Sequence[float], usual: Sequence[int] = (), *, costs: bool = True, once: bool = False
) -> float:
    """Return how many more calls B has per step than A, 0 where that may be chance.

    `usual`: calls in the median step. Where not all steps are like it, it has another number in B, or the difference
    costs something and is beyond what as many calls at random would make (4 standard deviations of Poisson's
    distribution; of the binomial one for what a step has `once` at most).
    """
    known: list[dict[str, int]] = [{"": each} for each in usual] or [{}, {}]
    counts = [[Counts(n, {"": each}, of)] for n, each, of in zip(steps, calls, known, strict=True)]
    if not differ(counts, ""):
        return 0.0
    more = calls[1] / steps[1] - calls[0] / steps[0]
    chance = sum((each / n**2) * (1 - each / n if once else 1) for each, n in zip(calls, steps, strict=True)) ** 0.5
    alike = all(
        not each % n and of.get("", each // n) == each // n for n, each, of in zip(steps, calls, known, strict=True)
    )
    other = bool(usual) and usual[0] != usual[1]
    return more if alike or other or (costs and abs(more) > _DEVIATIONS * chance) else 0.0


def _follows(found: Alignment, head: Pair, pair: Pair) -> bool:
    """Whether a pair inside of another is there on one side, too, or as often per call of it on both."""
    if not head.both or not pair.both:
        return bool(head.a) == bool(pair.a) and bool(head.b) == bool(pair.b)
    inner_a, outer_a, inner_b, outer_b = (
        sum(tree.nodes[each].calls for each in side) / tree.counts[tree.nodes[side[0]].lane]
        for tree, side in ((found.a, pair.a), (found.a, head.a), (found.b, pair.b), (found.b, head.b))
    )
    return bool(np.isclose(inner_a * outer_b, inner_b * outer_a, rtol=1e-6))


def _line(found: Alignment, group: _Group) -> Line:
    trees, sides = (found.a, found.b), _nodes(found, group)
    heads = _nodes(found, _Group(group.head, "", "", [group.head]))
    counted = sides if group.lane == GPU else heads
    steps = [max(1, tree.counts[group.lane]) for tree in trees]
    calls = [sum(node.calls for node in side) / count for side, count in zip(counted, steps, strict=True)]
    ns = [sum(node.ns for node in side) / count for side, count in zip(sides, steps, strict=True)]
    return Line(group.lane, _name(heads), _where(found, group.head), group.change, *calls, *ns)


def _name(heads: Sequence[Sequence[Node]]) -> str:
    names = [", ".join(dict.fromkeys(node.name for node in side)) for side in heads]
    alike = {node.key for node in heads[0]} == {node.key for node in heads[1]}
    return " -> ".join(names) if all(names) and not alike else names[0] or names[1]


def _where(found: Alignment, pair: Pair) -> str:
    names = list[str]()
    while pair.parent >= 0:
        pair = found.pairs[pair.parent]
        names.append(found.node(pair).name)
    return " > ".join(reversed(names))


def _common_factor(found: Alignment, groups: Sequence[_Group], lane: str) -> tuple[float, float]:
    """Return by which factor all that did not change otherwise takes longer in B, and how factors spread: logarithms.

    The median, and the median absolute deviation from it as a standard deviation; each counts by the root of its time,
    so that a long sleep, which no load makes longer, does not decide. Two runs on one machine differ by such a factor,
    up to several times where something else runs.
    """
    times = [tuple(sum(node.ns for node in side) for side in _nodes(found, each)) for each in groups]
    known = [
        (np.log(b * found.a.counts[lane] / (a * found.b.counts[lane])), (a + b) ** 0.5) for a, b in times if a > 0 < b
    ]
    if not known:
        return 0.0, _LEAST_SPREAD
    factors, weights = np.array(known).T
    centre = _weighted_median(factors, weights)
    return centre, max(_LEAST_SPREAD, 1.4826 * _weighted_median(np.abs(factors - centre), weights))


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    until = np.cumsum(weights[order])
    middle = [np.searchsorted(until, until[-1] / 2, side=side) for side in ("left", "right")]
    return float(values[order][np.minimum(middle, len(values) - 1)].mean())


def _time_change(found: Alignment, group: _Group, groups: Sequence[_Group]) -> str:
    """Return whether the time of what did not change otherwise has changed.

    It has if the steps in detail of A and of B are apart, but for a tenth of either, or all calls of all steps are, by
    a tenth of the step; and if its factor is apart from that of all else, which may be the machine's.
    """
    lane, trees, sides = group.lane, (found.a, found.b), _nodes(found, group)
    steps = [max(1, tree.counts[lane]) for tree in trees]
    ns = [sum(node.ns for node in side) / n for side, n in zip(sides, steps, strict=True)]
    step_ns = [tree.total_ns[lane] / n for tree, n in zip(trees, steps, strict=True)]
    if abs(ns[1] - ns[0]) < _LEAST_SHARE * max(step_ns) or min(ns) <= 0 or _throttled(sides):
        return ""
    others = [each for each in groups if each is not group]
    rest = [sum(node.ns for each in others for node in _nodes(found, each)[k]) / steps[k] for k in (0, 1)]
    if min(rest) < _LEAST_OTHERS * min(step_ns):
        return ""
    centre, spread = _common_factor(found, others, lane)
    spread = max(spread, _SPREAD_OF_FACTOR * abs(centre))
    if found.node(group.head).kind.endswith(_WAITING):
        spread = max(spread, _SPREAD_OF_WAITS)
    if abs(np.log(ns[1] / ns[0]) - centre) <= _DEVIATIONS * spread:
        return ""
    by_step = [np.sum([node.step_ns for node in side], axis=0) for side in sides]
    apart = min(map(len, by_step)) >= _LEAST_STEPS and _are_apart(*by_step)
    apart = apart and _are_apart(by_step[0] * np.exp(centre), by_step[1])
    one, other = (found.a.nodes[group.head.a[0]], found.b.nodes[group.head.b[0]]) if group.head.both else (None, None)
    if one and other and min(one.calls, other.calls) >= _LEAST_STEPS and abs(ns[1] - ns[0]) > _TAIL * max(step_ns):
        apart = apart or one.most_ns < other.least_ns or other.most_ns < one.least_ns
    return (LONGER if ns[1] > ns[0] else SHORTER) if apart else ""


def _are_apart(one: Floats | Ints, other: Floats | Ints) -> bool:
    low, high = sorted((one, other), key=lambda each: float(np.median(each)))
    return bool(np.quantile(low, 1 - _TAIL) < np.quantile(high, _TAIL))


def _nodes(found: Alignment, group: _Group) -> tuple[list[Node], list[Node]]:
    return (
        [found.a.nodes[each] for pair in group.members for each in pair.a],
        [found.b.nodes[each] for pair in group.members for each in pair.b],
    )
