"""Rule `python`: one Python function takes a large part of a step by itself, outside of operators."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from strobe.breakdown.function_times import LEAST_SHARE, avoidable_times, call_of, is_of
from strobe.breakdown.host_time import host_times
from strobe.breakdown.library_calls import library_calls
from strobe.breakdown.usual_calls import usual_calls
from strobe.gpu.launches import with_calls
from strobe.model.plugins import Below, Finding, Rule
from strobe.model.units import format_ns, format_share
from strobe.sums.path_statistics import caller_of, path_statistics
from strobe.sums.source_lines import summed_lines
from strobe.trace.definition_rows import Region, location_rows, region_rows
from strobe.trace.trace import Trace

MOST = 3
# What a loop in the interpreter does can often be one call; what native code computes is rather needed.
_COMPUTES = {"native": 0.5}
# A function that spends less of its time on the main thread runs on several.
_ALONE = 0.99

# Another tool has CUPTI's callbacks: what a function waits for GPUs is not taken out of its own time.
_BESIDE = "waiting for the GPU? calls of CUDA are beside the thread in this run: strobe calls has their times"

_DOES = {
    "python": "mostly in the interpreter",
    "native": "mostly in native code that it calls",
    "collecting": "mostly collecting garbage",
    "gil": "mostly waiting for the GIL",
    "lock": "mostly waiting for a lock or another thread",
    "file": "mostly waiting for files",
    "socket": "mostly waiting for a socket or pipe",
    "sleep": "mostly asleep",
    "waiting": "mostly waiting for another thread or process",
    "threads": "mostly waiting for threads of native code that compute",
}


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield a finding for each Python function whose self time in the main process is at least 10 % of the usual step.

    Self time holds what is not recorded, too (C libraries, the standard library, sleeping): so a gain is promised only
    where most of it is in a call of a library that loops can mostly do without (see avoidable_times). A function with
    very many short operators is the business of the rule `operators`.
    """
    calls = usual_calls(trace)
    if calls is None:
        return
    usual, steps = calls.usual, calls.selection
    process = usual.steps.process
    own = {process: (steps.classes or {}).get(process, frozenset())}
    sums = path_statistics(trace, replace(steps, windows=steps.windows and steps.windows.alone(process), classes=own))
    regions = trace.regions.to_pylist()
    self_ns = np.bincount(sums.region, weights=sums.own_ns, minlength=len(regions))
    main_ns = np.bincount(calls.main.region, weights=calls.main.own_ns, minlength=len(regions))
    share = self_ns / max(1, calls.duration_ns)
    share[[row["paradigm"] != "python" for row in regions]] = 0.0
    alone = main_ns >= _ALONE * self_ns
    avoidable = {region: spare for region, spare in avoidable_times(trace).items() if alone[region]}
    for region, spare in avoidable.items():
        if spare.call is not None:
            share[region] = spare.share  # operators that a library calls for it are its own time, too
    tasks = [at.location for at in location_rows(trace) if (at.process, at.kind) == (process, "task")]
    beside = with_calls(trace, tasks)
    does = next((each.functions for each in host_times(trace) if each.process == process), {})
    called, rows = library_calls(trace, process), region_rows(trace)
    by_line = summed_lines(trace.side_table("lines"))
    for region in np.argsort(-share)[:MOST].tolist():
        if share[region] < LEAST_SHARE:
            yield Below(float(share[region]), LEAST_SHARE)
            break
        if alone[region] and share[region] > 1:
            continue  # its calls begin in usual steps, and last on in others: what it takes of a step is not known
        described, avoided = regions[region], avoidable.get(region)
        if avoided is not None and avoided.call is None:
            continue  # the business of the rule `operators`
        per_step = float(share[region]) * usual.median_ns
        lines = ""
        if described["line"]:
            name, pattern = _function(described), _pattern(described)
            counted = any((each.name, each.file) == (name, described["file"]) for each in by_line)
            show = f"strobe lines --function {shlex.quote(name)}" if counted else f"strobe run --lines {pattern}"
            lines = f"what it does there shows by line: {show}"
        state = _state(does, rows[region], float(share[region])) if alone[region] else ""
        if alone[region]:
            spent = f"{format_ns(per_step)} ({format_share(share[region])}) of a step"
            spent += f", {_DOES[state]}" if state else ""
            call = call_of(called, rows[region])
            spent += f", {format_share(call.share)} of that in {call.name}" if call is not None else ""
        else:
            spent = f"{format_ns(per_step)} a step, of all threads together"
        # A loop, or an expression, lies in its function: who calls that is another question.
        within = described["role"] == "loop" or described["name"].endswith(">")
        caller = "" if within else caller_of(sums, region_rows(trace), sums.region, region)
        known = avoided.call.sparable if avoided is not None and avoided.call is not None else None
        hints = [known.do if known is not None else "", caller and f"called by {caller}", _BESIDE if beside else lines]
        yield Finding(
            rule="python",
            what=f"{described['name']} itself takes {spent}",
            where=f"{described['file']}:{described['line']}" if described["line"] else "",
            do="; ".join(filter(None, hints)),
            gain_low_ns=round(avoided.low_ns) if avoided is not None else 0,
            gain_high_ns=round(avoided.high_ns if avoided is not None else per_step * _COMPUTES.get(state, 1)),
            confidence="low" if avoided is None else "medium",
            informative=avoided is None,
        )


def _function(region: Mapping[str, Any]) -> str:
    """The function that a region is, or that a loop lies in."""
    name: str = region["name"]
    return name.removeprefix("loop in ").rpartition(" at ")[0] if region["role"] == "loop" else name


def _pattern(region: Mapping[str, Any]) -> str:
    """What `--lines` calls the function that a region is, or that a loop lies in: a script by its file."""
    name = _function(region)
    return shlex.quote(Path(region["file"]).name if name == "<module>" else name)


def _state(functions: Mapping[str, Counter[str]], region: Region, share: float) -> str:
    """What a function does most of its time, from samples: a state, or "" where they are not clear.

    `share`: of the step's time that is its own. Where samples find it for less than half of that, it calls functions
    that were not recorded.
    """
    states = Counter[str]()
    for frame, own in functions.items():
        if is_of(frame, region):
            states.update(own)
    if states.total() < share / 2 * sum(own.total() for own in functions.values()) or not states:
        return ""
    (state, ns), *_ = states.most_common(1)
    return state if state in _DOES and 2 * ns >= sum(states.values()) else ""


RULE = Rule("python", "Python takes the time", run, needs=("python",))
