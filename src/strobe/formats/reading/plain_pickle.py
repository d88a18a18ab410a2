"""Pickles of plain values (dictionaries, lists, texts, numbers), read without running anything that is in them.

Every operation is looked at before Python's own unpickler sees any: those that import, call or build objects are
refused, and so are numbers that would make it take memory. Tuples may hold up to three whole numbers and nothing else:
deep ones as keys of a dictionary overflow the stack of the interpreter.
"""

from __future__ import annotations

import io
import pickle
import re

_WHOLE = rb"(?:K.|M..|J....|\x8a(?:\x00|\x01.|\x02..|\x03.{3}|\x04.{4}|\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}|\x09.{9}))"
_TUPLES = b"|".join((_WHOLE * 2 + rb"\x86", _WHOLE + rb"\x85", _WHOLE * 3 + rb"\x87"))
# Runs are bounded: the engine remembers each repetition.
_HARMLESS = re.compile(
    rb"(?:[\x94(\])}easuN\x88\x89]+|[hq].|%s|%s|j.{4}|G.{8}|\x80.|\x95.{8}){1,4096}" % (_TUPLES, _WHOLE), re.DOTALL
)
_TEXTS = {ord("\x8c"): 1, ord("X"): 4, 0x8D: 8}  # bytes of the length
_LONG_PUT, _STOP = ord("r"), ord(".")
# A dictionary or list takes 60 bytes; one with a member has at least so many in the file.
_BYTES_EACH = 8
# What is remembered takes 16 bytes, and has at least so many with the operation that remembers it.
_BYTES_BETWEEN = 3
_MEMOIZE = b"\x94"
_SOME = 1024


class _Nothing(pickle.Unpickler):
    """Refuses what the operations that were let through cannot ask for."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        raise ValueError(f"it wants to import {module_name[:80]}.{global_name[:80]}, which is never done")

    def persistent_load(self, pid: object, /) -> object:
        raise ValueError("it refers to another file")


def plain_values(data: bytes) -> object:
    """Return what a pickle holds. Raises ValueError if it is cut off, or has anything but plain values."""
    _check(data)
    try:
        return _Nothing(io.BytesIO(data)).load()
    except (
        pickle.UnpicklingError,
        LookupError,
        TypeError,
        AttributeError,
        EOFError,
        MemoryError,
        OverflowError,
    ) as error:
        raise ValueError("its operations do not fit together") from error


def _check(data: bytes) -> None:
    if data.count(b"}") + data.count(b"]") > len(data) // _BYTES_EACH + _SOME:
        raise ValueError("it has more lists and dictionaries than anything could be in")
    if data.count(_MEMOIZE) > len(data) // _BYTES_BETWEEN + _SOME:
        raise ValueError("it remembers more values than it has")
    at = 0
    while at < len(data):
        run = _HARMLESS.match(data, at)
        if run is not None:
            at = run.end()
            continue
        operation = data[at]
        if operation == _STOP:
            return
        if operation in _TEXTS:
            size = _TEXTS[operation]
            at += 1 + size + int.from_bytes(data[at + 1 : at + 1 + size], "little")
        elif operation == _LONG_PUT and int.from_bytes(data[at + 1 : at + 5], "little") <= at // _BYTES_BETWEEN + _SOME:
            at += 5
        else:
            known = chr(operation) if 32 < operation < 127 else f"{operation:#04x}"
            raise ValueError(f"it has more than numbers, texts, lists and dictionaries (operation {known} at {at})")
    raise ValueError("it is cut off")
