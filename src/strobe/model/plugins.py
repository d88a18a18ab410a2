"""How plug-ins describe themselves: Analysis, Rule, Format; and the Finding that rules yield."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Format:
    """Files of another tool. The file `formats/NAME.py` holds it.

    `sniff(head)` recognises a file by its first bytes, never by its name; `write(trace, path)` exports, where the
    format can be written.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    write: Callable[..., None] | None = None
