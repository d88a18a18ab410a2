"""A comparison for people and for continuous integration: a table, a sentence, JUnit, Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np

from strobe.gate.baseline import Point
from strobe.gate.change_points import change_points
from strobe.gate.verdict import INCONCLUSIVE, OK, REGRESSED, Comparison, Row, step_times
from strobe.model import exit_codes
from strobe.model.schema import Column
from strobe.model.units import format_share
from strobe.present.text import markdown
from strobe.tables.table import Table, make_table

EXIT_CODES = {OK: exit_codes.OK, REGRESSED: exit_codes.FINDINGS, INCONCLUSIVE: exit_codes.INCONCLUSIVE}
_COLUMNS = (
    Column("class", "string", "", "class of the steps"),
    Column("measure", "string", "", "what is compared"),
    Column("name", "string", "", "function or kernel that makes a difference; empty: all of them"),
    Column("baseline", "float64", "", "in the baseline"),
    Column("now", "float64", "", "in the runs"),
    Column("unit", "string", "", "unit of both"),
    Column("change_share", "float64", "", "change as a share of the baseline"),
    Column("low_share", "float64", "", "lower end of its interval", extra=True),
    Column("high_share", "float64", "", "upper end of its interval", extra=True),
    Column("p", "float64", "", "probability of as large a difference by chance", extra=True),
    Column("verdict", "string", "", "ok, regressed, inconclusive; empty: only explains"),
)
_HISTORY = (
    Column("class", "string", "", "class of the steps"),
    Column("point", "int64", "", "number of the point in the file, from 0"),
    Column("name", "string", "", "name of the point"),
    Column("median_ns", "float64", "ns", "median step time"),
    Column("change_share", "float64", "", "where steps changed for good: by which share; else null"),
)
_MOST_POINTS = 200  # of a history, the last ones: the search takes the square of them


def table(comparison: Comparison) -> Table:
    """Return a row for each comparison."""
    return make_table(_COLUMNS, comparison.rows, name="gate", note="; ".join(comparison.notes))


def sentence(comparison: Comparison) -> str:
    """Return the verdict, what caused it, and what is missing for another one."""
    rows = [row for row in comparison.rows if row.verdict == comparison.verdict != OK]
    text = "; ".join([comparison.verdict, *(_in_words(row, comparison.rows) for row in rows)])
    if comparison.verdict == INCONCLUSIVE and comparison.further_pairs:
        text += f"; about {comparison.further_pairs} further pairs of runs would decide"
    return text


def _in_words(row: Row, rows: Sequence[Row]) -> str:
    causes = [each for each in rows if each[:2] == row[:2] and each.name]
    named = ", ".join(f"{each.name} {each.baseline:g} -> {each.now:g}" for each in causes[:3])
    more = f" and {len(causes) - 3} others" if len(causes) > 3 else ""
    between = ""
    if row.low is not None and row.high is not None:
        between = f" ({_signed(row.low)} to {_signed(row.high)})"
    return f"{row.measure} of {row.step_class} {row.baseline:.4g} -> {row.now:.4g} {row.unit}{between}" + (
        f": {named}{more}" if named else ""
    )


def _signed(share: float) -> str:
    return f"{'-' if share < 0 else '+'}{format_share(abs(share))}"


def junit(comparison: Comparison) -> str:
    """Return the report that continuous integration reads: a test for each row that decides."""
    decided = [row for row in comparison.rows if row.verdict]
    counts = {each: str(sum(row.verdict == each for row in decided)) for each in (REGRESSED, INCONCLUSIVE)}
    suite = ElementTree.Element(
        "testsuite",
        name="strobe check",
        tests=str(len(decided)),
        failures=counts[REGRESSED],
        errors="0",
        skipped=counts[INCONCLUSIVE],
    )
    for row in decided:
        case = ElementTree.SubElement(suite, "testcase", classname=f"strobe.{row.step_class}", name=row.measure)
        if row.verdict != OK:
            kind = "failure" if row.verdict == REGRESSED else "skipped"
            ElementTree.SubElement(case, kind, message=_in_words(row, comparison.rows))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def in_markdown(comparison: Comparison) -> str:
    """Return the verdict and the table, for a comment on a change."""
    notes = "".join(f"\n- {note}" for note in comparison.notes)
    return f"**strobe check: {sentence(comparison)}**\n\n{markdown(table(comparison))}{notes}\n"


def history(points: Sequence[Point]) -> Table:
    """Return the median step time of every point by class, and where it changed for good."""
    first = max(0, len(points) - _MOST_POINTS)
    by_class: dict[str, list[tuple[int, float]]] = {}
    for number, point in enumerate(points[first:], first):
        for name, median_ns in step_times(point.runs).items():
            by_class.setdefault(name, []).append((number, median_ns))
    rows = []
    for name, series in sorted(by_class.items()):
        values = np.array([value for _, value in series])
        ends = [0, *change_points(np.log(values)), len(values)]
        medians = [float(np.median(values[begin:end])) for begin, end in pairwise(ends)]
        changes = {at: new / old - 1 for at, (old, new) in zip(ends[1:-1], pairwise(medians), strict=True)}
        rows += [(name, at, points[at].name, value, changes.get(k)) for k, (at, value) in enumerate(series)]
    return make_table(_HISTORY, rows, name="history")
