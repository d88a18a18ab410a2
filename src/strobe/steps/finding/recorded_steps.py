"""Steps of a process that recorded its iterations: from its records, and from a search before, between and after them.

While a program runs, the recorder keeps everything until it has found the main loop; from then on it writes one record
per iteration and folds most of them. Where there are records they are the steps. Everywhere else the spans are there,
and the offline search finds steps in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from strobe.steps.cells import Cells
from strobe.steps.finding.loop_steps import LoopSteps, classes_of, joined_steps, main_pieces
from strobe.steps.finding.offline_search import steps_by_loop, steps_of, steps_of_loop
from strobe.steps.finding.step_classes import Extras, base_class
from strobe.steps.loop_choice.main_loop import MainLoop, find_loops
from strobe.steps.process_steps import Loop, ProcessSteps, Recorded
from strobe.steps.thread_spans import Ints, Stream, main_location
from strobe.steps.training_activities import BACKWARD, OPTIMIZER, REST
from strobe.trace.folded import Iterations, RecordedLoop, read_extra_uses, read_extras, read_loops
from strobe.trace.spans import Stretches
from strobe.trace.trace import Trace

# Each is a look at the spans of its own: of more, all spans are read.
_MOST_STRETCHES = 64
_FOREVER = -(1 << 61), 1 << 61  # beyond every time


def searched_stretches(trace: Trace, process: int) -> Stretches | None:
    """Return when a process has no records of iterations: only there steps are searched in its spans. None: anywhere.

    What is in detail meanwhile grows with the run; it is not read.
    """
    if not len(trace.readers[process].iterations()["start_ns"]):
        return None
    records = trace.iterations(process)
    end_ns = records.start_ns + records.duration_ns
    breaks = _breaks(records)
    if len(breaks) > _MOST_STRETCHES:
        return None
    return np.append(_FOREVER[0], end_ns[np.append(breaks - 1, -1)]), np.append(
        records.start_ns[np.append(0, breaks)], _FOREVER[1]
    )


def with_records(trace: Trace, stream: Stream, process: int) -> ProcessSteps:
    """Find the steps of a process: from its records where it has any."""
    reader, definitions = trace.readers[process], trace.definitions
    if not len(reader.iterations()["start_ns"]):
        return steps_of(stream, process)
    records = trace.iterations(process)
    path_map = definitions.path_maps[process]
    loops = read_loops(reader, trace.zero_of(process))
    found_by_recorder = _recorded_pieces(
        records,
        trace.iteration_cells(process),
        loops,
        read_extras(reader, definitions.region_maps[process], path_map),
        read_extra_uses(reader, path_map),
    )
    begins = cache(lambda: _begins(trace, process, records))
    pieces = list(_pieces(stream, records, loops, found_by_recorder, begins))
    # Of a recorded loop, all pieces together, whatever the search before it found.
    names = [piece.loop.name if piece.recorded_loop is None else loops[piece.recorded_loop].name for piece in pieces]
    pieces = [pieces[number] for number in main_pieces(pieces, names)]
    found = joined_steps(process, pieces, classes_of(stream, pieces), _loops(pieces))
    # Where nothing was kept before the first record, the steps that the recorder had seen by then have no row.
    first = pieces[0].recorded_loop
    unseen = 0 if pieces[0].recorded is None or first is None else loops[first].accepted_iteration
    return replace(found, first_number=unseen)


# Pieces


def _pieces(
    stream: Stream,
    records: Iterations,
    loops: Sequence[RecordedLoop],
    recorded: Iterable[LoopSteps],
    begins: Callable[[], Ints],
) -> Iterator[LoopSteps]:
    since_ns, before = np.iinfo(np.int64).min, None
    for piece in recorded:
        after = piece.recorded_loop
        yield from _searched(stream, (since_ns, int(piece.start_ns[0])), loops, (before, after), begins)
        yield piece
        since_ns, before = int(piece.start_ns[-1] + piece.duration_ns[-1]), after
    yield from _searched(stream, (since_ns, np.iinfo(np.int64).max), loops, (before, None), begins)


def _breaks(records: Iterations) -> Ints:
    """Return the records that do not follow the one before them: another loop's, or after a pause."""
    end_ns = records.start_ns + records.duration_ns
    return np.flatnonzero((records.loop[1:] != records.loop[:-1]) | (records.start_ns[1:] > end_ns[:-1])) + 1


def _recorded_pieces(
    records: Iterations,
    columns: Mapping[int, Ints] | None,
    loops: Sequence[RecordedLoop],
    sets: Sequence[Sequence[int]],
    uses: Mapping[int, Mapping[int, tuple[int, int]]],
) -> Iterator[LoopSteps]:
    """Yield the recorded iterations of one loop that follow each other. `uses`: by loop, of all its iterations."""
    begun = set[int]()
    for rows in np.split(np.arange(len(records)), _breaks(records)):
        run, number = records.chosen(rows), int(records.loop[rows[0]])
        work = run.parts_ns.sum(axis=0)
        loop, first = loops[number], number not in begun
        begun.add(number)
        yield LoopSteps(
            loop=Loop(loop.kind, loop.name, loop.confidence, loop.reason, len(run), accepted_step=0),
            start_ns=run.start_ns,
            duration_ns=run.duration_ns,
            cells=Cells(run.parts_ns, columns and {number: values[rows] for number, values in columns.items()}),
            complete=np.ones(len(run), dtype=bool),
            extras=Extras(
                base=base_class(bool(work[BACKWARD] or work[OPTIMIZER]), bool(work[:REST].any())),
                set_of_step=run.class_id,
                sets=sets,
                uses=uses.get(number, {}) if first else {},
            ),
            recorded=Recorded(run.class_id, run.detail, run.events, run.path_hash),
            recorded_loop=number,
        )


def _searched(
    stream: Stream,
    between_ns: tuple[int, int],
    loops: Sequence[RecordedLoop],
    neighbours: tuple[int | None, int | None],
    begins: Callable[[], Ints],
) -> Iterator[LoopSteps]:
    """Yield the steps between two runs of records (numbers of their loops), if there are any.

    `begins`: the regions that a record begins with.
    """
    low, high = np.searchsorted(stream.start_ns, between_ns).tolist()
    if low == high:
        return
    part = stream.part(low, high)
    before, after = neighbours
    pieces = steps_by_loop(part, find_loops(part))
    if after is not None and loops[after].kind == "structure" and not _as_many(pieces, loops[after]):
        marked = _before_marks(part, loops[after], begins())
        pieces = pieces if marked is None else [marked]
    for number, piece in enumerate(pieces):
        if after is not None and number == len(pieces) - 1 and piece.loop.kind == loops[after].kind:
            yield from _leading_up(replace(piece, recorded_loop=after), between_ns[1])
        elif before is not None and number == 0 and _goes_on(piece.loop, loops[before]):
            yield replace(piece, recorded_loop=before)
        else:
            yield piece


def _goes_on(loop: Loop, recorded: RecordedLoop) -> bool:
    """Whether it is the recorded loop: without an anchor, another one may follow it."""
    return loop.kind == recorded.kind and (loop.kind != "structure" or loop.name == recorded.name)


def _begins(trace: Trace, process: int, records: Iterations) -> Ints:
    """Return the regions of the spans of the main thread that begin when a record does."""
    main = main_location(trace, process)
    if main is None:
        return np.zeros(0, dtype=np.int64)
    spans = trace.span_arrays(main)
    at = np.minimum(np.searchsorted(records.start_ns, spans["start_ns"]), len(records) - 1)
    return np.unique(spans["region"][records.start_ns[at] == spans["start_ns"]].astype(np.int64))


def _as_many(pieces: Sequence[LoopSteps], loop: RecordedLoop) -> bool:
    return bool(pieces) and abs(len(pieces[-1]) - loop.accepted_iteration) <= 1


def _before_marks(part: Stream, loop: RecordedLoop, begins: Ints) -> LoopSteps | None:
    """Steps of a loop without an anchor before it was accepted: where its marker ran, as often as the recorder saw it.

    None where it did not run so often, unless it is an iteration itself: the recorder may have forgotten the first.
    The offline search may prefer another level in so short a piece.
    """
    regions = [region for region, name in enumerate(part.names) if name == loop.name]
    marks = np.flatnonzero(np.isin(part.region, regions))
    is_iteration = len(marks) > loop.accepted_iteration and loop.name.startswith("loop in ")
    if not len(marks) or (abs(len(marks) - loop.accepted_iteration) > 1 and not is_iteration):
        return None
    # What records begin with at times comes in front of their marker.
    front = np.flatnonzero(np.isin(part.region, np.setdiff1d(begins, regions)))
    front = front[(front < marks[-1]) & np.isin(part.parent[front], part.parent[marks])]
    np.minimum.at(marks, np.searchsorted(marks, front), front)
    return steps_of_loop(part, MainLoop(loop.kind, marks, loop.confidence, loop.reason, loop.name))


def _leading_up(piece: LoopSteps, until_ns: int) -> Iterator[LoopSteps]:
    """Let the last step end where the first record begins. What had begun only just before is a part of that record."""
    if not piece.complete[-1] and 2 * piece.duration_ns[-1] < np.median(piece.duration_ns):
        piece = _first(piece, len(piece) - 1)
    if not len(piece):
        return
    duration, complete = piece.duration_ns.copy(), piece.complete.copy()
    duration[-1] = until_ns - piece.start_ns[-1]
    cells = piece.cells.with_last(int(duration[-1]))
    set_of_step = piece.extras.set_of_step.copy()
    if not complete[-1]:
        set_of_step[-1] = np.bincount(set_of_step).argmax()
    complete[-1] = True
    extras = replace(piece.extras, set_of_step=set_of_step)
    yield replace(piece, duration_ns=duration, cells=cells, complete=complete, extras=extras)


def _first(piece: LoopSteps, count: int) -> LoopSteps:
    shorter = {name: vars(piece)[name][:count] for name in ("start_ns", "duration_ns", "complete")}
    extras = replace(piece.extras, set_of_step=piece.extras.set_of_step[:count])
    loop = replace(piece.loop, step_count=count)
    return replace(piece, loop=loop, cells=piece.cells.first(count), extras=extras, **shorter)


def _loops(pieces: Sequence[LoopSteps]) -> list[Loop]:
    """One loop for all pieces that follow each other and belong to the same recorded loop."""
    loops: list[Loop] = []
    number: int | None = None
    first = 0
    for piece in pieces:
        accepted = first if piece.recorded is not None else None
        if loops and piece.recorded_loop is not None and piece.recorded_loop == number:
            last = loops[-1]
            facts = last if piece.recorded is None or last.accepted_step is not None else piece.loop
            loops[-1] = replace(
                facts,
                step_count=last.step_count + len(piece),
                accepted_step=accepted if last.accepted_step is None else last.accepted_step,
            )
        else:
            loops.append(replace(piece.loop, accepted_step=accepted))
        number = piece.recorded_loop
        first += len(piece)
    return loops
