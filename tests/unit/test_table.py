"""Table: interchange, order, conditions, units."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import duckdb
import pandas
import polars
import pyarrow as pa
import pytest

import strobe
from strobe.errors import QueryError, UsageError
from strobe.model.schema import Column
from strobe.tables.table import Table, make_table

COLUMNS = (
    Column("name", "string", "", "name"),
    Column("calls", "int64", "", "executions"),
    Column("total_ns", "int64", "ns", "time"),
)
TABLE = make_table(COLUMNS, [("b", 2, 30), ("a", 1, None), ("c", 3, 10)], name="made", about="2 steps", note="partly")


def test_every_arrow_consumer_takes_a_table():
    assert pa.table(TABLE).num_rows == 3
    assert polars.DataFrame(TABLE)["calls"].to_list() == [2, 1, 3]
    assert pandas.DataFrame.from_arrow(TABLE)["name"].tolist() == ["b", "a", "c"]
    made = TABLE  # noqa: F841 - duckdb finds it by name
    assert duckdb.sql("select sum(calls) from made").fetchall() == [(6,)]
    assert TABLE.to_pandas()["calls"].sum() == TABLE.to_polars()["calls"].sum() == 6


def test_units_travel_in_the_field_metadata():
    assert TABLE.units == {"total_ns": "ns"}
    assert pa.table(TABLE).schema.field("total_ns").metadata[b"unit"] == b"ns"
    assert TABLE.source == "spans"


def test_csv_and_json_hold_every_row_and_null_stays_null():
    assert list(csv.reader(io.StringIO(TABLE.to_csv())))[2] == ["a", "1", ""]
    body = json.loads(TABLE.to_json())
    assert body["rows"][1] == {"name": "a", "calls": 1, "total_ns": None}
    assert (body["schema_version"], body["units"]) == (1, {"total_ns": "ns"})
    assert (body["about"], body["note"]) == ("2 steps", "partly")


def test_numbers_sort_from_large_to_small_and_text_from_a_to_z():
    assert TABLE.sort("calls").column("calls") == [3, 2, 1]
    assert TABLE.sort("name").column("name") == ["a", "b", "c"]
    assert TABLE.sort("calls", descending=False).column("calls") == [1, 2, 3]
    assert TABLE.sort("total_ns").column("total_ns") == [30, 10, None], "what is unknown comes last"


def test_conditions_keep_order_and_metadata():
    kept = TABLE.filter("calls > 1 and name <> 'x' -- a comment")
    assert kept.column("name") == ["b", "c"]
    assert kept.units == {"total_ns": "ns"}
    assert kept.about == "2 steps"


@pytest.mark.parametrize(
    "condition", ["nosuch > 1", "calls", "calls >", "true) union all select (true", "1; drop table t"]
)
def test_a_condition_that_is_none_is_refused(condition):
    with pytest.raises(QueryError):
        TABLE.filter(condition)


def test_an_unknown_column_lists_the_known_ones():
    for attempt in (lambda: TABLE.sort("nosuch"), lambda: TABLE.select(["nosuch"]), lambda: TABLE.column("nosuch")):
        with pytest.raises(UsageError, match="no column 'nosuch'") as caught:
            attempt()
        assert "total_ns" in caught.value.do


def test_html_escapes_and_says_how_many_rows_are_not_shown():
    assert callable(strobe.open)  # tables have cards where the whole interface is there
    table = make_table(COLUMNS, [(f"<b>{i}</b>", i, i) for i in range(250)])
    shown = table._repr_html_()
    assert "<b>" not in shown
    assert "50 more rows" in shown


def test_a_table_never_changes():
    before = TABLE.rows()
    TABLE.sort("calls"), TABLE.head(1), TABLE.filter("calls = 1"), TABLE.select(["name"])
    assert TABLE.rows() == before
    assert isinstance(TABLE.head(1), Table)


def test_mistakes_of_a_query_engine_that_was_there_first_stay_its_own() -> None:
    """Extension modules made with nanobind share what turns exceptions into Python's, unless they have a domain."""
    program = """
import duckdb
from strobe.native import core
core.__name__
try:
    duckdb.connect().sql("select nosuch from (select 1)")
except duckdb.BinderException:
    print("fine")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr
