"""Traces of any size for tests and benchmarks: real processes repeated with varied times."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from strobe.errors import TraceError, UsageError
from strobe.trace.definition_rows import ranks_of
from strobe.trace.derived.new_folder import new_folder, write_job
from strobe.trace.trace import Trace

if TYPE_CHECKING:
    from strobe.native import TraceTemplate

# Every stretch between two events takes longer or shorter by a factor with a log-normal distribution; so do ranks as a
# whole, and repetitions (all ranks the same, as they compute together).
GAP_SIGMA, RANK_SIGMA, REPETITION_SIGMA = 0.25, 0.01, 0.05
_PAUSE = 1.02  # a repetition begins when the slowest rank is ready
_BEGIN_NS = 1_000_000_000  # of the first repetition, on the clock
_THREADS = 2
_RANKS_A_HOST = 8
# Columns of side tables that number single events, and which of them fit together.
_IDS = {
    "correlation": "correlation",
    "wait_on_correlation": "correlation",
    "external_id": "external",
    "record_function_id": "record_function",
    "event_index": "event",
    "sequence_number": "sequence",
    "flow": "flow",
    "sequence": "collective",
    "launch": "launch",
    "python_id": "python",
    "python_parent_id": "python",
    "range_id": "range",
    "request": "request",
}


@dataclass(frozen=True)
class Plan:
    """What is to be generated: see `strobe generate --help`."""

    ranks: int
    spans: int
    seed: int = 0
    stalls: int = 0
    stall_ns: int = 20_000_000
    straggler: int | None = None
    slower: float = 1.3
    attributes: bool = True


def generate(
    templates: Sequence[Trace], folder: Path, plan: Plan, progress: Callable[[int, int], None] = lambda done, of: None
) -> int:
    """Write a trace whose ranks repeat the processes of `templates`; return its number of spans.

    Rank r repeats the process r of the templates (modulo their number; see `_processes`). The order of everything that
    begins and ends in a process stays, whatever its thread or stream, so calls nest and kernels follow their launches.
    `progress` gets the number of ranks that are done, and of all. Raises TraceError if the folder exists.
    """
    with new_folder(folder) as work:
        sources = [source for trace in templates for source in _processes(trace, plan.attributes)]
        random = np.random.default_rng(plan.seed)
        slowness = random.lognormal(0, RANK_SIGMA, plan.ranks)
        if plan.straggler is not None:
            slowness[plan.straggler] *= plan.slower
        repetitions = _repetitions(plan, [sources[rank % len(sources)].spans for rank in range(plan.ranks)])
        together = random.lognormal(0, REPETITION_SIGMA, max(repetitions))

        def write(rank: int) -> tuple[int, int, list[dict[str, int]]]:
            source, count = sources[rank % len(sources)], repetitions[rank]
            longest = source.length_ns * together[:count] * slowness.max() * _PAUSE
            begins = _BEGIN_NS + np.concatenate([[0.0], np.cumsum(longest)])[:count].astype(np.int64)
            own = np.random.default_rng([plan.seed, rank])
            stalls = [(int(own.integers(count)), float(own.random()), plan.stall_ns) for _ in range(plan.stalls)]
            spans, _, last_ns, stalled = source.write(
                str(work / f"process-{rank + 1}.blocks"),
                10_000 + rank,
                json.dumps({"argv": ["generated"], "host": f"node{rank // _RANKS_A_HOST:04d}", "main": rank == 0}),
                json.dumps({"rank": rank, "ranks": plan.ranks}),
                int(own.integers(1 << 63)),
                GAP_SIGMA,
                begins.tolist(),
                (slowness[rank] * together[:count]).tolist(),
                stalls,
            )
            found = [{"rank": rank, "time_ns": at - _BEGIN_NS, "duration_ns": plan.stall_ns} for at in sorted(stalled)]
            return spans, last_ns, found

        spans, last_ns, stalls = 0, 0, []
        with ThreadPoolExecutor(_THREADS) as pool:
            for done, (of_rank, end_ns, stalled) in enumerate(pool.map(write, range(plan.ranks)), 1):
                spans, last_ns = spans + of_rank, max(last_ns, end_ns)
                stalls += stalled
                progress(done, plan.ranks)
        job = {
            "command": ["strobe", "generate", *(trace.path.name for trace in templates)],
            "working_directory": "",
            "host": "",
            "zero_ns": _BEGIN_NS,
            "started_unix_ns": 0,
            "ended": {"exit_code": 0, "ended_ns": last_ns},
            "settings": {"generated": {**vars(plan), "stalls": stalls}},
        }
        write_job(work, job)
    return spans


def _processes(trace: Trace, attributes: bool) -> list[TraceTemplate]:
    """Return the processes of a trace that can be repeated: its ranks; without ranks, its first process with spans."""
    from strobe import native

    found = []
    ranks = ranks_of(trace)
    ranked = any(rank is not None for rank in ranks)
    for process, files in enumerate(trace.files):
        if not trace.spans_of_processes[process] or (ranked and ranks[process] is None):
            continue
        try:
            rings = str(files.rings) if files.rings else None
            found.append(native.TraceTemplate(str(files.blocks), rings, _IDS, attributes))
        except ValueError as error:
            raise TraceError(f"process {process} of '{trace.path}' cannot be repeated: {error}") from error
        if not ranked:
            break
    if not found:
        raise TraceError(f"'{trace.path}' has no spans that could be repeated")
    return found


def _repetitions(plan: Plan, spans_of_rank: Sequence[int]) -> list[int]:
    """Return how often each rank repeats its template, so that all together have about the spans that are wanted."""
    least = sum(spans_of_rank)
    if plan.spans < least:
        raise UsageError(
            f"{plan.spans} spans are too few: once through what {plan.ranks} ranks do is {least}",
            do="Ask for more spans or fewer ranks, or cut a smaller template: strobe cut TRACE --steps 3-4 -o small",
        )
    found, written = [], 0
    for rank, spans in enumerate(spans_of_rank):
        # Of what is still to be written, the share of a rank: what one has too few, the next ones have more.
        share = (plan.spans - written) / (plan.ranks - rank)
        found.append(max(1, round(share / spans)))
        written += found[-1] * spans
    return found
