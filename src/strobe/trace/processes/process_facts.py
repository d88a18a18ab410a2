"""What is known of a process, a location and a metric before any span is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt


class ProcessFacts(TypedDict, total=False):
    """What is known of a process; times in ns on its own clock."""

    pid: int
    parent_pid: int
    started_ns: int
    ended_ns: int
    end_state: str
    exit_code: int | None
    argv: list[str] | str
    host: str
    python: str
    main: bool
    rank: int | None
    ranks: int | None
    name: str
    node: str
    wall: Any  # a reading of the trace's clock, and clock_readings: see trace/clocks/node_clocks.py
    clock_readings: Any
    gpu: Mapping[str, str]
    device_properties: list[dict[str, object]]
    failure: str  # why recording had to stop while the process went on, and when
    failed_ns: int


class LocationFacts(TypedDict, total=False):
    """What is known of a location before its spans are read; times in ns on the clock of its process."""

    id: int
    location: int  # this one and the next: in the trace as a whole
    process: int
    name: str
    thread_id: int
    kind: str
    device: int | None
    stream: int | None
    span_count: int
    first_ns: int
    last_ns: int


class MetricReadings(TypedDict):
    """The readings of one metric; `location` is -1 where it is of the process."""

    name: str
    unit: str
    location: int
    time_ns: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
