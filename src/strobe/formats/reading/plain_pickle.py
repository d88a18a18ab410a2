"""Pickles of plain values (dictionaries, lists, texts, numbers), read without running anything that is in them.

Every operation is looked at before Python's own unpickler sees any: those that import, call or build objects are
refused, and so are numbers that would make it take memory. Tuples may hold up to three whole numbers, or two texts, and
nothing else: deep ones as keys of a dictionary overflow the stack of the interpreter.
"""

from __future__ import annotations

import gc
import io
import pickle
import re

_WHOLE = rb"(?:K.|M..|J....|\x8a(?:\x00|\x01.|\x02..|\x03.{3}|\x04.{4}|\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}|\x09.{9}))"
# Alone, or as a tuple of up to three.
_NUMBERS = _WHOLE + rb"(?:\x85|" + _WHOLE + rb"(?:\x86|" + _WHOLE + rb"\x87))?+"
_PLAIN, _OTHERS = rb"[\x94(\])}easuN\x88\x89]", rb"[hq].|j.{4}|%s|G.{8}|\x80.|\x95.{8}" % _NUMBERS
_ONE = re.compile(rb"%s|%s" % (_PLAIN, _OTHERS), re.DOTALL)
# Possessive, as the engine would remember each repetition; bounded, as there is a list of those that are followed.
_HARMLESS = re.compile(rb"(?:%s++|%s){1,4096}+" % (_PLAIN, _OTHERS), re.DOTALL)
_TEXTS = {ord("\x8c"): 1, ord("X"): 4, 0x8D: 8}  # bytes of the length
_LONG_PUT, _STOP, _PAIR = ord("r"), ord("."), 0x86
# A dictionary or list takes 60 bytes; one with a member has at least so many in the file.
_BYTES_EACH = 8
# What is remembered takes 16 bytes, and has at least so many with the operation that remembers it.
_BYTES_BETWEEN = 3
_MEMOIZE, _TEXT, _PUTS, _GETS = b"\x94", b"\x8c", (b"q", b"r"), (b"h", b"j")
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
    collects = gc.isenabled()
    gc.disable()  # to look through millions of plain values again and again takes longer than to make them
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
    finally:
        if collects:
            gc.enable()


def _check(data: bytes, pairs: _Pairs | None = None) -> None:
    if data.count(b"}") + data.count(b"]") > len(data) // _BYTES_EACH + _SOME:
        raise ValueError("it has more lists and dictionaries than anything could be in")
    if data.count(_MEMOIZE) > len(data) // _BYTES_BETWEEN + _SOME:
        raise ValueError("it remembers more values than it has")
    at = 0
    while at < len(data):
        run = _HARMLESS.match(data, at)
        if run is not None:
            if pairs is not None:
                pairs.follow(_ONE.findall(data, at, run.end()))
            at = run.end()
            continue
        operation = data[at]
        if operation == _STOP:
            return
        if operation in _TEXTS:
            size = _TEXTS[operation]
            at += 1 + size + int.from_bytes(data[at + 1 : at + 1 + size], "little")
            if pairs is not None:
                pairs.follow([_TEXT])
        elif operation == _LONG_PUT and int.from_bytes(data[at + 1 : at + 5], "little") <= at // _BYTES_BETWEEN + _SOME:
            if pairs is not None:
                pairs.follow([data[at : at + 5]])
            at += 5
        elif operation == _PAIR and pairs is None:  # rare, and to follow every operation takes three times as long
            _check(data, _Pairs())
            return
        elif operation == _PAIR and pairs is not None and pairs.of_texts():
            at += 1
        else:
            known = chr(operation) if 32 < operation < 127 else f"{operation:#04x}"
            raise ValueError(f"it has more than numbers, texts, lists and dictionaries (operation {known} at {at})")
    raise ValueError("it is cut off")


class _Pairs:
    """Follows under which numbers texts are remembered, as far as tuples of two texts need it.

    What is not known to be a text may be a tuple: an operation without effect, or a second number, hides where a value
    comes from.
    """

    def __init__(self) -> None:
        self._latest: list[bytes] = []
        self._texts: set[int] = set()
        self._remembered = 0
        self._numbered = False  # with numbers in the file; else they count

    def follow(self, operations: list[bytes]) -> None:
        """Take the next operations; a text stands for itself, without its bytes."""
        after_text = self._latest[-1:] == [_TEXT]
        for operation in operations:
            if operation == _MEMOIZE:
                number = self._remembered
                self._remembered += 1
            elif operation[:1] in _PUTS:
                number = int.from_bytes(operation[1:], "little")
                self._numbered = True
            else:
                after_text = False
                continue
            if after_text:
                self._texts.add(number)
            else:
                self._texts.discard(number)
            after_text = False
        self._latest = (self._latest + operations)[-4:]

    def of_texts(self) -> bool:
        """Return whether a pair that is made now is of two texts."""
        values = [each for each in self._latest if each != _MEMOIZE and each[:1] not in _PUTS][-2:]
        self._latest = []
        counted = not (self._numbered and self._remembered)  # else numbers that count are not those of the file
        return counted and len(values) == 2 and all(map(self._is_text, values))

    def _is_text(self, operation: bytes) -> bool:
        is_get = operation[:1] in _GETS
        return operation == _TEXT or (is_get and int.from_bytes(operation[1:], "little") in self._texts)
