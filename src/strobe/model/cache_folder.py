"""The user's cache: imports of other tools' files, wrappers of compilers."""

from __future__ import annotations

import os


def cache_folder() -> str:
    """Return the path of the folder that STROBE_CACHE names, else `strobe` in the user's cache; it may not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.abspath(os.environ.get("STROBE_CACHE") or os.path.join(home, "strobe"))
