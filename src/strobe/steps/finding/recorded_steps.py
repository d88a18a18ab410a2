"""Steps of a process that recorded its iterations: its records, and what is found offline before, between, after them.

While a program runs, the recorder keeps everything until it has found the main loop; from then on it writes one record
per iteration and folds most of them. Where there are records they are the steps. Everywhere else the spans are there,
and the offline search finds steps in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.steps.finding.classes import PARTIAL, label, recurs
from strobe.steps.finding.offline_search import steps_of
from strobe.steps.finding.outliers import find_outliers
from strobe.steps.loop_choice.anchors import MARKS
from strobe.steps.process_steps import Loop, ProcessSteps, Recorded
from strobe.steps.thread_spans import Bools, Ints, Stream
from strobe.steps.training_activities import BACKWARD, FORWARD, OPTIMIZER, PARTS, REST
from strobe.trace.folded import OTHER, VALIDATION, Iterations, RecordedLoop, read_extras, read_loops
from strobe.trace.trace import Trace

# What is found outside of the records and is no part of a recorded loop is a phase of its own if it lasts this share of
# the process's time (the reference's rule for phases).
_LEAST_PHASE = 0.1


@dataclass(frozen=True)
class _Piece:
    """Steps that follow each other, of one loop: `recorded` is its number among the recorded loops, or None."""

    recorded: int | None
    loop: Loop
    start_ns: Ints
    duration_ns: Ints
    parts_ns: Ints
    complete: Bools
    classes: tuple[str, ...]
    records: Iterations | None = None

    def __len__(self) -> int:
        return len(self.start_ns)


def with_records(trace: Trace, stream: Stream, process: int) -> ProcessSteps:
    """Find the steps of a process: from its records where it has any."""
    records = trace.iterations(process)
    if not len(records):
        return steps_of(stream, process)
    extra_regions = read_extras(trace.readers[process], trace.definitions.region_maps[process])
    extras = [_labels(regions, stream.names) for regions in extra_regions]
    known = {name for names in extras for name in names}
    loops = read_loops(trace.readers[process], trace.zero_of(process))
    pieces = _confirmed(list(_pieces(stream, records, loops, known)))
    found = _joined(_named(pieces, extras), process)
    # Where nothing was kept before the first record, the steps that the recorder had seen by then have no row.
    unseen = 0 if pieces[0].records is None else loops[int(records.loop[0])].accepted_iteration
    return replace(found, first_number=unseen)


def _labels(regions: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    special = {VALIDATION: "validation", OTHER: "other"}
    return tuple(dict.fromkeys(special[each] if each in special else label(names[each]) for each in regions))


# Pieces


def _pieces(
    stream: Stream, records: Iterations, loops: Sequence[RecordedLoop], known: Collection[str]
) -> Iterator[_Piece]:
    """Yield all pieces in order of time."""
    end_ns = records.start_ns + records.duration_ns
    breaks = np.flatnonzero((records.loop[1:] != records.loop[:-1]) | (records.start_ns[1:] > end_ns[:-1])) + 1
    since_ns, before = np.iinfo(np.int64).min, None
    for rows in np.split(np.arange(len(records)), breaks):
        after = int(records.loop[rows[0]])
        until_ns = int(records.start_ns[rows[0]])
        yield from _searched(stream, (since_ns, until_ns), loops, (before, after), known)
        run = records.chosen(rows)
        yield _recorded_piece(run, loops[after], after)
        since_ns, before = int(end_ns[rows[-1]]), after
    yield from _searched(stream, (since_ns, np.iinfo(np.int64).max), loops, (before, None), known)


def _confirmed(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Let an anchored loop be certain only where the offline search is, in the steps before it was accepted.

    The recorder looks at one sequence of events; a wrong answer must never have high confidence, so two must agree.
    """
    sure = {piece.recorded for piece in pieces if piece.records is None and piece.loop.confidence == "high"}
    return [
        piece
        if piece.loop.confidence != "high" or piece.loop.kind in MARKS or piece.recorded in sure
        else replace(piece, loop=replace(piece.loop, confidence="medium"))
        for piece in pieces
    ]


def _recorded_piece(run: Iterations, loop: RecordedLoop, number: int) -> _Piece:
    return _Piece(
        recorded=number,
        loop=Loop(loop.kind, loop.name, loop.confidence, loop.reason, len(run), accepted_step=0),
        start_ns=run.start_ns,
        duration_ns=run.duration_ns,
        parts_ns=run.parts_ns,
        complete=np.ones(len(run), dtype=bool),
        classes=(),
        records=run,
    )


def _searched(
    stream: Stream,
    between_ns: tuple[int, int],
    loops: Sequence[RecordedLoop],
    neighbours: tuple[int | None, int | None],
    known: Collection[str],
) -> Iterator[_Piece]:
    """Yield the steps between two runs of records (numbers of their loops), if there are any."""
    low, high = np.searchsorted(stream.start_ns, between_ns).tolist()
    if low == high:
        return
    part = stream.part(low, high)
    found = steps_of(part, recurring=known)
    before, after = neighbours
    if after is not None and loops[after].kind == "structure":
        found = _before_marks(part, loops[after], found)
    pieces = list(_by_loop(found))
    for number, piece in enumerate(pieces):
        if after is not None and number == len(pieces) - 1 and piece.loop.kind == loops[after].kind:
            yield from _leading_up(replace(piece, recorded=after), between_ns[1])
        elif before is not None and number == 0 and piece.loop.kind == loops[before].kind:
            yield replace(piece, recorded=before)
        elif piece.duration_ns.sum() >= _LEAST_PHASE * (stream.end_ns.max() - stream.start_ns.min()):
            yield piece


def _by_loop(found: ProcessSteps) -> Iterator[_Piece]:
    """Divide steps that were found by their loops."""
    until = np.cumsum([loop.step_count for loop in found.loops], dtype=np.int64).tolist()
    for loop, end in zip(found.loops, until, strict=True):
        of = slice(end - loop.step_count, end)
        times = (found.start_ns[of], found.duration_ns[of], found.parts_ns[of])
        yield _Piece(None, loop, *times, found.complete[of], found.classes[of])


def _before_marks(part: Stream, loop: RecordedLoop, found: ProcessSteps) -> ProcessSteps:
    """Steps of a loop without an anchor before it was accepted: where its marker ran, as often as the recorder saw it.

    The offline search may prefer another level in so short a piece.
    """
    regions = [region for region, name in enumerate(part.names) if name == loop.name]
    marks = np.flatnonzero(np.isin(part.region, regions))
    if not len(marks) or abs(len(marks) - loop.accepted_iteration) > 1:
        return found
    start = part.start_ns[marks]
    duration = np.diff(start, append=part.end_ns[-1])
    parts = np.zeros((len(start), len(PARTS)), dtype=np.int64)
    parts[:, REST] = duration
    every, no = np.ones(len(start), dtype=bool), np.zeros(len(start), dtype=bool)
    return replace(
        found,
        start_ns=start,
        duration_ns=duration,
        parts_ns=parts,
        complete=every,
        warm_up=no,
        outlier=no,
        classes=("step",) * len(start),
        cause=("",) * len(start),
        loops=(Loop(loop.kind, loop.name, loop.confidence, loop.reason, len(start)),),
    )


def _leading_up(piece: _Piece, until_ns: int) -> Iterator[_Piece]:
    """Let the last step end where the first record begins. What had begun only just before is a part of that record."""
    if not piece.complete[-1] and 2 * piece.duration_ns[-1] < np.median(piece.duration_ns):
        piece = _first(piece, len(piece) - 1)
    if not len(piece):
        return
    duration, parts, complete = piece.duration_ns.copy(), piece.parts_ns.copy(), piece.complete.copy()
    duration[-1] = until_ns - piece.start_ns[-1]
    _refit(parts[-1], int(duration[-1]))
    usual = Counter(piece.classes).most_common(1)[0][0]
    classes = piece.classes if complete[-1] else (*piece.classes[:-1], usual)
    complete[-1] = True
    yield replace(piece, duration_ns=duration, parts_ns=parts, complete=complete, classes=classes)


def _first(piece: _Piece, count: int) -> _Piece:
    return replace(
        piece,
        loop=replace(piece.loop, step_count=count),
        start_ns=piece.start_ns[:count],
        duration_ns=piece.duration_ns[:count],
        parts_ns=piece.parts_ns[:count],
        complete=piece.complete[:count],
        classes=piece.classes[:count],
    )


def _refit(parts_ns: Ints, duration_ns: int) -> None:
    """Make the parts of a step add up to its new duration: the rest gives or takes, then the largest part."""
    parts_ns[REST] += duration_ns - parts_ns.sum()
    while parts_ns[REST] < 0:
        largest = int(parts_ns.argmax())
        taken = min(int(parts_ns[largest]), -int(parts_ns[REST]))
        parts_ns[largest] -= taken
        parts_ns[REST] += taken


# Classes


def _recurring(pieces: Sequence[_Piece], extras: Sequence[Sequence[str]]) -> set[str]:
    """Extras that make a class: those that occur in more than one step of the run, the first one not counted."""
    steps: dict[str, set[int]] = {}
    first = 0
    for piece in pieces:
        if piece.records is None:
            named = {number: name.split("+")[1:] for number, name in enumerate(piece.classes)}
        else:
            # Three steps of a class are enough.
            rows = [np.flatnonzero(piece.records.class_id == each)[:3] for each in np.unique(piece.records.class_id)]
            named = {row: list(extras[piece.records.class_id[row]]) for some in rows for row in some.tolist()}
        for number, names in named.items():
            for name in names:
                steps.setdefault(name, set()).add(first + number)
        first += len(piece)
    return {name for name, where in steps.items() if recurs(name, where)}


def _base(records: Iterations) -> str:
    work = records.parts_ns.sum(axis=0)
    if work[BACKWARD] or work[OPTIMIZER]:
        return "train"
    return "inference" if work[FORWARD] else "step"


def _named(pieces: Sequence[_Piece], extras: Sequence[Sequence[str]]) -> list[_Piece]:
    """Name the classes of all pieces alike."""
    recurring = _recurring(pieces, extras)
    bases = {piece.recorded: _base(piece.records) for piece in pieces if piece.records is not None}
    named = []
    for piece in pieces:
        base = bases.get(piece.recorded)
        if piece.records is not None and base:
            names = ["+".join([base, *(each for each in labels if each in recurring)]) for labels in extras]
            classes = tuple(names[number] for number in piece.records.class_id.tolist())
        elif base:
            classes = tuple(
                name if name == PARTIAL else "+".join([base, *name.split("+")[1:]]) for name in piece.classes
            )
        else:
            classes = piece.classes
        named.append(replace(piece, classes=classes))
    return named


# All together


def _joined(pieces: Sequence[_Piece], process: int) -> ProcessSteps:
    loops = _loops(pieces)
    duration = np.concatenate([piece.duration_ns for piece in pieces])
    parts = np.concatenate([piece.parts_ns for piece in pieces])
    classes = tuple(name for piece in pieces for name in piece.classes)
    unusual = find_outliers(duration, parts, classes, [loop.step_count for loop in loops])
    ends = np.cumsum([loop.step_count for loop in loops])
    time_ns = [part.sum() for part in np.split(duration, ends[:-1])]
    main = loops[int(np.argmax(time_ns))]
    return ProcessSteps(
        process=process,
        start_ns=np.concatenate([piece.start_ns for piece in pieces]),
        duration_ns=duration,
        classes=classes,
        parts_ns=parts,
        complete=np.concatenate([piece.complete for piece in pieces]),
        warm_up=unusual.warm_up,
        outlier=unusual.outlier,
        cause=unusual.cause,
        anchored=any(loop.kind != "structure" for loop in loops),
        confidence=main.confidence,
        reason=main.reason,
        loops=tuple(loops),
        recorded=_recorded(pieces),
        drifts=unusual.drifts,
    )


def _recorded(pieces: Sequence[_Piece]) -> Recorded:
    parts = []
    for piece in pieces:
        each = piece.records
        unknown = Recorded.of_none(len(piece))
        parts.append(unknown if each is None else Recorded(each.class_id, each.detail, each.events, each.path_hash))
    return Recorded.joined(parts)


def _loops(pieces: Sequence[_Piece]) -> list[Loop]:
    """One loop for all pieces that follow each other and belong to the same recorded loop."""
    loops: list[Loop] = []
    number: int | None = None
    first = 0
    for piece in pieces:
        accepted = first if piece.records is not None else None
        if loops and piece.recorded is not None and piece.recorded == number:
            last = loops[-1]
            facts = last if piece.records is None or last.accepted_step is not None else piece.loop
            loops[-1] = replace(
                facts,
                step_count=last.step_count + len(piece),
                accepted_step=accepted if last.accepted_step is None else last.accepted_step,
            )
        else:
            loops.append(replace(piece.loop, accepted_step=accepted))
        number = piece.recorded
        first += len(piece)
    return loops
