"""The time in rows of tables step by step, and what the tables sum up besides: types of kernels, cumulative shares."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import strobe
from strobe.gpu.kernel_types import kernel_type
from tests.deep.kineto import US, call, kernel, operator, profile, step
from tests.deep.test_behind_rows import served
from tests.golden.answers import TRACES
from tests.unit.test_server import Page

GEMM = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_nn>(Params)"
STEPS = 6


@pytest.fixture
def six_steps(tmp_path: Path) -> strobe.Trace:
    """Step n launches a product of 10 + n us, which runs in the next step; every second one adds for 5 us."""
    events = []
    for n in range(STEPS):
        at = 1000 * n
        events += [step(n, at, 1000), operator("aten::mm", at, 100 + n), call(at + 10, 5, correlation=2 * n + 1)]
        events += [kernel(GEMM, at + 1100, 10 + n, correlation=2 * n + 1)]
        if n % 2:
            events += [operator("aten::add", at + 300, 50), call(at + 310, 5, correlation=2 * n + 2)]
            events += [kernel("add", at + 400, 5, correlation=2 * n + 2)]
    return profile(tmp_path, *events)


def bars(page: Page, analysis: str, rows: str, by: str = "name") -> dict[int, list[dict[str, Any]]]:
    """The bars of each row."""
    answer = page.get(f"over_steps?analysis={analysis}&rows={rows}&by={by}")
    assert answer.status_code == 200, answer.text
    found: dict[int, list[dict[str, Any]]] = {}
    for bar in pa.ipc.open_stream(io.BytesIO(answer.content)).read_all().to_pylist():
        found.setdefault(bar.pop("row"), []).append(bar)
    return found


def test_a_kernel_counts_in_the_step_that_launched_it(six_steps: strobe.Trace) -> None:
    of_rows = bars(served(six_steps), "kernels", "0,1")
    assert [row["kernel"] for row in six_steps.kernels().to_arrow().to_pylist()] == ["Kernel", "add"]
    assert [bar["first_step"] for bar in of_rows[0]] == [bar["last_step"] for bar in of_rows[0]] == list(range(STEPS))
    assert [bar["step_ns"] for bar in of_rows[0]] == [(10 + n) * US for n in range(STEPS)]
    assert [bar["step_ns"] for bar in of_rows[1]] == [5 * US * (n % 2) for n in range(STEPS)]


def test_operators_have_the_time_of_their_own_in_steps(six_steps: strobe.Trace) -> None:
    of_rows = bars(served(six_steps), "operators", "1")
    # Without the call that launches.
    assert [bar["step_ns"] for bar in of_rows[1]] == [(50 - 5) * US * (n % 2) for n in range(STEPS)]
    assert bars(served(six_steps), "operators", "0", by="type")[0][5]["step_ns"] == (105 - 5) * US
    assert bars(served(six_steps), "operators", "99") == {}


def test_steps_that_are_statistics_have_no_time(tmp_path: Path) -> None:
    with tarfile.open(TRACES / "gpu-folded.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    with strobe.open(tmp_path / "gpu-folded.strobe") as trace:
        rows = bars(served(trace), "kernels", "0,1")
        kept = {each["step"]: each["detail"] == "all" for each in trace.steps().to_arrow().to_pylist()}
    assert len(rows) == 2
    assert set(kept.values()) == {True, False}
    for row in rows.values():
        shown = [(n, bar) for bar in row for n in range(bar["first_step"], bar["last_step"] + 1)]
        assert [n for n, _ in shown] == sorted(kept)
        for bar in row:
            inside = [n for n in range(bar["first_step"], bar["last_step"] + 1) if kept[n]]
            assert bar["in_detail"] == len(inside)
            assert (bar["step_ns"] is None) == (not inside)
        assert any((bar["step_ns"] or 0) > 0 for bar in row)


def test_a_run_without_steps_has_no_bars(tmp_path: Path) -> None:
    trace = profile(tmp_path, operator("aten::mm", 0, 10))
    assert bars(served(trace), "operators", "0") == {}
    refused = served(trace).get("over_steps?analysis=steps&rows=0")
    assert refused.status_code == 400
    assert "kernels, operators" in refused.text


def test_shares_of_all_rows_down_to_one(tmp_path: Path) -> None:
    events = [kernel("a", 0, 6), kernel("b", 10, 4), kernel("a", 0, 1, device=1), kernel("c", 5, 3, device=1)]
    found = profile(tmp_path, *events).kernels().to_arrow().to_pylist()
    assert [(row["device"], row["kernel"], row["cumulative_share"]) for row in found] == [
        (0, "a", pytest.approx(0.6)),
        (0, "b", pytest.approx(1)),
        (1, "c", pytest.approx(0.75)),
        (1, "a", pytest.approx(1)),
    ]
    events = [operator("aten::mm", 0, 10), operator("aten::add", 20, 30)]
    operators = profile(tmp_path, *events).operators(search="mm").to_arrow().to_pylist()
    assert [(row["name"], row["share"], row["cumulative_share"]) for row in operators] == [("aten::mm", 0.25, 1)]


def test_kernels_by_type(six_steps: strobe.Trace, tmp_path: Path) -> None:
    (product, unknown) = six_steps.kernels(by="type").to_arrow().to_pylist()
    assert (product["type"], product["calls"], product["total_ns"]) == ("matrix product", 6, 75 * US)
    assert (unknown["type"], unknown["calls"], unknown["total_ns"]) == (None, 3, 15 * US)
    by_step = six_steps.kernels(by="type", per="step").to_arrow().to_pylist()
    assert {row["step"]: row["total_ns"] for row in by_step if row["type"]} == {n: (10 + n) * US for n in range(STEPS)}


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("void flash::flash_fwd_kernel<Traits<cutlass::half_t>>(Params)", "attention"),
        ("volta_scudnn_128x128_stridedB_splitK_medium_nn_v1", "convolution"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_nhwckrsc_nchw_tilesize128x128x16", "convolution"),
        ("void fft2d_r2c_32x32<float, false>(float2*, cudnn::reduced_divisor)", "Fourier transform"),
        ("ampere_sgemm_128x64_tn", "matrix product"),
        (GEMM, "matrix product"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>(cudnnTensorStruct)", "normalisation"),
        ("void at::native::reduce_kernel<512, 1, ReduceOp<float, NormTwoOps<float>>>(R)", "reduction"),
        ("void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>(int)", "elementwise"),
        ("void at::native::(anonymous namespace)::softmax_warp_forward<float>(float*)", "softmax"),
        ("saxpy(int, float, float*, float*)", None),
    ],
)
def test_the_type_of_a_kernel_follows_from_its_name(name: str, type: str | None) -> None:
    assert kernel_type(name, communicates=False) == type
    assert kernel_type(name, communicates=True) == "communication"
