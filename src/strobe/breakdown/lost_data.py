"""Which share of a trace is lost in damaged blocks, and how sure conclusions still are."""

from __future__ import annotations

from strobe.trace.quality import counters
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

# What is lost lies in a few stretches, not all over the run: even a small part may be what a conclusion is about.
_UNSURE, _DOUBTFUL = 0.01, 0.1
_LEVELS = ("low", "medium", "high")


@cached_on_trace
def lost_share(trace: Trace) -> float:
    """Return the largest share, 0 to 1, of the spans or the recorded steps that damaged blocks took."""
    counted = counters(trace)
    spans, steps = counted["spans_lost"], counted["iterations_lost"]
    found = trace.span_count + trace.folded_count
    known = sum(len(trace.iterations(process)) for process in range(len(trace.readers))) if steps else 0
    return max(spans / max(1, spans + found), steps / max(1, steps + known))


def sure_with_losses(confidence: str, trace: Trace) -> str:
    """Return how sure a conclusion is, in view of what is lost: one level less from 1 % on, `low` from 10 % on."""
    share = lost_share(trace)
    if confidence not in _LEVELS or share < _UNSURE:
        return confidence
    return _LEVELS[max(0, _LEVELS.index(confidence) - 1)] if share < _DOUBTFUL else "low"
