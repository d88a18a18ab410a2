"""`strobe summary TRACE`: the verdict, one step and its parts, findings, and the quality of the data."""

from __future__ import annotations

from strobe.cli.options import add_gate, add_options, answering, chooses_rows, emit, gated, page_form, write
from strobe.model.option import Option
from strobe.model.verb import Verb

_DESCRIPTION = "Show the verdict, one step and its parts, findings, and the quality of the data."
_OPTIONS = (
    Option(
        "step_level",
        "Use the iterations of this loop as steps: +1 (around it), -1 (inside), or its name.",
        metavar="LEVEL",
    ),
    Option("step_at", "Begin a step at each event of this name.", metavar="EVENT"),
)


def run(words: list[str]) -> int:
    """Parse the command line and print the summary."""
    reader = answering("summary", _DESCRIPTION)
    own = reader.add_argument_group("this verb")
    add_options(own, _OPTIONS)
    add_gate(own, "a finding is worth fixing (those that are only good to know do not count)")
    arguments = reader.parse_args(words)

    from strobe.api.trace import open_trace
    from strobe.present.summary import summarise
    from strobe.present.summary_text import summary_text
    from strobe.steps.finding.requested_steps import Asked
    from strobe.steps.steps import choose_steps

    trace = open_trace(arguments.trace)
    if arguments.format == "nvprof":
        from strobe.present.nvprof_layout import summary as nvprof_summary

        write(nvprof_summary(trace), arguments.output)
        return 0
    choose_steps(trace, Asked(arguments.step_level, arguments.step_at))
    summary = summarise(trace)
    rows = chooses_rows(arguments)
    if arguments.format == "json" and not rows:
        write(summary.to_json() + "\n", arguments.output, data=True)
    elif arguments.format or rows:
        from strobe.present.summary_table import summary_table

        emit(summary_table(summary), arguments)
    else:
        unicode, width = page_form(arguments.output)
        write(summary_text(summary, unicode=unicode, width=width), arguments.output)
    return gated(arguments, any(not finding.informative for finding in summary.findings))


VERB = Verb("summary", "Show the verdict, one step and its parts, and what to fix", run)
