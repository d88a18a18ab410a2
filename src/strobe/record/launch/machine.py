"""What of the machine decides how fast programs are: its CPU, its driver of GPUs."""

from __future__ import annotations

import os


def cpu_model() -> str:
    """Return the model of this machine's CPU as Linux names it, or its architecture."""
    models = (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    return next(models, "") or os.uname().machine


def driver_version(root: str | os.PathLike[str] = "/") -> str:
    """Return the version of NVIDIA's driver, or "". `root`: where proc is.

    `580.65.06` of the line `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release ...`.
    """
    words = " ".join(_lines(os.path.join(root, "proc/driver/nvidia/version"), 1)).split()
    return next((word for word in words if word[:3].isdigit() and word.replace(".", "").isdigit()), "")


def _lines(path: str, most: int = 64) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return [stream.readline() for _ in range(most)]
    except OSError:
        return []
