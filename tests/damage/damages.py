"""Damage to block files as disks, copies and kills do it: bits, bursts, cut ends, zeros, chunks in another place."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.unit.blocks_twin import HEADER, MAGIC

_PAGE = 4096


def chunks_of(data: bytes) -> list[tuple[int, int]]:
    """Return where the chunks of a sound block file begin and end."""
    found, at = [], 0
    while at + HEADER.size <= len(data) and data[at : at + 4] == MAGIC:
        end = at + HEADER.size + HEADER.unpack_from(data, at)[4]
        found.append((at, end))
        at = end
    return found


def _flip(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _burst(data: bytes, random: Random) -> bytes:
    size = random.randint(2, 64)
    at = random.randrange(max(1, len(data) - size))
    return data[:at] + random.randbytes(size) + data[at + size :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def _zeros(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data)) // 512 * 512
    size = min(len(data) - at, random.choice((512, _PAGE)))
    return data[:at] + bytes(size) + data[at + size :]


def _swapped(data: bytes, random: Random) -> bytes:
    chunks = chunks_of(data)
    (a, b), (c, d) = sorted(random.sample(chunks, 2))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _twice(data: bytes, random: Random) -> bytes:
    begin, end = random.choice(chunks_of(data))
    at = random.choice(chunks_of(data))[1]
    return data[:at] + data[begin:end] + data[at:]


DAMAGES: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip": _flip,
    "burst": _burst,
    "cut": _cut,
    "zeros": _zeros,
    "swapped": _swapped,
    "twice": _twice,
}
# What is only in another place, or there twice, is all there.
HARMLESS = ("swapped", "twice")
