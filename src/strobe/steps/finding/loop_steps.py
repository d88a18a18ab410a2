"""Steps of one loop that follow each other, and how the steps of a process are joined from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from strobe.steps.cells import Cells
from strobe.steps.finding.outliers import find_outliers
from strobe.steps.finding.step_classes import PARTIAL, Extras, class_names
from strobe.steps.loop_choice.anchors import ANCHORS
from strobe.steps.process_steps import Loop, ProcessSteps, Recorded
from strobe.steps.thread_spans import Bools, Ints, Stream


@dataclass(frozen=True)
class LoopSteps:
    """Steps of one loop that follow each other; the arrays are those of `ProcessSteps`.

    extras: what they do beyond the usual, by which they are named; named: the classes that their marks name, if these
    are marks of an engine.
    recorded: what their records hold, None where they were found in spans. recorded_loop: number of the loop among the
    recorded ones, None where it is not one of them.
    """

    loop: Loop
    start_ns: Ints
    duration_ns: Ints
    cells: Cells
    complete: Bools
    extras: Extras
    recorded: Recorded | None = None
    recorded_loop: int | None = None
    named: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.start_ns)


def main_pieces(pieces: Sequence[LoopSteps], names: Sequence[str]) -> list[int]:
    """Return which pieces belong to the main loop; `names`: of the loop of each.

    Without an anchor the main loop is the one that takes most time: its iterations and those of another loop are not
    two steps of one kind. Loops with an anchor all train; one with a weaker anchor than others have (a validation
    behind a training) does not.
    """
    authority = [*ANCHORS, "structure", "asked"]
    kind = min((piece.loop.kind for piece in pieces), key=authority.index)
    took_ns = Counter[str]()
    for name, piece in zip(names, pieces, strict=True):
        took_ns[name] += int(piece.duration_ns.sum())
    main = max(took_ns, key=lambda name: took_ns[name])
    return [
        number
        for number, (name, piece) in enumerate(zip(names, pieces, strict=True))
        if piece.loop.kind == kind and (kind != "structure" or name == main)
    ]


def joined_steps(
    process: int, pieces: Sequence[LoopSteps], classes: tuple[str, ...], loops: Sequence[Loop] | None = None
) -> ProcessSteps:
    """Return the steps of all pieces, with what is unusual among them.

    classes: of all steps. loops: by default one for each piece.

    The loop that takes most time stands for all.
    """
    loops = [piece.loop for piece in pieces] if loops is None else loops
    counts = [loop.step_count for loop in loops]
    duration = np.concatenate([piece.duration_ns for piece in pieces])
    cells = Cells.joined([piece.cells for piece in pieces])
    unusual = find_outliers(duration, cells.parts_ns, classes, counts)
    time_ns = [int(of_loop.sum()) for of_loop in np.split(duration, np.cumsum(counts)[:-1])]
    main = loops[int(np.argmax(time_ns))]
    recorded = [Recorded.of_none(len(piece)) if piece.recorded is None else piece.recorded for piece in pieces]
    return ProcessSteps(
        process=process,
        start_ns=np.concatenate([piece.start_ns for piece in pieces]),
        duration_ns=duration,
        classes=classes,
        cells=cells,
        complete=np.concatenate([piece.complete for piece in pieces]),
        **vars(unusual),
        anchored=any(loop.kind != "structure" for loop in loops),
        confidence=main.confidence,
        reason=main.reason,
        loops=tuple(loops),
        recorded=None if all(piece.recorded is None for piece in pieces) else Recorded.joined(recorded),
    )


def classes_of(stream: Stream, pieces: Sequence[LoopSteps]) -> tuple[str, ...]:
    """Return the class of every step. What a loop usually does is known of all its pieces together."""
    number = [-1 - at if piece.recorded_loop is None else piece.recorded_loop for at, piece in enumerate(pieces)]
    loops = dict[int, list[LoopSteps]]()
    for loop, piece in zip(number, pieces, strict=True):
        loops.setdefault(loop, []).append(piece)
    together = [Extras.joined([piece.extras for piece in loop]) for loop in loops.values()]
    names = {loop: iter(each) for loop, each in zip(loops, class_names(stream, together), strict=True)}
    classes = []
    for loop, piece in zip(number, pieces, strict=True):
        of_set = list(islice(names[loop], len(piece.extras.sets)))
        of_step = piece.named or map(of_set.__getitem__, piece.extras.set_of_step.tolist())
        classes += [name if whole else PARTIAL for name, whole in zip(of_step, piece.complete.tolist(), strict=True)]
    return tuple(classes)
