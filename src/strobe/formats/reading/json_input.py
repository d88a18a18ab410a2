"""Profiles that are JSON: read as a whole, with numbers that stay exact."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from strobe.formats.reading.profile_import import read_whole
from strobe.model.plugins import ImportSource

_LARGEST = 1 << 62
_DEEPEST = 8000  # takes 2 MiB of the stack
_NOTHING: Mapping[str, object] = {}


def read_json(source: ImportSource) -> Mapping[str, object]:
    """Return the object that a file holds; its decimals are Decimals, NaN and infinities None.

    Raises ValueError if it is not JSON, not an object, or nested too deeply.
    """
    text = read_whole(source).decode("utf-8-sig", "replace")
    usual = sys.getrecursionlimit()
    try:
        # Profiles that nest their frames nest two levels a frame, and Python alone has stacks of 1000.
        sys.setrecursionlimit(max(usual, _DEEPEST))
        body = json.loads(text, parse_float=_decimal, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    finally:
        sys.setrecursionlimit(usual)
    if not isinstance(body, dict):
        raise ValueError("it is JSON, but not an object")
    return body


def exact_number(value: object) -> Fraction | None:
    """Return an exact number; None for anything else, and for numbers beyond those of a trace."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    # Checked before it is expanded: 1e999999999 has as many digits.
    if isinstance(value, Decimal) and not (value.is_finite() and -100 < value.adjusted() < 30):
        return Fraction(0) if value == 0 else None
    exact = Fraction(value)
    return exact if abs(exact) < _LARGEST else None


def integer(value: object) -> int:
    """Return an integer, 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def items(value: object) -> list[object]:
    """Return a list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def fields(value: object) -> Mapping[str, object]:
    """Return an object, one without keys for anything else."""
    return value if isinstance(value, dict) else _NOTHING


def text(value: object) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""


def _decimal(digits: str) -> Decimal | None:
    try:
        return Decimal(digits)
    except ArithmeticError:  # an exponent beyond all numbers
        return None
