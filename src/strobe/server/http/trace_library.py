"""The traces that a server shows. Each is opened when somebody looks at it; one that is broken keeps to itself."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from strobe.api.trace import Trace
from strobe.errors import StrobeError, TraceError, UsageError
from strobe.present.summary import written_summary
from strobe.server.recent import Recent
from strobe.server.trace_context import TraceContext
from strobe.trace import archive
from strobe.trace.user_notes import notes_file, read_notes

# Traces that are held open at once: one that nobody looked at for longest is closed, and opened again when asked for.
_MOST_OPEN = 8
_SHOWN_COMMAND = 160


class RunSummary(TypedDict):
    """What a list of runs has of a summary: see `strobe.present.summary`."""

    kind: str
    verdict: str
    duration_ns: int
    processes: int
    gpus: int
    state: list[str]
    complete: bool
    step_ns: int | None
    strip_ns: list[int]


class RunRow(TypedDict):
    """A run in a list: `summary` is missing until somebody summed it up, `error` is why it cannot be opened, or ""."""

    name: str
    error: str
    file: str
    command: str
    host: str
    started_unix_ns: int
    size_bytes: int
    labels: list[str]
    summary: NotRequired[RunSummary]


@dataclass(frozen=True)
class Source:
    """A trace that can be opened. `open` raises StrobeError with a sentence where it cannot."""

    path: Path
    open: Callable[[], Trace]


class Library:
    """The traces of a server by the names in their addresses."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources: dict[str, Source] = {}
        for source in sources:
            self._sources[self._free_name(source.path)] = source
        self._open = Recent[TraceContext](_MOST_OPEN)
        self._opened = set[str]()  # some time

    @property
    def names(self) -> list[str]:
        """Their names, in the order in which they were given."""
        return list(self._sources)

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def path(self, name: str) -> Path:
        """Return the path of a trace, as it was given."""
        return self._sources[name].path

    def opened(self, name: str) -> TraceContext | None:
        """Return a trace that is open already."""
        return self._open.get(name)

    def open(self, name: str) -> TraceContext:
        """Open a trace, and read what its first picture needs. Raises StrobeError where it is broken."""
        source = self._sources[name]
        # A run that is being recorded is opened again and again: what that leaves behind has to go.
        with _nothing_collected() if name not in self._opened else nullcontext():
            context = TraceContext(source.open(), source.path, name, self._trace)
            context.warm()
        self._open.put(name, context)
        self._opened.add(name)
        return context

    def add(self, source: Source, name: str) -> str:
        """Show another trace, by the name of a file; returns its name here: the same one for the same trace."""
        known = (each for each, one in self._sources.items() if one.path == source.path)
        if (found := next(known, None)) is not None:
            return found
        found = self._free_name(Path(name))
        self._sources[found] = source
        return found

    def runs(self) -> list[RunRow]:
        """Return what is known of each trace without opening it."""
        return [self._row(name) for name in self._sources]

    def summarised(self, name: str) -> RunRow:
        """Return what is known of a trace once it was opened and summed up."""
        try:
            context = self.opened(name) or self.open(name)
            return self._row(name, context.summary_json)
        except StrobeError as error:
            return self._row(name) | {"error": str(error)}

    def _row(self, name: str, summary: str = "") -> RunRow:
        path = self._sources[name].path
        context = self.opened(name)
        labels = list[str]()
        with suppress(TraceError):  # the page of the run has the reason
            labels = list(read_notes(notes_file(path)).labels)
        row = RunRow(
            name=name, error="", file=path.name, command="", host="", started_unix_ns=0, size_bytes=0, labels=labels
        )
        try:
            if archive.is_trace(path):
                if not archive.process_files(path):
                    return row | {"error": "holds no recorded process"}
                job, summary = archive.read_job(path), summary or written_summary(path)
                row |= {"host": job.host, "started_unix_ns": job.started_unix_ns}
                row |= {"command": " ".join(job.command)[:_SHOWN_COMMAND]}
                row["size_bytes"] = sum(size for _, size, _ in archive.states(path))
            elif path.is_file():
                row["size_bytes"] = path.stat().st_size
            if context is not None:
                summary = summary or written_summary(context.trace.path)
        except (StrobeError, OSError) as error:
            return row | {"error": str(error)}
        return row | {"summary": _brief(json.loads(summary))} if summary else row

    def _trace(self, name: str) -> Trace:
        if name not in self:
            raise UsageError(f"this server shows no run '{name[:_SHOWN_COMMAND]}'", do=f"Runs: {', '.join(self.names)}")
        return (self.opened(name) or self.open(name)).read

    def _free_name(self, path: Path) -> str:
        name = path.name.removesuffix(archive.SUFFIX) or "trace"
        number = 1
        while (free := name if number == 1 else f"{name}-{number}") in self._sources:
            number += 1
        return free


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Leave what is made meanwhile to the last generation of the garbage collector, which looks at it rarely.

    Looking through the objects of 10,000 processes again and again takes as long as to make them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def _brief(summary: Mapping[str, Any]) -> RunSummary:
    step = summary["step"]
    return {
        "kind": summary["verdict"]["kind"],
        "verdict": summary["verdict"]["text"],
        "duration_ns": summary["duration_ns"],
        "processes": summary["process_count"],
        "gpus": len(summary["gpus"]),
        "state": summary["quality"]["state"],
        "complete": summary["quality"]["complete"],
        "step_ns": step and step["median_ns"],
        "strip_ns": step["strip_ns"] if step else [],
    }
