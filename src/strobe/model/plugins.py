"""How plug-ins describe themselves: Analysis, Rule, Format; and the Finding that rules yield."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Answer(Protocol):
    """What an analysis returns: in practice `strobe.store.table.Table`, which this layer may not import."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the columns to any Arrow consumer."""


@dataclass(frozen=True)
class Option:
    """One keyword option of an analysis; the command line and the server make their argument from it.

    With `flags`, each choice is also a flag of the command line: `--tree` for `--form tree`. `also` are shorter names
    of the option there: `--class` for `--step-class`.
    """

    name: str
    help: str
    type: type = str
    default: object = None
    choices: tuple[str, ...] = ()
    flags: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Analysis:
    """A question to a trace. The file `analyses/NAME.py` gives the verb, the method of Trace, and the server's route.

    `run(trace, **options)` returns a Table. `needs` are keys of `model.kinds.RECORDED_WITH`: what must have been
    recorded, so that an empty answer can say which option would have recorded it. `shows` is the number of rows a
    terminal shows unless asked for more.
    """

    name: str
    question: str
    run: Callable[..., Answer]
    needs: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    shows: int = 20


@dataclass(frozen=True)
class Finding:
    """One thing worth fixing (or knowing): what it costs, where, what to do, and how sure we are.

    `gain_low_ns` and `gain_high_ns` bound what one step would save, in nanoseconds. An `informative` finding promises
    no gain. `evidence` are places to look: mappings with `location`, `start_ns`, `duration_ns`, and `text`.
    """

    rule: str
    what: str
    do: str = ""
    where: str = ""
    gain_low_ns: int = 0
    gain_high_ns: int = 0
    confidence: str = "medium"  # high, medium, low
    informative: bool = False
    evidence: tuple[Mapping[str, object], ...] = field(default=())


@dataclass(frozen=True)
class Rule:
    """One kind of advice. The file `advice/NAME.py` holds it; `run(trace)` yields findings."""

    id: str
    title: str
    run: Callable[..., Iterable[Finding]]
    needs: tuple[str, ...] = ()


class ImportSource(Protocol):
    """One file of another tool, already unpacked: in practice `strobe.store.inputs.Input`."""

    name: str

    def chunks(self) -> Iterable[bytes]:
        """Return the bytes of the file, in pieces."""

    @property
    def tick(self) -> Callable[[int], bool]:
        """Tell how many bytes were read, where `chunks` is not used; it says whether to go on."""

    def local_path(self) -> Path:
        """Return a file with these bytes, for libraries that want one: the file itself where it is not compressed."""

    def beside(self, name: str) -> ImportSource | None:
        """Return the file of this name in the same folder (or archive), or below it; None where there is none.

        Raises ValueError where the name leads out of the folder. A change of such a file makes the import anew.
        """


class ImportTarget(Protocol):
    """Where an import goes: in practice `strobe.store.imports.Target`."""

    def next_number(self) -> int:
        """Return the number of the next block file, process-NUMBER.blocks, in `folder`."""

    @property
    def folder(self) -> Path:
        """The folder that is being made."""

    @property
    def buffer_bytes(self) -> int:
        """Bytes of spans that may wait in memory."""


@dataclass(frozen=True)
class Imported:
    """What a format says of a file that it has read.

    `processes`: how many block files were written. `base_ns`: unix time of the zero of its clock, None where unknown.
    `rank`, `ranks`: as the file says. `properties`: what it says about itself beside its events. `counters`: what was
    wrong with the file as a whole.
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
