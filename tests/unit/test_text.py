"""Tables as text: every form, exactly."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from strobe.errors import UsageError
from strobe.model.schema import Column
from strobe.present import nvprof_layout, text
from strobe.tables.table import make_table
from tests.unit.hand_made import make_trace, span

COLUMNS = (
    Column("name", "string", "", "name"),
    Column("calls", "int64", "", "executions"),
    Column("total_ns", "int64", "ns", "time"),
    Column("share", "float64", "", "share"),
    Column("size_bytes", "int64", "bytes", "size"),
)
TABLE = make_table(COLUMNS, [("a|b\tc\n", 1200, 46_647_400_000, 0.5, 2048), ("d", 1, None, None, None)], name="made")


def test_aligned_text_has_numbers_to_the_right_and_units_in_the_cells():
    assert text.aligned(TABLE).splitlines() == [
        "name    calls    total  share     size",
        "a|b c   1 200  46.65 s   50 %  2.05 kB",
        "d           1",
    ]


def test_pipes_get_raw_values_and_no_tab_inside_a_value():
    assert text.tab_separated(TABLE) == (
        "name\tcalls\ttotal_ns\tshare\tsize_bytes\na|b c \t1200\t46647400000\t0.5\t2048\nd\t1\t\t\t\n"
    )


def test_markdown_escapes_what_would_end_a_cell():
    lines = text.markdown(TABLE).splitlines()
    assert lines[0] == "| name | calls | total | share | size |"
    assert lines[2].startswith("| a\\|b c ")
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_csv_and_json_are_what_the_table_says():
    assert list(csv.reader(io.StringIO(text.render(TABLE, "csv"))))[1][1:3] == ["1200", "46647400000"]
    assert json.loads(text.render(TABLE, "json"))["rows"][1]["total_ns"] is None


def test_a_tree_is_indented_for_people_and_not_for_programs():
    tree = make_trace({"main": [span("a", 0, 10, span("b", 2, 4))]}).profile(form="tree", step="all")
    assert text.aligned(tree).splitlines()[2].startswith("  b")
    assert text.tab_separated(tree).splitlines()[2].startswith("b\t1\t")


def test_nvprof_columns_order_and_layout():
    columns = tuple(
        Column(n, "string" if n == "name" else "int64", "", n)
        for n in ("name", "calls", "total_ns", "min_ns", "max_ns")
    )
    rows = [("small", 1, 512, 512, 512), ("sgemm_largek_lds64", 202752, 46_647_400_000, 124_570, 339_610)]
    # The layout of `nvprof ./app` (CUDA 9 and later), which scripts parse by position or by white space.
    assert nvprof_layout.text(make_table(columns, rows, name="operators")) == (
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        "      Operators:  100.00%  46.6474s    202752  230.07us  124.57us  339.61us  sgemm_largek_lds64\n"
        "                    0.00%     512ns         1     512ns     512ns     512ns  small\n"
    )


@pytest.mark.parametrize(
    ("value_ns", "expected"),
    [
        (46_647_400_000, "46.6474s"),
        (1_293_910_000, "1.29391s"),
        (737_970_000, "737.97ms"),
        (1_140_500, "1.1405ms"),
        (230_070, "230.07us"),
        (1_376, "1.3760us"),
        (999.6, "1000ns"),
        (0, "0ns"),
    ],
)
def test_nvprof_times(value_ns, expected):
    assert nvprof_layout.time_text(value_ns) == expected


def test_nvprof_shares_are_of_everything_not_of_the_rows_that_are_left():
    # By hand: 10 ns in all; the one row that is left took 5 of them, 1 of which in what it called.
    columns = (
        Column("name", "string", "", "name"),
        Column("calls", "int64", "", "calls"),
        Column("total_ns", "int64", "ns", "inclusive"),
        Column("self_ns", "int64", "ns", "exclusive"),
        Column("share", "float64", "", "of the exclusive time"),
        Column("min_ns", "int64", "ns", "shortest"),
        Column("max_ns", "int64", "ns", "longest"),
    )
    shown = nvprof_layout.text(make_table(columns, [("a", 1, 5, 4, 0.4, 5, 5)], name="operators"))
    assert shown.splitlines()[1].split()[1] == "50.00%"


def test_a_table_without_calls_cannot_look_like_nvprof():
    with pytest.raises(UsageError, match="'calls'"):
        nvprof_layout.text(make_table(COLUMNS[:1], [("a",)]))


WORDS = "every word of this long sentence stays whole"


def printed(width: int, monkeypatch: pytest.MonkeyPatch, **environment: str) -> list[str]:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLUMNS": str(width), **environment}.items():
        monkeypatch.setenv(name, value)
    table = make_table(
        (*COLUMNS[:2], Column("file", "string", "", "file", extra=True)),
        [(WORDS, 1200, "made.py"), ("x\x1b[31m", 1, "")],
    )
    stream = io.StringIO()
    text.print_for_people(table, stream)
    return stream.getvalue().splitlines()


def test_a_terminal_that_is_wide_enough_shows_every_column_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(80, monkeypatch)
    assert lines[0] == f"\x1b[1m{'name':<44}  calls  file\x1b[0m"
    assert lines[1:] == [f"{WORDS}  1 200  made.py", f"{'x' + chr(92) + 'x1b[31m':<44}      1"]


def test_a_narrow_terminal_drops_extra_columns_and_then_folds_texts_between_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert printed(52, monkeypatch)[1] == f"{WORDS}  1 200"
    lines = printed(30, monkeypatch)
    assert max(map(len, lines[1:])) <= 30
    assert "file" not in lines[0]
    assert " ".join(line[:23].strip() for line in lines[1:-1]) == WORDS


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_escapes_where_the_user_or_the_terminal_wants_none(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in "".join(printed(80, monkeypatch, **environment))


def test_sums_of_sql_are_numbers_for_people_too() -> None:
    totals = make_trace({"main": [span("a", 0, 10)]}).sql("select sum(duration_ns) as n, 'x' as name from spans")
    assert text.aligned(totals).splitlines() == [" n  name", "10  x"]
