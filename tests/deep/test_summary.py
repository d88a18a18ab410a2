"""What the summary says of GPUs: shares of the steady steps, and the verdict."""

from dataclasses import replace

import pytest

from strobe.present.gpus import Gpu, gpu_verdict, gpus
from strobe.present.summary import summarise
from strobe.present.summary_text import summary_text
from strobe.present.verdict import verdict
from strobe.steps.usual_steps import usual_steps
from tests.deep.kineto import call, kernel, operator, profile, step
from tests.unit.hand_made import HandMadeProcess, make_trace, train_steps


def training(folder, *per_step):
    """Six steps of 1 ms with three operators each; `per_step`: name, start and duration of kernels in every one."""
    events = [step(n, 1000 * n, 1000) for n in range(6)]
    events += [operator(name, 1000 * n + at, 200) for n in range(6)
               for at, name in [(0, "aten::conv2d"), (300, "aten::mm"), (600, "aten::sum")]]  # fmt: skip
    events += [
        kernel(name, 1000 * n + at, us, stream=7 + k) for n in range(6) for k, (name, at, us) in enumerate(per_step)
    ]
    return profile(folder, *events)


def test_the_summary_says_what_the_gpu_does_during_the_steps(tmp_path):
    # 300 us computing, of which the last 100 beside nccl's 600: 500 only communicating, 200 idle.
    summary = summarise(training(tmp_path, ("gemm", 100, 300), ("ncclDevKernel_AllReduce", 300, 600)))
    (gpu,) = summary.gpus
    parts = (gpu.computation, gpu.communication, gpu.copy, gpu.idle)
    assert parts == pytest.approx((0.3, 0.5, 0.0, 0.2), abs=0.03)
    assert sum(parts) == pytest.approx(1)
    assert summary.verdict.kind == "communication-bound"
    assert summary.verdict.share == gpu.communication
    told = summary_text(summary)
    assert "only communicates" in told
    assert "only copies" not in told


@pytest.mark.parametrize(
    ("kernels", "kind"), [([("gemm", 0, 300)], "host-bound"), ([("gemm", 0, 950)], "compute-bound")]
)
def test_the_verdict_is_about_the_gpu_where_there_is_one(tmp_path, kernels, kind):
    assert summarise(training(tmp_path, *kernels)).verdict.kind == kind


def test_the_verdict_of_several_gpus_is_about_their_mean():
    two = [Gpu("GPU 0", rank, 100, compute, 0.0, 0.0, 1 - compute) for rank, compute in [(0, 0.7), (1, 0.1)]]
    kind, text, share, _ = gpu_verdict(two)
    assert (kind, share) == ("host-bound", pytest.approx(0.6))
    assert "2 GPUs are idle 60 % of the time on average" in text


def test_where_the_gpu_is_idle_the_verdict_adds_what_the_main_thread_does(tmp_path):
    # 600 of each 1000 us are in operators of the main thread
    text = summarise(training(tmp_path, ("gemm", 0, 300))).verdict.text
    assert text.startswith("host-bound: the GPU is idle 70 % of the time; operators take 60 % of the loop's time")


def test_copies_without_computing_limit_the_loop():
    kind, text, share, _ = gpu_verdict([Gpu("GPU 0", None, 100, 0.2, 0.0, 0.5, 0.3)])
    assert (kind, share) == ("transfer-bound", 0.5)
    assert "the GPU copies without computing 50 % of the time, and is idle 30 %" in text


@pytest.mark.parametrize(("waits", "kind"), [((0.6, 0.1, 0.6), "imbalanced"), ((0.6, 0.5, 0.6), "communication-bound")])
def test_the_rank_whose_gpu_waits_for_no_other_is_late(tmp_path, waits, kind):
    trace = training(tmp_path, ("gemm", 0, 300))
    found = [Gpu("GPU 0", rank, 100, 1 - wait, wait, 0.0, 0.0) for rank, wait in enumerate(waits)]
    verdict_of = verdict(trace, usual_steps(trace), found, "")
    assert verdict_of.kind == kind
    if kind == "imbalanced":
        # (0.9 - (0.4 + 0.9 + 0.4) / 3)
        assert verdict_of.share == pytest.approx(1 / 3, abs=0.01)
        assert "the GPU of rank 1 only communicates 10 % of the time, the median of the others 60 %" in verdict_of.text


def test_many_gpus_take_few_lines(tmp_path):
    summary = summarise(training(tmp_path, ("gemm", 0, 300)))
    many = tuple(Gpu("GPU 0", rank, 100, 0.5, 0.0, 0.0, 0.3 + rank / 100) for rank in range(64))
    lines = [line for line in summary_text(replace(summary, gpus=many)).splitlines() if "GPU 0" in line]
    assert ["rank 63" in lines[0], len(lines)] == [True, 4]
    assert "60 more GPUs" in summary_text(replace(summary, gpus=many))


def test_waiting_for_data_counts_while_the_gpu_has_nothing_to_do(public):
    """33.4 % of a step by the TensorBoard plugin; the loop waits longer, but the GPU still works on the step before."""
    trace = public("kineto/resnet50_loader_workers0.json.gz")
    verdict = summarise(trace).verdict
    assert verdict.kind == "input-bound"
    assert verdict.share == pytest.approx(0.3337, abs=0.01)
    assert "while the GPU is idle" in verdict.text
    waits = next(part.share for part in summarise(trace).step.parts if part.name == "data_wait")
    assert waits > 0.36


def test_a_gpu_that_is_behind_its_host_computes_as_much_as_its_own_lanes_have(tmp_path):
    """The host launches 8 steps of 1 ms at once; each has 0.9 ms of a kernel, the last of which end behind the host."""
    events = [each for n in range(8) for each in (step(n, 1000 * n, 1000), call(1000 * n + 5, 2, correlation=n + 1))]
    events += [kernel("gemm", 900 + 1000 * n, 900, correlation=n + 1) for n in range(8)]
    (gpu,) = gpus(profile(tmp_path, *events))
    # From the first kernel to the end of the last: 7.9 ms, of which 7.2 are kernels.
    assert (gpu.computation, gpu.idle) == pytest.approx((7.2 / 7.9, 0.7 / 7.9))


@pytest.mark.parametrize(("code", "failed"), [(0, False), (3, True)])
def test_a_program_that_failed_is_said_to_have_failed(code, failed):
    trace = make_trace(HandMadeProcess({"main": train_steps(20)}, exit_code=code))
    assert ("the program ended with exit code 3" in summary_text(summarise(trace))) == failed
