"""Whoever is asked gives the same figure: the JSON of the verbs, about traces of many kinds."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strobe.cli.main import main
from tests.golden import answers

KINDS = ("communication_ns", "gpu_wait_ns", "gpu_call_ns", "operators_ns", "data_wait_ns", "host_ns")
ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec", "other")
Ask = Callable[..., dict]


@pytest.fixture(scope="module", params=answers.names())
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(answers.TRACES / f"{request.param}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / f"{request.param}.strobe"


@pytest.fixture
def ask(path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def answer(verb: str, *words: str) -> dict:
        assert main([verb, str(path), *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return answer


def rows(answer: dict) -> list[dict]:
    return answer["rows"]


def test_how_many_steps_there_are(ask: Ask) -> None:
    steps, loops, summary = rows(ask("steps")), rows(ask("loops")), ask("summary")
    count = Counter(row["process"] for row in steps)
    assert sum(row["steps"] for row in loops) == len(steps)
    if not steps:
        assert summary["step"] is None
        return
    first = steps[0]["process"]
    assert summary["step"]["count"] == count[first]
    assert summary["step"]["kept_count"] == sum(row["detail"] == "all" for row in steps if row["process"] == first)
    assert sum(each["count"] for each in summary["classes"]) == count[first]
    structure = ask("structure", "--process", str(first))
    marked = [level["count"] for level in structure["levels"] if level["is_step"]]
    assert all(abs(number - count[first]) <= 1 for number in marked) or len(loops) > len(count)


def test_how_long_a_step_takes_and_what_it_is_made_of(ask: Ask) -> None:
    steps, summary = rows(ask("steps")), ask("summary")
    breakdown, times, traces = (rows(ask(verb)) for verb in ("breakdown", "step-time", "step-trace"))
    # The plugin for TensorBoard, whose steps `step-time` has, lets a step last until the GPU is done with it.
    same = traces if rows(ask("overlap")) else (*times, *traces)
    for process in {row["process"] for row in steps}:
        steady = [row for row in steps if row["process"] == process and row["steady"]]
        parts = {row["part"]: row for row in breakdown if row["process"] == process}
        if not steady:
            assert not parts
            continue
        whole = parts.pop("step")
        assert whole["steps"] == len(steady)
        assert whole["duration_ns"] == pytest.approx(sum(row["duration_ns"] for row in steady) / len(steady), abs=20)
        assert sum(row["duration_ns"] for row in parts.values()) == whole["duration_ns"]
        assert sum(row["share"] for row in parts.values()) == pytest.approx(1)
        for row in (*parts.values(), whole):
            assert row["host_ns"] is None or sum(row[kind] for kind in KINDS) == row["duration_ns"]
        for part, row in parts.items():
            mean = sum(each[f"{part}_ns"] for each in steady) / len(steady)
            assert row["duration_ns"] == pytest.approx(mean, abs=5)
        for row in same:
            if row["process"] == process:
                assert row["duration_ns"] == pytest.approx(whole["duration_ns"], abs=20)
                assert row["steps"] == len(steady)
        if process == steps[0]["process"] and len({row["loop"] for row in steady}) == 1:
            step = summary["step"]
            assert step["mean_ns"] == pytest.approx(whole["duration_ns"], abs=20)
            shown = {part["name"]: part for part in step["parts"] if part["duration_ns"]}
            assert shown.keys() == parts.keys()
            for part, row in parts.items():
                assert shown[part]["duration_ns"] == pytest.approx(row["duration_ns"], abs=5)
                assert shown[part]["share"] == pytest.approx(row["share"], abs=1e-5)
    for row in times:
        assert sum(row[f"{role}_ns"] for role in ROLES) == pytest.approx(row["duration_ns"], abs=len(ROLES))
    for row in traces:
        parts_ns = (row[f"{part}_ns"] for part in ("interval", "forward_backward", "tail"))
        assert sum(parts_ns) == pytest.approx(row["duration_ns"], abs=3)


def test_how_long_it_waits_for_data(ask: Ask) -> None:
    pipelines, times, traces = (rows(ask(verb)) for verb in ("data-pipeline", "step-time", "step-trace"))
    breakdown, cards = rows(ask("breakdown")), {card["name"]: card for card in ask("snapshot")["cards"]}
    for row in pipelines:
        of_process = [each for each in times if each["process"] == row["process"] and not rows(ask("overlap"))]
        assert not of_process or [each["data_loader_ns"] for each in of_process] == pytest.approx(
            [row["wait_ns"]], abs=2
        )
        assert all(each["duration_ns"] == pytest.approx(row["duration_ns"], abs=2) for each in of_process)
        (figure, *_) = cards["data"]["figures"]
        assert figure["value"] in [each["wait_ns"] for each in pipelines]
        # That of the thread of the loop begins with the step, some microseconds before the loader is asked.
        of_parts = [each for each in breakdown if each["process"] == row["process"]]
        (step,) = (each["duration_ns"] for each in of_parts if each["part"] == "step")
        (data,) = (each for each in of_parts if each["part"] == "data_wait")
        # An older recorder told no kinds: all of its data were waited for.
        wait = data["duration_ns"] if data["data_wait_ns"] is None else data["data_wait_ns"]
        assert wait / step == pytest.approx(row["wait_share"], abs=0.005)
        assert next(each["wait_ns"] for each in traces if each["process"] == row["process"]) <= row["wait_ns"] + 2


def test_what_limits_the_loop(ask: Ask) -> None:
    summary, snapshot = ask("summary"), ask("snapshot")
    assert summary["verdict"] == snapshot["verdict"]
    verdict = summary["verdict"]
    breakdown = [row for row in rows(ask("breakdown")) if row["part"] == "step"]
    if not breakdown or summary["gpus"] or any(row["host_ns"] is None for row in breakdown):
        return
    whole = sum(row["duration_ns"] * row["steps"] for row in breakdown)
    measured = {"communication-bound": "communication_ns", "host-bound": "host_ns"}
    if verdict["kind"] in measured:
        part = sum(row[measured[verdict["kind"]]] * row["steps"] for row in breakdown)
        assert verdict["share"] == pytest.approx(part / whole, abs=0.01)


def test_rows_of_a_critical_path_add_up_to_its_window(ask: Ask) -> None:
    by_kind = ask("critical-path")
    found = rows(by_kind)
    if not found:
        return
    assert sum(row["share"] for row in found) == pytest.approx(1, abs=1e-6)
    for by in ("region", "call", "location"):
        others = rows(ask("critical-path", "--by", by))
        assert sum(row["time_ns"] for row in others) == sum(row["time_ns"] for row in found)
        assert all(row.get("slack_ns", 0) >= 0 for row in others)
        assert all(row["slack_ns"] == 0 for row in others if row["time_ns"] and "slack_ns" in row)
    listed = rows(ask("steps"))
    steps = {row["step"]: row for row in listed}
    about = by_kind.get("about", "").split(":")[0].removeprefix("step ").replace(" ", "")
    if about.isdigit() and not ask("summary")["gpus"] and len({row["process"] for row in listed}) == 1:
        assert sum(row["time_ns"] for row in found) == pytest.approx(steps[int(about)]["duration_ns"], rel=0.01)
