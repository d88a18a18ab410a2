"""What the page can ask of any trace: the list of analyses, and SQL."""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from strobe import registry
from strobe.answers import sql
from strobe.errors import QueryError
from strobe.model.cancellation import Cancellation, CancelledWorkError
from strobe.tables import query_engine
from tests.unit.hand_made import MS, make_trace, train_steps
from tests.unit.test_server import Page, page_of

# Rows of rows of rows: it would run for hours.
ENDLESS = "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c where a.range + b.range = c.range"


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return page_of({"main": train_steps(12)}, folder=tmp_path)


def table_of(page: Page, query: str) -> pa.Table:
    answer = page.get(f"sql?{urlencode({'query': query})}")
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()


def test_every_analysis_is_listed_with_its_options(page: Page) -> None:
    listed = {each["name"]: each for each in page.get("catalogue").json()["analyses"]}
    assert sorted(listed) == registry.names("analyses")
    (by,) = (option for option in listed["kernels"]["options"] if option["name"] == "by")
    assert (by["kind"], by["default"], by["choices"][0]) == ("choice", "name", "name")
    assert listed["kernels"]["subject"] == "gpu"
    for name, each in listed.items():
        for option in each["options"]:
            assert option["default"] in ("", *option["choices"]) or not option["choices"], (name, option)


def test_every_table_has_the_columns_that_are_listed(page: Page) -> None:
    tables = [each for each in page.get("catalogue").json()["tables"] if not each["analysis"]]
    assert {"spans", "totals", "statistics", "links", "regions"} <= {each["name"] for each in tables}
    trace = make_trace({"main": train_steps(3)})
    for table in tables:
        found = sql.query(trace, f"select * from {table['name']} limit 0").to_arrow().column_names
        assert sorted(column["name"] for column in table["columns"]) == sorted(found), table["name"]


def test_sql_answers_with_a_table_and_units(page: Page) -> None:
    found = table_of(
        page, "select name, count(*) as calls, sum(duration_ns) as total_ns from spans group by 1 order by 3"
    )
    row = {each["name"]: each for each in found.to_pylist()}["aten::conv2d"]
    assert (row["calls"], row["total_ns"]) == (12, 12 * 4 * MS)
    assert found.schema.field("total_ns").metadata[b"unit"] == b"ns"


def test_sql_answers_any_type_and_columns_of_the_same_name(page: Page) -> None:
    found = table_of(page, "select 1 as a, 2 as a, [1, 2] as b, timestamp '2024-01-01' as c, null as d")
    assert found.column_names == ["a", "a_1", "b", "c", "d"]
    assert found.to_pylist()[0] == {"a": 1, "a_1": 2, "b": "[1, 2]", "c": "2024-01-01 00:00:00.000000", "d": None}


def test_sql_as_a_file_has_every_row(page: Page) -> None:
    answer = page.get(f"sql?{urlencode({'query': 'select 1 as one', 'as': 'csv'})}")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.text.split() == ["one", "1"]


@pytest.mark.parametrize(
    "query",
    ["select nme from spans", "delete from spans", "select 1; select 2", "select * from '/etc/passwd'", "selekt"],
)
def test_a_mistake_in_sql_is_a_sentence(page: Page, query: str) -> None:
    answer = page.get(f"sql?{urlencode({'query': query})}")
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]


def test_a_query_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(QueryError, match=r"took more than 0\.2 s"):
        query_engine.query(ENDLESS, {}, timeout_s=0.2)


def test_a_query_that_nobody_waits_for_any_more_ends() -> None:
    cancellation = Cancellation()
    threading.Timer(0.2, cancellation.cancel).start()
    begin = time.monotonic()
    with pytest.raises(CancelledWorkError), cancellation.work():
        query_engine.query(ENDLESS, {})
    assert time.monotonic() - begin < 30
