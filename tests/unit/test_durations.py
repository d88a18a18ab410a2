"""Durations: one reader, so that every option takes every unit."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from strobe import registry
from strobe.cli.options import Parser, add_option, add_part
from strobe.cli.verbs import generate, sql
from strobe.errors import UsageError
from strobe.model.durations import UNITS_NS, duration_ns
from strobe.model.option import Option
from strobe.model.plugins import Analysis
from strobe.record.options.all_options import OPTIONS
from strobe.record.options.recorder_options import Moment
from strobe.server.spans.span_search import parse_query

EXAMPLES = {
    "500ns": 500,
    "10us": 10_000,
    "1.5ms": 1_500_000,
    "3s": 3_000_000_000,
    "1min": 60_000_000_000,
    "2h": 7_200_000_000_000,
}


def of_analyses() -> dict[str, Option]:
    """Every option of an analysis that is a duration."""
    found = {}
    for name in registry.names("analyses"):
        analysis = registry.load("analyses", name)
        assert isinstance(analysis, Analysis)
        found |= {f"{name} {each.name}": each for each in analysis.options if each.kind == "duration"}
    return found


def in_ns(option: Option, text: str) -> float:
    """The value of an option of the recorder or an analysis, in nanoseconds."""
    value = option.read(text)
    if isinstance(value, Moment):
        return value.number
    if isinstance(value, tuple):
        return value[1]
    assert isinstance(value, int | float)
    return value * UNITS_NS[option.unit] if option.unit else value


DURATIONS = {
    **{f"run {name}": OPTIONS[name] for name in ("min-duration", "for", "start", "stop")},
    **of_analyses(),
    **{f"verb {each.name}": each for each in generate._OPTIONS if each.kind == "duration"},
    "verb timeout_s": sql.TIMEOUT,
}


def test_there_are_durations_of_every_kind() -> None:
    assert {"run for", "idle kernel_gap_ns", "launches late_us", "verb stall_ms", "verb timeout_s"} <= set(DURATIONS)


@pytest.mark.parametrize(("text", "ns"), EXAMPLES.items())
@pytest.mark.parametrize("name", DURATIONS)
def test_every_option_takes_every_unit(name: str, text: str, ns: int) -> None:
    assert in_ns(DURATIONS[name], text) == ns


@pytest.mark.parametrize("text", ["60s", "1min", "60000ms"])
def test_periods_and_throttles_take_every_unit(text: str) -> None:
    assert OPTIONS["gpu-metrics"].read(text) == 60 * 10**9
    assert OPTIONS["throttle"].read(f"10:{text}") == (10, 60 * 10**9)


@pytest.mark.parametrize(("text", "ns"), EXAMPLES.items())
def test_searches_and_parts_of_a_trace_take_every_unit(text: str, ns: int) -> None:
    assert parse_query(f"dur:>{text}").shortest_ns == ns
    assert parse_query(f"dur:<={text}").longest_ns == ns
    parser = argparse.ArgumentParser()
    add_part(parser)
    assert parser.parse_args(["--time", f"0s-{text}"]).time == (0, ns)
    assert parser.parse_args(["--time", f"0-{text}"]).time == (0, ns)


def test_numbers_without_a_unit_have_the_unit_of_the_option() -> None:
    assert OPTIONS["for"].read("2") == 2_000_000_000
    parser = Parser()
    add_option(parser, Option("late_us", "Late.", int, 100, unit="us"))
    for words, value in (([], 100), (["--late", "1ms"], 1000), (["--late", "70"], 70), (["--late-us", "70"], 70)):
        assert parser.parse_args(words).late_us == value
    add_part(parser)
    assert parser.parse_args(["--time", "10-20ms"]).time == (10_000_000, 20_000_000)
    assert parser.parse_args(["--time", "1.5-2"]).time == (1_500_000_000, 2_000_000_000)


def test_whole_numbers_are_exact_however_large() -> None:
    assert duration_ns("4611686018427387903ns") == 4611686018427387903
    assert duration_ns("7µs") == 7000


@pytest.mark.parametrize("read", [duration_ns, OPTIONS["min-duration"].read], ids=["model", "option"])
@pytest.mark.parametrize("text", ["x", "10", "5 hours", "-1us", "us", "nan", "nans", "1d", "1e99s", "1m s"])
def test_what_is_not_a_duration_is_refused_with_an_example(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not a duration. Use a number and a unit: 500ns, 10us, 1.5ms"):
        read(text)


def test_a_wrong_bound_of_a_search_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="'dur:>fast' is not a bound on the duration"):
        parse_query("dur:>fast")
