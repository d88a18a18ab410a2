"""Steps that a profiler marks: as many, and as long, as the marks in the file, with stacks and without, many or one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe.api.imports import opened
from tests.deep.kineto import call, event, kernel, operator, profile, step

PROGRAM = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, TensorDataset

net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(net.parameters())
batches = DataLoader(TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,))), batch_size=32)
for stacks in ("stacks", "plain"):
    for active in (1, 5):
        with profile(
            activities=[ProfilerActivity.CPU], with_stack=stacks == "stacks",
            schedule=schedule(wait=1, warmup=1, active=active),
            on_trace_ready=lambda done: done.export_chrome_trace(f"{sys.argv[1]}/{stacks}-{active}.json"),
        ) as profiler:
            for number, (x, y) in enumerate(batches):
                if number == active + 2:
                    break
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(net(x), y).backward()
                optimizer.step()
                profiler.step()
"""


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the profiles of one training."""
    folder = tmp_path_factory.mktemp("profiles")
    subprocess.run([sys.executable, "-c", PROGRAM, str(folder)], check=True, capture_output=True)
    return folder


@pytest.mark.torch
@pytest.mark.parametrize("active", [1, 5])
@pytest.mark.parametrize("stacks", ["stacks", "plain"])
def test_steps_are_the_marks_of_the_profiler(profiles: Path, stacks: str, active: int) -> None:
    path = profiles / f"{stacks}-{active}.json"
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("ph") == "X"]
    marks = sorted((e["ts"], e["dur"]) for e in events if e["name"].startswith("ProfilerStep#"))
    assert len(marks) == active

    trace = strobe.open(opened(path, talk=False))
    steps = trace.ask("steps").to_pylist()
    assert len(steps) == active
    for row, (start, duration), following in zip(steps, marks, [*marks[1:], None], strict=True):
        until = start + duration if following is None else following[0]
        assert int(str(row["duration_ns"])) == pytest.approx(1000 * (until - start), abs=2)
    # What frameworks mark lies on the thread itself: the optimizer and the loader are parts of the steps.
    # Gradients are zeroed before the first operator of the update, and take as long as it on a busy machine.
    updates = ("Optimizer.step#", "Optimizer.zero_grad#")
    for names, part in ((updates, "optimizer_ns"), ("enumerate(DataLoader)#", "data_wait_ns")):
        inside = [e for e in events if e["name"].startswith(names) and e["ts"] >= marks[0][0]]
        assert inside
        expected = 1000 * sum(e["dur"] for e in inside)
        # Calls of Python beside it, in the same step, are a part of it, too.
        assert 0.9 * expected <= sum(int(str(row[part])) for row in steps) <= 1.3 * expected + active * 500_000
    assert not [row for row in trace.locations.to_pylist() if "(lane" in str(row["name"])]


@pytest.mark.parametrize("name", ["diff_test", "nccl_data", "resnet50_loader_workers0", "v100_train_rank1of2"])
def test_marked_steps_of_public_trainings_share_their_positions(public, name: str) -> None:
    stack = public(f"kineto/{name}.json.gz").stack()
    durations = stack.to_numpy("duration")[:, :-1]
    assert len(stack) >= 3
    assert np.isfinite(durations).mean() > 0.95


@pytest.mark.parametrize(
    "marks",
    [
        ["execute_8192_context_9(sq8155)_generation_37(sq37)", "execute_32_context_0(sq0)_generation_32(sq32)"],
        ["step[EXTEND bs=15 toks=15360]", "step[DECODE bs=32]"],
    ],
)
def test_steps_of_serving_engines_are_their_annotations(tmp_path: Path, marks: list[str]) -> None:
    # Layers repeat in each, as many as there are: they are not steps.
    events = []
    for number in range(6):
        at = 1000 * number + 5 * number * number
        events.append(event("user_annotation", marks[number % 2], at, 900, 100, 1))
        for layer in range(36):
            events += [
                operator("aten::linear", at + 20 * layer + 1, 9),
                operator("aten::gelu", at + 20 * layer + 11, 5),
            ]
    rows = profile(tmp_path, *events).ask("steps").to_pylist()
    assert [row["start_ns"] for row in rows] == [1000 * (1000 * n + 5 * n * n) for n in range(6)]


def test_an_annotation_inside_of_another_is_not_a_step_of_its_own(tmp_path: Path) -> None:
    outer = event("user_annotation", "execute_32_context_0(sq0)_generation_32(sq32)", 0, 500, 100, 1)
    inner = event("user_annotation", "step[DECODE bs=32]", 20, 470, 100, 1)
    (row,) = profile(tmp_path, outer, inner, operator("aten::mm", 30, 100)).ask("steps").to_pylist()
    assert (row["start_ns"], row["duration_ns"]) == (0, 500_000)


def test_one_mark_is_one_step_whatever_repeats_inside_of_it(tmp_path: Path) -> None:
    # An inference of 24 layers, profiled with one active step: a layer is not a step.
    events = [step(6, 0, 2500)]
    for layer in range(24):
        at = 100 * layer + 10
        events += [operator("aten::linear", at, 30), operator("aten::gelu", at + 40, 20)]
        events += [call(at + 5, 2, correlation=layer + 1), kernel("gemm", at + 20, 50, correlation=layer + 1)]
    (row,) = profile(tmp_path, *events).ask("steps").to_pylist()
    assert (row["start_ns"], row["duration_ns"]) == (0, 2_500_000)
