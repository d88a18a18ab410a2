"""Rule `rank.barrier`: ranks wait at a barrier that no result needs."""

from __future__ import annotations

from collections.abc import Iterator

from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.step_waits import step_waits
from strobe.trace.trace import Trace


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding where a replay without a barrier is more than 5 % shorter (`needless_barriers`)."""
    found = step_waits(trace)
    if found is None or found.barrier is None:
        return
    barrier = found.barrier
    waits, ranks = barrier.waits, len(found.processes)
    wait_ns, gain_ns = int(waits.wait_ns.sum()), round(barrier.gain_ns / found.steps)
    name, _, callers = call_path_text(trace, barrier.call_path).partition(" < ")
    side = "after" if barrier.after else "before"
    at = int(waits.wait_ns.argmax())
    yield Finding(
        rule="rank.barrier",
        what=f"ranks wait {format_ns(wait_ns / ranks / found.steps)} of a step, "
        f"{format_share(wait_ns / found.duration_ns)} of it (mean of {ranks} ranks), at a barrier; without it, "
        f"a step would be up to {format_ns(gain_ns)} shorter",
        do=f"remove {name} in {callers.partition(' < ')[0] or 'the program'} if it does not order files or output: "
        f"messages and collectives need none, and {call_path_text(trace, barrier.neighbour)} {side} it synchronises "
        "the same ranks",
        where=call_path_text(trace, barrier.call_path),
        gain_high_ns=gain_ns,
        evidence=(
            {
                "start_ns": int(waits.call_ns[at]),
                "duration_ns": int(waits.wait_ns[at]),
                "location": int(waits.location[at]),
            },
        ),
    )


RULE = Rule("rank.barrier", "Ranks wait at a barrier that nothing needs", run, of_waits=True)
