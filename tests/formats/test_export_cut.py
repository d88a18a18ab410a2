"""A part of a trace is a trace; without names, no byte of it tells what was private."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe.cli.main import main
from strobe.errors import TraceError
from tests.formats.test_nsys import Export, global_pid

STROBE = str(Path(sys.executable).with_name("strobe"))
ROOT = Path(__file__).parents[2]
PROGRAM, FOLDED = ROOT / "tests/ui/program.py", ROOT / "tests/ui/folded_program.py"
STEPS = 10


def span(name: str, ts: float, dur: float, **more: object) -> dict[str, object]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 7, "tid": 1, **more}


def imported(path: Path) -> strobe.Trace:
    """Ten steps of 100 us, each with a function and a kernel; one function around them all."""
    events = [span("/secret/place/main.py(3): secret_main", 0, 1000, cat="python_function")]
    for i in range(STEPS):
        events.append(span(f"ProfilerStep#{i}", 100 * i, 100, cat="user_annotation"))
        shapes = [[i, 2]]
        events.append(span("aten::mm", 100 * i + 10, 20, cat="cpu_op", args={"External id": i, "Input Dims": shapes}))
        events.append(
            span("secret_range", 100 * i + 40, 20, cat="user_annotation", args={"secret_key": "secret_value"})
        )
        events.append(span("Optimizer.step#SecretOptimizer.step", 100 * i + 70, 10, cat="user_annotation"))
        # From the last tenth of its step into the next one.
        kernel = {"correlation": i, "secret_one": 1, "secret_two": "x"}
        events.append(span("secret_kernel", 100 * i + 90, 20, cat="kernel", pid=0, tid=7, args=kernel))
        events.append({"ph": "i", "s": "t", "name": "secret_mark", "ts": 100 * i + 5, "pid": 7, "tid": 1})
        events.append({"ph": "C", "name": "secret_counter", "ts": 100 * i, "pid": 7, "args": {"value": i}})
    events.append({"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "secret_process"}})
    events.append({"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "secret_thread"}})
    beside = {"host_name": "secret_host", "traceName": "/secret/place/trace.json"}
    path.write_text(json.dumps({**beside, "traceEvents": events}))
    return strobe.open(path)


def quality(trace: strobe.Trace) -> dict[str, int]:
    return {str(row["what"]): int(str(row["value"])) for row in trace.quality.to_pylist() if row["value"]}


def test_steps_are_cut_out_with_everything_that_they_have(tmp_path: Path) -> None:
    trace = imported(tmp_path / "t.json")
    assert main(["cut", str(trace.path), "--steps", "3-5", "-o", str(tmp_path / "new")]) == 0
    new = strobe.open(tmp_path / "new.strobe")
    assert len(new.steps()) == 3
    names = new.sql("select name, count(*), sum(duration_ns)::bigint from spans group by 1 order by 1").rows()
    assert names == [
        ("Optimizer.step#SecretOptimizer.step", 3, 30_000),
        ("ProfilerStep#3", 1, 100_000),
        ("ProfilerStep#4", 1, 100_000),
        ("ProfilerStep#5", 1, 100_000),
        ("aten::mm", 3, 60_000),
        ("secret_kernel", 4, 60_000),  # the one of step 2 ends in step 3, that of step 5 begins there
        ("secret_main", 1, 300_000),
        ("secret_range", 3, 60_000),
    ]
    assert quality(new)["spans_cut"] == 3
    shapes = new.sql("select shapes, external_id from operator_spans order by external_id").rows()
    assert shapes == [("[[3,2]]", 3), ("[[4,2]]", 4), ("[[5,2]]", 5)]
    assert new.sql("select start_ns, correlation from kernel_spans order by correlation").rows() == [
        (0, 2),
        (90_000, 3),
        (190_000, 4),
        (290_000, 5),
    ]
    assert (
        sorted(new.sql("select key, value from arguments where key like 'secret_t%'").rows())
        == [("secret_two", '"x"')] * 4
    )
    assert new.sql("select time_ns, name from marks order by 1").rows() == [
        (5_000, "secret_mark"),
        (105_000, "secret_mark"),
        (205_000, "secret_mark"),
    ]
    assert new.sql("select time_ns, value from metrics order by 1").rows() == [
        (0, 3.0),
        (100_000, 4.0),
        (200_000, 5.0),
    ]


def test_times_are_cut_out(tmp_path: Path) -> None:
    trace = imported(tmp_path / "t.json")
    trace.part(time_ns=(110_000, 125_000)).cut(tmp_path / "new.strobe")
    new = strobe.open(tmp_path / "new.strobe")
    rows = new.sql(
        "select name, start_ns, duration_ns, self_ns, depth from spans where paradigm <> 'cuda' order by all"
    )
    assert rows.rows() == [
        ("ProfilerStep#1", 0, 15_000, 0, 1),
        ("aten::mm", 0, 15_000, 15_000, 2),
        ("secret_main", 0, 15_000, 0, 0),
    ]


def test_ranks_are_cut_out_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(4):
        body = {"distributedInfo": {"rank": rank, "world_size": 4}, "baseTimeNanoseconds": 1000 * rank}
        (folder / f"r{rank}.json").write_text(json.dumps({**body, "traceEvents": [span("f", 5, 10)]}))
    trace = strobe.open(folder)
    trace.part(ranks=(1, 2)).cut(tmp_path / "new.strobe")
    new = strobe.open(tmp_path / "new.strobe")
    assert [row["rank"] for row in new.processes.to_pylist()] == [1, 2]
    assert new.sql("select start_ns, duration_ns from spans order by 1").rows() == [(0, 10_000), (1_000, 10_000)]
    with pytest.raises(TraceError, match="there already"):
        trace.cut(tmp_path / "new.strobe")


def test_statistics_of_folded_steps_go_with_whole_processes_only(tmp_path: Path) -> None:
    path = tmp_path / "run.strobe"
    command = [STROBE, "run", "--quiet", "--keep", "3", "-o", str(path), str(FOLDED)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    trace = strobe.open(path)
    assert trace.folded_count > 0
    question = "select name, sum(count)::bigint, sum(total_ns)::bigint from totals group by 1 order by 2, 3"
    assert trace.cut(tmp_path / "whole.strobe", anonymise=True) == []
    whole = strobe.open(tmp_path / "whole.strobe")
    assert [row[1:] for row in whole.sql(question).rows()] == [row[1:] for row in trace.sql(question).rows()]
    assert whole.steps().column("duration_ns") == trace.steps().column("duration_ns")
    end = trace.info.duration_ns
    notes = trace.part(time_ns=(end // 4, end // 2)).cut(tmp_path / "part.strobe")
    assert "statistics of folded steps are left out" in notes[0]
    assert strobe.open(tmp_path / "part.strobe").folded_count == 0


@pytest.mark.parametrize("part", [[], ["--steps", "2-4"]])
def test_no_byte_tells_what_was_private(tmp_path: Path, part: list[str]) -> None:
    trace = imported(tmp_path / "secret_file.json")
    assert main(["cut", str(trace.path), *part, "--anonymise", "-o", str(tmp_path / "new.strobe")]) == 0
    strobe.open(tmp_path / "new.strobe").pyramid.cells([0], 0, 1000, 10)  # with its tiles
    held = b"".join(each.read_bytes() for each in (tmp_path / "new.strobe").rglob("*") if each.is_file())
    for private in (b"secret", b"Secret", str(tmp_path).encode()):
        assert private not in held
    new = strobe.open(tmp_path / "new.strobe")
    assert len(new.steps()) == (3 if part else STEPS)
    names = {str(name) for name in new.regions.column("name")}
    assert {
        "aten::mm",
        "ProfilerStep#3",
        "Optimizer.step#Optimizer_1.step",
        "function_1",
        "range_1",
        "kernel_1",
    } <= names
    assert new.sql("select count(distinct shapes) from operator_spans").rows() == [(len(new.steps()),)]
    assert {row["file"] for row in new.regions.to_pylist()} == {"", "file_1.py"}
    assert new.processes.to_pylist()[0]["argv"] == "program_1"


def test_nothing_of_the_machine_that_nsight_systems_saw_is_left(tmp_path: Path) -> None:
    export = Export(tmp_path / "t.sqlite")
    export.table("CUPTI_ACTIVITY_KIND_KERNEL", export.kernel("secret_kernel", 100, 200))
    texts = {"name": "TEXT", "value": "TEXT"}
    export.table("PROCESSES", {"globalPid": global_pid(7), "pid": 7, "name": "/secret/solver --secret"}, types=texts)
    said = {"Hostname": "secret-host", "CommandLine": "/secret/solver --secret", "Environment": "SECRET_TOKEN=secret"}
    for name in ("TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE", "TARGET_INFO_GPU"):
        export.table(name, *({"name": each, "value": value} for each, value in said.items()), types=texts)
    trace = export.open()
    plain = (Path(trace.info.path) / "job.json").read_bytes()
    assert b"secret-host" in plain
    assert b"SECRET_TOKEN" in plain
    trace.cut(tmp_path / "new.strobe", anonymise=True)
    held = b"".join(each.read_bytes() for each in (tmp_path / "new.strobe").rglob("*") if each.is_file())
    assert b"secret" not in held.lower()
    assert strobe.open(tmp_path / "new.strobe").span_count == 1


def test_a_recorded_run_has_no_names_either(tmp_path: Path) -> None:
    program = tmp_path / "hidden_folder" / "hidden_program.py"
    program.parent.mkdir()
    program.write_text(PROGRAM.read_text().replace("train_step", "hidden_step").replace("layer", "hidden_layer"))
    path = tmp_path / "run.strobe"
    subprocess.run([STROBE, "run", "--quiet", "-o", str(path), str(program), "--hidden-option"], check=True)
    trace = strobe.open(path)
    trace.cut(tmp_path / "new.strobe", anonymise=True)
    held = b"".join(each.read_bytes() for each in (tmp_path / "new.strobe").iterdir())
    assert b"hidden" not in held
    for row in trace.processes.to_pylist():
        assert json.dumps(row["host"]).encode() not in held
    for row in trace.regions.to_pylist():
        assert not row["file"] or str(row["file"]).encode() not in held
    new = strobe.open(tmp_path / "new.strobe")
    assert new.span_count == trace.span_count
    assert new.steps().column("duration_ns") == trace.steps().column("duration_ns")
