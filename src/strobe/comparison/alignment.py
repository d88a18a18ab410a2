"""Aligns two step trees: nodes of equal names below aligned ones, then levels that one side has more, then renames.

Kernels are aligned below the operators that launched them, by name; what is left of an operator on both sides is one
group: the same work by other kernels. Everything is symmetric: the alignment of B with A is that of A with B, swapped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from strobe.comparison.step_trees import CLOSING, GPU, HOST, THREADS, Node, StepTree
from strobe.steps.iteration_stack.alignment import align

# So many levels inside of a call are searched for what the other side calls directly.
_LEVELS = 6
# How alike what two calls call must be for them to be one.
_ALIKE = 0.5
_MOST_ORDERED = 1000
_MODULE = "nn.Module: "


@dataclass
class Pair:
    """Nodes of A and B that do the same; none on a side that lacks them. `parent`: number of the pair around it."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    parent: int
    reordered: bool = False

    @property
    def both(self) -> bool:
        """Whether both sides have it."""
        return bool(self.a and self.b)


@dataclass
class Alignment:
    """All nodes of two trees, each in one pair; pairs come after their parents."""

    a: StepTree
    b: StepTree
    pairs: list[Pair] = field(default_factory=list)

    def node(self, pair: Pair) -> Node:
        """Return the node that a pair is named after: that of A if there is one."""
        return self.a.nodes[pair.a[0]] if pair.a else self.b.nodes[pair.b[0]]


def aligned(a: StepTree, b: StepTree) -> Alignment:
    """Align two trees."""
    found = Alignment(a, b)
    # Levels to be aligned: the pair around them, and the nodes of either side.
    waiting = [(-1, _of_lane(a, a.children[-1], lane), _of_lane(b, b.children[-1], lane)) for lane in (HOST, THREADS)]
    kernels = {-1: (_of_lane(a, a.children[-1], GPU), _of_lane(b, b.children[-1], GPU))}
    while waiting:
        parent, in_a, in_b = waiting.pop()
        for left, right, opened in _matched(found, in_a, in_b):
            number = len(found.pairs)
            found.pairs.append(Pair((left,) if left >= 0 else (), (right,) if right >= 0 else (), parent))
            of_a, of_b = a.children[left] if left >= 0 else [], b.children[right] if right >= 0 else []
            kernels[number] = _of_lane(a, of_a, GPU), _of_lane(b, of_b, GPU)
            if not opened:
                waiting.append((number, _of_lane(a, of_a, HOST, THREADS), _of_lane(b, of_b, HOST, THREADS)))
    _align_kernels(found, kernels)
    _mark_reordered(found)
    return found


def _of_lane(tree: StepTree, numbers: Sequence[int], *lanes: str) -> list[int]:
    return [number for number in numbers if tree.nodes[number].lane in lanes]


def _matched(found: Alignment, in_a: Sequence[int], in_b: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """Yield pairs of nodes at one level, -1 for none, and whether what it calls was looked at with the others."""
    a, b = found.a, found.b
    left, right = list(in_a), list(in_b)
    pairs: list[tuple[int, int]] = []
    while True:
        pairs += (new := list(_by_key(a, b, left, right)))
        left, right = _without(new, left, right)
        # A level that one side has more: what it calls stands beside the others.
        outer = (
            [each for each in left if _holds(a, each, b, right)],
            [each for each in right if _holds(b, each, a, left)],
        )
        if not any(outer):
            break
        yield from (*((each, -1, True) for each in outer[0]), *((-1, each, True) for each in outer[1]))
        left, right = (
            [each for each in side if each not in opened]
            + [each for above in opened for each in tree.children[above] if tree.nodes[each].lane != GPU]
            for tree, side, opened in ((a, left, outer[0]), (b, right, outer[1]))
        )
    renamed = list(_renamed(found, pairs, left, right))
    left, right = _without(renamed, left, right)
    for one, other in (*pairs, *renamed, *((each, -1) for each in left), *((-1, each) for each in right)):
        yield one, other, False


def _without(
    pairs: Sequence[tuple[int, int]], left: Sequence[int], right: Sequence[int]
) -> tuple[list[int], list[int]]:
    one, other = {each for each, _ in pairs}, {each for _, each in pairs}
    return [each for each in left if each not in one], [each for each in right if each not in other]


def _holds(tree: StepTree, outer: int, other: StepTree, wanted: Sequence[int]) -> bool:
    """Whether a node holds, some levels below, one of the nodes that the other side has at its level."""
    inside, level = [], tree.children[outer]
    for _ in range(_LEVELS):
        inside += level
        level = [each for above in level for each in tree.children[above]]
    by_key: dict[str, list[int]] = {}
    for each in inside:
        by_key.setdefault(tree.nodes[each].key, []).append(each)
    return any(
        _same_rate(tree, each, other, one) and _likeness(tree, each, other, one) >= _ALIKE
        for one in wanted
        if not other.nodes[one].kind.startswith("gpu ")
        for each in by_key.get(other.nodes[one].key, ())
    )


def _same_rate(a: StepTree, one: int, b: StepTree, other: int) -> bool:
    """Whether two nodes are called as often per step."""
    lane = a.nodes[one].lane
    return a.nodes[one].calls * b.counts[lane] == b.nodes[other].calls * a.counts[lane]


def _likeness(a: StepTree, one: int, b: StepTree, other: int) -> float:
    """Return the share of the calls inside of two nodes that both have (Jaccard's index of multisets); 1 for none."""
    inner = [Counter(tree.nodes[each].key for each in tree.children[at]) for tree, at in ((a, one), (b, other))]
    any_ = (inner[0] | inner[1]).total()
    return (inner[0] & inner[1]).total() / any_ if any_ else 1.0


def _renamed(
    found: Alignment, pairs: Sequence[tuple[int, int]], left: Sequence[int], right: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield nodes of other names at the same position: a neighbour is the same, and so is their shape."""
    a, b = found.a, found.b
    number = {each: at for at, pair in enumerate(pairs) for each in (("a", pair[0]), ("b", pair[1]))}

    def neighbours(side: str, tree: StepTree, own: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the pairs before and behind each node of a level, in the order of a usual step."""
        order = sorted({*own, *(each for of, each in number if of == side)}, key=lambda at: (tree.nodes[at].first, at))
        ranks = [number.get((side, each), -1) for each in order]
        around = {}
        for at, each in enumerate(order):
            before = next((k for k in reversed(ranks[:at]) if k >= 0), -1)
            behind = next((k for k in ranks[at + 1 :] if k >= 0), -1)
            around[each] = (before, behind)
        return around

    if not left or not right:
        return
    around = neighbours("a", a, left), neighbours("b", b, right)
    scored = []
    for one, other in product(left, right):
        node, twin = a.nodes[one], b.nodes[other]
        beside = any(x == y for x, y in zip(around[0][one], around[1][other], strict=True))
        likeness, same_rate = _likeness(a, one, b, other), _same_rate(a, one, b, other)
        # An operator of a library may be replaced by another's.
        alike = likeness > 0 or node.kind.endswith("operator") if same_rate else _ALIKE <= likeness < 1
        if beside and alike and node.kind == twin.kind and not {node.key, twin.key} & set(CLOSING):
            scored.append((-likeness - same_rate, node.first, twin.first, one, other))
    taken: set[tuple[str, int]] = set()
    for *_, one, other in sorted(scored):
        if not taken & {("a", one), ("b", other)}:
            taken |= {("a", one), ("b", other)}
            yield one, other


def _align_kernels(found: Alignment, kernels: dict[int, tuple[list[int], list[int]]]) -> None:
    """Pair kernels below what launched them, from the innermost pairs outwards.

    What an operator has left on one side only goes to what is around it, up to a module: the least common ancestor.
    """
    a, b = found.a, found.b
    of_a = {each: at for at, pair in enumerate(found.pairs) for each in pair.a}
    of_b = {each: at for at, pair in enumerate(found.pairs) for each in pair.b}
    for number in (*range(len(found.pairs) - 1, -1, -1), -1):
        left, right = kernels[number]
        pair = found.pairs[number] if number >= 0 else None
        at_root = _at_root(a, left), _at_root(b, right)
        same = list(_by_key(a, b, left, right) if pair else _by_key(a, b, *at_root))
        found.pairs += [Pair((one,), (other,), number) for one, other in same]
        rest, others = _without(same, left, right)
        early = _at_root(a, rest), _at_root(b, others)
        if pair is None and all(early) and _knows_launches(a) and _knows_launches(b):
            # What was launched before the recording began.
            found.pairs.append(Pair(tuple(early[0]), tuple(early[1]), number))
            rest, others = ([each for each in rest if each not in early[0]], [e for e in others if e not in early[1]])
        is_module = pair is not None and pair.both and found.node(pair).key.startswith(_MODULE)
        is_operator = pair is not None and pair.both and found.node(pair).kind.endswith("operator")
        if rest and others and (is_module or is_operator):
            found.pairs.append(Pair(tuple(rest), tuple(others), number))
        elif pair is None or is_module:
            found.pairs += [Pair((each,), (), of_a.get(a.nodes[each].parent, -1)) for each in rest]
            found.pairs += [Pair((), (each,), of_b.get(b.nodes[each].parent, -1)) for each in others]
        else:
            kernels[pair.parent][0].extend(rest)
            kernels[pair.parent][1].extend(others)


def _at_root(tree: StepTree, numbers: Sequence[int]) -> list[int]:
    return [number for number in numbers if tree.nodes[number].parent < 0]


def _knows_launches(tree: StepTree) -> bool:
    return any(node.lane == GPU and node.parent >= 0 for node in tree.nodes)


def _by_key(a: StepTree, b: StepTree, left: Sequence[int], right: Sequence[int]) -> Iterator[tuple[int, int]]:
    by_key: dict[str, list[int]] = {}
    for each in right:
        by_key.setdefault(b.nodes[each].key, []).append(each)
    for each in left:
        if same := by_key.get(a.nodes[each].key):
            yield each, same.pop(0)


def _mark_reordered(found: Alignment) -> None:
    """Mark pairs that one side calls at another place among their neighbours."""
    of_a = {each: at for at, pair in enumerate(found.pairs) for each in pair.a}
    of_b = {each: at for at, pair in enumerate(found.pairs) for each in pair.b}
    for pair in [*found.pairs, Pair((-1,), (-1,), -1)]:
        if not pair.both or len(pair.a) > 1 or len(pair.b) > 1:
            continue
        a, b = (
            [[of.get(each, -1) for each in order.get(side[0], ())][:_MOST_ORDERED] for order in tree.orders]
            for tree, of, side in ((found.a, of_a, pair.a), (found.b, of_b, pair.b))
        )
        if not a or not b or a[0] == b[0]:
            continue
        # A step is a turn of a loop: it may be cut at another place.
        turned = [b[0][at:] + b[0][:at] for at in ([0] if pair.a[0] >= 0 else _starts(a[0], b[0]))]
        left_out = (_left_out(a[0], each) | _left_out(each, a[0]) for each in turned)
        # What also moves from step to step of one side is in no order.
        unsteady = {each for side in (a, b) for order in side for each in _left_out(side[0], order)}
        for each in min(left_out, key=len) - unsteady:
            found.pairs[each].reordered = found.pairs[each].both


def _starts(one: list[int], other: list[int]) -> list[int]:
    """Return where a turn of `other` may begin for it to be like `one`: where it does, and at the same ends."""
    common = [each for each in one if each in set(other)]
    return [0, *(other.index(each) for each in common[:1]), *(other.index(each) + 1 for each in common[-1:])]


def _left_out(one: list[int], other: list[int]) -> set[int]:
    """Return what a longest common subsequence leaves out of both orders, as often of either."""
    places = align(one, other)
    used = set(places)
    of_one = Counter(each for at, each in enumerate(one) if at not in used)
    of_other = Counter(each for at, each in enumerate(other) if places[at] < 0)
    return {each for each, times in of_one.items() if of_other[each] == times and each >= 0}
