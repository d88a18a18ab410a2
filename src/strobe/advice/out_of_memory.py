"""Rule `memory.oom`: an allocation failed; what was free then, and who owned the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from strobe.answers.ask import ask
from strobe.gpu.out_of_memory import Failure, failures, in_words
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_bytes, format_count, format_share
from strobe.trace.trace import Trace

_OWNERS = 3  # named
# Categories that a smaller batch, or layers that are computed again, make smaller.
_OF_BATCH = ("activations", "autograd details", "inputs", "temporary")
_OF_MODEL = ("parameters", "gradients", "optimizer state")


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each memory in which an allocation failed, about the last one.

    What was free would have done in one piece: the memory is fragmented. Else what is held is too much, and most of it
    is named by line and by category. A gain in time is not promised.
    """
    last = {(each.process, each.pool): each for each in failures(trace)}
    for failed in last.values():
        owners = _rows(trace, failed, "line")
        named = [row for row in owners if row["function"] is not None][:_OWNERS]
        shares = (f"{row['owner']} ({format_bytes(row['allocated_bytes'])} of {row['category']})" for row in named)
        count = sum((each.process, each.pool) == (failed.process, failed.pool) for each in failures(trace))
        often = f" (the last of {format_count(count)} times)" if count > 1 else ""
        whose = f"; of {format_bytes(failed.allocated)} in use, most was allocated at " + ", ".join(shares)
        yield Finding(
            rule="memory.oom",
            what=f"{in_words(failed)}{often}{whose if named else ''}",
            do=_advice(failed, _rows(trace, failed, "category")),
            informative=True,
            confidence="high",
            evidence=({"start_ns": failed.time_ns, "duration_ns": 0, "location": failed.location, "text": None},),
        )


def _rows(trace: Trace, failed: Failure, by: str) -> list[dict[str, Any]]:
    rows = ask(trace, "memory_owners", by=by, at="oom").to_arrow().to_pylist()
    return [row for row in rows if (row["process"], row["device"]) == (failed.process, failed.device)]


def _advice(failed: Failure, categories: list[dict[str, Any]]) -> str:
    free = None if failed.cached is None or failed.free is None else failed.cached + failed.free
    if free is not None and free >= failed.asked:
        return (
            f"{format_bytes(free)} were free in all, but not in one piece: let segments grow "
            "(PYTORCH_ALLOC_CONF=expandable_segments:True), and allocate what lives long first"
        )
    sums: dict[str, int] = {row["category"]: row["allocated_bytes"] for row in categories}
    batch, model = (sum(sums.get(each, 0) for each in names) for names in (_OF_BATCH, _OF_MODEL))
    if max(batch, model) * 2 < failed.allocated:
        return "look who owns what is in use: strobe memory-owners --at oom"
    share = format_share(max(batch, model) / failed.allocated)
    if batch >= model:
        return f"{share} of it grows with the batch: a smaller one, or activations that are computed again"
    return f"{share} of it belongs to the model: shard it, keep optimizer states in fewer bits, or use a smaller one"


RULE = Rule("memory.oom", "An allocation failed", run)
