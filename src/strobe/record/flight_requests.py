"""Requests to a flight recorder: small files in its folder, which every process of a job can make.

Runs inside the measured program, so it imports nothing that the program would not import itself.
"""

from __future__ import annotations

import os

from strobe.record.options.session_settings import json_text

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Mapping

# What a flight recorder writes a trace for by itself; and what somebody asks for.
AUTOMATIC = ("slow-step", "exception", "oom")
_PREFIX = "flight-request-"
_REST_S = 60.0
_SLOW = 3.0  # times the median


def triggers(text: str) -> dict[str, float]:
    """Read `--flight-on slow-step:K,exception,oom`, or `none`: by name, the factor of slow steps. Raises ValueError."""
    found = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, colon, factor = word.partition(":")
        try:
            value = float(factor) if colon else _SLOW
        except ValueError:
            value = 0.0
        if word == "none":
            continue
        if name not in AUTOMATIC or (colon and name != "slow-step") or not 1 < value < 1e6:
            raise ValueError(f"'{word}' is not an event. Use slow-step, slow-step:5, exception, oom, or none.")
        found[name] = value
    return found


def rest_s(keep_ns: int) -> float:
    """How long a flight recorder rests between two traces that nobody asked for."""
    return min(_REST_S, keep_ns / 1e9)


def request(folder: str, reason: str, event: str) -> str:
    """Ask for a trace of the last minutes; return the file that is there until it is written. Raises OSError."""
    facts: Mapping[str, str] = {"reason": reason, "event": event}
    path = os.path.join(folder, f"{_PREFIX}{os.uname().nodename}-{os.getpid()}-{reason}")
    work = f"{path}.tmp"
    with open(work, "w", encoding="utf-8") as file:
        file.write(json_text(facts))
    os.replace(work, path)
    return path


def requests(folder: str) -> list[str]:
    """Return the names of the requests in a folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if name.startswith(_PREFIX) and not name.endswith(".tmp"))
