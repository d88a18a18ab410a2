"""Advice about GPUs: each rule on a profile with its problem, whose gain is computed by hand, and on a sound one."""

from itertools import count

import pytest

import strobe
from strobe.advice.rank import findings
from strobe.api.imports import opened
from strobe.present.summary import summarise
from tests.deep.kineto import call, copy, event, kernel, operator, profile, step, write

MS = 1000  # profiles are in microseconds
STEP = 100 * MS
STEPS = 12
AHEAD = 30 * MS
A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0,
        "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536,
        "sharedMemPerMultiprocessor": 167936}  # fmt: skip
_numbers = count(1)


def launched(called, start, duration, name="ampere_bf16_s16816gemm", in_operator="", **args):
    """A kernel, and the call that launched it, in an operator of 2 us more if that has a name."""
    number = next(_numbers)
    shapes = {key: args.pop(key) for key in ("Input_Dims", "Input_type", "Sequence_number") if key in args}
    work = [call(called, 2, correlation=number), kernel(name, start, duration, correlation=number, **args)]
    return [*work, operator(in_operator, called - 1, 4, **shapes)] if in_operator else work


def computing(begin, end):
    """Kernels of 10 ms or less, one behind the other; the host is 30 ms ahead."""
    starts = range(begin, end, 10 * MS)
    return [each for at in starts for each in launched(at, at + AHEAD, min(10 * MS, end - at) - 1)]


def all_advice(tmp_path, body, **top):
    """Findings, by rule, about 12 steps of 100 ms that hold the events of `body(begin)`."""
    begins = [STEP * (1 + number) for number in range(STEPS)]
    events = [each for number, begin in enumerate(begins) for each in (step(number, begin, STEP), *body(begin))]
    trace = profile(tmp_path, *events, deviceProperties=[A100], **top)
    return {each.rule: each for each in findings(trace)}


def advice(tmp_path, body, **top):
    """Findings with a gain, by rule."""
    return {rule: each for rule, each in all_advice(tmp_path, body, **top).items() if not each.informative}


def gain(finding):
    return finding.gain_low_ns / 1e6, finding.gain_high_ns / 1e6


def gain_of(low_ms, high_ms):
    """The bounds, with what changes beside: 15 % less, or 30 % more."""
    return pytest.approx((low_ms * 0.85, high_ms * 1.3), rel=0.01, abs=0.02)


def test_a_gpu_that_always_has_work_gets_no_advice(tmp_path):
    assert advice(tmp_path, lambda t: computing(t, t + STEP)) == {}


def test_grouped_products_are_not_in_double_precision(tmp_path):
    def body(t):
        yield from launched(t, t + AHEAD, STEP - 1, "kernel_grouped_gemm<DeviceGroupedGemm_Xdl>", "aten::_grouped_mm")

    assert advice(tmp_path, body) == {}


def test_the_verdict_knows_a_gpu_that_began_after_the_steps_of_the_host(tmp_path):
    begins = [STEP * (1 + number) for number in range(STEPS)]
    events = [step(number, begin, STEP) for number, begin in enumerate(begins)]
    events += [each for begin in begins for each in launched(begin + 1, 20 * STEP + begin, STEP - 1)]
    trace = profile(tmp_path, *events, deviceProperties=[A100])
    verdict = summarise(trace).verdict
    assert verdict.kind == "compute-bound"
    assert "not in the file" not in verdict.text


def test_short_kernels_that_are_launched_one_by_one_gain_their_gaps(tmp_path):
    def body(t):
        yield from launched(t + 1, t + 5, 90 * MS - 5)
        for at in range(t + 90 * MS + 20, t + STEP, 25):  # 400 gaps of 20 us
            yield from launched(at - 3, at, 5, in_operator="aten::add")

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.launch"}
    assert gain(found["gpu.launch"]) == gain_of(3.8, 7.6 + 1.5)  # of each gap 1 us stays; 3/4 of 400 kernels of 5 us
    assert "torch.compile" in found["gpu.launch"].do


@pytest.mark.parametrize(("short_ms", "reads"), [(0, "aten::item"), (0.04, "aten::is_nonzero")])
def test_waiting_for_a_value_gains_the_gap_behind_it_and_at_most_what_makes_the_value(tmp_path, short_ms, reads):
    def body(t):
        yield from launched(t - 9 * MS, t, 50 * MS - 3 * short_ms * MS)
        for n in range(3 if short_ms else 0):
            yield from launched(t - 9 * MS + 9, t + (50 - (3 - n) * short_ms) * MS, short_ms * MS, "reduce_kernel")
        yield operator(reads, t + 90, 50 * MS - 70)
        yield call(t + 100, 50 * MS - 90, "cudaStreamSynchronize", correlation=next(_numbers))
        yield from launched(t + 60 * MS, t + 60 * MS + 5, 40 * MS - 10)

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.sync"}
    assert gain(found["gpu.sync"]) == gain_of(10, 10 + 3 * short_ms)
    assert f"{reads} (cudaStreamSynchronize)" in found["gpu.sync"].what
    assert "keep the value on the GPU" in found["gpu.sync"].do


@pytest.mark.parametrize(("waited_ms", "gained_ms"), [(60, 30), (20, 20)])
def test_a_shorter_kernel_gains_as_much_as_the_host_waits_in_its_burst(tmp_path, waited_ms, gained_ms):
    def body(t):
        yield from launched(t + 1, t + 5, 60 * MS - 10)
        yield from launched(t + 10, t + 60 * MS, 30 * MS, "at::native::CatArrayBatchedCopy<float>", "aten::cat")
        wait = (t + (90 - waited_ms) * MS, waited_ms * MS + 10)
        yield call(*wait, "cudaStreamSynchronize", correlation=next(_numbers))

    found = advice(tmp_path, body)["gpu.movement"]
    mean_ms = (10 * gained_ms + 30) / 11  # of the last of 11 bursts no end is known: all counts
    assert gain(found) == gain_of(mean_ms / 2, mean_ms)


def test_copies_that_the_backward_pass_makes_of_copies_count_with_them(tmp_path):
    def body(t):
        yield from launched(t + 1, t + AHEAD, 80 * MS)
        yield from launched(t + 10, t + AHEAD + 80 * MS, 5 * MS, "direct_copy_kernel", "aten::clone")
        yield from launched(t + 20, t + AHEAD + 85 * MS, 5 * MS, "direct_copy_kernel", "CloneBackward0")
        yield from launched(t + 30, t + AHEAD + 90 * MS, 10 * MS - 1)

    assert gain(advice(tmp_path, body)["gpu.movement"]) == gain_of(5, 10)


def experts(module):
    """A step with a module of 40 experts: a kernel of 0.5 ms each, and 80 us in which the GPU idles behind a wait."""

    def body(t):
        yield event("python_function", module, t + 1, 23_740, 100, 1, Python_id=1, **{"Python module id": 1})
        yield from launched(t + 2, t + 5, 500)
        for at in range(t + 5, t + 5 + 40 * 580, 580):
            yield operator("aten::nonzero", at + 20, 490)
            yield call(at + 30, 475, "cudaStreamSynchronize", correlation=next(_numbers))
            yield from launched(at + 570, at + 580, 500)
        yield from launched(t + 23_750, t + 24 * MS, 76 * MS)

    return body


def test_experts_that_run_one_after_the_other_are_one_problem(tmp_path):
    found = advice(tmp_path, experts("nn.Module: MixtralMoE_0"))
    assert "40 a step" in found["gpu.experts"].what
    assert gain(found["gpu.experts"]) == gain_of(3.2, 6.4)  # at most: as much in the backward pass
    assert "gpu.sync" not in found
    assert "gpu.sync" in advice(tmp_path, experts("nn.Module: Decoder_0"))


def test_a_function_between_launches_is_named_with_its_line(tmp_path):
    def body(t):
        yield from launched(t - 9 * MS, t, 50 * MS)
        yield event("python_function", "train.py(12): augment", t + 20 * MS, 40 * MS, 100, 1, Python_id=1)
        yield from launched(t + 60 * MS, t + 60 * MS + 5, 40 * MS - 10)

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.host"}
    assert gain(found["gpu.host"]) == gain_of(10, 10)
    assert "augment" in found["gpu.host"].what
    assert found["gpu.host"].where == "train.py:12"


def test_memory_that_is_allocated_in_every_step_gains_the_time_of_the_calls(tmp_path):
    def body(t):
        yield from launched(t - 9 * MS, t, 50 * MS)
        yield call(t + 40 * MS, 20 * MS - 10, "cudaMalloc", correlation=next(_numbers))
        yield from launched(t + 60 * MS, t + 60 * MS + 5, 40 * MS - 10)

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.allocation"}
    assert gain(found["gpu.allocation"]) == gain_of(10, 10)


def test_a_copy_from_pageable_memory_gains_what_pinned_memory_is_faster(tmp_path):
    def body(t):
        number = next(_numbers)
        yield call(t, 10 * MS, "cudaMemcpyAsync", correlation=number)
        name = "Memcpy HtoD (Pageable -> Device)"
        yield copy(name, t + 5, 10 * MS - 5, correlation=number, bytes=60_000_000)  # 6 GB/s: half of 12
        yield from launched(t + 10 * MS + 10, t + 10 * MS + 15, 90 * MS - 20)

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.copies"}
    assert gain(found["gpu.copies"]) == gain_of(5, 10)
    assert "pin_memory=True" in found["gpu.copies"].do


@pytest.mark.parametrize(
    ("rule", "kernels", "expected"),
    [
        # A kernel for the chain takes as long as the longest of its four: 12.5 - 5.
        ("gpu.fuse", [("vectorized_elementwise_kernel", ms, "", {}) for ms in (2.5, 2.5, 2.5, 5)], (3.75, 7.5)),
        ("gpu.movement", [("void cudnn::nchwToNhwcKernel<float>", 10, "aten::cudnn_convolution", {})], (5, 10)),
        ("gpu.movement", [("at::native::CatArrayBatchedCopy<float>", 10, "aten::cat", {})], (5, 10)),
        ("gpu.collectives", [("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10, "", {})], (0, 10)),
        ("gpu.movement", [("embedding_backward_feature_kernel", 10, "aten::embedding_dense_backward", {})], (0, 10)),
        # Good convolutions take a tenth of that at least.
        (
            "gpu.products",
            [("void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3>", 30, "aten::cudnn_convolution", {})],
            (0, 27),
        ),
        # TF32 is 8 times as fast: 108 multiprocessors do 1024 instead of 128 operations a clock.
        (
            "gpu.products",
            [("ampere_sgemm_128x64_nn", 20, "aten::mm",
              {"Input_Dims": [[4096, 4096], [4096, 4096]], "Input_type": ["float", "float"]})],
            (8.75, 17.5),
        ),
        # 2 * 8192 ** 3 operations at 311.9 TFLOP/s take 3.525 ms: 8.8 %, where good kernels reach 70 %.
        (
            "gpu.efficiency",
            [("ampere_bf16_s16816gemm", 40, "aten::mm",
              {"Input_Dims": [[8192, 8192], [8192, 8192]], "Input_type": ["c10::BFloat16", "c10::BFloat16"]})],
            (0, 40 - 3.525 / 0.7),
        ),
        # A100: float64 on tensor cores is as fast as float32, and TF32 8 times as fast.
        ("gpu.products", [("ampere_dgemm_128x64_nn", 20, "", {})], (8.75, 17.5)),
        # A tenth, as above: what makes a product of a convolution is a part of a general algorithm.
        ("gpu.products", [("void at::native::vol2col_kernel<float>", 30, "aten::slow_conv3d_forward", {})], (0, 27)),
        # 2 * 4096 * 4096 * 4097 operations at 311.9 TFLOP/s take 0.441 ms.
        (
            "gpu.products",
            [("ampere_bf16_s16816gemm", 20, "aten::mm",
              {"Input_Dims": [[4096, 4097], [4097, 4096]], "Input_type": ["c10::BFloat16", "c10::BFloat16"]})],
            (0, 20 - 0.441),
        ),
        # Half of the softmax; at most all, as shapes would tell what the products take at least.
        (
            "gpu.attention",
            [("ampere_bf16_s16816gemm", 5, "aten::bmm", {}), ("softmax_warp_forward", 10, "aten::_softmax", {}),
             ("ampere_bf16_s16816gemm", 5, "aten::bmm", {})],
            (5, 20),
        ),
        # 27 of 108 multiprocessors have a block.
        ("gpu.occupancy", [("slow", 40, "", {"grid": [27, 1, 1], "block": [256, 1, 1]})], (0, 30)),
    ],
)  # fmt: skip
def test_kernels_gain_what_a_better_one_would_save(tmp_path, rule, kernels, expected):
    def body(t):
        end = t
        for name, ms, in_operator, args in kernels:
            begin, end = end, end + int(ms * MS)
            yield from launched(begin, begin + AHEAD, end - begin, name, in_operator, **args)
        yield from computing(end, t + STEP)

    found = advice(tmp_path, body)
    assert set(found) == {rule}
    assert gain(found[rule]) == gain_of(*expected)


def test_batch_norm_and_what_follows_it_are_not_fused(tmp_path):
    def body(t):
        names = ("cudnn::bn_fw_tr_1C11_kernel_NCHW", *["vectorized_elementwise_kernel"] * 2)
        for number in range(9):
            at = t + number * 10 * MS
            yield from launched(at, at + AHEAD, 10 * MS, names[number % 3])
        yield from computing(t + 90 * MS, t + STEP)

    assert advice(tmp_path, body) == {}


@pytest.mark.parametrize(
    ("name", "blocks", "us"),
    [
        ("gemv2T_kernel_val", 27, 12 * MS),  # a matrix is read once: memory limits that
        ("flash_fwd_splitkv_combine_kernel", 1, 6),
        ("slow", 216, 12 * MS),  # two blocks for each of 108 multiprocessors, which have place for eight
    ],
)
def test_small_grids_that_cost_nothing_get_no_advice(tmp_path, name, blocks, us):
    def body(t):
        for at in range(t, t + 12 * MS, us):
            yield from launched(at, at + AHEAD, us, name, grid=[blocks, 1, 1], block=[256, 1, 1])
        yield from computing(t + 12 * MS, t + STEP)

    assert advice(tmp_path, body) == {}


def test_kernels_gain_nothing_while_the_host_is_late_anyway(tmp_path):
    def body(t):  # the cat ends 20 ms before the host launches more, without having waited for it
        yield from launched(t - 9 * MS, t, 60 * MS, "at::native::CatArrayBatchedCopy<float>", "aten::cat")
        yield from launched(t + 80 * MS, t + 80 * MS + 5, 20 * MS - 10)

    assert set(advice(tmp_path, body)) == {"gpu.host"}


def test_an_optimizer_that_loops_over_parameters_gains_the_gaps_between_its_kernels(tmp_path):
    def body(t):
        yield from launched(t - 2, t, 90 * MS)
        yield event("user_annotation", "Optimizer.step#AdamW.step", t + 90 * MS, 10 * MS, 100, 1)
        for at in range(t + 90 * MS + 50, t + STEP, 100):  # 100 gaps of 50 us
            yield from launched(at - 3, at, 50, "vectorized_elementwise_kernel", "aten::add_")

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.optimizer"}
    assert gain(found["gpu.optimizer"]) == gain_of(2.5, 5 + 0.1)  # at most, 100 gaps between kernels are saved, too
    assert "foreach=True" in found["gpu.optimizer"].do


def test_gradients_that_are_filled_with_zeros_gain_that_and_the_additions_to_them(tmp_path):
    def body(t):
        yield event("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", t, 100, 100, 1)
        yield from launched(t + 10, t + AHEAD, 4 * MS, "vectorized_elementwise_kernel<FillFunctor>", "aten::zero_")
        yield from launched(t + 200, t + AHEAD + 4 * MS, 90 * MS)
        yield operator("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", t + 300, 50)
        yield from launched(
            t + 310, t + AHEAD + 94 * MS, 6 * MS - 1, "vectorized_elementwise_kernel<add>", "aten::add_"
        )

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.movement"}
    assert gain(found["gpu.movement"]) == gain_of(5, 10)
    assert "set_to_none=True" in found["gpu.movement"].do


def test_launches_that_are_late_since_the_host_had_waited_are_the_waits(tmp_path):
    def body(t):
        yield from launched(t, t + 5, 40 * MS)
        yield operator("aten::item", t + 10, 40 * MS)
        yield call(t + 20, 40 * MS - 15, "cudaStreamSynchronize", correlation=next(_numbers))
        for at in range(t + 45 * MS, t + STEP, 55 * MS // 440):  # 440 gaps of 75 us between kernels of 50 us
            yield from launched(at - 3, at, 50, in_operator="aten::add")

    found = advice(tmp_path, body)
    assert set(found) == {"gpu.sync"}
    # For sure the gap of 5 ms behind the wait; at most that and the others, 33 ms: the host had waited 40.
    assert gain(found["gpu.sync"]) == gain_of(5, 38)


def test_uneven_steps_of_a_host_that_is_ahead_are_not_slow_steps(tmp_path):
    # The host launches nine steps ahead, then waits for a place in the queue; the GPU takes 100 ms for each step.
    begins = [*range(0, 90 * MS, 10 * MS), 90 * MS, 460 * MS, 830 * MS]
    events = []
    for number, (begin, end) in enumerate(zip(begins, [*begins[1:], 1200 * MS], strict=True)):
        events += [step(number, begin, end - begin), operator("aten::mm", begin + 10, end - begin - 20)]
        events += launched(begin + 20, 100 + number * STEP, STEP - 1)
    found = findings(profile(tmp_path, *events, deviceProperties=[A100]))
    assert "outlier" not in {each.rule for each in found}


def test_a_run_without_steps_is_told_what_it_waits_for_and_promised_nothing(tmp_path):
    events = [*launched(0, 10, 50 * MS), call(20, 50 * MS, "cudaDeviceSynchronize", correlation=next(_numbers))]
    found = findings(profile(tmp_path, *events, *launched(60 * MS, 60 * MS + 5, 40 * MS)))
    assert [(each.rule, each.informative, each.gain_high_ns) for each in found] == [("gpu.sync", True, 0)]


def passed(tmp_path, sequences, modules=("Net_0", "Net_0"), kernels=24):
    """All findings about steps with two passes of 12 ms each, `sequences` (of each): whether gradients are recorded."""

    def body(t):
        at, end = t, t + AHEAD
        for recorded, module in zip(sequences, modules, strict=True):
            yield event("python_function", f"nn.Module: {module}", at, 400, 100, 1, Python_id=1)
            for number in range(24):
                at, begin, end = at + 10, end, end + MS // 2
                more = {"Sequence_number": number} if recorded else {}
                name = f"ampere_bf16_s16816gemm_{number % kernels}"
                yield from launched(at, begin, end - begin, name, f"aten::mm{number % kernels}", **more)
            at += 200
        yield operator("autograd::engine::evaluate_function: MmBackward0", at, 100)
        yield from launched(at + 10, end, t + AHEAD + STEP - end - 1)

    return all_advice(tmp_path, body)


def test_a_forward_pass_that_runs_again_without_gradients_gains_it_at_most(tmp_path):
    found = passed(tmp_path, (False, True))["gpu.repeat"]
    assert gain(found) == gain_of(0, 12)
    assert "the forward pass of Net_0 runs twice" in found.what
    assert not found.informative


def test_the_same_pass_of_another_module_is_information(tmp_path):
    assert passed(tmp_path, (False, True), ("Teacher_0", "Net_0"))["gpu.repeat"].informative


def test_passes_that_both_have_gradients_and_repeated_layers_run_once(tmp_path):
    assert "gpu.repeat" not in passed(tmp_path, (True, True))
    assert "gpu.repeat" not in passed(tmp_path, (False, True), kernels=6)  # a frozen half: each kernel eight times


@pytest.mark.parametrize(
    ("node", "operators"), [("CheckpointFunctionBackward", ()), ("AddmmBackward0", ("aten::linear",))]
)
def test_activations_that_are_computed_again_are_information(tmp_path, node, operators):
    def body(t):
        yield operator("aten::linear", t + 5, 20)
        yield from launched(t + 10, t + AHEAD, 60 * MS)
        yield operator(f"autograd::engine::evaluate_function: {node}", t + 200, 100)
        yield from (operator(each, t + 205, 20) for each in operators)
        yield from launched(t + 210, t + AHEAD + 60 * MS, 20 * MS, in_operator="aten::addmm")
        yield operator("autograd::engine::evaluate_function: AddmmBackward0", t + 240, 50)
        yield from launched(t + 250, t + AHEAD + 80 * MS, 20 * MS - 1, in_operator="aten::mm")

    found = all_advice(tmp_path, body)["gpu.recompute"]
    assert "20.00 ms (20 %) of a step, 1 a step" in found.what
    assert found.informative


@pytest.mark.parametrize(("apart", "elements", "expected"), [
    (7_000 * MS, (200, 100, 100), False), (0, (200, 100, 100), True), (7_000 * MS, (100, 100, 100), None),
])  # fmt: skip
def test_ranks_that_wait_for_the_experts_with_most_tokens_gain_the_mean_wait(tmp_path, apart, elements, expected):
    """The ranks compute for 80, 50 and 50 ms, then exchange until 90; `expected`: whether it is information.

    The clocks of the ranks are `apart`, so that only how long they exchange shows who waits: 0, 30 and 30 ms.
    """
    group = {"Collective_name": "alltoall", "dtype": "Float", "Group_size": 3, "Process_Group_Name": "0",
             "Process_Group_Ranks": "[0, 1, 2]"}  # fmt: skip
    for rank, computed in enumerate((80, 50, 50)):
        events = []
        for number in range(STEPS):
            t = rank * apart + (1 + number) * STEP
            size = {"In_msg_nelems": elements[rank], "Out_msg_nelems": elements[rank]}
            events += [step(number, t, STEP), *launched(t, t + 5, computed * MS)]
            begin, exchange = t + computed * MS + 5, "ncclDevKernel_SendRecv(ncclDevComm*)"
            events += launched(t + 20, begin, t + 90 * MS - begin, exchange, stream=20, **group, **size)
            events += launched(t + 40, t + 90 * MS, 10 * MS)
        write(tmp_path / f"rank{rank}.json", *events, rank=rank, deviceProperties=[{**A100, "id": 0}])
    found = {each.rule: each for each in findings(strobe.open(opened(tmp_path, talk=False)))}
    if expected is None:
        assert "rank.experts" not in found
    else:
        # Half of 20 ms; at most that, and a third of the transfer of 10 ms: the mean is two thirds of its bytes.
        low, high = gain(found["rank.experts"])
        assert (low, high) == pytest.approx((10 * 0.85, (20 + 10 / 3) * 1.15), rel=0.01)
        assert "rank 0 exchanges 50 %" in found["rank.experts"].what
        assert found["rank.experts"].informative == expected


@pytest.mark.parametrize(
    ("name", "rule"),
    [("Memcpy DtoD (Device -> Device)", "gpu.launch"), ("Memcpy DtoH (Device -> Pinned)", "gpu.launch"),
     ("Memcpy HtoD (Pinned -> Device)", "gpu.copies"), ("Memcpy DtoH (Device -> Pageable)", "gpu.sync")],
)  # fmt: skip
def test_the_host_waits_for_copies_of_pageable_memory_only(tmp_path, name, rule):
    # CUDA Driver API, "API synchronization behavior". The call takes 90 us, in which the GPU has nothing to do.
    def body(t):
        yield from computing(t, t + 80 * MS)
        for at in range(t + 110 * MS, t + 119 * MS, 100):
            number = next(_numbers)
            yield call(at, 90, "cudaMemcpyAsync", correlation=number)
            yield operator("aten::copy_", at - 1, 93)
            yield copy(name, at + 60, 10, correlation=number, bytes=1_000_000)

    found = all_advice(tmp_path, body)
    assert {"gpu.launch", "gpu.copies", "gpu.sync"} & set(found) == {rule}


def test_an_operator_that_is_slow_to_launch_is_no_other_work(tmp_path):
    # Between kernels 0.4 ms pass in the operator that launches the next one.
    def body(t):
        for at in range(t, t + STEP - MS, MS):
            number = next(_numbers)
            yield operator("aten::addmm", at + 500, 400)
            yield call(at + 890, 5, correlation=number)
            yield kernel("gemm", at + 900, 600, correlation=number)

    found = all_advice(tmp_path, body)
    assert "gpu.launch" in found
    assert "gpu.host" not in found
