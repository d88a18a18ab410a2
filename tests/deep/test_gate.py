"""Exact counts per step and what they say of two runs: small profiles written by hand, one run each."""

from __future__ import annotations

import json
import tarfile
from dataclasses import asdict, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import strobe
from strobe.cli.main import main
from strobe.errors import InconclusiveError
from strobe.gate.runs import Run, run_of, timed_run
from strobe.gate.verdict import INCONCLUSIVE, OK, REGRESSED, Comparison, compare
from tests.deep.kineto import Event, call, copy, kernel, operator, profile, step
from tests.golden.answers import TRACES, names
from tests.unit.hand_made import make_trace, span

STEPS = 6


def training(folder: Path, *, kernels: int = 2, syncs: int = 1, copied: int = 1000, every: int = 1) -> strobe.Trace:
    """STEPS steps: launches with a kernel each, a copy, waits. `every`: one in so many steps has the last kernel."""
    events: list[Event] = []
    for number in range(STEPS):
        begin, count = number * 100, kernels - (number % every > 0)
        events += [step(number, begin, 100), operator("aten::mm", begin + 1, 30)]
        for k in range(count):
            correlation = number * 10 + k + 1
            events.append(call(begin + 2 + 3 * k, 2, correlation=correlation))
            events.append(kernel(f"gemm{k}", begin + 20 + 3 * k, 2, correlation=correlation))
        events += [call(begin + 60 + 3 * k, 2, "cudaDeviceSynchronize") for k in range(syncs)]
        events.append(copy("Memcpy HtoD (Pageable -> Device)", begin + 50, 2, bytes=copied))
    return profile(folder, *events)


def compared(before: strobe.Trace, now: strobe.Trace) -> Comparison:
    sides = ([run_of(each, str(number))] for number, each in enumerate((before, now)))
    return compare(*sides, metrics=("median",), threshold=0.01)


def causes(found: Comparison, kind: str) -> dict[str, tuple[float, float]]:
    return {row.name: (row.baseline, row.now) for row in found.rows if row.measure == kind and row.name}


def verdicts(found: Comparison) -> dict[str, str]:
    return {row.measure: row.verdict for row in found.rows if row.verdict}


def test_equal_runs_are_ok_and_their_counts_are_those_of_a_step(tmp_path: Path) -> None:
    found = compared(training(tmp_path), training(tmp_path))
    assert found.verdict == OK
    totals = {row.measure: (row.now, row.unit) for row in found.rows}
    assert totals == {
        "bytes copied": (1000, "bytes"),
        "calls": (2, "per step"),  # the mark of the step, and the operator
        "copies": (1, "per step"),
        "kernels": (2, "per step"),
        "launches": (2, "per step"),
        "syncs": (1, "per step"),
    }


def test_one_more_kernel_is_found_and_named(tmp_path: Path) -> None:
    found = compared(training(tmp_path), training(tmp_path, kernels=3))
    assert found.verdict == REGRESSED
    assert {kind for kind, each in verdicts(found).items() if each == REGRESSED} == {"kernels", "launches"}
    assert causes(found, "kernels") == {"gemm2": (0, 1)}
    assert causes(found, "launches") == {"cudaLaunchKernel": (2, 3)}


def test_one_kernel_less_is_named_and_ok(tmp_path: Path) -> None:
    found = compared(training(tmp_path, kernels=3), training(tmp_path))
    assert found.verdict == OK
    assert causes(found, "kernels") == {"gemm2": (1, 0)}


def test_one_more_sync_is_found_and_named(tmp_path: Path) -> None:
    found = compared(training(tmp_path), training(tmp_path, syncs=2))
    assert {kind for kind, each in verdicts(found).items() if each == REGRESSED} == {"syncs"}
    assert causes(found, "syncs") == {"cudaDeviceSynchronize": (1, 2)}


def test_a_kernel_in_every_second_step_is_found(tmp_path: Path) -> None:
    found = compared(training(tmp_path), training(tmp_path, kernels=3, every=2))
    assert causes(found, "kernels") == {"gemm2": (0, 0.5)}
    assert found.verdict == REGRESSED


def test_one_more_of_many_equal_kernels_is_found_although_some_run_in_the_next_step(tmp_path: Path) -> None:
    def late(kernels: int) -> strobe.Trace:
        """Kernels of a step begin in it, but for the last three: 50 us later, behind the last step nobody counts."""
        events = [step(number, number * 100, 100) for number in range(STEPS)]
        for number in range(STEPS):
            starts = [number * 100 + 20 + k for k in range(kernels - 3)] + [number * 100 + 110 + k for k in range(3)]
            events += [kernel("gemm", start, 0.5, correlation=number * 100 + k) for k, start in enumerate(starts, 1)]
        return profile(tmp_path, *events)

    found = compared(late(12), late(13))
    (_, now) = causes(found, "kernels")["gemm"]
    assert now % 1, "the first step lacks three"
    assert verdicts(found)["kernels"] == REGRESSED
    assert compared(late(12), late(12)).verdict == OK


def test_more_bytes_are_found_and_named(tmp_path: Path) -> None:
    found = compared(training(tmp_path), training(tmp_path, copied=1001))
    assert causes(found, "bytes copied") == {"Memcpy HtoD (Pageable -> Device)": (1000, 1001)}
    assert verdicts(found)["bytes copied"] == REGRESSED


def test_a_graph_break_is_found_by_what_is_compiled_behind_it() -> None:
    def program(*behind: str) -> strobe.Trace:
        steps = [
            span("step", at, at + 90, *(span(name, at + 10 * k, at + 10 * k + 5) for k, name in enumerate(behind, 1)))
            for at in range(0, 1000, 100)
        ]
        return make_trace({"main": [span("main", 0, 1000, *steps)]})

    name = "torch_dynamo_resume_in_forward_at_12"
    found = compared(program("load", "work"), program("load", "work", name))
    assert found.verdict == REGRESSED
    assert causes(found, "graph breaks") == {name: (0, 1)}


def test_a_count_that_differs_among_the_runs_of_the_baseline_may_differ(tmp_path: Path) -> None:
    runs = [run_of(training(tmp_path, syncs=syncs), "") for syncs in (1, 3)]
    for syncs, verdict in ((2, OK), (4, REGRESSED)):
        now = [run_of(training(tmp_path, syncs=syncs), "")]
        assert compare(runs, now, metrics=("median",), threshold=0.01).verdict == verdict


def test_counts_of_a_run_with_losses_are_inconclusive_where_they_differ(tmp_path: Path) -> None:
    before, now = (run_of(training(tmp_path, kernels=count), "") for count in (2, 3))
    lossy = replace(now, lost="7 records lost (buffers were full)")
    found = compare([before], [lossy], metrics=("median",), threshold=0.01)
    assert (found.verdict, verdicts(found)["syncs"]) == (INCONCLUSIVE, OK)
    throttled = replace(now, throttled=["gemm2", "cudaLaunchKernel"])
    assert compare([before], [throttled], metrics=("median",), threshold=0.01).verdict == OK


def test_a_class_of_steps_that_is_missing_is_inconclusive_unless_it_is_rare() -> None:
    def run(**steps: int) -> Run:
        plain = timed_run("", 1, {}, [10.0])
        classes = {name: replace(plain.classes["run"], steps=count) for name, count in steps.items()}
        return replace(plain, classes=classes)

    def verdict(before: Run, now: Run) -> str:
        return compare([before], [now], metrics=("median",), threshold=0.01).verdict

    assert verdict(run(train=100), run(train=96, validation=4)) == OK
    assert verdict(run(train=100), run(train=90, validation=10)) == INCONCLUSIVE
    with pytest.raises(InconclusiveError, match="no class of steps is in all runs: a, b"):
        verdict(run(a=1), run(b=1))


def test_another_machine_is_refused_unless_it_is_asked_for() -> None:
    then, now = ([timed_run("", 1, {"cpu": name}, [10.0])] for name in ("Epyc", "Xeon"))
    with pytest.raises(InconclusiveError, match="another cpu: Epyc and Xeon"):
        compare(then, now, metrics=("median",), threshold=0.01)
    assert compare(then, now, metrics=("median",), threshold=0.01, other_machine=True).verdict == OK
    unknown = [replace(now[0], machine={})]
    assert compare(then, unknown, metrics=("median",), threshold=0.01).verdict == OK


def timed(*starts: int, slower: float = 1.0) -> list[Run]:
    return [timed_run("", start, {}, [(100 + start / 100) * slower]) for start in starts]


def test_longer_steps_are_believed_of_interleaved_runs_only() -> None:
    def verdict(before: list[Run], now: list[Run], *, apart: bool = False) -> str:
        return compare(before, now, metrics=("median",), threshold=0.01, apart=apart).verdict

    numbers = range(1, 21)
    assert verdict(timed(*numbers[::2]), timed(*numbers[1::2], slower=1.5)) == REGRESSED
    assert verdict(timed(*numbers[:10]), timed(*numbers[10:], slower=1.5)) == INCONCLUSIVE
    assert verdict(timed(*numbers[:10]), timed(*numbers[10:], slower=1.5), apart=True) == REGRESSED


def test_functions_that_became_slower_are_named() -> None:
    def runs(first: int, slow_ns: float) -> list[Run]:
        result = []
        for start in range(first, first + 20, 2):
            run = timed_run("", start, {}, [1e6 + start])
            functions = {"load": 3e5 + start * (-1) ** (start // 2), "work": slow_ns + start, "tiny": slow_ns / 100}
            result.append(replace(run, classes={"run": replace(run.classes["run"], functions_ns=functions)}))
        return result

    found = compare(runs(1, 4e5), runs(2, 6e5), metrics=("median",), threshold=0.01)
    changes = [(row.name, round(row.change or 0, 2)) for row in found.rows if row.measure == "own time"]
    assert changes == [("work", 0.5)]


@pytest.mark.parametrize("name", names())
def test_every_kind_of_trace_is_ok_compared_with_itself(name: str, tmp_path: Path) -> None:
    with tarfile.open(TRACES / f"{name}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    run = run_of(strobe.open(tmp_path / f"{name}.strobe"), name)
    again = Run.read(json.loads(json.dumps(asdict(run))))
    assert compare([run], [again], metrics=("median",), threshold=0.0).verdict == OK
    assert again.classes == run.classes


def test_the_verbs_save_a_baseline_compare_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, kernels in (("before", 2), ("now", 3)):
        (tmp_path / name).mkdir()
        training(tmp_path / name, kernels=kernels)
    files = {name: str(next((tmp_path / name).glob("*.json"))) for name in ("before", "now")}
    assert main(["check", files["now"], "--baseline", "base.json"]) == 2, "there is none yet"
    assert main(["check", files["before"], "--baseline", "base.json", "--save", "--name", "v1"]) == 0
    assert main(["check", files["before"], "--baseline", "base.json"]) == 0
    capsys.readouterr()
    outputs = ["--junit", "j.xml", "--markdown", "m.md", "--json"]
    assert main(["check", files["now"], "--baseline", "base.json", *outputs]) == 1
    said = capsys.readouterr()
    assert "regressed; kernels of " in said.err
    assert "gemm2 0 -> 1" in said.err
    rows = [each for each in json.loads(said.out)["rows"] if each["measure"] == "kernels"]
    assert [each["verdict"] for each in rows] == ["regressed", ""]
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {"kernels", "launches"}
    assert suite.get("failures") == "2"
    assert "gemm2" in (tmp_path / "m.md").read_text()


def test_a_file_that_is_no_baseline_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    empty = '{"strobe_baseline": 1, "points": [{"name": "x", "runs": []}]}'
    for text in ("", "[]", "{}", empty, '{"strobe_baseline": 9}'):
        (tmp_path / "b.json").write_text(text)
        assert main(["check", "--history", "b.json"]) == 4
        assert "Traceback" not in capsys.readouterr().err


def test_a_history_has_the_point_from_which_on_steps_are_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from strobe.gate.baseline import Point, add_point

    monkeypatch.chdir(tmp_path)
    for number in range(24):
        time_ns = (2e6 if number < 12 else 3e6) * (1 + 0.001 * (number * 7 % 5))
        add_point("b.json", Point(f"r{number}", [timed_run("", number, {}, [time_ns])]))
    assert main(["check", "--history", "b.json", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    changes = [(row["name"], round(row["change_share"], 2)) for row in rows if row["change_share"] is not None]
    assert (len(rows), changes) == (24, [("r12", 0.5)])
