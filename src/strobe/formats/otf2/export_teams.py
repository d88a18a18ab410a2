"""Threads of OpenMP as records of OTF2: forks and joins, the teams of parallel regions, locks and critical sections."""

from __future__ import annotations

import re

import numpy as np

from strobe.formats.otf2.definitions import Definitions
from strobe.formats.otf2.side_table_rows import BYTE, U32, Field, Records
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.definition_rows import location_rows, region_rows
from strobe.trace.spans import SpanArrays
from strobe.trace.trace import Trace

_FORK, _JOIN, _TEAM_BEGIN, _TEAM_END, _ACQUIRE, _RELEASE = 53, 54, 55, 56, 57, 58
_OPENMP = 3  # OTF2_PARADIGM_OPENMP
_MODEL: Field = (BYTE, _OPENMP)
_HOLDS = ("lock", "critical", "atomic", "ordered")


class Teams:
    """The parallel regions and locks of a trace. Their spans are held: 72 bytes each.

    The recorder gives each team that runs a region of its own, so that spans of a region overlap only in one execution:
    the first is that of the primary thread, which forks the others. Communicators are numbered from `first` on.
    """

    def __init__(self, trace: Trace, first: int) -> None:
        regions = region_rows(trace)
        self._first, self._names = first, [row.file for row in regions]
        is_team = np.array([row.paradigm == "openmp" and row.name == "parallel" for row in regions], dtype=bool)
        lock_of = np.full(len(regions), -1, dtype=np.int64)
        for at, row in enumerate(regions):
            number = re.match(r"lock (\d+); ", row.file or "")
            if row.paradigm == "openmp" and row.name in _HOLDS and number:
                lock_of[at] = int(number[1])
        wanted = is_team | (lock_of >= 0)
        found = [np.zeros((6, 0), dtype=np.int64)]
        for location, about in enumerate(location_rows(trace) if wanted.any() else ()):
            for spans in trace.span_batches(location):
                (own,) = np.nonzero(wanted[spans["region"]])
                start, region = spans["start_ns"][own], spans["region"][own].astype(np.int64)
                place = [np.full(len(own), about.process), np.full(len(own), location)]
                found.append(np.stack([*place, spans["row"][own], region, start, start + spans["duration_ns"][own]]))
        process, self._location, self._row, region, start, end = np.concatenate(found, axis=1)
        self._lock = lock_of[region]
        # Of locks the number of the acquisition, of the first span of a team how many it has, of the others -1.
        self._number = np.full(len(start), -1, dtype=np.int64)
        self._team = np.full(len(start), -1, dtype=np.int64)
        self._members: list[tuple[int, Ints]] = []  # by team: its region, and its locations
        key = np.stack([process, np.where(self._lock >= 0, self._lock, -1 - region)])
        group = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1)
        order = np.lexsort((start, group))
        for own in np.split(order, np.cumsum(np.bincount(group))[:-1]) if len(order) else ():
            if self._lock[own[0]] >= 0:
                self._number[own] = np.arange(len(own))
                continue
            over = np.maximum.accumulate(end[own])
            forks = np.append(True, start[own][1:] >= over[:-1])
            self._number[own[forks]] = np.bincount(np.cumsum(forks) - 1)
            self._team[own] = len(self._members)
            self._members.append((int(region[own[0]]), np.unique(self._location[own])))

    @property
    def count(self) -> int:
        """The number of teams."""
        return len(self._members)

    def write(self, location: int, spans: SpanArrays, first: list[Records], last: list[Records]) -> None:
        """Add what begins right after the enters (`first`) and ends right before the leaves (`last`) of spans."""
        low, high = np.searchsorted(self._location, [location, location + 1]).tolist()
        begin, end = (low + np.searchsorted(self._row[low:high], [spans["row"][0], spans["row"][-1] + 1])).tolist()
        row, lock, number, team = (each[begin:end] for each in (self._row, self._lock, self._number, self._team))

        def add(to: list[Records], record: int, which: Bools, *fields: tuple[int, Ints | int]) -> None:
            if which.any():
                cells: list[Field] = [(kind, v if isinstance(v, int) else v[which]) for kind, v in fields]
                to.append((record, row[which], cells, []))

        add(first, _FORK, (team >= 0) & (number >= 0), _MODEL, (U32, number))
        add(first, _TEAM_BEGIN, team >= 0, (U32, self._first + team))
        add(last, _TEAM_END, team >= 0, (U32, self._first + team))
        add(last, _JOIN, (team >= 0) & (number >= 0), _MODEL)
        for to, record in (first, _ACQUIRE), (last, _RELEASE):
            add(to, record, lock >= 0, _MODEL, (U32, lock), (U32, number))

    def define(self, definitions: Definitions, first_group: int) -> None:
        """Define a group and communicator for each team, groups from number `first_group` on."""
        teams = [(self._names[region] or "", members) for region, members in self._members]
        definitions.threads(first_group, self._first, _OPENMP, teams)
