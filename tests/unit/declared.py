"""Comparing answers with what analyses declare."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product

from strobe.model.plugins import Analysis
from strobe.model.schema import Column
from strobe.tables.table import Table, arrow_schema


def variants(analysis: Analysis) -> Iterator[dict[str, str]]:
    """Every combination of values of the options that columns depend on."""
    names = sorted({name for column in analysis.columns for name, _ in column.when})
    choices = {option.name: option.choices for option in analysis.options}
    for values in product(*(choices[name] or ("",) for name in names)):
        yield dict(zip(names, values, strict=True))


def is_declared(answer: Table, columns: tuple[Column, ...]) -> None:
    """Fail where an answer has not exactly the declared columns, in order; `name*` stands for any number of them."""
    left = list(answer.to_arrow().schema)
    for column in columns:
        if column.name.endswith("*"):
            while left and fnmatchcase(left[0].name, column.name):
                assert str(left.pop(0).type) == "double"
            continue
        field, wanted = left.pop(0), arrow_schema([column]).field(0)
        assert (field.name, field.type) == (column.name, wanted.type)
        assert answer.units.get(column.name, "") == column.unit
    assert left == []
