"""Classes of steps: steps that take the same path through the loop. Named after what they do beyond the usual.

What that is, and what of it makes a class, is decided in native/structure/step_classes.cpp: for the recorder, which
folds by it, and for the reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strobe.model.engine_steps import engine_step
from strobe.native import core
from strobe.steps.finding.cuts import Cuts
from strobe.steps.loop_choice.main_loop import MainLoop
from strobe.steps.thread_spans import Ints, Stream
from strobe.steps.training_activities import BACKWARD, OPTIMIZER, Activities
from strobe.trace.folded import OF_REGION, OTHER, VALIDATION

PARTIAL = "partial"
INFERENCE = "inference"
_BASES = ("train", INFERENCE, "step")

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SYNONYMS = {
    "validation": {"validate", "validation", "valid", "val", "evaluate", "evaluation", "eval"},
    "checkpoint": {"checkpoint", "checkpoints", "ckpt"},
}


@dataclass(frozen=True)
class Extras:
    """What steps of a loop do beyond the usual.

    set_of_step: by step an index of `sets`. An extra is a number: its kind times 2^32 (trace/folded.py), plus the call
    path or the region. uses: by extra, how many of the steps do it at all, and how many at such a cost that it makes a
    class; not known of old records. base: what steps without extras are called.
    """

    base: str
    set_of_step: Ints
    sets: Sequence[Sequence[int]]
    uses: Mapping[int, tuple[int, int]]

    @staticmethod
    def of_none(base: str, count: int) -> Extras:
        """Return that steps do nothing beyond the usual."""
        return Extras(base, np.zeros(count, dtype=np.int64), [()], {})

    @staticmethod
    def joined(pieces: Sequence[Extras]) -> Extras:
        """Return the extras of steps of one loop that follow each other; the sets of all pieces in their order."""
        before = np.cumsum([0, *(len(piece.sets) for piece in pieces)])
        uses = dict[int, tuple[int, int]]()
        for piece in pieces:
            for extra, (count, worth) in piece.uses.items():
                before_count, before_worth = uses.get(extra, (0, 0))
                uses[extra] = before_count + count, before_worth + worth
        return Extras(
            next(base for base in _BASES if any(piece.base == base for piece in pieces)),
            np.concatenate([piece.set_of_step + first for piece, first in zip(pieces, before, strict=False)]),
            [extras for piece in pieces for extras in piece.sets],
            uses,
        )


def extras_of(stream: Stream, cuts: Cuts, acts: Activities) -> tuple[Extras, Ints]:
    """Return what steps do beyond the usual, and the rows of calls that few steps make, the outermost ones."""
    validated = cuts.validation_ns < cuts.end_ns
    tables = (
        np.stack([acts.start_ns, acts.end_ns, acts.part], axis=1),
        np.stack([cuts.validation_ns, cuts.end_ns], axis=1)[validated],
        np.stack([cuts.start_ns, cuts.fed_ns, cuts.end_ns], axis=1),
    )
    set_of_step, sets, uses, rare = core.extras_of_steps(
        *(stream.start_ns, stream.duration_ns, stream.call_path, stream.path_parent, stream.path_region),
        stream.functions.astype(np.uint8),
        *(np.ascontiguousarray(table).ravel() for table in tables),
    )
    trains = bool(np.isin(acts.part, (BACKWARD, OPTIMIZER)).any())
    return Extras(base_class(trains, len(acts) > 0), set_of_step.astype(np.int64), sets, uses), rare


def engine_classes(stream: Stream, loop: MainLoop) -> tuple[str, ...] | None:
    """Return what the marks of an engine name its steps (prefill, decode, ...); None for all other loops."""
    if loop.kind != "range":
        return None
    steps = [engine_step(stream.names[region]) for region in stream.region[loop.rows].tolist()]
    return tuple(step.step_class if step else INFERENCE for step in steps) if any(steps) else None


def base_class(trains: bool, works: bool) -> str:
    """Return what steps with nothing unusual are called: `train`, `inference` (operators run), or `step`."""
    return _BASES[0 if trains else 1 if works else 2]


def class_names(stream: Stream, loops: Sequence[Extras]) -> list[list[str]]:
    """Return, loop by loop, the names of the classes that sets of extras make: `train`, `train+validation` ..."""
    numbers: dict[str, int] = {name: number for number, name in enumerate(_SYNONYMS)}
    labels = {extra: _label(stream, extra) for loop in loops for extras in loop.sets for extra in extras}
    classes = core.classes_of_sets(
        [(loop.sets, np.bincount(loop.set_of_step, minlength=len(loop.sets)).tolist(), loop.uses) for loop in loops],
        int(loops[0].set_of_step[0]),
        {extra: -1 if name is None else numbers.setdefault(name, len(numbers)) for extra, name in labels.items()},
        len(_SYNONYMS),
        stream.path_parent,
    )
    return [
        ["+".join(dict.fromkeys([loop.base, *(str(labels[extra]) for extra in extras)])) for extras in sets]
        for loop, sets in zip(loops, classes, strict=True)
    ]


def _label(stream: Stream, extra: int) -> str | None:
    """What an extra is called; None for a function that was throttled: it was recorded in some steps only."""
    kind, number = divmod(extra, 2**32)
    if kind in (VALIDATION, OTHER):
        return {VALIDATION: "validation", OTHER: "other"}[kind]
    region = number if kind == OF_REGION else int(stream.path_region[number])
    if stream.throttled is not None and stream.throttled[region]:
        return None
    return label(stream.names[region])


def label(function: str) -> str:
    """Name an extra after its function, in one word of ours where we know what it means."""
    last = re.split(r"\.|: ", function)[-1].strip("<>")  # of a module's call, its class
    words = {word.lower() for word in _WORDS.findall(last)}
    return next((name for name, synonyms in _SYNONYMS.items() if words & synonyms), last)
