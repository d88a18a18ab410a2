"""What a profile counts that has no times."""

from __future__ import annotations

from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace


@cached_on_trace
def weight_unit(trace: Trace) -> str | None:
    """Return what call paths of a profile without any time are weighed in ("" if unknown), None where it is a time.

    Something stands in for the time there, a unit as a nanosecond: what has the same sum.
    """
    quality = trace.quality.to_arrow().to_pylist()
    if not any(row["what"] == "weights_are_no_time" and row["value"] for row in quality):
        return None
    own = sum(int(folded.own_ns.sum()) for folded in trace.folded.values())
    metrics = trace.side_table("path_metrics").to_arrow().group_by(["metric", "unit"])
    sums = metrics.aggregate([("self_value", "sum")]).to_pylist()
    same = [(row["metric"], row["unit"]) for row in sums if round(row["self_value_sum"]) == own]
    metric, unit = same[0] if same else ("", "")
    return str(metric if unit == "count" else unit)
