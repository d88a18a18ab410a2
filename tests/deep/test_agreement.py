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
from strobe.model.kinds import RANK_PARADIGMS
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


def test_communication_has_one_share(found: tuple[Trace, Summary]) -> None:
    """Of the main thread of each rank in its steady steps: verbs, the page's heat map and steps, the verdict."""
    trace, summary = found
    page, steps = served(trace), rows(trace, "steps")
    divided = [row for row in rows(trace, "breakdown") if row["part"] == "step"]
    if not divided or any(row["communication_ns"] is None for row in divided):
        return
    by_step = [row for row in rows(trace, "breakdown", by="step") if row["part"] == "step"]
    steady = {(row["process"], row["step"]) for row in steps if row["steady"]}
    for row in divided:
        own = [each["communication_ns"] for each in by_step if each["process"] == row["process"]
               and (each["process"], each["step"]) in steady]  # fmt: skip
        assert row["communication_ns"] == pytest.approx(sum(own) / len(own), abs=ROUNDED)
    regions = trace.regions.to_pylist()
    of_ranks = {each["name"] for each in regions if each["paradigm"] in RANK_PARADIGMS}
    if of_ranks and not rows(trace, "overlap"):
        # All of MPI is communication, whoever sums it up: a wait in MPI_Waitall, a barrier, MPI_Init.
        assert {each["group"] for each in regions if each["paradigm"] in RANK_PARADIGMS} == {"communication"}
        told = {row["process"]: row["communication_ns"] for row in rows(trace, "step_time")}
        assert told == {row["process"]: pytest.approx(row["communication_ns"], abs=ROUNDED) for row in divided}
    for process in {row["process"] for row in divided}:
        sent = page.table(f"steps?process={process}").to_pylist()
        kinds = {name for name in sent[0] if name.startswith("rest_") and name != "rest_ns"}
        if any(row["forward_ns"] + row["backward_ns"] + row["optimizer_ns"] + row["validation_ns"] for row in sent):
            assert not any(row[kind] for row in sent for kind in kinds)
            continue
        assert all(sum(row[kind] for kind in kinds) == row["rest_ns"] for row in sent)
        of_rest = {(row["process"], row["step"]): row["communication_ns"]
                   for row in rows(trace, "breakdown", by="step") if row["part"] == "rest"}  # fmt: skip
        assert all(row["rest_communication_ns"] == of_rest.get((process, row["step"]), 0) for row in sent)
    if told := re.search(r"in calls that communicate (\d+(?:\.\d+)? %)", summary.verdict.text):
        whole = sum(row["duration_ns"] * row["steps"] for row in divided)
        assert told[1] == format_share(sum(row["communication_ns"] * row["steps"] for row in divided) / whole)


def test_waits_for_other_ranks_have_one_share(found: tuple[Trace, Summary]) -> None:
    """Of all ranks in their steady steps: `waits`, `efficiency`, `breakdown`, the verdict, the advice."""
    trace, summary = found
    told = {
        "waits": re.findall(r"(\d+(?:\.\d+)? %) of their steady steps", trace.ask("waits").note),
        "verdict": re.findall(r"ranks wait (\d+(?:\.\d+)? %) of their steps", summary.verdict.text),
        "ranks": re.findall(r"wait (\d+(?:\.\d+)? %) of their steps", summary.ranks.text if summary.ranks else ""),
        "advice": [share for each in summary.findings if each.rule == "rank.waits"
                   for share in re.findall(r"of a step for one another, (\d+(?:\.\d+)? %) of it", each.what)],
    }  # fmt: skip
    assert len({share for shares in told.values() for share in shares}) <= 1, told
    assert told["waits"] or not (told["advice"] or told["verdict"]), told
    beside = [re.findall(r"(\d+(?:\.\d+)? %) of their steps on other threads", trace.ask(question).note)
              for question in ("efficiency", "breakdown", "step_time")]  # fmt: skip
    assert beside[0] == beside[1] == beside[2]


def test_shares_of_ranks_are_of_ranks(found: tuple[Trace, Summary]) -> None:
    """What starts ranks is none of them: not in clusters, not in the mean over main threads."""
    trace, _ = found
    processes, page = trace.processes.to_pylist(), served(trace)
    ranks = [each["process"] for each in processes if each["rank"] is not None] or range(len(processes))
    start_ns, end_ns = page.get("meta").json()["start_ns"], page.get("meta").json()["end_ns"]
    window = f"start_ns={start_ns}&end_ns={end_ns}"
    bars = page.get(f"window/bars?{window}&of=ranks").json()
    assert {each["process"] for each in bars["bars"]} <= set(ranks)
    assert page.get(f"window/wall?{window}").json()["main_threads"] <= len(ranks)
