"""Communicators of an OTF2 archive that is being written, made from messages and collectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strobe.formats.otf2.definitions import Definitions, GroupType
from strobe.trace.definition_rows import location_rows, ranks_of
from strobe.trace.trace import Trace

_MPI = 4  # OTF2_PARADIGM_MPI
_WORLD = "MPI_COMM_WORLD"
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Communicator:
    """A communicator whose members are known: its number, and by rank in it the rank in the job."""

    number: int
    name: str
    members: _Numbers

    def own_rank(self, rank: int | None) -> int | None:
        """Return the rank in it of a rank of the job."""
        found = np.flatnonzero(self.members == (-1 if rank is None else rank))
        return int(found[0]) if len(found) else None


class Communicators:
    """All communicators of a trace whose members are known for sure.

    There are none unless the ranks are exactly those from 0 on, because OTF2 numbers them so.
    """

    def __init__(self, trace: Trace, group_names: list[str]) -> None:
        self.rank_of = ranks_of(trace)
        ranks = {rank: process for process, rank in enumerate(self.rank_of) if rank is not None}
        self._windows: dict[int, Communicator] = {}
        self._found: dict[str, Communicator] = {}
        self.masters: list[int] = []  # by rank: the location that stands for it
        self.labels: list[str] = []  # and its name in `peer`
        rows = location_rows(trace)
        first: dict[int, int] = {}
        for number, row in enumerate(rows):
            if row.kind == "thread":
                first.setdefault(row.process, number)
        known = sorted(ranks) == list(range(len(ranks))) and all(process in first for process in ranks.values())
        if not ranks or not known:
            return
        self.masters = [first[ranks[rank]] for rank in range(len(ranks))]
        for rank, location in enumerate(self.masters):
            name = rows[location].name or f"location {location}"
            self.labels.append(f"{group_names[ranks[rank]]}: {name}")
        self._gather(trace)

    def __len__(self) -> int:
        return len(self.masters)

    @property
    def count(self) -> int:
        """How many are defined, numbered from 0 on."""
        return len({0, *(each.number for each in self._found.values())}) if self.masters else 0

    def find(self, name: str | None) -> Communicator | None:
        """Return the communicator of a name."""
        return self._found.get(name) if name is not None else None

    def has_window(self, communicator: Communicator, number: int) -> bool:
        """Return whether a window of one-sided communication is in it: OTF2 has one of each number."""
        return self._windows.setdefault(number, communicator) is communicator

    def define(self, definitions: Definitions, first_group: int) -> None:
        """Define them: the locations of all ranks, and a group of these for each communicator."""
        if not self.masters:
            return
        definitions.group(first_group, "MPI locations", GroupType.COMM_LOCATIONS, _MPI, self.masters)
        world = Communicator(0, _WORLD, np.arange(len(self.masters)))
        listed = {0: world, **{each.number: each for each in self._found.values()}}
        for number, each in listed.items():
            definitions.group(first_group + 1 + number, "", GroupType.COMM_GROUP, _MPI, each.members.tolist())
            definitions.communicator(number, each.name, first_group + 1 + number, None if number == 0 else 0)
        for number, communicator in self._windows.items():
            definitions.window(number, f"window of {communicator.name}", communicator.number)

    def _gather(self, trace: Trace) -> None:
        members: dict[str, dict[int, int]] = {}
        sizes: dict[str, set[int]] = {}
        doubtful: set[str] = set()

        def meet(name: str, rank: int, of_job: int) -> None:
            if members.setdefault(name, {}).setdefault(rank, of_job) != of_job:
                doubtful.add(name)

        for location, row in enumerate(location_rows(trace)):
            process = row.process
            texts = trace.texts(process)
            for raw in trace.raw_side_batches("messages", location):
                for name, rank, peer in _distinct(raw, ("communicator", "communicator_rank", "peer_rank")):
                    meet(texts[name], rank, peer)
            own = self.rank_of[process]
            for raw in trace.raw_side_batches("collective_spans", location):
                for name, rank, size in _distinct(raw, ("communicator", "rank", "group_size")):
                    sizes.setdefault(texts[name], set()).add(size)
                    if own is None:
                        doubtful.add(texts[name])
                    else:
                        meet(texts[name], rank, own)
        job = len(self.masters)
        for comm, known in sorted(members.items()):
            known_sizes = sizes.get(comm, set())
            same = all(rank == of_job for rank, of_job in known.items())
            if same and (known_sizes == {job} or (not known_sizes and comm == _WORLD)):
                known = {rank: rank for rank in range(job)}
            whole = known_sizes in (set(), {len(known)}) and sorted(known) == list(range(len(known)))
            fits = len(set(known.values())) == len(known) and all(0 <= rank < job for rank in known.values())
            if comm in doubtful or not whole or not fits:
                continue
            is_world = comm == _WORLD and list(known.values()) == list(range(job))
            number = 0 if is_world else 1 + sum(each.number > 0 for each in self._found.values())
            self._found[comm] = Communicator(number, comm, np.array([known[rank] for rank in range(len(known))]))


def _distinct(raw: dict[str, Any], names: tuple[str, str, str]) -> list[list[int]]:
    """Return the distinct complete rows of three columns."""
    columns = [raw["columns"].get(name) for name in names]
    if any(column is None for column in columns):
        return []
    complete = np.logical_and.reduce([column[2] != 0 for column in columns if column is not None])
    values = np.stack([np.asarray(column[1])[complete] for column in columns if column is not None], axis=1)
    found: list[list[int]] = np.unique(values, axis=0).tolist()
    return found
