"""Rule `threads`: operators run on more threads than the process has cores."""

from __future__ import annotations

import math
from collections.abc import Iterator

from strobe.breakdown.usual_calls import usual_calls
from strobe.gpu.devices import devices
from strobe.model.kinds import CORES, HOST_KINDS, OPERATOR_THREADS
from strobe.model.plugins import Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.steps.thread_spans import kinds_of
from strobe.trace.definition_rows import process_rows, region_rows
from strobe.trace.trace import Trace

LEAST_SHARE = 0.2  # of the step that operators take


def run(trace: Trace) -> Iterator[Finding]:
    """Yield a finding if the operators of the ranks of a machine have more threads than cores, and are much of a step.

    Threads beyond the cores add nothing, and an operator is over when the last of its threads has had a core: at most
    the operators are faster by the cores' part of the threads; how much is not known.
    """
    calls = usual_calls(trace)
    if calls is None or devices(trace):
        return
    processes = process_rows(trace)
    host = processes[calls.usual.steps.process].host
    threads, cores = 0, 0
    for each in processes:
        if each.host == host and (each.rank is not None or each.process == calls.usual.steps.process):
            last = {one.metric: float(one.values[-1]) for one in trace.readings(each.process) if len(one.values)}
            threads += int(last.get(OPERATOR_THREADS, 0))
            cores = max(cores, math.ceil(last.get(CORES, 0)))
    regions = region_rows(trace)
    facts = zip(*((each.name, each.paradigm, each.role) for each in regions), strict=True)
    is_operator = kinds_of(*map(list, facts)) == HOST_KINDS.index("operators")
    share = float(calls.main.own_ns[is_operator[calls.main.region]].sum() / max(1, calls.duration_ns))
    if not 0 < cores < threads or share < LEAST_SHARE:
        return
    ranks = sum(each.rank is not None and each.host == host for each in processes)
    of_ranks = f" of {ranks} ranks together" if ranks > 1 else ""
    per_step = share * calls.usual.median_ns
    own = max(1, cores // max(1, ranks))
    what = f"operators run on {threads} threads{of_ranks}, where {cores} core{'s' if cores > 1 else ''} may be used; "
    what += f"they take {format_ns(per_step)} ({format_share(share)}) of a step"
    if threads <= ranks:  # each has one
        do = "ranks share cores: start fewer of them on this machine, or let them use more cores"
        yield Finding(rule="threads", what=what, do=do, confidence="medium", informative=True)
        return
    yield Finding(
        rule="threads",
        what=what,
        do=f"torch.set_num_threads({own}), or OMP_NUM_THREADS={own}{' for each rank' if ranks > 1 else ''}",
        gain_high_ns=round(per_step * (1 - cores / threads)),
        confidence="medium",
    )


RULE = Rule("threads", "More threads than cores", run, needs=("torch",))
