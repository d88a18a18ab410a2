"""What is known of each GPU: whose it was, what it can do, which readings are its own, and what held its clocks down.

How busy and how full they were are analyses (`table/utilisation`, `table/devices`, ...): the page joins them.
"""

from __future__ import annotations

from typing import TypedDict

from strobe.gpu.known_gpus import KnownGpu, Property, known_gpus
from strobe.server.routing.endpoints import MB, route
from strobe.server.trace_context import TraceContext


class ReadingsOf(TypedDict):
    """Process and number under which `strobe devices` has the readings of a GPU."""

    process: int
    device: int | None


class Throttling(TypedDict):
    """Part of the readings in which one reason held the clocks down."""

    reason: str
    share: float


class KnownGpuFacts(TypedDict):
    """A GPU: see `KnownGpu`."""

    process: int | None
    rank: int | None
    number: int | None
    host: str
    name: str
    uuid: str
    capability: str
    multiprocessors: int | None
    memory_bytes: int | None
    mig: bool
    properties: list[Property]
    readings: ReadingsOf | None
    by_uuid: bool
    throttled: list[Throttling]


class GpuList(TypedDict):
    """The GPUs of a run."""

    gpus: list[KnownGpuFacts]


@route("gpus", most_bytes=16 * MB, slow=True)
def gpus(context: TraceContext) -> GpuList:
    """The GPUs of the run: whose, what they can do, which readings are theirs, and what held their clocks down."""
    return {"gpus": [_facts(gpu) for gpu in known_gpus(context.trace)]}


def _facts(gpu: KnownGpu) -> KnownGpuFacts:
    return {
        "process": gpu.process,
        "rank": gpu.rank,
        "number": gpu.number,
        "host": gpu.host,
        "name": gpu.name,
        "uuid": gpu.uuid,
        "capability": gpu.capability,
        "multiprocessors": gpu.multiprocessors,
        "memory_bytes": gpu.memory_bytes,
        "mig": gpu.mig,
        "properties": list(gpu.properties),
        "readings": None if gpu.readings is None else {"process": gpu.readings[0], "device": gpu.readings[1]},
        "by_uuid": gpu.by_uuid,
        "throttled": [{"reason": reason, "share": share} for reason, share in gpu.throttled.items()],
    }
