"""The tree of calls that the page draws: on paper, against plain JSON, and folded steps against those kept."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api.imports import opened
from strobe.server.run.call_tree import call_tree, part_of
from strobe.server.trace_context import TraceContext
from tests.deep.kineto import US, call, kernel, operator, profile, step
from tests.unit.hand_made import MS, make_trace, span
from tests.unit.test_server import page_of
from tests.unit.test_window import FULL, ITERATIONS, facts_of, folded_facts

Row = tuple[int, int, int, int]


def tree(facts: TraceContext, most: int = 1000, **part: Any) -> dict[str, Row]:
    """By names of the call path: calls, host time, own host time, and GPU time."""
    rows = call_tree(facts, part_of(facts, **part), most).to_pylist()
    paths: list[str] = []
    for row in rows:
        name = ("gpu:" if row["device"] else "") + row["name"]
        paths.append(name if row["parent"] < 0 else f"{paths[row['parent']]}/{name}")
    assert len(set(paths)) == len(paths)
    return {
        path: (row["calls"], row["total_ns"], row["self_ns"], row["gpu_ns"])
        for path, row in zip(paths, rows, strict=True)
    }


def about(facts: TraceContext, most: int = 1000, **part: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call_tree(facts, part_of(facts, **part), most).schema.metadata[b"about"])
    return found


def in_us(rows: dict[str, Row]) -> dict[str, Row]:
    return {path: (calls, total // US, own // US, gpu // US) for path, (calls, total, own, gpu) in rows.items()}


@pytest.fixture
def launching(tmp_path: Path) -> TraceContext:
    """Two launches below two operators on one thread, one on another, and a kernel that nobody is known to launch."""
    return TraceContext(
        profile(
            tmp_path,
            operator("aten::linear", 0, 100),
            operator("aten::addmm", 10, 50),
            call(20, 10, correlation=1),
            call(40, 10, correlation=2),
            operator("aten::relu", 200, 30, thread=2),
            call(210, 5, thread=2, correlation=3),
            kernel("gemm", 40, 30, correlation=1),
            kernel("gemm", 80, 20, correlation=2),
            kernel("clamp", 220, 7, stream=9, correlation=3),
            kernel("orphan", 300, 5),
        ),
        tmp_path,
    )


LAUNCH = "aten::linear/aten::addmm/cudaLaunchKernel"
LINEAR = {
    "aten::linear": (1, 100, 50, 50),
    "aten::linear/aten::addmm": (1, 50, 30, 50),
    LAUNCH: (2, 20, 20, 50),
    f"{LAUNCH}/gpu:gemm": (2, 0, 0, 50),
}
RELU = {
    "aten::relu": (1, 30, 25, 7),
    "aten::relu/cudaLaunchKernel": (1, 5, 5, 7),
    "aten::relu/cudaLaunchKernel/gpu:clamp": (1, 0, 0, 7),
}


def test_what_a_gpu_did_is_below_who_launched_it_and_its_time_is_no_host_time(launching: TraceContext) -> None:
    assert in_us(tree(launching)) == {**LINEAR, **RELU, "gpu:orphan": (1, 0, 0, 5)}


def test_a_stretch_of_time_cuts_spans_and_kernels_at_its_ends(launching: TraceContext) -> None:
    assert in_us(tree(launching, start_ns=25 * US, end_ns=50 * US)) == {
        "aten::linear": (1, 25, 0, 10),
        "aten::linear/aten::addmm": (1, 25, 10, 10),
        LAUNCH: (2, 15, 15, 10),
        f"{LAUNCH}/gpu:gemm": (1, 0, 0, 10),
    }


def test_a_thread_is_asked_for_with_what_it_launched(launching: TraceContext) -> None:
    names = launching.trace.locations.column("name")
    threads = [at for at, kind in enumerate(launching.trace.locations.column("kind")) if kind == "thread"]
    assert len(threads) == 2, names
    trees = [in_us(tree(launching, locations=frozenset({at}))) for at in threads]
    assert sorted(trees, key=len) == [RELU, LINEAR]
    assert in_us(tree(launching, processes=frozenset({0}))) == in_us(tree(launching))


def test_too_many_nodes_leave_out_the_narrowest_and_say_so(launching: TraceContext) -> None:
    kept = in_us(tree(launching, most=4))
    assert kept == LINEAR
    assert about(launching, most=4)["note"] == "4 of 8 call paths are too small to be sent"


def test_steps_of_the_profiler_are_one_path_and_can_be_chosen(tmp_path: Path) -> None:
    events = [
        event
        for n in range(3)
        for event in (
            step(n, 100 * n, 90),
            operator("aten::mm", 100 * n + 10, 20 + n),
            call(100 * n + 12, 2, correlation=n + 1),
            # It runs when the next step has begun, and belongs to the one that launched it.
            kernel("gemm", 100 * n + 95, 10, correlation=n + 1),
        )
    ]
    facts = TraceContext(profile(tmp_path, *events), tmp_path)
    launched = "ProfilerStep/aten::mm/cudaLaunchKernel"
    assert in_us(tree(facts)) == {
        "ProfilerStep": (3, 270, 207, 30),
        "ProfilerStep/aten::mm": (3, 63, 57, 30),
        launched: (3, 6, 6, 30),
        f"{launched}/gpu:gemm": (3, 0, 0, 30),
    }
    steps = facts.trace.steps().to_arrow().column("step").to_pylist()
    one = in_us(tree(facts, step=str(steps[1])))
    assert one["ProfilerStep/aten::mm"] == (1, 21, 19, 10)
    assert one[f"{launched}/gpu:gemm"] == (1, 0, 0, 10)


@pytest.mark.parametrize("name", ["diff_control", "v100_train_rank1of2"])
def test_sums_of_a_public_trace_are_those_of_its_json(public_folder: Path, name: str) -> None:
    path = public_folder / "kineto" / f"{name}.json.gz"
    on_gpu = Counter[str]()
    for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if event.get("ph") == "X" and event["cat"].lower() in ("kernel", "gpu_memcpy", "gpu_memset"):
            on_gpu[event["name"]] += round(event["dur"] * 1000)
    trace = strobe.open(opened(path, talk=False))
    facts = TraceContext(trace, path)
    rows = call_tree(facts, part_of(facts)).to_pylist()
    sums = Counter[str]()
    for row in rows:
        if row["device"]:
            sums[row["name"]] += row["gpu_ns"]
    assert sums == on_gpu
    # What is at the roots is everything, and only once.
    assert sum(row["gpu_ns"] for row in rows if row["parent"] < 0) == sum(on_gpu.values())


def test_folded_steps_are_in_the_tree_of_the_whole_run() -> None:
    full, folded = facts_of(FULL), folded_facts()
    assert tree(folded) == tree(full)
    assert about(folded)["note"] == ""


def test_of_some_folded_steps_it_is_said_that_it_is_not_known_what_they_called() -> None:
    some = ITERATIONS[3:6]
    start_ns, end_ns = some[0].start_ns, some[-1].end_ns
    folded = folded_facts()
    note = about(folded, start_ns=start_ns, end_ns=end_ns)["note"]
    assert "what 3 folded steps here called is only known of all" in note
    rows = tree(folded, start_ns=start_ns, end_ns=end_ns)
    assert rows["main"][1] == end_ns - start_ns
    assert rows["main"][2] == 0  # it is not blamed for what its steps called
    assert "main/train_step" not in rows


def test_the_spans_behind_a_node_are_the_longest_of_its_path(tmp_path: Path) -> None:
    main = [
        span("step", 10 * MS * i, 10 * MS * i + MS + i, span("mm", 10 * MS * i, 10 * MS * i + i + 1)) for i in range(60)
    ]
    page = page_of({"main": [*main, span("mm", 700 * MS, 800 * MS)]}, folder=tmp_path)
    rows = page.table("tree").to_pylist()
    path = next(row["call_path"] for row in rows if row["name"] == "mm" and row["parent"] >= 0)
    found = page.table(f"tree/spans?call_path={path}")
    assert found.schema.metadata[b"count"] == b"60"
    assert found.column("duration_ns").to_pylist() == list(range(60, 10, -1))
    assert found.column("start_ns").to_pylist()[0] == 590 * MS
    assert set(found.column("name").to_pylist()) == {"mm"}


def test_kernels_behind_a_node_are_those_launched_there(launching: TraceContext, tmp_path: Path) -> None:
    from strobe.server.run.call_tree import node_spans

    row = next(row for row in call_tree(launching, part_of(launching)).to_pylist() if row["name"] == "gemm")
    found = node_spans(launching, row["call_path"], row["region"])
    assert [ns // US for ns in found.column("start_ns").to_pylist()] == [40, 80]
    assert found.schema.metadata[b"count"] == b"2"


def test_bad_questions_are_refused_in_a_sentence(tmp_path: Path) -> None:
    page = page_of({"main": [span("f", 0, 10)]}, folder=tmp_path)
    for question, sentence in (
        ("tree?start_ns=5&end_ns=5", "ends before it begins"),
        ("tree?locations=1", "is not a whole number from 0 to 0"),
        ("tree?step=14", "no steps were found"),
    ):
        answer = page.get(question)
        assert (answer.status_code, sentence in answer.json()["error"]) == (400, True), answer.text


def test_a_profile_without_times_has_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "profile.folded"
    path.write_text("main;solve;dot 42\nmain;solve 8\nmain;read 5\n")
    facts = TraceContext(strobe.open(opened(path, talk=False)), path)
    rows = tree(facts)
    assert {name: (total, own) for name, (_, total, own, _) in rows.items()} == {
        "main": (55, 0),
        "main/solve": (50, 8),
        "main/solve/dot": (42, 42),
        "main/read": (5, 5),
    }


def test_a_thread_and_a_process_more_are_summed_by_path() -> None:
    one = [span("f", 0, 10, span("g", 2, 5))]
    facts = TraceContext(make_trace({"a": one, "b": one}, {"c": one}), Path())
    assert tree(facts) == {"f": (3, 30, 21, 0), "f/g": (3, 9, 9, 0)}
    assert tree(facts, processes=frozenset({1})) == {"f": (1, 10, 7, 0), "f/g": (1, 3, 3, 0)}
