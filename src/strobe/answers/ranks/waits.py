"""Who waited for whom, how long and in what: wait states of communication, threads and GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from strobe.analyses.ranks.waits import ANALYSIS
from strobe.model.units import format_count, format_ns, format_number_of, format_share
from strobe.ranks.call_path_texts import call_path_text
from strobe.ranks.step_waits import step_waits
from strobe.ranks.waits.thread_waits import function_and_callers, thread_waits
from strobe.ranks.waits.wait_columns import STATES, Waits
from strobe.ranks.waits.wait_states import Found, wait_parts
from strobe.steps.step_times import step_of_process
from strobe.sums.side_columns import in_parts
from strobe.tables.column_arrays import Ints, add_at, combined, rows_by
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import (
    location_rows,
    path_tree,
    process_rows,
    processes_of_locations,
    ranks_of,
    region_rows,
)
from strobe.trace.trace import Trace

_NOTHING = (
    "no message or collective in this trace has both ends, and no thread waited for another one or for a GPU, so that"
    " nobody is known to have waited for another"
)
_LEFT_OUT = "the longest waits; {} shorter ones are left out, but in the sums of all other --by"
_MOST = 1_000_000  # single waits that are shown
_JOINED = {
    **dict.fromkeys(("wait_ns", "waits", "uncertain_ns", "partial", "clipped"), np.add),
    **dict.fromkeys(("max_ns", "longest_ns"), np.maximum),
}
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
    return in_parts(lambda whole: _answer(trace, by, whole=whole))


def _answer(trace: Trace, by: str, *, whole: bool) -> Table:
    keys, note, names = _Keys(trace), _Note(trace), _KEYS.get(by, ())
    rows = keys.rows(Waits.joined(()), names)
    for found in wait_parts(trace, whole=whole):
        note.add(found)
        more = keys.rows(found.waits, names, found.threads)
        more = _summed(more, names) if names else more
        del found
        rows = {name: np.append(values, more[name]) for name, values in rows.items()}
        rows = _summed(rows, names) if names else _longest(rows)
    count = note.count
    about = f"{format_count(count['messages'])} messages, {format_count(count['collectives'])} collectives"
    if count["epochs"]:
        about += f", {format_number_of(count['epochs'], 'epoch')} of one-sided communication"
    lasted_ns = sum(row.ended_ns - row.started_ns for row in process_rows(trace) if row.rank is not None)
    left_out = 0 if names else note.waits - len(rows["wait_ns"])
    in_steps = step_waits(trace)
    notes = [note.text(lasted_ns, in_steps.share if in_steps else 0.0)]
    notes += [_LEFT_OUT.format(format_count(left_out))] if left_out else []
    columns = ANALYSIS.columns_with(by=by)
    cells = {"start_ns": "time_ns", "place": "call_path"}
    shown = {each.name: keys.shown(each.name, rows[cells.get(each.name, each.name)]) for each in columns}
    return make_table(columns, shown, about=about, note="; ".join(notes)).sort("wait_ns")


def _summed(rows: dict[str, Ints], keys: tuple[str, ...]) -> dict[str, Ints]:
    """Return a row for each combination of the keys, with the longest wait: of several, the first one to begin."""
    sums, group = combined(rows, keys, _JOINED)
    (at,) = np.nonzero(rows["longest_ns"] == sums["longest_ns"][group])
    at = at[np.lexsort((rows["location"][at], rows["time_ns"][at]))]
    longest = np.zeros(len(sums["longest_ns"]), dtype=np.int64)
    longest[group[at[::-1]]] = at[::-1]
    return {name: sums[name] if name in sums else values[longest] for name, values in rows.items()}


def _longest(rows: dict[str, Ints]) -> dict[str, Ints]:
    """Return the longest waits, in order of begin."""
    at = np.lexsort((rows["state"], rows["location"], rows["time_ns"], -rows["longest_ns"]))[:_MOST]
    at = at[np.lexsort((rows["state"][at], rows["location"][at], rows["time_ns"][at]))]
    return {name: values[at] for name, values in rows.items()}


class _Keys:
    """What waits are grouped by: the numbers of a key, and how these are shown."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._ranks = trace, ranks_of(trace)
        self._process = np.array(processes_of_locations(trace), dtype=np.int64)
        self._regions = region_rows(trace)
        self._threads = thread_waits(trace)
        self._stacks = [function_and_callers(each) for each in self._threads.call_stacks]
        every = [*(row.name for row in self._regions), *(function for function, _ in self._stacks)]
        names, which = np.unique(every, return_inverse=True)
        self._functions = names.tolist()
        of_region = np.append(which[: len(self._regions)], -1)
        of_path = of_region[np.append(trace.definitions.path_region, -1).astype(np.int64)]
        # Behind the call paths those of waits of threads, which are texts; at the end the unknown one.
        self._paths = len(of_path) - 1
        self._function = np.concatenate((of_path[:-1], which[len(self._regions) :], of_path[-1:]))

    def rows(self, waits: Waits, names: tuple[str, ...], threads: int = 0) -> dict[str, Ints]:
        """Return the cells of a row for each wait, those of some keys as numbers. The last `threads` are of threads."""
        count, max_ns = np.ones(len(waits), dtype=np.int64), waits.wait_ns.copy()
        if threads:
            sums, path = self._threads.waits, waits.call_path.copy()
            count[-threads:], max_ns[-threads:] = sums.waits, sums.max_ns
            path[-threads:] = self._paths + sums.call_stack
            waits = replace(waits, call_path=path)
        certain = ~waits.uncertain
        certain_ns = waits.wait_ns * certain
        return {
            **{name: self._numbers(name, waits) for name in names or _KEYS["all"]},
            "wait_ns": certain_ns,
            "waits": count * certain,
            "max_ns": max_ns * certain,
            "uncertain_ns": waits.wait_ns - certain_ns,
            "partial": waits.partial.astype(np.int64),
            "clipped": waits.clipped.astype(np.int64),
            "longest_ns": waits.wait_ns,
            "location": waits.location,
            "time_ns": waits.call_ns,
        }

    def _numbers(self, name: str, waits: Waits) -> Ints:
        process = self._process[waits.location]
        numbers: dict[str, Callable[[], Ints]] = {
            "state": lambda: waits.state,
            "rank": lambda: process,
            "awaited_rank": lambda: np.where(waits.for_another, self._process[waits.cause], -1),
            "function": lambda: self._function[waits.call_path],
            "call_path": lambda: waits.call_path,
            "thread": lambda: waits.location,
            "awaited_thread": lambda: np.where(waits.for_another & (waits.cause != waits.location), waits.cause, -1),
            "step": lambda: self._steps(process, waits.call_ns),
            "kernel": lambda: waits.kernel,
        }
        return numbers[name]()

    def _steps(self, process: Ints, time_ns: Ints) -> Ints:
        out = np.full(len(process), -1, dtype=np.int64)
        for each, own in rows_by(process):
            out[own] = step_of_process(self._trace, each, time_ns[own])
        return out

    def shown(self, name: str, numbers: Ints) -> Ints | list[object]:
        """Return the cells of a column."""
        of_key: dict[str, Callable[[int], object]] = {
            "state": STATES.__getitem__,
            "rank": self._ranks.__getitem__,
            "awaited_rank": self._ranks.__getitem__,
            "function": self._functions.__getitem__,
            "call_path": self._call_path,
            "thread": lambda location: location_rows(self._trace)[location].name,
            "awaited_thread": lambda location: location_rows(self._trace)[location].name,
            "step": int,
            "kernel": lambda region: self._regions[region].name,
            "place": self._place,
        }
        if name not in of_key:
            return numbers
        return [of_key[name](number) if number >= 0 else None for number in numbers.tolist()]

    def _call_path(self, path: int) -> str:
        if path < self._paths:
            return call_path_text(self._trace, path)
        return " < ".join(filter(None, self._stacks[path - self._paths]))

    def _place(self, path: int) -> str | None:
        """Return file and line of the innermost function of Python in a call path, None if it has none."""
        if path >= self._paths:
            return None
        parents, of_path = path_tree(self._trace)
        while path >= 0 and (region := self._regions[of_path[path]]).paradigm != "python":
            path = int(parents[path])
        return f"{region.file}:{region.line}" if path >= 0 and region.file else None


def note_of(trace: Trace, found: Found, lasted_ns: int) -> str:
    """Return sentences: how much ranks waited, most of it where and for whom, and what is not known.

    lasted_ns: how long all ranks lasted together, 0 if not known.
    """
    note = _Note(trace)
    note.add(found)
    return note.text(lasted_ns, 0.0)


class _Note:
    """What is counted of the waits of all parts of a trace. By state, and by process: waits of ranks for another."""

    def __init__(self, trace: Trace) -> None:
        self._process, self._ranks = np.array(processes_of_locations(trace), dtype=np.int64), ranks_of(trace)
        self.count, self.waits, self._of_threads_ns, self._of_gpus_ns, self._of_hosts_ns = Counter[str](), 0, 0, 0, 0
        self._by_state, self._by_rank = (np.zeros(size, dtype=np.int64) for size in (len(STATES), len(self._ranks)))

    def add(self, found: Found) -> None:
        """Count the waits of a part."""
        self.count.update({each.name: getattr(found, each.name) for each in fields(found)[1:]})
        self.waits += len(found.waits)
        (at,) = np.nonzero(found.waits.for_another & ~found.waits.uncertain)
        wait_ns, own, other = found.waits.wait_ns[at], found.waits.location[at], self._process[found.waits.cause[at]]
        of_ranks = self._process[own] != other
        of_gpus, of_hosts = found.waits.for_gpu[at], found.waits.state[at] == STATES.index("late_host")
        self._of_threads_ns += int(wait_ns[~of_ranks & ~of_gpus].sum())
        self._of_gpus_ns += int(wait_ns[of_gpus & ~of_hosts].sum())
        self._of_hosts_ns += int(wait_ns[of_hosts].sum())
        wait_ns = np.where(of_ranks, wait_ns, 0)
        add_at(self._by_state, found.waits.state[at], wait_ns)
        add_at(self._by_rank, other, wait_ns)

    def text(self, lasted_ns: int, in_steps: float) -> str:
        """Return the sentences. lasted_ns: of all ranks. in_steps: which part of their steady steps ranks wait."""
        if not (self.count["messages"] + self.count["collectives"] + self.count["epochs"] or self.waits):
            return _NOTHING
        total = int(self._by_state.sum())
        others = ((self._of_threads_ns, "threads of a process waited {} for one another"),
                  (self._of_gpus_ns, "threads and streams waited {} for GPUs"),
                  (self._of_hosts_ns, "GPUs waited {} for their hosts"))  # fmt: skip
        notes = ["no rank is known to have waited for another"]
        if total:
            part = f", {format_share(total / lasted_ns)} of the run" if lasted_ns > total else ""
            part += f", {format_share(in_steps)} of their steady steps" if in_steps else ""
            worst, awaited = int(self._by_state.argmax()), int(self._by_rank.argmax())
            text = f"ranks waited {format_ns(total)} for one another{part}, most in {STATES[worst]}:"
            text += f" {format_ns(float(self._by_state[worst]))}"
            if self._ranks[awaited] is not None:
                text += f", for rank {self._ranks[awaited]} most: {format_ns(float(self._by_rank[awaited]))}"
            notes = [text]
        if any(ns for ns, _ in others):
            notes = [*(notes if total else ()), *(words.format(format_ns(ns)) for ns, words in others if ns)]
        unmatched = (("message end", "unmatched_messages"), ("collective call", "unmatched_collectives"))
        lost = [format_number_of(self.count[key], name) for name, key in unmatched if self.count[key]]
        if lost:
            notes.append(f"without a partner in this trace: {' and '.join(lost)}")
        return "; ".join(notes)
