"""Rule `rank.bubbles`: stages of a pipeline wait for each other: because of the schedule, or of a slow stage."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_share
from strobe.ranks.mesh.in_words import of_pipelines
from strobe.ranks.mesh.pipelines import BUBBLE_SHARE, pipelines
from strobe.trace.trace import Trace


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding where bubbles of pipelines take more than 5 % of the time of their ranks, in steady steps.

    Gain: what a replay of each step with even stages, on a network that transfers everything at once, is shorter than
    one with the stages as they are. It is an upper bound: layers do not divide evenly. What the schedule costs promises
    no gain: it needs other microbatches, and so other memory.
    """
    found = [each for each in pipelines(trace) if each.steady.any()]
    if not found:
        return
    bubble = np.concatenate([each.bubble_ns[each.steady] / len(each.ranks) for each in found])
    duration = np.concatenate([each.duration_ns[each.steady] for each in found])
    share = float(bubble.sum() / duration.sum())
    if share < BUBBLE_SHARE:
        yield Below(share, BUBBLE_SHARE)
        return
    schedule, uneven = (
        float(np.mean(np.concatenate([getattr(each, name)[each.steady] / len(each.ranks) for each in found])))
        for name in ("schedule_ns", "imbalance_ns")
    )
    slow = found[0]
    at = int(np.flatnonzero(slow.steady)[slow.bubble_ns[slow.steady].argmax()])
    of_step = format_share(slow.bubble_ns[at] / len(slow.ranks) / slow.duration_ns[at])
    if uneven > schedule:
        do = f"give stage {slow.slowest} (rank {slow.ranks[slow.slowest]}) fewer layers, or divide it"
    else:
        do = "use more microbatches, or a schedule with several stages of the model on each rank (interleaved 1F1B)"
    yield Finding(
        rule="rank.bubbles",
        what=of_pipelines(trace),
        do=f"{do}; strobe mesh --by stage",
        gain_high_ns=round(uneven),
        confidence="high",
        informative=uneven < BUBBLE_SHARE * float(duration.mean()),
        evidence=(
            {
                "start_ns": int(slow.begin_ns[at]),
                "duration_ns": int(slow.duration_ns[at]),
                "text": f"step {int(slow.step[at])}: {of_step} of the ranks' time is bubble",
            },
        ),
    )


RULE = Rule("rank.bubbles", "Stages of a pipeline wait for each other", run, of_waits=True)
