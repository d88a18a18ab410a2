"""Classes of steps: steps that take the same path through the loop. Named after what they do beyond the usual."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

import numpy as np

from strobe.steps.finding.cuts import Cuts
from strobe.steps.thread_spans import FUNCTION_PARADIGMS, Bools, Ints, Stream, innermost, occurrences_in_groups
from strobe.steps.training_activities import BACKWARD, DATA_WAIT, FORWARD, OPTIMIZER, Activities

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
    evaluated = np.flatnonzero(cuts.validation_ns < cuts.end_ns)
    validated = _validations(acts, cuts)
    validated |= dict(zip(evaluated.tolist(), cuts.validation_ns[evaluated].tolist(), strict=True))
    for begun_ns in extras.values():
        if 2 * len(validated.keys() & begun_ns.keys()) > len(begun_ns):  # this function is what validates
            validated = {step: at for step, at in validated.items() if step not in begun_ns}
    if len(validated) <= _UNUSUAL * len(cuts):
        extras["validation"] = extras.get("validation", {}) | validated
    trains = bool(np.isin(acts.part, (BACKWARD, OPTIMIZER)).any())
    classes = [base_class(trains, len(acts) > 0)] * len(cuts)
    begun: dict[int, list[tuple[int, str]]] = {}
    for name, begun_ns in extras.items():
        for step, at in begun_ns.items():
            begun.setdefault(step, []).append((at, name))
    for step, each in begun.items():
        classes[step] = "+".join([classes[step], *(name for _, name in sorted(each))])
    for step in np.flatnonzero(~cuts.complete).tolist():
        classes[step] = PARTIAL
    return classes


def base_class(trains: bool, works: bool) -> str:
    """Return what steps with nothing unusual are called: `train`, `inference` (operators run), or `step`."""
    return "train" if trains else "inference" if works else "step"


def rare_calls(stream: Stream, cuts: Cuts) -> Ints:
    """Return the rows of the calls of functions that only some steps call, the outermost ones."""
    step = np.searchsorted(cuts.fed_ns, stream.start_ns, side="right") - 1
    rows = np.flatnonzero((step >= 0) & (stream.end_ns <= cuts.end_ns[step]))
    paths, counts = occurrences_in_groups(stream.call_path[rows], step[rows])
    unusual = np.zeros(len(stream.path_parent), dtype=bool)
    unusual[paths[counts <= _UNUSUAL * len(cuts)]] = True
    named = np.array([paradigm in FUNCTION_PARADIGMS for paradigm in stream.paradigms], dtype=bool)[stream.path_region]
    unusual &= named
    outermost = unusual & (innermost(stream.path_parent, unusual, stream.path_parent) < 0)
    return rows[outermost[stream.call_path[rows]]]


def _functions(stream: Stream, cuts: Cuts, usual_ns: float, recurring: Collection[str]) -> dict[str, Begun]:
    """Functions that only some steps call, and that cost enough to matter; the outermost ones, by name."""
    cost: dict[str, Counter[int]] = defaultdict(Counter)
    begun: dict[str, Begun] = defaultdict(dict)
    rows = rare_calls(stream, cuts)
    step = np.searchsorted(cuts.fed_ns, stream.start_ns[rows], side="right") - 1
    for row, number in zip(rows.tolist(), step.tolist(), strict=True):
        name = label(stream.names[stream.region[row]])
        cost[name][number] += int(stream.duration_ns[row])
        begun[name].setdefault(number, int(stream.start_ns[row]))
    worth = [
        name
        for name, by_step in cost.items()
        if np.median(list(by_step.values())) >= _WORTH_A_CLASS * usual_ns
        and (name in recurring or recurs(name, by_step))
    ]
    worth.sort(key=lambda name: -cost[name].total())
    return {name: begun[name] for name in worth[:_MOST_EXTRAS]}


def recurs(name: str, steps: Iterable[int]) -> bool:
    """Twice is a habit; the first step does not count: it also starts things up.

    Nor is it one to be in all steps up to some and in none thereafter: there the recorder has throttled a function.
    """
    seen = set(steps)
    return name in _SYNONYMS or (len(seen - {0}) >= 2 and not (min(seen) <= 1 and max(seen) - min(seen) < len(seen)))


def label(function: str) -> str:
    """Name an extra after its function, in one word of ours where we know what it means."""
    last = function.rsplit(".", 1)[-1].strip("<>")
    words = {word.lower() for word in _WORDS.findall(last)}
    return next((name for name, synonyms in _SYNONYMS.items() if words & synonyms), last)


def _validations(acts: Activities, cuts: Cuts) -> Begun:
    """Steps in which, after the last update, data are waited for and run forward."""
    first = np.searchsorted(acts.start_ns, cuts.start_ns)
    end = np.searchsorted(acts.start_ns, cuts.end_ns)
    updates = np.flatnonzero(acts.part == OPTIMIZER)
    last = np.searchsorted(updates, end) - 1
    step = np.flatnonzero(last >= 0)
    step = step[updates[last[step]] >= first[step]]
    wait, found = _next(acts.part == DATA_WAIT, updates[last[step]], end[step])
    step, wait = step[found], wait[found]
    _, found = _next(acts.part == FORWARD, wait, end[step])
    return dict(zip(step[found].tolist(), acts.start_ns[wait[found]].tolist(), strict=True))


def _next(chosen: Bools, after: Ints, end: Ints) -> tuple[Ints, Bools]:
    """The first chosen place after each of `after`, and whether it is before `end`."""
    places = np.append(np.flatnonzero(chosen), len(chosen))
    found: Ints = places[np.searchsorted(places[:-1], after, side="right")]
    return found, found < end
