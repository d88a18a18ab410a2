"""The wire format of protocol buffers, as far as recognising and writing files needs it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class CutError(ValueError):
    """The bytes end within a field: what came before is sound."""


def fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number, wire type, bytes) of the fields of a message; the bytes of numbers are empty.

    Raises CutError where the message ends within a field (after yielding what there is of texts and messages), another
    ValueError where it is none.
    """
    at = 0
    while at < len(message):
        key, at = varint_at(message, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("fields are numbered from 1")
        if kind == VARINT:
            _, at = varint_at(message, at)
            yield number, kind, b""
        elif kind == BYTES:
            size, at = varint_at(message, at)
            yield number, kind, message[at : at + size]
            at += size
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
            yield number, kind, b""
        else:
            raise ValueError(f"no wire type {kind}")
    if at > len(message):
        raise CutError


def varint_at(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a place, and where it ends. Raises CutError, or another ValueError beyond 64
    bits."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= 70:
            raise ValueError("a number of more than 64 bits")
    raise CutError


def varint(value: int) -> bytes:
    """Return a whole number; negative ones have ten bytes."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Return a field with a whole number."""
    return varint(field << 3) + varint(value)


def fixed64(field: int, value: int) -> bytes:
    """Return a field with a whole number in eight bytes."""
    return varint(field << 3 | FIXED64) + struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF)


def real(field: int, value: float) -> bytes:
    """Return a field with a double."""
    return varint(field << 3 | FIXED64) + struct.pack("<d", value)


def text(field: int, value: str | bytes) -> bytes:
    """Return a field with a text, bytes, or a message."""
    body = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return varint(field << 3 | BYTES) + varint(len(body)) + body
