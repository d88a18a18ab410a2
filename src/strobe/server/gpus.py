"""What is known of each GPU: whose it was, what it can do, which readings are its own, and what held its clocks down.

How busy and how full they were, the analyses say (`table/utilisation`, `table/devices`, ...): the page joins them.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from strobe.structure.known_gpus import known_gpus

if TYPE_CHECKING:
    from strobe.server.facts import Facts
    from strobe.structure.known_gpus import KnownGpu


def gpus(facts: Facts) -> dict[str, Any]:
    """Return every GPU of the run as plain data."""
    return {"gpus": [_plain(gpu) for gpu in known_gpus(facts.trace)]}


def _plain(gpu: KnownGpu) -> dict[str, Any]:
    process, number = gpu.readings or (None, None)
    return {
        **asdict(gpu),
        "readings": None if process is None else {"process": process, "device": number},
        "throttled": [{"reason": reason, "share": share} for reason, share in gpu.throttled.items()],
    }
