"""One question, one answer: how long a step is, what it waits for and what limits it, whoever is asked.

Of every golden and public trace that has steps: verbs, the summary, and what the server sends to the page.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import strobe
from strobe.model.units import format_share
from strobe.present.summary import Summary, summarise
from strobe.trace.trace import Trace
from tests.deep.test_requests import served
from tests.golden import answers

PUBLIC = (
    "kineto/resnet50_loader_workers0.json.gz",
    "kineto/resnet50_loader_workers4.json.gz",
    "kineto/two_ranks",
    "kineto/nccl_data.json.gz",
    "nsys/perlmutter-cloverleaf-cuda.sqlite",
)
# How much the last digit of a mean over kept steps may differ from that of all, ns.
ROUNDED = 20


@pytest.fixture(scope="module", params=[*answers.names(), *PUBLIC])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Summary]:
    if request.param in PUBLIC:
        public: Callable[[str], Trace] = request.getfixturevalue("public")
        trace = public(request.param)
    else:
        folder: Path = tmp_path_factory.mktemp("golden")
        with tarfile.open(answers.TRACES / f"{request.param}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        trace = strobe.open(folder / f"{request.param}.strobe")
    return trace, summarise(trace)


def rows(trace: Trace, question: str, **options: str) -> list[dict]:
    return trace.ask(question, **options).to_pylist()


def test_a_step_is_as_long_for_everybody(found: tuple[Trace, Summary]) -> None:
    trace, summary = found
    steps = rows(trace, "steps")
    # The plugin for TensorBoard, whose steps `step-time` has, lets a step last until the GPU is done with it.
    as_plugin = rows(trace, "overlap") or "marks" in trace.ask("step_time").about
    exact = ("step_trace",) if as_plugin else ("step_time", "step_trace")
    for process in {row["process"] for row in steps}:
        own = [row for row in steps if row["process"] == process]
        steady = [row["duration_ns"] for row in own if row["steady"]]
        if not steady:
            continue
        mean = pytest.approx(sum(steady) / len(steady), abs=ROUNDED)
        for question in ("breakdown", *exact, "data_pipeline"):
            of_process = [row for row in rows(trace, question) if row["process"] == process]
            told = [row for row in of_process if row.get("part", "step") == "step"]
            assert told or question == "data_pipeline", question
            assert all(row["duration_ns"] == mean for row in told), question
            assert all(row.get("steps", len(steady)) == len(steady) for row in told), question
        of_each = {row["step"]: row["duration_ns"] for row in own}
        for question in exact:
            for row in rows(trace, question, by="step"):
                if row["process"] == process:
                    assert row["duration_ns"] == of_each[row["step"]], question
    if summary.step is None:
        return
    main = [row for row in steps if row["process"] == steps[0]["process"] and row["steady"]]
    if len({row["loop"] for row in main}) == 1:
        assert summary.step.mean_ns == pytest.approx(sum(row["duration_ns"] for row in main) / len(main), abs=ROUNDED)
    usual = [row for row in main if row["class"] == summary.step.class_name and not row["outlier"]]
    for row in rows(trace, "what_if"):
        assert row["recorded_ns"] == pytest.approx(sum(each["duration_ns"] for each in usual) / len(usual), abs=ROUNDED)


def test_the_page_has_the_step_of_the_verbs(found: tuple[Trace, Summary]) -> None:
    trace, summary = found
    page = served(trace)
    shown = page.get("summary").json()
    assert (shown["step"] or {}).get("mean_ns") == (summary.step.mean_ns if summary.step else None)
    assert (shown["step"] or {}).get("median_ns") == (summary.step.median_ns if summary.step else None)
    assert shown["verdict"]["text"] == summary.verdict.text
    assert shown["classes"] == [vars(each) for each in summary.classes]


def test_nobody_disputes_that_the_loop_waits_for_data(found: tuple[Trace, Summary]) -> None:
    trace, summary = found
    first = next((row["process"] for row in rows(trace, "steps")), None)
    advised = [each for each in summary.findings if each.rule == "data.wait"]
    for row in rows(trace, "data_pipeline"):
        if row["process"] != first:
            continue
        waits = row["wait_share"] >= 0.05
        assert waits == ("next batch" in summary.verdict.text)
        if waits:
            (share,) = re.findall(r"(\d+(?:\.\d+)? %)[^;]*next batch", summary.verdict.text)[:1]
            assert share == format_share(row["wait_share"])
        assert waits or row["verdict"] != "data processing"
        assert summary.verdict.kind != "input-bound" or row["input_bound"] == "highly"
        assert not advised or waits
        for each in advised:
            assert format_share(row["wait_share"]) in each.what
            assert bool(each.do) == bool(row["predicted_gain"]) == ("worker" in each.do and "worker" in row["advice"])
            assert each.gain_high_ns <= row["wait_ns"] + ROUNDED
        assert advised or not row["predicted_gain"]


def test_nothing_gains_more_than_a_step(found: tuple[Trace, Summary]) -> None:
    _, summary = found
    for each in summary.findings:
        assert 0 <= each.gain_low_ns <= each.gain_high_ns
        assert summary.step is None or each.gain_high_ns <= summary.step.mean_ns


def test_what_was_recorded_is_not_advised_again(found: tuple[Trace, Summary]) -> None:
    trace, summary = found
    counted = {row["function"] for row in rows(trace, "lines")}
    for each in summary.findings:
        if each.rule == "python" and "by line: " in each.do:
            function = each.what.split(" itself ")[0]
            assert ("strobe lines --function" in each.do) == (function in counted), each.do


def test_gpus_and_ranks_are_what_the_verdict_calls_them(found: tuple[Trace, Summary]) -> None:
    trace, summary = found
    text = summary.verdict.text
    if summary.gpus and (told := re.search(r"(?:GPU is|GPUs are) idle (\d+(?:\.\d+)? %)", text)):
        assert told[1] == format_share(sum(each.idle for each in summary.gpus) / len(summary.gpus))
    if told := re.search(r"rank (\d+) works", text):
        late = max(rows(trace, "stragglers"), key=lambda row: row["delay_ns"], default=None)
        assert late is None or late["delay_ns"] <= 0 or late["rank"] == int(told[1])
    if told := re.search(r"ranks wait (\d+(?:\.\d+)? %) of their steps", text):
        assert summary.ranks is not None
        assert "wait" not in summary.ranks.text or told[1] in summary.ranks.text
