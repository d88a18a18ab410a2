"""What the control groups of this process allow it: processors and memory (cgroups(7), version 1 and 2)."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Iterable


def cpu_limit(folders: Iterable[str] | None = None) -> float | None:
    """Return how many processors a process may use at once by the strictest of its groups, None for no limit.

    folders: of the groups, None for those of this process.
    """
    found = []
    for folder in folders_of("cpu") if folders is None else folders:
        words = text_of(os.path.join(folder, "cpu.max")).split()
        if len(words) == 2 and words[0] != "max":
            found.append(int(words[0]) / int(words[1]))
        quota, period = (number_in(os.path.join(folder, f"cpu.cfs_{each}_us")) for each in ("quota", "period"))
        if quota and period and quota > 0:
            found.append(quota / period)
    return min(found, default=None)


def memory_limit() -> int | None:
    """Return how many bytes this process may use by the strictest of its groups, None for no limit."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = (number_in(os.path.join(folder, name)) for folder in folders_of("memory") for name in names)
    return min((each for each in limits if each and each < 1 << 60), default=None)


def folders_of(controller: str) -> list[str]:
    """Return the folders of this process's groups for a controller (`cpu`, `memory`), the root first."""
    folders = []
    for line in text_of("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = os.path.join("/sys/fs/cgroup", controller) if controllers else "/sys/fs/cgroup"
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):
            folder = os.path.join(root, *parts[:depth])
            if os.path.isdir(folder) and folder not in folders:
                folders.append(folder)
    return folders


def text_of(path: str) -> str:
    """Return what a small file holds, "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def number_in(path: str) -> int | None:
    """Return the number that a small file holds, None if it holds anything else."""
    try:
        return int(text_of(path))
    except ValueError:
        return None
