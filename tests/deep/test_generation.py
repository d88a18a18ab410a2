"""`strobe serving` on loops that generate tokens without marks, written by hand: every figure is computed on paper."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import strobe
from strobe.present.summary import summarise
from strobe.present.summary_text import summary_text
from tests.deep.kineto import Event, event, operator, profile

PROMPTS, ANSWERS = (40, 60, 50), (5, 6, 4)
SETUP, PREFILL, DECODE, TAIL, PAUSE = 20, 300, 50, 10, 30


def token(at: float, took: float, sequences: int | None, length: int, carry: str, choice: str) -> list[Event]:
    """An iteration: it looks tokens up, computes all but 10 us, carries on and chooses. sequences None: no shapes."""
    shapes: dict[str, object] = {} if sequences is None else {"Input_Dims": [[1000, 64], [sequences, length]]}
    return [
        operator("aten::embedding", at, 1, **shapes),
        operator("aten::addmm", at + 2, took - 10),
        operator(carry, at + took - 7, 1),
        operator(choice, at + took - 5, 2),
    ]


def request(
    at: float,
    lengths: Sequence[int],
    times: Sequence[float],
    *,
    function: str = "answer",
    sequences: int | None = 1,
    carry: str = "aten::cat",
    choice: str = "aten::argmax",
) -> tuple[list[Event], float]:
    """Events of a request whose iterations have so many tokens and take so long, and when it ends."""
    events, now = [], at + SETUP
    for length, took in zip(lengths, times, strict=True):
        events += token(now, took, sequences, length, carry, choice)
        now += took
    now += TAIL
    if function:
        events.append(event("python_function", f"serve.py(10): {function}", at, now - at, 100, 1))
    return events, now


def requests(function: str = "answer", sequences: int | None = 1) -> Iterator[Event]:
    now = 100.0
    for prompt, answer in zip(PROMPTS, ANSWERS, strict=True):
        lengths, times = [prompt] + [1] * (answer - 1), [PREFILL] + [DECODE] * (answer - 1)
        events, now = request(now, lengths, times, function=function, sequences=sequences)
        yield from events
        now += PAUSE


def test_classes_and_tokens_are_those_of_the_shapes(tmp_path: Path) -> None:
    prefill, decode = profile(tmp_path, *requests(sequences=2)).ask("serving").to_pylist()
    assert (prefill["class"], prefill["steps"], decode["class"], decode["steps"]) == ("prefill", 3, "decode", 12)
    assert (prefill["requests"], prefill["tokens"], prefill["prefill_tokens"]) == (2, 100, 100)
    assert (decode["requests"], decode["tokens"], decode["prefill_tokens"]) == (2, 2, 0)
    assert prefill["duration_ns"] == (SETUP + PREFILL) * 1000
    assert decode["duration_ns"] == round((12 * DECODE + 3 * TAIL) / 12 * 1000)
    assert prefill["tokens_per_second"] == pytest.approx(300 / (3 * (SETUP + PREFILL) * 1e-6))


@pytest.mark.parametrize("sequences", [1, None])
def test_latency_counts_from_the_call_with_and_without_shapes(tmp_path: Path, sequences: int | None) -> None:
    table = profile(tmp_path, *requests(sequences=sequences)).ask("serving", by="latency")
    (row,) = table.to_pylist()
    assert (row["function"], row["requests"], row["output_tokens"]) == ("answer", 3, 5)
    first = (SETUP + PREFILL) * 1000
    names = ("time_to_first_token_ns", "median_time_to_first_token_ns", "p95_time_to_first_token_ns")
    assert [row[name] for name in names] == [first, first, first]
    each = sorted((DECODE * (count - 1) + TAIL) / (count - 1) * 1000 for count in ANSWERS)  # 52 000, 52 500, 53 333
    assert row["time_per_output_token_ns"] == round(sum(each) / 3)
    assert row["median_time_per_output_token_ns"] == round(each[1])
    assert row["p95_time_per_output_token_ns"] == round(each[1] + 0.9 * (each[2] - each[1]))
    whole_us = sum(SETUP + PREFILL + DECODE * (count - 1) + TAIL for count in ANSWERS)
    assert row["tokens_per_second"] == pytest.approx(15 / (whole_us * 1e-6))


def test_without_shapes_no_tokens_are_counted(tmp_path: Path) -> None:
    for row in profile(tmp_path, *requests(sequences=None)).ask("serving").to_pylist():
        assert (row["requests"], row["tokens"], row["tokens_per_second"]) == (None, None, None)
        assert row["duration_ns"] > 0


def test_without_functions_a_request_begins_with_its_prompt(tmp_path: Path) -> None:
    (row,) = profile(tmp_path, *requests(function="")).ask("serving", by="latency").to_pylist()
    assert (row["function"], row["requests"], row["output_tokens"]) == (None, 3, 5)
    assert row["time_to_first_token_ns"] == PREFILL * 1000


def test_without_functions_and_shapes_nothing_is_sure(tmp_path: Path) -> None:
    assert not len(profile(tmp_path, *requests(function="", sequences=None)).ask("serving"))


def test_without_a_cache_each_token_computes_the_text_again(tmp_path: Path) -> None:
    events, now = list[Event](), 0.0
    for prompt in PROMPTS:
        lengths = range(prompt, prompt + 6)
        some, now = request(now, lengths, [100 + length for length in lengths])
        events += some
    trace = profile(tmp_path, *events)
    (row,) = trace.ask("serving", by="latency").to_pylist()
    assert (row["requests"], row["output_tokens"]) == (3, 6)
    assert row["time_to_first_token_ns"] == (SETUP + 100 + 50) * 1000
    _, decode = trace.ask("serving").to_pylist()
    assert decode["tokens"] == 53  # 50, and one to five more


def test_each_iteration_has_its_own_row(tmp_path: Path) -> None:
    rows = profile(tmp_path, *requests()).ask("serving", by="step").to_pylist()
    assert [row["step"] for row in rows] == list(range(15))
    assert [row["tokens"] for row in rows[:6]] == [40, 1, 1, 1, 1, 60]
    assert [row["class"] for row in rows[:6]] == ["prefill", *["decode"] * 4, "prefill"]
    assert rows[1]["start_ns"] - rows[0]["start_ns"] == rows[0]["duration_ns"] == (SETUP + PREFILL) * 1000


def test_the_summary_has_the_latency(tmp_path: Path) -> None:
    trace = profile(tmp_path, *requests())
    summary = summarise(trace)
    assert [row.requests for row in summary.latency] == [3]
    lines = summary_text(summary).splitlines()
    assert any(line.startswith("Mean iteration") for line in lines)
    assert "Time to first token: 320.0 us (mean; median 320.0 us, p95 320.0 us); 3 requests" in lines
    assert "iterations" in trace.ask("serving").about
    assert "an engine" in trace.ask("serving", by="gap").note


ONE_TOKEN, PAGES = ([64, 1, 1, 1], [300, 50, 50, 50]), ([90, 40, 30, 50], [300, 110, 40, 120])


def four_requests(
    folder: Path,
    shapes: bool,
    what: tuple[list[int], list[int]] = ONE_TOKEN,
    *,
    lookup: str = "aten::embedding",
    carry: str = "aten::cat",
    choice: str = "aten::argmax",
    behind: str = "aten::view",
) -> strobe.Trace:
    events, now = list[Event](), 0.0
    for _ in range(4):
        some, now = request(now, *what, sequences=1 if shapes else None, carry=carry, choice=choice)
        events += [each | {"name": lookup} if each["name"] == "aten::embedding" else each for each in some]
        events.append(operator(behind, now, 20))
        now += 40
    return profile(folder, *events)


@pytest.mark.parametrize("shapes", [True, False])
def test_other_loops_are_not_serving(tmp_path: Path, shapes: bool) -> None:
    assert len(four_requests(tmp_path, shapes).ask("serving")) == 2
    others = {
        "a training": four_requests(tmp_path, shapes, behind="autograd::engine::evaluate_function: AddmmBackward0"),
        "micro-batches look nothing up": four_requests(tmp_path, shapes, lookup="aten::relu"),
        "denoising chooses nothing": four_requests(tmp_path, shapes, choice="aten::randn_like"),
        "a classification carries nothing on": four_requests(tmp_path, shapes, PAGES, carry="aten::view"),
        "pages differ": four_requests(tmp_path, shapes, PAGES),
        "the first iteration is like the others": four_requests(tmp_path, shapes, ([1] * 4, [50] * 4)),
    }
    for what, trace in others.items():
        table = trace.ask("serving")
        assert not len(table), what
        assert "no marks of a serving engine" in table.note
        assert summarise(trace).engine == ()
