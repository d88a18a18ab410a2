"""The address under which traces were shown last: a page that is still open, or a bookmark, finds them again."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from strobe.model.cache_folder import cache_folder, make_cache_folder
from strobe.server.http.access_control import new_token

_MOST = 100  # addresses


class LastAddress:
    """Port (0 where none is known) and token of some traces, kept in a file that only the user can read; of no traces,
    a new token that is not kept.
    """

    def __init__(self, traces: Iterable[Path]) -> None:
        self._key = "\n".join(sorted(os.fspath(each.absolute()) for each in traces))
        known = _read().get(self._key)
        self.port, self.token = known or (0, new_token())

    def keep(self, port: int) -> None:
        """Write the port and the token down; do nothing where that cannot be."""
        if not self._key:
            return
        known = _read()
        known.pop(self._key, None)
        known[self._key] = (port, self.token)
        path = _path()
        made = path.with_name(f"{path.name}-{os.getpid()}")
        with suppress(OSError):
            make_cache_folder()
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump(dict(list(known.items())[-_MOST:]), file)
            made.replace(path)


def _path() -> Path:
    return Path(cache_folder()) / "views.json"


def _read() -> dict[str, tuple[int, str]]:
    """Return what is known. A file of somebody else, or one that others can read, is not believed."""
    try:
        with _path().open(encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
                return {}
            return {str(key): (int(port), str(token)) for key, (port, token) in json.load(file).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
