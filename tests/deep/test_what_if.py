"""What-if: steps whose replay, with a change and without, is computed on paper."""

import numpy as np
import pytest

from strobe.breakdown.what_if.changes import changes
from strobe.errors import UsageError
from tests.deep.kineto import US, call, kernel, operator, profile, step
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, span, train_steps

# Of four steps in turn: how long after its launch a kernel begins.
LATENCIES = (10, 10, 10, 50)


def steps_that_wait(tmp_path, count=13):
    """Steps of 720 us and a latency: 10 of the host, products of 400, 2 later others of 100, 8, 200 of the host."""
    events, now = [], 0
    for number in range(count):
        latency = LATENCIES[(number - 1) % 4] if number else sum(LATENCIES) // 4  # the first one is not replayed
        begin = now + 10 + latency
        done, end = begin + 502, begin + 710
        events += [
            step(number, now, end - now),
            call(now + 10, 5, correlation=3 * number + 1),
            call(now + 20, 5, correlation=3 * number + 2),
            kernel("gemm", begin, 400, correlation=3 * number + 1),
            kernel("relu", begin + 402, 100, correlation=3 * number + 2),
            call(now + 100, done + 8 - now - 100, "cudaDeviceSynchronize", correlation=3 * number + 3),
            operator("aten::tail", done + 8, 200),
        ]
        now = end
    return profile(tmp_path, *events)


def asked(trace, change="", **options):
    (row,) = trace.what_if(change=change, **options).to_pylist()
    return row


def test_a_replay_has_usual_latencies_and_its_error_is_what_these_lack(tmp_path):
    """Four steps of 740 us on average: three latencies are usual, the fourth is 40 us longer."""
    row = asked(steps_that_wait(tmp_path))
    assert row["steps"] % 4 == 0
    assert (row["recorded_ns"], row["replayed_ns"]) == (740 * US, 730 * US)
    assert row["error"] == row["largest_error"] == pytest.approx(10 / 740)
    assert (row["gain_ns"], row["gain_low_ns"]) == (0, 0)


def test_a_gain_is_that_of_the_change_within_the_error_of_the_replay(tmp_path):
    trace = steps_that_wait(tmp_path)
    row, error = asked(trace, "gemm=0.5"), 10 / 740
    assert row["predicted_ns"] == 530 * US
    assert row["gain_low_ns"] == pytest.approx(200 * US - error * 530 * US, abs=2)
    assert row["gain_high_ns"] == pytest.approx(200 * US + error * 530 * US, abs=2)
    row = asked(trace, "gemm=0.4..0.6")
    assert row["gain_low_ns"] == pytest.approx(160 * US - error * 570 * US, abs=2)
    assert row["gain_high_ns"] == pytest.approx(240 * US + error * 570 * US, abs=2)
    assert "with gemm=0.5: " in trace.what_if(change="gemm=0.5").about


def test_without_waits_the_host_runs_ahead_and_the_gpu_sets_the_pace(tmp_path):
    """The first kernel begins after 20 us; then 502 us a step, 2 us between two."""
    assert asked(steps_that_wait(tmp_path), "no-sync")["predicted_ns"] == pytest.approx((20 + 4 * 504 - 2) / 4 * US)


def test_what_is_smaller_than_the_error_is_no_gain(tmp_path):
    table = steps_that_wait(tmp_path).what_if(change="no-launch")
    (row,) = table.to_pylist()
    assert row["predicted_ns"] == 720 * US
    assert row["gain_low_ns"] == 0
    assert "no difference beyond the error of the replay and the spread of the steps" in table.about


def test_stretches_have_a_row_each(tmp_path):
    rows = steps_that_wait(tmp_path).what_if(change="relu=0", by="stretch").to_pylist()
    assert len(rows) >= 2
    assert {(row["steps"], row["recorded_ns"], row["predicted_ns"]) for row in rows} == {(4, 740 * US, 630 * US)}
    assert np.diff([row["step"] for row in rows]).tolist() == [4] * (len(rows) - 1)


def test_without_a_straggler_ranks_take_what_the_median_takes():
    """Steps of 105 ms: rank 2 works for 100 before they meet, the others for 40."""

    def rank(number):
        spans = []
        for k in range(30):
            begin, works = k * 105 * MS, (100 if number == 2 else 40) * MS
            spans += [
                span("work", begin, begin + works),
                span("MPI_Allreduce", begin + works, begin + 105 * MS, paradigm="mpi", role="collective"),
            ]
        return HandMadeProcess({"main": spans}, pid=100 + number, main=number == 0, rank=number)

    row = asked(make_trace(*(rank(number) for number in range(3))), "no-straggler")
    assert (row["recorded_ns"], row["error"]) == (105 * MS, 0.0)
    assert row["predicted_ns"] == 45 * MS
    assert row["gain_low_ns"] == row["gain_high_ns"] == 60 * MS


def test_a_change_must_be_understood(tmp_path):
    assert changes("no-sync, gemm*=.4 .. .2,fuse=*gelu*") == [
        ("no-sync", "", 0, 0),
        ("", "gemm*", 0.2, 0.4),
        ("fuse", "*gelu*", 0, 0),
    ]
    trace = steps_that_wait(tmp_path)
    for text, said in (("gemm", "CHANGE: 'gemm' is not a change"), ("nothing*=0.5", "no region of this trace")):
        with pytest.raises(UsageError, match=said):
            trace.what_if(change=text)


def test_without_steps_a_sentence_says_so():
    table = make_trace({"main": [span("main", 0, 10 * MS)]}).what_if(change="host=0")
    assert len(table) == 0
    assert "no usual step has all its spans" in table.note


def test_a_thread_alone_is_replayed_without_an_error():
    row = asked(make_trace({"main": train_steps(60)}), "host=0.5")
    assert row["error"] == 0.0
    assert row["gain_low_ns"] > 0


def test_proposals_are_of_what_the_steps_consist_of_and_each_gains_what_it_gains_when_asked(tmp_path):
    trace = steps_that_wait(tmp_path)
    rows = trace.what_if(by="change").to_pylist()
    proposed = {row["change"]: row for row in rows}
    # The path: 400 us of gemm, 100 of relu, 200 of the host, waits of 8. No copies, collectives, loader, second rank.
    assert {"gemm=0.5", "computation=0.5", "host=0.5"} <= set(proposed)
    assert not {"no-copies", "overlap", "no-straggler", "workers=1"} & set(proposed)
    assert [row["gain_high_ns"] + row["gain_low_ns"] for row in rows] == sorted(
        (row["gain_high_ns"] + row["gain_low_ns"] for row in rows), reverse=True
    )
    for change, row in proposed.items():
        alone = asked(trace, change)
        assert {name: row[name] for name in alone} == alone
        assert row["gain_high_ns"] > 0


def test_no_change_is_proposed_where_none_is_known_to_gain():
    """Nothing but one call on one thread, which is what the loop is for."""
    trace = make_trace({"main": [span("idle", 0, MS)]})
    table = trace.what_if(by="change")
    assert (len(table), bool(table.note)) == (0, True)
