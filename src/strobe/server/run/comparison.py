"""A run beside another one of the server: sentences, and the way from a step of A to one of B."""

from __future__ import annotations

from typing import TypedDict

from strobe.answers.steps.compare import chosen_sides, sentences_of
from strobe.comparison.sides import compared
from strobe.comparison.waterfalls import Waterfall, waterfalls
from strobe.model.option import Option
from strobe.server.routing.endpoints import MB, parameter, route
from strobe.server.trace_context import TraceContext
from strobe.trace.definition_rows import ranks_of
from strobe.trace.trace import Trace

_MOST_CHANGES = 14
_MOST_NAME = 4096


class ClassOfSteps(TypedDict):
    """A class of steps that both runs have: its lanes."""

    name: str
    lanes: list[Waterfall]


class Comparison(TypedDict):
    """Run A beside run B: names, ranks, sentences about the differences, and the classes of steps of both."""

    a: str
    b: str
    a_ranks: list[int]
    b_ranks: list[int]
    sentences: list[str]
    classes: list[ClassOfSteps]


@route(
    "comparison",
    parameter("other", "B: name of a run of this server", str, most=_MOST_NAME),
    Option("ranks", "rank of A and of B, with a comma between them; default: all", str, "", most=100),
    most_bytes=4 * MB,
    slow=True,
)
def comparison(context: TraceContext, other: str, ranks: str) -> Comparison:
    """What another run (B) does otherwise in a step: changes that lead from the step of this one (A) to that of B."""
    a, b = chosen_sides(context.read, context.other(other), ranks or None, None, None)
    found, mix = compared(a, b)
    return {
        "a": context.name,
        "b": other,
        "a_ranks": _ranks(context.read),
        "b_ranks": _ranks(b.trace),
        "sentences": sentences_of(found, mix, a, b),
        "classes": [{"name": each.name, "lanes": waterfalls(each, _MOST_CHANGES)} for each in found],
    }


def _ranks(trace: Trace) -> list[int]:
    return sorted({rank for rank in ranks_of(trace) if rank is not None})
