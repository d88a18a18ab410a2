"""Methods of Trace made from declarations of analyses: signature, documentation, and how both read as text."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, Literal

from strobe import registry
from strobe.model.columns import GIVEN
from strobe.model.kinds import RECORDED_WITH
from strobe.model.option import Option
from strobe.model.plugins import Analysis
from strobe.model.schema import Column
from strobe.tables.table import Table

_WIDTH = 100


class AnalysisMethod:
    """Stands for the method of an analysis until somebody looks at it: only then is its declaration imported."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Callable[..., Table]:
        analysis = registry.load("analyses", self._name)
        assert isinstance(analysis, Analysis)
        method = method_of(analysis)
        holder = next(each for each in owner.__mro__ if each.__dict__.get(self._name) is self)
        setattr(holder, self._name, method)
        return method if instance is None else method.__get__(instance, owner)


def method_of(analysis: Analysis) -> Callable[..., Table]:
    """Return the method of an analysis, with the signature and the documentation of its declaration."""

    def method(self: Any, **options: object) -> Table:
        table: Table = self.ask(analysis.name, **options)
        return table

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        inspect.Parameter(
            option.keyword, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=type_of(option)
        )
        for option in analysis.options
    ]
    method.__name__, method.__qualname__ = analysis.name, f"Trace.{analysis.name}"
    method.__doc__ = documentation(analysis)
    method.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": Table}
    signature = inspect.Signature([own, *parameters], return_annotation=Table)
    method.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` asks first
    return method


def type_of(option: Option) -> Any:
    """Return the type of an option's value in Python: a Literal where it has choices."""
    kind: Any = Literal[option.choices] if option.choices else option.type
    return kind | None if option.default is None else kind


def declaration(analysis: Analysis) -> str:
    """Return the method as a stub file has it: its signature and its documentation."""
    parameters = "".join(
        f"        {each.keyword}: {_type_text(each)} = {_text(each.default)},\n" for each in analysis.options
    )
    signature = f"\n        self,\n        *,\n{parameters}    " if parameters else "self"
    text = textwrap.indent(f'"""{documentation(analysis)}\n"""', "    " * 2)
    return f"    def {analysis.name}({signature}) -> Table:\n{text}\n"


def _type_text(option: Option) -> str:
    choices = ", ".join(map(_text, option.choices))
    kind = f"Literal[{choices}]" if option.choices else option.type.__name__
    return f"{kind} | None" if option.default is None else kind


def _text(value: object) -> str:
    """Return a value as code: texts between double quotes, as everywhere here."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def documentation(analysis: Analysis) -> str:
    """Return what `help` shows of an analysis: question, formulas, options, columns with units, and errors."""
    _, _, details = analysis.details.partition("\n\n")
    paragraphs = (textwrap.fill(each, _WIDTH, break_on_hyphens=False) for each in details.strip().split("\n\n") if each)
    return "\n\n".join([analysis.question, *paragraphs, *_sections(analysis)])


def _sections(analysis: Analysis) -> Iterator[str]:
    if analysis.options:
        yield _section("Options", (_option_text(each) for each in analysis.options))
    yield _section("Columns", map(column_text, analysis.columns))
    if analysis.needs:
        recorded = (RECORDED_WITH[need] for need in analysis.needs)
        yield _section("Needs", (f"{what}: strobe run {option}" if option else what for what, option in recorded))
    no_choice = ("an option has no such choice",) if any(each.choices for each in analysis.options) else ()
    if raises := (*analysis.raises, *no_choice):
        yield _section("Raises", [f"UsageError: where {'; or where '.join(raises)}."])


def _option_text(option: Option) -> str:
    unit = f" In {option.unit}." if option.unit else ""
    return f"{option.keyword}: {option.help}{unit}"


def column_text(column: Column) -> str:
    """Return a column in one line: `total_ns (int64, ns): sum of the durations`."""
    unit = f", {column.unit}" if column.unit else ""
    condition = condition_text(column)
    return f"{column.name} ({column.type}{unit}): {column.meaning}{f' [{condition}]' if condition else ''}"


def condition_text(column: Column) -> str:
    """Return with which options an answer has a column, empty where it always has: `by=step or class`."""
    return ", ".join(
        f"with {name}" if allowed == (GIVEN,) else f"{name}={' or '.join(allowed)}" for name, allowed in column.when
    )


def _section(title: str, lines: Iterator[str] | list[str]) -> str:
    wrapped = (
        textwrap.fill(line, _WIDTH, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)
        for line in lines
    )
    return "\n".join([f"{title}:", *wrapped])
