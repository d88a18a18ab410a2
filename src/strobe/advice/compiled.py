"""Rule `compiled`: torch.compile breaks a step into several graphs, or has compiled a function again and again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from strobe.breakdown.usual_calls import UsualCalls, usual_calls
from strobe.model.plugins import Below, Evidence, Finding, Rule
from strobe.model.units import format_ns, format_number_of
from strobe.operators.compilations import Event, cause, compilation_events
from strobe.steps.step_times import step_times
from strobe.trace.definition_rows import processes_of_locations, region_rows
from strobe.trace.trace import Trace

# What follows a graph break is a function of its own (torch/_dynamo/bytecode_transformation.py).
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+)_at_(\d+)")
# The number of a function, and how often it has been compiled before; after 8 times it is not compiled any more.
_REGION = re.compile(r"^Torch-Compiled Region: \d+/(\d+)")
_OFTEN = 3
_SHOWN = 3
# Compiling again is worth a finding from this share of the time of all steps on.
_LEAST_SHARE = 0.01
_LESS_OFTEN = (
    "torch.compile(dynamic=True) or mark_dynamic() for sizes that vary, tensors instead of Python numbers; "
    "strobe compile --by event"
)


def run(trace: Trace) -> Iterator[Finding | Below]:
    """Yield findings: compilations in the loop with their time; as information, graph breaks in the usual step, and
    functions that are compiled a fourth time.

    What a graph break costs is not known: work between graphs is not fused, and each graph is entered from Python.
    """
    calls = usual_calls(trace)
    if calls is None:
        return
    events = compilation_events(trace)
    regions, breaks, again = region_rows(trace), Counter[str](), 0
    for number, count in zip(calls.main.region.tolist(), calls.main.calls.tolist(), strict=True):
        name = regions[number].name
        if count and (found := _RESUMED.search(name)):
            breaks[f"{found[1]} (line {found[2]})"] += count
        elif count and (found := _REGION.match(name)):
            again = max(again, int(found[1]))
    if breaks.total() >= calls.steps:
        times = breaks.total() / calls.steps
        often = "once" if times == 1 else f"{times:.3g} times"
        most = ", ".join(name for name, _ in breaks.most_common(_SHOWN))
        reasons = Counter(cause(each) for each in events if each.event == "graph_break")
        known = "; ".join(text for text, _ in reasons.most_common(_SHOWN))
        ask = "TORCH_LOGS=graph_breaks gives the reasons (print, .item(), data-dependent if, C functions)"
        yield Finding(
            rule="compiled",
            what=f"code of torch.compile breaks off {often} a step, in {most}",
            do=f"{known or ask}; fullgraph=True makes each an error",
            informative=True,
        )
    if events:
        yield from _compiled_again(trace, calls, events)
    elif again >= _OFTEN:
        yield Finding(
            rule="compiled",
            what=f"torch.compile has compiled a function of the step {again + 1} times",
            do=f"TORCH_LOGS=recompiles gives the reasons; {_LESS_OFTEN.partition(';')[0]}",
            informative=True,
        )


def _compiled_again(trace: Trace, calls: UsualCalls, events: list[Event]) -> Iterator[Finding | Below]:
    """Yield what compiling again costs the steps behind the first one, where it is much: that time is gained."""
    process, process_of = calls.usual.steps.process, processes_of_locations(trace)
    number, begin, end = step_times(trace, process)
    if len(number) < 2:
        return
    own = [each for each in events if process_of[each.location] == process and begin[1] <= each.time_ns < end[-1]]
    compiled = [each for each in own if each.event == "compile" and each.again]
    total_ns, loop_ns = sum(each.duration_ns for each in compiled), int((end - begin).sum())
    if not compiled or not loop_ns:
        return
    if total_ns < _LEAST_SHARE * loop_ns:
        yield Below(total_ns / loop_ns, _LEAST_SHARE)
        return
    most, _ = Counter(each.function for each in compiled).most_common(1)[0]
    causes = Counter(cause(each) for each in own if each.event == "recompile")
    why = f": {causes.most_common(1)[0][0]}" if causes else ""
    steps = len(np.unique(np.searchsorted(begin, [each.time_ns for each in compiled], side="right")))
    yield Finding(
        rule="compiled",
        what=f"torch.compile compiles again in {format_number_of(steps, 'step')}, most often {most}{why}; "
        f"that takes {format_ns(total_ns)} of the loop",
        do=_LESS_OFTEN,
        gain_low_ns=total_ns // len(number),
        gain_high_ns=total_ns // len(number),
        confidence="high",
        evidence=tuple(
            Evidence(start_ns=each.time_ns, duration_ns=each.duration_ns, location=each.location, text=each.compile_id)
            for each in compiled[:_SHOWN]
        ),
    )


RULE = Rule("compiled", "Code of torch.compile breaks off, or is compiled again", run)
