"""Classes of steps: steps that take the same path through the loop. Named after what they do beyond the usual."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

import numpy as np

from strobe.structure.activities import BACKWARD, DATA_WAIT, FORWARD, OPTIMIZER, Activities
from strobe.structure.cuts import Cuts
from strobe.structure.stream import Bools, Ints, Stream, occurrences_in_groups

PARTIAL = "partial"
# When something that not all steps do begins (ns), by the number of the step.
Begun = dict[int, int]
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


def classify(stream: Stream, cuts: Cuts, acts: Activities, recurring: Collection[str] = ()) -> list[str]:
    """Return the class of every step: `train`, `train+validation`, ...; `partial` if it is not complete.

    `recurring` are names of extras that are known to occur in other steps, too.
    """
    usual_ns = float(np.median(cuts.end_ns - cuts.start_ns)) if len(cuts) else 0.0
    extras = _functions(stream, cuts, usual_ns, recurring)
    validated = _validations(acts, cuts)
    for begun_ns in extras.values():
        if 2 * len(validated.keys() & begun_ns.keys()) > len(begun_ns):  # this function is what validates
            validated = {step: at for step, at in validated.items() if step not in begun_ns}
    if len(validated) <= _UNUSUAL * len(cuts):
        extras["validation"] = extras.get("validation", {}) | validated
    base = _base(acts)
    names = [[(0, base)] for _ in range(len(cuts))]
    for name, begun_ns in extras.items():
        for step, at in begun_ns.items():
            names[step].append((at, name))
    in_order = ("+".join(name for _, name in sorted(each)) for each in names)
    return [name if complete else PARTIAL for name, complete in zip(in_order, cuts.complete, strict=True)]


def _base(acts: Activities) -> str:
    if np.isin(acts.part, (BACKWARD, OPTIMIZER)).any():
        return "train"
    return "inference" if len(acts) else "step"


def _functions(stream: Stream, cuts: Cuts, usual_ns: float, recurring: Collection[str]) -> dict[str, Begun]:
    """Functions that only some steps call, and that cost enough to matter; the outermost ones, by name."""
    step = np.searchsorted(cuts.fed_ns, stream.start_ns, side="right") - 1
    rows = np.flatnonzero((step >= 0) & (stream.end_ns <= cuts.end_ns[step]))
    paths, counts = occurrences_in_groups(stream.call_path[rows], step[rows])
    unusual = np.zeros(len(stream.path_parent), dtype=bool)
    unusual[paths[counts <= _UNUSUAL * len(cuts)]] = True
    named = np.array([_is_function(paradigm) for paradigm in stream.paradigms], dtype=bool)[stream.path_region]
    outermost = unusual & named & ~_below(unusual & named, stream.path_parent)

    cost: dict[str, Counter[int]] = defaultdict(Counter)
    begun: dict[str, Begun] = defaultdict(dict)
    for row in rows[outermost[stream.call_path[rows]]].tolist():
        name, of = label(stream.names[stream.region[row]]), int(step[row])
        cost[name][of] += int(stream.duration_ns[row])
        begun[name].setdefault(of, int(stream.start_ns[row]))
    worth = [
        name
        for name, by_step in cost.items()
        if np.median(list(by_step.values())) >= _WORTH_A_CLASS * usual_ns
        and (name in recurring or recurs(name, by_step))
    ]
    worth.sort(key=lambda name: -cost[name].total())
    return {name: begun[name] for name in worth[:_MOST_EXTRAS]}


def recurs(name: str, steps: Iterable[int]) -> bool:
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


def _validations(acts: Activities, cuts: Cuts) -> Begun:
    """Steps in which, after the last update, data are waited for and run forward."""
    begun: Begun = {}
    first = np.searchsorted(acts.start_ns, cuts.start_ns)
    end = np.searchsorted(acts.start_ns, cuts.end_ns)
    for step, (low, high) in enumerate(zip(first.tolist(), end.tolist(), strict=True)):
        updates = np.flatnonzero(acts.part[low:high] == OPTIMIZER)
        tail = low + int(updates[-1]) + 1 if len(updates) else high
        waits = np.flatnonzero(acts.part[tail:high] == DATA_WAIT)
        if len(waits) and (acts.part[tail + int(waits[0]) : high] == FORWARD).any():
            begun[step] = int(acts.start_ns[tail + int(waits[0])])
    return begun
