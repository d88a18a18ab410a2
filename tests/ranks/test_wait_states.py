"""Wait states of hand-computed cases, as OTF2 archives: found with their size, and none besides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import strobe
from tests.ranks import wait_archives
from tests.ranks.wait_case import Case
from tests.ranks.wait_cases import CASES
from tests.ranks.wait_cases_aside import CASES_ASIDE
from tests.ranks.wait_cases_of_collectives import CASES_OF_COLLECTIVES
from tests.ranks.wait_cases_of_windows import CASES_OF_WINDOWS

Key = tuple[str, int, str, str | None]


@pytest.mark.parametrize(
    "case", [*CASES, *CASES_OF_COLLECTIVES, *CASES_OF_WINDOWS, *CASES_ASIDE], ids=lambda case: case.name
)
def test_waits_are_those_worked_out_by_hand(case: Case, tmp_path: Path) -> None:
    """State, rank, function, number and ns; and whether somebody is missing."""
    told_apart = {(wait.state, wait.rank, wait.function) for wait in case.waits if wait.within}
    expected = {
        (wait.state, wait.rank, wait.function, wait.within): (wait.count, wait.wait_ns, wait.partial)
        for wait in case.waits
    }
    count, total, partial, clipped = Counter[Key](), Counter[Key](), Counter[Key](), 0
    with strobe.open(wait_archives.write(case, tmp_path / "archive")) as trace:
        for row in trace.waits(by="all").to_pylist():
            of = (row["state"], row["rank"], row["function"])
            within = row["call_path"].split(" < ")[1] if of in told_apart else None
            key = (*of, within)
            count[key] += row["waits"]
            total[key] += row["wait_ns"]
            partial[key] += row["partial"]
            clipped += row["clipped"]
            assert row["uncertain_ns"] == 0
    assert {key: (count[key], total[key], partial[key] > 0) for key in count} == expected
    assert clipped == case.clipped


def test_all_sums_are_the_same(tmp_path: Path) -> None:
    """However waits are grouped, they add up to the single ones; the note names the most."""
    case = next(case for case in (*CASES, *CASES_OF_COLLECTIVES) if case.name == "program_of_three_ranks")
    with strobe.open(wait_archives.write(case, tmp_path / "archive")) as trace:
        sums = {}
        for by in ("state", "function", "call", "rank", "step", "pair", "all", "wait"):
            of_state = Counter[str]()
            for row in trace.waits(by=by).to_pylist():
                of_state[row["state"]] += row["wait_ns"]
            sums[by] = of_state
        assert all(each == sums["wait"] for each in sums.values())
        others = ("wrong_order", "barrier_completion", "nxn_completion")
        waited = sum(wait.wait_ns for wait in case.waits if wait.state not in others)
        assert trace.waits().note.startswith(f"ranks waited {waited / 1000:.2f} us for one another")


def test_a_run_of_one_rank_has_no_waits(tmp_path: Path) -> None:
    """And says so."""
    case = next(case for case in (*CASES, *CASES_OF_COLLECTIVES) if case.name == "collectives_of_one_rank")
    with strobe.open(wait_archives.write(case, tmp_path / "archive")) as trace:
        table = trace.waits()
        assert len(table) == 0
        assert "nobody is known to have waited" in table.note
