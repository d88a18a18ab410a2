"""The manifest job.json as text: one JSON object, whose last member is a checksum of everything before it.

The recorder's parent process writes it without importing json, so this works on text.
"""

from __future__ import annotations

import re
import zlib

_SEAL = re.compile(r',\s*"checksum": "([0-9a-f]{8})"\s*}\s*$')


def sealed(text: str) -> str:
    """Return a JSON object with a checksum as its last member, in place of one that it has."""
    body = unsealed(text)
    return f'{body}, "checksum": "{zlib.crc32(body.encode()):08x}"}}'


def unsealed(text: str) -> str:
    """Return the text of a JSON object without its checksum and its closing brace."""
    found = _SEAL.search(text)
    return text[: found.start()] if found else text.rstrip().removesuffix("}").rstrip()


def is_sound(text: str) -> bool:
    """Return whether the checksum is right; True for a text without one, as older versions wrote it."""
    found = _SEAL.search(text)
    return found is None or found[1] == f"{zlib.crc32(text[: found.start()].encode()):08x}"
