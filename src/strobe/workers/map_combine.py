"""Map and combine: a question about a trace as a function of one process, and a rule that combines the answers.

The same two functions run in one loop, in a pool of processes, and on a cluster, so all three answer the same, to the
last bit. Each worker opens only its own files, so ids are local to a process. The regions and call paths of the ids
travel with an answer. Combined answers have one numbering, by first occurrence in the order of processes: the trace's.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from strobe.errors import TraceError
from strobe.model.cancellation import pieces
from strobe.tables.lazy_pyarrow import pa
from strobe.trace.archive import Job, ProcessFiles
from strobe.trace.clocks import node_clocks
from strobe.trace.definitions import Definitions, Ids, Numbering, Union, alike_definitions
from strobe.trace.processes.process_part import PartReader
from strobe.trace.processes.process_reader import NO_REGION, open_process
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import KnownResult, cached_on_trace

Value = TypeVar("Value")


class Rule(Protocol):
    """How answers are combined."""

    def renumbered(self, value: Any, ids: Ids) -> Any:
        """Return an answer with the ids of the whole."""

    def combined(self, values: Sequence[Any]) -> Any:
        """Return one answer for several, which are in order of processes. Must be associative, to the last bit."""


@dataclass(frozen=True)
class MapCombine(Generic[Value]):
    """A question about all processes.

    `map(part, **options)` is a function of a module (other computers find it by its name) from a Trace of one process
    to something small. Its options must be what pickle takes. `several`: it takes parts of several processes, too,
    which have the same regions and call paths, and are together what they are alone: that is much faster for many.
    """

    map: Callable[..., Value]
    rule: Rule
    several: bool = False


@dataclass(frozen=True)
class Join:
    """How rows of a table are joined: those with equal `keys` become one, in the order in which keys first occur.

    Other columns are summed up (whole numbers only: sums of reals depend on their order); those in `least` and `most`
    keep the smallest or largest value. Without keys, rows are listed one after the other.
    """

    keys: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tables:
    """The rule for answers that are tables by name. Columns `region`, `call_path`, `process`, `location` are ids."""

    joins: Mapping[str, Join]

    def renumbered(self, value: Mapping[str, pa.Table], ids: Ids) -> Mapping[str, pa.Table]:
        """Return the tables with the ids of the whole."""
        return {name: _renumbered(table, ids) for name, table in value.items()}

    def combined(self, values: Sequence[Mapping[str, pa.Table]]) -> Mapping[str, pa.Table]:
        """Return the tables with the rows of all."""
        return {
            name: _joined(pa.concat_tables([value[name] for value in values]), join)
            for name, join in self.joins.items()
        }


@dataclass(frozen=True)
class PerProcess:
    """The rule for answers that are lists of dataclasses, each about one `process`."""

    def renumbered(self, value: Sequence[Any], ids: Ids) -> list[Any]:
        """Return the list with the numbers of the processes in the whole."""
        return [replace(each, process=each.process + ids.process) for each in value]

    def combined(self, values: Sequence[Sequence[Any]]) -> list[Any]:
        """Return all lists as one."""
        return [each for value in values for each in value]


class Listed:
    """The rule for answers that are rows of a table: they are listed one after the other. Ids are those of `Tables`."""

    def renumbered(self, value: pa.Table, ids: Ids) -> pa.Table:
        """Return the rows with the ids of the whole."""
        return _renumbered(value, ids)

    def combined(self, values: Sequence[pa.Table]) -> pa.Table:
        """Return the rows of all."""
        return pa.concat_tables(values)


@runtime_checkable
class OfProcess(Protocol):
    """An option with a value for each process."""

    def of_process(self, process: int) -> object:
        """Return the value for a process, which is number 0 for the worker."""


# By process, results that it need not compute.
Known = Callable[[int], Sequence[KnownResult]]


@dataclass(frozen=True)
class Partial:
    """The answer of some processes."""

    rule: Rule
    value: Any
    numbering: Numbering


@dataclass(frozen=True)
class Task:
    """A question about some processes, with everything that a worker on the same disk needs to answer it.

    `options` and `known` are by process.
    """

    question: MapCombine[Any]
    folder: Path
    job: Job
    files: tuple[ProcessFiles, ...]
    options: tuple[Mapping[str, object], ...]
    known: tuple[Sequence[KnownResult], ...]

    def run(self) -> Partial:
        """Open the files, and answer."""
        need_folder(self.folder)
        partials = []
        for files, options, known in zip(self.files, self.options, self.known, strict=True):
            reader = open_process(files)
            node_clocks.use_noted_clock(reader, self.job.processes.get(files.blocks.stem, {}))
            part = Trace(self.folder, self.job, [reader], [files])
            partials.append(
                Partial(self.question.rule, _ask(part, self.question, options, known), numbering(part.definitions, 1))
            )
        return combined(partials)


def need_folder(folder: Path) -> None:
    """Raise TraceError if a worker cannot see the trace."""
    if not folder.is_dir():
        raise TraceError(
            f"the worker on {socket.gethostname()} cannot read '{folder}'",
            do="The trace must lie on a disk that all workers share, under the same path.",
        )


class Runs(Protocol):
    """Work for a worker."""

    def run(self) -> Partial:
        """Do it."""


@runtime_checkable
class Workers(Protocol):
    """Workers that answer questions about many processes.

    threads: the number of threads to use here for native work, 0 if this process should not read the files.
    """

    threads: int

    def wanted(self, trace: Trace) -> bool:
        """Return whether they are worth their cost for this trace."""

    def parts(self, spans: Sequence[int]) -> list[range]:
        """Cut processes, with so many spans each, into consecutive parts."""

    def answer(self, tasks: Sequence[Runs]) -> Partial:
        """Run all tasks, and combine what they return in their order."""

    def close(self) -> None:
        """Release what they hold."""


def over_processes(
    trace: Trace, question: MapCombine[Value], *, known: Known | None = None, **options: object
) -> Value:
    """Let the workers of a trace, if it has some, answer a question about every process. Ids are those of the trace.

    `known` are results for parts; the trace itself must have them already. Raises TraceError if the trace has changed
    since it was opened.
    """
    processes = range(len(trace.readers))
    if len(processes) == 1:
        return question.map(trace, **{name: _of(value, 0) for name, value in options.items()})
    workers = trace.workers
    if not isinstance(workers, Workers) or not _files_are_all(trace) or not workers.wanted(trace):
        return _in_one_loop(trace, question, known, options)
    found = ask_all(trace, workers, question, trace.spans_of_processes, known, options)
    if found.numbering.locations != len(trace.locations) or len(found.numbering.regions) != len(trace.regions):
        raise TraceError(f"'{trace.path}' changes while it is read", do="Ask again when the run is over.")
    value: Value = found.value
    return value


def rows_of_processes(
    trace: Trace, function: Callable[..., pa.Table], *, known: Known | None = None, **options: object
) -> pa.Table:
    """Return the rows that a function lists of every process: see `over_processes`."""
    return over_processes(trace, MapCombine(function, Listed()), known=known, **options)


def ask_all(
    trace: Trace,
    workers: Workers,
    question: MapCombine[Any],
    spans: Sequence[int],
    known: Known | None = None,
    options: Mapping[str, object] | None = None,
) -> Partial:
    """Let workers answer a question about every process; `spans` is the number of spans of each."""
    return workers.answer([_task(trace, question, part, known, options or {}) for part in workers.parts(spans)])


def _in_one_loop(
    trace: Trace, question: MapCombine[Value], known: Known | None, options: Mapping[str, object]
) -> Value:
    values = []
    together = question.several and not options and not known
    parts = _alike(trace) if together else [range(at, at + 1) for at in range(len(trace.readers))]
    spans = trace.spans_of_processes
    for processes in pieces(parts, [1 + sum(spans[at] for at in processes) for processes in parts]):
        part, ids = _part(trace, processes)
        own = {name: _of(value, processes[0]) for name, value in options.items()}
        value = _ask(part, question, own, known(processes[0]) if known else ())
        values.append(question.rule.renumbered(value, ids))
    combined_value: Value = question.rule.combined(values)
    return combined_value


@cached_on_trace
def _alike(trace: Trace) -> list[range]:
    """Cut the processes into stretches of neighbours that have the same regions and call paths, by their own ids."""
    maps = zip(trace.definitions.region_maps, trace.definitions.path_maps, trace.readers, strict=True)
    same = [(regions.tobytes(), paths.tobytes(), reader.source_loops()) for regions, paths, reader in maps]
    begins = [at for at in range(len(same)) if not at or same[at] != same[at - 1]]
    return [range(*ends) for ends in pairwise([*begins, len(same)])]


@cached_on_trace
def _part(trace: Trace, processes: range) -> tuple[Trace, Ids]:
    """Return processes that are alike as a trace of their own, and their ids in the whole: those of the first one."""
    process, those = processes[0], slice(processes.start, processes.stop)
    readers, job = trace.readers[those], replace(trace.job, zero_ns=trace.zero_ns)
    part = Trace(trace.path, job, readers, trace.files[those], define=lambda _: alike_definitions(readers))
    whole, own = trace.definitions, part.definitions
    region = np.zeros(len(own.regions), dtype=np.uint32)
    call_path = np.zeros(len(own.path_region), dtype=np.uint32)
    there = own.region_maps[0] != NO_REGION
    region[own.region_maps[0][there]] = whole.region_maps[process][there]
    call_path[own.path_maps[0]] = whole.path_maps[process]
    before = next((at for at, home in enumerate(whole.homes) if home.process == process), 0)
    return part, Ids(region, call_path, process, before)


def _ask(
    part: Trace, question: MapCombine[Value], options: Mapping[str, object], known: Sequence[KnownResult]
) -> Value:
    for result in known:
        result.give_to(part)
    return question.map(part, **options)


def _task(
    trace: Trace, question: MapCombine[Any], part: range, known: Known | None, options: Mapping[str, object]
) -> Task:
    files = tuple(trace.files[process] for process in part)
    notes = {
        stem: trace.job.processes[stem] for stem in (each.blocks.stem for each in files) if stem in trace.job.processes
    }
    job = replace(trace.job, zero_ns=trace.zero_ns, processes=notes, imported={}, settings={})
    own = tuple({name: _of(value, process) for name, value in options.items()} for process in part)
    results = tuple(known(process) if known else () for process in part)
    return Task(question, trace.path.absolute(), job, files, own, results)


def _of(value: object, process: int) -> object:
    return value.of_process(process) if isinstance(value, OfProcess) else value


def combined(partials: Sequence[Partial]) -> Partial:
    """Return one answer for several, with one numbering of ids."""
    if len(partials) == 1:
        return partials[0]
    union, rule = Union(), partials[0].rule
    values = [rule.renumbered(each.value, union.add(each.numbering)) for each in partials]
    return Partial(rule, rule.combined(values), union.whole)


def numbering(definitions: Definitions, processes: int) -> Numbering:
    """Return the meaning of the ids of so many processes."""
    return Numbering(
        [row[1:] for row in definitions.regions],
        np.array(definitions.path_parent, dtype=np.uint32),
        np.array(definitions.path_region, dtype=np.uint32),
        processes,
        len(definitions.homes),
    )


def balanced(spans: Sequence[int], parts: int, most: int) -> list[range]:
    """Cut processes into at least `parts` stretches (if there are so many) of about equal work, at most `most` long."""
    # A process without spans takes time to open.
    work = np.cumsum([each + 1000 for each in spans])
    share = work[-1] / max(1, parts)
    cuts, begin = [], 0
    for process in range(len(spans)):
        done = int(work[begin - 1]) if begin else 0
        if process + 1 == len(spans) or process + 1 - begin >= most or work[process] - done >= share * (1 - 1e-9):
            cuts.append(range(begin, process + 1))
            begin = process + 1
    return cuts


def _files_are_all(trace: Trace) -> bool:
    """Whether the trace has all that its files hold; a part of a process does not."""
    return len(trace.files) == len(trace.readers) > 1 and not any(
        isinstance(reader, PartReader) for reader in trace.readers
    )


def _renumbered(table: pa.Table, ids: Ids) -> pa.Table:
    import pyarrow.compute as pc  # 13 MB, which most commands do not need

    ids_of = {"region": ids.region, "call_path": ids.call_path, "process": ids.process, "location": ids.location}
    for at, field in enumerate(table.schema):
        if field.name in ids_of:
            column, new = table.column(at), ids_of[field.name]
            moved = pc.add(column, new) if isinstance(new, int) else pc.take(pa.array(new), column)
            table = table.set_column(at, field, moved.cast(field.type))
    return table


def _joined(table: pa.Table, join: Join) -> pa.Table:
    if not join.keys:
        return table
    others = [name for name in table.column_names if name not in join.keys]
    how = [(name, "min" if name in join.least else "max" if name in join.most else "sum") for name in others]
    table = table.unify_dictionaries()
    # In one thread, rows are in the order in which their keys were first met.
    found = table.group_by(list(join.keys), use_threads=False).aggregate(how)
    names = {f"{name}_{function}": name for name, function in how}
    found = found.rename_columns([names.get(name, name) for name in found.column_names])
    return found.select(table.column_names).cast(table.schema)
