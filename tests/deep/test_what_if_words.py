"""What-if in words: loaders, ranks, precision and kernels whose predictions are computed on paper."""

import pytest

from strobe.errors import UsageError
from tests.deep.kineto import call, kernel, operator, profile, step
from tests.unit.hand_made import FETCH, FETCH_ALONE, MS, HandMadeProcess, make_trace, span

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0}
US = 1000


def gains(trace, change, beside=0.0):
    """The least and the most that a step takes less, in ms; without the part of it that is left for what is beside."""
    (row,) = trace.what_if(change=change).to_pylist()
    low, high = row["gain_low_ns"] / MS / (1 - beside), row["gain_high_ns"] / MS / (1 + beside)
    return pytest.approx((low, high), abs=0.05)


def loading(wait, rest, loader, *, steps=40, cores=0.0):
    """The thread of a loop that waits for each batch, and then works on it; times in ms."""
    spans = []
    for begin in range(0, steps * (wait + rest) * MS, (wait + rest) * MS):
        has = begin + wait * MS
        spans += [
            span(loader, begin, has, paradigm="torch", role="wait"),
            span("aten::mm", has, has + rest * MS // 2),
            span("autograd::engine::evaluate_function: MmBackward0", has + rest * MS // 2, has + rest * MS - MS),
            span("Optimizer.step#SGD.step", has + rest * MS - MS, has + rest * MS, paradigm="torch", role="range"),
        ]
    readings = [("cores of the process", cores), ("threads of an operator", 1.0)] if cores else []
    metrics = [{"name": name, "unit": "", "location": 0, "time_ns": [0], "value": [value]} for name, value in readings]
    return HandMadeProcess({"main": spans}, pid=1, metrics=metrics)


def fetching(begins, length):
    """A worker process whose fetches begin at some times; ms."""
    fetches = [span("DataLoader.fetch", at * MS, (at + length) * MS, paradigm="torch", role="data") for at in begins]
    return HandMadeProcess({"w": fetches}, pid=2, main=False)


def test_workers_fetch_beside_the_loop_at_the_pace_of_the_slower():
    """30 ms to fetch, 20 for the rest: one worker is the slower, two are not. At least 0.34 of that is gained."""
    trace = make_trace(loading(30, 20, FETCH_ALONE))
    assert gains(trace, "workers=1", 0.15) == (0.34 * 20, 20)
    assert gains(trace, "workers=2", 0.15) == (0.34 * 30, 30 / 1.15)  # no more than the wait
    assert gains(trace, "workers=0", 0.15) == (0, 0)


def test_workers_need_cores():
    """With four cores only the way of a batch to the loop remains: 1 ms at most. One core computes one at a time."""
    assert gains(make_trace(loading(30, 20, FETCH_ALONE, cores=4.0)), "workers=2", 0.15) == (29, 30 / 1.15)
    low, high = gains(make_trace(loading(30, 20, FETCH_ALONE, cores=1.0)), "workers=2", 0.15).expected
    assert (low, high) == pytest.approx((0, 30 / 1.15), abs=0.05)  # never more than the wait


def test_more_workers_than_one_share_the_fetches():
    """A fetch takes 60 ms, the rest 20: with none, one, two and three workers.

    With three the rest sets the pace, and 1 ms is left for the way of a batch.
    """
    trace = make_trace(loading(40, 20, FETCH, cores=8.0), fetching(range(0, 40 * 60, 60), 60))
    lengths = []
    for workers in (0, 1, 2, 3):
        (row,) = trace.what_if(change=f"workers={workers}").to_pylist()
        lengths.append(row["predicted_ns"] / MS)
        assert row["error"] == 0
    assert lengths == pytest.approx([80, 60, 30, 21], rel=0.02)
    assert "17.00 ms to 23.00 ms a step more" in trace.what_if(change="workers=0").about


def test_what_workers_do_is_not_known_without_their_fetches():
    table = make_trace(loading(40, 20, FETCH)).what_if(change="workers=2")
    assert (len(table), table.note) == (
        0,
        "cannot be known from this trace: it has no fetches of the loader's workers; strobe run records them",
    )


def ranks(transfer=10, late=0):
    """Two ranks that compute for 40 ms, one of them `late` ms longer, and reduce."""

    def rank(number):
        spans = []
        for begin in range(0, 30 * 100, 100):
            came, done = begin + 40 + late * number, begin + 40 + late + transfer
            spans += [
                span("work", begin * MS, came * MS),
                span("MPI_Allreduce", came * MS, done * MS, paradigm="mpi", role="collective"),
                span("more", done * MS, (begin + 100) * MS),
            ]
        return HandMadeProcess({"main": spans}, pid=100 + number, main=number == 0, rank=number)

    return make_trace(*(rank(number) for number in range(2)))


def test_more_ranks_reduce_for_longer():
    """From 2 to 4 ranks: 2(n-1)/n grows from 1 to 1.5, the steps of a ring from 1 to 3."""
    assert gains(ranks(), "ranks=2x") == (-20, -5)


def test_more_ranks_wait_for_a_later_last_one():
    """Arrivals 8 ms apart have a standard deviation of 5.657 ms; the last of twice as many: 3.921 ms later at most."""
    assert gains(ranks(late=8), "ranks=2x") == (-23.921, -5)


def test_one_rank_alone_does_not_show_what_more_of_them_do(tmp_path):
    assert "no collective in its steps" in on_gpu(tmp_path, []).what_if(change="ranks=2x").note


def on_gpu(tmp_path, work, *, steps=12, **top):
    """Steps of 1 ms on the host and some work on a GPU, for which the host waits: (name, ms, operator, arguments)."""
    events, now, number = [], 0, 0
    for at in range(steps):
        begin, called = now, now + 100
        done = now + 1000
        for name, length, in_operator, more in work:
            number += 1
            shapes = {key: value for key, value in more.items() if key.startswith("Input")}
            events += [
                operator(in_operator, called - 5, 20, **shapes),
                call(called, 5, correlation=number),
                kernel(name, done, length * 1000, correlation=number, stream=more.get("stream", 7)),
            ]
            called, done = called + 50, done + length * 1000
        number += 1
        events += [step(at, begin, done - begin)]
        events += [call(called, done - called, "cudaDeviceSynchronize", correlation=number)]
        now = done
    return profile(tmp_path, *events, **top)


def product(dtype, size=4096):
    return {"Input_Dims": [[size, size], [size, size]], "Input_type": [dtype, dtype]}


def test_half_takes_the_ratio_of_the_peaks(tmp_path):
    """2 x 4096^3 operations at 311.9 TFLOP/s take 0.441 ms: at 0.8 of that 0.551, at 0.4 of it 1.102, instead of 10.

    Without shapes, it is a 16th or, if its bytes limit it, half.
    """
    work = [("ampere_sgemm_128x128_nn", 10, "aten::mm", product("float"))]
    assert gains(on_gpu(tmp_path, work, deviceProperties=[A100]), "half", 0.15) == (8.898, 9.449)
    work = [("ampere_sgemm_128x128_nn", 10, "aten::mm", {})]
    assert gains(on_gpu(tmp_path, work, deviceProperties=[A100]), "half", 0.15) == (5, 9.375)


def test_half_halves_the_bytes_of_what_works_by_element(tmp_path):
    add = {"Input_Dims": [[4096, 4096], [4096, 4096]], "Input_type": ["float", "float"]}
    trace = on_gpu(tmp_path, [("vectorized_elementwise_kernel", 10, "aten::add", add)], deviceProperties=[A100])
    assert gains(trace, "half", 0.15) == (0, 5)
    assert trace.what_if(change="half").about.endswith("with half: at most 5.75 ms a step less")


def test_half_is_nothing_for_what_is_half_and_unknown_on_an_unknown_gpu(tmp_path):
    work = [("ampere_bf16_s16816gemm", 10, "aten::mm", product("c10::BFloat16"))]
    half = on_gpu(tmp_path, work, deviceProperties=[A100])
    assert "nothing on its GPU computes in float32" in half.what_if(change="half").note
    unknown = on_gpu(tmp_path, [("ampere_sgemm_128x128_nn", 10, "aten::mm", product("float"))])
    assert "the peaks of its GPU are unknown" in unknown.what_if(change="half").note


def test_a_fused_chain_takes_as_long_as_its_longest_kernel_or_half_of_the_others_more(tmp_path):
    """Kernels of 2, 4 and 2 ms: one of 4 to 6 ms."""
    chain = (("mul", 2), ("tanh", 4), ("add", 2))
    work = [("vectorized_elementwise_kernel", length, f"aten::{name}", {}) for name, length in chain]
    trace = on_gpu(tmp_path, [*work, ("ampere_bf16_s16816gemm", 3, "aten::mm", {})])
    assert gains(trace, "fuse=aten::*", 0.15) == (2, 4)
    assert "no elementwise kernels that 'aten::mm' matches" in trace.what_if(change="fuse=aten::mm").note


def test_merged_products_take_their_roofline_at_best(tmp_path):
    """2 x 4 x 4096^3 operations at 311.9 TFLOP/s take 1.763 ms instead of four times 2; at worst still 8."""
    work = [("ampere_bf16_s16816gemm", 2, "aten::mm", product("c10::BFloat16"))] * 4
    between = ("vectorized_elementwise_kernel", 1, "aten::add", {})
    trace = on_gpu(tmp_path, [*work, between], deviceProperties=[A100])
    assert gains(trace, "merge=aten::mm", 0.15) == (0, 6.237)
    assert "no equal products" in trace.what_if(change="merge=aten::add").note
    # A square result may be an operand of the next one: what lies between may have made it of that.
    trace = on_gpu(tmp_path, [work[0], between, work[0]], deviceProperties=[A100])
    assert "no equal products" in trace.what_if(change="merge=aten::mm").note


def test_overlapping_communication_is_hidden_as_far_as_something_computes(tmp_path):
    """12 ms of products, then two collectives of 3 ms: at best 12 ms a step, at worst the last collective remains.

    If the products are of 8 ms, those of the backward pass may be shorter than the collectives: nothing is sure.
    """
    reduce = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3, "c10d::allreduce_", {"stream": 20})
    work = [("gemm", 12, "aten::mm", {}), reduce, reduce]
    assert gains(on_gpu(tmp_path, work), "overlap", 0.15) == (3, 6)
    assert gains(on_gpu(tmp_path, [("gemm", 8, "aten::mm", {}), *work[1:]]), "overlap", 0.15) == (0, 6)
    assert "nothing communicates" in on_gpu(tmp_path, work[:1]).what_if(change="overlap").note


def test_words_need_what_belongs_to_them(tmp_path):
    trace = on_gpu(tmp_path, [("gemm", 8, "aten::mm", {})])
    for change in ("fuse", "ranks=2", "ranks=0x", "workers=4, no-sync"):
        with pytest.raises(UsageError, match="CHANGE"):
            trace.what_if(change=change)
