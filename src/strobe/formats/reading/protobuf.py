"""The wire format of protocol buffers: the parts needed to recognise and write files."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class CutError(ValueError):
    """The bytes end within a field; those before it are sound."""


class Field(NamedTuple):
    """A field of a message: its number, its wire type, and its value: `integer` (unsigned) or `body`."""

    number: int
    kind: int
    integer: int = 0
    body: bytes = b""


def fields(message: bytes, *, cut: bool = True) -> Iterator[Field]:
    """Yield the fields of a message.

    Raises CutError if the message ends within a field, with `cut` after yielding the beginning of a text or message.
    Raises another ValueError if it is not a message.
    """
    at = 0
    while at < len(message):
        key, at = varint_at(message, at)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("fields are numbered from 1")
        if kind == VARINT:
            integer, at = varint_at(message, at)
            yield Field(number, kind, integer)
            continue
        if kind == BYTES:
            size, at = varint_at(message, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"no wire type {kind}")
        if at + size > len(message) and not cut:
            raise CutError
        yield Field(number, kind, body=message[at : at + size])
        at += size
    if at > len(message):
        raise CutError


def sound_fields(message: bytes) -> list[Field]:
    """Return the fields of a message up to if it is damaged."""
    sound = []
    try:
        for each in fields(message, cut=False):
            sound.append(each)
    except ValueError:
        pass
    return sound


def integers(field: Field) -> list[int]:
    """Return the signed numbers of a repeated field, packed or not. Raises ValueError if they are damaged."""
    if field.kind == VARINT:
        return [signed(field.integer)]
    numbers, at = [], 0
    while at < len(field.body):
        integer, at = varint_at(field.body, at)
        numbers.append(signed(integer))
    return numbers


def signed(integer: int) -> int:
    """Return the signed number of 64 bits that an unsigned one stands for."""
    integer &= 0xFFFFFFFFFFFFFFFF
    return integer - (1 << 64) if integer >= 1 << 63 else integer


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


def message(field: int, fields: Mapping[int, int | bytes], more: bytes = b"") -> bytes:
    """Return a field with a message: its fields by number, and `more` of them."""
    parts = (number(each, value) if isinstance(value, int) else text(each, value) for each, value in fields.items())
    return text(field, b"".join(parts) + more)


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
