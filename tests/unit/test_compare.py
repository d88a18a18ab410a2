"""What `compare` answers about pairs of runs that differ in one known way, with differences computed by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.api.trace import Trace
from strobe.errors import UsageError
from tests.unit.hand_made import HandMadeProcess, Span, make_trace, span

STEPS = 12
NAMES = ("aten::mm", "aten::relu", "load", "log", "MPI_Send", "aten::add")


@dataclass(frozen=True)
class Call:
    """A call: its name, its time without inner calls in ns, and these."""

    name: str
    own_ns: int
    inner: tuple[Call, ...] = ()


def call(name: str, own_ns: int, *inner: Call) -> Call:
    return Call(name, own_ns, inner)


def _laid(each: Call, begin: int) -> Span:
    """Half of a call's own time is before the calls inside, the rest behind."""
    now, inner = begin + each.own_ns // 2, []
    for one in each.inner:
        inner.append(_laid(one, now))
        now = inner[-1].end_ns
    paradigm, role = ("mpi", "p2p") if each.name.startswith("MPI_") else ("", "loop" if "loop in" in each.name else "")
    return span(each.name, begin, now + each.own_ns - each.own_ns // 2, *inner, paradigm=paradigm, role=role)


def process(body: Callable[[int], Sequence[Call]], *, outside_ns: int = 100, steps: int = STEPS, **options: object):
    """A process of so many marked steps, each the calls of `body(step)` and time outside of them."""
    now, spans = 0, []
    for step in range(steps):
        begin, inner = now, []
        for each in body(step):
            inner.append(_laid(each, now))
            now = inner[-1].end_ns
        now += outside_ns
        spans.append(span(f"ProfilerStep#{step}", begin, now, *inner, paradigm="torch", role="range"))
    return HandMadeProcess({"main": spans}, **options)


def run(*calls: Call, **options: int) -> Trace:
    return make_trace(process(lambda _: calls, **options))


def changes(a: Trace, b: Trace, **options: str) -> list[tuple[str, str, float]]:
    """Name, change and difference of every row with a change."""
    rows = a.compare(other=b, **options).to_arrow().to_pylist()
    return [(row["name"], row["change"], row["difference_ns"]) for row in rows if row["change"]]


def lanes(table) -> dict[tuple[str, str], float]:
    sums: dict[tuple[str, str], float] = {}
    for row in table.to_arrow().to_pylist():
        key = (row["class"], row["lane"])
        sums[key] = sums.get(key, 0.0) + row["difference_ns"]
    return sums


def mean_step_ns(trace: Trace) -> float:
    times = [row["duration_ns"] for row in trace.steps().to_arrow().to_pylist() if row["steady"]]
    return sum(times) / len(times)


FORWARD = (
    call("load", 50),
    call("forward", 20, call("aten::mm", 300), call("aten::relu", 40)),
    call("backward", 10, call("aten::mm", 500)),
    call("update", 70),
)


def test_a_run_is_equal_to_itself():
    table = run(*FORWARD).compare(other=run(*FORWARD))
    assert len(table) == 0
    assert table.note == "no difference: B is equal to A in every call and every nanosecond"


def test_a_doubled_operator_is_one_row():
    twice = (FORWARD[0], call("forward", 20, call("aten::mm", 300), call("aten::mm", 310), call("aten::relu", 40)))
    table = run(*FORWARD).compare(other=run(*twice, *FORWARD[2:]))
    (row,) = table.to_arrow().to_pylist()
    assert (row["name"], row["change"], row["where"]) == ("aten::mm", "more calls", "ProfilerStep#0 > forward")
    assert (row["a_calls"], row["b_calls"], row["a_ns"], row["b_ns"]) == (1, 2, 300, 610)
    # One call more, of (300 + 305) / 2 ns; the rest is longer calls: 1.5 of them by 5 ns.
    assert (row["by_count_ns"], row["by_time_ns"]) == (302.5, 7.5)


def test_an_inserted_call_holds_what_it_calls():
    more = call("validate", 5, call("aten::mm", 200), call("log", 7))
    a, b = run(*FORWARD), run(*FORWARD[:2], more, *FORWARD[2:])
    assert changes(a, b) == [("validate", "only in B", 212.0)]
    assert changes(b, a) == [("validate", "only in A", -212.0)]


def test_a_call_around_others_is_a_level_and_does_not_hide_them():
    wrapped = (FORWARD[0], call("compiled", 33, FORWARD[1]), *FORWARD[2:])
    assert changes(run(*FORWARD), run(*wrapped)) == [("compiled", "only in B", 33.0)]


def test_loops_that_the_recorder_follows_belong_to_what_holds_them():
    a, b = run(call("f", 100)), run(call("f", 40, call("loop in f at a.py:1", 35), call("loop in f at a.py:1", 25)))
    assert len(a.compare(other=b)) == 0


def test_a_renamed_function_is_found_by_its_place_and_what_it_calls():
    renamed = (FORWARD[0], call("forward_v2", 20, *FORWARD[1].inner), *FORWARD[2:])
    assert changes(run(*FORWARD), run(*renamed)) == [("forward -> forward_v2", "renamed", 0.0)]


def test_names_count_without_addresses_and_hashes():
    a, b = (
        run(call(f"<lambda> at {at}", 50), call(f"fused_{of}", 70)) for at, of in (("0x7f01", "a"), ("0x7e99", "a"))
    )
    assert len(a.compare(other=b)) == 0


def test_two_calls_in_another_order_are_reordered():
    swapped = (FORWARD[0], call("forward", 20, *reversed(FORWARD[1].inner)), *FORWARD[2:])
    found = changes(run(*FORWARD), run(*swapped))
    assert sorted(found) == [("aten::mm", "reordered", 0.0), ("aten::relu", "reordered", 0.0)]


def test_a_step_that_is_cut_at_another_place_is_not_reordered():
    a, b = (make_trace({"main": _unmarked(turned)}) for turned in (0, 1))
    assert changes(a, b) == []


def _unmarked(turned: int) -> list[Span]:
    calls = [call("load", 50), call("model", 300), call("update", 70)] * STEPS
    spans, now = [], 0
    for each in calls[turned:] + calls[:turned]:
        spans.append(_laid(each, now))
        now = spans[-1].end_ns + 10
    return spans


def test_a_time_is_longer_only_beyond_the_spread_of_the_steps_and_by_more_than_everything():
    def body(scale: float, load_ns: int) -> Callable[[int], Sequence[Call]]:
        noise = (0, 3, -2, 1, 2, -1)
        return lambda step: (
            call("load", load_ns + noise[step % 6]),
            call("model", round(scale * (1000 + 10 * noise[step % 6]))),
            call("update", round(scale * (400 + 5 * noise[(step + 2) % 6]))),
        )

    usual = make_trace(process(body(1, 100)))
    assert changes(usual, make_trace(process(body(1, 300)))) == [("load", "longer", 200.0)]
    assert changes(usual, make_trace(process(body(1, 104)))) == []
    slower = make_trace(process(body(1.5, 150), outside_ns=150))
    assert changes(usual, slower) == [], "all of it by the same factor may be the machine"
    assert "1.5 times as long, and no call stands out from that" in usual.compare(other=slower).note
    assert "no change beyond the spread" in usual.compare(other=make_trace(process(body(1, 104)))).note
    difference = mean_step_ns(slower) - mean_step_ns(usual)
    assert sum(lanes(usual.compare(other=slower)).values()) == pytest.approx(difference, abs=1e-3)


def test_an_occasional_call_more_is_chance():
    def body(times: Sequence[int]) -> Callable[[int], Sequence[Call]]:
        return lambda step: (*FORWARD, *([call("log", 1)] if step in times else []))

    assert changes(make_trace(process(body((4,)))), make_trace(process(body((3, 7, 9))))) == []


def test_counts_of_a_throttled_function_are_not_compared():
    a, b = (
        make_trace(process(lambda _, n=n: [*FORWARD, *[call("poll", 1)] * n], quality=quality))
        for n, quality in ((400, {}), (20, {"throttled_after: poll (made.py:1)": 20}))
    )
    assert changes(a, b) == []
    assert "calls of poll (made.py) are not all recorded: it was throttled" in a.compare(other=b).note


def test_equal_programs_on_a_busy_machine_do_not_differ_and_one_slow_call_is_found():
    random = np.random.default_rng(3)

    def on(machine: float, slower: float) -> Trace:
        own = np.exp(random.normal(0, 0.05, 8)) * machine
        own[3] *= slower
        usual = (100_000, 4_000, 20_000, 50_000, 9_000, 70_000, 1_000, 30_000)

        def body(_: int) -> Sequence[Call]:
            times = own * np.exp(random.normal(0, 0.1, 8)) * usual
            return [call(f"part_{'abcdefgh'[at]}", round(each)) for at, each in enumerate(times.tolist())]

        return make_trace(process(body))

    factors = np.exp(random.normal(0, 0.3, (60, 2)))
    equal = [changes(on(one, 1), on(other, 1)) for one, other in factors[:30].tolist()]
    assert equal == [[]] * 30
    slow = [changes(on(1, 1), on(float(other), 6)) for other in factors[30:, 0]]
    assert sum(("part_d", "longer") in [found[:2] for found in each] for each in slow) >= 27


def test_classes_with_another_share_of_the_steps_add_up_to_the_mean_step():
    def body(every: int) -> Callable[[int], Sequence[Call]]:
        return lambda step: (*FORWARD, *([call("validate", 2000)] if step % every == every - 1 else []))

    a, b = (make_trace(process(body(every), steps=60)) for every in (10, 2))
    table = a.compare(other=b)
    mix = [row for row in table.to_arrow().to_pylist() if row["lane"] == "steps"]
    assert [(row["change"], row["a_calls"], row["b_calls"]) for row in mix if row["change"] == "more calls"] == [
        ("more calls", 0.1, 0.5)
    ]
    assert sum(row["difference_ns"] for row in mix) == pytest.approx(mean_step_ns(b) - mean_step_ns(a), abs=1e-6)


def test_ranks_and_steps_of_one_run_are_sides():
    ranks = [process(lambda _: FORWARD, rank=0), process(lambda _: (*FORWARD, call("merge", 90)), rank=1, pid=200)]
    trace = make_trace(*ranks)
    found = trace.compare(ranks="0,1").to_arrow().to_pylist()
    assert [(row["name"], row["change"], row["difference_ns"]) for row in found] == [("merge", "only in B", 90.0)]
    halves = make_trace(process(lambda step: FORWARD if step < 6 else (*FORWARD, call("merge", 90))))
    found = halves.compare(steps="0..5,6..11").to_arrow().to_pylist()
    assert [(row["name"], row["change"]) for row in found] == [("merge", "only in B")]


def test_runs_without_steps_are_compared_as_a_whole():
    alone = [HandMadeProcess({"main": [span("f", 0, 100)]}, rank=0)]
    both = [*alone, HandMadeProcess({"main": [span("f", 0, 100), span("g", 110, 150)]}, rank=1, pid=200)]
    found = make_trace(*both).compare(ranks="0,1").to_arrow().to_pylist()
    assert [(row["class"], row["name"], row["change"], row["difference_ns"]) for row in found] == [
        ("run", "g", "only in B", 40.0),
        ("run", "all else", None, 10.0),
    ]
    (row, _) = run(*FORWARD).compare(other=make_trace(*alone), by="place").to_arrow().to_pylist()[-2:]
    assert row["class"] == "run", "also where one side has steps"


def test_what_a_trace_does_not_have_is_one_sentence():
    trace = run(*FORWARD)
    assert "with what to compare" in trace.compare().note
    for options in ({"ranks": "0,x"}, {"ranks": "0,1"}, {"classes": "train,nothing"}, {"steps": "1,2,3"}):
        with pytest.raises(UsageError):
            trace.compare(**options)


CALLS = st.recursive(
    st.builds(Call, st.sampled_from(NAMES), st.integers(0, 1000)),
    lambda inner: st.builds(Call, st.sampled_from(NAMES), st.integers(0, 1000), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)
BODIES = st.lists(CALLS, min_size=1, max_size=4)


@settings(max_examples=15, deadline=None)
@given(BODIES, BODIES, st.integers(3, 8), st.integers(3, 8))
def test_differences_add_up_and_swapped_sides_are_their_negation(one, other, steps, others):
    a, b = run(*one, steps=steps), run(*other, steps=others)
    there, back = a.compare(other=b), b.compare(other=a)
    difference = mean_step_ns(b) - mean_step_ns(a)
    assert sum(lanes(there).values()) == pytest.approx(difference, abs=1e-3)
    assert sum(lanes(back).values()) == pytest.approx(-difference, abs=1e-3)
    columns = ("difference_ns", "by_count_ns", "by_time_ns")
    rows, mirrored = (
        sorted([sign * row[column] for column in columns] for row in table.to_arrow().to_pylist())
        for table, sign in ((there, 1), (back, -1))
    )
    for row, twin in zip(rows, mirrored, strict=True):
        assert row == pytest.approx(twin, abs=1e-3)
