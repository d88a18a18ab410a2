"""The descriptions of plug-ins (Analysis, Rule, Format), and Finding, which rules yield."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, Protocol, TypedDict

from strobe.model.columns import GIVEN
from strobe.model.option import Option
from strobe.model.schema import Column


@dataclass(frozen=True)
class Analysis:
    """A question to a trace: a verb, a method of Trace, and a route of the server.

    The file `analyses/SUBJECT/NAME.py` (`module`, its `__name__`) holds it, and imports nothing that computes: that is
    in `answers/SUBJECT/NAME.py`. `needs` are keys of `model.kinds.RECORDED_WITH`: what must have been recorded, so that
    an empty answer can name the option that would have recorded it. A name in `columns` may end in `*`: then the trace
    decides which such columns there are. `raises` completes "UsageError where ...". `shows` is the number of rows a
    terminal shows unless asked for more.
    """

    module: str
    question: str
    columns: tuple[Column, ...]
    needs: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    raises: tuple[str, ...] = ()
    shows: int = 20

    @property
    def name(self) -> str:
        """The name of the verb and of the method."""
        return self.module.rpartition(".")[2]

    @property
    def details(self) -> str:
        """How the columns are computed: the docstring of the file."""
        return sys.modules[self.module].__doc__ or ""

    @property
    def run(self) -> str:
        """The function that computes the answer: it takes a trace and every option, and returns a Table."""
        return f"{self.module.replace('.analyses.', '.answers.', 1)}:run"

    def columns_with(self, **options: object) -> tuple[Column, ...]:
        """Return the columns of the answer to these options; one that is left out has its default."""
        values = {option.name: option.default for option in self.options} | options
        return tuple(
            column
            for column in self.columns
            if all(values[name] in allowed or (allowed == (GIVEN,) and values[name]) for name, allowed in column.when)
        )


class Evidence(TypedDict):
    """A place that shows a finding: when, on which location where it is about one, and in words."""

    start_ns: int
    duration_ns: int
    location: NotRequired[int | None]
    text: NotRequired[str | None]


@dataclass(frozen=True)
class Finding:
    """One thing worth fixing (or knowing): its cost, its place, what to do, and the confidence.

    `gain_low_ns` and `gain_high_ns` bound what one step would save, in nanoseconds. An `informative` finding promises
    no gain. `evidence` are places to look.
    """

    rule: str
    what: str
    do: str = ""
    where: str = ""
    gain_low_ns: int = 0
    gain_high_ns: int = 0
    confidence: str = "medium"  # high, medium, low
    informative: bool = False
    evidence: tuple[Evidence, ...] = field(default=())


@dataclass(frozen=True)
class Below:
    """What a rule measured: a share of the steps, 0 to 1, that is below the `least` for a finding."""

    share: float
    least: float


@dataclass(frozen=True)
class Rule:
    """One kind of advice. The file `advice/NAME.py` holds it; `run(trace)` yields findings.

    A rule that has one main figure yields it as `Below` where it is too small for a finding. of_waits: its gains are
    waits that go, and no gain is longer than the wait that it comes from.
    """

    id: str
    title: str
    run: Callable[..., Iterable[Finding | Below]]
    needs: tuple[str, ...] = ()
    of_waits: bool = False


class ImportSource(Protocol):
    """One file of another tool, already unpacked: in practice `strobe.formats.reading.inputs.Input`."""

    name: str

    def chunks(self) -> Iterable[bytes]:
        """Return the bytes of the file, in pieces."""

    @property
    def tick(self) -> Callable[[int], bool]:
        """Report the number of bytes read, if `chunks` is not used; returns whether to continue."""

    def local_path(self) -> Path:
        """Return a file with these bytes, for libraries that need one: the file itself if it is not compressed."""

    def beside(self, name: str) -> ImportSource | None:
        """Return the file of this name in the same folder (or archive), or below it; None if there is none.

        Raises ValueError if the name leads out of the folder. If such a file changes, the import is repeated.
        """

    @property
    def around(self) -> Callable[[str], list[str]]:
        """Return the names of files that match a pattern, seen from the folder of the file."""


class ImportTarget(Protocol):
    """The target of an import: in practice `strobe.api.imports.Target`."""

    def next_number(self) -> int:
        """Return the number of the next block file, process-NUMBER.blocks, in `folder`."""

    @property
    def folder(self) -> Path:
        """The new folder."""

    @property
    def buffer_bytes(self) -> int:
        """Bytes of spans that may wait in memory."""


@dataclass(frozen=True)
class Imported:
    """The result of reading a file.

    `processes` is the number of block files written, `base_ns` the unix time of the zero of the clock, None if unknown.
    `rank` and `ranks` are those of the file, `properties` its metadata, and `counters` the errors of the whole file.
    """

    processes: int
    first_ns: int
    last_ns: int
    base_ns: int | None = None
    rank: int | None = None
    ranks: int | None = None
    host: str = ""
    properties: Mapping[str, object] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """Files of another tool. The file `formats/NAME.py` holds it.

    `sniff(head)` recognises a file by its first bytes (unpacked), never by its name; `read(source, target)` imports
    it; `write(trace, path, **options)` exports, location after location, and may return sentences about what the
    file cannot hold. Either may be missing. `read` raises ValueError with a sentence where a file is not what its first
    bytes promised; what is sound before a damaged place is kept, and counted. With `whole_folder`, the file that
    `sniff` knows stands for its folder: other files there are its own, and not looked at by themselves. `options` are
    those of `write`; what is exported gets the first of `suffixes` where the user names no file.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool] = lambda _: False
    read: Callable[[ImportSource, ImportTarget], Imported] | None = None
    write: Callable[..., Sequence[str] | None] | None = None
    whole_folder: bool = False
    options: tuple[Option, ...] = ()
