"""What `compare` answers about GPUs: kernels below the operators that launched them, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import strobe
from tests.deep.kineto import US, Event, call, kernel, operator, profile, step

# (name, us) of the kernels of each operator of a step, and how long nothing runs between kernels.
Operators = Sequence[tuple[str, Sequence[tuple[str, int]]]]
PLAIN: Operators = (
    ("aten::mm", (("gemm", 100),)),
    ("aten::layer_norm", (("mean", 10), ("variance", 20), ("scale", 15))),
    ("aten::gelu", (("void gelu_kernel<4, float>(int)", 30),)),
)


def run(folder: Path, operators: Operators, *, gap_us: int = 2, launch: str = "cudaLaunchKernel") -> strobe.Trace:
    """Six steps of 1 ms; the kernels of a step follow each other with gaps."""
    folder.mkdir(exist_ok=True)
    events: list[Event] = []
    for number in range(6):
        now, on_gpu, begin = 1000 * number + 10, 1000 * number + 30, 1000 * number
        events.append(step(number, begin, 1000))
        for name, kernels in operators:
            events.append(operator(name, now, 10 * len(kernels) + 5))
            for at, (kernel_name, us) in enumerate(kernels):
                correlation = len(events) + 1
                events.append(call(now + 10 * at + 1, 5, launch, correlation=correlation))
                events.append(kernel(kernel_name, on_gpu, us, correlation=correlation))
                on_gpu += us + gap_us
            now += 10 * len(kernels) + 10
    return profile(folder, *events)


def on_gpu(a: strobe.Trace, b: strobe.Trace) -> list[tuple[str, str | None, float, float, float]]:
    rows = [row for row in a.compare(other=b).to_arrow().to_pylist() if row["lane"] == "GPU"]
    return [(r["name"], r["change"], r["a_calls"], r["b_calls"], r["difference_ns"]) for r in rows]


def lane_ns(trace: strobe.Trace) -> float:
    rows = trace.overlap(by="lane").to_arrow().to_pylist()
    return sum(row["duration_ns"] for row in rows) / len(rows)


def test_equal_runs_are_equal(tmp_path):
    table = run(tmp_path / "a", PLAIN).compare(other=run(tmp_path / "b", PLAIN))
    assert len(table) == 0
    assert "no difference" in table.note


def test_kernels_of_an_operator_that_became_one_are_fused_differently(tmp_path):
    fused = (PLAIN[0], ("aten::layer_norm", (("fused_norm", 25),)), PLAIN[2])
    a, b = run(tmp_path / "a", PLAIN), run(tmp_path / "b", fused)
    (row, idle) = on_gpu(a, b)
    assert row == ("mean, variance, scale -> fused_norm", "fused differently", 3, 1, -20 * US)
    assert (idle[0], row[-1] + idle[-1]) == ("all else", lane_ns(b) - lane_ns(a))


def test_a_kernel_launched_twice_by_one_operator(tmp_path):
    twice = (("aten::mm", (("gemm", 100), ("gemm", 104))), *PLAIN[1:])
    a, b = run(tmp_path / "a", PLAIN), run(tmp_path / "b", twice)
    rows = on_gpu(a, b)
    assert rows[0] == ("gemm", "more calls", 1, 2, 104 * US)
    assert sum(row[-1] for row in rows) == lane_ns(b) - lane_ns(a)


def test_an_operator_that_is_called_once_more_holds_its_kernels(tmp_path):
    a, b = run(tmp_path / "a", PLAIN), run(tmp_path / "b", (*PLAIN, PLAIN[2]))
    host = [row for row in a.compare(other=b).to_arrow().to_pylist() if row["lane"] == "host" and row["change"]]
    assert [(row["name"], row["change"], row["b_calls"]) for row in host] == [("aten::gelu", "more calls", 2)]
    assert on_gpu(a, b)[0] == ("aten::gelu", "more calls", 1, 2, 30 * US)


def test_kernels_of_two_vendors_are_matched_by_their_operators(tmp_path):
    other: Operators = (
        ("aten::mm", (("Cijk_Alik_Bljk_MT128", 80),)),
        ("aten::layer_norm", (("norm_hip", 50),)),
        ("aten::gelu", (("void gelu_kernel<8, float>(int)", 33),)),
    )
    a, b = run(tmp_path / "a", PLAIN), run(tmp_path / "b", other, launch="hipLaunchKernel")
    rows = on_gpu(a, b)
    assert {row[:2] for row in rows[:2]} == {
        ("gemm -> Cijk_Alik_Bljk_MT128", "renamed"),
        ("mean, variance, scale -> norm_hip", "fused differently"),
    }
    assert "only in one of both" not in a.compare(other=b).note
    assert sum(row[-1] for row in rows) == lane_ns(b) - lane_ns(a)


def test_what_runs_at_the_same_time_counts_once(tmp_path):
    def of_two(folder: Path, begin_us: int, stream: int) -> strobe.Trace:
        folder.mkdir()
        events: list[Event] = []
        for at in range(0, 6000, 1000):
            events += [
                step(at // 1000, at, 1000),
                operator("aten::mm", at + 10, 20),
                operator("aten::relu", at + 40, 20),
            ]
            events += [call(at + 11, 5, correlation=at + 1), call(at + 41, 5, correlation=at + 2)]
            events += [kernel("gemm", at + 50, 100, correlation=at + 1)]
            events += [kernel("relu", at + begin_us, 100, stream=stream, correlation=at + 2)]
        return profile(folder, *events)

    # 200 us one after the other; 150 us where relu begins in the middle of gemm.
    a, b = of_two(tmp_path / "a", 150, 7), of_two(tmp_path / "b", 100, 20)
    rows = [row for row in a.compare(other=b, by="place").to_arrow().to_pylist() if row["lane"] == "GPU"]
    times = {row["name"]: (row["a_ns"], row["b_ns"]) for row in rows}
    assert times["several at once"] == (0, -50 * US)
    assert times["idle"][1] - times["idle"][0] == lane_ns(b) - lane_ns(a) + 50 * US
