"""The way from a step of A to one of B, lane by lane: each change begins where the one before ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from strobe.comparison.lines import FUSED, RENAMED, Line
from strobe.comparison.sides import Compared
from strobe.comparison.step_trees import LANES

REST = "all else"
_BETWEEN = " -> "  # names of both sides in that of a line


@dataclass(frozen=True)
class Change:
    """A line of a comparison, and where it leads: from the step so far to the step with it, in ns.

    change: "" for all else together. Times and calls are per step; `a_name` and `b_name` are "" where a side has none.
    """

    name: str
    a_name: str
    b_name: str
    where: str
    change: str
    a_calls: float
    b_calls: float
    a_ns: float
    b_ns: float
    from_ns: float
    to_ns: float


@dataclass(frozen=True)
class Waterfall:
    """A lane of the mean step of a class: its length on both sides, and the changes that lead from A's to B's.

    beside: whether the changes of a side lie beside each other: their times add up to its step, and none is negative.
    """

    lane: str
    a_ns: float
    b_ns: float
    beside: bool
    changes: tuple[Change, ...]


def waterfalls(found: Compared, most: int) -> list[Waterfall]:
    """Return the waterfall of each lane that either side has: at most `most` changes, the largest first, and the rest.

    The differences of the changes add up to that of the lane.
    """
    return [_waterfall(lane, of, most) for lane in LANES if (of := [each for each in found.lines if each.lane == lane])]


def _waterfall(lane: str, of_lane: list[Line], most: int) -> Waterfall:
    changed = sorted((each for each in of_lane if each.change), key=lambda line: (-abs(line.difference_ns), line.name))
    shown = changed[:most]
    others = [each for each in of_lane if not any(each is one for one in shown)]
    if others:
        times = (sum(each.a_ns for each in others), sum(each.b_ns for each in others))
        shown.append(Line(lane, REST, "", "", 0.0, 0.0, *times))
    a_ns, b_ns = sum(each.a_ns for each in of_lane), sum(each.b_ns for each in of_lane)
    beside = all(min(each.a_ns, each.b_ns) >= 0 for each in shown)
    return Waterfall(lane, a_ns, b_ns, beside, tuple(_changes(shown, a_ns)))


def _changes(lines: list[Line], begin_ns: float) -> Iterator[Change]:
    for line in lines:
        a_name, b_name = _names(line)
        end_ns = begin_ns + line.difference_ns
        yield Change(
            line.name,
            a_name,
            b_name,
            line.where,
            line.change,
            line.a_calls,
            line.b_calls,
            line.a_ns,
            line.b_ns,
            from_ns=begin_ns,
            to_ns=end_ns,
        )
        begin_ns = end_ns


def _names(line: Line) -> tuple[str, str]:
    """Return what a line is called in A and in B; "" where that has none."""
    a_name = b_name = line.name if line.change else ""
    if line.change in (RENAMED, FUSED):
        a_name, between, behind = line.name.partition(_BETWEEN)
        b_name = behind if between else a_name
    return a_name if line.a_calls else "", b_name if line.b_calls else ""
