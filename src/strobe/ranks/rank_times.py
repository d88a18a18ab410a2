"""What ranks and their GPUs did in windows of a run (all its steps, those of a class, each step), for efficiencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strobe.gpu.devices import Device, devices, no_device
from strobe.gpu.lanes import Lanes, lanes
from strobe.gpu.work import COMMUNICATION, COMPUTATION, COPY, KINDS, MASKS, Work, divide, divided, work
from strobe.model.kinds import HOST_KINDS
from strobe.model.units import format_number_of
from strobe.ranks.collectives import collectives
from strobe.ranks.computation_counters import instructions_and_cycles
from strobe.ranks.efficiencies import DeviceTimes, HostTimes, TeamTimes
from strobe.ranks.ideal_network import Stretches
from strobe.ranks.waits.thread_waits import rows_of
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.selection import select
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import kinds_of, main_location
from strobe.sums.path_statistics import location_statistics
from strobe.tables.column_arrays import Bools, Floats, Ints, interval_at
from strobe.trace.definition_rows import location_rows, process_rows, processes_of_locations, region_rows
from strobe.trace.trace import Trace

_SHOWN = 5  # ranks that a sentence lists
_COMMUNICATION, _GPU_WAIT, _GPU_CALL, _OPERATORS, _DATA_WAIT, _HOST = range(len(HOST_KINDS))
# Sets of kinds: a GPU computes; communicates without computing; only copies.
_SETS = np.arange(MASKS)
_COMPUTES = _SETS & COMPUTATION > 0
_COMMUNICATES = ~_COMPUTES & (_SETS & COMMUNICATION > 0)
_COPIES = _SETS == COPY
_OLDER = "an older strobe folded steps: what their time went into is not known"
_NO_COMMON = "no step is complete and past the warm-up on all ranks"
_SOME_LANES = "GPUs: of {} of {}; what they did in the others is not known"
_NO_WAITS = "waits and transfers of kernels are not known apart: that needs all steps in detail, and all ranks"
_NO_NODES = "the nodes of ranks are not known, so load balance is not divided among them"

Rank = int | None


@dataclass(frozen=True)
class RankTimes:
    """Times in windows, see HostTimes and DeviceTimes. Arrays and sequences have an entry per window.

    ranks: of the job, or None for a program without ranks. step, class_name: of the window, None where it is not of
    one. steps: how many steps it has, 1 if it is not of steps. present: how many ranks have all of it. counts: array
    (2, windows), instructions and cycles of the computation on all ranks, NaN where not known. stretches: what the
    windows of each rank are made of. about: what windows are of. missing, missing_devices: sentences about what is not
    known of ranks and of GPUs.
    """

    ranks: tuple[Rank, ...]
    step: Sequence[int | None]
    class_name: Sequence[str | None]
    steps: Floats
    present: Ints
    host: HostTimes
    devices: DeviceTimes
    teams: TeamTimes
    counts: Floats
    stretches: tuple[Stretches, ...]
    about: str
    missing: tuple[str, ...]
    missing_devices: tuple[str, ...]
    of_steps: bool = True


@dataclass(frozen=True)
class _Steps:
    """The steps of a rank: their places among those of all ranks, and the window of each, -1 for none."""

    steps: ProcessSteps
    place: Ints
    window: Ints


def rank_times(trace: Trace, by: str) -> RankTimes:
    """Return what the main thread of each rank did, and each GPU. `by`: `run`, `class` or `step`.

    Times are those of the ledger (`steps.cells`, `gpu.lanes`), of folded steps, too. A run is the steps that are
    complete and past the warm-up on all ranks; where a rank has no steps, all of it. A rank that is not in the trace,
    or that lacks a step, has NaN.
    """
    processes = dict[Rank, list[int]]()
    for process in process_rows(trace):
        processes.setdefault(process.rank, []).append(process.process)
    known = [rank for rank in processes if rank is not None]
    size = max((facts.get("ranks") or 0 for facts in trace.facts), default=0)
    ranks = tuple(range(max(size, max(known) + 1))) if known else (None,)
    steps = {each.process: each for each in find_steps(trace).processes}
    own = {rank: [steps[process] for process in processes.get(rank, ()) if process in steps][:1] for rank in ranks}
    absent = [rank for rank in ranks if rank not in processes]
    without = [rank for rank in ranks if rank in processes and not own[rank]]
    missing = [f"{_named(absent)} of {len(ranks)}: not in this trace, and efficiencies need all ranks"] * bool(absent)
    if any(not each.host for each in process_rows(trace)):
        missing.append(_NO_NODES)
    if by == "run" and without:
        return _of_run(trace, {rank: processes.get(rank, []) for rank in ranks}, missing)
    if without:
        missing.append(f"{_named(without)}: no steps were found, so efficiencies are known of the run alone")
    return _of_steps(trace, by, own, missing)


def _named(ranks: Sequence[Rank]) -> str:
    if ranks == [None]:
        return "the program"
    shown = ", ".join(map(str, ranks[:_SHOWN])) + (", ..." if len(ranks) > _SHOWN else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _of_steps(trace: Trace, by: str, own: Mapping[Rank, Sequence[ProcessSteps]], missing: list[str]) -> RankTimes:
    there = [each for of_rank in own.values() for each in of_rank]
    number = [np.arange(len(each)) + each.first_number for each in there]
    numbers = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *number]))
    place = [np.searchsorted(numbers, each) for each in number]
    counted = _on_all(len(numbers), [(at, each.steady) for at, each in zip(place, there, strict=True)])
    names = _class_names(len(numbers), [(at, each.class_names) for at, each in zip(place, there, strict=True)])
    window, classes = np.where(counted, 0, -1), list[str | None]([None])
    if by == "step":
        window, classes = np.arange(len(numbers)), names.tolist()
    elif by == "class":
        classes = list(dict.fromkeys(names[counted].tolist()))
        places = [classes.index(name) if of_all else -1 for name, of_all in zip(names, counted, strict=True)]
        window = np.array(places, dtype=np.int64)
    of_process = {
        each.process: _Steps(each, at, np.where(each.complete, window[at], -1))
        for each, at in zip(there, place, strict=True)
    }
    if any(each.cells.columns is None for each in there):
        missing.append(_OLDER)
    if by != "step" and there and not counted.any():
        missing.append(_NO_COMMON)
    kinds = np.full((len(own), len(HOST_KINDS), len(classes)), np.nan)
    counts = np.full((len(own), 2, len(classes)), np.nan)
    present = np.zeros(len(classes), dtype=np.int64)
    stretches = list[Stretches]()
    for row, count, of_rank in zip(kinds, counts, own.values(), strict=True):
        for each in of_rank:
            mine = of_process[each.process]
            present += np.bincount(mine.window[mine.window >= 0], minlength=len(classes)) > 0
            main = main_location(trace, each.process)
            if each.cells.columns is not None:
                of_kinds = each.cells.kinds_ns()
                row[:] = _summed(of_kinds, mine.window, len(classes))
                if main is not None:
                    computed = each.duration_ns - of_kinds[:, _COMMUNICATION]
                    stretches.append(Stretches(main, each.start_ns, each.end_ns, computed, mine.window))
            if main is not None and each.kept.all():
                counted_of = instructions_and_cycles(trace, main, each.start_ns, each.end_ns)
                count[:] = _summed(counted_of, mine.window, len(classes))
    members = {rank: [each.process for each in of_rank] for rank, of_rank in own.items()}
    of_gpus, missing_devices = _devices(trace, of_process, len(numbers), len(classes))
    return RankTimes(
        ranks=tuple(own),
        step=numbers.tolist() if by == "step" else [None] * len(classes),
        class_name=classes,
        steps=np.bincount(window[window >= 0], minlength=len(classes)).astype(np.float64),
        present=present,
        host=_host_times(kinds, _nodes(trace, list(members.values()))),
        devices=of_gpus,
        teams=_team_times(trace, len(classes), kinds[:, _COMMUNICATION], members, of_process),
        counts=counts.sum(axis=0),
        stretches=tuple(stretches),
        about=format_number_of(int((window >= 0).sum()), "step" if by == "step" else "steady step"),
        missing=tuple(missing),
        missing_devices=missing_devices,
    )


def _on_all(count: int, of_ranks: Sequence[tuple[Ints, Bools]]) -> Bools:
    """Return which steps are what is asked on all ranks, by their places."""
    on_all = np.ones(count, dtype=bool)
    for place, it_is in of_ranks:
        mine = np.zeros(count, dtype=bool)
        mine[place] = it_is
        on_all &= mine
    return on_all


def _class_names(count: int, of_ranks: Sequence[tuple[Ints, npt.NDArray[np.object_]]]) -> npt.NDArray[np.object_]:
    """Return the class of each step; those of all ranks, where it is not the same on all."""
    names = np.full(count, "", dtype=object)
    for place, own in of_ranks:
        first = names[place] == ""
        names[place[first]] = own[first]
        for at in np.flatnonzero(names[place] != own).tolist():
            names[place[at]] = " | ".join(dict.fromkeys((*names[place[at]].split(" | "), own[at])))
    return names


def _summed(times: npt.NDArray[np.int64] | Floats, window: Ints, count: int) -> Floats:
    """Return the sums over the steps of each window: an array (columns, windows), NaN in a window without a step."""
    sums = np.zeros((count, times.shape[1]))
    inside = window >= 0
    np.add.at(sums, window[inside], times[inside])
    sums[np.bincount(window[inside], minlength=count) == 0] = np.nan
    return sums.T


def _host_times(kinds_ns: Floats, nodes: tuple[str | None, ...]) -> HostTimes:
    """Return the times of ranks from an array (ranks, HOST_KINDS, windows)."""
    kinds = np.moveaxis(kinds_ns, 1, 0)
    return HostTimes(
        duration_ns=kinds.sum(axis=0),
        useful_ns=kinds[_OPERATORS] + kinds[_HOST],
        communication_ns=kinds[_COMMUNICATION],
        gpu_ns=kinds[_GPU_WAIT] + kinds[_GPU_CALL],
        data_ns=kinds[_DATA_WAIT],
        nodes=nodes,
    )


def _nodes(trace: Trace, processes: Sequence[Sequence[int]]) -> tuple[str | None, ...]:
    rows = process_rows(trace)
    return tuple(rows[each[0]].host or None if each else None for each in processes)


def _devices(
    trace: Trace, of_process: Mapping[int, _Steps], steps: int, windows: int
) -> tuple[DeviceTimes, tuple[str, ...]]:
    """Return the times of GPUs in the lanes of steps that are known of all of them, and what is not known."""
    gpus = [each for each in devices(trace) if each.process in of_process]
    if not gpus:
        return DeviceTimes.unknown(windows), (no_device(trace),)
    found = [lanes(trace, each, of_process[each.process].steps) for each in gpus]
    places = [of_process[gpu.process].place for gpu in gpus]
    known = _on_all(steps, [(place, each.known) for place, each in zip(places, found, strict=True)])
    window = {process: np.where(known[each.place], each.window, -1) for process, each in of_process.items()}
    kept = {process: each.steps.kept for process, each in of_process.items()}
    waits = _waits(trace, gpus, found, kept)
    columns = []
    for gpu, each, wait in zip(gpus, found, waits, strict=True):
        sums = [each.set_ns[:, sets].sum(axis=1) for sets in (_COMPUTES, _COMMUNICATES, _COPIES)]
        columns.append(_summed(np.column_stack((*sums, wait, each.set_ns.sum(axis=1))), window[gpu.process], windows))
    elapsed = [_summed(own.steps.duration_ns[:, None], window[at], windows)[0] for at, own in of_process.items()]
    elapsed += [each[4] for each in columns]
    all_of = next(iter(of_process.values()))
    there, asked = (int((each >= 0).sum()) for each in (window[all_of.steps.process], all_of.window))
    missing = [_SOME_LANES.format(there, format_number_of(asked, "step"))] * (there < asked)
    if any((each[1] > 0).any() and np.isnan(each[3]).all() for each in columns):
        missing.append(_NO_WAITS)
    return _device_times(trace, gpus, np.array(columns), np.max(elapsed, axis=0)), tuple(missing)


def _device_times(trace: Trace, gpus: Sequence[Device], columns: Floats, elapsed_ns: Floats) -> DeviceTimes:
    """Return the times of GPUs; one that several processes use counts once, with the most of each time, as in TALP."""
    shared = dict[object, list[int]]()
    for at, gpu in enumerate(gpus):
        uuids = (each.get("uuid") for each in trace.device_properties(gpu.process) if each.get("id") == gpu.number)
        shared.setdefault(next(uuids, None) or (gpu.process, gpu.number), []).append(at)
    once = np.array([columns[members].max(axis=0) for members in shared.values()])
    return DeviceTimes(once[:, 0], once[:, 1], once[:, 2], once[:, 3], elapsed_ns)


def _waits(trace: Trace, gpus: Sequence[Device], found: Sequence[Lanes], kept: Mapping[int, Bools]) -> list[Floats]:
    """Return how long kernels of each GPU only wait for other ranks, by step: from their start to the last rank's.

    Of collectives in which all ranks wait for all. A wait within the error of the clocks is transfer. NaN where the
    kernels of a step are not in detail, or a collective has no partner.
    """
    out = [np.where(each.set_ns[:, _COMMUNICATES].any(axis=1), np.nan, 0.0) for each in found]
    if len(gpus) < 2 or not any(np.isnan(each).any() for each in out):
        return out
    met = collectives(trace)
    last = np.zeros(int(met.collective.max(initial=-1)) + 2, dtype=np.int64)
    np.maximum.at(last, met.collective, met.start_ns)
    until = np.minimum(last[met.collective], met.end_ns)
    party_of = {(each.process, each.device): at for at, each in enumerate(met.parties) if each.on_gpu}
    for gpu, own, waits in zip(gpus, found, out, strict=True):
        (at,) = np.nonzero(met.party == party_of.get((gpu.process, gpu.number), -1))
        reach, end_ns = np.maximum.accumulate(met.end_ns[at]), own.start_ns + own.set_ns.sum(axis=1)
        for step in np.flatnonzero(np.isnan(waits) & own.known & kept[gpu.process]).tolist():
            begin, end = int(own.start_ns[step]), int(end_ns[step])
            inside = at[np.searchsorted(reach, begin, side="right") : np.searchsorted(met.start_ns[at], end)]
            if (met.collective[inside] >= 0).all():
                inside = inside[until[inside] - met.start_ns[inside] > 2 * met.clock_error_ns[met.party[inside]]]
                waits[step] = _exposed(work(trace, gpu, begin, end), met.start_ns[inside], until[inside], begin, end)
    return out


def _exposed(found: Work, start_ns: Ints, end_ns: Ints, begin: int, end: int) -> int:
    """Return how much of some intervals lies in [begin, end) while no kernel computes, ns."""
    nowhere, kind = np.zeros(len(start_ns), dtype=np.uint32), np.full(len(start_ns), KINDS.index("communication"))
    intervals = Work(nowhere, start_ns, start_ns, end_ns, nowhere, kind.astype(np.int8))
    computing = found.chosen(1 << found.kind == COMPUTATION)
    return int(divide(Work.joined((computing, intervals)), begin, end)[COMMUNICATION])


def _team_times(
    trace: Trace,
    windows: int,
    communication_ns: Floats,
    ranks: Mapping[Rank, Sequence[int]],
    steps: Mapping[int, _Steps] | None = None,
) -> TeamTimes:
    """Return the times of OpenMP's teams of all ranks. steps: of processes whose windows are not all of the run.

    communication_ns: of each rank, in which its workers are idle because of MPI.
    """
    if not len(rows_of(trace, "team_regions")):
        return TeamTimes.unknown(windows)
    process = np.array(processes_of_locations(trace), dtype=np.int64)
    rank_of = np.full(len(process_rows(trace)), -1, dtype=np.int64)
    for rank, members in enumerate(ranks.values()):
        rank_of[list(members)] = rank
    sums = []
    for state in ("team_regions", "team_workers", "team_load_balance", "team_scheduling", "idle_worker"):
        rows = rows_of(trace, state)
        of, window = process[rows.location], np.zeros(len(rows), dtype=np.int64)
        for number, own in (steps or {}).items():
            (at,) = np.nonzero(of == number)
            window[at] = np.append(own.window, -1)[interval_at(own.steps.start_ns, own.steps.end_ns, rows.begin_ns[at])]
        counted = (window >= 0) & (rank_of[of] >= 0)
        found = np.zeros((len(ranks), windows))
        np.add.at(found, (rank_of[of][counted], window[counted]), rows.wait_ns[counted])
        sums.append(found)
    regions, workers, balance, scheduling, idle = sums
    threads = np.divide(workers, regions, out=np.zeros_like(workers), where=regions > 0)
    serial = np.maximum(idle - threads * np.nan_to_num(communication_ns), 0)
    return TeamTimes(*(each.sum(axis=0) for each in (workers, balance, scheduling, serial)))


def _of_run(trace: Trace, processes: Mapping[Rank, Sequence[int]], missing: list[str]) -> RankTimes:
    """Return the times of the whole run, from the first span of each rank's main thread to its last."""
    rows, regions, everything = location_rows(trace), region_rows(trace), select(trace, "all")
    names, paradigms, roles = ([getattr(each, name) for each in regions] for name in ("name", "paradigm", "role"))
    kind = kinds_of(names, paradigms, roles)
    found = [[main_location(trace, process) for process in of_rank] for of_rank in processes.values()]
    main = [[rows[at] for at in of_rank if at is not None and rows[at].span_count][:1] for of_rank in found]
    if empty := [rank for rank, of_rank in zip(processes, main, strict=True) if processes[rank] and not of_rank]:
        missing.append(f"{_named(empty)}: nothing in the trace has a time")
    kinds, counts = np.full((len(main), len(HOST_KINDS), 1), np.nan), np.full((len(main), 2, 1), np.nan)
    stretches = list[Stretches]()
    for row, count, of_rank in zip(kinds, counts, main, strict=True):
        for each in of_rank:
            ends = np.array([each.first_ns]), np.array([each.last_ns])
            count[:] = instructions_and_cycles(trace, each.location, *ends).T
            sums = location_statistics(trace, everything, each.location)
            row[:, 0] = np.bincount(kind[sums.region], weights=sums.own_ns, minlength=len(HOST_KINDS))
            row[_HOST] += max(0, each.last_ns - each.first_ns - row.sum())  # outside of all spans
            computed = np.array([max(0, each.last_ns - each.first_ns - int(row[_COMMUNICATION, 0]))])
            stretches.append(Stretches(each.location, *ends, computed, np.zeros(1, dtype=np.int64)))
    host = _host_times(kinds, _nodes(trace, [[each.process for each in of_rank] for of_rank in main]))
    gpus = [each for each in devices(trace) if any(each.process == own.process for of_rank in main for own in of_rank)]
    of_gpus, missing_devices = DeviceTimes.unknown(1), [no_device(trace)]
    if gpus:
        sets = np.array([divided(trace, each) for each in gpus])
        columns = [sets[:, which].sum(axis=1) for which in (_COMPUTES, _COMMUNICATES, _COPIES)]
        columns.append(np.where(columns[1] > 0, np.nan, 0.0))
        elapsed = np.maximum(host.elapsed_ns, sets.sum(axis=1).max())
        of_gpus = _device_times(trace, gpus, np.stack(columns, axis=1)[:, :, None], elapsed)
        missing_devices = [_NO_WAITS] * bool(columns[1].any())
    return RankTimes(
        ranks=tuple(processes),
        step=[None],
        class_name=[None],
        steps=np.ones(1),
        present=np.array([sum(map(len, main))]),
        host=host,
        devices=of_gpus,
        teams=_team_times(trace, 1, kinds[:, _COMMUNICATION], processes),
        counts=counts.sum(axis=0),
        stretches=tuple(stretches),
        about="the whole run, because a rank has no steps,",
        missing=tuple(missing),
        missing_devices=tuple(missing_devices),
        of_steps=False,
    )
