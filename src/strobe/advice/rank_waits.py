"""Rule `rank.waits`: ranks spend much of their steps waiting for one another; for whom, in what, and where."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.waits.wait_columns import STATES
from strobe.ranks.waits.wait_states import wait_states
from strobe.steps.steps import find_steps
from strobe.tables.column_arrays import Ints
from strobe.trace.definition_rows import location_rows, ranks_of
from strobe.trace.trace import Trace

LEAST_SHARE = 0.05  # of the steps: less is not worth a line
MOST_ROWS = 500_000  # of messages and collectives: about a second
_LOG = ("messages", "collective_spans", "folded_collectives")
_WORDS = {
    "late_sender": "until a message is sent",
    "late_receiver": "until a message is received",
    "wait_at_barrier": "until all have come to a barrier",
    "wait_at_nxn": "until all have come to a collective",
    "late_broadcast": "until the root has come to a broadcast or scatter",
    "early_reduce": "until all have come to a reduction or gather",
    "early_scan": "until those before have come to a scan",
    "late_collective": "until all have asked for a collective",
    "wait_at_fence": "until all have come to a fence of one-sided communication",
    "late_post": "until the target of one-sided communication exposes its memory",
    "early_wait": "until all origins of one-sided communication are done",
    "lock_contention": "for locks of memory that another rank has",
}


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding where ranks wait more than 5 % of their steps for one another.

    Share: waits that are longer than twice the error of the clocks, by the steps in which they began, of the steady
    steps of all ranks.
    """
    ranks = ranks_of(trace)
    steps = [each for each in find_steps(trace).processes if ranks[each.process] is not None and each.steady.any()]
    rows = sum(reader.tables().get(name, 0) for reader in trace.readers for name in _LOG)
    if len(steps) < 2 or rows > MOST_ROWS:
        return
    waits = wait_states(trace).waits
    counted = waits.for_another & ~waits.uncertain
    process = np.array([row.process for row in location_rows(trace)], dtype=np.int64)
    counted &= process[waits.location] != process[waits.cause]  # not of threads for one another
    begins, duration_ns = np.zeros(len(waits), dtype=bool), 0
    for each in steps:
        (own,) = np.nonzero(process[waits.location] == each.process)
        step = np.searchsorted(each.start_ns, waits.call_ns[own], side="right") - 1
        begins[own] = (step >= 0) & each.steady[step] & (waits.call_ns[own] < each.end_ns[step])
        duration_ns += int(each.duration_ns[each.steady].sum())
    waits = waits.chosen(counted & begins)
    total = int(waits.wait_ns.sum())
    if total < LEAST_SHARE * duration_ns:
        return
    step_ns = total / sum(int(each.steady.sum()) for each in steps)
    state, of_state = _most(waits.state, waits.wait_ns)
    in_state = waits.chosen(waits.state == state)
    path, of_path = _most(in_state.call_path, in_state.wait_ns)
    awaited, of_awaited = _most(process[waits.cause], waits.wait_ns)
    longest = in_state.chosen(in_state.call_path == path)
    at = int(longest.wait_ns.argmax())
    where = call_path_text(trace, path) if path >= 0 else ""
    yield Finding(
        rule="rank.waits",
        what=f"ranks wait {format_ns(step_ns)} of a step for one another, {format_share(total / duration_ns)} of it "
        f"(mean of {len(steps)} ranks): {format_share(of_state)} of that {_WORDS[STATES[state]]}",
        do=f"rank {ranks[awaited]} is waited for most, {format_share(of_awaited)}: look at what it does before that; "
        "strobe waits --by pair",
        where=where,
        confidence="high" if of_path > 1 / 2 else "medium",
        informative=True,
        evidence=(
            {
                "start_ns": int(longest.call_ns[at]),
                "duration_ns": int(longest.wait_ns[at]),
                "location": int(longest.location[at]),
            },
        ),
    )


def _most(group: Ints, wait_ns: Ints) -> tuple[int, float]:
    """Return the group that waits most, and its part of all."""
    numbers, which = np.unique(group, return_inverse=True)
    sums = np.bincount(which, wait_ns)
    return int(numbers[sums.argmax()]), float(sums.max() / sums.sum())


RULE = Rule("rank.waits", "Ranks wait for one another", run)
