"""How much of a GPU was used: on paper."""

import pytest

from tests.deep.kineto import US, copy, kernel, operator, profile

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
    assert "what the GPUs are" in table.note


def test_without_a_gpu_a_sentence_says_so(tmp_path):
    table = profile(tmp_path, operator("aten::mm", 0, 5)).utilisation()
    assert not len(table)
    assert "no GPU did anything" in table.note
