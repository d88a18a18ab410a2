"""The form of hand-computed delay costs: the program (as in `wait_case.py`), who delayed whom where, and how much.

The definitions are those of `ranks.md`, sections 2 and 3. For a wait of w ns of rank R, whose delayer is S:

    T_X,c    exclusive time of call path c on X from the previous point at which R and S synchronised to now, without
             the waits of X; of the call that opened the interval only its completion
    D_c      max(0, T_S,c - T_R,c); D the sum over all c
    W        the waits of S strictly inside the interval
    s        min(w / (D + W), 1), and 0 if D + W = 0
    K        what later waits hung on this one: the sum of (s' + K' / (D' + W')) * w over the waits that it delayed
    direct   s * D_c                   of path c of S
    indirect s * v                     of the path of the call of S that waited v
    long     K / (D + W) * D_c         of path c of S
    unexplained  w - s * (D + W)       of the wait

All times as they are: no clock is repaired, and no wait is set aside as less than the error of the clocks. Every ns of
a rank is in some region. A call path is a tuple of regions, the outermost first; its last one may be a call of MPI.
"""

from dataclasses import dataclass, field

from tests.ranks.wait_case import Case, Communicator, Event, call, mpi_collective, send

Path = tuple[str, ...]

# The first call of every rank, the same on all: the point from which all are compared. It has no wait, no completion.
BARRIER = mpi_collective(0, 10, "MPI_Barrier")
INIT = call(0, 10, "MPI_Init")


@dataclass(frozen=True)
class Delay:
    """What a call path of the delayer cost a waiting rank; all waits of a state together (a row per key)."""

    delayer: int
    path: Path
    waiter: int
    state: str
    direct_ns: int = 0
    indirect_ns: int = 0
    long_term_ns: int = 0


@dataclass(frozen=True)
class Waited:
    """One wait: rank and enter of the call that waited, its path, and where the wait came from.

    direct_ns + indirect_ns + unexplained_ns = wait_ns. carried_ns is K: a wait with K > 0 propagates, others do not.
    """

    waiter: int
    enter_ns: int
    path: Path
    state: str
    delayer: int
    wait_ns: int
    direct_ns: int = 0
    indirect_ns: int = 0
    unexplained_ns: int = 0
    carried_ns: int = 0


@dataclass(frozen=True)
class DelayCase:
    """A program, all its waits, and all rows that are not zero.

    assumes: the readings of the definitions without which the numbers were others (none in most).
    """

    name: str
    what: str
    ranks: dict[int, list[Event]]
    waits: list[Waited]
    delays: list[Delay]
    communicators: dict[str, Communicator] = field(default_factory=dict)
    assumes: tuple[str, ...] = ()

    def program(self) -> Case:
        """Return the program in the form that `wait_archives.write` takes."""
        return Case(self.name, self.what, self.ranks, [], self.communicators)


def mpi_ssend(enter: int, leave: int, peer: int, communicator: str = "world") -> list[Event]:
    """Return a synchronous send."""
    return call(enter, leave, "MPI_Ssend", send(peer, 0, communicator))
