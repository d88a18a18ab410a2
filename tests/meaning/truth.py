"""What a program knows about itself, written by itself: `$MEANING_TRUTH/rank<R>.json`, when it ends.

Times are whole nanoseconds of CLOCK_MONOTONIC (`time.monotonic_ns`). Without `$MEANING_TRUTH` nothing is written.

| field | what it is |
|---|---|
| `rank` | rank of the process that wrote this file; 0 where there are no ranks |
| `steps` | list of {`begin_ns`, `end_ns`, `class`}, in order, without gaps: a step begins where the one before ended |
| `unit` | what a step is, in words: "optimizer update", "time step", "request" |
| `beside` | classes in `steps` that are no steps of the unit: a validation pass, sampling at the end of an epoch |
| `count` | number of steps of the unit, those of classes `beside` not counted |
| `levels` | inner and outer loops with their counts over the run: {"micro-batch": 40, "epoch": 3} |
| `phases_ns` | sums over all `steps`, those beside included, ns; null where they are not defined. Usual names: data, |
| | forward, backward, optimizer, validation, checkpoint, communication, other; without training their own |
| `limiting` | what most of the loop's time is due to, a word of `LIMITS` |
| `limiting_rank` | the slow rank where `limiting` is straggler, else null |
| `limiting_also` | other words of `LIMITS` that a careful person could defend; mostly empty |
| `problem` | null for a healthy program, else {`what`, `where` (file:function), `kind` (of `LIMITS`), `gain`} |
| `gain` | fraction, 0 to 1, of the loop's time (first begin to last end, this rank) that the repair would save; |
| | `gain_from` is "measured" (inside the run) or "by construction" |
| `outliers` | list of {`index` (in `steps`), `cause`}: steps that stand out of their class by what the program did |

Meanings that could be taken in two ways:
- data: from the end of the step before to having the batch in hand. Making the iterator and starting workers is data.
- forward: modules and loss. A teacher's forward without gradients belongs to the forward of the student's step.
- backward: `loss.backward()` or `autograd.grad`, from call to return; with DDP it contains the waits for other ranks.
- optimizer: `zero_grad`, clipping, scaler, `step`, scheduler, moving averages of weights, wherever they stand.
- other: what is left of the steps' time; computed here.
- limiting "operators": native computation, of PyTorch, NumPy or the like. "python": the interpreter.
- "healthy" as `limiting` is not used for compute-bound programs: they say "operators" and have no problem.
- "balanced" is for ranks or stages of which none holds up the others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

LIMITS = (
    "data", "python", "operators", "gpu", "launch", "communication", "straggler", "synchronisation", "io", "lock",
    "garbage-collection", "starvation", "balanced", "healthy",
)  # fmt: skip

Step = tuple[int, int, str]


def tile(cuts: Sequence[int], kind: str | Sequence[str] | Callable[[int], str] = "train") -> list[Step]:
    """Steps from cut to cut; `kind` is the class of all, of each, or a function of the index."""
    steps = []
    for index, (begin, end) in enumerate(pairwise(cuts)):
        name = kind if isinstance(kind, str) else kind(index) if callable(kind) else kind[index]
        steps.append((begin, end, name))
    return steps


def problem(what: str, where: str, kind: str, *, wasted_ns: int | None = None, gain: float | None = None) -> dict:
    """What is wrong, and what its repair saves: `wasted_ns` was measured, `gain` follows from how it is made."""
    return {"what": what, "where": where, "kind": kind, "wasted_ns": wasted_ns, "gain": gain}


def truth(
    steps: Iterable[Step],
    *,
    unit: str,
    limiting: str,
    levels: dict[str, int] | None = None,
    phases_ns: dict[str, int] | None = None,
    problem: dict | None = None,
    outliers: dict[int, str] | None = None,
    beside: Sequence[str] = (),
    rank: int = 0,
    limiting_rank: int | None = None,
    limiting_also: Sequence[str] = (),
) -> dict:
    """The fields, checked and completed."""
    steps = list(steps)
    loop = steps[-1][1] - steps[0][0]
    within = sum(end - begin for begin, end, _ in steps)
    assert limiting in LIMITS, limiting
    if phases_ns is not None:
        phases_ns = {name: int(ns) for name, ns in phases_ns.items()}
        phases_ns["other"] = within - sum(ns for name, ns in phases_ns.items() if name != "other")
        assert phases_ns["other"] >= 0, phases_ns
    if problem is not None:
        assert problem["kind"] in LIMITS, problem["kind"]
        measured = problem.pop("wasted_ns")
        problem["gain_from"] = "by construction" if measured is None else "measured"
        problem["gain"] = round(problem["gain"] if measured is None else measured / loop, 4)
        assert 0 < problem["gain"] < 1, problem
    return {
        "rank": rank,
        "unit": unit,
        "count": sum(kind not in beside for _, _, kind in steps),
        "beside": list(beside),
        "levels": levels or {},
        "limiting": limiting,
        "limiting_rank": limiting_rank,
        "limiting_also": list(limiting_also),
        "problem": problem,
        "phases_ns": phases_ns,
        "outliers": [{"index": index, "cause": cause} for index, cause in sorted((outliers or {}).items())],
        "steps": [{"begin_ns": begin, "end_ns": end, "class": kind} for begin, end, kind in steps],
    }


def write(steps: Iterable[Step], *, rank: int = 0, **fields: object) -> None:
    """Write this rank's file, where one is asked for."""
    folder = os.environ.get("MEANING_TRUTH")
    if folder:
        whole = truth(steps, rank=rank, **fields)
        Path(folder, f"rank{rank}.json").write_text(json.dumps(whole, indent=1))
