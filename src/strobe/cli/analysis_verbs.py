"""An analysis as a verb; and what some print beside their table: drawings, trees, the JSON of other tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from strobe.cli.options import add_options, add_workers, answering, chooses_rows, emit, write
from strobe.errors import UsageError
from strobe.model import exit_codes
from strobe.model.option import Option
from strobe.model.terminal import talk

if TYPE_CHECKING:
    from strobe.api.trace import Trace
    from strobe.model.plugins import Analysis

Answer = Callable[["Trace", dict[str, Any], argparse.Namespace], bool]


def run(verb: str, analysis: Analysis, words: list[str]) -> int:
    """Run an analysis as a verb; return the exit code."""
    forms = FORMS.get(analysis.name)
    reader = answering(verb, analysis.question)
    add_options(reader.add_argument_group("this verb"), (*analysis.options, *(forms.options if forms else ())))
    if forms and forms.others:
        reader.add_argument("others", nargs="*", metavar="TRACE", help=forms.others)
    add_workers(reader)
    arguments = reader.parse_args(words)
    values = vars(arguments)
    options = {option.name: values[option.keyword] for option in analysis.options}
    from strobe.api.trace import open_trace  # after what `--help` prints: this import takes ten times as long

    with open_trace(
        arguments.trace,
        jobs=arguments.jobs,
        scheduler=arguments.scheduler,
        cluster=arguments.cluster,
        cluster_options=dict(arguments.cluster_option),
    ) as trace:
        if forms and forms.answer(trace, options, arguments):
            return exit_codes.OK
        return emit(trace.ask(analysis.name, **options), arguments)


class Forms(NamedTuple):
    """Other forms of an analysis: their options, and the function that prints one of them.

    `answer(trace, options of the analysis, arguments)` returns False where the user asked for the table. `others`:
    what the verb does with more traces, which are then `arguments.others`.
    """

    options: tuple[Option, ...]
    answer: Answer
    others: str = ""


def _compare(trace: Trace, options: dict[str, Any], arguments: argparse.Namespace) -> bool:
    if len(arguments.others) > 1 or (arguments.others and options["other"]):
        raise UsageError("compare takes two traces", do="strobe compare A B")
    options["other"] = options["other"] or next(iter(arguments.others), None)
    return False


def _efficiency(trace: Trace, options: dict[str, Any], arguments: argparse.Namespace) -> bool:
    if not arguments.others:
        if arguments.weak:
            raise UsageError("--weak compares several traces", do="strobe efficiency A.strobe B.strobe --weak")
        return False
    from strobe.answers.ranks.efficiency import scaling
    from strobe.api.trace import open_trace

    others = [(name, open_trace(name, jobs=arguments.jobs)) for name in arguments.others]
    emit(scaling([(arguments.trace, trace), *others], weak=arguments.weak, **options), arguments)
    return True


def _operators(trace: Trace, options: dict[str, Any], arguments: argparse.Namespace) -> bool:
    if arguments.op_analyse is None:
        return False
    names = [name.strip() for name in arguments.op_analyse.split(",") if name.strip()]
    if not names:
        raise UsageError("--op-analyse needs the name or type of an operator")
    write(trace.op_analyse(names, arguments.device_id) + "\n", arguments.output, data=True)
    return True


def _structure(trace: Trace, options: dict[str, Any], arguments: argparse.Namespace) -> bool:
    from strobe.present.text import supports

    graph = arguments.svg is not None or arguments.dot
    if not graph and (chooses_rows(arguments) or arguments.format not in (None, "json")):
        return False
    structure = trace.structure(**options)
    if arguments.svg is not None:
        write(structure.to_svg(), arguments.svg, data=True)
    elif arguments.dot:
        write(structure.to_dot(), arguments.output, data=True)
    elif arguments.format == "json":
        write(structure.to_json() + "\n", arguments.output, data=True)
    elif not structure.levels:
        talk(structure.text().strip())
    else:
        write(structure.text(unicode=arguments.output is not None or supports("×→", sys.stdout)), arguments.output)
    return True


# By analysis.
FORMS = {
    "compare": Forms((), _compare, "The trace to compare with the first."),
    "efficiency": Forms(
        (Option("weak", "Of several traces: the work of a step grows with the number of ranks.", bool, False),),
        _efficiency,
        "Traces of the same program on other numbers of ranks, to compare with the first.",
    ),
    "operators": Forms(
        (
            Option(
                "op_analyse",
                "Print the costs of these operators (types or names) by input shape, as JSON with MindSpore's keys.",
                also=("--op-analyze",),
                metavar="A,B,...",
            ),
            Option("device_id", "GPU for --op-analyse. Default: 0.", int, least=0, metavar="N"),
        ),
        _operators,
    ),
    "structure": Forms(
        (
            Option("dot", "Print the folded flow graph for Graphviz.", bool, False),
            Option("svg", "Draw the folded flow graph into this file.", metavar="FILE"),
        ),
        _structure,
    ),
}
