"""What takes the time of a window of a folded trace: exact, or it is said what is not. The twin kept every span."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.server.time_range.range_sums import window_table
from strobe.server.trace_context import TraceContext
from tests.unit.folding import ALL, FoldedProcess, Iteration, OnlineLoop, iterations_of, part_of
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, span, train_steps
from tests.unit.test_server import page_of

KEPT = {12, 13, 30, 41}
PARTS = ("data_wait", "forward", "backward", "optimizer", "validation", "rest")
END = 10**9


def threads() -> dict[str, list[Any]]:
    """60 steps of a training in a function; beside it a thread whose calls begin in one step and end in another."""
    steps = train_steps(60, extras=dict.fromkeys(range(9, 60, 10), ("validate", 30 * MS)), stalls={41: 50 * MS})
    beats = [span("beat", i * MS, i * MS + 5 * MS, span("aten::rand", i * MS, i * MS + 1000)) for i in range(3, 900, 7)]
    return {"main": [span("main", 0, END, *steps)], "helper": [span("watch", 0, END, *beats)]}


class ByStart(FoldedProcess):
    """As the recorder does in other threads: what began in a folded step goes with it, wherever it ended."""

    def _fold(self, location: int, rows: Any) -> Any:
        self._beside = location > 0
        return super()._fold(location, rows)

    def _class_of_folded(self, start_ns: int, end_ns: int) -> int | None:
        return super()._class_of_folded(start_ns, start_ns if self._beside else end_ns)


FULL = HandMadeProcess(threads())
ITERATIONS = iterations_of(FULL, since=12, keep=KEPT)


def facts_of(process: HandMadeProcess) -> TraceContext:
    return TraceContext(make_trace(process), Path())


def folded_facts(**parts: int) -> TraceContext:
    iterations = list(ITERATIONS)
    for number, detail_ns in parts.items():
        at = int(number.removeprefix("part_")) - 12
        iterations[at] = part_of(iterations[at], iterations[at].start_ns + detail_ns)
    return facts_of(ByStart(threads(), iterations, extras={"train+validation": ["validate"]}))


def rows(facts: TraceContext, start_ns: int, end_ns: int, *kinds: str) -> dict[tuple[str, str], int]:
    table = window_table(facts, start_ns, end_ns, 100)
    return {(row["kind"], row["name"]): row["self_ns"] for row in table.to_pylist() if row["kind"] in kinds}


def about(facts: TraceContext, start_ns: int, end_ns: int) -> dict[str, int]:
    found = window_table(facts, start_ns, end_ns, 100).schema.metadata
    return {name.decode(): int(value) for name, value in found.items()}


@pytest.mark.parametrize("parts", [{}, {"part_20": 3 * MS, "part_33": 11 * MS}])
def test_the_whole_run_is_exact_from_spans_and_statistics(parts: dict[str, int]) -> None:
    folded, full = folded_facts(**parts), facts_of(FULL)
    whole = window_table(folded, 0, END, 100)
    assert whole.to_pylist() == window_table(full, 0, END, 100).to_pylist()
    assert about(folded, 0, END) == {"folded_steps": 0, "counted_steps": 44, "unplaced": 0}
    assert about(full, 0, END) == {"folded_steps": 0, "counted_steps": 0, "unplaced": 0}


def test_the_main_thread_alone_is_exact_as_soon_as_all_folded_steps_are_in_the_window() -> None:
    alone = {"main": threads()["main"]}
    full = HandMadeProcess(alone)
    folded = facts_of(FoldedProcess(alone, ITERATIONS, extras={"train+validation": ["validate"]}))
    window = ITERATIONS[2].start_ns, ITERATIONS[-1].end_ns  # 12 and 13 were kept
    kinds = ("group", "name", "folded")
    assert rows(folded, *window, *kinds) == rows(facts_of(full), *window, *kinds)
    one_less = ITERATIONS[3].start_ns, ITERATIONS[-1].end_ns
    assert about(folded, *one_less) == {"folded_steps": 43, "counted_steps": 0, "unplaced": 0}


def test_of_some_folded_steps_the_time_is_told_and_no_function_is_blamed_for_it() -> None:
    some = ITERATIONS[3:6]  # 15, 16, 17: all folded
    window = some[0].start_ns, some[-1].end_ns
    folded = folded_facts()
    sums = np.sum([each.parts_ns for each in some], axis=0).tolist()
    expected = {("folded", part): ns for part, ns in zip(PARTS, sums, strict=True) if ns}
    found = rows(folded, *window, "folded")
    meanwhile = found.pop(("folded", "meanwhile"))
    assert found == expected
    assert 0 < meanwhile <= window[1] - window[0], "the time of watch, whatever it did then"
    assert rows(folded, *window, "name") == {}, "neither main nor watch are to blame"
    assert about(folded, *window)["folded_steps"] == 3


def test_folded_steps_that_an_end_of_the_window_cuts_are_a_row_of_their_own() -> None:
    first, second = ITERATIONS[3], ITERATIONS[4]
    window = first.start_ns + MS, second.end_ns
    found = rows(folded_facts(), *window, "folded")
    assert found["folded", "cut"] == first.end_ns - first.start_ns - MS
    assert found["folded", "forward"] == second.parts_ns[1]


def test_a_step_whose_end_was_kept_is_folded_up_to_there() -> None:
    step = ITERATIONS[8]
    folded = folded_facts(part_20=5 * MS)
    window = step.start_ns, step.end_ns
    assert rows(folded, *window, "folded")["folded", "cut"] == 5 * MS
    later = step.start_ns + 6 * MS, step.end_ns
    one = {"main": threads()["main"]}
    alone = [part_of(step, step.start_ns + 5 * MS) if each is step else each for each in ITERATIONS]
    main_only = facts_of(FoldedProcess(one, alone, extras={"train+validation": ["validate"]}))
    assert rows(main_only, *later, "name", "folded") == rows(facts_of(HandMadeProcess(one)), *later, "name")


def test_a_kept_step_is_exact_whatever_is_folded_around_it() -> None:
    kept = ITERATIONS[30 - 12]
    one = {"main": threads()["main"]}
    folded = facts_of(FoldedProcess(one, ITERATIONS, extras={"train+validation": ["validate"]}))
    window = kept.start_ns, kept.end_ns
    assert rows(folded, *window, "name", "group", "folded") == rows(
        facts_of(HandMadeProcess(one)), *window, "name", "group"
    )


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(0, END - 1), st.integers(0, END - 1)).map(sorted), st.integers(0, 12 * MS))
def test_no_function_is_given_more_than_it_took_and_nothing_is_lost(window: list[int], part_ns: int) -> None:
    start, end = window[0], window[1] + 1
    folded, full = folded_facts(part_20=part_ns), facts_of(FULL)
    some, everything = rows(folded, start, end, "name"), rows(full, start, end, "name")
    for key, own in some.items():
        assert own <= everything[key], key
    # Both threads are busy all the time.
    total = sum(rows(folded, start, end, "group").values()) + sum(rows(folded, start, end, "folded").values())
    assert total == 2 * (end - start)


def test_what_was_folded_outside_of_steps_is_told() -> None:
    class Loose(FoldedProcess):
        def statistics(self) -> dict[str, np.ndarray]:
            found: dict[str, np.ndarray] = super().statistics()
            first = found["class_id"] == found["class_id"][0]
            found["class_id"] = np.where(first, 0xFFFFFFFF, found["class_id"]).astype(np.uint32)
            return found

    facts = facts_of(Loose(threads(), ITERATIONS, extras={"train+validation": ["validate"]}))
    step = ITERATIONS[3]
    assert about(facts, step.start_ns, step.end_ns)["unplaced"] > 0
    assert about(facts, 0, END)["unplaced"] == 0, "all of it ran in here"


def test_a_span_that_holds_folded_steps_says_so_and_what_is_its_own(tmp_path: Path) -> None:
    # main 0..100 > step 10..40 (folded) and step 40..70 (kept); mm inside of both
    steps = [span("step", b, b + 30, span("aten::mm", b + 5, b + 25)) for b in (10, 40)]
    rest = (0, 0, 0, 0, 0, 30)
    its = [Iteration(10, 40, rest, "step"), Iteration(40, 70, rest, "step", ALL)]
    process = FoldedProcess({"main": [span("main", 0, 100, *steps)]}, its, loops=[OnlineLoop("structure", "step", 0)])
    page = page_of(process, folder=tmp_path)
    main = page.json("span?location=0&start_ns=0&end_ns=100&depth=0")
    assert isinstance(main, dict)
    assert main["self_ns"] == 100 - 30 - 30
    assert main["folded"] == {"steps": 1, "time_ns": 30, "exact": True, "self_ns": 40}
    kept = page.json("span?location=0&start_ns=40&end_ns=70&depth=1")
    assert isinstance(kept, dict)
    assert (kept["self_ns"], kept["folded"]) == (10, None)
    assert (kept["sisters"]["count"], kept["sisters"]["folded_count"], kept["sisters"]["folded_ns"]) == (1, 1, 30)


def test_of_two_spans_of_one_path_the_own_time_is_that_outside_of_folded_steps(tmp_path: Path) -> None:
    # epoch 0..50 holds a folded step 10..40, epoch 50..100 another one; both epochs work 20 beside them.
    epochs = [span("epoch", b, b + 50, span("step", b + 10, b + 40, span("aten::mm", b + 15, b + 35))) for b in (0, 50)]
    its = [Iteration(b + 10, b + 40, (0, 0, 0, 0, 0, 30), "step") for b in (0, 50)]
    process = FoldedProcess({"main": epochs}, its, loops=[OnlineLoop("structure", "step", 0)])
    epoch = page_of(process, folder=tmp_path).json("span?location=0&start_ns=50&end_ns=100&depth=0")
    assert isinstance(epoch, dict)
    assert epoch["self_ns"] == 20
    assert epoch["folded"] == {"steps": 1, "time_ns": 30, "exact": False, "self_ns": 20}
