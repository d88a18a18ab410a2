"""What made ranks wait: the functions that took longer on the rank that came late, and what that cost all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from strobe.analyses.ranks.delays import ANALYSIS
from strobe.model.units import format_ns, format_number_of, format_share
from strobe.ranks.delays.delay_costs import Delays, delays
from strobe.ranks.waits.wait_columns import STATES
from strobe.steps.step_times import step_of_process, step_times
from strobe.tables.column_arrays import Ints, alike
from strobe.tables.table import Table, make_table
from strobe.trace.definition_rows import processes_of_locations, ranks_of
from strobe.trace.trace import Trace

_NOTHING = "no rank is known to have waited for another: strobe waits has what is known"
_CLASSES = ("computation", "communication", "single")
_KEYS = {
    "cause": ("rank", "cause"),
    "rank": ("rank",),
    "waiter": ("waiting_rank",),
    "step": ("step",),
    "class": ("class",),
    "all": ("rank", "cause", "class", "waiting_rank", "state", "step"),
    "wait": ("wait", "rank", "waiting_rank", "state", "step"),
}
_PARTS = ("direct_ns", "indirect_ns", "long_term_ns", "unexplained_ns")


def run(trace: Trace, *, by: str, among: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.delays`."""
    found, for_gpu = delays(trace), [among != "ranks", among == "gpus"]
    counted = int(np.isin(found.waits.for_gpu, for_gpu).sum())
    found = replace(found, costs=found.costs.chosen(np.isin(found.costs.for_gpu, for_gpu)))
    answer = _Answer(trace, found)
    rows = answer.sums(_KEYS[by])
    about = format_number_of(counted, "wait")
    table = make_table(ANALYSIS.columns_with(by=by), rows, about=about, note=answer.note())
    return table.sort("wait_ns" if by == "wait" else "cost_ns")


class _Answer:
    """Delays, and the numbers that their waits are grouped by."""

    def __init__(self, trace: Trace, found: Delays) -> None:
        self.found, self._trace, self._ranks = found, trace, ranks_of(trace)
        waits, process = found.waits, np.array(processes_of_locations(trace), dtype=np.int64)
        self._late, waiting = process[waits.cause], process[waits.location]
        self._step = np.full(len(waits), -1, dtype=np.int64)
        for each in np.unique(waiting).tolist():
            (own,) = np.nonzero(waiting == each)
            self._step[own] = step_of_process(trace, each, waits.call_ns[own])
        costs, causes = found.costs, found.causes
        kind = np.where(causes.communicates(costs.cause), 1, np.where(costs.on_both, 0, 2))
        self._numbers = {
            "wait": costs.wait,
            "rank": self._late[costs.wait],
            "cause": costs.cause,
            "class": np.where(costs.cause == causes.unknown, -1, kind),
            "waiting_rank": waiting[costs.wait],
            "state": waits.state[costs.wait],
            "step": self._step[costs.wait],
        }
        self._cost_ns = costs.direct_ns + costs.long_term_ns

    def _shown(self, key: str, number: int) -> object:
        """Return the cell of a key."""
        if key == "cause":
            return self.found.causes.name(number)
        if key in ("rank", "waiting_rank"):
            return self._ranks[number]
        if number < 0:
            return None
        names = {"class": _CLASSES, "state": STATES}.get(key)
        return names[number] if names else number

    def sums(self, keys: tuple[str, ...]) -> list[dict[str, object]]:
        """Return a row for each combination of the keys."""
        costs, waits = self.found.costs, self.found.waits
        if not len(costs):
            return []
        _, group = alike([self._numbers[key] for key in keys])
        order = np.lexsort((-self._cost_ns, group))
        begin = np.flatnonzero(np.diff(group[order], prepend=-1))

        def summed(of: Ints) -> list[int]:
            found: list[int] = np.add.reduceat(of[order], begin).tolist()
            return found

        def different(of: Ints) -> list[int]:
            first, _ = alike([group, of])
            found: list[int] = np.bincount(group[first], minlength=len(begin)).tolist()
            return found

        columns = {
            "cost_ns": summed(self._cost_ns),
            **{name: summed(getattr(costs, name)) for name in _PARTS},
            "waits": different(costs.wait),
            "waiting_ranks": different(self._numbers["waiting_rank"]),
            "location": waits.location[costs.wait[order[begin]]].tolist(),
            "time_ns": waits.call_ns[costs.wait[order[begin]]].tolist(),
        }
        rows: list[dict[str, object]] = []
        for row, at in enumerate(order[begin].tolist()):
            cells = {key: self._shown(key, int(self._numbers[key][at])) for key in keys if key != "wait"}
            if "wait" in keys:
                wait = int(costs.wait[at])
                times = {"start_ns": waits.call_ns, "wait_ns": waits.wait_ns, "carried_ns": self.found.carried_ns}
                cells |= {name: int(column[wait]) for name, column in times.items()}
            if "cause" in keys:
                cells["class"] = self._shown("class", int(self._numbers["class"][at]))
                cells["call_path"] = self.found.causes.path(int(costs.cause[at]))
            rows.append(cells | {name: values[row] for name, values in columns.items()})
        return rows

    def note(self) -> str:
        """Return a sentence about the cause that costs most, and how much is unexplained."""
        costs, causes = self.found.costs, self.found.causes
        (known,) = np.nonzero((costs.cause != causes.unknown) & (self._cost_ns > 0))
        if not len(costs):
            return _NOTHING
        notes = []
        among_ranks = known[~costs.for_gpu[known]]
        if len(known := among_ranks if len(among_ranks) else known):
            first, group = alike([self._numbers["rank"][known], costs.cause[known]])
            worst = int(np.bincount(group, self._cost_ns[known]).argmax())
            own, at = known[group == worst], int(known[first[worst]])
            in_step = own[self._numbers["step"][own] >= 0]
            steps = len(step_times(self._trace, int(self._numbers["rank"][at]))[0]) if len(in_step) else 0
            own = in_step if steps else own
            direct, on = (int(each[own].sum()) / max(1, steps) for each in (costs.direct_ns, costs.long_term_ns))
            others = format_number_of(len(np.unique(self._numbers["waiting_rank"][own])), "other")
            rank, name = self._shown("rank", int(self._numbers["rank"][at])), causes.name(int(costs.cause[at]))
            late = f"`{name}`" if rank is None else f"rank {rank}, `{name}`"
            every = " of every step" * bool(steps)
            parts = f" and those that wait for them ({format_ns(direct)} direct, {format_ns(on)} on)" * bool(on)
            who = others + parts if len(among_ranks) else "GPUs and their hosts"
            notes.append(f"{late}: {format_ns(direct + on)}{every} on {who}")
        waited = int((self._cost_ns + costs.unexplained_ns).sum())
        if unknown := waited - int(self._cost_ns[costs.cause != causes.unknown].sum()):
            notes.append(f"{format_share(unknown / waited)} of all waits, {format_ns(unknown)}, is unexplained")
        return "; ".join(notes)
