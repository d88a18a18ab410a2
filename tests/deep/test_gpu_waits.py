"""Waits of threads and streams for GPUs, computed on paper, and by looking at everything for random runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import strobe
from tests.deep.kineto import US, Event, call, copy, event, kernel, profile
from tests.deep.test_critical_path import random_run, two_streams, waiting

WAIT = ("state", "function", "kernel")


def waits(trace: strobe.Trace) -> list[tuple[object, ...]]:
    """State, function that waited, kernel that it waited for, and us; those longer than the error of the clocks."""
    rows = trace.waits(by="kernel").to_pylist()
    return [(*(row[name] for name in WAIT), row["wait_ns"] / US) for row in rows if row["wait_ns"]]


def waits_of(folder: Path, *events: Event) -> list[tuple[object, ...]]:
    return waits(profile(folder, *events))


def test_a_call_waits_for_the_last_kernel_of_the_device(tmp_path: Path) -> None:
    trace = profile(
        tmp_path,
        call(0, 5, correlation=1),
        call(5, 4, correlation=2),
        event("python_function", "train.py(41): train", 9, 100, 100, 1),
        call(10, 95, "cudaDeviceSynchronize", correlation=3),
        kernel("long", 10, 90, correlation=1, stream=7),
        kernel("short", 20, 30, correlation=2, stream=8),
    )
    # 100 - 10; the call returns 5 us later.
    assert waits(trace) == [("late_gpu", "cudaDeviceSynchronize", "long", 90)]
    (row,) = trace.waits(by="call").to_pylist()
    assert row["call_path"].startswith("cudaDeviceSynchronize < train")
    assert row["place"] == "train.py:41"
    (row,) = trace.waits(by="thread").to_pylist()
    assert "stream 7" in row["awaited_thread"]
    assert trace.waits().note == "threads and streams waited 90.00 us for GPUs"


def stream_and_event(*told: Event) -> tuple[Event, ...]:
    return (
        call(0, 1, correlation=1),
        call(1, 1, "cudaEventRecord", correlation=6),
        call(2, 1, correlation=2),
        call(4, 56, "cudaStreamSynchronize", correlation=3),
        kernel("mine", 5, 30, correlation=1, stream=7),
        kernel("after_the_record", 36, 15, correlation=2, stream=7),
        kernel("other", 6, 48, correlation=4, stream=8),
        *told,
    )


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((), ("other", 50)),  # 54 - 4: the last to end before the call returns
        ((waiting("Stream Sync", 4, 56, stream=7, correlation=3),), ("after_the_record", 47)),  # 51 - 4
        (
            (
                waiting(
                    "Event Sync", 4, 56, stream=7, correlation=3, wait_on_stream=7,
                    wait_on_cuda_event_record_corr_id=6,
                ),
            ),
            ("mine", 31),  # 35 - 4
        ),
    ],
)  # fmt: skip
def test_a_call_waits_for_its_stream_or_its_event(
    tmp_path: Path, told: tuple[Event, ...], expected: tuple[str, int]
) -> None:
    assert waits_of(tmp_path, *stream_and_event(*told)) == [("late_gpu", "cudaStreamSynchronize", *expected)]


def test_a_kernel_that_is_done_before_is_not_waited_for_and_a_query_never_waits(tmp_path: Path) -> None:
    assert not waits_of(
        tmp_path,
        call(0, 5, correlation=1),
        call(5, 40, "cudaEventQuery", correlation=2),
        call(50, 30, "cudaDeviceSynchronize", correlation=3),
        kernel("k", 10, 30, correlation=1),
    )


def test_a_copy_back_waits_for_the_kernel_before_it(tmp_path: Path) -> None:
    found = waits_of(
        tmp_path,
        call(0, 5, correlation=1),
        call(10, 50, "cudaMemcpy", correlation=2),
        kernel("k", 6, 34, correlation=1),
        copy("Memcpy DtoH (Device -> Pageable)", 42, 16, correlation=2),
    )
    # From 10 to 58, without 2 us in which the stream did nothing.
    assert found == [("late_gpu", "cudaMemcpy", "Memcpy DtoH (Device -> Pageable)", 46)]


def test_what_a_call_does_before_its_copy_is_not_waiting(tmp_path: Path) -> None:
    found = waits_of(
        tmp_path,
        call(10, 40, "cudaMemcpy", correlation=1),
        copy("Memcpy HtoD (Pageable -> Device)", 30, 18, correlation=1),
    )
    assert found == [("late_gpu", "cudaMemcpy", "Memcpy HtoD (Pageable -> Device)", 18)]


def test_a_copy_that_goes_on_after_its_call_is_not_waited_for(tmp_path: Path) -> None:
    assert not waits_of(
        tmp_path,
        call(10, 40, "cudaMemcpyAsync", correlation=1),
        copy("Memcpy HtoD (Pinned -> Device)", 20, 60, correlation=1),
    )


def test_a_call_inside_of_another_one_does_not_wait_again(tmp_path: Path) -> None:
    inner = event("cuda_driver", "cuStreamSynchronize", 12, 86, 100, 1, correlation=4)
    found = waits_of(
        tmp_path,
        call(0, 5, correlation=1),
        call(10, 90, "cudaStreamSynchronize", correlation=3),
        inner,
        kernel("k", 8, 88, correlation=1),
    )
    assert found == [("late_gpu", "cudaStreamSynchronize", "k", 86)]


def test_short_waits_are_uncertain(tmp_path: Path) -> None:
    """Clocks of host and GPU may differ by 5 us: 9 us may be none."""
    trace = profile(
        tmp_path,
        call(0, 5, correlation=1),
        call(20, 12, "cudaDeviceSynchronize", correlation=3),
        kernel("k", 8, 21, correlation=1),
    )
    assert [(row["wait_ns"], row["uncertain_ns"]) for row in trace.waits().to_pylist()] == [(0, 9 * US)]


EVENT = waiting(
    "Stream Wait Event", 4, 1, stream=20, correlation=4, wait_on_stream=7,
    wait_on_cuda_event_record_corr_id=2, wait_on_cuda_event_id=1,
)  # fmt: skip


def test_a_stream_waits_for_the_kernel_before_the_event(tmp_path: Path) -> None:
    """`b` was launched at 6 and waits for `a`, which ends at 50; not for what was launched after the record."""
    trace = profile(tmp_path, *two_streams(EVENT))
    assert waits(trace) == [("late_stream", "b", "a", 44)]
    (row,) = trace.waits(by="thread").to_pylist()
    assert ("stream 20" in row["thread"], "stream 7" in row["awaited_thread"]) == (True, True)


def test_a_stream_that_is_busy_does_not_wait_yet(tmp_path: Path) -> None:
    before = (call(1, 1, correlation=8), kernel("busy", 4, 26, correlation=8, stream=20))
    # From 30, when `busy` is done, to 50.
    assert waits_of(tmp_path, *two_streams(EVENT), *before) == [("late_stream", "b", "a", 20)]


def test_a_kernel_that_is_launched_after_the_event_does_not_wait_for_it(tmp_path: Path) -> None:
    events = [each for each in two_streams(EVENT) if each["name"] != "b" and each["args"].get("correlation") != 5]
    events += [call(60, 1, correlation=5), kernel("b", 65, 20, correlation=5, stream=20)]
    assert not waits_of(tmp_path, *events)


def test_without_events_waits_of_streams_are_not_known(tmp_path: Path) -> None:
    assert not waits_of(tmp_path, *two_streams())


@pytest.mark.parametrize("seed", range(4))
def test_random_runs_have_the_waits_of_a_look_at_everything(tmp_path: Path, seed: int) -> None:
    events, kernels = random_run(seed)
    expected = 0.0
    for each in events:
        if each["name"] == "cudaDeviceSynchronize":
            begin, until = each["ts"], round(each["ts"] + each["dur"], 3)
            wait = max((end for _, _, end, _, _ in kernels if end <= until), default=begin) - begin
            expected += max(0, wait)
    idle, done = 0.0, min(begin for _, begin, *_ in kernels)
    for launched, _, end, *_ in sorted(kernels, key=lambda each: each[1]):
        idle, done = idle + max(0, launched - done), max(done, end)
    rows = {row["state"]: row for row in profile(tmp_path, *events).waits().to_pylist()}
    for state, waited in (("late_gpu", expected), ("late_host", idle)):
        assert (rows[state]["wait_ns"] + rows[state]["uncertain_ns"]) / US == pytest.approx(waited, abs=0.1)
        assert waited > 20


def test_no_wait_of_a_real_training_is_longer_than_its_call(public) -> None:
    trace = public("kineto/resnet50_loader_workers0.json.gz")
    rows = trace.waits(by="wait").to_pylist()
    assert any(row["state"] == "late_gpu" for row in rows)
    lasted = trace.sql("select start_ns, max(duration_ns) d from spans group by 1").to_pylist()
    by_start = {row["start_ns"]: row["d"] for row in lasted}
    late = [row for row in rows if row["state"] == "late_gpu"]
    assert all(row["wait_ns"] + row["uncertain_ns"] <= by_start[row["start_ns"]] for row in late)
