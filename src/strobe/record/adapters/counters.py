"""Process metrics: CPU per thread group, resident memory, I/O, context switches, sampled by the core every 200 ms.

The core samples from its own thread.
"""

from __future__ import annotations

from strobe.record.adapter import Adapter

ADAPTER = Adapter(
    "counters",
    short="metrics",
    order=90,
    presets=("auto", "light", "sampling"),
    core={"metrics_period_ms": 0},  # as often as the core likes
)
