"""The view's server over hand-made traces: every answer is computed on paper, every refusal is a sentence."""

from __future__ import annotations

import asyncio
import io
import json
import struct
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import httpx
import numpy as np
import pyarrow as pa
import pytest

from strobe.server.http.app import Application
from strobe.server.http.trace_library import Source
from strobe.server.pictures.cell_tiles import MAGIC, NOTHING, TILE_CELLS, RegionNames, palette_of
from strobe.server.pictures.iteration_cells import MAGIC as STACK_MAGIC
from strobe.server.pictures.iteration_cells import cells_of
from tests.unit.hand_made import FETCH, MS, HandMadeProcess, make_trace, span, train_steps

Answer = TypeVar("Answer")
TOKEN = "a-token"
CELL_NS = TILE_CELLS * 2**10  # a tile of level 10


def in_a_thread(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run to the end in a loop of its own: the browser's tests leave one running in the main thread."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, work).result()


@dataclass
class Page:
    """What the page in the browser would ask, and how it would read the answers."""

    app: Application

    def request(
        self, method: str, address: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, address, headers=headers, content=body)

        return in_a_thread(ask())

    def get(self, question: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.request("GET", f"/{TOKEN}/api/{question}", headers)

    def json(self, question: str) -> object:
        answer = self.get(question)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def table(self, question: str) -> pa.Table:
        answer = self.get(question)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("application/vnd.apache.arrow.stream")
        return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()

    def cells(self, question: str) -> tuple[list[list[object]], np.ndarray]:
        """The palette, and the cells as (region name or "", share) per row: decoded as the browser does."""
        answer = self.get(question)
        assert answer.status_code == 200, answer.text
        body = answer.content
        assert body[:4] == MAGIC
        (size,) = struct.unpack_from("<I", body, 4)
        header = json.loads(body[8 : 8 + size])
        index = np.frombuffer(body, np.uint8, header["rows"] * TILE_CELLS, 8 + size)
        assert len(body) == 8 + size + len(index) * (2 if header["shares"] else 1)
        return header["palette"], index.reshape(header["rows"], TILE_CELLS)


def page_of(*threads: object, folder: Path, **more: object) -> Page:
    trace = make_trace(*threads, **more)  # type: ignore[arg-type]
    return Page(Application([Source(folder, lambda: trace)], token=TOKEN, static=folder))


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """A thread that computes, one that loads, and a child process."""
    main = [
        span("step", 0, CELL_NS, span("aten::mm", 0, CELL_NS // 2), span("load", CELL_NS // 2, CELL_NS, role="data"))
    ]
    helper = [span("copy", CELL_NS // 4, CELL_NS // 2)]
    (tmp_path / "index.html").write_text("<title>strobe</title>")
    return page_of({"main": main, "helper": helper}, {"worker": [span("fetch", 0, 10)]}, folder=tmp_path)


def test_nothing_is_served_without_the_token(page: Page) -> None:
    for address in ("/", "/api/meta", "/another/api/meta", f"/{TOKEN}x/api/meta"):
        answer = page.request("GET", address)
        assert answer.status_code == 404
        assert TOKEN not in answer.text
    assert page.request("GET", f"/{TOKEN}/").text == "<title>strobe</title>"


def test_it_only_reads(page: Page) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert page.request(method, f"/{TOKEN}/api/meta").status_code == 405


def test_the_browser_is_told_to_load_nothing_from_elsewhere(page: Page) -> None:
    policy = page.get("meta").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "http" not in policy


def test_an_answer_tells_its_time_and_is_not_sent_twice(page: Page) -> None:
    first = page.get("cells?locations=0&level=10&tile=0")
    assert "answer;dur=" in first.headers["server-timing"]
    again = page.get("cells?locations=0&level=10&tile=0", {"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = page.get("cells?locations=0&level=10&tile=1", {"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


def test_a_question_that_was_withdrawn_is_not_worked_on(page: Page) -> None:
    begun: list[int] = []
    address = f"/{TOKEN}/api/meta"
    scope = {"type": "http", "method": "GET", "path": address, "raw_path": address.encode(), "query_string": b""}
    scope |= {"headers": [], "http_version": "1.1", "scheme": "http", "root_path": "", "server": ("here", 80)}

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, int]) -> None:
        begun.append(message.get("status", 0))

    in_a_thread(page.app(scope, gone, send))  # type: ignore[arg-type]
    assert begun[0] == 499


def test_a_changed_trace_is_sent_anew(page: Page, tmp_path: Path) -> None:
    before = page.get("meta").headers["etag"]
    (tmp_path / "process-1.blocks").write_bytes(b"more")
    trace = make_trace({"main": [span("step", 0, 10)]})
    after = (
        Page(Application([Source(tmp_path, lambda: trace)], token=TOKEN, static=tmp_path)).get("meta").headers["etag"]
    )
    assert before != after


def test_meta_bounds_all_processes(page: Page) -> None:
    meta = page.json("meta")
    assert isinstance(meta, dict)
    assert (meta["start_ns"], meta["end_ns"], meta["tile_cells"]) == (0, CELL_NS, TILE_CELLS)
    assert meta["span_count"] == 5


def test_cells_are_one_byte_each_and_say_what_they_mean(page: Page) -> None:
    palette, index = page.cells("cells?locations=0,1&level=10&tile=0")
    named = {i + 1: (entry[1], entry[2]) for i, entry in enumerate(palette)}
    half = TILE_CELLS // 2
    assert {named[i] for i in set(index[0, :half].tolist())} == {("aten::mm", "compute")}
    assert {named[i] for i in set(index[0, half:].tolist())} == {("load", "data")}
    assert set(index[1, : half // 2].tolist()) == {0}, "nothing ran"
    assert {named[i] for i in set(index[1, half // 2 : half].tolist())} == {("copy", "host")}


def test_cells_beyond_the_run_are_empty(page: Page) -> None:
    palette, index = page.cells("cells?locations=0&level=10&tile=7")
    assert palette == []
    assert not index.any()


def test_few_spans_come_one_by_one_with_names(page: Page) -> None:
    spans = page.table("stack?location=0&level=10&tile=0")
    assert spans.column("name").to_pylist() == ["step", "aten::mm", "load"]
    assert spans.column("depth").to_pylist() == [0, 1, 1]
    assert spans.column("group").to_pylist() == ["host", "compute", "data"]
    assert spans.column("start_ns").to_pylist() == [0, 0, CELL_NS // 2]


def test_many_spans_come_as_a_row_of_cells_per_depth(tmp_path: Path) -> None:
    busy = [span("outer", 0, CELL_NS, *(span("a" if i % 2 else "b", i * 100, i * 100 + 90) for i in range(6000)))]
    page = page_of({"main": busy}, folder=tmp_path)
    palette, index = page.cells("stack?location=0&level=10&tile=0")
    assert index.shape == (2, TILE_CELLS)
    assert {entry[1] for entry in palette} == {"outer", "a", "b"}
    assert len(page.table("stack?location=0&level=0&tile=3")) < 20, "a narrow tile of the same thread has few"


def test_a_picture_with_too_many_regions_names_the_frequent_and_groups_the_rest() -> None:
    names = RegionNames([f"r{i}" for i in range(400)], ["compute" if i % 2 else "host" for i in range(400)])
    often = np.arange(200, dtype=np.uint32).repeat(5)
    index, palette = palette_of(np.concatenate([often, np.arange(400, dtype=np.uint32), [np.uint32(NOTHING)]]), names)
    assert len(palette) <= 255
    assert {f"r{i}" for i in range(200)} <= {entry[1] for entry in palette}
    assert index[-1] == 0
    assert all(index[:-1] > 0)
    rare = palette[index[1000 + 399] - 1]
    assert (rare[0], rare[2]) == (NOTHING, "compute")


def test_a_span_is_found_by_where_it_is(page: Page) -> None:
    quarter = CELL_NS // 4
    found = page.json(f"span?location=0&start_ns={quarter}&end_ns={quarter + 1}")
    assert isinstance(found, dict)
    assert (found["name"], found["depth"], found["self_ns"]) == ("aten::mm", 1, CELL_NS // 2)
    assert [frame["name"] for frame in found["path"]] == ["step", "aten::mm"]
    above = page.json(f"span?location=0&start_ns={quarter}&end_ns={quarter + 1}&depth=0")
    assert isinstance(above, dict)
    assert above["name"] == "step"
    assert page.json(f"span?location=1&start_ns=0&end_ns={quarter - 1}") is None


def test_one_walks_from_span_to_span(page: Page) -> None:
    def walk(start_ns: int, depth: int, way: str) -> object:
        found = page.json(f"neighbour?location=0&start_ns={start_ns}&depth={depth}&way={way}")
        return found["name"] if isinstance(found, dict) else None

    assert walk(0, 1, "next") == "load"
    assert walk(CELL_NS // 2, 1, "previous") == "aten::mm"
    assert walk(CELL_NS // 2, 1, "parent") == "step"
    assert walk(0, 0, "child") == "aten::mm"
    assert [walk(0, 0, way) for way in ("next", "previous", "parent")] == [None] * 3
    assert walk(0, 1, "child") is None
    assert walk(3, 1, "next") is None, "no span starts there"


def test_a_span_is_compared_with_its_sisters(tmp_path: Path) -> None:
    thread = [span("work", 1000 * i, 1000 * i + 100 + i) for i in range(10)]
    found = page_of({"main": thread}, folder=tmp_path).json("span?location=0&start_ns=7000&end_ns=7001")
    assert isinstance(found, dict)
    sisters = found["sisters"]
    assert (sisters["count"], sisters["shorter"], sisters["median_ns"]) == (10, 7, 104.5)
    assert sum(sisters["histogram"]) == 10


def test_a_span_in_another_lane_is_one_of_its_stream(tmp_path: Path) -> None:
    found = page_of({"stream 7 (lane 2)": [span("work", 0, 100)]}, folder=tmp_path).json(
        "span?location=0&start_ns=0&end_ns=1"
    )
    assert isinstance(found, dict)
    assert found["location_name"] == "stream 7"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("aten", 1),
        ("STEP", 1),
        ("o", 2),
        ("group:data", 1),
        ("dur:>400us", 3),
        ("dur:<20ns", 1),
        ("e -step", 2),
        ("zzz", 0),
    ],
)
def test_search_covers_the_whole_run(page: Page, text: str, count: int) -> None:
    found = page.table(f"search/spans?text={text.replace('<', '%3C').replace('>', '%3E')}")
    assert int(found.schema.metadata[b"count"]) == count
    assert len(found) == count
    assert int(np.sum(page.table(f"search/density?text={text}&bins=10").column("count").to_pylist())) == count


def test_the_longest_hit_is_the_first_and_the_list_is_bounded(tmp_path: Path) -> None:
    thread = [span("work", 1000 * i, 1000 * i + 100 + i % 700) for i in range(900)]
    found = page_of({"main": thread}, folder=tmp_path).table("search/spans?text=work")
    durations = found.column("duration_ns").to_pylist()
    assert durations == sorted(durations, reverse=True)
    assert durations[0] == 799
    assert len(found) == 500
    assert int(found.schema.metadata[b"count"]) == 900


def test_the_time_of_a_window_is_exclusive_and_cut_at_its_ends(page: Page) -> None:
    # The window is the middle half: mm and load take a quarter tile each, copy another; step has nothing of its own.
    table = page.table(f"window?start_ns={CELL_NS // 4}&end_ns={3 * CELL_NS // 4}")
    rows = {(row["kind"], row["name"]): row["self_ns"] for row in table.to_pylist()}
    quarter = CELL_NS // 4
    assert rows == {
        ("group", "compute"): quarter,
        ("group", "data"): quarter,
        ("group", "host"): quarter,
        ("name", "aten::mm"): quarter,
        ("name", "load"): quarter,
        ("name", "copy"): quarter,
    }


@pytest.fixture
def training(tmp_path: Path) -> Page:
    stalls = {20: 60 * MS, 33: 60 * MS}
    return page_of({"main": train_steps(60, stalls=stalls)}, folder=tmp_path)


def test_steps_come_with_class_parts_and_outliers(training: Page) -> None:
    steps = training.table("steps")
    assert 58 <= len(steps) <= 60
    assert set(steps.column("class").to_pylist()) <= {"train", "partial"}
    slow = [row for row in steps.to_pylist() if row["outlier"]]
    assert len(slow) == 2
    assert {row["cause"] for row in slow} == {"data_wait"}
    for row in steps.to_pylist():
        parts = sum(
            row[f"{part}_ns"] for part in ("data_wait", "forward", "backward", "optimizer", "validation", "rest")
        )
        assert parts == row["duration_ns"]


def test_too_many_steps_are_thinned_but_outliers_stay(training: Page) -> None:
    few = training.table("steps?limit=7")
    assert len(few) == 7
    assert sum(few.column("count").to_pylist()) == len(training.table("steps"))
    assert sum(few.column("outlier").to_pylist()) == 2
    # What is said of all steps is of all steps, however few are sent.
    every = training.table("steps")
    assert few.schema.metadata[b"about"] == every.schema.metadata[b"about"]
    about = json.loads(few.schema.metadata[b"about"])
    rows = every.to_pylist()
    assert about["parts_ns"]["forward"] == sum(row["forward_ns"] for row in rows)
    train = next(each for each in about["classes"] if each["name"] == "train")
    durations = [row["duration_ns"] for row in rows if row["class"] == "train"]
    assert (train["count"], train["median_ns"]) == (len(durations), np.median(durations))
    assert about["causes"] == {"data_wait": 2}
    assert about["kept"] == len(rows)


def test_one_goes_from_step_to_step_and_to_the_next_outlier(training: Page) -> None:
    rows = training.table("steps").to_pylist()
    inside = rows[10]["start_ns"] + 1
    found = {
        kind: training.json(f"step?time_ns={inside}&kind={kind}") for kind in ("at", "next", "previous", "outlier")
    }
    places = {kind: step["step"] for kind, step in found.items() if isinstance(step, dict)}
    first, last = (row["step"] for row in rows if row["outlier"])
    assert places == {"at": 10, "next": 11, "previous": 9, "outlier": first}
    beyond = training.json(f"step?time_ns={rows[-1]['start_ns']}&kind=outlier")
    assert isinstance(beyond, dict)
    assert beyond["step"] == first != last, "after the last outlier comes the first"
    assert training.json("step?time_ns=0&kind=previous") is None


def test_the_critical_path_of_a_step_is_where_its_spans_are_no_finer_than_the_screen(training: Page) -> None:
    row = training.table("steps").to_pylist()[10]
    begin, end = row["start_ns"], row["start_ns"] + row["duration_ns"]

    def boxes(width: int, start_ns: int = begin, end_ns: int = end) -> list[tuple[int, int, int]]:
        asked = f"critical?at_ns={begin + 5}&start_ns={start_ns}&end_ns={end_ns}&width={width}"
        found = cast("dict[str, Any]", training.json(asked))
        assert found["about"] == f"critical path of step {row['step']}: {row['duration_ns'] / MS:.2f} ms"
        assert set(found["location"]) <= {0}
        columns = (found[name] for name in ("depth", "start_ns", "duration_ns"))
        return [(depth, start - begin, duration) for depth, start, duration in zip(*columns, strict=True)]

    wait = row["data_wait_ns"]
    # The wait, and after zero_grad (1 us, less than a pixel) what train_step does itself; then its three others.
    assert boxes(4096) == [(0, 0, wait + 1000 + 1 * MS), (1, wait, 1000), (1, wait + 1000 + 1 * MS, 10 * MS)]
    assert boxes(1) == [(0, 0, wait + 1000 + 1 * MS), (1, wait, 11 * MS + 1000)]
    assert boxes(100, end, end + 10 * MS) == []


def test_metrics_are_thinned_to_the_screen_but_keep_their_extremes(tmp_path: Path) -> None:
    times = list(range(0, 1_000_000, 100))
    values = [1.0] * len(times)
    values[5000] = 9.0
    metric = {"name": "cpu", "unit": "cores", "location": -1, "time_ns": times, "value": values}
    process = HandMadeProcess({"main": [span("step", 0, 1_000_000)]}, metrics=[metric])
    page = page_of(process, folder=tmp_path)
    (series,) = page.table("series").to_pylist()
    assert (series["metric"], series["readings"], series["highest"]) == ("cpu", len(times), 9.0)
    thin = page.table("readings?start_ns=0&end_ns=1000000&width=100")
    assert len(thin) <= 101
    assert max(thin.column("high").to_pylist()) == 9.0
    assert len(page.table("readings?start_ns=0&end_ns=5000&width=100")) == 51, "few readings come as they are"


def test_the_overview_is_the_summary_that_the_command_line_prints(training: Page) -> None:
    summary = training.json("summary")
    assert isinstance(summary, dict)
    assert summary["verdict"]["text"]
    assert summary["step"]["count"] == len(training.table("steps"))


def test_an_analysis_is_a_table_by_its_name(training: Page) -> None:
    assert "name" in training.table("table/operators").column_names


def test_runs_of_a_server_are_compared_and_no_other_files(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("before", "after")]
    traces = [make_trace({"main": [span("f", 0, 100, *inner)]}) for inner in ((), (span("g", 10, 40),))]
    sources = [Source(folder, lambda trace=trace: trace) for folder, trace in zip(folders, traces, strict=True)]
    page = Page(Application(sources, token=TOKEN, static=tmp_path))
    shown = page.request("GET", f"/{TOKEN}/t/before/api/comparison?other=after").json()
    assert (shown["a"], shown["b"], shown["a_ranks"]) == ("before", "after", [])
    (lane,) = shown["classes"][0]["lanes"]
    # `f` is as long as before: what it did in 30 ns does `g` now.
    assert [(each["name"], each["change"], each["from_ns"], each["to_ns"]) for each in lane["changes"]] == [
        ("g", "only in B", 100, 130),
        ("all else", "", 130, 100),
    ]
    assert (lane["a_ns"], lane["b_ns"], lane["beside"]) == (100, 100, True)
    assert [(each["a_name"], each["b_name"]) for each in lane["changes"]] == [("", "g"), ("", "")]
    assert "only in B: g (+30 ns)" in " ".join(shown["sentences"])
    asked = page.request("GET", f"/{TOKEN}/t/before/api/table/compare?other=after&as=json").json()
    assert [(row["name"], row["change"]) for row in asked["rows"] if row["change"]] == [("g", "only in B")]
    for other in (str(tmp_path), "nothing"):
        assert page.request("GET", f"/{TOKEN}/t/before/api/table/compare?other={other}").status_code == 400


def test_a_trace_without_anything_is_answered_too(tmp_path: Path) -> None:
    page = page_of({"main": []}, folder=tmp_path)
    assert len(page.table("steps")) == 0
    assert len(page.table("series")) == 0
    assert len(page.table("window?start_ns=0&end_ns=10")) == 0
    assert page.table("search/spans?text=x").schema.metadata[b"count"] == b"0"
    assert page.get("summary").status_code == 200


@pytest.mark.parametrize(
    "question",
    [
        "cells?locations=9&level=10&tile=0",
        "cells?locations=&level=10&tile=0",
        "cells?locations=0&level=99&tile=0",
        "cells?locations=0&level=ten&tile=0",
        "stack?level=10&tile=0",
        "span?location=0&start_ns=-5&end_ns=3",
        "step?time_ns=0&kind=sideways",
        "neighbour?location=0&start_ns=0&depth=0&way=up",
        "search/spans?text=dur:5",
        "readings?start_ns=0&end_ns=1&width=999999",
        "critical?start_ns=0&end_ns=1&width=10",
    ],
)
def test_a_wrong_question_is_refused_with_a_sentence(page: Page, question: str) -> None:
    answer = page.get(question)
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert "Traceback" not in answer.text


def test_files_outside_of_the_page_are_not_served(page: Page, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for name in ("../secret", "%2e%2e/secret", "..%2fsecret"):
        assert "secret" not in page.request("GET", f"/{TOKEN}/assets/{name}").text.replace(name, "")


def stack_of(page: Page, question: str) -> tuple[dict[str, Any], np.ndarray]:
    """The header of an iteration stack, and its cells: decoded as the browser does."""
    answer = page.get(question)
    assert answer.status_code == 200, answer.text
    body = answer.content
    assert body[:4] == STACK_MAGIC
    (size,) = struct.unpack_from("<I", body, 4)
    header = json.loads(body[8 : 8 + size])
    cells = np.frombuffer(body, np.uint8, -1, 8 + size)
    return header, cells.reshape(len(header["step"]), len(header["positions"]))


@pytest.fixture
def validating(tmp_path: Path) -> Page:
    """Forty steps; number 7 waits 40 ms longer, three validate."""
    steps = train_steps(40, stalls={7: 40 * MS}, extras=dict.fromkeys((9, 19, 29), ("validate", 5 * MS)))
    return page_of({"main": steps}, folder=tmp_path)


def test_the_iteration_stack_is_one_byte_a_cell_compared_with_the_column(validating: Page) -> None:
    header, cells = stack_of(validating, "iterations")
    assert [position["name"] for position in header["positions"]][:3] == [
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "Optimizer.zero_grad#SGD.zero_grad",
        "aten::conv2d",
    ]
    assert [position["part"] for position in header["positions"]][2:5] == ["forward", "backward", "optimizer"]
    assert (header["shown"], header["folded"], header["octaves"]) == (40, 0, 3)
    assert header["positions"][2]["median_ns"] == 4 * MS
    assert cells.shape == (40, 6)
    assert cells[7, 0] == 255, "41 ms instead of 1: more than three octaves"
    assert set(cells[:, 2].tolist()) == {128}, "always as long as usual"
    assert set(cells[:, -1].tolist()) == {0}, "the end has no duration"
    assert [step for step, extra in zip(header["step"], header["extra"], strict=True) if extra] == [9, 19, 29]
    gaps = stack_of(validating, "iterations?metric=gap")[1]
    assert set(gaps[:, 2].tolist()) == {128}


def test_the_iteration_stack_is_sorted_as_asked(validating: Page) -> None:
    assert stack_of(validating, "iterations?sort=time")[0]["step"] == list(range(40))
    by_class = stack_of(validating, "iterations?sort=class")[0]
    assert by_class["step"][-3:] == [9, 19, 29]
    assert by_class["class"][-3:] == ["train+validation"] * 3
    longest = stack_of(validating, "iterations?sort=duration")[0]
    assert longest["step"][0] == 7
    assert longest["step_ns"] == sorted(longest["step_ns"], reverse=True)


def test_rows_that_stand_for_several_steps_keep_what_stands_out(validating: Page) -> None:
    header, cells = stack_of(validating, "iterations?rows=4")
    assert header["count"] == [10] * 4
    assert cells.shape == (4, 6)
    assert (cells[0, 0], header["step"][0], header["outlier"][0]) == (255, 7, True)
    assert header["shown"] == 40


def test_a_folded_group_is_one_column_with_the_sum_of_its_positions(validating: Page) -> None:
    whole, _ = stack_of(validating, "iterations")
    header, cells = stack_of(validating, "iterations?fold=1_3")
    assert cells.shape == (40, 5)
    group = header["positions"][1]
    assert (group["position"], group["count"], group["folded"]) == (1, 2, True)
    assert group["median_ns"] == sum(position["median_ns"] for position in whole["positions"][1:3])
    assert cells[7, 0] == 255, "the others are as before"
    assert validating.get("iterations?fold=x").status_code == 400


def test_why_paths_differ_is_counted(validating: Page) -> None:
    facts = stack_of(validating, "iterations")[0]["path_facts"]
    assert (facts["aligned"], facts["usual_steps"], facts["paths"]) == (1.0, 37, 2)
    assert facts["absent"] == []
    assert facts["extra"] == [{"name": "validate", "steps": 3}]


def test_neighbouring_cells_are_joined_by_the_one_farthest_from_the_median() -> None:
    values = np.array([[0, -2.5, np.nan, np.nan], [0.5, 1, np.nan, 3.5]], dtype=np.float32)
    both, two = np.array([0]), np.array([0, 2])
    assert cells_of(values, both, two).tolist() == [[128 - round(2.5 * 127 / 3), 255]]
    assert cells_of(values, np.array([0, 1]), two)[0, 1] == 0, "absent in all"


def test_one_iteration_is_told_in_exact_numbers(validating: Page) -> None:
    one = validating.json("iteration?step=9")
    assert isinstance(one, dict)
    assert one["duration_ns"][2:5] == [4 * MS, 5 * MS, 1 * MS]
    assert one["gap_ns"][2] == 1 * MS
    assert one["duration_ns"][-1] is None
    assert [(extra["name"], extra["duration_ns"]) for extra in one["extras"]] == [("validate", 5 * MS)]
    assert one["offset_ns"][0] == 0
    assert sum(ns or 0 for ns in one["duration_ns"] + one["gap_ns"]) + 5 * MS == one["step_ns"]
    assert validating.json("iteration?step=4000") is None


def test_a_run_without_steps_has_an_empty_stack_that_says_why(page: Page) -> None:
    header, cells = stack_of(page, "iterations")
    assert cells.size == 0
    assert "nothing repeats" in header["reason"]
    assert page.json("iteration?step=0") is None


@pytest.mark.parametrize("question", ["iterations?metric=x", "iterations?sort=x", "iterations?rows=x", "iteration"])
def test_the_iteration_stack_refuses_in_a_sentence(validating: Page, question: str) -> None:
    answer = validating.get(question)
    assert answer.status_code == 400
    assert "error" in answer.json()


def test_a_stack_with_more_steps_and_positions_than_a_screen_stays_small(tmp_path: Path) -> None:
    busy: list[Any] = []
    for step in range(60):
        ops = [span(f"aten::op{i % 50}", (step * 1500 + i) * 1000, (step * 1500 + i) * 1000 + 900) for i in range(1500)]
        busy.append(span("step", ops[0].start_ns, ops[-1].end_ns, *ops))
    page = page_of({"main": busy}, folder=tmp_path)
    header, cells = stack_of(page, "iterations?rows=20")
    assert cells.shape[0] <= 20
    assert cells.shape[1] <= 1024
    assert sum(position["count"] for position in header["positions"]) == header["position_count"]


def test_the_structure_is_what_the_trace_says(validating: Page) -> None:
    told = validating.json("structure")
    assert isinstance(told, dict)
    steps = [level for level in told["levels"] if level["is_step"]]
    assert [level["count"] for level in steps] == [40]
    assert told["confidence"] in ("high", "medium")


def test_the_iterations_of_another_loop_can_be_the_steps(tmp_path: Path) -> None:
    """Forty steps of six layers each: where a layer is asked for, there are 240, and a stack of them."""
    spans, now = [], 0
    for _ in range(40):
        layers = ("aten::linear", "aten::relu", "aten::dropout") * 6
        for name in (FETCH, *layers, "aten::cross_entropy_loss", "aten::backward", "Optimizer.step#SGD.step"):
            spans.append(span(name, now, now + MS, paradigm="torch"))
            now += MS + 1000
    page = page_of({"main": spans}, folder=tmp_path)
    structure = page.json("structure")
    assert isinstance(structure, dict)
    levels = {level["count"]: level["marker"] for level in structure["levels"]}
    assert len(page.table("steps")) == 40
    layer = max(levels)
    assert layer > 150
    asked = page.table(f"steps?level={quote(levels[layer])}")
    assert len(asked) >= layer
    header, _ = stack_of(page, f"iterations?level={quote(levels[layer])}")
    assert header["shown"] == len(asked)
    assert [position["name"] for position in header["positions"]].count("aten::linear") == 1
    assert page.get("steps?level=no-such-loop").status_code == 400
    summaries = [page.json(question) for question in ("summary", f"summary?level={quote(levels[layer])}", "summary")]
    assert [each["step"]["count"] for each in summaries if isinstance(each, dict)] == [40, len(asked), 40]
    start = asked.column("start_ns").to_pylist()[200]
    span_of = [
        page.json(f"span?location=0&start_ns={start}&end_ns={start + 1}{more}")
        for more in ("", f"&level={quote(levels[layer])}")
    ]
    found, chosen = (each["step"]["step"] for each in span_of if isinstance(each, dict))
    assert found < 40
    assert chosen == 200


def test_steps_say_what_was_kept_of_them(validating: Page) -> None:
    steps = validating.table("steps")
    assert set(steps.column("detail").to_pylist()) == {"all"}
    assert set(steps.column("loop").to_pylist()) == {0}
