"""The statistics of a gate: against brute force, published examples, and runs recorded on a noisy machine."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.gate.bench import bench
from strobe.gate.change_points import change_points
from strobe.gate.runs import Run, timed_run
from strobe.gate.statistics import discoveries, further_pairs, greater_p, interval, least_pairs, middle, spent
from strobe.gate.verdict import INCONCLUSIVE, OK, REGRESSED, compare

NOISE = Path(__file__).with_name("gate_noise.npz")
PAIRS = 8
METRICS = ("median", "mean")

differences = st.lists(st.integers(-6, 6), min_size=1, max_size=9).map(lambda each: np.array(each, dtype=float))


def brute_force_p(values: np.ndarray) -> float:
    """The share of all patterns of signs whose sum of ranks above 0 is at least that of the values."""
    known = values[values != 0]
    sizes = np.abs(known)
    ranks = np.array([(sizes < size).sum() + ((sizes == size).sum() + 1) / 2 for size in sizes])  # ties share a mean
    sums = [sum(itertools.compress(ranks, signs)) for signs in itertools.product((0, 1), repeat=len(known))]
    return float(np.mean(np.array(sums) >= ranks[known > 0].sum()))


@given(differences)
def test_the_probability_is_that_of_all_patterns_of_signs(values: np.ndarray) -> None:
    assert greater_p(values) == pytest.approx(brute_force_p(values))


@given(st.integers(0, 10_000), st.integers(7, 12), st.sampled_from((0.01, 0.02, 0.05)))
def test_the_interval_holds_the_shifts_that_the_test_does_not_reject(seed: int, count: int, alpha: float) -> None:
    random = np.random.default_rng(seed)  # real numbers without ties
    values, shift = random.normal(size=count), random.normal()
    low, high = interval(values, alpha)
    assert (low > shift) == (greater_p(values - shift) <= alpha)
    assert (high < shift) == (greater_p(shift - values) <= alpha)
    assert low <= middle(values) <= high


def test_an_interval_of_too_few_pairs_is_infinite() -> None:
    assert [least_pairs(alpha) for alpha in (0.05, 0.01, 0.005)] == [5, 7, 8]
    values = np.arange(1.0, 7.0)
    assert interval(values, 0.01) == (-math.inf, math.inf)
    assert interval(np.append(values, 7.0), 0.01) == (1.0, 7.0)


def test_further_pairs_follow_the_root_of_their_number() -> None:
    values = np.array([0.0, 0.04] * 5)  # wide, around 2 %
    low, high = interval(values, 0.01)
    more = further_pairs(values, 0.01, 0.01)
    assert (high - low) / 2 * math.sqrt(10 / (10 + more)) == pytest.approx(0.01, rel=0.05)
    assert further_pairs(values[:3], 0.01, 0.01) == 4, "seven pairs at least"


def test_a_list_of_tests_is_believed_as_in_the_paper_of_benjamini_and_hochberg() -> None:
    # Section 4.1: thrombolysis, 15 hypotheses, of which the first four are rejected at 0.05.
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528]
    assert discoveries(np.array([*p, 0.7590, 1.0]), 0.05).tolist() == [True] * 4 + [False] * 11
    assert discoveries(np.array([]), 0.05).tolist() == []


def test_alpha_is_spent_as_lan_and_demets_have_it() -> None:
    # 0.05 at five looks: the cumulative column of Pocock's type.
    assert [round(spent(0.05, part), 4) for part in (0.2, 0.4, 0.6, 0.8, 1, 2)] == [
        *(0.0148, 0.0262, 0.0354, 0.0432, 0.05),
        0.05,
    ]


# Runs of programs


def timed(times_ns: np.ndarray, started: int) -> Run:
    return timed_run(f"run {started}", started, {}, times_ns)


def abba(runs: np.ndarray, slower: float = 0.0) -> str:
    """The verdict of runs that followed each other, a row each, as A B B A ...; B is made slower."""
    sides: tuple[list[Run], list[Run]] = ([], [])
    for number, times_ns in enumerate(runs, 1):
        side = int(number % 4 in (2, 3))
        sides[side].append(timed(times_ns * (1 + slower * side), number))
    return compare(*sides, metrics=METRICS, threshold=0.01).verdict


def noise() -> np.ndarray:
    """Step times in ns of programs that did not change, recorded while others used the two cores of their machine.

    An array (comparisons, runs of 2 * PAIRS that followed each other, steps). The file has logarithms, in steps of
    0.1 %.
    """
    with np.load(NOISE) as file:
        return np.exp(file["log_ms"].astype(float) / 1000) * 1e6


def test_runs_of_one_program_on_a_noisy_machine_are_no_regression_in_99_of_100_comparisons() -> None:
    comparisons = noise()
    assert len(comparisons) >= 300
    verdicts = [abba(each) for each in comparisons]
    assert verdicts.count(REGRESSED) <= len(verdicts) / 100


def test_five_percent_are_found_in_9_of_10_comparisons_where_pairs_differ_by_two_percent() -> None:
    # The noise as it was recorded hides 5 % (its pairs differ by 25 %), so it is made smaller.
    recorded = noise().reshape(-1, 20)
    runs = recorded[: len(recorded) // 20 * 20].reshape(-1, 20, 20)
    location = np.log(np.median(runs, axis=2))
    quiet = 0.02 / np.std(location[:, ::2] - location[:, 1::2])
    centre = np.exp(location.mean())
    verdicts = [abba(centre * (each / centre) ** quiet, slower=0.05) for each in runs]
    assert verdicts.count(REGRESSED) >= 0.9 * len(verdicts)


def test_runs_that_follow_each_other_may_be_alike_and_have_heavy_tails() -> None:
    random = np.random.default_rng(7)
    tails = random.standard_t(3, size=(1000, 60)) / 10
    for at in range(1, 60):
        tails[:, at] += 0.6 * tails[:, at - 1]
    verdicts = [abba(np.exp(each[40:, None]) * 1e6) for each in tails]
    assert verdicts.count(REGRESSED) < 10


def test_one_doubled_step_in_ten_is_seen_by_the_mean_and_not_by_the_median() -> None:
    random = np.random.default_rng(1)
    before, now = (np.exp(random.normal(0, 0.01, size=(10, 100))) * 1e6 for _ in range(2))
    now[:, ::10] *= 2
    sides = [[timed(each, 2 * at + side) for at, each in enumerate(runs)] for side, runs in enumerate((before, now))]
    found = {row.measure: row.verdict for row in compare(*sides, metrics=METRICS, threshold=0.01).rows}
    assert found == {"median step time": OK, "mean step time": REGRESSED}


@pytest.mark.parametrize(("slower", "verdict"), [(0.2, REGRESSED), (0.0, OK), (0.01, INCONCLUSIVE)])
def test_a_bench_stops_when_it_is_sure_or_has_used_its_budget(slower: float, verdict: str) -> None:
    random = np.random.default_rng(3)
    order: list[bool] = []

    def measure(now: bool) -> Run:
        order.append(now)
        return timed(np.array([1e6 * (1 + slower * now) * math.exp(random.normal(0, 0.002))]), len(order))

    found = bench(measure, lambda: len(order) / 100, metrics=METRICS, threshold=0.01)
    assert found.verdict == verdict
    assert order[:8] == [False, True, True, False] * 2
    assert (len(order) < 40) == (verdict != INCONCLUSIVE), "sure after some pairs, or else at the end of the budget"
    assert len(order) <= 100


def test_looking_several_times_does_not_raise_false_alarms() -> None:
    random = np.random.default_rng(4)
    alarms = 0
    runs = itertools.count()

    def measure(now: bool) -> Run:
        return timed(np.array([1e6 * math.exp(random.normal(0, 0.3))]), next(runs))

    for _ in range(60):
        parts = iter(np.arange(1, 31) / 30)
        alarms += bench(measure, lambda parts=parts: next(parts), metrics=METRICS, threshold=0.0).verdict == REGRESSED
    assert alarms <= 2


# Histories

# Flow of the Nile at Aswan, 1871 to 1970 (Cobb, Biometrika 65 (1978) 243): less from 1899 on, after 28 values.
NILE = """
 1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100
1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824
702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010
771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797 923 975 815 1020 906
901 1170 912 746 919 718 714 740
"""


def test_the_dam_of_the_nile_is_found() -> None:
    assert change_points(np.array(NILE.split(), dtype=float)) == [28]


def test_a_change_needs_three_points_on_both_sides() -> None:
    level = np.array([10.0, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10.03, 9.97, 10.01])
    later = np.concatenate((level, level[:2] * 2))
    assert change_points(later) == []
    assert change_points(np.concatenate((level, level * 2))) == [10]
    assert change_points(level[:5]) == []


@pytest.mark.parametrize(("histories", "correlation"), [(100, 0.0), (300, 0.6)])
def test_histories_without_a_change_have_none(histories: int, correlation: float) -> None:
    random = np.random.default_rng(11)
    tails = random.standard_t(3, size=(histories, 90))
    for at in range(1, 90):
        tails[:, at] += correlation * tails[:, at - 1]
    assert sum(bool(change_points(each[50:])) for each in tails) < histories / 100
