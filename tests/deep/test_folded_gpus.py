"""What GPUs did where most steps were folded: the same shares as with every span."""

import numpy as np
import pytest

from strobe.gpu.devices import devices
from strobe.gpu.folded_work import KnownTime, known_time
from strobe.gpu.idle import CAUSES, gaps
from strobe.gpu.lanes import lanes
from strobe.present.gpus import gpus
from strobe.steps.steps import find_steps
from tests.unit.folding import FoldedProcess, iterations_of
from tests.unit.hand_made import MS, ZERO_NS, HandMadeProcess, make_trace, span, train_steps

KEPT = {12, 13, 30, 41}


def work(name, start, end, role="kernel"):
    return span(name, start, end, paradigm="cuda", role=role)


def folded_and_full(lag_ns=0, stalls=None, lanes_known=0):
    """60 steps of 12 ms; of each the GPU computes 6 ms, and communicates and copies for 2 ms, half of it meanwhile."""
    steps = train_steps(60, stalls=stalls)
    begins = [each.start_ns for each in steps if each.name == "train_step"]
    compute = [work("gemm", at + lag_ns, at + lag_ns + 6 * MS) for at in begins]
    reduce = [work("ncclDevKernel_AllReduce", at + lag_ns + 5 * MS, at + lag_ns + 7 * MS) for at in begins]
    copies = [work("Memcpy DtoH", at + lag_ns + 7 * MS, at + lag_ns + 7 * MS + 500_000, "copy") for at in begins]
    threads = {"main": steps, "stream 7": compute, "stream 8": reduce, "stream 9": copies}
    full = HandMadeProcess(threads)
    iterations = iterations_of(full, since=12, keep=KEPT)
    whole = make_trace(full)
    (device,), (found,) = devices(whole), find_steps(whole).processes
    lanes_of = lanes(whole, device, found).chosen(slice(12, 12 + lanes_known))
    sets = {number: values for number, values in enumerate(lanes_of.set_ns.T) if values.any()}
    recorded = {0: (0, lanes_of.start_ns + ZERO_NS, sets)} if lanes_known else None
    return make_trace(FoldedProcess(threads, iterations, gpu_lanes=recorded)), whole


def test_what_the_time_of_a_gpu_goes_into_is_the_same():
    folded, full = folded_and_full()
    (one,), (other,) = (trace.overlap().to_pylist() for trace in (folded, full))
    assert one["duration_ns"] == pytest.approx(other["duration_ns"], rel=0.02)
    for name in ("busy_ns", "computation_ns", "communication_ns", "copy_ns", "exposed_communication_ns"):
        assert one[name] / one["duration_ns"] == pytest.approx(other[name] / other["duration_ns"], rel=0.03), name
    assert one["overlap"] == pytest.approx(other["overlap"], rel=0.01) == 0.5
    (one,), (other,) = gpus(folded), gpus(full)
    for name in ("computation", "communication", "copy", "idle"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=0.03), name


@pytest.mark.parametrize("lag_ns", [0, 3 * MS, 40 * MS])
def test_with_lanes_it_is_the_same_to_the_nanosecond(lag_ns):
    folded, full = folded_and_full(lag_ns, stalls={30: 50 * MS}, lanes_known=48)
    assert folded.overlap().to_pylist() == full.overlap().to_pylist()
    assert folded.overlap(by="lane").to_pylist() == full.overlap(by="lane").to_pylist()
    assert not folded.overlap().note
    assert not folded.overlap(by="lane").note
    (one,), (other,) = (trace.utilisation().to_pylist() for trace in (folded, full))
    assert one == other
    # Of the whole run, the steps count that are steady: what they launched.
    (gpu,), rows = gpus(folded), full.overlap(by="lane").to_pylist()
    (steps,) = find_steps(folded).processes
    steady = [row for row in rows if steps.steady[row["step"] - steps.first_number]]
    assert gpu.duration_ns == sum(row["duration_ns"] for row in steady)
    assert gpu.idle == sum(row["idle_ns"] for row in steady) / gpu.duration_ns


def test_where_a_kill_left_some_lanes_the_others_are_estimated():
    folded, full = folded_and_full(lanes_known=30)
    (one,), (other,) = (trace.overlap().to_pylist() for trace in (folded, full))
    for name in ("duration_ns", "busy_ns", "computation_ns", "exposed_communication_ns"):
        assert one[name] == pytest.approx(other[name], rel=0.01), name
    known = {row["step"] for row in folded.overlap(by="lane").to_pylist()}
    assert {*range(42)} <= known < {*range(60)}


def test_slow_steps_that_are_kept_do_not_count_for_the_others():
    folded, full = folded_and_full(stalls={41: 300 * MS})
    (one,), (other,) = (trace.utilisation().to_pylist() for trace in (folded, full))
    assert one["busy_share"] == pytest.approx(other["busy_share"], rel=0.05)
    assert one["kernels"] == other["kernels"] == 120


def test_steps_that_are_folded_have_no_rows_of_their_own():
    folded, full = folded_and_full()
    of_folded = {row["step"]: row for row in folded.overlap(by="step").to_pylist()}
    of_full = {row["step"]: row for row in full.overlap(by="step").to_pylist()}
    assert set(of_folded) == {*range(12), *KEPT}
    for step in (13, 30):
        assert of_folded[step]["busy_ns"] == of_full[step]["busy_ns"]


def idle(trace):
    (device,) = devices(trace)
    found = list(gaps(trace, device, per_stream=False, kernel_gap_ns=0))
    total = sum(each.time_ns.sum(axis=1) for each in found)
    return dict(zip(CAUSES, total.tolist(), strict=True)), max(int((g.end_ns - g.start_ns).max()) for g in found)


@pytest.mark.parametrize("lag_ns", [0, 3 * MS])
def test_gaps_are_those_of_what_is_in_detail(lag_ns):
    folded, full = folded_and_full(lag_ns)
    of_folded, longest = idle(folded)
    of_full, _ = idle(full)
    # 16 of 60 steps.
    assert sum(of_folded.values()) == pytest.approx(sum(of_full.values()) * 16 / 60, rel=0.1)
    assert longest < 12 * MS


@pytest.mark.parametrize("lanes_known", [0, 48])
@pytest.mark.parametrize("by", ["device", "stream"])
def test_why_it_is_idle_is_told_of_all_steps(by, lanes_known):
    folded, full = folded_and_full(3 * MS, lanes_known=lanes_known)
    of_folded, of_full = (
        {(row.get("stream"), row["cause"]): row["idle_ns"] for row in trace.idle(by=by).to_pylist()}
        for trace in (folded, full)
    )
    assert of_folded == pytest.approx(of_full, rel=0.03)
    if by == "device" and lanes_known:
        assert sum(of_folded.values()) == pytest.approx(sum(of_full.values()), abs=len(of_full))
    assert "estimated" in folded.idle(by=by).note
    assert not full.idle(by=by).note


def test_of_a_kept_step_without_a_kernel_nothing_is_known():
    """The GPU is always busy; once not with what its step launched."""
    steps = train_steps(60)
    iterations = iterations_of(HandMadeProcess({"main": steps}), since=12, keep=KEPT)
    busy = [work("gemm", each.start_ns, each.end_ns - 1000) for k, each in enumerate(iterations) if k + 12 != 30]
    folded = make_trace(FoldedProcess({"main": steps, "stream 7": busy}, iterations))
    (device,) = devices(folded)
    known = known_time(folded, device)
    assert known is not None
    edges = np.column_stack((known.begin_ns, known.end_ns)).ravel()
    assert (np.diff(edges) >= 0).all()
    assert [(row["cause"], row["gaps"]) for row in folded.idle().to_pylist()] == [("other", 2)]


def test_pieces_of_gaps_lie_in_what_is_known():
    known = KnownTime(np.array([0, 20, 50]), np.array([10, 40, 100]))
    which, begin, end = known.pieces(np.array([2, 5, 12, 10]), np.array([4, 60, 15, 20]))
    assert which.tolist() == [0, 1, 1, 1]
    assert begin.tolist() == [2, 5, 20, 50]
    assert end.tolist() == [4, 10, 40, 60]


def test_kernels_of_folded_steps_count():
    folded, full = folded_and_full()
    for by in ("name", "stream"):
        of_folded, of_full = (
            {row["kernel"]: row for row in trace.kernels(by=by).to_pylist()} for trace in (folded, full)
        )
        for kernel, row in of_full.items():
            exact = ("calls", "total_ns", "min_ns", "max_ns", "avg_ns", "share")
            assert {name: of_folded[kernel][name] for name in exact} == {name: row[name] for name in exact}
            assert of_folded[kernel]["median_ns"] == pytest.approx(row["median_ns"], rel=0.42)
            assert of_folded[kernel]["stddev_ns"] == pytest.approx(row["stddev_ns"], abs=1000)
    assert not folded.kernels().note
    # The shapes of launches are not in statistics.
    table = folded.kernels(by="operator")
    assert sum(row["calls"] for row in table.to_pylist()) == 2 * 16


def test_tables_of_single_activities_say_what_they_lack():
    folded, full = folded_and_full()
    lacks = "132 of 180 kernels, copies and sets belong to folded steps"
    assert lacks in folded.copies().note
    assert not full.copies().note
