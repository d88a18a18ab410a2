"""Whether an NVIDIA driver is here: asked before anything of NVIDIA's is loaded, so it looks for files only."""

from __future__ import annotations

import os

SIGNS = ("proc/driver/nvidia/version", "dev/nvidiactl", "dev/nvidia0")


def driver_is_there(root: str | os.PathLike[str] = "/") -> bool:
    """Whether the kernel module is loaded, or a container was given its devices. `root`: where proc and dev are."""
    return any(os.path.exists(os.path.join(root, sign)) for sign in SIGNS)
