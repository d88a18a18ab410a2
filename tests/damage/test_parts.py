"""A flight recorder's run whose `strobe run` was killed: block files in parts are cut, repaired and repeated whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import strobe
from strobe.model.block_parts import part_paths
from strobe.record.launch import flight
from strobe.trace.derived.cut import cut
from strobe.trace.derived.generate import Plan, generate
from strobe.trace.derived.repair import repair
from strobe.trace.quality import counters
from tests.damage.test_damaged_traces import damage_chunk
from tests.record.workshop import STROBE, environment
from tests.unit.blocks_twin import SPANS

CALLS = 1_300_000
_CHILD = f"""
import time
def leaf(n): return n
for n in range({CALLS}):
    leaf(n)
    if n % 20_000 == 0: time.sleep(0.002)  # nothing is lost on a busy machine
"""
_MAIN = """
import subprocess, sys, time
subprocess.run([sys.executable, "child.py"], check=True)
open("over", "x").close()
time.sleep(600)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace; not to be changed. The program was killed, too, and its child had ended before."""
    folder = tmp_path_factory.mktemp("flight")
    (folder / "child.py").write_text(_CHILD)
    (folder / "main.py").write_text(_MAIN)
    options = ["--flight", "1h", "--flight-size", "8M", "--trace", "python"]
    command = [STROBE, "run", "--quiet", *options, "-o", "in.strobe", "main.py"]
    running = subprocess.Popen(command, cwd=folder, env=environment(), start_new_session=True)
    until = time.monotonic() + 100
    while not (folder / "over").exists() and running.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert (folder / "over").exists()
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    trace = folder / "in.strobe"
    assert len(list(trace.glob("*.rings"))) == 1, "the child has ended"
    assert len(part_paths(_of_child(trace))) >= 2
    return trace


def _of_child(trace: Path) -> Path:
    """The newest part of the process that has parts."""
    (found,) = {path.with_suffix("") for path in trace.glob("*.blocks.0*")}
    return found


@pytest.fixture
def copied(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / "in.strobe"))


def _calls(trace: Path) -> int:
    with strobe.open(trace) as opened:
        return int(opened.sql("select count(*) as n from spans where name = 'leaf'").to_pylist()[0]["n"])


def test_a_cut_has_all_parts(recorded: Path, tmp_path: Path) -> None:
    assert _calls(recorded) == CALLS
    with strobe.open(recorded) as trace:
        cut(trace, tmp_path / "cut.strobe")
    assert _calls(tmp_path / "cut.strobe") == CALLS
    with strobe.open(tmp_path / "cut.strobe") as trace:
        found = counters(trace)
    assert not any(found[what] for what in ("spans_lost", "bytes_lost", "chunks_damaged"))


def test_a_repair_recovers_the_killed_process_and_finds_no_damage(copied: Path, tmp_path: Path) -> None:
    wrong = repair(copied, tmp_path / "sound.strobe")
    assert [each for each in wrong if "damaged" in each] == []
    assert len(wrong) == 1
    assert "records of a killed process recovered" in wrong[0]
    assert _calls(tmp_path / "sound.strobe") == CALLS
    assert not list((tmp_path / "sound.strobe").glob("*.blocks.*"))
    # What was repaired is sound, also with the definitions that each part repeats.
    assert repair(tmp_path / "sound.strobe", tmp_path / "again.strobe") == []


def test_damage_to_an_earlier_part_is_repaired_and_counted(copied: Path, tmp_path: Path) -> None:
    rows = damage_chunk(Path(part_paths(_of_child(copied))[0]), 1, SPANS)
    wrong = repair(copied, tmp_path / "sound.strobe")
    assert any("damaged bytes left out" in each for each in wrong)
    with strobe.open(tmp_path / "sound.strobe") as trace:
        assert counters(trace)["spans_lost"] == rows
        assert counters(trace)["chunks_damaged"] == 0
    assert _calls(tmp_path / "sound.strobe") == CALLS - rows


def test_a_process_in_parts_is_repeated_whole(copied: Path, tmp_path: Path) -> None:
    child = _of_child(copied)
    for path in copied.glob("process-*"):
        if not path.name.startswith(child.name):
            path.unlink()  # without ranks, the first process with spans is repeated
    with strobe.open(copied) as trace:
        generate([trace], tmp_path / "more.strobe", Plan(ranks=2, spans=2 * trace.span_count))
    assert _calls(tmp_path / "more.strobe") == 2 * CALLS


def test_a_kill_while_a_part_begins_leaves_no_part_twice(copied: Path) -> None:
    blocks = _of_child(copied)
    os.link(blocks, f"{blocks}.000099")
    assert _calls(copied) == CALLS
    flight.join(os.fspath(copied))
    assert not list(copied.glob("*.blocks.*"))
    assert _calls(copied) == CALLS


def test_a_late_look_removes_nothing_of_the_last_minutes(copied: Path) -> None:
    # The launcher of a busy machine, or of one that slept, looks an hour after the last block.
    hour = 3600 * 10**9
    for path in copied.iterdir():
        state = path.stat()
        os.utime(path, ns=(state.st_atime_ns - hour, state.st_mtime_ns - hour))
    flight.FlightRecorder(os.fspath(copied), 60 * 10**9, 1 << 30, lambda written: None).stop()
    assert _calls(copied) == CALLS
