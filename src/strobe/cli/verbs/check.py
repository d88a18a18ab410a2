"""`strobe check TRACE... --baseline FILE`: whether runs are slower, or do more, than those of a baseline."""

from __future__ import annotations

from strobe.cli.gates import VERDICTS, add_comparison, finish
from strobe.cli.options import add_options, add_output, emit, reading
from strobe.errors import UsageError
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.model.verb import Verb

_DESCRIPTION = """\
Compare runs with those of a baseline, by class of steps. Counts per step (kernels, launches, syncs, bytes copied,
collectives, calls, ...) are exact: one run is enough. Times need several runs of each side, interleaved with those of
the other side.
"""
_OPTIONS = (
    Option("baseline", "File of the baseline: its last point is compared.", metavar="FILE"),
    Option("save", "Append the runs to the baseline as a new point, instead of comparing them.", bool, False),
    Option("name", "With --save: name of the point. Default: the name of its first trace.", metavar="NAME"),
    Option("history", "Show where step times changed for good along the points of this baseline.", metavar="FILE"),
    Option("other_machine", "Compare with a baseline of another CPU, GPU or driver, too.", bool, False),
    Option("apart", "Believe times of runs that were not interleaved with those of the baseline.", bool, False),
)


def run(words: list[str]) -> int:
    """Parse the command line; compare runs, keep them, or show a history."""
    reader = reading("check", _DESCRIPTION, trace=False, epilog=VERDICTS)
    reader.add_argument("traces", nargs="*", metavar="TRACE", help="Paths of traces, or last, last~1, ...")
    own = reader.add_argument_group("this verb")
    add_options(own, _OPTIONS)
    add_comparison(own)
    add_output(reader)
    arguments = reader.parse_args(words)
    if arguments.history:
        if arguments.traces or arguments.baseline:
            raise UsageError("--history takes neither traces nor --baseline")
        from strobe.gate.baseline import read_points
        from strobe.gate.report import history

        return emit(history(read_points(arguments.history)), arguments)
    if not arguments.baseline:
        raise UsageError("with what to compare?", do="strobe check TRACE... --baseline FILE")
    from strobe.api.trace import open_trace
    from strobe.gate.baseline import Point, add_point, read_points
    from strobe.gate.runs import run_of
    from strobe.gate.verdict import compare

    runs = [run_of(open_trace(name), name) for name in arguments.traces or ["last"]]
    if arguments.save:
        add_point(arguments.baseline, Point(arguments.name or runs[0].name, runs))
        talk(f"{len(runs)} run{'s' if len(runs) > 1 else ''} saved in {arguments.baseline}")
        return 0
    points = read_points(arguments.baseline)
    comparison = compare(
        points[-1].runs,
        runs,
        metrics=arguments.metric,
        threshold=arguments.threshold,
        apart=arguments.apart,
        other_machine=arguments.other_machine,
    )
    return finish(comparison, arguments)


VERB = Verb("check", "Compare runs with a baseline: exact counts, and times that know noise", run)
