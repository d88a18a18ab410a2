"""Structure: the loops of one process as a tree, which of them is the step and why, and the folded flow graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strobe.errors import UsageError
from strobe.structure.events import KINDS, events_of
from strobe.structure.loop_tree import TreeLevel, loop_tree
from strobe.structure.main_loop import MainLoop, find_loops
from strobe.structure.stream import Stream, read_streams

if TYPE_CHECKING:
    from strobe.store.trace import Trace

STREAMS = ("auto", *KINDS)


@dataclass(frozen=True)
class Structure:
    """The loops of one process.

    stream: the sequence of events that decided: `calls`, `operators`, `kernels`, `mpi`. confidence: `high`, `medium`,
    `low`,
    `none` (no loop), and the reason in one sentence. streams: kinds of the sequences that say the same of the step.
    levels: the nest of loops, parents before children; one of them for each phase of the run is the step.
    """

    process: int
    stream: str
    confidence: str
    reason: str
    streams: tuple[str, ...]
    levels: tuple[TreeLevel, ...]

    @property
    def step(self) -> TreeLevel | None:
        """The level that is the step, of several phases the longest; None without a loop."""
        return max((level for level in self.levels if level.is_step), key=lambda level: level.time_ns, default=None)

    def text(self, *, unicode: bool = True) -> str:
        """Return the loop tree for a terminal, with shares of the run's time."""
        from strobe.structure.tree_text import tree_text

        return tree_text(self, unicode=unicode)

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain values, as the page draws it; times in nanoseconds since the trace's zero.

        `levels`: id, name, marker, count, parent (-1: none), trips (smallest, median, largest number of iterations per
        one of the parent), spine, coverage, cvn, score, is_step, time_ns, share (of the run), first_ns, last_ns.
        `graph`: `nodes` (id, name, group, count, time_ns, level: id of the innermost loop or -1, members: names of the
        events folded into it) and
        `edges` (source, target, count, time_ns, back); `overflow`: events are missing in it. `loops`: of the graph (Wei
        2007).
        `expression`: the order of all events.
        """
        return {
            "process": self.process,
            "stream": self.stream,
            "confidence": self.confidence,
            "reason": self.reason,
            "streams": list(self.streams),
            "levels": [_level_json(number, level) for number, level in enumerate(self.levels)],
            "graph": {"nodes": [], "edges": [], "overflow": False},
            "loops": [],
            "expression": "",
        }


def _level_json(number: int, level: TreeLevel) -> dict[str, object]:
    trips = level.trips or (level.count, level.count, level.count)
    return {
        "id": number,
        "name": level.name,
        "marker": level.marker,
        "count": level.count,
        "parent": level.parent,
        "trips": list(trips),
        "spine": level.spine,
        "coverage": level.coverage,
        "cvn": level.cvn,
        "score": level.score,
        "is_step": level.is_step,
        "time_ns": level.time_ns,
        "share": level.share,
        "first_ns": level.first_ns,
        "last_ns": level.last_ns,
    }


def find_structure(trace: Trace, process: int | None = None, stream: str = "auto") -> Structure:
    """Return the loops of a process (by default the first that has steps), found in all of its sequences or in one.

    Raises UsageError for a process or a sequence that was not recorded.
    """
    if stream not in STREAMS:
        raise UsageError(f"no sequence of events '{stream}'", do=f"Sequences: {', '.join(STREAMS)}")
    return trace.once(("structure", process, stream), lambda: _find(trace, process, stream))


def _find(trace: Trace, process: int | None, stream: str) -> Structure:
    streams = dict(read_streams(trace))
    if process is None:
        process = _first_with_steps(trace, streams)
    if process not in streams:
        recorded = ", ".join(map(str, streams)) or "none"
        raise UsageError(f"process {process} recorded no spans", do=f"Processes with spans: {recorded}")
    return structure_of(streams[process], process, stream, trace.info.duration_ns)


def _first_with_steps(trace: Trace, streams: Mapping[int, Stream]) -> int:
    from strobe.structure.steps import find_steps

    having = find_steps(trace).processes
    return having[0].process if having else next(iter(streams), 0)


def structure_of(stream: Stream, process: int = 0, kind: str = "auto", run_ns: int | None = None) -> Structure:
    """Return the loops of one thread; `run_ns` is how long the run took, by default the time of the thread."""
    sequences = events_of(stream)
    if kind != "auto" and kind not in sequences:
        recorded = ", ".join(sequences) or "none"
        raise UsageError(f"process {process} recorded no {kind}", do=f"Sequences: {recorded}")
    loops = find_loops(stream, only=None if kind == "auto" else kind)
    if run_ns is None:
        run_ns = int(stream.end_ns.max() - stream.start_ns[0]) if len(stream) else 0
    main = max(
        loops, key=lambda loop: int(stream.start_ns[loop.rows[-1]] - stream.start_ns[loop.rows[0]]), default=None
    )
    if main is None:
        return Structure(process, _deciding(kind, (), sequences), "none", NO_LOOP, (), ())
    levels = tuple(loop_tree(stream, loops, run_ns))
    return Structure(process, _deciding(kind, loops, sequences), main.confidence, main.reason, main.streams, levels)


NO_LOOP = "no loop stands out: nothing repeats often and regularly enough"


def _deciding(kind: str, loops: Sequence[MainLoop], sequences: Mapping[str, object]) -> str:
    if kind != "auto":
        return kind
    decided = next((loop.events.kind for loop in loops if loop.events is not None), None)
    return decided or next(iter(sequences), KINDS[0])
