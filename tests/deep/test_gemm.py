"""Matrix products and the roofline: the worked example to the digit, by hand, and against plain sums over the JSON."""

import gzip
import json
from collections import Counter

import pytest

from strobe.errors import UsageError
from strobe.gpu.above_peak import reason_above_bandwidth, reason_above_compute
from strobe.gpu.data_sheets import sheet_of
from strobe.gpu.nvidia.peaks import Peak, peak
from tests.deep.kineto import US, call, kernel, operator, profile, step
from tests.public import FOLDER

A100 = [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0}]


def product(number, at_us, dims, kernel_us, *, name="aten::mm", dtype="float", kernel_name="sgemm", **more):
    """An operator of 20 us that launches one kernel, 100 us later."""
    types = [dtype] * len(dims)
    return [
        operator(name, at_us, 20, Input_Dims=dims, Input_type=types, External_id=number, **more),
        call(at_us + 5, 2, correlation=number),
        kernel(kernel_name, at_us + 100, kernel_us, correlation=number, External_id=number),
    ]


def worked_example():
    """Eight products of 512 x 64 and 64 x 512 in two steps of four; then the four at once, twice."""
    events = []
    for number in range(8):
        events += product(number + 1, 1000 * number, [[512, 64], [64, 512]], 71.964)
        if number in (3, 7):  # something else computes in between
            at = 1000 * number + 500
            events += [operator("aten::relu", at, 20), call(at + 5, 2, correlation=100 + number),
                       kernel("relu", at + 100, 5, correlation=100 + number)]  # fmt: skip
    events += [step(number, 4000 * number, 4000) for number in range(2)]
    for number in (8, 9):
        events += product(number + 1, 1000 * number, [[2048, 64], [64, 512]], 99.057)
    return events


def rows(table):
    return table.to_arrow().to_pylist()


def test_the_worked_example(tmp_path):
    large, small = sorted(rows(profile(tmp_path, *worked_example()).gemm(peak_gflops=6000.0)), key=lambda r: r["calls"])
    assert (small["m"], small["n"], small["k"], small["batch"], small["calls"]) == (512, 512, 64, 1, 8)
    assert (small["flop"], large["flop"]) == (33_554_432, 134_217_728)
    assert (small["device_ns"], large["device_ns"]) == (575_712, 198_114)
    assert (small["avg_ns"], large["avg_ns"]) == (71_964, 99_057)
    assert (round(small["gflops"]), round(100 * small["efficiency"], 1)) == (466, 7.8)
    assert (round(large["gflops"]), round(100 * large["efficiency"], 1)) == (1355, 22.6)
    assert round(small["device_ns"] / large["device_ns"], 2) == 2.91


def test_merging_the_worked_example_is_predicted_from_the_larger_products_of_the_trace(tmp_path):
    row, large = rows(profile(tmp_path, *worked_example()).gemm_merging())
    assert (row["together"], row["times"], row["device_ns"], row["basis"]) == (4, 2, 575_712, "trace")
    assert (row["predicted_ns"], row["gain_ns"], round(row["speedup"], 2)) == (198_114, 377_598, 2.91)
    # 512 x 512 results are no 512 x 64 operands.
    assert row["independent"] == "by size"
    # Of products as large as two of the large ones there are none.
    assert (large["together"], large["times"], large["predicted_ns"]) == (2, 1, None)


def test_merging_without_larger_products_is_predicted_by_the_roofline(tmp_path):
    events = [e for number in range(4) for e in product(number + 1, 1000 * number, [[64, 64], [64, 64]], 10)]
    trace = profile(tmp_path, *events)
    # At 64 GFLOP/s the 4 x 2 x 64 x 64 x 64 take 32768 ns; at 10 GB/s the (2 x 256 x 64 + 64 x 64) x 4 bytes 14745.6.
    (row,) = rows(trace.gemm_merging(peak_gflops=64.0, bandwidth_gb_s=10.0))
    assert (row["predicted_ns"], row["gain_ns"], row["basis"]) == (32_768, 7_232, "roofline")
    assert row["independent"] == "unknown"  # a result could be the next one's operand
    (row,) = rows(trace.gemm_merging(peak_gflops=640.0, bandwidth_gb_s=10.0))
    assert row["predicted_ns"] == 14_746
    table = trace.gemm_merging()
    assert (rows(table)[0]["predicted_ns"], "--peak-gflops" in table.note) == (None, True)


def test_what_cannot_be_merged_is_no_candidate(tmp_path):
    dims = [[64, 64], [64, 32]]
    other = [[64, 64], [64, 16]]
    events = product(1, 0, dims, 10) + product(2, 1000, other, 10) + product(3, 2000, dims, 10)
    # A kernel that no operator launched is in the way as well.
    events += [call(3000, 2, correlation=50), kernel("mine", 3100, 5, correlation=50), *product(4, 4000, dims, 10)]
    table = profile(tmp_path, *events).gemm_merging(peak_gflops=1e6, bandwidth_gb_s=1e6)
    assert (len(table), "no equal matrix products" in table.note) == (0, True)


def test_only_the_outermost_operator_counts_with_the_type_of_the_innermost(tmp_path):
    # Under autocast: linear in float32, inside it a cast, and linear and addmm in float16. The cast's kernel counts.
    events = [
        operator("aten::linear", 0, 100, Input_Dims=[[64, 32], [16, 32], [16]], Input_type=["float"] * 3),
        operator("aten::to", 5, 10),
        call(6, 2, correlation=1),
        operator("aten::linear", 20, 70, Input_Dims=[[64, 32], [16, 32], [16]], Input_type=["c10::Half"] * 3),
        operator("aten::addmm", 30, 50, Input_Dims=[[16], [64, 32], [32, 16], [], []], Input_type=["c10::Half"] * 3),
        call(40, 2, correlation=2),
        kernel("cast", 100, 3, correlation=1),
        kernel("ampere_fp16_s16816gemm", 110, 7, correlation=2),
        # That of the next operator does not.
        operator("aten::relu", 120, 10),
        call(125, 2, correlation=3),
        kernel("relu", 130, 5, correlation=3),
    ]
    (row,) = rows(profile(tmp_path, *events, deviceProperties=A100).gemm())
    assert (row["operator"], row["dtype"], row["calls"], row["flop"]) == (
        "aten::linear",
        "float16",
        1,
        2 * 64 * 32 * 16,
    )
    assert (row["device_ns"], row["host_ns"], row["tf32"]) == (10 * US, 100 * US, False)
    moved = 2 * (64 * 32 + 32 * 16 + 64 * 16 + 16)
    assert (row["moved_bytes"], row["intensity"]) == (moved, 2 * 64 * 32 * 16 / moved)
    assert row["gflops"] == 2 * 64 * 32 * 16 / 10_000
    # 108 multiprocessors x 1410 MHz x 2048; so few operations a byte are bound by 1555 GB/s.
    assert row["peak_gflops"] == pytest.approx(108 * 1.41 * 2048)
    assert row["bound"] == "memory"
    assert row["of_roofline"] == pytest.approx(row["gflops"] / (row["intensity"] * 1555))


def test_compute_bound_float32_is_measured_against_tf32_where_kernels_say_so(tmp_path):
    dims = [[4096, 4096], [4096, 4096]]
    events = product(1, 0, dims, 1000) + product(
        2, 2000, dims, 9000, kernel_name="sm80_xmma_gemm_f32f32_tf32f32_f32_nn"
    )
    by_tf32 = {r["tf32"]: r for r in rows(profile(tmp_path, *events, deviceProperties=A100).gemm())}
    assert round(by_tf32[False]["peak_gflops"]) == 19492
    assert round(by_tf32[True]["peak_gflops"]) == 155935
    assert {r["bound"] for r in by_tf32.values()} == {"compute"}
    assert by_tf32[True]["of_roofline"] == by_tf32[True]["efficiency"]


def test_without_a_gpu_the_time_of_the_host_counts(tmp_path):
    dims = {"Input_Dims": [[512, 64], [64, 512]], "Input_type": ["float", "float"]}
    trace = profile(tmp_path, operator("aten::matmul", 0, 50, **dims), operator("aten::mm", 5, 40, **dims))
    (row,) = rows(trace.gemm(peak_gflops=6000.0))
    assert (row["operator"], row["device_ns"], row["avg_ns"]) == ("aten::matmul", None, 50 * US)
    assert row["efficiency"] == 33_554_432 / 50_000 / 6000
    assert "on a GPU only" in trace.gemm_merging().note


def test_what_is_missing_is_said(tmp_path):
    table = profile(tmp_path, operator("aten::mm", 0, 5), kernel("gemm", 10, 5)).gemm()
    assert (len(table), "record_shapes=True" in table.note) == (0, True)
    conv = profile(tmp_path, *product(1, 0, [[1, 3, 8, 8], [4, 3, 3, 3], []], 10, name="aten::conv2d")).gemm()
    assert (rows(conv)[0]["flop"], rows(conv)[0]["device_ns"]) == (None, 10 * US)
    assert "1 of 1 operators without FLOPs" in conv.note
    trace = profile(tmp_path, operator("aten::mm", 0, 5))
    with pytest.raises(UsageError, match="more than 0"):
        trace.gemm(peak_gflops=-1.0)


def test_a_public_trace_equals_plain_sums_over_its_json(public):
    """All its products are linear, matmul, addmm, mm and bmm: outermost ones by time, kernels by correlation."""
    name = "kineto/diff_control.json.gz"
    table = public(name).gemm()
    whole = json.loads(gzip.decompress((FOLDER / name).read_bytes()))["traceEvents"]
    wanted = ("aten::linear", "aten::matmul", "aten::addmm", "aten::mm", "aten::bmm")
    threads = {}
    for event in whole:
        if event.get("ph") == "X" and event["name"] in wanted:
            threads.setdefault(event["tid"], []).append(event)
    outermost = {}
    for tid, events in threads.items():
        reach = -1
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            if event["ts"] >= reach:
                outermost.setdefault(tid, []).append(event)
                reach = event["ts"] + event["dur"]
    flop, calls = 0, Counter()
    for event in (e for events in outermost.values() for e in events):
        dims = event["args"]["Input Dims"]
        a, b = dims[1:3] if event["name"] == "aten::addmm" else dims[:2]
        columns = b[0] if event["name"] == "aten::linear" else b[-1]
        total = 2 * columns
        for size in a:
            total *= size
        flop += total
        calls[event["name"]] += 1
    launched = {
        e["args"]["correlation"]: e
        for e in whole
        if e.get("cat") == "cuda_runtime" and "correlation" in e.get("args", {}) and "Launch" in e["name"]
    }
    device_us = 0
    for event in (e for e in whole if e.get("cat") == "kernel"):
        started = launched.get(event["args"]["correlation"])
        if started is not None and any(
            e["ts"] <= started["ts"] < e["ts"] + e["dur"] for e in outermost.get(started["tid"], ())
        ):
            device_us += event["dur"]
    found = Counter()
    for row in rows(table):
        found[row["operator"]] += row["calls"]
    assert found == calls
    assert sum(row["flop"] * row["calls"] for row in rows(table)) == flop
    assert sum(row["device_ns"] or 0 for row in rows(table)) == device_us * US


def test_convolutions_without_their_options_are_those_of_their_gradients(public):
    """ResNet-50: 4.09e9 multiplications an image in its convolutions and its last layer, twice as many FLOPs."""
    found = rows(public("kineto/resnet50_loader_workers0.json.gz").gemm())
    forward = [row for row in found if row["operator"] in ("aten::conv2d", "aten::linear")]
    assert sum(row["calls"] for row in forward) == 6 * 54
    images = 6 * 32
    assert sum(row["flop"] * row["calls"] for row in forward) / images == pytest.approx(2 * 4.09e9, rel=2e-3)


# The dense peaks that data sheets have, in TFLOP/s and GB/s; properties as PyTorch's profiles hold them.
SHEETS = (
    ("NVIDIA H200", (132, 9, 0), "bfloat16", 989, 4800),
    ("NVIDIA H20", (78, 9, 0), "bfloat16", 148, 4000),
    ("NVIDIA H800", (132, 9, 0), "float64", 1, 3350),
    ("NVIDIA GH200 480GB", (132, 9, 0), "float16", 990, 4000),
    ("NVIDIA B200", (148, 10, 0), "float8", 4500, 7700),
    ("NVIDIA B200", (148, 10, 0), "float32", 75, 7700),
    ("NVIDIA L4", (58, 8, 9), "float16", 121, 300),
    ("NVIDIA L40S", (142, 8, 9), "float16", 362, 864),
    ("NVIDIA A10", (72, 8, 6), "float16", 125, 600),
    ("NVIDIA A30", (56, 8, 0), "float16", 165, 933),
    ("Tesla T4", (40, 7, 5), "float16", 65, 320),
    ("Tesla V100-SXM2-16GB", (80, 7, 0), "float16", 125, 900),
    ("NVIDIA GeForce RTX 4090", (128, 8, 9), "float32", 82.6, 1008),
    ("NVIDIA GeForce RTX 5090", (170, 12, 0), "float32", 104.8, 1792),
    ("AMD Instinct MI100", None, "float16", 184.6, 1228.8),
    ("AMD Instinct MI210", None, "float64", 45.3, 1638.4),
    ("AMD Instinct MI250X", None, "bfloat16", 383 / 2, 3276.8 / 2),
    ("AMD Instinct MI300X", None, "bfloat16", 1307.4, 5325),
    ("AMD Instinct MI325X", None, "float8", 2614.9, 6000),
    ("AMD Instinct MI355X", None, "float16", 2516.6, 8000),
    ("Intel(R) Data Center GPU Max 1550", None, "tf32", 419.4 / 2, 3276.8 / 2),
    ("Intel(R) Data Center GPU Max 1100", None, "float32", 22.2, 1228.8),
    ("HL-325L GAUDI3", None, "bfloat16", 1835, 3700),
    ("GAUDI2", None, "float8", 865, 2450),
    ("TPU v4", None, "bfloat16", 275, 1200),
    ("TPU v5 lite", None, "bfloat16", 197, 819),
    ("TPU v5p", None, "bfloat16", 459, 2765),
    ("TPU v6e", None, "bfloat16", 918, 1640),
)


@pytest.mark.parametrize(("name", "processors", "dtype", "tflops", "gb_s"), SHEETS)
def test_peaks_are_those_of_the_data_sheets(name, processors, dtype, tflops, gb_s):
    properties = {"id": 0, "name": name}
    if processors:
        properties |= dict(zip(("numSms", "computeMajor", "computeMinor"), processors, strict=True))
    found = peak(properties, dtype)
    assert found.gflops == pytest.approx(tflops * 1e3, rel=0.015)
    assert found.gb_s == gb_s


def test_the_peak_of_an_unknown_device_is_unknown():
    assert peak({"name": "AMD Instinct MI9"}, "float32") == Peak(None, None)
    assert peak({"name": "AMD Instinct MI300X"}, "int4").gflops is None
    assert sheet_of("AMD Instinct MI300X").gflops("tf32") == 653.7e3
    assert sheet_of("AMD Instinct MI210").gflops("tf32") == 45.3e3


@pytest.mark.parametrize(("kernel_name", "reason"), [("gemm", "a boost clock above"), ("xmma_sparse_gemm", "sparsity")])
def test_a_row_above_the_peak_has_its_likely_reason(tmp_path, kernel_name, reason):
    # 2 x 4096^3 operations in 6.71 ms are 20.5 TFLOP/s: 5 % above the 19.5 of float32.
    events = product(1, 0, [[4096, 4096], [4096, 4096]], 6710, kernel_name=kernel_name)
    table = profile(tmp_path, *events, deviceProperties=A100).gemm()
    assert 1 < rows(table)[0]["efficiency"] < 1.1
    assert f"1 row is above the peak; likely reason: {reason}" in table.note
    assert "above the peak" not in profile(tmp_path, *events).gemm(peak_gflops=1000.0).note


def test_a_product_faster_than_its_memory_was_in_the_cache(tmp_path):
    # 2 x 1024 x 1024 operations, 4 MB of float32, in 1 us: 4.2 TB/s, but 2.1 of 19.5 TFLOP/s.
    events = product(1, 0, [[1, 1024], [1024, 1024]], 1)
    table = profile(tmp_path, *events, deviceProperties=A100).gemm()
    assert "1 row is above the peak; likely reason: hits in the L2 cache" in table.note


def test_reasons_above_a_peak():
    winograd = ["void cudnn::winograd_nonfused::winogradForwardData4x4"]
    conv = "[[32,64,56,56],[64,64,3,3],[],[],[],[],[],[],[]]"
    assert "kernels of this trace are named so" in reason_above_compute(1.7, conv, winograd)
    assert "may choose it" in reason_above_compute(1.7, conv, ["implicit_gemm"])
    assert "boost" in reason_above_compute(1.05, "[[32,64,56,56],[64,64,1,1]]", ["gemm"])
    assert "another type" in reason_above_compute(1.7, "not JSON", ["gemm"])
    assert "L2" in reason_above_bandwidth()
