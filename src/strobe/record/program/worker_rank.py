"""The rank of this process, if its launcher (torchrun, or a script like it) has set RANK in the environment."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Mapping

_RANK = "RANK"


def worker_rank(environment: Mapping[str, str], main: bool) -> tuple[int, int] | None:
    """Return number of the rank and number of ranks, by RANK, WORLD_SIZE and LOCAL_RANK; None without them.

    None also for children of a rank (data loaders, compilers), which inherit the variables. `main`: `strobe run` is our
    parent, which has the variables itself if it was started as a rank.
    """
    try:
        rank, ranks, local = (int(environment[name]) for name in (_RANK, "WORLD_SIZE", "LOCAL_RANK"))
    except (KeyError, ValueError):
        return None
    if not 0 <= local <= rank < ranks or not (main or _differs_from_parent(environment[_RANK])):
        return None
    return rank, ranks


def _differs_from_parent(rank: str) -> bool:
    try:
        with open(f"/proc/{os.getppid()}/environ", "rb") as file:
            return f"{_RANK}={rank}".encode() not in file.read().split(b"\0")
    except OSError:  # of another user
        return False
