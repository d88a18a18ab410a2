"""Who may read what strobe writes: its user only, unless STROBE_ACCESS is `umask` (docs/how-to/shared-machines.md).

A trace folder is made for its user, or not; files in it take after it, whoever writes them.
"""

from __future__ import annotations

import os

PRIVATE, UMASK = "private", "umask"


def folder_mode(access: str = "") -> int:
    """Return the mode of new folders. `access`: private or umask; "": what STROBE_ACCESS chooses."""
    return 0o777 if (access or os.environ.get("STROBE_ACCESS")) == UMASK else 0o700


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(path, "w", opener=private_opener)`: a new one has the mode of new traces."""
    return os.open(path, flags, 0o666 & folder_mode())


def opener(path: str, flags: int) -> int:
    """Open a file for `open(path, "w", opener=opener)`: with the mode that its folder gives to new files."""
    return os.open(path, flags, 0o666 & os.stat(os.path.dirname(path) or ".").st_mode)
