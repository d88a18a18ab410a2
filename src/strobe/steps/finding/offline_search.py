"""The steps of one thread, found in its spans after the run: the iterations of its main loops, cut and classified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strobe.steps.cells import Cells
from strobe.steps.finding.cuts import cut
from strobe.steps.finding.loop_steps import LoopSteps, classes_of, joined_steps, main_pieces
from strobe.steps.finding.requested_steps import Asked, asked_loops
from strobe.steps.finding.step_classes import engine_classes, extras_of
from strobe.steps.finding.step_parts import split
from strobe.steps.folded_time import FoldedTime
from strobe.steps.loop_choice.main_loop import NO_LOOP, MainLoop, find_loops
from strobe.steps.process_steps import Loop, ProcessSteps, Recorded
from strobe.steps.thread_spans import Stream
from strobe.steps.training_activities import DATA_WAIT, PARTS, REST, work_of
from strobe.trace.folded import ALL, PART


def steps_of(
    stream: Stream, process: int = 0, asked: Asked | None = None, folded: FoldedTime | None = None
) -> ProcessSteps:
    """Find the steps of one thread, or those that the user asks for.

    `folded`: the time of which the stream holds no spans, where steps are asked for.
    """
    loops = find_loops(stream)
    if asked:
        loops = asked_loops(stream, loops, asked)
    pieces = steps_by_loop(stream, loops, folded)
    if not pieces:
        nothing, no = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
        cells = Cells(np.empty((0, len(PARTS)), dtype=np.int64), {})
        return ProcessSteps(process, nothing, nothing, (), cells, no, no, no, (), False, "none", NO_LOOP)
    pieces = [pieces[number] for number in main_pieces(pieces, [loop.name for loop in loops])]
    found = joined_steps(process, pieces, classes_of(stream, pieces))
    if len(pieces) == 1:
        return found
    return replace(found, reason=f"{found.reason}; {len(pieces)} loops one after the other")


def steps_by_loop(stream: Stream, loops: Sequence[MainLoop], folded: FoldedTime | None = None) -> list[LoopSteps]:
    """Cut a thread into the iterations of each of its loops, which are in order of time."""
    if len(loops) == 1:
        return [steps_of_loop(stream, loops[0], folded=folded)]
    pieces, low = [], 0
    for number, loop in enumerate(loops):
        followed = number + 1 < len(loops)
        high = int(loops[number + 1].rows[0]) if followed else len(stream)
        part = stream.part(low, high)
        pieces.append(steps_of_loop(part, replace(loop, rows=loop.rows - low), followed=followed))
        end_ns = pieces[-1].start_ns[-1] + pieces[-1].duration_ns[-1]
        low = min(high, int(np.searchsorted(stream.start_ns, end_ns)))  # a span that goes on may reach further
    return pieces


def _holder(stream: Stream, loop: MainLoop) -> str:
    at, last_ns = int(stream.parent[loop.rows[0]]), int(stream.start_ns[loop.rows[-1]])
    while at >= 0 and stream.start_ns[at] + stream.duration_ns[at] < last_ns:
        at = int(stream.parent[at])
    return stream.names[stream.region[at]] if at >= 0 else ""


def steps_of_loop(
    stream: Stream, loop: MainLoop, *, followed: bool = False, folded: FoldedTime | None = None
) -> LoopSteps:
    """Cut a thread into the iterations of one loop. `followed`: another loop begins where its last step ends."""
    work = work_of(stream)
    acts = work.activities
    cuts = cut(stream, loop, acts)
    if followed and len(cuts) > 1 and not cuts.complete[-1]:
        cuts = cuts.chosen(slice(0, -1))  # it is the first one of the loop that follows
    if folded is not None and folded.is_inside(cuts.start_ns):
        ends = folded.until_folded(cuts.start_ns, cuts.end_ns)
        cuts = replace(cuts, end_ns=ends, fed_ns=np.minimum(cuts.fed_ns, ends))
    named = engine_classes(stream, loop)
    extras, rare = extras_of(stream, cuts, acts)
    rare_ns = np.stack([stream.start_ns[rare], stream.end_ns[rare]], axis=1)
    cells = split(stream, work, cuts, rare_ns, cut_anywhere=loop.kind == "structure")
    if named:
        cells = cells.moved(DATA_WAIT, REST)  # engines have their requests already: they schedule them
    reason, recorded = loop.reason, None
    if folded is not None:
        cells = Cells(folded.with_parts(cells.parts_ns, cuts.start_ns, cuts.end_ns), None)
        reason += f"; {folded.note(cuts.start_ns)}"
        some = folded.touched(cuts.start_ns, cuts.end_ns)
        recorded = replace(Recorded.of_none(len(cuts)), detail=np.where(some, PART, ALL))
    return LoopSteps(
        loop=Loop(loop.kind, loop.name, loop.confidence, reason, len(cuts), holder=_holder(stream, loop)),
        start_ns=cuts.start_ns,
        duration_ns=cuts.end_ns - cuts.start_ns,
        cells=cells,
        complete=cuts.complete,
        extras=extras,
        recorded=recorded,
        named=named,
    )
