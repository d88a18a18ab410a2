"""Two sides of a comparison: which steps they are, which classes belong together, and the lines of each pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.comparison.alignment import aligned
from strobe.comparison.counts import lost
from strobe.comparison.lines import FEWER, MORE, ONLY_A, ONLY_B, Line, lines, more_calls
from strobe.comparison.step_trees import HOST, LANES, StepTree, step_tree
from strobe.errors import UsageError
from strobe.steps.selection import chosen_numbers
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace

STEPS = "steps"
WHOLE_RUN = "run"
# Classes of other names belong together from this share of common places on; a common name counts as much more.
_LIKE = 0.3
_SAME_NAME = 0.25
# Steps are several of the other side's if at least so many calls are, all of them but for this part.
_LEAST_COMMON = 3
_INEXACT = 0.05


@dataclass(frozen=True)
class Side:
    """One side: a trace, and the rank, the class and the steps of it (as `select` understands them); None: all."""

    trace: Trace
    rank: int | None = None
    step_class: str | None = None
    steps: str = "steady"


@dataclass(frozen=True)
class Compared:
    """The lines of one class. factor: how much longer B's steps take."""

    name: str
    a: StepTree
    b: StepTree
    lines: Sequence[Line]


def compared(a: Side, b: Side) -> tuple[list[Compared], list[Line]]:
    """Return each pair of classes, and a line for the share of the steps that each class has."""
    whole = not all(find_steps(each.trace).processes or each.step_class or each.steps != "steady" for each in (a, b))
    sides = _trees(a, whole), _trees(b, whole)
    chosen = a.step_class is not None and b.step_class is not None
    pairs = [(each[0], other[0]) for each, other in [sides]] if chosen else _pairs(*sides)
    found = []
    for pair in pairs:
        one, other = _of_one_length(*pair)
        name = one.name if one.name == other.name else f"{one.name} -> {other.name}"
        found.append(Compared(name, one, other, lines(aligned(one, other))))
    return found, [] if chosen else _mix(*sides, pairs)


def _trees(side: Side, whole: bool) -> list[StepTree]:
    """Return the tree of each class of a side, or of the `whole` run, as where one has no steps."""
    trace, ranks = side.trace, ranks_of(side.trace)
    if side.rank is not None and side.rank not in ranks:
        known = ", ".join(str(each) for each in sorted({rank for rank in ranks if rank is not None}))
        raise UsageError(f"no rank {side.rank} in this trace", do=f"Ranks: {known or 'its processes have none'}")
    if whole:
        return [step_tree(trace, WHOLE_RUN, None, side.rank)]
    chosen = chosen_numbers(trace, side.steps, side.step_class) or {}
    by_class: dict[str, dict[int, Ints]] = {}
    for each in find_steps(trace).processes:
        numbers = chosen.get(each.process, np.zeros(0, dtype=np.int64))
        if side.rank not in (None, ranks[each.process]):
            continue
        names = each.class_names[numbers - each.first_number]
        for name in dict.fromkeys(names.tolist()):
            by_class.setdefault(name, {})[each.process] = numbers[names == name]
    if not by_class:
        raise UsageError("there are no such steps", do="strobe steps TRACE lists those that were found")
    trees: list[StepTree] = []
    for name, of_class in sorted(by_class.items(), key=lambda each: -sum(map(len, each[1].values()))):
        tree = step_tree(trace, name, of_class)
        same = next((each for each in trees if _do_the_same(each, tree)), None)
        if same is None:
            trees.append(tree)
            continue
        # Classes that differ in what their calls cost only: in another run, they are others.
        for process, more in of_class.items():
            by_class[same.name][process] = np.union1d(by_class[same.name].get(process, more), more)
        trees = [each for each in trees if each is not same] + [step_tree(trace, same.name, by_class[same.name])]
    return trees


def _do_the_same(one: StepTree, other: StepTree) -> bool:
    return one.places.keys() == other.places.keys() and all(
        abs(rate - other.places[path]) <= _INEXACT * rate for path, rate in one.places.items()
    )


def _pairs(a: Sequence[StepTree], b: Sequence[StepTree]) -> list[tuple[StepTree, StepTree]]:
    """Return classes that belong together: the most alike in structure first."""
    scored = sorted(
        (
            (-(_likeness(one, other) + _SAME_NAME * (one.name == other.name)), one.name, other.name, one, other)
            for one in a
            for other in b
            if one.name == other.name or _likeness(one, other) >= _LIKE
        ),
        key=lambda each: each[:3],
    )
    pairs: list[tuple[StepTree, StepTree]] = []
    for *_, one, other in scored:
        if all(one is not known and other is not twin for known, twin in pairs):
            pairs.append((one, other))
    return sorted(pairs, key=lambda pair: -pair[0].counts[HOST])


def _likeness(one: StepTree, other: StepTree) -> float:
    return len(one.places.keys() & other.places.keys()) / max(1, len(one.places.keys() | other.places.keys()))


def _of_one_length(a: StepTree, b: StepTree) -> tuple[StepTree, StepTree]:
    """Return two trees whose steps are the same piece of the program: the steps of one may be several of the other.

    They are where all that both do at the root, but for what takes little, is done so many times as often.
    """
    outer = [
        {tree.nodes[at].key: tree.nodes[at] for at in tree.children[-1] if tree.nodes[at].calls} for tree in (a, b)
    ]
    common = outer[0].keys() & outer[1].keys()
    if len(common) < _LEAST_COMMON:
        return a, b
    rates = np.array([outer[0][key].calls * b.counts[HOST] / (outer[1][key].calls * a.counts[HOST]) for key in common])
    usual = float(np.median(rates))
    times = round(max(usual, 1 / usual))
    if times < 2 or (np.abs(np.log(rates / usual)) > _INEXACT).any():
        return a, b
    return (a, b.joined(times)) if usual > 1 else (a.joined(times), b)


def _mix(a: Sequence[StepTree], b: Sequence[StepTree], pairs: Sequence[tuple[StepTree, StepTree]]) -> list[Line]:
    """Return a line for each class in either run: its share of the steps, and what that makes of the mean step."""
    steps = [sum(tree.counts[HOST] for tree in side) for side in (a, b)]
    missing = [(one, None) for one in a if all(one is not known for known, _ in pairs)]
    extra = [(None, other) for other in b if all(other is not known for _, known in pairs)]
    found = []
    for one, other in (*pairs, *missing, *extra):
        counts = [round(tree.counts[HOST]) if tree else 0 for tree in (one, other)]
        ns = [(tree.total_ns[HOST] if tree else 0) / all_ for tree, all_ in zip((one, other), steps, strict=True)]
        more = more_calls(counts, steps, once=True)
        change = "" if not more else ONLY_A if not other else ONLY_B if not one else MORE if more > 0 else FEWER
        shares = [count / all_ for count, all_ in zip(counts, steps, strict=True)]
        names = dict.fromkeys(tree.name for tree in (one, other) if tree)
        found.append(Line(STEPS, " -> ".join(names), "", change, *shares, *ns))
    return found


def unaligned(each: Compared) -> Mapping[str, tuple[float, float]]:
    """Return by lane the share of the time of A and of B that only that side has."""
    shares = {}
    for lane in LANES:
        whole = [max(1.0, tree.total_ns[lane] / max(1, tree.counts[lane])) for tree in (each.a, each.b)]
        only_a = sum(line.a_ns for line in each.lines if (line.lane, line.change) == (lane, ONLY_A))
        only_b = sum(line.b_ns for line in each.lines if (line.lane, line.change) == (lane, ONLY_B))
        shares[lane] = (min(1.0, only_a / whole[0]), min(1.0, only_b / whole[1]))  # a profile may have no length
    return shares


def doubtful(*traces: Trace) -> list[str]:
    """Return sentences about why counts of some traces are not exact."""
    found = [lost(trace) for trace in traces]
    notes = [f"counts are too low: {why}" for why in dict.fromkeys(why for why, _ in found if why)]
    throttled = dict.fromkeys(name for _, names in found for name in names)
    return notes + [f"calls of {name} are not all recorded: it was throttled" for name in throttled]
