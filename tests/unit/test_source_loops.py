"""Steps where the calls alone do not tell what a step is, but the loops of the source do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from strobe.steps.steps import find_steps
from tests.unit.hand_made import MS, HandMadeProcess, Span, make_trace, span


def one_after_the_other(calls: Sequence[tuple[str, int]]) -> Iterator[Span]:
    now = MS
    for name, took_ns in calls:
        yield span(name, now, now + took_ns)
        now += took_ns + 1000


def found_in(loops: dict[str, str], whole: Span) -> tuple[list[int], str]:
    """The starts of the steps, and how they were found."""
    steps = find_steps(make_trace(HandMadeProcess({"main thread": [whole]}, loops=loops)))
    (found,) = steps.processes
    return found.start_ns.tolist(), steps.reason


def steps_of(loops: str, calls: Sequence[tuple[str, int]]) -> tuple[list[int], str]:
    """The starts of the steps of a `main` that makes these calls, as numbers of calls; and how they were found."""
    spans = tuple(one_after_the_other(calls))
    found, reason = found_in({"main": loops} if loops else {}, span("main", 0, spans[-1].end_ns + MS, *spans))
    starts = [each.start_ns for each in spans]
    return [starts.index(start) for start in found], reason


# Every tenth call of `advance` is followed by ten that take most of the time.
OUTPUT = [("gather", 9 * MS), *[(f"write_{k}", 9 * MS) for k in range(8)], ("meet", MS)]
EVERY_TENTH = [call for n in range(60) for call in [("advance", 2 * MS), *(OUTPUT if n % 10 == 9 else [])]]
WRITES = " ".join(f"write_{k}?" for k in range(8))


def test_what_is_done_at_times_is_no_step_however_long_it_takes() -> None:
    begins = [number for number, (name, _) in enumerate(EVERY_TENTH) if name == "advance"]
    starts, _ = steps_of(f"range (advance gather? {WRITES} meet?)", EVERY_TENTH)
    assert starts == begins


def test_a_loop_within_the_loop_is_no_step() -> None:
    starts, _ = steps_of(f"range (range (advance) gather {WRITES.replace('?', '')} meet)", EVERY_TENTH)
    assert len(starts) in (6, 7)  # whatever comes before the first is the beginning of one


def test_without_the_source_both_look_alike() -> None:
    assert len(steps_of("", EVERY_TENTH)[0]) in (6, 7)


@pytest.mark.parametrize("before", [0, 1])
def test_a_function_called_twice_in_an_iteration_makes_one_step_of_both(before: int) -> None:
    calls = [("transpose", 3 * MS)] * (before + 2 * 40)
    loops = " ".join(["transpose"] * before) + " range (np.fft transpose np.ifft transpose)"
    starts, reason = steps_of(loops, calls)
    assert starts[-39:] == list(range(before + 2, before + 80, 2))
    assert "the loop in main calls transpose 2 times in each iteration" in reason


@pytest.mark.parametrize(
    "loops",
    [
        "range (transpose? transpose?)",  # one or the other
        "range (air.transpose sea.transpose)",  # perhaps of two classes
        "range (.transpose .transpose)",
        "range (transpose) range (transpose)",  # one loop after the other
        "range (transpose (transpose))",
        "range (other)",
    ],
)
def test_where_the_source_leaves_it_open_each_call_is_a_step(loops: str) -> None:
    starts, _ = steps_of(loops, [("transpose", 3 * MS)] * 80)
    assert len(starts) == 80


def test_a_step_begins_with_what_an_iteration_calls_first() -> None:
    """The forces are computed once before the loop: by the calls alone, a step could begin with them."""
    calls = [("forces", 5 * MS), *[("move", MS), ("exchange", MS), ("forces", 5 * MS)] * 40]
    starts, _ = steps_of("forces range (move exchange neighbours? forces)", calls)
    assert starts == list(range(1, 121, 3))


@pytest.mark.parametrize("before", ["begin", "neighbours"])
def test_what_comes_in_front_of_that_at_times_begins_the_step(before: str) -> None:
    """The neighbours are looked for in every tenth iteration before all else, and perhaps once before the loop."""
    calls = [(before, MS)]
    begins = []
    for n in range(60):
        begins.append(len(calls))
        calls += [("neighbours", 9 * MS)] * (n % 10 == 0) + [("turn", 2 * MS), ("gather", MS)]
    starts, _ = steps_of(f"{before} range (neighbours? turn gather)", calls)
    assert starts == begins


def test_what_a_call_of_the_source_calls_itself_is_no_step_of_its_own() -> None:
    """`allreduce` of Python objects is a Send and a Recv: neither name is in the source."""
    calls = [
        call
        for n in range(200)
        for call in [("turn", 2 * MS), *([(f"MPI_{k}", MS) for k in "abcdef"] if n % 20 == 19 else [])]
    ]
    starts, _ = steps_of("range (turn comm.allreduce?)", calls)
    assert starts == [number for number, (name, _) in enumerate(calls) if name == "turn"]


def test_calls_of_a_loop_are_its_steps_whatever_came_before_them() -> None:
    """Until it is throttled, what `day` calls stands between its calls: the first ones look like another loop."""
    now, days = MS, []
    for n in range(400):
        parts = [span("event", now + k * 10_000, now + k * 10_000 + 9000) for k in range(1, 40)] if n < 15 else []
        days.append(span("day", now, now + MS, *parts))
        now += MS + 1000
    starts, _ = found_in({"main": "range (day)"}, span("main", 0, now, *days))
    assert starts == [each.start_ns for each in days]


def test_a_context_manager_runs_twice_for_each_call() -> None:
    """`with timed():` is two calls of the generator, one until it yields, and one from there on."""
    timed = [("timed", 1000), ("timed", 1000)]
    load, send, solve = ([*timed[:1], (name, MS), *timed[1:]] for name in ("load", "send", "solve"))
    main = "range (timed load timed send)"
    for often, source in ((1000, main), (3, f"{main[:-1]} timed? solve?)")):
        calls = [call for n in range(60) for call in [*load, *send, *(solve if n % often == 1 else [])]]
        calls = calls if often == 3 else [call for _ in range(60) for call in load + send]
        spans = tuple(one_after_the_other(calls))
        whole = span("main", 0, spans[-1].end_ns + MS, *spans)
        found, reason = found_in({"main": source, "timed": "yield"}, whole)
        assert len(found) == 60, reason


@pytest.mark.parametrize(
    ("name", "calls", "count"), [("item", (), 300), ("<genexpr>", ("step",), 300), ("<genexpr>", (), 0)]
)
def test_items_of_a_generator_expression_are_no_steps_unless_they_call_something(
    name: str, calls: tuple[str, ...], count: int
) -> None:
    now, items = MS, []
    for _ in range(300):
        inside = [span(each, now + 1000, now + MS - 1000) for each in calls]
        items.append(span(f"main.<locals>.{name}", now, now + MS, *inside))
        now += MS + 1000
    trace = make_trace(HandMadeProcess({"main": [span("main", 0, now, *items)]}, loops={"main": "(other)"}))
    steps = find_steps(trace).processes
    assert sum(map(len, steps)) == count


def nest(outer: int, inner: int) -> tuple[Span, list[int]]:
    """A `main` that calls `sweep` so often, which calls `flip` so often; and when the sweeps begin."""
    now, sweeps = MS, []
    for _ in range(outer):
        begin = now
        flips = []
        for _ in range(inner):
            parts = [span(name, now + k * 50_000, now + (k + 1) * 50_000) for k, name in enumerate("abcdef", 1)]
            flips.append(span("flip", now + 1000, now + MS, *parts))
            now += MS + 1000
        sweeps.append(span("sweep", begin, now, *flips))
        now += 1000
    return span("main", 0, now + MS, *sweeps), [each.start_ns for each in sweeps]


NESTED = {"main": "range (sweep)", "sweep": "range (flip)"}


@pytest.mark.parametrize("inner", [4, 100])
def test_what_a_function_does_in_a_loop_is_a_part_of_the_loop_that_calls_it(inner: int) -> None:
    whole, sweeps = nest(40, inner)
    starts, reason = found_in(NESTED, whole)
    assert starts == sweeps
    assert f"a function that holds {inner} iterations of a loop" in reason


def test_few_calls_of_such_a_function_are_epochs() -> None:
    whole, _ = nest(10, 30)
    assert len(found_in(NESTED, whole)[0]) == 300


def test_a_function_that_is_not_called_in_a_loop_is_no_step() -> None:
    whole, _ = nest(40, 30)
    assert len(found_in({**NESTED, "main": " ".join(["sweep"] * 40)}, whole)[0]) == 1200


def test_a_master_is_not_made_to_agree_with_its_workers() -> None:
    """It makes 160 replies and notes every eighth; each of its two workers has twenty tasks."""

    def rank(number: int, holder: str, calls: list[tuple[str, int]]) -> HandMadeProcess:
        spans = tuple(one_after_the_other(calls))
        whole = span(holder, 0, spans[-1].end_ns + MS, *spans)
        return HandMadeProcess({"main": [whole]}, pid=100 + number, main=number == 0, rank=number)

    reply, note = [("receive", MS), ("reply", MS)], [("note", MS)]
    replies = [call for n in range(160) for call in reply + note * (n % 8 == 5)]
    tasks = [("ask", MS), ("work", 4 * MS), ("send", MS)] * 20
    trace = make_trace(rank(0, "master", replies), rank(1, "worker", tasks), rank(2, "worker", tasks))
    assert [len(each) for each in find_steps(trace).processes] == [160, 20, 20]
    together = make_trace(rank(0, "main", replies), rank(1, "main", tasks), rank(2, "main", tasks))
    assert [len(each) for each in find_steps(together).processes] == [20, 20, 20]
