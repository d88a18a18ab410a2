"""How much of a GPU was used: on paper."""

import json

import pytest

from tests.deep.kineto import US, call, copy, kernel, operator, profile

# 108 multiprocessors of 64 warps and 65,536 registers.
A100 = {
    "id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0, "numSms": 108,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 167936,
}  # fmt: skip


def launch(grid: int, block: int, registers: int) -> dict[str, object]:
    return {"grid": [grid, 1, 1], "block": [block, 1, 1], "registers_per_thread": registers, "shared_memory": 0}


def test_each_rung_of_the_ladder(tmp_path):
    events = [
        # Half of the multiprocessors have a block of 32 warps: a quarter of the warps.
        kernel("few blocks", 0, 40, **launch(54, 1024, 32)),
        copy("Memcpy HtoD (Pinned -> Device)", 45, 10),
        # All multiprocessors, but 128 registers a thread leave room for 16 of the 64 warps.
        kernel("many registers", 60, 40, **launch(10_800, 256, 128)),
    ]
    (row,) = profile(tmp_path, *events, rank=1, deviceProperties=[A100]).utilisation().to_pylist()
    assert (row["rank"], row["device"], row["duration_ns"], row["kernels"]) == (1, 0, 100 * US, 2)
    assert row["busy_share"] == pytest.approx(0.8)
    assert row["sms_filled_share"] == pytest.approx(0.6)
    assert row["warps_there_share"] == pytest.approx(0.2)
    assert row["lost"] == "warps"


def test_kernels_at_the_same_time_fill_no_more_than_the_time_that_was_busy(tmp_path):
    events = [kernel("a", 0, 50, **launch(108, 1024, 32)), kernel("b", 0, 50, stream=8, **launch(108, 1024, 32))]
    events.append(kernel("c", 90, 10, **launch(108, 1024, 32)))
    (row,) = profile(tmp_path, *events, deviceProperties=[A100]).utilisation().to_pylist()
    assert row["busy_share"] == pytest.approx(0.6)
    assert row["sms_filled_share"] == pytest.approx(0.6)
    # 32 of 64 warps each: twice for 50 us, once for 10.
    assert row["warps_there_share"] == pytest.approx(0.55)
    assert row["lost"] == "idle"


def test_of_an_unknown_gpu_only_the_busy_time_is_known(tmp_path):
    table = profile(tmp_path, kernel("a", 0, 10, **launch(1, 32, 32)), kernel("b", 30, 10)).utilisation()
    (row,) = table.to_pylist()
    assert (row["busy_share"], row["sms_filled_share"], row["warps_there_share"]) == (0.5, None, None)
    assert "models of the GPUs are not in this trace" in table.note


def test_without_a_gpu_a_sentence_says_so(tmp_path):
    table = profile(tmp_path, operator("aten::mm", 0, 5)).utilisation()
    assert not len(table)
    assert "no GPU did anything" in table.note


# 10 multiprocessors, 256 operations on floats a clock, 2.34375 GHz: 6000 GFLOP/s; 1000 GB/s.
MADE = {
    "id": 0, "name": "of a test", "computeMajor": 9, "computeMinor": 0, "numSms": 10, "coreClockKhz": 2_343_750,
    "memoryBandwidthKbPerS": 1_000_000_000,
}  # fmt: skip


def products(count: int, m: int, n: int, k: int, took_us: float, *, begin_us: int = 0, every_us: int = 100):
    """Products of matrices of floats, each with a kernel that takes so long."""
    for i in range(count):
        at, number = begin_us + every_us * i, begin_us + 1 + i
        dims, types = [[m, k], [k, n]], ["float", "float"]
        yield operator("aten::mm", at, 4, External_id=number, Input_Dims=dims, Input_type=types)
        yield call(at + 1, 2, correlation=number, External_id=number)
        yield kernel("sgemm", at + 10, took_us, correlation=number, External_id=number)


def measured(trace, kernel_name: str, *launches: dict[str, float]) -> None:
    """Keep values as `strobe metrics --trace` does."""
    body = [
        {"kernel": kernel_name, "stream": 7, "device": 0, "invocation": at, "values": values}
        for at, values in enumerate(launches, 1)
    ]
    (trace.path / "gpu_metrics.json").write_text(json.dumps({"format": 1, "launches": body}))


def test_the_roofline_of_products_by_their_shapes(tmp_path):
    # 2 * 512 * 512 * 64 FLOP at 6000 GFLOP/s are 5.59 us; 1.3 MB at 1000 GB/s are 1.31. Measured: 71.964 us.
    trace = profile(tmp_path, *products(8, 512, 512, 64, 71.964), deviceProperties=[MADE])
    (row,) = trace.utilisation().to_pylist()
    duration = 7 * 100_000 + 71_964
    assert row["duration_ns"] == duration
    assert row["roofline_share"] == pytest.approx(8 * 33_554_432 / 6000 / duration)
    assert row["roofline_known_share"] == 1
    assert row["roofline_share"] / row["busy_share"] == pytest.approx(0.0777, abs=1e-4)
    (gemm,) = trace.gemm().to_pylist()
    assert (gemm["peak_gflops"], gemm["efficiency"]) == (pytest.approx(6000), pytest.approx(0.0777, abs=1e-4))


def test_what_moves_more_than_it_computes_is_held_against_the_bandwidth(tmp_path):
    # (1, 4096) x (4096, 4096): 33.6 MFLOP, 5.6 us; 67.1 MB, 67.1 us.
    moved = 4 * (4096 + 4096 * 4096 + 4096)
    trace = profile(tmp_path, *products(1, 1, 4096, 4096, 80), deviceProperties=[MADE])
    (row,) = trace.utilisation().to_pylist()
    assert row["roofline_share"] == pytest.approx(moved / 1000 / 80_000)
    # None counts more than it took: what it moved was in a cache.
    trace = profile(tmp_path, *products(1, 1, 4096, 4096, 50), deviceProperties=[MADE])
    (row,) = trace.utilisation().to_pylist()
    assert row["roofline_share"] == 1


def test_of_what_nothing_is_known_nothing_is_assumed(tmp_path):
    events = [*products(1, 512, 512, 64, 40), kernel("norm", 60, 20), copy("Memcpy HtoD (Pinned -> Device)", 90, 10)]
    (row,) = profile(tmp_path, *events, deviceProperties=[MADE]).utilisation().to_pylist()
    assert row["roofline_share"] == pytest.approx(33_554_432 / 6000 / 90_000)
    assert row["roofline_known_share"] == pytest.approx(40 / 60)
    for properties in ([A100 | {"name": "unheard of"}], []):
        (row,) = profile(tmp_path, *events, deviceProperties=properties).utilisation().to_pylist()
        assert (row["roofline_share"], row["roofline_known_share"]) == (None, None)
    (row,) = profile(tmp_path, kernel("norm", 0, 10), deviceProperties=[MADE]).utilisation().to_pylist()
    assert (row["roofline_share"], row["roofline_known_share"]) == (None, None)


def test_counters_say_what_kernels_do_before_shapes_do(tmp_path):
    events = [*products(1, 512, 512, 64, 40), kernel("norm", 60, 20), kernel("norm", 90, 20), kernel("other", 120, 20)]
    trace = profile(tmp_path, *events, deviceProperties=[MADE])
    # 4 MB at 1000 GB/s are 4 us; 12 MFLOP are 2 us. The mean of two launches counts for both.
    launches = ({"dram_read_bytes": 2e6}, {"dram_read_bytes": 4e6})
    measured(trace, "norm", *({**each, "dram_write_bytes": 1e6, "flop_count_sp": 12e6} for each in launches))
    (row,) = trace.utilisation().to_pylist()
    assert row["roofline_share"] == pytest.approx((33_554_432 / 6000 + 2 * 4000) / 130_000)
    assert row["roofline_known_share"] == pytest.approx(80 / 100)
    # The product's kernel computes twice what the shapes say: 11.18 us.
    measured(trace, "sgemm", {"dram_read_bytes": 1e6, "dram_write_bytes": 1e6, "flop_count_sp": 67_108_864})
    (row,) = trace.utilisation().to_pylist()
    assert row["roofline_share"] == pytest.approx(67_108_864 / 6000 / 130_000)
    assert row["roofline_known_share"] == pytest.approx(40 / 100)


def test_counters_that_are_parts_of_a_peak_need_no_peak(tmp_path):
    trace = profile(tmp_path, kernel("volta_h884gemm", 0, 40), kernel("idle", 60, 40))
    of_peak = {"flop_sp_efficiency": 10.0, "tensor_throughput": 75.0, "dram_utilization": 5.0}
    measured(trace, "volta_h884gemm", of_peak)
    (row,) = trace.utilisation().to_pylist()
    assert (row["roofline_share"], row["roofline_known_share"]) == (pytest.approx(0.3), 0.5)
    # Without what tensor cores do, it is not known what such a kernel computes; nor without what it moves.
    for missing in ("tensor_throughput", "dram_utilization"):
        measured(trace, "volta_h884gemm", {name: value for name, value in of_peak.items() if name != missing})
        (row,) = trace.utilisation().to_pylist()
        assert row["roofline_share"] is None
