"""Kernels of CUDA and HIP graphs have the operators of their capture, from the same file or one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import strobe
from strobe.api.imports import opened
from tests.deep.kineto import Event, call, event, kernel, operator, write


def captured(names: Sequence[str], *, at: float = 0, first: int = 1, pid: int = 100) -> list[Event]:
    """The capture of a graph: each kernel by an operator of its own in a module of its own."""
    events = [call(at, 2, "hipStreamBeginCapture", correlation=first)]
    for number, name in enumerate(names):
        begins = at + 10 + 20 * number
        events += [event("python_function", f"nn.Module: Block_{number}", begins - 1, 18, 100, 1)]
        events += [operator(f"aten::op{number}", begins, 15)]
        events += [call(begins + 5, 2, "hipLaunchKernel", correlation=first + 1 + number, kernel=name)]
    ends = at + 20 * len(names) + 20
    return [dict(each, pid=pid) for each in (*events, call(ends, 2, "hipStreamEndCapture", correlation=first + 999))]


def replay(names: Sequence[str], *, at: float, correlation: int) -> list[Event]:
    """The launch of a graph in an operator of its own, and its kernels."""
    events = [operator("replay", at, 20), call(at + 5, 5, "hipGraphLaunch", correlation=correlation)]
    return events + [
        kernel(name, at + 100 + 10 * number, 8, correlation=correlation) for number, name in enumerate(names)
    ]


def kernels(folder: Path, profile: Sequence[Event], **captures: Sequence[Event]) -> strobe.Trace:
    """Open a profile beside which there are captures."""
    (folder / "capture_traces").mkdir()
    for name, events in captures.items():
        write(folder / "capture_traces" / f"{name}.json", *events)
    (folder / "capture_traces/execution_details.json").write_text('[{"file": "graph.json", "mode": "FULL"}]')
    path = folder / "profile_rank_3.json"
    write(path, *profile)
    return strobe.open(opened(path, talk=False))


def operators(trace: strobe.Trace) -> list[tuple[str, str | None]]:
    """Kernel and operator, in order of time."""
    rows = trace.ask("gpu_trace").to_pylist()
    assert rows
    by = {row["kernel"]: row["operator"] for row in trace.ask("kernels", by="operator").to_pylist()}
    return [(str(row["name"]), by.get(row["name"])) for row in rows]


def test_kernels_of_a_replay_have_the_operators_of_the_capture_beside_the_file(tmp_path: Path) -> None:
    names = ["gemm", "norm", "attention"]
    trace = kernels(tmp_path, replay(names, at=9000, correlation=1), graph=captured(names))
    assert operators(trace) == [("gemm", "aten::op0"), ("norm", "aten::op1"), ("attention", "aten::op2")]
    quality = {row["what"]: row["value"] for row in trace.quality.to_pylist()}
    assert quality["capture_files"] == 1
    assert not {"graph_kernels_without_capture", "orphan_launches", "duplicate_correlation_ids"} & set(quality)
    # Numbers of both files are equal: each has its own.
    (row,) = trace.sql("select count(distinct captured_by) n, min(captured_by) least from kernel_spans").to_pylist()
    assert (row["n"], row["least"] > 1000) == (3, True)
    assert trace.info.process_count == 1


def test_a_capture_in_the_same_file_counts_and_a_process_with_another_number_is_the_same(tmp_path: Path) -> None:
    names = ["gemm", "norm"]
    trace = kernels(tmp_path, [*captured(names), *replay(names, at=9000, correlation=500)])
    assert operators(trace) == [("gemm", "aten::op0"), ("norm", "aten::op1")]
    other = tmp_path / "other"
    other.mkdir()
    trace = kernels(other, replay(names, at=9000, correlation=500), graph=captured(names, pid=77))
    assert operators(trace) == [("gemm", "aten::op0"), ("norm", "aten::op1")]
    assert trace.info.process_count == 1


def test_captures_that_are_alike_come_in_turns(tmp_path: Path) -> None:
    captures = [*captured(["gemm"], first=1), *captured(["gemm"], at=1000, first=2000)]
    launches = [event for n in range(4) for event in replay(["gemm"], at=9000 + 1000 * n, correlation=5000 + n)]
    trace = kernels(tmp_path, launches, graph=captures)
    rows = trace.sql("select captured_by from kernel_spans order by start_ns").to_pylist()
    number = [int(str(row["captured_by"])) for row in rows]
    assert [each - number[0] for each in number] == [0, 1999, 0, 1999]


@pytest.mark.parametrize(
    ("replayed", "known"),
    [
        # A kernel is missing: what is the same from both ends is certain. Which of the two `b` is gone is not.
        (["a", "b", "c"], ["aten::op0", None, "aten::op3"]),
        (["a", "b", "b"], ["aten::op0", "aten::op1", "aten::op2"]),
        # Branches beside each other: names that there are once.
        (["c", "b", "b", "a"], ["aten::op3", None, None, "aten::op0"]),
        # Another graph.
        (["a", "x", "b", "c"], [None, None, None, None]),
        (["a", "b", "b", "c", "c"], [None] * 5),
        (["a"], [None]),
    ],
)
def test_only_what_is_certain_is_attributed(tmp_path: Path, replayed: list[str], known: list[str | None]) -> None:
    trace = kernels(tmp_path, replay(replayed, at=9000, correlation=5000), graph=captured(["a", "b", "b", "c"]))
    rows = trace.sql(
        "select c.start_ns from kernel_spans k left join call_spans c on c.correlation = k.captured_by"
        " order by k.start_ns"
    ).to_pylist()
    begin = min(int(str(row["start_ns"])) for row in trace.sql("select start_ns from call_spans").to_pylist())
    # The calls are 20 us apart, the first 15 us behind the begin of the capture.
    found = [
        None if row["start_ns"] is None else (int(str(row["start_ns"])) - begin - 15_000) // 20_000 for row in rows
    ]
    assert [each if each is None else f"aten::op{each}" for each in found] == known
    missing = sum(each is None for each in known)
    quality = {row["what"]: row["value"] for row in trace.quality.to_pylist()}
    assert quality.get("graph_kernels_without_capture", 0) == missing


def test_of_several_ranks_the_captures_of_the_own_one_count(tmp_path: Path) -> None:
    captures = {"graph_rank_2": captured(["gemm"]), "graph_rank_3": captured(["other", "gemm"])}
    trace = kernels(tmp_path, replay(["other", "gemm"], at=9000, correlation=5), **captures)
    assert operators(trace) == [("other", "aten::op0"), ("gemm", "aten::op1")]


def test_layers_of_a_replay_are_those_of_the_capture(tmp_path: Path) -> None:
    mark = event("user_annotation", "step[DECODE bs=2]", 8990, 500, 100, 1)
    names = ["gemm", "norm"]
    trace = kernels(tmp_path, [mark, *replay(names, at=9000, correlation=1)], graph=captured(names))
    rows = trace.ask("serving", by="layer").to_pylist()
    assert [(row["layer"], row["gpu_ns"]) for row in rows] == [("Block_0", 8000), ("Block_1", 8000)]
    (step,) = trace.ask("steps").to_pylist()  # the capture has none
    assert step["class"] == "decode"
