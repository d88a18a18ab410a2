"""The twin of native/structure/levels.cpp in plain Python: the same definitions, written to be read."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

SOFT_CLASSES, SOFT_MIN_COUNT, SOFT_SLACK, SOFT_ONCE, NEST_MIN_TRIPS = 24, 5, 0.05, 0.95, 1.5


@dataclass
class Item:
    source: int | None  # None: a node
    target: int
    at: list[int] = field(default_factory=list)


@dataclass
class Level:
    positions: list[int]
    count: int
    spine: float
    coverage: float
    cvn: float
    score: float
    marker_source: int | None
    marker: int
    parent: int = -1
    trips_min: int = 0
    trips_median: float = 0.0
    trips_max: int = 0


def items_of(ids: list[int], min_count: int) -> list[Item]:
    """Nodes and edges with their positions, in order of (count, first position), nodes first."""
    nodes: dict[int, Item] = {}
    edges: dict[tuple[int, int], Item] = {}
    for i, event in enumerate(ids):
        nodes.setdefault(event, Item(None, event)).at.append(i)
        if i:
            edges.setdefault((ids[i - 1], event), Item(ids[i - 1], event)).at.append(i)
    frequent = [item for item in [*nodes.values(), *edges.values()] if len(item.at) >= max(min_count, 2)]
    return sorted(frequent, key=lambda item: (len(item.at), item.at[0]))


def alternates(q: list[int], p: list[int]) -> bool:
    """Whether q[i] <= p[i] <= q[i + 1] for all i."""
    return all(a <= b for a, b in zip(q, p, strict=True)) and all(b <= a for a, b in zip(q[1:], p, strict=False))


def once_per_interval(q: list[int], p: list[int]) -> bool:
    """Whether p occurs exactly once in 95 % of the intervals between the q."""
    once = sum(sum(low <= at < high for at in p) == 1 for low, high in itertools.pairwise(q))
    return once >= SOFT_ONCE * (len(q) - 1)


def classes_of(items: list[Item], most_open: int) -> list[list[Item]]:
    """Alternation classes; the first member of each is the earliest and stands for it.

    An item is compared with the latest `most_open` classes of its count only.
    """
    classes: list[list[Item]] = []
    for item in items:
        for members in [members for members in classes if len(members[0].at) == len(item.at)][-most_open:]:
            if alternates(members[0].at, item.at):
                members.append(item)
                break
        else:
            classes.append([item])
    return classes


def soft_members(members: list[Item], items: list[Item]) -> int:
    """How many other items occur about as often, and almost always once per interval."""
    q = members[0].at
    if len(q) < SOFT_MIN_COUNT:
        return 0
    slack = max(2.0, SOFT_SLACK * len(q))
    return sum(
        abs(len(item.at) - len(q)) <= slack and item not in members and once_per_interval(q, item.at) for item in items
    )


def trips(outer: list[int], inner: list[int]) -> list[int]:
    """Occurrences of the inner level in each interval of the outer one."""
    return [sum(low <= at < high for at in inner) for low, high in itertools.pairwise(outer)]


def find_levels(
    ids: list[int], times: list[int], *, min_count: int = 3, max_levels: int = 64, most_open: int = 1024
) -> list[Level]:
    """The levels, best score first."""
    if len(ids) < 2:
        return []
    items = items_of(ids, min_count)
    classes = classes_of(items, most_open)
    largest = sorted(range(len(classes)), key=lambda k: -len(classes[k]))[:SOFT_CLASSES]
    levels = []
    for k, members in enumerate(classes):
        q, count = members[0].at, len(members[0].at)
        spine = len(members) + 0.5 * (soft_members(members, items) if k in largest else 0)
        total = times[-1] - times[0]
        coverage = min(1.0, (times[q[-1]] - times[q[0]]) * count / (count - 1) / total) if total else 0.0
        gaps = np.diff(q)
        cvn = float(gaps.std() / gaps.mean())
        score = math.log1p(spine) * coverage / (1 + cvn * cvn) * count / (count + 2)
        marker = next((item for item in members if item.source is None), members[0])
        levels.append(Level(marker.at, count, spine, coverage, cvn, score, marker.source, marker.target))
    levels = sorted(levels, key=lambda level: -level.score)[:max_levels]
    for child in levels:
        nest(child, levels)
    return levels


def nest(child: Level, levels: list[Level]) -> None:
    """Choose as parent the level with the largest smaller count that holds 1.5 iterations of the child on average."""
    for k, outer in sorted(enumerate(levels), key=lambda pair: -pair[1].count):
        counts = trips(outer.positions, child.positions)
        if outer.count < child.count and sum(counts) >= NEST_MIN_TRIPS * len(counts):
            child.parent, child.trips_min, child.trips_max = k, min(counts), max(counts)
            child.trips_median = float(np.median(counts))
            return
