"""The step trace: by hand on the host and on a GPU, and against plain arithmetic on public traces."""

import gzip
import json
import re

from tests.deep.kineto import US, call, copy, kernel, operator, profile, step
from tests.public import FOLDER
from tests.unit.hand_made import make_trace, train_steps

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NODE = "autograd::engine::evaluate_function: MmBackward0"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def rows_of(table):
    return table.to_arrow().to_pylist()


def parts(row):
    return [row[f"{part}_ns"] for part in ("interval", "forward_backward", "tail", "wait")]


def on_host(n):
    """Wait 5..15, forward 20..50, backward 50..80, optimizer 85..95; calls launch numbers 4n+1 ... in each of them."""
    at, first = 100 * n, 4 * n + 1
    return [
        step(n, at, 100),
        operator(LOADER, at + 5, 10),
        call(at + 16, 1, "cudaMemcpyAsync", correlation=first),
        operator("aten::mm", at + 20, 30),
        call(at + 22, 1, correlation=first + 1),
        operator(NODE, at + 50, 30),
        call(at + 60, 1, correlation=first + 2),
        operator("Optimizer.step#SGD.step", at + 85, 10),
        call(at + 90, 1, correlation=first + 3),
    ]


def test_without_a_gpu_operators_bound_the_passes(tmp_path):
    events = [event for n in range(4) for event in on_host(n)]
    table = profile(tmp_path, *events, rank=1).step_trace()
    (row,) = rows_of(table)
    assert (row["rank"], row["steps"], row["duration_ns"]) == (1, 4, 100 * US)
    assert parts(row) == [20 * US, 60 * US, 20 * US, 10 * US]
    assert (row["interval_share"], row["forward_backward_share"], row["tail_share"]) == (0.2, 0.6, 0.2)
    assert "on the host" in table.about


def test_on_a_gpu_kernels_bound_the_passes_and_collectives_are_lines(tmp_path):
    events = []
    for n in range(4):
        at, first = 100 * n, 4 * n + 1
        events += on_host(n)
        # The copy is no forward pass. The gradient is reduced until 83; the optimizer's kernel ends with the step.
        events += [copy("Memcpy HtoD (Pageable -> Device)", at + 17, 4, correlation=first)]
        events += [kernel("gemm", at + 30, 25, correlation=first + 1)]
        events += [kernel("gemm", at + 62, 13, correlation=first + 2)]
        events += [kernel(NCCL, at + 64, 4, stream=20), kernel(NCCL, at + 70, 3, stream=20)]
        events += [kernel(NCCL, at + 76, 7, stream=20, correlation=first + 2)]
        events += [kernel("sgd", at + 92, 5, correlation=first + 3)]
    trace = profile(tmp_path, *events)
    table = trace.step_trace(by="step")
    assert [parts(row) for row in rows_of(table)] == [[30 * US, 45 * US, 25 * US, 10 * US]] * 4
    assert "on the GPU" in table.about
    lines = [row for row in rows_of(trace.step_trace(by="collective")) if row["step"] == 2]
    found = [(row["line"], row["part"], row["start_ns"] // US % 100, row["duration_ns"] // US) for row in lines]
    assert found == [
        ("stream_20_0", "forward_backward", 64, 4),
        ("stream_20_1", "forward_backward", 70, 3),
        ("stream_20_2", "tail", 76, 7),
    ]


def test_recorded_steps_without_marks_have_a_trace():
    ms = 1_000_000
    trace = make_trace(
        {"main": train_steps(12, wait_ns=2 * ms, python_ns=3 * ms, forward_ns=4 * ms, backward_ns=5 * ms)}
    )
    rows = rows_of(trace.step_trace(by="step"))
    assert len(rows) == 12
    for number, row in enumerate(rows):
        jitter = 1000 * (number * 7 % 11)  # of the wait; zeroing gradients takes 1 us
        assert row["wait_ns"] == 2 * ms + jitter
        assert parts(row)[1:3] == [9 * ms, 1 * ms]
        assert sum(parts(row)[:3]) == row["duration_ns"]


def test_a_public_trace_equals_plain_arithmetic(public):
    """The GPU is behind: when the next step begins, it still has gradients to compute. So the host's passes count."""
    name = "kineto/resnet50_loader_workers0.json.gz"
    with gzip.open(FOLDER / name) as file:
        events = [each for each in json.load(file)["traceEvents"] if each.get("ph") == "X"]
    base = min(each["ts"] for each in events)
    (thread,) = {each["tid"] for each in events if each["name"] == LOADER}
    operators = sorted(each["ts"] for each in events if each["tid"] == thread and each["name"].startswith("aten::"))
    nodes = sorted(
        each["ts"] + each["dur"] for each in events if re.search(r"Backward\d*$|AccumulateGrad$", each["name"])
    )
    waits = sorted(each["ts"] + each["dur"] for each in events if each["name"] == LOADER)
    updates = sorted(each["ts"] for each in events if each["name"].startswith("Optimizer.step#"))
    rows = rows_of(public(name).step_trace(by="step"))
    assert len(rows) == len(waits) == len(updates) == 6
    for row, fed, update in zip(rows, waits, updates, strict=True):
        forward_ns = row["start_ns"] + row["interval_ns"]
        assert forward_ns == (min(at for at in operators if at >= fed) - base) * US
        assert forward_ns + row["forward_backward_ns"] == (max(at for at in nodes if at < update) - base) * US
        assert sum(parts(row)[:3]) == row["duration_ns"]


def test_every_collective_of_every_rank_is_a_line(public):
    trace = public("kineto/two_ranks")
    steps = rows_of(trace.step_time(by="step"))
    lines = rows_of(trace.step_trace(by="collective"))
    for rank in (0, 1):
        mine = [row for row in steps if row["rank"] == rank]
        begin, end = mine[0]["start_ns"], mine[-1]["start_ns"] + mine[-1]["duration_ns"]
        counted = trace.sql(
            "select count(*) from spans join processes using (process) where starts_with(spans.name, 'nccl') "
            f"and spans.role = 'kernel' and rank = {rank} and start_ns >= {begin} and start_ns < {end}"
        ).rows()[0][0]
        assert len([row for row in lines if row["rank"] == rank]) == counted > 0


def test_without_steps_or_collectives_a_sentence_says_so(tmp_path):
    trace = profile(tmp_path, operator("aten::mm", 0, 5))
    assert (len(trace.step_trace()), len(trace.step_trace(by="collective"))) == (0, 0)
    assert "no steps were found" in trace.step_trace().note
    assert "no kernel of a collective" in trace.step_trace(by="collective").note
