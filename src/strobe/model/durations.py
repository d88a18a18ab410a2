"""Durations in text: a number and a unit. Every option, file and question that takes a duration reads it here."""

from __future__ import annotations

_S = 1_000_000_000
UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": _S, "min": 60 * _S, "h": 3600 * _S}
EXAMPLES = "500ns, 10us, 1.5ms, 3s, 1min, 2h"
_LONGEST_NS = 1 << 62


def duration_ns(text: str, unit: str = "") -> int:
    """Read a duration such as 500ns, 10us, 1.5ms, 3s, 1min or 2h; return it in nanoseconds.

    `unit` is the unit of a number without one; by default such a number is refused. Raises ValueError.
    """
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzµ")
    size = UNITS_NS.get(text.strip()[len(number) :].replace("µ", "u") or unit)
    try:
        if size is not None:
            # Whole numbers are read exactly, however large they are.
            value = int(number) * size if number.isascii() and number.isdigit() else float(number) * size
            if 0 <= value < _LONGEST_NS:
                return round(value)
    except ValueError:
        pass
    raise ValueError(f"'{text}' is not a duration. Use a number and a unit: {EXAMPLES}.")
