"""Every row of a table in the view leads to the spans that it sums up: as many, and as long in all, as it says."""

from __future__ import annotations

import io
from pathlib import Path
from urllib.parse import urlencode

import pyarrow as pa
import pytest

import strobe
from strobe.server.http.app import Application
from strobe.server.http.trace_library import Source
from tests.deep.kineto import US, call, kernel, operator, profile
from tests.unit.test_server import TOKEN, Page

# Which cells of a row the page sends, where the table has them: `CELLS` of web/src/views/kernels.tsx, operators.tsx.
KERNEL_CELLS = ("name", "process", "device", "stream", "operator", "grid", "block", "collective", "dtype")
OPERATOR_CELLS = ("name", "type", "shapes", "module", "line", "function")


def served(trace: strobe.Trace) -> Page:
    return Page(Application([Source(trace.path, lambda: trace)], token=TOKEN))


def behind(page: Page, **cells: object) -> tuple[int, int, list[tuple[int, int]]]:
    """How many spans there are, how long in sum, and start and duration of those that are listed, us."""
    answer = page.get(f"behind?{urlencode(cells)}")
    assert answer.status_code == 200, answer.text
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    told = table.schema.metadata
    listed = [(row["start_ns"] // US, row["duration_ns"] // US) for row in table.to_pylist()]
    return int(told[b"count"]), int(told[b"total_ns"]) // US, listed


def launched(name: str, at: int, duration: int, number: int, **more: object) -> list[dict[str, object]]:
    """A call and the kernel that it launches 100 us later."""
    return [call(at, 2, correlation=number), kernel(name, at + 100, duration, correlation=number, **more)]


@pytest.fixture
def hand_made(tmp_path: Path) -> Page:
    """Two operators launch a kernel of one name on two streams, with two shapes; once nobody does."""
    wide, tall = {"grid": [8, 1, 1], "block": [32, 1, 1]}, {"grid": [1, 8, 1], "block": [32, 1, 1]}
    events = [operator("aten::mm", 0, 10), operator("aten::add", 20, 10), operator("aten::mm", 40, 10)]
    events += launched("gemm", 2, 5, 1, **wide) + launched("gemm", 22, 7, 2, **tall, stream=8)
    events += launched("gemm", 42, 11, 3, **wide, stream=8) + launched("gemm", 60, 13, 4, **wide)
    return served(profile(tmp_path, *events))


@pytest.mark.parametrize(
    ("cells", "spans"),
    [
        ({}, [(102, 5), (122, 7), (142, 11), (160, 13)]),
        ({"stream": "GPU 0 stream 8"}, [(122, 7), (142, 11)]),
        ({"operator": "aten::mm"}, [(102, 5), (142, 11)]),
        ({"operator": ""}, [(160, 13)]),
        ({"grid": "1x8x1", "block": "32x1x1"}, [(122, 7)]),
        ({"grid": "8x1x1", "stream": "GPU 0 stream 7"}, [(102, 5), (160, 13)]),
        ({"grid": ""}, []),
    ],
)
def test_cells_of_a_kernel_name_its_spans(hand_made: Page, cells: dict[str, str], spans: list[tuple[int, int]]) -> None:
    count, total, listed = behind(hand_made, name="gemm", process=0, device=0, **cells)
    assert (count, total) == (len(spans), sum(duration for _, duration in spans))
    # The first one, then the longest.
    assert listed == [*spans[:1], *sorted(spans, key=lambda span: -span[1])]


def test_one_goes_from_span_to_span_and_from_the_last_to_the_first(hand_made: Page) -> None:
    starts = [102, 122, 142, 160]
    for start, following in zip(starts, [*starts[1:], starts[0]], strict=True):
        _, _, listed = behind(hand_made, name="gemm", process=0, device=0, after_ns=start * US)
        assert listed[0][0] == following
        assert [start for start, _ in listed[1:]] == [160, 142, 122, 102]  # the longest first, as ever


def test_a_type_names_the_spans_of_all_its_operators(tmp_path: Path) -> None:
    events = [operator("aten::add", 0, 10), operator("aten::add_", 20, 5), operator("aten::mul", 40, 3)]
    events.append(kernel("add", 50, 100))  # no operator, though it has the name of the type
    page = served(profile(tmp_path, *events))
    assert behind(page, type="add")[:2] == (2, 15)
    assert behind(page, name="aten::add")[:2] == (1, 10)


@pytest.mark.parametrize("by", ["name", "shape", "stream", "operator", "collective"])
def test_every_row_of_kernels_of_real_profiles(public, by: str) -> None:
    for name in ("kineto/two_ranks", "kineto/nccl_data.json.gz"):
        trace = public(name)
        page, rows = served(trace), trace.kernels(by=by).to_pylist()
        for row in rows[:: max(1, len(rows) // 12)]:
            cells = {key: "" if row[key] is None else row[key] for key in KERNEL_CELLS if key in row}
            found = page.table(f"behind?{urlencode(cells)}").schema.metadata
            assert (int(found[b"count"]), int(found[b"total_ns"])) == (row["calls"], row["total_ns"])


def test_every_row_of_operators_of_a_real_profile(public) -> None:
    trace = public("kineto/resnet50_loader_workers0.json.gz")
    page = served(trace)
    for by in ("name", "type", "shape"):
        rows = trace.operators(by=by, step="all").to_pylist()
        assert rows
        for row in rows[:: max(1, len(rows) // 8)]:
            cells = {key: "" if row[key] is None else row[key] for key in OPERATOR_CELLS if key in row}
            found = page.table(f"behind?{urlencode(cells)}").schema.metadata
            assert int(found[b"count"]) == row["calls"]


def test_modules_name_the_operators_inside(tmp_path: Path) -> None:
    """The second thread has no operator at all, and one operator is in no module."""
    modules = {"Module_Hierarchy": "net.Net.first"}
    events = [operator("aten::mm", 0, 10, **modules), operator("aten::add", 20, 5)]
    page = served(profile(tmp_path, *events, call(0, 5, thread=0)))
    assert behind(page, module="net.Net.first") == (1, 10, [(0, 10), (0, 10)])
    assert behind(page, module="") == (1, 5, [(20, 5), (20, 5)])
    assert behind(page, module="net.Net.second") == (0, 0, [])


def test_lines_and_shapes_name_the_operators_inside(tmp_path: Path) -> None:
    """Two lines of the user's own call the same operator, once with another shape."""
    here, there = "a.py(3): f;torch/nn.py(9): g", "a.py(7): f;torch/nn.py(9): g"
    page = served(
        profile(
            tmp_path,
            operator("aten::mm", 0, 10, Call_stack=here, Input_Dims=[[2, 3], [3, 4]]),
            operator("aten::mm", 20, 7, Call_stack=there, Input_Dims=[[2, 3], [3, 4]]),
            operator("aten::mm", 40, 5, Call_stack=there, Input_Dims=[[1, 3], [3, 4]]),
        )
    )
    by_line = page.table("table/operators?by=line&step=all").to_pylist()
    by_shape = page.table("table/operators?by=shape&step=all").to_pylist()
    assert [behind(page, line=row["line"], function=row["function"])[:2] for row in by_line] == [(2, 12), (1, 10)]
    assert [behind(page, name=row["name"], shapes=row["shapes"])[:2] for row in by_shape] == [(2, 17), (1, 5)]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("behind?", "the query has no name"),
        ("behind?name=a&after_ns=soon", "after_ns: 'soon' is not a whole number"),
        ("behind?name=a&colour=red", "'behind' has no parameter 'colour'"),
        ("behind?name=gemm&process=0&device=9", "no GPU '9' in process '0'"),
        ("table/kernels?by=colour", "by: 'colour' is not one of"),
        ("table/kernels?as=xls", "as: 'xls' is not one of"),
    ],
)
def test_wrong_questions_are_refused_with_a_sentence(hand_made: Page, question: str, sentence: str) -> None:
    answer = hand_made.get(question)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]


def test_a_table_says_what_else_can_be_asked_and_comes_as_a_file(hand_made: Page) -> None:
    table = hand_made.table("table/kernels?by=stream")
    assert {b"rows": b"2", b"note": b""}.items() <= table.schema.metadata.items()
    assert (
        b'"choices": ["name", "shape", "stream", "operator", "function", "collective", "type"], "value": "stream"'
        in (table.schema.metadata[b"options"])
    )
    assert table.schema.field("total_ns").metadata[b"unit"] == b"ns"
    lines = hand_made.get("table/kernels?by=stream&as=csv").text.splitlines()
    assert lines[0].split(",") == table.column_names
    assert len(lines) == 3
    file = hand_made.get("table/kernels?by=stream&as=json").json()
    assert [row["total_ns"] for row in file["rows"]] == table["total_ns"].to_pylist()
