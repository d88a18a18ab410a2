"""Profiles of Callgrind and Cachegrind (valgrind), and of others for KCachegrind (Xdebug, ...).

The file contains the cost of each line and of each call, but no call paths: see call_graph.py. The format is described
in https://valgrind.org/docs/manual/cl-format.html.

The event that is a time (Xdebug has one) is the time of the tables. Without one, the first event (`Ir`, instructions)
stands in for it, a unit as a nanosecond: shares are right, and the quality table notes it. The sums of every event by
function are in `path_metrics`.

Not kept: addresses of instructions (costs are summed up by line), jumps, the part of a file that a cost belongs to, and
the costs of single lines and calls in other events than the one shown.
"""

from __future__ import annotations

import re

from strobe import registry
from strobe.formats.profiles.callgrind.first_bytes import HEADER, TIMEFRAME
from strobe.model.plugins import Format

_MARK = b"# callgrind format"
_FIRST_POSITION = re.compile(rb"^(?:ob|fl|fi|fn)=", re.MULTILINE)
_CREATOR = re.compile(rb"^creator: *(?:callgrind|cachegrind)-", re.MULTILINE)
_EVENTS = re.compile(rb"^events:[ \t]*\S", re.MULTILINE)


def sniff(head: bytes) -> bool:
    """Return whether it names the format, or begins with a header of this format that names events."""
    if head.startswith(_MARK):
        return True
    events = _EVENTS.search(head)
    if events is None or b"\0" in head:
        return False
    # A program may have run no instruction in a part: only the creator tells then.
    if not _FIRST_POSITION.search(head, events.end()) and not _CREATOR.search(head):
        return False
    lines = [line.strip() for line in head[: events.start()].split(b"\n")]
    return all(not line or line.startswith((b"#", TIMEFRAME)) or HEADER.fullmatch(line) for line in lines)


FORMAT = Format(
    "callgrind",
    "Callgrind profile (Callgrind and Cachegrind of valgrind, Xdebug)",
    suffixes=(".callgrind",),
    sniff=sniff,
    read=registry.later("strobe.formats.profiles.callgrind.reader:read"),
)
