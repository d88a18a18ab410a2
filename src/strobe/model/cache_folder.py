"""The user's cache: imports of other tools' files, wrappers of compilers."""

from __future__ import annotations

import os

from strobe.model.private_files import folder_mode


def cache_folder() -> str:
    """Return the path of the folder that STROBE_CACHE names, else `strobe` in the user's cache; it may not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.abspath(os.environ.get("STROBE_CACHE") or os.path.join(home, "strobe"))


def make_cache_folder(name: str = "") -> str:
    """Make the folder, and one of this name in it, where they are not there; return its path. Raises OSError."""
    folder = cache_folder()
    os.makedirs(folder, folder_mode(), exist_ok=True)
    if name:
        folder = os.path.join(folder, name)
        os.makedirs(folder, folder_mode(), exist_ok=True)
    return folder
