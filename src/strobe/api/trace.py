"""Trace as a user has it: the recorded run, every analysis as a method, SQL, parts, exports, and Jupyter's card."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from strobe.answers import ask
from strobe.api import exports
from strobe.api.analyses import Analyses
from strobe.api.parts import part_of
from strobe.tables.table import Table
from strobe.trace import archive, trace
from strobe.workers import choose_workers

if TYPE_CHECKING:
    from strobe.present.drawn_structure import DrawnStructure
    from strobe.steps.iteration_stack.stack import Stack

# What a summary does not need is imported where it is used: `strobe run` prints one after each run.


def _table_card(table: Table) -> str:
    from strobe.present.notebook import table_card

    return table_card(table)


Table.card = _table_card


class Trace(trace.Trace, Analyses):
    """One recorded run. Reading is lazy: opening reads definitions, spans are read when a question needs them.

    Every analysis is a method, `trace.operators(by="name")`; `help(trace.operators)` has its options and columns.
    Use as a context manager, or just drop it.
    """

    def ask(self, name: str, **options: object) -> Table:
        """Run an analysis by name. `trace.NAME(**options)` is the same. Another trace may be one, or its path."""
        if isinstance(other := options.get("other"), str):
            options["other"] = open_trace(other)
        return ask.ask(self, name, **options)

    def sql(self, text: str, *, timeout_s: float | None = None) -> Table:
        """Answer one SELECT. Tables: those of model/schema.py, and every analysis by its name."""
        from strobe.answers import sql

        return sql.query(self, text, timeout_s=timeout_s)

    def stack(self, metric: str = "duration", *, process: int | None = None, class_name: str | None = None) -> Stack:
        """Return the iteration stack: steps x positions, by `duration` or by the `gap` before each position."""
        from strobe.steps.iteration_stack.stack import build_stack

        return build_stack(self, metric, process=process, class_name=class_name)

    def structure(
        self,
        process: int | None = None,
        stream: str = "auto",
        *,
        step_level: str | None = None,
        step_at: str | None = None,
    ) -> DrawnStructure:
        """Return the loops of a process: the nest, which of them is the step and why, the flow graph.

        `stream`: look at `calls`, `operators`, `kernels`, or `mpi` alone. A step is an iteration of the loop
        `step_level` (`+1`, `-1`, its name), or begins at each event named `step_at`.
        """
        from strobe.present.drawn_structure import drawn_structure

        return drawn_structure(self, process, stream, step_level=step_level, step_at=step_at)

    def op_analyse(self, op_name: str | Sequence[str], device_id: int | None = None) -> str:
        """Return what operators of a type (or name) cost by shapes of their inputs: JSON with MindSpore's keys.

        See `strobe.compat.op_analyse`. `op_analyze` is the same.
        """
        from strobe.compat.op_analyse import op_analyse

        return op_analyse(self, op_name, device_id)

    op_analyze = op_analyse

    def part(
        self,
        *,
        ranks: tuple[int, int] | None = None,
        steps: tuple[int, int] | None = None,
        time_ns: tuple[int, int] | None = None,
    ) -> Trace:
        """Return a part of the run as a trace of its own: of some ranks (and their children), steps, or times.

        Ranges hold both their ends, but for times: [begin, end). Spans that reach beyond end at the edge, and are not
        `complete`. Statistics of folded steps cannot be divided: they are left out of processes that are cut in time.
        Raises UsageError where nothing is in the range.
        """
        return part_of(self, ranks, steps, time_ns)

    def export(self, path: str | os.PathLike[str], to: str = "", **options: object) -> list[str]:
        """Write the run to a file (or folder) of another format; by default the one with the suffix of `path`.

        Returns sentences about what the format cannot hold. Raises UsageError for an unknown format.
        """
        return exports.export(self, Path(path), to, options)

    def cut(self, path: str | os.PathLike[str], *, anonymise: bool = False) -> list[str]:
        """Write the run, or the part of it that this is, as a trace folder; return sentences about what that lacks.

        `anonymise` replaces names, paths, hosts, command lines and texts by pseudonyms (`trace/derived/anonymise.py`).
        """
        from strobe.trace.derived.cut import cut

        return cut(self, Path(path), anonymise=anonymise)

    def _repr_html_(self) -> str:
        from strobe.present.notebook import trace_card

        return trace_card(self)


def open_trace(
    path: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    scheduler: str = "",
    cluster: str = "",
    cluster_options: Mapping[str, str | int] | None = None,
) -> Trace:
    """Open a trace: a path, or a name of a run (`last`, `last~2`). Raises TraceError with one sentence otherwise.

    A process whose file cannot be read is left out, and the quality table has the reason; it is an error only if no
    process can be read.

    The other arguments choose the workers that answer questions to all processes. jobs: processes on this computer, 1
    for none; by default one per CPU, for questions to large traces. scheduler: address of a Dask scheduler whose
    workers can read the files. cluster: `slurm` starts a Dask cluster of `jobs` jobs, with `cluster_options` (queue,
    cores, memory, ...) for dask-jobqueue. Workers end with the trace (`with strobe.open(...) as trace`) or the program.
    """
    folder = archive.find(path)
    if not archive.is_trace(folder):
        from strobe.api import imports

        folder = imports.opened(folder)
    workers = choose_workers.hire(jobs, scheduler, cluster, cluster_options or {})
    if scheduler or cluster:
        from strobe.workers import remote_processes

        return remote_processes.open_remote(Trace, folder, workers)
    return Trace.read(folder, workers)


def last(n: int = 0) -> Trace:
    """Open the newest run in this folder, or with `n` the one n runs before it."""
    return open_trace(f"last~{n}")
