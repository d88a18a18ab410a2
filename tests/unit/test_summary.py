"""The summary: what it says, and that it fits everywhere."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import strobe
from strobe.model.plugins import Finding
from strobe.present.summary import LARGEST_JSON_BYTES, summarise, written_summary
from strobe.present.summary_text import summary_text
from strobe.trace.archive import Job
from tests.unit.hand_made import MS, ZERO_NS, HandMadeProcess, make_trace, span, train_steps

STALLS = dict.fromkeys(range(11, 75, 20), 80 * MS)
EXTRAS = dict.fromkeys(range(24, 75, 25), ("validate", 30 * MS))


def training(**options):
    return make_trace({"main": train_steps(75, stalls=STALLS, extras=EXTRAS, **options)})


def test_the_parts_add_up_to_the_mean_step():
    step = summarise(training()).step
    assert step is not None
    assert step.median_ns == pytest.approx(12 * MS, rel=0.01)
    assert sum(part.duration_ns for part in step.parts) == pytest.approx(step.mean_ns, abs=5)
    assert {part.name: round(part.duration_ns / MS) for part in step.parts} == {
        "data_wait": 5,  # 1 and, of 75 steps, four stalls
        "forward": 4,
        "backward": 5,
        "optimizer": 1,
        "rest": 2,  # 1 and what some steps do beside it
    }
    assert (step.count, step.class_name, step.outlier_count) == (75, "train", 4)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"wait_ns": 9 * MS}, "input-bound", "waits for its next batch 52 % of the loop's time"),
        ({"python_ns": 20 * MS}, "host-bound", "% of the loop's time is spent outside of operators"),
        ({}, "compute-bound", "operators take"),
    ],
)
def test_the_verdict_names_the_main_problem(options, kind, words):
    verdict = summarise(training(**options)).verdict
    assert verdict.kind == kind
    assert words in verdict.text


def test_a_program_without_a_loop_gets_its_busiest_function():
    verdict = summarise(make_trace({"main": [span("main", 0, 100, span("work", 10, 90))]})).verdict
    assert verdict.kind == "no-steps"
    assert "80 % of the recorded time is in work" in verdict.text


def test_an_empty_trace_says_so():
    summary = summarise(make_trace({"main": []}))
    assert summary.verdict.kind == "empty"
    assert "bytes per span" not in summary_text(summary)
    assert "bytes per span" in summary_text(summarise(make_trace({"main": train_steps(30)})))


def test_losses_and_kills_are_in_the_quality_line():
    process = HandMadeProcess(
        {"main": train_steps(30)},
        end_state="lost",
        exit_code=None,
        quality={"records_lost": 1200, "own_cpu_ns": 3 * MS},
    )
    summary = summarise(make_trace(process, job=Job(zero_ns=ZERO_NS, ended={"signal": 9})))
    assert not summary.quality.complete
    text = summary_text(summary)
    assert "killed by signal 9 (SIGKILL); complete up to" in text
    assert "1 200 records lost" in text
    assert summary.quality.estimated_cost == pytest.approx(3 / 360, rel=0.01)


@pytest.mark.parametrize("width", [60, 80, 100, 300])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_text_fits_a_terminal(width, unicode):
    long = "a very long sentence that goes on " * 5
    summary = summarise(training(wait_ns=9 * MS))
    many = tuple(Finding(f"rule{i}", long, long, long, gain_high_ns=10**9) for i in range(40))
    losses = replace(summary, findings=(), quality=replace(summary.quality, losses=(long,) * 40))
    assert len(summary_text(losses, unicode=unicode, width=width).splitlines()) > 40  # nothing else can go
    for shown in (summary, replace(summary, findings=many, program=long), replace(summary, findings=())):
        lines = summary_text(shown, unicode=unicode, width=width).splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines)) <= min(width, 100)


def test_a_profile_of_samples_tells_no_times_and_looks_for_no_loop(tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    path.write_text("main;solve;dot 1042\nmain;solve 8\nmain;read 50\n")
    summary = summarise(strobe.open(path))
    text = summary_text(summary)
    assert "loop" not in text
    assert "95 % of all samples are in dot itself" in " ".join(text.split())
    assert summary.hot_unit == "samples"
    (row,) = [line for line in text.splitlines() if line.startswith("  dot")]
    assert row.split() == ["dot", "1", "042", "95", "%", "1", "042"]
    assert " ns" not in text.partition("Quality")[0]


def test_without_unicode_there_is_only_ascii():
    text = summary_text(replace(summarise(training()), name="größe"), unicode=False)
    assert text.isascii()
    assert "####" in text


def test_the_text_and_the_json_say_the_same():
    summary = summarise(training(wait_ns=9 * MS))
    body, text = json.loads(summary.to_json()), summary_text(summary)
    assert body["schema_version"] == 1
    assert body["verdict"]["text"] in " ".join(text.split())
    assert len(body["findings"]) == len(summary.findings) > 0
    assert body["step"]["parts"][0]["name"] == "data_wait"
    assert body["quality"]["span_count"] == summary.quality.span_count


def test_the_json_stays_below_its_limit_whatever_is_found():
    evidence = tuple({"location": 0, "start_ns": i, "duration_ns": 1, "text": "x" * 100} for i in range(50))
    many = tuple(Finding("rule", "what" * 50, evidence=evidence) for _ in range(500))
    text = replace(summarise(training()), findings=many).to_json()
    assert len(text) <= LARGEST_JSON_BYTES
    assert json.loads(text)["findings"]


def test_imports_have_a_summary_until_their_data_change(tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    path.write_text("main;solve;dot 1042\nmain;read 50\n")
    assert import_module("strobe.cli.verbs.import").run([str(path), "-o", str(tmp_path / "job")]) == 0
    folder = tmp_path / "job.strobe"
    assert written_summary(folder) == summarise(strobe.open(folder)).to_json()
    (blocks,) = folder.glob("*.blocks")
    os.utime(blocks, (2**33, 2**33))
    assert written_summary(folder) == ""
