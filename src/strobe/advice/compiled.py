"""Rule `compiled`: torch.compile breaks a step into several graphs, or has compiled a function again and again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from strobe.breakdown.usual_calls import usual_calls
from strobe.model.plugins import Finding, Rule
from strobe.trace.definition_rows import region_rows
from strobe.trace.trace import Trace

# What follows a graph break is a function of its own (torch/_dynamo/bytecode_transformation.py).
_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+)_at_(\d+)")
# The number of a function, and how often it has been compiled before; after 8 times it is not compiled any more.
_REGION = re.compile(r"^Torch-Compiled Region: \d+/(\d+)")
_OFTEN = 3
_SHOWN = 3


def run(trace: Trace) -> Iterator[Finding]:
    """Yield findings, as information: graph breaks in the usual step, and functions that are compiled a fourth time.

    What they cost is not known: work between graphs is not fused, and each graph is entered from Python.
    """
    calls = usual_calls(trace)
    if calls is None:
        return
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
        yield Finding(
            rule="compiled",
            what=f"code of torch.compile breaks off {often} a step, in {most}",
            do="TORCH_LOGS=graph_breaks gives the reasons (print, .item(), data-dependent if, C functions); fullgraph="
            "True makes each an error",
            informative=True,
        )
    if again >= _OFTEN:
        yield Finding(
            rule="compiled",
            what=f"torch.compile has compiled a function of the step {again + 1} times",
            do="TORCH_LOGS=recompiles gives the reasons; torch.compile(dynamic=True) or mark_dynamic() for sizes that "
            "vary, tensors instead of Python numbers",
            informative=True,
        )


RULE = Rule("compiled", "Code of torch.compile breaks off, or is compiled again", run)
