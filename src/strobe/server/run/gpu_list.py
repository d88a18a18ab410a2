"""What is known of each GPU: whose it was, what it can do, which readings are its own, and what held its clocks down.

How busy and how full they were are analyses (`table/utilisation`, `table/devices`, ...): the page joins them.
"""

from __future__ import annotations

from typing import TypedDict

from strobe.gpu.known_gpus import KnownGpu, known_gpus
from strobe.server.routing.endpoints import MB, route
from strobe.server.trace_context import TraceContext


class GpuList(TypedDict):
    """The GPUs of a run."""

    gpus: list[KnownGpu]


@route("gpus", most_bytes=16 * MB, slow=True)
def gpus(context: TraceContext) -> GpuList:
    """The GPUs of the run: whose, what they can do, which readings are theirs, and what held their clocks down."""
    return {"gpus": known_gpus(context.trace)}
