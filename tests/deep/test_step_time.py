"""What the time of steps went into: by hand, counted one by one, and as the TensorBoard plugin has it."""

import json
import random

import pytest

from strobe.errors import UsageError
from tests.deep.kineto import US, call, copy, kernel, operator, profile, step
from tests.public import FOLDER

ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec", "other")
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
PLUGIN = {"Kernel": "kernel", "Memcpy": "memcpy", "Memset": "memset", "Runtime": "runtime",
          "DataLoader": "data_loader", "CPU Exec": "cpu_exec", "Other": "other"}  # fmt: skip


def rows_of(table):
    return table.to_arrow().to_pylist()


def parts(row):
    return [row[f"{role}_ns"] // US for role in ROLES]


def test_what_comes_first_takes_the_time(tmp_path):
    events = []
    for n in range(4):
        at = 100 * n
        events += [step(n, at, 90), operator(LOADER, at, 20), operator("aten::mm", at + 20, 40)]
        events += [call(at + 30, 5, correlation=2 * n + 1), kernel("gemm", at + 32, 18, correlation=2 * n + 1)]
        events += [copy("Memcpy DtoH (Device -> Pinned)", at + 45, 10), copy("Memset (Device)", at + 54, 3)]
        events += [call(at + 36, 1, correlation=2 * n + 2), kernel(NCCL, at + 56, 14, stream=20, correlation=2 * n + 2)]
    trace = profile(tmp_path, *events, rank=2)
    # kernel 32..50, copy ..55, set ..57, communication ..70, call 30..32, loader 0..20, operator 20..30, nothing 70..90
    expected = [18, 5, 2, 13, 2, 20, 10, 20]
    (mean,) = rows_of(trace.step_time())
    assert (mean["rank"], mean["steps"], mean["duration_ns"], parts(mean)) == (2, 4, 90 * US, expected)
    assert mean["data_loader_share"] == pytest.approx(20 / 90)
    assert [parts(row) for row in rows_of(trace.step_time(by="step"))] == [expected] * 4
    (of_class,) = rows_of(trace.step_time(by="class"))
    assert (of_class["class"], of_class["steps"], parts(of_class)) == ("inference", 4, expected)


def test_a_step_lasts_until_its_work_is_done(tmp_path):
    # The kernel of step n is launched in it, and runs on until 10 us into step n + 1, or 20 us beyond the last mark.
    events = [step(n, 100 * n, 90) for n in range(4)]
    events += [call(100 * n + 70, 5, correlation=n + 1) for n in range(4)]
    events += [kernel("gemm", 100 * n + 80, 30, correlation=n + 1) for n in range(4)]
    table = profile(tmp_path, *events).step_time(by="step")
    assert [row["duration_ns"] // US for row in rows_of(table)] == [110, 100, 100, 100]
    assert [row["kernel_ns"] // US for row in rows_of(table)] == [30, 30, 30, 30]
    assert "marks of PyTorch's profiler" in table.about


def test_a_last_step_without_all_its_kernels_does_not_count(tmp_path):
    events = [step(n, 100 * n, 100) for n in range(4)]
    for at in [*range(0, 50, 10), *range(100, 150, 10), *range(200, 250, 10), *range(300, 330, 10)]:
        number = at + 1
        events += [call(at, 1, correlation=number), kernel("gemm", at + 2, 4, correlation=number)]
    trace = profile(tmp_path, *events)
    assert [row["counted"] for row in rows_of(trace.step_time(by="step"))] == [True, True, True, False]
    (mean,) = rows_of(trace.step_time())
    assert (mean["steps"], mean["kernel_ns"]) == (3, 20 * US)


def test_without_a_gpu_the_host_is_divided_and_without_steps_a_sentence_says_so(tmp_path):
    events = [step(n, 100 * n, 100) for n in range(3)]
    events += [operator("aten::mm", 100 * n + 10, 30) for n in range(3)]
    (mean,) = rows_of(profile(tmp_path, *events).step_time())
    assert parts(mean) == [0, 0, 0, 0, 0, 0, 30, 70]
    table = profile(tmp_path, operator("aten::mm", 0, 5)).step_time()
    assert len(table) == 0
    assert "no steps were found" in table.note


def test_steps_that_are_not_there_are_refused_with_those_that_are(tmp_path):
    events = [step(n, 100 * n, 100) for n in range(3)]
    events += [operator("aten::mm", 100 * n + 10, 30) for n in range(3)]
    trace = profile(tmp_path, *events)
    for asked in ("5000", "5000..6000"):
        with pytest.raises(UsageError, match=f"no step {asked} is in this trace: its steps are 0 to 2"):
            trace.profile(step=asked)
    assert len(trace.profile(step="2..6000")) > 0


def test_the_division_equals_counting_microsecond_by_microsecond(tmp_path):
    draw = random.Random(7)
    kinds = [("gemm", kernel, 0), ("Memcpy HtoD (Pinned -> Device)", copy, 1), ("Memset (Device)", copy, 2),
             (NCCL, kernel, 3), (LOADER, operator, 5), ("aten::mm", operator, 6)]  # fmt: skip
    events, ran = [step(n, 300 * n, 300, thread=100) for n in range(4)], []
    for lane in range(12):
        name, make, role = kinds[lane % len(kinds)]
        at = 0
        while (at := at + draw.randrange(1, 90)) < 1150:
            length = draw.randrange(1, 40)
            where = {"thread": 50 + lane} if make is operator else {"stream": 50 + lane}
            events.append(make(name, at, length, **where))
            ran.append((at, at + length, role))
            at += length
    counted = [[0] * len(ROLES) for _ in range(4)]
    for us in range(1200):
        running = [role for begin, end, role in ran if begin <= us < end]
        counted[us // 300][min(running, default=7)] += 1
    assert [parts(row) for row in rows_of(profile(tmp_path, *events).step_time(by="step"))] == counted


@pytest.mark.parametrize("workers", [0, 4])
def test_public_steps_are_divided_as_the_tensorboard_plugin_divides_them(public, workers):
    trace = public(f"kineto/resnet50_loader_workers{workers}.json.gz")
    plugin = json.loads((FOLDER / f"resnet50_loader_workers{workers}.tensorboard.json").read_text())
    (mean,) = rows_of(trace.step_time())
    whole = plugin["performance"]
    assert mean["duration_ns"] / US == pytest.approx(whole["value"], abs=0.51)
    for each in whole["children"]:
        assert mean[f"{PLUGIN[each['name']]}_ns"] / US == pytest.approx(each["value"], abs=0.51)
        assert 100 * mean[f"{PLUGIN[each['name']]}_share"] == pytest.approx(each["extra"], abs=0.0051)
    by_step = [[value for value in row[1:] if not isinstance(value, str)] for row in plugin["steps"]["rows"]]
    found = rows_of(trace.step_time(by="step"))
    assert [[row[f"{role}_ns"] / US for role in PLUGIN.values()] for row in found] == by_step


def test_kernels_of_nccl_communicate_and_calls_are_runtime_where_the_plugin_misses_both(public):
    # torch-tb-profiler 0.4.3 on this file: it finds communication by the names of operators of 2021, so most kernels of
    # NCCL are Kernel, and does not know the category `cuda_runtime`, so its calls are CPU Exec or Other.
    (mean,) = rows_of(public("kineto/v100_train_rank1of2.json.gz").step_time())
    us = {role: mean[f"{role}_ns"] / US for role in ROLES}
    assert mean["duration_ns"] / US == pytest.approx(347544, abs=0.51)
    assert (us["memcpy"], us["memset"]) == pytest.approx((4372, 178), abs=0.51)
    assert us["kernel"] + us["communication"] == pytest.approx(195572 + 8626, abs=1.01)
    assert us["communication"] > 8 * 8626
    assert us["runtime"] + us["cpu_exec"] + us["other"] == pytest.approx(123673 + 15122, abs=1.01)
    assert us["runtime"] > 10_000


def test_all_ranks_have_rows(public):
    rows = rows_of(public("kineto/two_ranks").step_time())
    # Durations of the plugin, each from its rank's file alone.
    assert [(row["rank"], row["duration_ns"] // US) for row in rows] == [(0, 615120), (1, 619271)]
