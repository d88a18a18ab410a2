"""Which runs an agent may ask about: those in the folders that were named, and nothing outside of these."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Sequence
from pathlib import Path

from strobe.api import imports
from strobe.api.trace import open_trace
from strobe.errors import StrobeError, TraceError, UsageError
from strobe.server.recent import Recent
from strobe.server.trace_context import TraceContext, state_of
from strobe.trace import archive

_MOST_OPEN = 8
# Files of a folder that are looked into: whether they are of another tool.
_MOST_READ = 200


class Runs:
    """Runs by name: `last`, or a path from one of the folders. Each is open while it does not change on disk."""

    def __init__(self, places: Sequence[str]) -> None:
        """Raises TraceError where one of the folders or traces does not exist."""
        self.places = [archive.find(place).resolve() for place in places]
        self._open = Recent[TraceContext](_MOST_OPEN)
        self._opening = threading.Lock()

    def find(self, name: str) -> Path:
        """Return the path of a run. Raises UsageError where it is outside of the folders, TraceError where none is."""
        missing = StrobeError("")
        for place in self.places:
            try:
                path = self._find(place, name)
            except StrobeError as error:
                missing = error
                continue
            if path is not None:
                return path
        if missing.what:
            raise TraceError(missing.what, do="The tool `runs` lists those that there are.")
        places = ", ".join(map(str, self.places))
        raise UsageError(f"'{name}' is outside of what this server may read", do=f"It reads: {places}")

    def _find(self, place: Path, name: str) -> Path | None:
        """Return the path of a run, as seen from one of the folders; None where that is outside. Raises StrobeError."""
        is_last = name.partition("~")[0] == "last"
        if not _is_folder(place) and (is_last or name in (place.name, place.name.removesuffix(archive.SUFFIX))):
            return place
        if not is_last:
            if not name.isprintable():
                raise UsageError(f"'{name}' is not a path")
            path = ((place if _is_folder(place) else place.parent) / name).resolve()
            if not self._is_allowed(path):
                return None
            name = str(path)
        found = archive.find(name, place)
        return found if self._is_allowed(found.resolve()) else None

    def _is_allowed(self, path: Path) -> bool:
        return any(path.is_relative_to(place) for place in self.places)

    def open(self, name: str) -> TraceContext:
        """Return a run that can be asked. Raises StrobeError where there is none, or it is broken."""
        path = self.find(name)
        with self._opening:  # one at a time: two calls must not import the same file
            key = path.resolve(), state_of(path)
            context = self._open.get(key)
            if context is None:
                # No pool of processes: none is to be left when the client leaves.
                context = TraceContext(open_trace(path, jobs=1), path, self.name_of(path))
                context.warm()
                self._open.put((path.resolve(), state_of(path)), context)
        return context

    def name_of(self, path: Path) -> str:
        """Return the name by which `find` finds a path."""
        path, place = path.resolve(), self.places[0]
        if len(self.places) > 1:
            return str(path)
        return path.name if path == place and not _is_folder(place) else path.relative_to(place).as_posix()

    def listed(self, folder: str) -> list[tuple[str, str, str]]:
        """Return name, kind, and command or reason, of what is in a folder (default: all that were named).

        Recorded runs come first, the newest first; then files of other tools, then folders.
        """
        found = list[tuple[str, str, str]]()
        for place in [self.find(folder)] if folder else self.places:
            if not _is_folder(place):
                found.append((self.name_of(place), *_described(place)))
                continue
            runs = [path for path in archive.runs(place) if self._is_allowed(path.resolve())]
            others = sorted(path for path in place.iterdir() if path not in runs and not path.name.startswith("."))
            found += [(self.name_of(path), *_described(path)) for path in runs]
            files = [path for path in others if path.is_file() and self._is_allowed(path.resolve())]
            found += [(self.name_of(path), *_described(path)) for path in files[:_MOST_READ] if imports.knows(path)]
            folders = (path for path in others if path.is_dir() and self._is_allowed(path.resolve()))
            found += [(self.name_of(path), "folder", "") for path in folders]
        return found


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not archive.is_trace(path)


def _described(path: Path) -> tuple[str, str]:
    if not archive.is_trace(path):
        return "file of another tool", ""
    try:
        job = archive.read_job(path)
    except StrobeError as error:
        return "broken", error.what
    started = ""
    if job.started_unix_ns > 0:
        started = f"{datetime.datetime.fromtimestamp(job.started_unix_ns // 10**9, datetime.UTC):%Y-%m-%d %H:%M} UTC "
    return "run", f"{started}{archive.source_of(job) or ' '.join(job.command)}"
