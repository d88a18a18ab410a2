"""What is written as an OTF2 archive and read again is equal; the official reader is in test_export_otf2_oracle.py."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strobe
from strobe.cli.main import main
from strobe.errors import FormatError, StrobeError, UsageError
from strobe.model.schema import EVENT_TABLES, SPAN_TABLES
from tests.formats.round_trip import QUESTIONS, REAL, anything, assert_equal, contents

ROOT = Path(__file__).parents[2]
STROBE = str(Path(sys.executable).with_name("strobe"))
PROGRAM, FOLDED = ROOT / "tests/ui/program.py", ROOT / "tests/ui/folded_program.py"


def exported(trace: strobe.Trace, folder: Path, **options: object) -> strobe.Trace:
    assert trace.export(folder, "otf2", **options) == []
    return strobe.open(folder)


@pytest.mark.parametrize("name", REAL)
def test_what_is_exported_and_read_again_is_equal(public_folder: Path, name: str, tmp_path: Path) -> None:
    trace = strobe.open(public_folder / name)
    assert_equal(trace, exported(trace, tmp_path / "again"))
    assert trace.span_count > 40


def test_whatever_a_trace_may_hold_is_equal(tmp_path: Path) -> None:
    trace = anything(tmp_path / "t.strobe", seed=1)
    assert_equal(trace, exported(trace, tmp_path / "again"))


def test_a_trace_of_our_own_is_equal_too(tmp_path: Path) -> None:
    command = [STROBE, "run", "--quiet", "--keep", "all", "-o", str(tmp_path / "own.strobe"), str(PROGRAM)]
    subprocess.run(command, check=True)
    trace = strobe.open(tmp_path / "own.strobe")
    assert len(trace.metrics()) > 0
    again = exported(trace, tmp_path / "again")
    assert_equal(trace, again)
    assert again.info.started_unix_ns == trace.info.started_unix_ns
    assert (again.steps().column("duration_ns")) == trace.steps().column("duration_ns")


# --- what a trace may hold -------------------------------------------------------------------------------------------


def everything() -> list[dict[str, object]]:
    base: dict[str, object] = {"pid": 7, "tid": 1}
    kernel = {"correlation": 5, "stream": 7, "device": 0, "grid": [4, 1, 1], "block": [8, 2, 1], "est": 0.5}
    own = {"x": [1, "y"], "n": -5, "t": "plain é", "big": 2**70, "q": 'a"b\n', "": 1, "marks.name": 3, "f": 1.5}
    events: list[dict[str, object]] = [
        {**base, "ph": "X", "name": "outer", "cat": "cpu_op", "ts": 10, "dur": 50, "args": {"Input Dims": [[2, 3]]}},
        {**base, "ph": "X", "name": "same", "cat": "cpu_op", "ts": 10, "dur": 50, "args": {"External id": 2}},
        {**base, "ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "ts": 12, "dur": 3, "args": kernel},
        {**base, "ph": "X", "name": "no length", "cat": "mine, of course", "ts": 20, "dur": 0, "args": own},
        {**base, "ph": "X", "name": "no length", "cat": "mine, of course", "ts": 20, "dur": 0},
        {**base, "ph": "X", "name": "overlaps", "cat": "mine", "ts": 30, "dur": 45, "args": {"n": "text now"}},
        {**base, "ph": "X", "name": "f.py(3): f", "cat": "python_function", "ts": 21, "dur": 0.5, "tid": 2},
        {**base, "ph": "X", "name": "k<int>", "cat": "kernel", "ts": 70, "dur": 3, "pid": 0, "tid": 7, "args": kernel},
        {**base, "ph": "i", "name": "mark", "cat": "note", "ts": 33, "args": {"why": ["é", 1], "t": "a\nb"}},
        {**base, "ph": "i", "name": "bare", "ts": 9},
        {**base, "ph": "C", "name": "memory", "ts": 15, "args": {"used": 5.5}},
        {**base, "ph": "s", "id": 5, "cat": "ac2g", "name": "ac2g", "ts": 12},
        {**base, "ph": "f", "id": 5, "cat": "ac2g", "name": "ac2g", "ts": 70, "pid": 0, "tid": 7},
        {**base, "ph": "i", "name": "[memory]", "ts": 14, "args": {"Addr": 2**40, "Bytes": -8, "Device Type": 1}},
        {**base, "ph": "M", "name": "thread_name", "args": {"name": "main"}},
        {**base, "ph": "M", "name": "process_name", "args": {"name": "train.py"}},
    ]
    return events


def chrome(path: Path, events: list[dict[str, object]], **beside: object) -> strobe.Trace:
    path.write_text(json.dumps({"traceEvents": events, **beside}))
    return strobe.open(path)


@pytest.mark.parametrize("version", [2, 3])
def test_all_that_a_trace_may_hold_is_equal(tmp_path: Path, version: int) -> None:
    trace = chrome(tmp_path / "t.json", everything(), distributedInfo={"rank": 3, "world_size": 8})
    again = exported(trace, tmp_path / "again", otf2_version=version)
    assert_equal(trace, again)
    assert {name for name, rows in contents(again).items() if rows} >= {"arguments", "flows", "marks", "allocations"}
    assert sorted(again.sql("select what from quality where value > 0").rows()) == [("records_taken",), ("size_bytes",)]


# Threads are independent of each other: four examples of eight threads are as good as many of two, which take longer.
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 3), st.integers(0, 7)), max_size=160))
def test_whatever_nests_stays_as_it_was(tmp_path: Path, spans: list[tuple[int, int, int, int]]) -> None:
    chance = random.Random(str(spans))
    folder = tmp_path / f"{chance.getrandbits(64):x}"
    folder.mkdir()
    events: list[dict[str, object]] = [
        {"ph": "X", "name": f"f{name}", "ts": start, "dur": duration, "pid": 1, "tid": thread}
        for start, duration, name, thread in [*spans, (0, 100, 9, 0)]
    ]
    trace = chrome(folder / "t.json", events)
    again = exported(trace, folder / "again")
    for query in (QUESTIONS["spans"] + " order by all", QUESTIONS["locations"] + " order by all"):
        assert again.sql(query).rows() == trace.sql(query).rows()


def test_chunks_and_runs_in_files_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from strobe.formats.otf2 import export

    monkeypatch.setattr(export, "_MEMORY_BYTES", 5000)
    chance = random.Random(1)
    base = {"pid": 1, "tid": 1, "cat": "x"}
    events: list[dict[str, object]] = [
        {**base, "ph": "i", "name": f"mark {i}", "ts": chance.randrange(9000), "args": {"number": i}}
        for i in range(3000)
    ]
    events += [{**base, "ph": "X", "name": "f" * 50, "ts": i, "dur": 1, "args": {"n": i}} for i in range(60_000)]
    trace = chrome(tmp_path / "t.json", events)
    again = exported(trace, tmp_path / "again")
    assert (tmp_path / "again" / "traces" / "0.evt").stat().st_size > 1 << 20
    assert sorted(each.name for each in (tmp_path / "again").iterdir()) == ["traces", "traces.def", "traces.otf2"]
    assert_equal(trace, again)


# --- what users see --------------------------------------------------------------------------------------------------


def test_what_is_only_there_as_statistics_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.strobe"
    command = [STROBE, "run", "--quiet", "--keep", "3", "-o", str(path), str(FOLDED)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    trace = strobe.open(path)
    assert trace.folded_count > 0
    assert main(["export", str(path), "--to", "otf2", "-o", str(tmp_path / "run")]) == 0
    out, talk = capsys.readouterr()
    assert out == f"{tmp_path / 'run'}\n"
    assert f"{trace.folded_count} executions that were folded into statistics are left out" in talk
    assert strobe.open(tmp_path / "run" / "traces.otf2").span_count == trace.span_count


def test_a_part_is_exported_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chrome(tmp_path / "t.json", everything())
    command = ["export", str(tmp_path / "t.json"), "--time", "0us-12us", "-o", str(tmp_path / "part.otf2")]
    assert main(command) == 0
    assert "spans that were cut off" in capsys.readouterr().err
    part = strobe.open(tmp_path / "part.otf2")
    # The trace begins at 10 us; times stay those of the run.
    assert part.sql("select name, start_ns, duration_ns from spans order by all").rows() == [
        ("cudaLaunchKernel", 2_000, 3_000),
        ("f", 11_000, 500),
        ("no length", 10_000, 0),
        ("no length", 10_000, 0),
        ("outer", 0, 12_000),
        ("same", 0, 12_000),
    ]


def test_only_an_archive_of_ours_is_replaced(tmp_path: Path) -> None:
    trace = chrome(tmp_path / "t.json", everything())
    exported(trace, tmp_path / "again")
    first = (tmp_path / "again" / "traces.def").read_bytes()
    exported(trace, tmp_path / "again")
    assert (tmp_path / "again" / "traces.def").read_bytes() == first, "the same trace gives the same bytes"
    (tmp_path / "again" / "scorep.cfg").write_text("mine")
    with pytest.raises(UsageError, match="not an archive that strobe wrote"):
        trace.export(tmp_path / "again", "otf2")
    with pytest.raises(UsageError, match="no version 1"):
        trace.export(tmp_path / "other", "otf2", otf2_version=1)
    assert not (tmp_path / "other").exists()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    trace = chrome(tmp_path / "t.json", everything())
    (tmp_path / "file").write_text("")
    with pytest.raises(StrobeError, match="cannot write"):
        trace.export(tmp_path / "file" / "again", "otf2")
    script = (
        "import resource, signal, sys, strobe\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "trace = strobe.open(sys.argv[1])\n"
        "sys.dont_write_bytecode = True\n"  # a module would be left cut off
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "trace.export(sys.argv[2], 'otf2')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "t.json"), str(tmp_path / "again")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "cannot write" in done.stderr
    assert "File too large" in done.stderr
    assert not [each for each in tmp_path.iterdir() if "again" in each.name]


@pytest.mark.parametrize("seed", range(5))
def test_no_damage_of_an_archive_of_ours_crashes(tmp_path: Path, seed: int) -> None:
    chrome(tmp_path / "t.json", everything()).export(tmp_path / "again", "otf2")
    chance = random.Random(seed)
    files = [each for each in (tmp_path / "again").rglob("*") if each.is_file() and each.stat().st_size > 20]
    for _ in range(chance.choice((1, 10, 40))):
        path = chance.choice(files)
        data = bytearray(path.read_bytes())
        data[chance.randrange(9, len(data))] = chance.choice((0, 1, 255, chance.randrange(256)))
        path.write_bytes(bytes(data))
    try:
        trace = strobe.open(tmp_path / "again")
    except FormatError:
        return
    assert len(trace.processes) <= len(trace.locations) + 1
    for name in (*SPAN_TABLES, *EVENT_TABLES):
        assert len(trace.side_table(name)) >= 0
