"""Classes of steps: steps that take the same path through the loop. Named after what they do beyond the usual."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from strobe.structure.activities import BACKWARD, DATA_WAIT, FORWARD, OPTIMIZER, Activities
from strobe.structure.cuts import Cuts
from strobe.structure.stream import Bools, Ints, Stream, occurrences_in_groups

PARTIAL = "partial"
# A call path is unusual if at most this share of the steps takes it ...
_UNUSUAL = 0.5
# ... and makes a class if, where it is taken, it costs this share of a usual step (half of the times at least).
_WORTH_A_CLASS = 0.02
_MOST_EXTRAS = 8

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SYNONYMS = {
    "validation": {"validate", "validation", "valid", "val", "evaluate", "evaluation", "eval"},
    "checkpoint": {"checkpoint", "checkpoints", "ckpt"},
}


@dataclass(frozen=True)
class _Extra:
    """Something that only some steps do: its name, the steps that do it, and how far into them (ns)."""

    name: str
    steps: Ints
    offset_ns: float


def classify(stream: Stream, cuts: Cuts, acts: Activities) -> list[str]:
    """Return the class of every step: `train`, `train+validation`, ...; `partial` if it is not complete."""
    usual_ns = float(np.median(cuts.end_ns - cuts.start_ns)) if len(cuts) else 0.0
    extras = _functions(stream, cuts, usual_ns)
    evaluating = _evaluating_steps(acts, cuts)
    covered = np.zeros(len(cuts), dtype=bool)
    for extra in extras:
        if evaluating[extra.steps].mean() > 0.5:
            covered[extra.steps] = True
    inline = np.flatnonzero(evaluating & ~covered)
    if 0 < len(inline) <= _UNUSUAL * len(cuts):
        extras.append(_Extra("validation", inline, 0.0))
    names = [[_base(acts)] for _ in range(len(cuts))]
    for extra in sorted(extras, key=lambda each: each.offset_ns):
        for step in extra.steps.tolist():
            if extra.name not in names[step]:
                names[step].append(extra.name)
    return ["+".join(words) if complete else PARTIAL for words, complete in zip(names, cuts.complete, strict=True)]


def _base(acts: Activities) -> str:
    if np.isin(acts.part, (BACKWARD, OPTIMIZER)).any():
        return "train"
    return "inference" if len(acts) else "step"


def _functions(stream: Stream, cuts: Cuts, usual_ns: float) -> list[_Extra]:
    """Functions that only some steps call, and that cost enough to matter; the outermost ones."""
    step = np.searchsorted(cuts.fed_ns, stream.start_ns, side="right") - 1
    rows = np.flatnonzero((step >= 0) & (stream.end_ns <= cuts.end_ns[step]))
    paths, counts = occurrences_in_groups(stream.call_path[rows], step[rows])
    unusual = np.zeros(len(stream.path_parent), dtype=bool)
    unusual[paths[counts <= _UNUSUAL * len(cuts)]] = True
    named = np.array([_is_function(paradigm) for paradigm in stream.paradigms], dtype=bool)[stream.path_region]
    outermost = unusual & named & ~_below(unusual & named, stream.path_parent)
    rows = rows[outermost[stream.call_path[rows]]]

    cost: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    offsets: dict[str, list[int]] = defaultdict(list)
    for row, of in zip(rows.tolist(), step[rows].tolist(), strict=True):
        name = label(stream.names[stream.region[row]])
        cost[name][of] += int(stream.duration_ns[row])
        offsets[name].append(int(stream.start_ns[row] - cuts.start_ns[of]))
    found = [
        (
            float(np.sum(list(per_step.values()))),
            _Extra(name, np.array(sorted(per_step)), float(np.median(offsets[name]))),
        )
        for name, per_step in cost.items()
        if np.median(list(per_step.values())) >= _WORTH_A_CLASS * usual_ns and _recurs(name, per_step)
    ]
    found.sort(key=lambda each: -each[0])
    return [extra for _, extra in found[:_MOST_EXTRAS]]


def _recurs(name: str, steps: Iterable[int]) -> bool:
    """Twice is a habit; the first step does not count: it also starts things up."""
    return len(set(steps) - {0}) >= 2 or name in _SYNONYMS


def _is_function(paradigm: str) -> bool:
    return paradigm in ("python", "user", "nvtx", "itt")


def _below(chosen: Bools, parent: Ints) -> Bools:
    """Which call paths have a chosen one above them. Parents have smaller numbers than their children."""
    below = np.zeros(len(parent), dtype=bool)
    for path in np.flatnonzero(parent >= 0).tolist():
        above = parent[path]
        below[path] = below[above] or chosen[above]
    return below


def label(function: str) -> str:
    """Name an extra after its function, in one word of ours where we know what it means."""
    last = function.rsplit(".", 1)[-1].strip("<>")
    words = {word.lower() for word in _WORDS.findall(last)}
    return next((name for name, synonyms in _SYNONYMS.items() if words & synonyms), last)


def _evaluating_steps(acts: Activities, cuts: Cuts) -> Bools:
    """Steps in which, after the last update, data are waited for and run forward: a validation."""
    evaluating = np.zeros(len(cuts), dtype=bool)
    first = np.searchsorted(acts.start_ns, cuts.start_ns)
    end = np.searchsorted(acts.start_ns, cuts.end_ns)
    for step, (low, high) in enumerate(zip(first.tolist(), end.tolist(), strict=True)):
        updates = np.flatnonzero(acts.part[low:high] == OPTIMIZER)
        tail = acts.part[low + int(updates[-1]) + 1 : high] if len(updates) else acts.part[:0]
        waits = np.flatnonzero(tail == DATA_WAIT)
        evaluating[step] = len(waits) > 0 and bool((tail[waits[0] :] == FORWARD).any())
    return evaluating
