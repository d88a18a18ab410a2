"""Answers that took long, kept in the user's cache for whoever opens the same trace again."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import strobe
from strobe.model.cache_folder import make_cache_folder

LONG_S = 1.0  # what takes longer is worth keeping
MOST_BYTES = 1 << 30


class KeptAnswers:
    """Files by a text that holds all that the answer depends on. What cannot be read or written is not kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __contains__(self, key: str) -> bool:
        return self._path(key).is_file()

    def get(self, key: str) -> bytes | None:
        """Return an answer, None where it is not kept."""
        with suppress(OSError):
            os.utime(self._path(key))
            return self._path(key).read_bytes()
        return None

    def put(self, key: str, answer: bytes) -> None:
        """Keep an answer, and remove those that were not used for longest where all are too large together."""
        with suppress(OSError):
            make_cache_folder(self._folder.name)
            path = self._path(key)
            work = path.with_suffix(f".{os.getpid()}")
            work.write_bytes(answer)
            work.replace(path)
            states = sorted((each.stat().st_mtime, each.stat().st_size, each) for each in self._folder.iterdir())
            total = sum(size for _, size, _ in states)
            for _, size, each in states:
                if total > MOST_BYTES:
                    each.unlink()
                    total -= size

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(f"{_build()}|{key}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


@cache
def _build() -> str:
    """Return a text that changes with the code that answers, also in a developer's tree."""
    code = (path for folder in strobe.__path__ for kind in ("*.py", "*.so") for path in Path(folder).rglob(kind))
    return f"{strobe.__version__}|{max((path.stat().st_mtime_ns for path in code), default=0)}"
