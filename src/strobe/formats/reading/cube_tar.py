"""The archives of Cube: how to tell them from other tar files, and how to read the headers of CubeWriter 4.8."""

from __future__ import annotations

import re
import tarfile
from typing import Self

_BLOCK = 512
# Score-P's archives begin with remapping.spec, which may be longer than all that a format is asked about.
_MEMBER = re.compile(rb"(?:\d{1,9}\.(?:index|data)|anchor\.xml|remapping\.spec)\0")
_CHECKSUM = slice(148, 156)


def is_cube(head: bytes) -> bool:
    """Return whether bytes are the beginning of a tar that has a member of Cube's among the first ones."""
    at = 0
    while at + _BLOCK <= len(head) and head[at + 257 : at + 262] == b"ustar":
        if _MEMBER.match(head, at):
            return True
        try:
            size = int(head[at + 124 : at + 136].strip(b"\0 ") or b"0", 8)
        except ValueError:
            return False
        if size < 0:
            return False
        at += _BLOCK + -(-size // _BLOCK) * _BLOCK
    return False


class CubeMember(tarfile.TarInfo):
    """A member whose header may have CubeWriter 4.8's checksum, which takes its own field for 7 blanks instead of 8."""

    repaired = False

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header."""
        blanks = ord(" ") * 8
        right = sum(buf) - sum(buf[_CHECKSUM]) + blanks
        repaired = len(buf) == _BLOCK and buf[_CHECKSUM].strip(b"\0 ").lstrip(b"0") == b"%o" % (right - ord(" "))
        if repaired:
            buf = buf[: _CHECKSUM.start] + b"%06o\0 " % right + buf[_CHECKSUM.stop :]
        member = super().frombuf(buf, encoding, errors)
        member.repaired = repaired
        return member
