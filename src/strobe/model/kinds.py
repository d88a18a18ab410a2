"""Enumerations shared with the recorder, and the one rule that gives a region its group (its colour).

The order of PARADIGMS and ROLES is the numbering in the block files; `native/include/strobe.h` holds the same lists.
"""

from __future__ import annotations

# Who reported a region.
PARADIGMS = ("other", "python", "torch", "itt", "nvtx", "user", "cuda", "mpi", "onednn", "strobe")
# What a region is.
ROLES = (
    "other",
    "function",
    "operator",
    "range",
    "wait",
    "loop",
    "kernel",
    "copy",
    "sync",
    "p2p",
    "collective",
    "data",
)
# What a location is.
LOCATION_KINDS = ("thread", "stream", "task")
# What a region is drawn and summed as.
GROUPS = ("data", "compute", "communication", "sync", "copy", "host", "other")

# Parts of a step, in the order in which they are shown. `rest` is what no operator accounts for.
PARTS = ("data_wait", "forward", "backward", "optimizer", "rest")

_GROUP_OF_ROLE = {
    "operator": "compute",
    "kernel": "compute",
    "copy": "copy",
    "sync": "sync",
    "wait": "sync",
    "p2p": "communication",
    "collective": "communication",
    "data": "data",
    "function": "host",
    "loop": "host",
}
_GROUP_OF_PARADIGM = {"mpi": "communication", "python": "host", "onednn": "compute", "user": "host"}
# PyTorch names the wait for the next batch itself (torch/utils/data/dataloader.py:
# `enumerate(DataLoader)#...__next__`).
_DATA_PREFIXES = ("enumerate(DataLoader)", "DataLoader")


def group_of(name: str, paradigm: str, role: str) -> str:
    """Return the group of a region: one of GROUPS."""
    if role == "data" or name.startswith(_DATA_PREFIXES):
        return "data"
    if paradigm == "torch" and role == "range":  # nodes of the backward graph, optimizer steps
        return "compute"
    return _GROUP_OF_ROLE.get(role) or _GROUP_OF_PARADIGM.get(paradigm, "other")


# What a table or an analysis may need, what it is called, and the option of `strobe run` that records it.
RECORDED_WITH = {
    "spans": ("spans", "--preset auto"),
    "torch": ("PyTorch operators", "--trace +torch"),
    "python": ("Python calls", "--trace +python"),
    "nvtx": ("NVTX ranges", "--trace +nvtx"),
    "itt": ("ITT ranges", "--trace +itt"),
    "metrics": ("process metrics", "--trace +metrics"),
}
