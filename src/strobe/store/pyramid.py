"""Tiles of the pyramid: built at the end of a run or on first use; nothing is wrong without them."""

from __future__ import annotations

import os

from strobe.store.archive import ProcessFiles
from strobe.store.raw import ProcessReader


def ensure_tiles(files: ProcessFiles, reader: ProcessReader) -> str | None:
    """Return the path of the tiles of a process, building them when they are missing or older than its blocks.

    None when there can be none: the process still writes, or the folder is not writable. Then pictures come from the
    spans themselves.
    """
    if files.rings is not None:
        return None
    if files.tiles.exists() and files.tiles.stat().st_mtime_ns >= files.blocks.stat().st_mtime_ns:
        return str(files.tiles)
    # Under another name first: a reader never meets half a file, and two readers may build at once.
    unfinished = files.tiles.with_name(f"{files.tiles.name}.{os.getpid()}")
    try:
        reader.build_tiles(str(unfinished))
        unfinished.replace(files.tiles)
    except OSError:
        unfinished.unlink(missing_ok=True)
        return None
    return str(files.tiles)
