"""Who waited for whom, how long and in what: wait states of communication, threads and GPUs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from strobe.analyses.ranks.waits import ANALYSIS
from strobe.model.units import format_count, format_ns, format_number_of, format_share
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.waits.gpu_waits import gpu_waits
from strobe.ranks.waits.thread_waits import function_and_callers
from strobe.ranks.waits.wait_columns import STATES, Waits
from strobe.ranks.waits.wait_states import Found, wait_states
from strobe.steps.step_times import step_of_process
from strobe.tables.column_arrays import Ints, alike, rows_by
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import location_rows, path_tree, process_rows, ranks_of, region_rows
from strobe.trace.trace import Trace

_NOTHING = (
    "no message or collective in this trace has both ends, and no thread waited for another one or for a GPU, so that"
    " nobody is known to have waited for another"
)
_KEYS = {
    "state": ("state",),
    "function": ("state", "function"),
    "call": ("state", "function", "call_path"),
    "rank": ("state", "rank"),
    "thread": ("state", "rank", "thread", "awaited_thread"),
    "step": ("state", "step"),
    "pair": ("state", "rank", "awaited_rank"),
    "kernel": ("state", "function", "kernel"),
    "all": ("state", "rank", "thread", "awaited_rank", "awaited_thread", "step", "function", "call_path", "kernel"),
}


def run(trace: Trace, *, by: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.waits`."""
    found = wait_states(trace)
    found = replace(found, waits=Waits.joined([gpu_waits(trace), found.waits]))
    keys = _Keys(trace, found)
    rows = keys.each() if by == "wait" else keys.sums(_KEYS[by])
    about = f"{format_count(found.messages)} messages, {format_count(found.collectives)} collectives"
    about += f", {format_number_of(found.epochs, 'epoch')} of one-sided communication" * (found.epochs > 0)
    lasted_ns = sum(row.ended_ns - row.started_ns for row in process_rows(trace) if row.rank is not None)
    note = note_of(trace, found, lasted_ns)
    table = make_table(ANALYSIS.columns_with(by=by), rows, about=about, note=note)
    return table.sort("wait_ns")


class _Keys:
    """What waits are grouped by: numbers of the same length as the waits, and how each number is shown."""

    def __init__(self, trace: Trace, found: Found) -> None:
        self._trace, self.waits = trace, found.waits
        waits = found.waits
        process = np.array([row.process for row in location_rows(trace)], dtype=np.int64)
        self.process = process[waits.location] if len(process) else waits.location
        self.ranks = ranks_of(trace)
        regions = np.append(np.array(trace.definitions.path_region, dtype=np.int64), -1)
        region = regions[waits.call_path]
        self._regions = region_rows(trace)
        # Waits of threads are the last ones, and may stand for several.
        threads, others = found.threads.waits, len(waits) - len(found.threads.waits)
        self._stacks = [function_and_callers(each) for each in found.threads.call_stacks]
        stack = np.append(np.full(others, -1), threads.call_stack)
        self.count = np.append(np.ones(others, dtype=np.int64), threads.waits)
        self.max_ns = np.append(waits.wait_ns[:others], threads.max_ns)
        names = [*(row.name for row in self._regions), *(function for function, _ in self._stacks), ""]
        named = np.where(stack >= 0, len(self._regions) + stack, np.where(region < 0, len(names) - 1, region))
        self._stack = stack
        self.numbers = {
            "state": waits.state,
            "rank": self.process,
            "awaited_rank": np.where(waits.for_another, process[waits.cause], -1) if len(process) else waits.cause,
            "function": np.unique(names, return_inverse=True)[1][named],
            "call_path": np.where(stack >= 0, len(regions) + stack, waits.call_path),
            "thread": waits.location,
            "awaited_thread": np.where(waits.for_another & (waits.cause != waits.location), waits.cause, -1),
            "kernel": waits.kernel,
        }
        self.certain = ~waits.uncertain

    def _steps(self) -> Ints:
        out = np.full(len(self.waits), -1, dtype=np.int64)
        for process, own in rows_by(self.process):
            out[own] = step_of_process(self._trace, process, self.waits.call_ns[own])
        return out

    def shown(self, key: str, at: int) -> object:
        """Return the cell of a key in the row of a wait."""
        number = int(self.numbers[key][at])
        if key == "state":
            return STATES[number]
        if key in ("rank", "awaited_rank"):
            return self.ranks[number] if number >= 0 else None
        if key in ("thread", "awaited_thread"):
            return location_rows(self._trace)[number].name if number >= 0 else None
        if key == "step":
            return number if number >= 0 else None
        if key == "kernel":
            return self._regions[number].name if number >= 0 else None
        path, stack = int(self.waits.call_path[at]), int(self._stack[at])
        if stack >= 0:
            function, callers = self._stacks[stack]
            return function if key == "function" or not callers else f"{function} < {callers}"
        if path < 0:
            return None
        return self._function(path) if key == "function" else call_path_text(self._trace, path)

    def _place(self, path: int) -> str | None:
        """Return file and line of the innermost function of Python in a call path, None if it has none."""
        parents, of_path = path_tree(self._trace)
        while path >= 0 and (region := self._regions[of_path[path]]).paradigm != "python":
            path = int(parents[path])
        return f"{region.file}:{region.line}" if path >= 0 and region.file else None

    def _function(self, path: int) -> str:
        return str(self._regions[self._trace.definitions.path_region[path]].name)

    def sums(self, keys: tuple[str, ...]) -> list[dict[str, object]]:
        """Return a row for each combination of the keys."""
        waits = self.waits
        if not len(waits):
            return []
        if "step" in keys:
            self.numbers["step"] = self._steps()
        _, group = alike([self.numbers[key] for key in keys])
        order = np.lexsort((-waits.wait_ns, group))
        begin = np.flatnonzero(np.diff(group[order], prepend=-1))

        def summed(of: Ints) -> list[int]:
            found: list[int] = np.add.reduceat(of[order], begin).tolist()
            return found

        certain_ns = np.where(self.certain, waits.wait_ns, 0)
        columns = {
            "wait_ns": summed(certain_ns),
            "waits": summed(self.count * self.certain),
            "max_ns": np.maximum.reduceat((self.max_ns * self.certain)[order], begin).tolist(),
            "uncertain_ns": summed(waits.wait_ns - certain_ns),
            "partial": summed(waits.partial.astype(np.int64)),
            "clipped": summed(waits.clipped.astype(np.int64)),
        }
        return [
            {
                **{key: self.shown(key, at) for key in keys},
                "place": self._place(int(waits.call_path[at])),
                **{name: values[row] for name, values in columns.items()},
                "location": int(waits.location[at]),
                "time_ns": int(waits.call_ns[at]),
            }
            for row, at in enumerate(order[begin].tolist())
        ]

    def each(self) -> list[dict[str, object]]:
        """Return a row for each wait."""
        self.numbers["step"] = self._steps()
        waits = self.waits
        return [
            {
                **{key: self.shown(key, at) for key in _KEYS["all"]},
                "start_ns": int(waits.call_ns[at]),
                "wait_ns": int(waits.wait_ns[at]) if self.certain[at] else 0,
                "waits": int(self.count[at]) if self.certain[at] else 0,
                "uncertain_ns": 0 if self.certain[at] else int(waits.wait_ns[at]),
                "location": int(waits.location[at]),
                "time_ns": int(waits.call_ns[at]),
            }
            for at in range(len(waits))
        ]


def note_of(trace: Trace, found: Found, lasted_ns: int) -> str:
    """Return sentences: how much ranks waited, most of it where and for whom, and what is not known.

    lasted_ns: how long all ranks lasted together, 0 if not known.
    """
    if not (found.messages + found.collectives + found.epochs or len(found.waits)):
        return _NOTHING
    keys = _Keys(trace, found)
    of_others = np.where(keys.certain & found.waits.for_another, found.waits.wait_ns, 0)
    of_gpus = int(of_others[found.waits.for_gpu].sum())
    wait = np.where(keys.numbers["awaited_rank"] == keys.process, 0, of_others)
    total, within = int(wait.sum()), int(of_others.sum() - wait.sum())
    notes = ["no rank is known to have waited for another"]
    if total:
        part = f", {format_share(total / lasted_ns)} of their time" if lasted_ns > total else ""
        notes = [f"ranks waited {format_ns(total)} for one another{part}"]
        for key, words in (("state", "most in {}"), ("awaited_rank", "for rank {} most")):
            numbers = keys.numbers[key]
            by = np.bincount(np.maximum(numbers, 0), wait)
            worst = int(by.argmax())
            name = keys.shown(key, int(np.flatnonzero(numbers == worst)[0]))
            if name is not None:
                notes.append(f"{words.format(name)}: {format_ns(float(by[worst]))}")
        notes = [", ".join(notes)]
    others = ((within - of_gpus, "threads of a process waited {} for one another"),
              (of_gpus, "threads and streams waited {} for GPUs"))  # fmt: skip
    if within:
        notes = [*(notes if total else ()), *(words.format(format_ns(ns)) for ns, words in others if ns)]
    lost = {"message end": found.unmatched_messages, "collective call": found.unmatched_collectives}
    if any(lost.values()):
        ends = " and ".join(format_number_of(count, name) for name, count in lost.items() if count)
        notes.append(f"without a partner in this trace: {ends}")
    return "; ".join(notes)
