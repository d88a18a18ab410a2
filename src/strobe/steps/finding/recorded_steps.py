"""Steps of a process that recorded its iterations: from its records, and from a search before, between and after them.

While a program runs, the recorder keeps everything until it has found the main loop; from then on it writes one record
per iteration and folds most of them. Where there are records they are the steps. Everywhere else the spans are there,
and the offline search finds steps in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from strobe.steps.cells import Cells
from strobe.steps.finding.loop_steps import LoopSteps, joined_steps
from strobe.steps.finding.offline_search import steps_by_loop, steps_of, steps_of_loop
from strobe.steps.finding.step_classes import PARTIAL, base_class, label, recurs
from strobe.steps.loop_choice.anchors import ANCHORS
from strobe.steps.loop_choice.main_loop import AS_MUCH_OF_A_LOOP, MainLoop
from strobe.steps.process_steps import Loop, ProcessSteps, Recorded
from strobe.steps.thread_spans import Ints, Stream
from strobe.steps.training_activities import BACKWARD, FORWARD, OPTIMIZER
from strobe.trace.folded import OTHER, VALIDATION, Iterations, RecordedLoop, read_extras, read_loops
from strobe.trace.trace import Trace


def with_records(trace: Trace, stream: Stream, process: int) -> ProcessSteps:
    """Find the steps of a process: from its records where it has any."""
    records = trace.iterations(process)
    if not len(records):
        return steps_of(stream, process)
    extra_regions = read_extras(trace.readers[process], trace.definitions.region_maps[process])
    extras = [_labels(regions, stream.names) for regions in extra_regions]
    known = {name for names in extras for name in names}
    loops = read_loops(trace.readers[process], trace.zero_of(process))
    pieces = _phases(list(_pieces(stream, records, trace.iteration_cells(process), loops, known)))
    found = joined_steps(process, _named(pieces, extras), _loops(pieces))
    # Where nothing was kept before the first record, the steps that the recorder had seen by then have no row.
    first = pieces[0].recorded_loop
    unseen = 0 if pieces[0].recorded is None or first is None else loops[first].accepted_iteration
    return replace(found, first_number=unseen)


def _labels(regions: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    special = {VALIDATION: "validation", OTHER: "other"}
    return tuple(dict.fromkeys(special[each] if each in special else label(names[each]) for each in regions))


# Pieces


def _pieces(
    stream: Stream,
    records: Iterations,
    columns: Mapping[int, Ints] | None,
    loops: Sequence[RecordedLoop],
    known: Collection[str],
) -> Iterator[LoopSteps]:
    end_ns = records.start_ns + records.duration_ns
    breaks = np.flatnonzero((records.loop[1:] != records.loop[:-1]) | (records.start_ns[1:] > end_ns[:-1])) + 1
    since_ns, before = np.iinfo(np.int64).min, None
    begins = _begins(stream, records)
    for rows in np.split(np.arange(len(records)), breaks):
        after = int(records.loop[rows[0]])
        until_ns = int(records.start_ns[rows[0]])
        yield from _searched(stream, (since_ns, until_ns), loops, (before, after), known, begins)
        run = records.chosen(rows)
        of_run = None if columns is None else {number: values[rows] for number, values in columns.items()}
        yield _recorded_piece(run, of_run, loops[after], after)
        since_ns, before = int(end_ns[rows[-1]]), after
    yield from _searched(stream, (since_ns, np.iinfo(np.int64).max), loops, (before, None), known, begins)


def _phases(pieces: Sequence[LoopSteps]) -> list[LoopSteps]:
    """Leave out what is no phase of its own, as the offline search does.

    That is a loop with a weaker anchor than others have (a validation behind a training), and without any anchor one
    with too little time beside the longest one.
    """
    # Of a recorded loop, all pieces together; others are numbered from -1 downwards.
    numbers = [-1 - at if each.recorded_loop is None else each.recorded_loop for at, each in enumerate(pieces)]
    took_ns = Counter[int]()
    for number, piece in zip(numbers, pieces, strict=True):
        took_ns[number] += int(piece.duration_ns.sum())
    authority = [*ANCHORS, "structure"]
    kind = min((piece.loop.kind for piece in pieces), key=authority.index)
    least_ns = AS_MUCH_OF_A_LOOP * max(took_ns.values()) if kind == "structure" else 0
    return [
        piece
        for number, piece in zip(numbers, pieces, strict=True)
        if piece.loop.kind == kind and took_ns[number] >= least_ns
    ]


def _recorded_piece(run: Iterations, columns: Mapping[int, Ints] | None, loop: RecordedLoop, number: int) -> LoopSteps:
    return LoopSteps(
        loop=Loop(loop.kind, loop.name, loop.confidence, loop.reason, len(run), accepted_step=0),
        start_ns=run.start_ns,
        duration_ns=run.duration_ns,
        cells=Cells(run.parts_ns, columns),
        complete=np.ones(len(run), dtype=bool),
        classes=(),
        recorded=Recorded(run.class_id, run.detail, run.events, run.path_hash),
        recorded_loop=number,
    )


def _searched(
    stream: Stream,
    between_ns: tuple[int, int],
    loops: Sequence[RecordedLoop],
    neighbours: tuple[int | None, int | None],
    known: Collection[str],
    begins: Ints,
) -> Iterator[LoopSteps]:
    """Yield the steps between two runs of records (numbers of their loops), if there are any.

    `begins`: the regions that a record begins with.
    """
    low, high = np.searchsorted(stream.start_ns, between_ns).tolist()
    if low == high:
        return
    part = stream.part(low, high)
    before, after = neighbours
    pieces = steps_by_loop(part, recurring=known)
    if after is not None and loops[after].kind == "structure" and not _as_many(pieces, loops[after]):
        marked = _before_marks(part, loops[after], known, begins)
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


def _begins(stream: Stream, records: Iterations) -> Ints:
    at = np.minimum(np.searchsorted(records.start_ns, stream.start_ns), len(records) - 1)
    return np.unique(stream.region[records.start_ns[at] == stream.start_ns])


def _as_many(pieces: Sequence[LoopSteps], loop: RecordedLoop) -> bool:
    return bool(pieces) and abs(len(pieces[-1]) - loop.accepted_iteration) <= 1


def _before_marks(part: Stream, loop: RecordedLoop, known: Collection[str], begins: Ints) -> LoopSteps | None:
    """Steps of a loop without an anchor before it was accepted: where its marker ran, as often as the recorder saw it.

    None where it did not run so often. The offline search may prefer another level in so short a piece.
    """
    regions = [region for region, name in enumerate(part.names) if name == loop.name]
    marks = np.flatnonzero(np.isin(part.region, regions))
    if not len(marks) or abs(len(marks) - loop.accepted_iteration) > 1:
        return None
    # What records begin with at times comes in front of their marker.
    front = np.flatnonzero(np.isin(part.region, np.setdiff1d(begins, regions)))
    front = front[(front < marks[-1]) & np.isin(part.parent[front], part.parent[marks])]
    np.minimum.at(marks, np.searchsorted(marks, front), front)
    return steps_of_loop(part, MainLoop(loop.kind, marks, loop.confidence, loop.reason, loop.name), known)


def _leading_up(piece: LoopSteps, until_ns: int) -> Iterator[LoopSteps]:
    """Let the last step end where the first record begins. What had begun only just before is a part of that record."""
    if not piece.complete[-1] and 2 * piece.duration_ns[-1] < np.median(piece.duration_ns):
        piece = _first(piece, len(piece) - 1)
    if not len(piece):
        return
    duration, complete = piece.duration_ns.copy(), piece.complete.copy()
    duration[-1] = until_ns - piece.start_ns[-1]
    cells = piece.cells.with_last(int(duration[-1]))
    usual = Counter(piece.classes).most_common(1)[0][0]
    classes = piece.classes if complete[-1] else (*piece.classes[:-1], usual)
    complete[-1] = True
    yield replace(piece, duration_ns=duration, cells=cells, complete=complete, classes=classes)


def _first(piece: LoopSteps, count: int) -> LoopSteps:
    arrays = ("start_ns", "duration_ns", "complete", "classes")
    shorter = {name: vars(piece)[name][:count] for name in arrays}
    return replace(piece, loop=replace(piece.loop, step_count=count), cells=piece.cells.first(count), **shorter)


# Classes


def _recurring(pieces: Sequence[LoopSteps], extras: Sequence[Sequence[str]]) -> set[str]:
    """Extras that make a class: those that occur in more than one step of the run, the first one not counted."""
    steps: dict[str, set[int]] = {}
    first = 0
    for piece in pieces:
        if piece.recorded is None:
            named = {number: name.split("+")[1:] for number, name in enumerate(piece.classes)}
        else:
            # The first three steps of a class and the last one are enough.
            class_id = piece.recorded.class_id
            of_class = [np.flatnonzero(class_id == each) for each in np.unique(class_id)]
            rows = [np.append(each[:3], each[-1:]) for each in of_class]
            named = {row: list(extras[class_id[row]]) for some in rows for row in some.tolist()}
        for number, names in named.items():
            for name in names:
                steps.setdefault(name, set()).add(first + number)
        first += len(piece)
    return {name for name, where in steps.items() if recurs(name, where)}


def _named(pieces: Sequence[LoopSteps], extras: Sequence[Sequence[str]]) -> list[LoopSteps]:
    recurring = _recurring(pieces, extras)
    bases = {}
    for piece in pieces:
        if piece.recorded is not None:
            work = piece.cells.parts_ns.sum(axis=0)
            bases[piece.recorded_loop] = base_class(bool(work[BACKWARD] or work[OPTIMIZER]), bool(work[FORWARD]))
    named = []
    for piece in pieces:
        base, classes = bases.get(piece.recorded_loop), piece.classes
        if piece.recorded is not None and base:
            names = ["+".join([base, *(each for each in labels if each in recurring)]) for labels in extras]
            classes = tuple(map(names.__getitem__, piece.recorded.class_id.tolist()))
        elif base:
            classes = tuple(
                name if name == PARTIAL else "+".join([base, *name.split("+")[1:]]) for name in piece.classes
            )
        named.append(replace(piece, classes=classes))
    return named


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
