"""Profiles that are JSON: read as a whole, with numbers that stay exact."""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import chain

from strobe.formats.reading.profile_import import read_whole
from strobe.model.plugins import ImportSource

_LARGEST = 1 << 62
_DEEPEST = 8000  # takes 2 MiB of the stack
_LARGEST_OBJECT = 16 << 20
_LONGEST_KEY = 200
_BETWEEN = re.compile(r"[\s,]*")
_NOTHING: Mapping[str, object] = {}


def read_json(source: ImportSource) -> Mapping[str, object]:
    """Return the object that a file holds; its decimals are Decimals, NaN and infinities None.

    Raises ValueError if it is not JSON, not an object, or nested too deeply.
    """
    return object_in(read_whole(source).decode("utf-8-sig", "replace"))


def object_in(text: str) -> Mapping[str, object]:
    """Return the object that a text is, as `read_json` does."""
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


def objects_in(source: ImportSource, array: str, cut_off: Callable[[], None]) -> Iterator[Mapping[str, object]]:
    """Yield the objects of the first array with this key, one by one, in memory that does not grow with the file.

    Without a key, it is the array that the file consists of.

    Calls `cut_off` if the file ends in the array. Raises ValueError if there is no such array, if what is in it is not
    JSON, or if one object is larger than 16 MiB.
    """
    decoder = json.JSONDecoder(parse_float=_decimal, parse_constant=lambda _: None)
    read = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
    begin = re.compile(rf'"{array}"\s*:\s*\[' if array else r"\A\s*\[")
    waiting, at, inside, tried = "", 0, False, 0
    for chunk in chain(source.chunks(), (b"",)):  # the empty one is the end: what is left is tried once more
        waiting, at = waiting[at:] + read(chunk), 0
        tried = tried if chunk else 0
        if not inside and (found := begin.search(waiting)) is not None:
            inside, at = True, found.end()
        elif not inside:
            at = max(0, len(waiting) - _LONGEST_KEY)
        # An object that is not complete is tried again when there is twice as much of it.
        while inside and len(waiting) - at > tried:
            between = _BETWEEN.match(waiting, at)
            at = between.end() if between else at
            if waiting[at : at + 1] == "]":
                return
            try:
                value, at = decoder.raw_decode(waiting, at)
            except RecursionError:
                raise ValueError("it is nested too deeply") from None
            except json.JSONDecodeError:
                tried = 2 * (len(waiting) - at)
                if tried > 2 * _LARGEST_OBJECT:
                    raise ValueError(f"an entry of '{array}' is not JSON, or larger than 16 MiB") from None
                break
            tried = 0
            yield fields(value)
    if not inside:
        raise ValueError(f"it has no '{array}'" if array else "it is not a list")
    cut_off()


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
