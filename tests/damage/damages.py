"""Damage to traces as disks, copies and kills do it: bits, bursts, cut ends, zeros, chunks in another place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
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


def _head(data: bytes, random: Random) -> bytes:
    at = random.choice(chunks_of(data))[0] + random.randrange(HEADER.size)
    return data[:at] + bytes([data[at] ^ random.randint(1, 255)]) + data[at + 1 :]


def _last(data: bytes, random: Random) -> bytes:
    begin, end = chunks_of(data)[-1 - random.randrange(3)]
    at = random.randrange(begin, end)
    return data[:at] + bytes([data[at] ^ random.randint(1, 255)]) + data[at + 1 :]


DAMAGES: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip": _flip,
    "burst": _burst,
    "cut": _cut,
    "zeros": _zeros,
    "swapped": _swapped,
    "twice": _twice,
    "head": _head,
    "last": _last,
}
# What is only in another place, or there twice, is all there.
HARMLESS = ("swapped", "twice")
# These need chunks; other files than those of blocks have none.
_OF_CHUNKS = (*HARMLESS, "head", "last")


def damage(folder: Path, kind: str, random: Random) -> Path:
    """Damage one file of a trace as a disk does: its time of change stays. Return which."""
    files = sorted(each for each in folder.iterdir() if each.is_file() and each.stat().st_size)
    blocks = [each for each in files if each.suffix == ".blocks"]
    others = [each for each in files if each.suffix != ".blocks"]
    path = random.choice(blocks if kind in _OF_CHUNKS or random.random() < 0.7 else others)
    state = path.stat()
    path.write_bytes(DAMAGES[kind](path.read_bytes(), random))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return path
