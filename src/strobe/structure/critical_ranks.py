"""What links ranks in the critical path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strobe.store.trace import Trace
    from strobe.structure.critical_gpu import Activities, Calls, Syncs
    from strobe.structure.critical_path import Bools, Builder
    from strobe.structure.critical_threads import Chain


@dataclass
class Part:
    """What one process did in its window. `early`: by activity, whether it is a collective that waited for others."""

    rank: int | None
    chains: list[Chain]
    calls: Calls
    work: Activities
    syncs: Syncs
    early: Bools


def link(trace: Trace, builder: Builder, parts: list[Part]) -> None:
    """Say what ranks waited for in others."""
