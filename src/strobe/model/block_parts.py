"""The block file of a flight recorder in parts: `process-N.blocks` is the newest, `process-N.blocks.000007` an earlier.

One behind the other they are a block file (native/core/session/file_parts.h); MappedFile::joined maps them so.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import ExitStack
from typing import BinaryIO

from strobe.model.private_files import opener

PART = re.compile(r"(process-.+)\.blocks\.(\d{6,})")
_BUFFER_BYTES = 1 << 20


def part_paths(blocks: str | os.PathLike[str]) -> list[str]:
    """Return the earlier parts of a block file, the oldest first.

    The last may be the file itself under a second name: while a part begins, and after a kill at that moment.
    """
    folder, stem = os.path.split(os.fspath(blocks))
    names = [name for name in os.listdir(folder or ".") if name.startswith(f"{stem}.") and PART.fullmatch(name)]
    return [os.path.join(folder, name) for name in sorted(names, key=lambda name: (len(name), name))]


def whole_paths(blocks: str | os.PathLike[str]) -> list[str]:
    """Return all parts of a block file that nobody writes, the oldest first; only the file itself where it is whole."""
    newest = os.fspath(blocks)
    return [*(path for path in part_paths(newest) if not os.path.samefile(path, newest)), newest]


def copy_joined(blocks: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy a block file behind its earlier parts, as one file; also while they are written. Raises OSError."""
    with ExitStack() as opened, open(target, "wb", opener=opener) as out:
        for part in _opened_parts(os.fspath(blocks), opened):
            shutil.copyfileobj(part, out, _BUFFER_BYTES)


def _opened_parts(blocks: str, opened: ExitStack) -> list[BinaryIO]:
    # The newest first: what becomes a part meanwhile is found again under its other name, and left out there.
    newest = opened.enter_context(open(blocks, "rb"))  # noqa: SIM115
    inode = os.fstat(newest.fileno()).st_ino
    earlier: list[BinaryIO] = []
    for path in part_paths(blocks):
        try:
            part = opened.enter_context(open(path, "rb"))  # noqa: SIM115
        except FileNotFoundError:  # removed just now, and all before it are older
            earlier.clear()
            continue
        if os.fstat(part.fileno()).st_ino == inode:
            break
        earlier.append(part)
    return [*earlier, newest]
