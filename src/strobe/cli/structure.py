"""`strobe structure TRACE`: the loops of the program as a tree, which of them is the step, and why."""

from __future__ import annotations

import sys

from strobe.cli.options import add_options, emit, parser, write
from strobe.model.verb import Verb


def run(words: list[str]) -> int:
    """Parse the command line and print the loop tree, or the graph."""
    from strobe.analyses.structure import ANALYSIS

    reader = parser("structure", __doc__ or "")
    own = reader.add_argument_group("this verb")
    add_options(own, ANALYSIS.options)
    own.add_argument("--dot", action="store_true", help="print the folded flow graph for Graphviz")
    own.add_argument("--svg", metavar="FILE", help="draw the folded flow graph")
    arguments = reader.parse_args(words)
    options = {option.name: getattr(arguments, option.name) for option in ANALYSIS.options}

    from strobe.present.text import supports, talk
    from strobe.store.trace import open_trace

    trace = open_trace(arguments.trace)
    rows = arguments.where or arguments.sort or arguments.top is not None or arguments.columns
    if arguments.svg is not None:
        write(trace.structure(**options).to_svg(), arguments.svg)
        return 0
    if arguments.dot:
        write(trace.structure(**options).to_dot(), arguments.output)
        return 0
    if arguments.format == "json" and not rows:
        write(trace.structure(**options).to_json() + "\n", arguments.output)
        return 0
    if arguments.format or rows:
        return emit(trace.ask("structure", **options), arguments)
    structure = trace.structure(**options)
    fancy = arguments.output is not None or supports("×→", sys.stdout)
    if not structure.levels:
        talk(structure.text().strip())
        return 0
    write(structure.text(unicode=fancy), arguments.output)
    return 0


VERB = Verb("structure", "The loops of the program: which is the step, what each costs", run)
