"""What each stream of a GPU did: on paper."""

import pytest

from tests.deep.kineto import US, copy, kernel, operator, profile


def test_busy_and_alone_of_two_streams_of_two_gpus(tmp_path):
    events = [
        kernel("gemm", 0, 40, priority=-1),
        kernel("gemm", 40, 20, priority=-1),
        copy("Memcpy HtoD (Pinned -> Device)", 50, 30, stream=9),
        copy("Memset (Device)", 90, 10, stream=9),
        kernel("other", 5, 5, device=1),
    ]
    rows = profile(tmp_path, *events, rank=3).streams().to_pylist()
    seven, nine, other = sorted(rows, key=lambda row: (row["device"], row["stream"]))
    assert (seven["rank"], seven["stream"], seven["kernels"], seven["copies"]) == (3, "GPU 0 stream 7", 2, 0)
    assert (seven["busy_ns"], seven["kernel_ns"], seven["alone_ns"]) == (60 * US, 60 * US, 50 * US)
    assert seven["share"] == pytest.approx(0.6)
    assert (nine["kernels"], nine["copies"], nine["busy_ns"], nine["copy_ns"]) == (0, 2, 40 * US, 40 * US)
    assert nine["alone_ns"] == 30 * US
    assert (nine["first_ns"], nine["last_ns"]) == (50 * US, 100 * US)
    assert nine["priority"] is None
    assert (other["device"], other["busy_ns"], other["alone_ns"]) == (1, 5 * US, 5 * US)
    assert other["share"] == 1.0


def test_kernels_of_one_stream_at_once_count_once_in_its_time(tmp_path):
    (row,) = profile(tmp_path, kernel("a", 0, 30), kernel("b", 10, 30)).streams().to_pylist()
    assert (row["kernels"], row["kernel_ns"], row["busy_ns"], row["alone_ns"]) == (2, 60 * US, 40 * US, 40 * US)


def test_without_a_gpu_a_sentence_says_so(tmp_path):
    table = profile(tmp_path, operator("aten::mm", 0, 5)).streams()
    assert not len(table)
    assert "no GPU did anything" in table.note
