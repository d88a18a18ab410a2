"""Kernels: by hand, against plain SQL of an nsys file, exact sums and Kineto's own estimates of occupancy."""

import json
import sqlite3
import statistics
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.gpu.capabilities import gpu_model
from strobe.gpu.kernel_names import short_name, short_names, uses_tensor_cores
from strobe.sums.attributes import integers
from strobe.sums.groups import Groups, Spread
from tests.deep.kineto import US, call, copy, kernel, operator, profile
from tests.public import FOLDER, KINETO, exact_sums

VOLTA = {
    "id": 0, "name": "Tesla V100", "computeMajor": 7, "computeMinor": 0, "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 98304, "numSms": 80,
}  # fmt: skip


def rows(table):
    return table.to_arrow().to_pylist()


def launch(percent, grid, block):
    return {"grid": grid, "block": block, "registers_per_thread": 32, "shared_memory": 0,
            "est. achieved occupancy %": percent}  # fmt: skip


def test_sums_delays_and_priorities(tmp_path):
    gemm = "void cutlass::Kernel<float, (int)2>(cutlass::Params)"
    events = [
        operator("aten::mm", 0, 30),
        call(1, 4, correlation=1),
        call(6, 4, correlation=2),
        kernel(gemm, 3, 6, correlation=1, **launch(50, [40, 1, 1], [256, 1, 1])),  # begins before its call returns
        kernel(gemm, 20, 10, correlation=2, **launch(100, [80, 2, 1], [256, 1, 1])),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 20, 4, stream=9),
        copy("Memset (Device)", 50, 3),
    ]
    trace = profile(tmp_path, *events, deviceProperties=[VOLTA], rank=2)
    by_name = {row["kernel"]: row for row in rows(trace.kernels())}
    assert list(by_name) == ["Kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"]  # the longest first
    found = by_name["Kernel"]
    assert {key: found[key] for key in ("rank", "device", "calls", "name", "kind", "share")} == {
        "rank": 2, "device": 0, "calls": 2, "name": gemm, "kind": "computation", "share": 0.8,
    }  # fmt: skip
    durations = {"total": 16, "avg": 8, "median": 8, "min": 6, "max": 10, "launch_delay_avg": 8, "queue_avg": 10}
    assert {key: found[f"{key}_ns"] for key in durations} == {key: us * US for key, us in durations.items()}
    assert found["stddev_ns"] == pytest.approx(statistics.stdev([6 * US, 10 * US]))
    assert found["queued"] == 1
    # Weighted with 6 and 10 us: 50 and 100 %; 8 blocks of 8 warps fill a multiprocessor; half of those have a block.
    assert found["occupancy"] == pytest.approx((6 * 0.5 + 10) / 16)
    assert found["theoretical_occupancy"] == 1
    assert found["sm_efficiency"] == pytest.approx((6 * 0.5 + 10) / 16)
    other = by_name["ncclDevKernel_AllReduce_Sum_f32_RING_LL"]
    assert (other["kind"], other["launch_delay_avg_ns"], other["queued"]) == ("communication", None, None)
    assert other["occupancy"] is None
    # Unused: 6 us * 0.5 = 3 us of the first, all 4 us of the second.
    assert (found["priority"], other["priority"]) == (75, 100)
    shapes = [(row["grid"], row["block"], row["total_ns"]) for row in rows(trace.kernels(by="shape"))]
    assert shapes == [("80x2x1", "256x1x1", 10 * US), ("40x1x1", "256x1x1", 6 * US), (None, None, 4 * US)]
    assert [(row["operator"], row["calls"]) for row in rows(trace.kernels(by="operator"))] == [
        ("aten::mm", 2),
        (None, 1),
    ]
    assert [row["stream"] for row in rows(trace.kernels(by="stream"))] == ["GPU 0 stream 7", "GPU 0 stream 9"]
    table = trace.kernels(by="collective")
    assert "no kernel is marked as a collective" in table.note
    assert len(table) == 2


def test_without_kernels_a_sentence_says_so(tmp_path):
    assert "no GPU did anything" in profile(tmp_path, operator("aten::mm", 0, 5)).kernels().note
    assert "no kernel ran" in profile(tmp_path, copy("Memset (Device)", 0, 5)).kernels().note


def test_collectives_are_told_apart(tmp_path):
    said = {"Collective_name": "allreduce", "dtype": "Float", "Group_size": 2}
    name = "ncclDevKernel_Generic(ncclDevKernelArgs)"
    other = {**said, "Collective_name": "_allgather_base", "dtype": "BFloat16"}
    trace = profile(tmp_path, kernel(name, 0, 5, **said), kernel(name, 10, 4, **other), kernel(name, 20, 3, **said))
    found = [
        (row["collective"], row["dtype"], row["calls"], row["total_ns"]) for row in rows(trace.kernels(by="collective"))
    ]
    assert found == [("allreduce", "Float", 2, 8 * US), ("_allgather_base", "BFloat16", 1, 4 * US)]


def test_nsys_kernels_are_those_of_plain_sql(public):
    name = "nsys/perlmutter-cloverleaf-cuda.sqlite"
    with sqlite3.connect(f"file:{FOLDER / name}?mode=ro", uri=True) as database:
        runs = database.execute(
            "select s.value, k.start - r.end, k.end - k.start from CUPTI_ACTIVITY_KIND_KERNEL k"
            " join StringIds s on s.id = k.demangledName join CUPTI_ACTIVITY_KIND_RUNTIME r"
            " on r.correlationId = k.correlationId and r.globalTid / 0x1000000 = k.globalPid / 0x1000000"
        ).fetchall()
        short = dict(
            database.execute(
                "select d.value, s.value from CUPTI_ACTIVITY_KIND_KERNEL join StringIds d on d.id = demangledName"
                " join StringIds s on s.id = shortName"
            ).fetchall()
        )
    by_name, queues = defaultdict(list), defaultdict(list)
    for kernel_name, queue, duration in runs:
        by_name[kernel_name].append(duration)
        queues[kernel_name] += [queue] if queue >= 0 else []
    table = rows(public(name).kernels())
    assert len(table) == len(by_name)
    whole = sum(map(sum, by_name.values()))
    for row in table:
        ran, queued = by_name[row["name"]], queues[row["name"]]
        exact = (len(ran), sum(ran), min(ran), max(ran), statistics.median(ran), len(queued))
        assert tuple(row[key] for key in ("calls", "total_ns", "min_ns", "max_ns", "median_ns", "queued")) == exact
        assert row["share"] == pytest.approx(sum(ran) / whole)
        assert row["stddev_ns"] == pytest.approx(statistics.stdev(ran) if len(ran) > 1 else 0)
        assert row["queue_avg_ns"] == (pytest.approx(statistics.fmean(queued)) if queued else None)
        assert row["kernel"].partition("<")[0] == short[row["name"]]  # behind it, what tells it from others


@pytest.mark.parametrize("name", KINETO)
def test_public_traces_have_their_exact_sums(public, name):
    expected = exact_sums(name)
    table = rows(public(name).kernels())
    assert (sum(row["calls"] for row in table), sum(row["total_ns"] for row in table), len(table)) == tuple(
        int(expected[key]) for key in ("kernels", "kernel_sum_ns", "distinct_kernels")
    )
    assert (table[0]["calls"], table[0]["total_ns"]) == (int(expected["top_count"]), int(expected["top_sum_ns"]))
    assert table[0]["name"].startswith(expected["top_kernel"])


@pytest.mark.parametrize("workers", [0, 4])
def test_the_tensorboard_plugin_says_the_same(public, workers):
    told = json.loads((FOLDER / f"resnet50_loader_workers{workers}.tensorboard.json").read_text())
    trace = public(f"kineto/resnet50_loader_workers{workers}.json.gz")
    ours = {row["name"]: row for row in rows(trace.kernels())}
    assert len(told["kernel_table_top"]) >= 10
    for name, tensor_cores, calls, total, _, most, least, _, occupancy in told["kernel_table_top"]:
        row = ours[name]
        assert (row["calls"], row["total_ns"]) == (calls, total * US)
        assert (row["max_ns"], row["min_ns"], row["tensor_cores"]) == (most * US, least * US, tensor_cores == "Yes")
        assert row["occupancy"] * 100 == pytest.approx(occupancy, abs=0.006)


def test_theoretical_occupancy_is_what_kineto_estimates_for_full_grids(public):
    trace = public("kineto/ns_resolution.json.gz")
    model = gpu_model(trace, 0)
    said = trace.side_table("kernel_spans").to_arrow()
    block = np.prod([integers(said.column(f"block_{axis}")) for axis in "xyz"], axis=0)
    ours = model.occupancy(
        block, *(integers(said.column(name)) for name in ("registers_per_thread", "shared_memory_bytes"))
    )
    # Kineto takes the blocks that a multiprocessor gets on average where these are fewer than fit.
    full = said.column("warps_per_sm").to_numpy() >= model.threads / 32
    assert full.sum() > 1000
    assert np.abs(ours * 100 - said.column("occupancy_percent").to_numpy())[full].max() <= 1


def test_short_names_and_tensor_cores():
    for name, short in (
        ("void at::native::(anonymous namespace)::reduce<4, f<int>(int)>(int, float)", "reduce"),
        ("ampere_sgemm_32x32_sliced1x4_tn", "ampere_sgemm_32x32_sliced1x4_tn"),
        ("void loop<f(int)->g<float>, 2>(int)", "loop"),
        ("_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionE", "Kernel"),
        ("_Z6vecAddPdS_S_i", "vecAdd"),
        ("_Zygote", "_Zygote"),
    ):
        assert short_name(name) == short, name
    assert uses_tensor_cores("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn")
    assert uses_tensor_cores("sm75_xmma_fprop_implicit_gemm_indexed_f16f16_tensor16x8x8_execute_kernel__5x_cudnn")
    assert uses_tensor_cores("Cijk_Alik_Bljk_HHS_BH_MT128x64x64_MI32x32")
    assert not uses_tensor_cores("volta_sgemm_128x32_nt")


PLUS = "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<{0}>, at::detail::Array<char*, 3> >"
FILL = "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >"


def test_kernels_of_one_short_name_keep_what_tells_them_apart():
    expected = {
        f"void {PLUS.format('float')}(int, char*)": "vectorized_elementwise_kernel<CUDAFunctor_add, float>",
        f"void {PLUS.format('c10::BFloat16')}(int)": "vectorized_elementwise_kernel<CUDAFunctor_add, BFloat16>",
        f"void {FILL}(int, char*)": "vectorized_elementwise_kernel<FillFunctor>",
        "void cutlass::device_kernel<my::fp8::GemmKernel>(my::fp8::GemmKernel::Params)": "device_kernel<fp8>",
        "void cutlass::device_kernel<my::bf16::GemmKernel>(my::bf16::GemmKernel::Params)": "device_kernel<bf16>",
        "void cast<256, true, false>(int)": "cast<256, true, false>",
        "void cast<256, false, true>(int)": "cast<256, false, true>",
        "_Z3addILi4EEvPd": "add<4>",
        "_Z3addILi8EEvPd": "add<8>",
        "void same<1>(int)": "same<1>",
        "void same<1>(long)": "same<1> #2",
        "rotary_kernel": "rotary_kernel",
    }
    assert short_names([*expected, *expected]) == expected


names_of_kernels = st.lists(st.text(alphabet="<>(),:_ aZN19", max_size=30), max_size=6)


@given(names_of_kernels)
def test_short_names_are_different_for_different_kernels(names):
    found = short_names(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)


pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2), st.integers(-5, 2**45)), max_size=60)


@given(pairs, st.integers(1, 20))
def test_sums_by_group_do_not_depend_on_the_stretches(given_rows, size):
    groups, spread = Groups(), Spread()
    for begin in range(0, len(given_rows), size):
        a, b, value = (np.array(part, dtype=np.int64) for part in zip(*given_rows[begin : begin + size], strict=True))
        spread.add(groups.numbers([a, b]), value)
    summary = spread.summary(len(groups))
    expected = defaultdict(list)
    for a, b, value in given_rows:
        expected[a, b].append(value)
    assert set(groups.keys) == set(expected)
    for k, key in enumerate(groups.keys):
        values = expected[key]
        assert (summary.count[k], summary.total[k], summary.least[k], summary.most[k]) == (
            len(values), sum(values), min(values), max(values)
        )  # fmt: skip
        assert summary.median[k] == statistics.median(values)
        assert summary.stddev[k] == pytest.approx(statistics.stdev(values) if len(values) > 1 else 0)


def test_medians_of_very_many_values_are_close(monkeypatch):
    monkeypatch.setattr("strobe.sums.groups._MOST_PAIRS", 4000)
    values = np.random.default_rng(1).integers(1, 10**9, 50_000)
    spread = Spread()
    for part in np.split(values, 50):
        spread.add(np.zeros(len(part), dtype=np.int64), part)
    summary = spread.summary(1)
    assert (summary.total[0], summary.least[0], summary.most[0]) == (values.sum(), values.min(), values.max())
    assert summary.median[0] == pytest.approx(np.median(values), rel=1e-3)
    assert summary.stddev[0] == pytest.approx(values.std(ddof=1), rel=1e-3)


def test_what_was_measured_of_tensor_cores_counts_more_than_a_name(tmp_path):
    trace = profile(tmp_path, *(kernel(name, at, 5) for at, name in ((0, "h884gemm"), (10, "mine"), (20, "wgmma"))))
    assert [row["tensor_cores"] for row in trace.kernels().sort("name").to_pylist()] == [True, False, True]
    launches = [
        {"kernel": name, "stream": 7, "device": 0, "invocation": 1, "values": {"tensor_active": value}}
        for name, value in (("h884gemm", 0.0), ("mine", 12.5))
    ]
    (trace.path / "gpu_metrics.json").write_text(json.dumps({"format": 1, "launches": launches}))
    found = {row["name"]: row["tensor_cores"] for row in trace.kernels().to_pylist()}
    assert found == {"h884gemm": False, "mine": True, "wgmma": True}
