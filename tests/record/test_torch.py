"""What is recorded of a PyTorch program: operators of every thread, its own profiler left alone, loader workers."""

import json
import os

import pytest

import strobe
from strobe.model.kinds import CORES, OPERATOR_THREADS, OPTIMIZED_PARAMETERS
from tests.record.workshop import Workshop

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch


def names(workshop: Workshop, where: str = "true") -> dict[str, int]:
    """Name of each region and how many spans it has."""
    with strobe.open(workshop.trace) as trace:
        table = trace.sql(f"select name, count(*) as n from spans where {where} group by name")
        return {row["name"]: row["n"] for row in table.to_arrow().to_pylist()}


def test_operators_autograd_and_optimizer_are_recorded_as_often_as_they_run(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import torch
        torch.set_num_threads(3)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 3)
            def forward(self, x):
                return self.linear(x)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(17):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    found = names(workshop, "paradigm = 'torch'")
    assert found["aten::linear"] == 17
    assert found["autograd::engine::evaluate_function: AddmmBackward0"] == 17
    assert found["Optimizer.step#SGD.step"] == 17
    assert found["Optimizer.zero_grad#SGD.zero_grad"] == 17
    with strobe.open(workshop.trace) as trace:
        # All that the module does is one operator and what that calls.
        expected = [row["total_ns"] for row in trace.operators(step="all").to_pylist() if row["name"] == "aten::linear"]
        modules = trace.operators(by="module", step="all").to_pylist()
        assert [row["total_ns"] for row in modules if row["module"] == "Net"] == expected
        lines = trace.operators(by="line", step="all").to_pylist()
        (line,) = (row for row in lines if row["function"] == "Net.forward")
        assert line["line"].endswith("program.py:8")
        assert [line["total_ns"]] == expected
        last = {reading.metric: reading.values.tolist() for reading in trace.readings()}
        assert (last[OPERATOR_THREADS], last[CORES]) == ([3.0], [len(os.sched_getaffinity(0))])
        assert last[OPTIMIZED_PARAMETERS] == [2.0]  # weight and bias
        assert "unrecorded_ms" not in trace.quality.column("what")


def test_threads_that_start_later_are_recorded_too(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import threading
        import torch

        def work(times):
            for _ in range(times):
                torch.ones(3).sin()

        threads = [threading.Thread(target=work, args=(10 + i,), name=f"worker-{i}") for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql("select thread, count(*) as n from spans where name = 'aten::sin' group by thread order by 1")
        assert [(row["thread"], row["n"]) for row in rows.to_arrow().to_pylist()] == [
            ("worker-0", 10),
            ("worker-1", 11),
            ("worker-2", 12),
        ]


PROFILED = """
import json
import torch

def work(times):
    for _ in range(times):
        torch.ones(3).sin()

work(5)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    work(7)
work(11)
with torch.autograd.profiler.emit_itt():
    work(13)
work(17)
seen = {event.key: event.count for event in profile.key_averages()}
print(json.dumps({"sin": seen["aten::sin"]}))
"""


def test_the_programs_own_profiler_gets_everything_and_ours_comes_back(workshop: Workshop) -> None:
    workshop.write("program.py", PROFILED)
    plain, recorded = workshop.plain("program.py"), workshop.recorded("program.py")
    assert recorded.returncode == 0, recorded.stderr
    assert json.loads(recorded.stdout) == json.loads(plain.stdout) == {"sin": 7}
    # 7 belong to the program's profiler; those under its own emit_itt reach us as well.
    assert names(workshop)["aten::sin"] == 5 + 11 + 13 + 17
    with strobe.open(workshop.trace) as trace:
        counted = {row["what"]: row["value"] for row in trace.quality.to_arrow().to_pylist()}
    assert counted["stepped_aside_for_torch_profiler"] == 2


def test_loader_workers_are_processes_of_the_same_trace(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 24
            def __getitem__(self, index):
                return torch.tensor(index)

        total = sum(int(batch.sum()) for _ in range(2) for batch in DataLoader(Numbers(), batch_size=4, num_workers=2))
        print(total)
        """,
    )
    assert workshop.recorded("program.py").visible == (f"{2 * sum(range(24))}\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql(
            "select thread, count(distinct process) as processes, count(*) as n from spans"
            " where name = 'DataLoader.fetch' group by thread order by thread"
        )
        fetched = [(row["thread"], row["processes"], row["n"]) for row in rows.to_arrow().to_pylist()]
        # Two epochs, each with two new workers, each of which fetches three of the six batches.
        assert fetched == [("DataLoader worker 0", 2, 6), ("DataLoader worker 1", 2, 6)]
        assert {row["end_state"] for row in trace.processes.to_arrow().to_pylist()} == {"closed", "exited"}
    found = names(workshop)
    assert found["Numbers.__getitem__"] == 48
    assert found["enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"] == 2 * 7


def test_a_thread_that_was_there_before_torch_is_counted_as_missing(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import threading
        go, done = threading.Event(), threading.Event()
        early = threading.Thread(target=lambda: (go.wait(), torch.ones(2).sin()))
        early.start()
        import torch
        go.set()
        early.join()
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        counted = {row["what"]: row["value"] for row in trace.quality.to_arrow().to_pylist()}
    assert counted["threads_without_torch_operators"] == 1


def test_a_fork_beside_other_threads_ends_without_a_word_of_pytorch(workshop: Workshop) -> None:
    # In the child the other thread's observer goes away on the main thread, whose own must stay on.
    workshop.write(
        "program.py",
        """
        import os, sys, threading
        import torch

        begun, over = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: (torch.zeros(2) + 1, begun.set(), over.wait()))
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            for _ in range(5):
                torch.ones(2).cos()
            sys.exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        over.set()
        thread.join()
        """,
    )
    assert workshop.recorded("program.py").visible == ("0\n", "", 0)
    assert names(workshop)["aten::cos"] == 5


def test_each_compilation_is_a_span_and_steps_that_compile_are_a_class_of_their_own(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import torch
        @torch.compile(backend="eager", dynamic=False)
        def model(x):
            return (x @ x.T).sum()
        compiled = torch._dynamo.utils.counters["frames"]
        for step in range(60):
            model(torch.ones(300 + step // 20, 200))
            torch.ones(400, 400) @ torch.ones(400, 400)
        print(compiled["ok"])
        """,
    )
    recorded = workshop.recorded("program.py")
    assert recorded.visible == ("3\n", "", 0)
    assert names(workshop)["torch.compile"] == 3
    with strobe.open(workshop.trace) as trace:
        compiled = trace.sql("select distinct step from spans where name = 'torch.compile' and step > 0").to_arrow()
        of_class = {row["step"]: row["class"] for row in trace.steps().to_pylist()}
        assert ["compile" in of_class[step] for step in compiled.column("step").to_pylist()] == [True, True]


def test_layers_of_a_model_are_no_steps(workshop: Workshop) -> None:
    """All that repeats in this loop is a layer, six times a call, each as long."""
    workshop.write(
        "program.py",
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(128, 128) for _ in range(6))
            def forward(self, x):
                for layer in self.layers:
                    x = torch.relu(layer(x))
                return x
        net, x = Net(), torch.randn(256, 128)
        with torch.inference_mode():
            for _ in range(250):
                y = net(x)
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        assert abs(len(trace.steps().to_pylist()) - 250) <= 1
