"""What the verbs with a gate share: options of the comparison, and how they print it and end."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from strobe.cli.options import add_options, emit, write
from strobe.model.option import Option
from strobe.model.terminal import talk
from strobe.record.options.recorder_options import share

if TYPE_CHECKING:
    from strobe.gate.verdict import Comparison

_METRICS = ("median", "mean", "p99")
VERDICTS = "Ends with 0 (ok), 1 (regressed) or 3 (inconclusive: too few runs, or too much noise)."


def _metrics(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not set(names) <= set(_METRICS):
        raise ValueError(f"'{text}' is not some of {', '.join(_METRICS)}")
    return names


_COMPARISON = (
    Option(
        "metric",
        f"Metrics of step times that decide: {', '.join(_METRICS)}. A median does not see one slow step in ten.",
        parse=_metrics,
        default="median,mean",
        metavar="A,B",
    ),
    Option("threshold", "Accept steps that are this much longer.", parse=share, default="1%", metavar="PERCENT"),
    Option("junit", "Write the verdicts as JUnit XML to this file.", metavar="FILE"),
    Option("markdown", "Write the verdict and the table as Markdown to this file.", metavar="FILE"),
)


def add_comparison(target: argparse._ActionsContainer) -> None:
    """Add the options of a comparison."""
    add_options(target, _COMPARISON)


def finish(comparison: Comparison, arguments: argparse.Namespace) -> int:
    """Print a comparison, write what was asked for, and return the exit code of its verdict."""
    from strobe.gate import report

    emit(report.table(comparison), arguments)
    if arguments.junit:
        write(report.junit(comparison), arguments.junit, data=True)
    if arguments.markdown:
        write(report.in_markdown(comparison), arguments.markdown)
    sys.stdout.flush()
    talk(report.sentence(comparison))
    return report.EXIT_CODES[comparison.verdict]
