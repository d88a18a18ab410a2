"""strobe.compat.torch: a program written for torch.profiler whose only change is where the names come from, with
PyTorch's own answers to the same program as the truth."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Workshop

pytestmark = pytest.mark.torch

PROGRAM = """
    import json
    import torch
    from MODULE import (
        ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler,
    )

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train_step():
        optimizer.zero_grad()
        with record_function("forward of mine"):
            loss = net(torch.ones(4, 8)).sum()
        loss.backward()
        optimizer.step()

    cycles = []

    def ready(prof):
        cycles.append({event.key: event.count for event in prof.key_averages()})

    train_step()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=ready,
    ) as prof:
        for _ in range(10):
            train_step()
            prof.step()
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=tensorboard_trace_handler("logs", "me")) as prof:
        for _ in range(3):
            train_step()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        for _ in range(3):
            train_step()
    prof.add_metadata("batch", "four")
    prof.export_chrome_trace("trace.json.gz")
    whole = {event.key: [event.count, event.self_cpu_time_total <= event.cpu_time_total + 0.01]
             for event in prof.key_averages()}
    table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    names = sorted(event.name for event in prof.events())
    print(json.dumps([cycles, whole, table.splitlines()[1].split()[:4], names, net[0].weight.sum().item()]))
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Workshop, list[object]]]:
    """What the program said, with PyTorch's profiler and with ours."""
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    found = {}
    for module in ("torch.profiler", "strobe.compat.torch"):
        workshop = Workshop(tmp_path_factory.mktemp(module.replace(".", "_")))
        workshop.write("program.py", PROGRAM.replace("MODULE", module))
        done = workshop.plain("program.py")
        assert done.returncode == 0, done.stderr
        found[module] = workshop, json.loads(done.stdout)
    return found


def test_every_cycle_counts_the_operators_that_torch_profiler_counts(ran: dict[str, tuple[Workshop, list]]) -> None:
    (_, theirs), (_, ours) = ran.values()
    assert len(theirs[0]) == 2
    assert ours[0] == theirs[0]
    assert ours[0][0]["ProfilerStep*"] == 2
    assert ours[0][0]["aten::addmm"] == 4
    assert ours[1] == theirs[1]
    assert ours[3] == theirs[3]
    assert ours[2] == theirs[2]  # the head of the table
    assert ours[4] == theirs[4]  # what was trained


def test_the_traces_are_strobes(ran: dict[str, tuple[Workshop, list]]) -> None:
    workshop, (cycles, *_) = ran["strobe.compat.torch"]
    first = strobe.open(workshop.folder / "program.strobe")
    calls = {row["name"]: row["calls"] for row in first.operators(step="all").to_pylist()}
    assert calls["aten::addmm"] == cycles[0]["aten::addmm"]
    assert calls["forward of mine"] == 2
    assert len(first.steps()) == 2
    # What was exported reads back, with the program's own ranges.
    exported = strobe.open(workshop.folder / "trace.json.gz")
    assert {row["name"]: row["calls"] for row in exported.operators(step="all").to_pylist()}["aten::addmm"] == 6
    with gzip.open(workshop.folder / "trace.json.gz", "rt") as packed:
        assert json.load(packed)["batch"] == "four"
    assert len(list((workshop.folder / "logs").glob("me.*.pt.trace.json"))) == 1


def test_under_strobe_run_the_program_goes_on_in_that_trace(workshop: Workshop) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    workshop.write(
        "program.py",
        """
        import torch
        import strobe
        from strobe.compat.torch import profile
        with profile() as prof:
            torch.ones(3).sin()
        try:
            prof.key_averages()
        except strobe.StrobeError as error:
            print(error)
        """,
    )
    done = workshop.recorded("program.py")
    assert done.stdout.startswith("this profile has no trace\n")
    assert "recorded already" in done.stderr
    assert "aten::sin" in strobe.open(done.trace).operators(step="all").column("name")
    assert [path.name for path in Path(workshop.folder).glob("*.strobe")] == ["out.strobe"]
