"""`strobe operators TRACE`: which operators take the time, on the host and on GPUs."""

from __future__ import annotations

from strobe.cli.options import add_options, add_workers, emit, parser, workers_of, write
from strobe.model.verb import Verb


def run(words: list[str]) -> int:
    """Parse the command line and print the table, or MindSpore's JSON about single operators."""
    from strobe.analyses.operators import ANALYSIS

    reader = parser("operators", ANALYSIS.question)
    own = reader.add_argument_group("this verb")
    add_options(own, ANALYSIS.options)
    own.add_argument(
        "--op-analyse",
        "--op-analyze",
        metavar="A,B,...",
        help="print what these operators (types or names) cost by shape of the inputs, as JSON with MindSpore's keys",
    )
    own.add_argument("--device-id", type=int, metavar="N", help="GPU that --op-analyse is about (0)")
    add_workers(reader)
    arguments = reader.parse_args(words)
    from strobe.store.trace import open_trace

    if arguments.op_analyse is not None:
        names = [name.strip() for name in arguments.op_analyse.split(",") if name.strip()]
        if not names:
            reader.error("--op-analyse needs the name or type of an operator")
        write(open_trace(arguments.trace).op_analyse(names, arguments.device_id) + "\n", arguments.output)
        return 0
    options = {option.name: getattr(arguments, option.name) for option in ANALYSIS.options}
    with open_trace(arguments.trace, **workers_of(arguments)) as trace:
        return emit(trace.ask("operators", **options), arguments)


VERB = Verb("operators", "Which operators take the time, on the host and on GPUs", run)
