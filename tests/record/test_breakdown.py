"""Where the time of steps goes, by part and kind: against the spans of the same run, and clocks of the programs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Workshop

KINDS = ("communication_ns", "gpu_wait_ns", "gpu_call_ns", "operators_ns", "data_wait_ns", "host_ns")
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))

TRAINING = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = DataLoader(TensorDataset(torch.randn(3200, 64), torch.randint(0, 10, (3200,))), batch_size=32)
    for epoch in range(3):
        for x, y in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
"""
# The time of each innermost stretch of the steps in which an operator runs, from the spans alone. What an update does
# outside of its operators is Python's.
OPERATORS = """
    select sum(s.duration_ns - coalesce(inner_ns, 0)) as own_ns, t.class
    from spans s join regions r on r.region = s.region
    left join (select location, parent, sum(duration_ns) as inner_ns from spans where parent is not null
               group by location, parent) as i on i.location = s.location and i.parent = s.row
    join steps t on s.start_ns >= t.start_ns and s.start_ns < t.start_ns + t.duration_ns
    where r.paradigm = 'torch' and r."group" <> 'data' and r.name <> 'autograd::engine::run_backward'
    and r.name not like 'Optimizer.%'
    and not exists (select 1 from spans w join regions d on d.region = w.region where d."group" = 'data'
                    and s.start_ns between w.start_ns and w.start_ns + w.duration_ns)
    group by t.class
"""


def sums(trace: strobe.Trace, process: int = 0) -> Counter[tuple[str, str]]:
    """The time of all steps of a process by part and kind, ns."""
    found = Counter[tuple[str, str]]()
    for row in trace.breakdown(by="step").to_pylist():
        if row["process"] == process:
            for kind in KINDS:
                found[row["part"], kind] += row[kind]
    return found


@pytest.mark.torch
@pytest.mark.parametrize("keep", ["10", "all"])
def test_operators_are_the_innermost_time_of_their_spans(tmp_path: Path, keep: str) -> None:
    workshop = Workshop(tmp_path)
    workshop.write("train.py", TRAINING)
    done = workshop.recorded("train.py", env={"STROBE_KEEP": keep})
    assert done.returncode == 0, done.stderr
    with strobe.open(workshop.trace) as trace:
        steps = trace.steps().to_pylist()
        assert len(steps) == 300
        found = sums(trace)
        assert sum(found["step", kind] for kind in KINDS) == sum(row["duration_ns"] for row in steps)
        kept = {row["step"] for row in steps if row["detail"] == "all"}
        rows = [row for row in trace.breakdown(by="step").to_pylist() if row["step"] in kept and row["part"] == "step"]
        (of_spans,) = trace.sql(OPERATORS).to_pylist()
    assert len(kept) == 300 if keep == "all" else 10 <= len(kept) < 200
    # What was recorded of the kept steps while they ran is what their spans hold.
    assert sum(row["operators_ns"] for row in rows) == pytest.approx(int(of_spans["own_ns"]), rel=0.001)
    assert found["backward", "operators_ns"] > 0.1 * found["step", "operators_ns"]
    assert not any(found["step", kind] for kind in KINDS[:3])


DISTRIBUTED = """
    import json, os, time
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    net = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    backward = 0
    for step in range(40):
        x = torch.randn(16, 64)
        if rank == 1:
            time.sleep(0.02)
        loss = net(x).square().mean()
        begin = time.perf_counter_ns()
        loss.backward()
        backward += time.perf_counter_ns() - begin
        optimizer.step()
        optimizer.zero_grad()
    with open(f"backward-{rank}.json", "w") as file:
        json.dump(backward, file)
    dist.destroy_process_group()
"""


@pytest.mark.torch
def test_the_wait_for_other_ranks_is_a_part_of_the_backward_pass(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write("train.py", DISTRIBUTED)
    words = ("--", TORCHRUN, "--nproc_per_node", "2", "train.py")
    done = workshop.recorded(*words, env={"OMP_NUM_THREADS": "1", "STROBE_KEEP": "10"})
    assert done.returncode == 0, done.stderr
    with strobe.open(workshop.trace) as trace:
        by_rank = {row["rank"]: row["process"] for row in trace.processes.to_pylist() if row["rank"] is not None}
        for rank, process in by_rank.items():
            backward = json.loads((tmp_path / f"backward-{rank}.json").read_text())
            assert backward > 0.6e9 or rank == 1
            found = sums(trace, process)
            in_it = sum(found["backward", kind] for kind in KINDS)
            assert in_it == pytest.approx(backward, rel=0.05, abs=20e6), rank
            assert found["backward", "operators_ns"] < 0.5 * in_it or rank == 1


FIRST_BATCH = """
    import json, time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 64
        def __getitem__(self, i):
            return torch.ones(8), torch.ones(1)

    class Shuffled(torch.utils.data.Sampler):
        def __iter__(self):
            time.sleep(0.05)  # reads its index
            yield from range(64)
        def __len__(self):
            return 64

    class Slow(DataLoader):
        def __iter__(self):
            return super().__iter__()
        def _get_iterator(self):
            time.sleep(0.05)
            return super()._get_iterator()

    net = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(5):
        for x, y in Slow(Rows(), batch_size=8, sampler=Shuffled()):
            optimizer.zero_grad()
            (net(x) - y).square().mean().backward()
            optimizer.step()
"""


@pytest.mark.torch
def test_making_the_iterator_of_a_loader_is_waiting_for_data(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write("train.py", FIRST_BATCH)
    done = workshop.recorded("train.py")
    assert done.returncode == 0, done.stderr
    with strobe.open(workshop.trace) as trace:
        steps = trace.steps().to_pylist()
    assert len(steps) == 40
    first = [row["data_wait_ns"] for row in steps[::8]]
    # Twice 50 ms at the beginning of each epoch, the first one included.
    assert all(90e6 < wait < 400e6 for wait in first), first
