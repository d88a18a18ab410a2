"""How much of the time of ranks and GPUs is useful, and which factor costs most: the efficiencies of POP and TALP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from strobe.analyses.ranks.efficiency import ANALYSIS
from strobe.model.schema import Column
from strobe.model.units import format_count, format_ns
from strobe.ranks import efficiencies
from strobe.ranks.efficiencies import Factor, PerStep
from strobe.ranks.ideal_network import MOST_ROWS, ideal_elapsed_ns
from strobe.ranks.rank_times import RankTimes, rank_times
from strobe.ranks.step_waits import waits_beside
from strobe.tables.table import Table, make_table
from strobe.trace.trace import Trace

_NOTHING = "no steps were found in this trace; --by run has the efficiencies of all of it"
_IDEAL = (
    "serialisation and transfer are not known: only MPI and gloo with both sides in the trace are replayed, and at"
    f" most {format_count(MOST_ROWS)} messages and collectives"
)
_NO_COUNTERS = (
    "instructions, IPC and frequency are not known: no counters of both were read at each call (Score-P with PAPI)"
)
_OTHERS = "communication efficiency counts calls of the GPU and waits for it, and waits for data: --model strobe"
_FEW = 0.01  # of the time: too little for a sentence
# What a factor may lose without being named.
_CHEAP = 0.95
_WHY = {
    "communication_efficiency": "of {before}, no rank is outside of communication for more than {after}",
    "offload_efficiency": "of {before}, no rank is outside of calls of the GPU and waits for it for more than {after}",
    "data_efficiency": "of {before}, no rank is outside of waits for data for more than {after}",
    "load_balance": "rank {rank} computes for {before}, the mean of {ranks} ranks is {after}",
    "gpu_orchestration_efficiency": "of {before}, no GPU is busy for more than {after}",
    "gpu_communication_efficiency": "of {before}, no GPU computes or copies for more than {after}",
    "gpu_copy_efficiency": "of {before}, no GPU computes for more than {after}",
    "gpu_load_balance": "one GPU computes for {before}, the mean is {after}",
}


def run(trace: Trace, *, by: str, model: str) -> Table:
    """Return the answer; see `strobe.analyses.ranks.efficiency`."""
    times = rank_times(trace, by)
    factors = _factors(trace, times, model)
    rows = _rows(times, factors)
    of_run = times if by == "run" else rank_times(trace, "run")
    costliest = waits_beside(trace, "no factor counts") or _costliest(of_run)
    notes = [costliest, *_missing(times, model, factors)]
    note = "; ".join(filter(None, notes)) if rows else _NOTHING
    return make_table(ANALYSIS.columns_with(by=by, model=model), rows, about=_about(times), note=note)


def scaling(traces: Sequence[tuple[str, Trace]], *, by: str, model: str, weak: bool) -> Table:
    """Return the answers to several traces of one program, with their names, and how it scales from the first on.

    `weak`: the work of a step grows with the number of ranks. Rows about the run are in order of factor, then trace.
    """
    answers, notes, first = [], list[str](), None
    for name, trace in traces:
        times = rank_times(trace, by)
        first = first or times
        parallel, *others = factors = _factors(trace, times, model)
        scaled = efficiencies.scaling(parallel, _per_step(times, times), _per_step(first, times), weak=weak)
        answers.append([{"trace": name, **row} for row in _rows(times, (*scaled, *others))])
        costliest = waits_beside(trace, "no factor counts") or _costliest(rank_times(trace, "run"))
        notes += [f"{name}: {each}" for each in (costliest, *times.missing) if each]
        notes += _missing(replace(times, missing=()), model, factors)
        notes += [_NO_COUNTERS] * bool(np.isnan(times.counts).any())
    columns = (Column("trace", "string", "", "the trace"), *ANALYSIS.columns_with(by=by, model=model))
    rows = chain.from_iterable(zip(*answers, strict=True) if by == "run" else answers)
    return make_table(columns, rows, name=ANALYSIS.name, note="; ".join(dict.fromkeys(notes)))


def _about(times: RankTimes) -> str:
    return f"{times.about} of {len(times.ranks)} ranks" if len(times.ranks) > 1 else times.about


def _factors(trace: Trace, times: RankTimes, model: str) -> tuple[Factor, ...]:
    if model == "pop":
        windows = len(times.host.elapsed_ns)
        whole = len(times.stretches) == len(times.ranks)
        ideal_ns = ideal_elapsed_ns(trace, times.stretches, windows) if whole else np.full(windows, np.nan)
        return efficiencies.pop(times.host, ideal_ns)
    if model == "talp":
        return efficiencies.talp(times.host, times.devices, times.teams)
    return efficiencies.strobe(times.host, times.devices)


def _missing(times: RankTimes, model: str, factors: Sequence[Factor]) -> tuple[str, ...]:
    """Return the sentences about what is not known, or not told apart."""
    if model != "pop":
        return *times.missing, *times.missing_devices
    others = (times.host.gpu_ns + times.host.data_ns).sum() > _FEW * times.host.duration_ns.sum()
    values = {factor.name: factor.values for root in factors for factor, _ in root.rows()}
    unknown = np.isnan(values["transfer_efficiency"]) & ~np.isnan(values["communication_efficiency"])
    return *times.missing, *([_OTHERS] if others else []), *([_IDEAL] if unknown.any() else [])


def _rows(times: RankTimes, factors: Sequence[Factor]) -> list[Mapping[str, object]]:
    """Return a row for each window and factor."""
    listed = [(factor.name, parent, factor.values) for root in factors for factor, parent in root.rows()]
    of_talp = efficiencies.talp(times.host, times.devices, times.teams)
    known = {factor.name: factor.values for root in of_talp for factor, _ in root.rows()}
    elapsed, on_all = times.host.elapsed_ns, times.present == len(times.ranks)
    return [
        {
            "step": times.step[at],
            "class": times.class_name[at],
            "ranks": int(times.present[at]),
            "steps": int(times.steps[at]) if times.of_steps else None,
            "elapsed_ns": None if np.isnan(elapsed[at]) else round(elapsed[at]),
            "parent": parent,
            "factor": name,
            "value": _number(values[at]) if on_all[at] else None,
            "talp": _number(known[name][at]) if on_all[at] and name in known else None,
        }
        for at in range(len(elapsed))
        for name, parent, values in listed
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _per_step(times: RankTimes, windows: RankTimes) -> PerStep:
    """Return the means of a step, in the windows of another run; NaN where the run lacks them."""
    places = {key: at for at, key in enumerate(zip(times.step, times.class_name, strict=True))}
    at = [places.get(key, -1) for key in zip(windows.step, windows.class_name, strict=True)]
    means = (times.host.useful_ns.sum(axis=0), times.host.elapsed_ns, *times.counts) / times.steps
    useful, elapsed, instructions, cycles = np.concatenate((means, np.full((4, 1), np.nan)), axis=1)[:, at]
    return PerStep(useful, elapsed, instructions, cycles, len(times.ranks))


def _costliest(times: RankTimes) -> str:
    """Return a sentence about the factor that costs most: of GPUs if there are any, else of ranks.

    Nothing of one rank, or where a factor is not known.
    """
    of_ranks, of_gpus = efficiencies.strobe(times.host, times.devices)
    root = of_ranks if np.isnan(of_gpus.values).all() else of_gpus
    values = [float(factor.values[0]) for factor in root.children]
    if len(times.ranks) < 2 or times.present[0] < len(times.ranks) or np.isnan(values).any():
        return ""
    at = int(np.argmin(values))
    if values[at] > _CHEAP:
        return f"no factor costs much: parallel efficiency is {root.values[0]:.2f}"
    whole = times.host if root is of_ranks else times.devices
    before = float(whole.elapsed_ns[0] / times.steps[0] * np.prod(values[:at]))
    step = " a step" if times.of_steps else ""
    why = _WHY[root.children[at].name].format(
        before=format_ns(before) + step,
        after=format_ns(before * values[at]),
        rank=times.ranks[int(times.host.useful_ns[:, 0].argmax())],
        ranks=len(times.ranks),
    )
    return f"{root.children[at].name.replace('_', ' ')} costs most, {values[at]:.2f}: {why}"
