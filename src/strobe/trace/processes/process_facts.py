"""Facts about a process, a location and a metric that are known before any span is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from strobe.tables.column_arrays import Floats, Ints


class ProcessFacts(TypedDict, total=False):
    """Facts about a process; times in ns on its own clock."""

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
    wall: tuple[int, int, int] | None  # a reading of the time of day, and those of the trace's clock:
    clock_readings: list[tuple[int, int, int]]  # see trace/clocks/node_clocks.py
    gpu: Mapping[str, str]
    device_properties: list[dict[str, object]]
    failure: str  # why recording had to stop while the process went on, and when
    failed_ns: int
    left_out: bool  # a flight recorder has removed what came before started_ns


class LocationFacts(TypedDict, total=False):
    """Facts about a location; times in ns on the clock of its process."""

    id: int
    location: int  # this one and the next: in the trace as a whole
    process: int
    name: str
    thread_id: int
    kind: str
    device: int | None
    stream: int | None
    span_count: int
    left_out: int  # rows before these that a flight recorder has removed
    first_ns: int
    last_ns: int


class MetricReadings(TypedDict):
    """The readings of one metric; `location` is -1 for a metric of the process."""

    name: str
    unit: str
    location: int
    time_ns: Ints
    value: Floats
