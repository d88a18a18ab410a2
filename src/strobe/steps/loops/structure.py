"""Structure: the loops of one process as a tree, which of them is the step and why, and the folded flow graph."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypedDict, cast

import numpy as np

from strobe.errors import UsageError
from strobe.steps.finding.loop_steps import main_pieces
from strobe.steps.finding.offline_search import steps_by_loop
from strobe.steps.finding.outer_loops import outer_loops
from strobe.steps.finding.requested_steps import Asked, asked_loops, levels_to_ask_for, not_there
from strobe.steps.folded_time import FoldedTime, folded_time
from strobe.steps.loop_choice.events import KINDS, OPERATORS, events_of
from strobe.steps.loop_choice.main_loop import NO_LOOP, MainLoop, find_loops, time_ns
from strobe.steps.loops.folded_graph import FlowEdge, FlowLoop, FlowNode, Graph
from strobe.steps.loops.graph_and_expression import draw, draw_opened, draw_recorded
from strobe.steps.loops.loop_tree import TreeLevel, add_recorded, loop_tree, loops_without_step
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import chosen_steps, find_steps
from strobe.steps.thread_spans import Ints, Stream, main_location, read_streams
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

STREAMS = ("auto", *KINDS)


class LevelDict(TypedDict):
    """A level: see `TreeLevel`. `id`: its number. `parent`: -1 without one. `trips`: (smallest, median, largest)."""

    id: int
    name: str
    marker: str
    count: int
    in_detail: int | None
    parent: int
    trips: list[float]
    spine: float
    coverage: float
    cvn: float
    score: float
    is_step: bool
    time_ns: int
    share: float
    first_ns: int
    last_ns: int


class FlowDict(TypedDict):
    """The folded flow graph. `overflow`: events are missing in it."""

    nodes: list[FlowNode]
    edges: list[FlowEdge]
    overflow: bool


class StructureDict(TypedDict):
    """A Structure as the page draws it."""

    process: int
    stream: str
    confidence: str
    reason: str
    streams: list[str]
    levels: list[LevelDict]
    graph: FlowDict
    loops: list[FlowLoop]
    expression: str
    kept_steps: int | None


@dataclass(frozen=True)
class Structure:
    """The loops of one process.

    stream: the sequence of events that decided: `calls`, `operators`, `kernels`, `mpi`. confidence: `high`, `medium`,
    `low`,
    `none` (no loop), and the reason in one sentence. streams: kinds of the sequences in which the step is the same.
    levels: the nest of loops, parents before children; one of them for each phase of the run is the step. graph: the
    flow graph of that sequence, folded. expression: the order of its events, `SEQ A LOOP(100x) SEQ[B C]`, cut where it
    is long. Without a main loop, levels are loops none of which is the step: the layers of a single forward pass.
    kept_steps: where steps were folded, how many are in detail: what is inside of steps is known of these.
    """

    process: int
    stream: str
    confidence: str
    reason: str
    streams: tuple[str, ...]
    levels: tuple[TreeLevel, ...]
    graph: Graph = field(default=Graph())
    expression: str = ""
    kept_steps: int | None = None

    @property
    def step(self) -> TreeLevel | None:
        """The level that is the step, of several phases the longest; None without a loop."""
        return max((level for level in self.levels if level.is_step), key=lambda level: level.time_ns, default=None)

    def to_json(self) -> str:
        """Return everything as JSON text, as the page draws it; times in nanoseconds since the trace's zero."""
        plain: StructureDict = {
            "process": self.process,
            "stream": self.stream,
            "confidence": self.confidence,
            "reason": self.reason,
            "streams": list(self.streams),
            "levels": [_level_dict(number, level) for number, level in enumerate(self.levels)],
            "graph": graph_dict(self.graph),
            "loops": list(self.graph.loops),
            "expression": self.expression,
            "kept_steps": self.kept_steps,
        }
        return json.dumps(plain, separators=(",", ":"), default=asdict)

    def to_dict(self) -> dict[str, Any]:
        """Return the values of `to_json()`."""
        values: dict[str, Any] = json.loads(self.to_json())
        return values


def graph_dict(graph: Graph) -> FlowDict:
    """Return a graph as the page draws it."""
    return {"nodes": list(graph.nodes), "edges": list(graph.edges), "overflow": graph.overflow}


def opened_graph(trace: Trace, structure: Structure, opened: Collection[str]) -> tuple[Graph, frozenset[str]]:
    """Return the flow graph of the outermost operators of a process, and of what is inside of the `opened` ones.

    Also the names of the operators that hold others. It is empty where no operators were recorded.
    """
    stream = dict(read_streams(trace)).get(structure.process)
    if stream is None:
        return Graph(), frozenset()
    return draw_opened(stream, structure.levels, opened, folded_time(trace, structure.process))


def _level_dict(number: int, level: TreeLevel) -> LevelDict:
    facts = {name: value for name, value in vars(level).items() if name in LevelDict.__annotations__}
    trips = level.trips or (level.count, level.count, level.count)
    return cast(LevelDict, {"id": number, **facts, "trips": list(trips)})


def find_structure(
    trace: Trace, process: int | None = None, stream: str = "auto", asked: Asked | None = None
) -> Structure:
    """Return the loops of a process (by default the first that has steps), found in all of its sequences or in one.

    `asked`: what a step is; by default what was chosen for the trace, or what is found. Raises UsageError for a
    process, a sequence, or a step that was not recorded.
    """
    if stream not in STREAMS:
        raise UsageError(f"no sequence of events '{stream}'", do=f"Sequences: {', '.join(STREAMS)}")
    return _find(trace, process, stream, asked or chosen_steps(trace))


@cached_on_trace
def _find(trace: Trace, process: int | None, stream: str, asked: Asked) -> Structure:
    streams = dict(read_streams(trace))
    if process is None:
        having = find_steps(trace).processes
        process = having[0].process if having else next(iter(streams), 0)
    if process not in streams:
        recorded = ", ".join(map(str, streams)) or "none"
        raise UsageError(f"process {process} recorded no spans", do=f"Processes with spans: {recorded}")
    run_ns = trace.info.duration_ns
    official = next((each for each in find_steps(trace, asked).processes if each.process == process), None)
    if asked:
        found = structure_of(streams[process], process, stream, run_ns, asked, folded_time(trace, process))
        # The reason covers folded iterations, too: it is that of the steps.
        if official is None:
            return found
        return replace(found, reason=official.reason, kept_steps=_kept(official))
    if official is None or official.recorded is None or stream != "auto":
        return structure_of(streams[process], process, stream, run_ns)
    if not events_of(streams[process]):  # the spans of its steps are lost
        return structure_of(streams[process], process, stream, run_ns)
    return _of_records(trace, streams[process], official, run_ns)


def _of_records(trace: Trace, stream: Stream, steps: ProcessSteps, run_ns: int) -> Structure:
    """The loops of a process that recorded its steps: what is inside of them is known of those kept in detail."""
    sequences = events_of(stream)
    events = sequences.get(OPERATORS) or next(iter(sequences.values()))
    tree: list[TreeLevel] = []
    location = main_location(trace, steps.process)
    add_recorded(tree, stream, events, steps, outer_loops(stream, steps), _folded(trace, location, stream), run_ns)
    drawn = draw_recorded(trace, location, stream, tree) if location is not None else None
    graph, expression = drawn or draw(stream, events, tree)
    reason = f"{steps.reason}; what is inside of a step is known from the {int(steps.kept.sum())} kept in detail"
    found = Structure(steps.process, events.kind, steps.confidence, reason, (events.kind,), tuple(tree))
    return replace(found, graph=graph, expression=expression, kept_steps=_kept(steps))


def _folded(trace: Trace, location: int | None, stream: Stream) -> Ints:
    """How many executions of each call path of a thread were folded."""
    counts = np.zeros(len(stream.path_parent), dtype=np.int64)
    if location is not None:
        folded = trace.folded.get(trace.home(location).process)
        if folded is not None:
            own = np.flatnonzero((folded.location == location) & ~folded.is_short)
            np.add.at(counts, folded.call_path[own], folded.count[own])
    return counts


def _kept(steps: ProcessSteps) -> int | None:
    kept = int(steps.kept.sum())
    return kept if kept < len(steps) else None


def structure_of(
    stream: Stream,
    process: int = 0,
    kind: str = "auto",
    run_ns: int | None = None,
    asked: Asked | None = None,
    folded: FoldedTime | None = None,
) -> Structure:
    """Return the loops of one thread; `run_ns` is how long the run took, by default the time of the thread."""
    sequences = events_of(stream)
    if kind != "auto" and kind not in sequences:
        recorded = ", ".join(sequences) or "none"
        raise UsageError(f"process {process} recorded no {kind}", do=f"Sequences: {recorded}")
    loops = find_loops(stream, only=None if kind == "auto" else kind)
    if asked:
        found, loops = loops, asked_loops(stream, loops, asked)
        if not loops:
            raise not_there(asked, stream.names, levels_to_ask_for(stream, found))
    if run_ns is None:
        run_ns = int(stream.end_ns.max() - stream.start_ns[0]) if len(stream) else 0
    main = max(loops, key=lambda loop: time_ns(stream, loop), default=None)
    decided = _deciding(kind, loops, sequences)
    if loops or decided not in sequences:
        levels = tuple(loop_tree(stream, loops, run_ns, _times(stream, loops, folded) if kind == "auto" else None))
    else:
        levels = tuple(loops_without_step(stream, sequences[decided], run_ns))
    graph, expression = draw(stream, sequences[decided], levels) if decided in sequences else (Graph(), "")
    if main is None:
        return Structure(process, decided, "none", NO_LOOP, (), levels, graph, expression)
    return Structure(process, decided, main.confidence, main.reason, main.streams, levels, graph, expression)


def _times(stream: Stream, loops: Sequence[MainLoop], folded: FoldedTime | None) -> dict[int, tuple[Ints, Ints]]:
    """When the steps of the main loop began and ended, by number of the loop."""
    pieces = steps_by_loop(stream, loops, folded)
    main = main_pieces(pieces, [loop.name for loop in loops]) if pieces else []
    return {number: (pieces[number].start_ns, pieces[number].start_ns + pieces[number].duration_ns) for number in main}


def _deciding(kind: str, loops: Sequence[MainLoop], sequences: Mapping[str, object]) -> str:
    if kind != "auto":
        return kind
    decided = next((loop.events.kind for loop in loops if loop.events is not None), None)
    return decided or next(iter(sequences), KINDS[0])
