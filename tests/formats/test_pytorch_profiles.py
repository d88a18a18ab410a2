"""PyTorch's profiles as people make them: with stacks and without, one step or many, trimmed, cut off, in windows.

One program, or one file, gives the same answers in all these forms, as far as the file has them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.api.imports import opened
from strobe.present.summary import Summary, summarise
from tests.deep.kineto import Event, call, event, kernel, operator, profile, step

# Decided by one large product in each step: no other load of the machine changes what limits it.
PROGRAM = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(1024, 1024), torch.randint(0, 10, (1024,))
for path, options, active, repeat in eval(sys.argv[1]):
    export = tensorboard_trace_handler(path) if repeat > 1 else lambda done: done.export_chrome_trace(path)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=active, repeat=repeat),
        on_trace_ready=export, **options,
    ) as profiler:
        for _ in range((2 + active) * repeat):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            profiler.step()
"""
OPTIONS = {
    "plain": {},
    "stacks": {"with_stack": True},
    "modules": {"with_stack": True, "with_modules": True},
    "memory": {"profile_memory": True, "record_shapes": True, "with_flops": True},
}


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the profiles of one program: by options, with 1 and with 6 steps, and two windows in `logs`."""
    folder = tmp_path_factory.mktemp("profiles")
    forms = [(f"{folder}/{name}{active}.json", OPTIONS[name], active, 1) for name in OPTIONS for active in (1, 6)]
    forms.append((f"{folder}/logs", {}, 2, 2))
    subprocess.run([sys.executable, "-c", PROGRAM, repr(forms)], check=True, capture_output=True)
    return folder


def answers(path: Path) -> tuple[strobe.Trace, Summary]:
    trace = strobe.open(opened(path, talk=False))
    return trace, summarise(trace)


def calls_in_a_step(trace: strobe.Trace) -> dict[str, float]:
    """Of every operator the number of its calls, for each step."""
    steps = trace.ask("steps").to_pylist()
    count: Counter[str] = Counter()
    for name, start_ns in trace.sql("select name, start_ns from spans where name like 'aten::%'").rows():
        if any(int(str(each["start_ns"])) <= int(str(start_ns)) < end_of(each) for each in steps):
            count[str(name)] += 1
    return {name: number / len(steps) for name, number in count.items()}


def end_of(row: dict[str, Any]) -> int:
    return int(row["start_ns"]) + int(row["duration_ns"])


@pytest.mark.torch
def test_one_program_has_the_same_answers_however_it_is_profiled(profiles: Path) -> None:
    found = {}
    for options in OPTIONS:
        for active in (1, 6):
            trace, summary = answers(profiles / f"{options}{active}.json")
            assert summary.step is not None
            assert (summary.step.count, summary.quality.complete) == (active, True)
            assert summary.verdict.kind == "compute-bound"
            assert {each.name for each in summary.classes} == {"train"}
            found[options, active] = calls_in_a_step(trace)
            parts = {part.name: part.share for part in summary.step.parts}
            assert parts["forward"] + parts["backward"] > 0.5
    assert len({tuple(sorted(each.items())) for each in found.values()}) == 1, found
    assert found["plain", 1]["aten::addmm"] == 2


def without_stacks(events: list[Event]) -> list[Event]:
    return [each for each in events if each.get("cat") != "python_function"]


def without_metadata(events: list[Event]) -> list[Event]:
    return [each for each in events if each["ph"] != "M"]


def without_flows(events: list[Event]) -> list[Event]:
    return [each for each in events if each["ph"] not in ("s", "t", "f")]


@pytest.mark.torch
@pytest.mark.parametrize("trim", [without_stacks, without_metadata, without_flows])
def test_a_trimmed_file_has_the_same_steps_operators_and_limit(
    profiles: Path, tmp_path: Path, trim: Callable[[list[Event]], list[Event]]
) -> None:
    path = profiles / "stacks6.json"
    whole = json.loads(path.read_text())
    trimmed = tmp_path / "trimmed.json"
    trimmed.write_text(json.dumps({"traceEvents": trim(whole["traceEvents"])}))
    (one, of_one), (other, of_other) = answers(path), answers(trimmed)
    columns = ["start_ns", "duration_ns", "class"]
    assert one.ask("steps").select(columns).rows() == other.ask("steps").select(columns).rows()
    assert Counter(operators(one)) == Counter(operators(other))
    assert of_one.verdict.kind == of_other.verdict.kind
    assert of_one.step is not None
    assert of_other.step is not None
    for part, same in zip(of_one.step.parts, of_other.step.parts, strict=True):
        assert part.name == same.name
        assert part.share == pytest.approx(same.share, abs=0.05)


def operators(trace: strobe.Trace) -> list[tuple[object, ...]]:
    return list(
        trace.sql(
            "select name, count(*), sum(duration_ns)::bigint from spans where name like 'aten::%' group by 1"
        ).rows()
    )


@pytest.mark.torch
def test_a_file_that_was_cut_off_has_the_steps_before(profiles: Path, tmp_path: Path) -> None:
    path = profiles / "stacks6.json"
    cut = tmp_path / "cut.json"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    trace, summary = answers(cut)
    assert not summary.quality.complete
    assert "1 file ends early" in summary.quality.losses
    assert summary.verdict.kind == "compute-bound"
    columns = ["duration_ns", "class"]  # times count from the first event, which the end of the file may have
    steps, whole = (each.ask("steps").select(columns).rows() for each in (trace, strobe.open(path)))
    assert list(steps)[:2] == list(whole)[:2]


@pytest.mark.torch
def test_windows_of_one_worker_are_no_ranks(profiles: Path) -> None:
    folder = profiles / "logs"
    assert len(list(folder.iterdir())) == 2
    trace, summary = answers(folder)
    assert [row["rank"] for row in trace.processes.to_pylist()] == [None, None]
    assert len(trace.ask("steps")) == 4
    assert "rank" not in summary.verdict.text


def iterations(last_us: float, *more: Event) -> list[Event]:
    """Six steps of 100 ms with 90 ms of work; the last is marked for so long."""
    events = list(more)
    for number in range(6):
        at = 100_000 * number
        events += [step(number, at, 99_990 if number < 5 else last_us), operator("aten::mm", at + 10, 90_000)]
        events.append(event("user_annotation", "Optimizer.step#SGD.step", at + 95_000, 4_980, 100, 1))
    return events


@pytest.mark.parametrize(
    "stop",
    [
        [],
        [call(599_995, 60_000, "cudaProfilerStop")],
        [event("python_function", "<built-in method _disable_profiler of module object>", 599_995, 80_000, 100, 1)],
    ],
    ids=["quiet", "call", "stack"],
)
def test_the_stop_of_the_profiler_is_no_step_and_no_outlier(tmp_path: Path, stop: list[Event]) -> None:
    rows = profile(tmp_path, *iterations(185_000, *stop)).ask("steps").to_pylist()
    assert [row["duration_ns"] for row in rows] == [100_000_000] * 5 + [99_990_000]
    assert not summarise(profile(tmp_path, *iterations(185_000, *stop))).findings


def test_work_at_the_end_of_the_last_step_is_work(tmp_path: Path) -> None:
    saved = operator("aten::save", 599_995, 80_000)
    rows = profile(tmp_path, *iterations(185_000, saved)).ask("steps").to_pylist()
    assert rows[-1]["duration_ns"] == 180_005_000  # and as quiet behind it as the other steps are


def test_launches_without_a_gpu_leave_the_limit_open(tmp_path: Path) -> None:
    # Of a file that is cut off, the events of GPUs are lost first: they are its last.
    events = [*iterations(99_990), *(call(100_000 * n + 20, 10, correlation=n + 1) for n in range(6))]
    work = [kernel("gemm", 100_000 * n + 40, 95_000, correlation=n + 1) for n in range(6)]
    whole, trimmed = (summarise(profile(tmp_path, *each)).verdict for each in ([*events, *work], events))
    assert whole.text.startswith("compute-bound: the GPU computes")
    assert trimmed.confidence == "low"
    assert trimmed.text.endswith("kernels were launched, but what the GPU did is not in the file")
