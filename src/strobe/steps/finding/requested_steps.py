"""Steps that the user asks for: by a level of the loop tree (`+1`, `-1`, a name) or by an event."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strobe.errors import UsageError
from strobe.steps.finding.cuts import cut
from strobe.steps.finding.outer_loops import OuterLoop, steps_of_outer
from strobe.steps.loop_choice.events import events_of
from strobe.steps.loop_choice.main_loop import MainLoop
from strobe.steps.loops.loop_tree import TreeLevel, loop_tree
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.thread_spans import Stream, outermost
from strobe.steps.training_activities import activities

_RELATIVE = re.compile(r"[+-]\d+")


@dataclass(frozen=True)
class Asked:
    """What the user wants a step to be.

    level: `+1` is one iteration of the loop around the step that was found, `-1` of the loop inside of it that takes
    most time, and so on; or the name or the marker of a loop, as `strobe structure` shows it. at: the name of an event;
    each of its occurrences begins a step. Not both.
    """

    level: str | None = None
    at: str | None = None

    def __post_init__(self) -> None:
        if self.level is not None and self.at is not None:
            raise UsageError("a step is chosen by its level or by an event, not by both", do="Leave one of them out.")

    def __bool__(self) -> bool:
        return self.level is not None or self.at is not None

    @property
    def goes_out(self) -> int:
        """How many loops further out, 0 if not outwards."""
        return int(self.level) if self.level and self.level.startswith("+") and _RELATIVE.fullmatch(self.level) else 0


def asked_loops(stream: Stream, loops: Sequence[MainLoop], asked: Asked) -> list[MainLoop]:
    """Return the loop that was asked for, as the only one; none where this stream does not have it.

    `loops` are those that were found without asking.
    """
    if asked.at is not None:
        return _at_event(stream, asked.at)
    trees = []
    for loop in loops:
        cuts = cut(stream, loop, activities(stream))
        tree = loop_tree(stream, [loop], 1, {0: (cuts.start_ns, cuts.end_ns)})
        trees.append((next(level.time_ns for level in tree if level.is_step), loop, tree))
    for _, loop, tree in sorted(trees, key=lambda each: -each[0]):
        chosen = _level_asked(tree, str(asked.level))
        if chosen is not None and len(chosen.rows) > 1:
            reason = f"the user chose this level of the loops (--step-level {asked.level})"
            return [MainLoop("asked", chosen.rows, "high", reason, chosen.marker, loop.events, loop.levels)]
    return []


def asked_outer(steps: ProcessSteps, around: Sequence[OuterLoop], asked: Asked) -> ProcessSteps | None:
    """Return the iterations of a loop around recorded steps that was asked for, None where it is not there.

    `+1` is the one around the main loop that takes most time.
    """
    if asked.goes_out:
        main = max(range(len(steps.loops)), key=lambda number: steps.duration_ns[steps.rows_of_loops[number]].sum())
        wanted = [each for each in around if each.loop == main][asked.goes_out - 1 : asked.goes_out]
    else:
        wanted = [each for each in around if asked.level == each.marker][:1]
    reason = f"the user chose this level of the loops (--step-level {asked.level})"
    return steps_of_outer(steps, wanted[0], reason) if wanted else None


def levels_to_ask_for(stream: Stream, loops: Sequence[MainLoop]) -> list[str]:
    """What `level` may be in this stream."""
    names = [name for level in loop_tree(stream, loops, 1) for name in (level.name, level.marker)]
    return list(dict.fromkeys(names))


def _at_event(stream: Stream, name: str) -> list[MainLoop]:
    if name not in stream.names:
        return []
    regions = np.flatnonzero([each == name for each in stream.names])
    rows = np.flatnonzero(np.isin(stream.region, regions))
    rows = rows[outermost(stream.start_ns[rows], stream.end_ns[rows])]
    if not len(rows):
        return []
    reason = f"the user chose to begin a step at each {name} (--step-at)"
    events = next(each for each in events_of(stream).values() if np.isin(rows[0], each.rows))
    return [MainLoop("asked", rows, "high", reason, name, events, events.levels())]


def _level_asked(tree: Sequence[TreeLevel], wanted: str) -> TreeLevel | None:
    if not _RELATIVE.fullmatch(wanted):
        return next((level for level in tree if wanted in (level.name, level.marker)), None)
    at = next(number for number, level in enumerate(tree) if level.is_step)
    for _ in range(abs(int(wanted))):
        if wanted.startswith("+"):
            at = tree[at].parent
        else:
            inside = [number for number, level in enumerate(tree) if level.parent == at]
            at = max(inside, key=lambda number: tree[number].time_ns, default=-1)
        if at < 0:
            return None
    return tree[at]


def not_there(asked: Asked, events: Sequence[str], levels: Sequence[str]) -> UsageError:
    """Return the error for steps that no process has, with what can be asked for."""
    if asked.at is not None:
        close = difflib.get_close_matches(asked.at, events, n=3)
        return UsageError(
            f"no event '{asked.at}' in this trace",
            do=f"Close: {', '.join(close)}" if close else "strobe operators --all",
        )
    if _RELATIVE.fullmatch(str(asked.level)):
        return UsageError(f"there is no loop at {asked.level} of the step", do="See: strobe structure")
    return UsageError(f"no loop '{asked.level}' in this trace", do=f"Loops: {', '.join(levels) or 'none'}")
