"""What can be asked of a trace: every analysis with its options, and every table of SQL with its columns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypedDict

from strobe import registry
from strobe.answers.sql import columns_of_tables
from strobe.gpu.devices import devices, no_device
from strobe.model.columns import DEVICE
from strobe.model.plugins import Analysis
from strobe.model.schema import Column
from strobe.server.routing.endpoints import MB, route
from strobe.server.trace_context import TraceContext


class OptionFacts(TypedDict):
    """An option of an analysis; `kind`: whole, real, text, choice, flag or duration."""

    name: str
    help: str
    kind: str
    choices: list[str]
    default: str


class ColumnFacts(TypedDict):
    """A column of a table."""

    name: str
    type: str
    unit: str
    meaning: str


class AnalysisFacts(TypedDict):
    """An analysis. `details`: how its columns are computed. `missing`: what the run lacks for it, a sentence, or ""."""

    name: str
    subject: str
    question: str
    details: str
    options: list[OptionFacts]
    missing: str


class TableFacts(TypedDict):
    """A table of SQL, by its name; `analysis`: it is the answer of one."""

    name: str
    analysis: bool
    columns: list[ColumnFacts]


class Catalogue(TypedDict):
    """All analyses, by subject and name, and all tables of SQL."""

    analyses: list[AnalysisFacts]
    tables: list[TableFacts]


@route("catalogue", most_bytes=4 * MB)
def catalogue(context: TraceContext) -> Catalogue:
    """The questions that can be asked: analyses with their options, and the tables of SQL with their columns."""
    trace, analyses = context.trace, _analyses()
    gpu = "" if devices(trace) else no_device(trace)
    return {
        "analyses": [
            _facts(each, trace.missing(each.needs) or (gpu if DEVICE in each.columns else "")) for each in analyses
        ],
        "tables": _tables(),
    }


@cache
def _analyses() -> list[Analysis]:
    found = (registry.load("analyses", name) for name in registry.names("analyses"))
    analyses = [each for each in found if isinstance(each, Analysis)]
    return sorted(analyses, key=lambda each: (_subject(each), each.name))


@cache
def _tables() -> list[TableFacts]:
    tables = columns_of_tables()
    return [
        *(_table(name, columns, analysis=False) for name, columns in tables.items()),
        *(
            _table(each.name, each.columns_with(), analysis=True)
            for each in sorted(_analyses(), key=lambda each: each.name)
            if each.name not in tables
        ),
    ]


def _subject(analysis: Analysis) -> str:
    return analysis.module.split(".")[-2]


def _facts(analysis: Analysis, missing: str) -> AnalysisFacts:
    return {
        "name": analysis.name,
        "subject": _subject(analysis),
        "question": analysis.question,
        "details": analysis.details,
        "options": [
            {
                "name": option.name,
                "help": option.help,
                "kind": option.kind,
                "choices": list(option.choices),
                "default": option.default_text,
            }
            for option in analysis.options
        ],
        "missing": missing,
    }


def _table(name: str, columns: Iterable[Column], *, analysis: bool) -> TableFacts:
    listed: list[ColumnFacts] = [
        {"name": each.name, "type": each.type, "unit": each.unit, "meaning": each.meaning} for each in columns
    ]
    return {"name": name, "analysis": analysis, "columns": listed}
