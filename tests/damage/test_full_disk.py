"""A disk that is full, or may not be written: traces on it answer, and what cannot be written is refused."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from tests.record.test_broken_storage import mounted
from tests.record.workshop import STROBE, Workshop, environment

_READS = ("summary", "profile")
# A loop that is folded, and a disk that fills up meanwhile.
_FOLDED = """
import collections, functools, strobe, sys
def work(n): return n
def step(k):
    for n in range(50 + k % 7): work(n)
for k in range(3000):
    step(k)
    strobe.step()
    if k == 500:
        with open(sys.argv[1], "wb", buffering=0) as file:
            try:
                collections.deque(iter(functools.partial(file.write, bytes(4096)), 0), maxlen=0)
            except OSError:
                pass
for k in range(150_000): work(k)
print("done")
"""
# A request to the flight recorder, as a process makes one, and the time to answer it more than once.
_ASKS = """
import os, sys, time
from strobe.record import flight_requests
def work(n): return n
for n in range(1000): work(n)
asked = flight_requests.request(sys.argv[1], "request", "a test")
until = time.monotonic() + 30
while os.path.exists(asked) and time.monotonic() < until: time.sleep(0.05)
time.sleep(0.5)
print("done")
sys.exit(3)
"""
_REMOVES = """
import shutil, sys, time
def work(n): return n
for n in range(1000): work(n)
shutil.rmtree(sys.argv[1])
time.sleep(1)
print("done")
sys.exit(3)
"""


@pytest.fixture(params=["No space left on device", "Read-only file system"])
def closed_disk(request: pytest.FixtureRequest, tmp_path: Path, recorded: Path) -> Iterator[tuple[Path, str]]:
    """A trace on a disk that takes nothing more, and why."""
    for disk in mounted(tmp_path, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        ignored = shutil.ignore_patterns("*.tiles", "*.index", "summary.json")
        trace = Path(shutil.copytree(recorded, disk / "loop.strobe", ignore=ignored))
        if request.param.startswith("No"):
            with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
        else:
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        yield trace, request.param


def _strobe(*words: object) -> subprocess.CompletedProcess[str]:
    command = [STROBE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)


def _figures(text: str) -> list[str]:
    # The size of the files is another one without tiles, and so is the place.
    of_files = ("size", "Saved", " kB", "bytes per")
    return [line for line in text.splitlines() if not any(each in line for each in of_files)]


def test_a_trace_where_nothing_can_be_written_has_the_same_answers(
    closed_disk: tuple[Path, str], recorded: Path
) -> None:
    trace, _ = closed_disk
    before = sorted(trace.iterdir())
    for verb in _READS:
        sound, found = _strobe(verb, recorded), _strobe(verb, trace)
        assert (found.returncode, found.stderr.count("Traceback")) == (sound.returncode, 0), found.stderr
        assert _figures(found.stdout.replace(str(trace), str(recorded))) == _figures(sound.stdout), verb
    assert sorted(trace.iterdir()) == before


def test_what_cannot_be_written_is_refused_in_one_sentence(
    closed_disk: tuple[Path, str], recorded: Path, tmp_path: Path
) -> None:
    trace, why = closed_disk
    disk = trace.parent
    exported = tmp_path / "out.json"
    assert _strobe("export", recorded, "--to", "chrome", "-o", exported).returncode == 0
    damaged = Path(shutil.copytree(recorded, tmp_path / "damaged.strobe"))
    (damaged / "job.json").write_bytes(b"")
    before = sorted(disk.iterdir())
    for words in (
        ("export", trace, "--to", "chrome", "-o", disk / "out.json"),
        ("import", exported, "-o", disk / "imported.strobe"),
        ("cut", recorded, "-o", disk / "cut.strobe"),
        ("repair", damaged, "-o", disk / "sound.strobe"),
        ("generate", recorded, "-o", disk / "more.strobe", "--ranks", "2", "--spans", "20000"),
    ):
        done = _strobe(*words)
        assert done.returncode not in (0, 1), (words, done.stderr)
        assert "Traceback" not in done.stderr
        said = [line for line in done.stderr.splitlines() if line.startswith("strobe: ")]
        assert len(said) == 1, (words, done.stderr)
        assert why in said[0], words
    assert sorted(disk.iterdir()) == before, "nothing half written is left"


def _workshop(tmp_path: Path, trace: Path) -> Workshop:
    workshop = Workshop(tmp_path)
    workshop.trace = trace
    return workshop


def test_a_disk_that_fills_up_ends_the_folding_and_not_the_program(tmp_path: Path) -> None:
    for disk in mounted(tmp_path, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        workshop = _workshop(tmp_path, disk / "out.strobe")
        workshop.write("program.py", _FOLDED)
        done = workshop.recorded("--trace", "python", "--keep", "3", "program.py", str(disk / "filler"))
        assert (done.stdout, done.returncode) == ("done\n", 0)
        (said,) = done.stderr.splitlines()
        assert said.startswith("strobe: recording stopped, the program goes on: ")
        assert "No space left on device" in said
        assert "recording had stopped: cannot " in _strobe("info", workshop.trace).stdout


def test_a_flight_recorder_on_a_full_disk_states_so_once_and_changes_nothing(tmp_path: Path) -> None:
    for disk in mounted(tmp_path, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        workshop = _workshop(tmp_path, disk / "out.strobe")
        workshop.write("program.py", _ASKS)
        # Its rings take half of the disk: a copy of them does not fit.
        done = workshop.recorded("--flight", "1h", "--trace", "python", "program.py", str(workshop.trace))
        assert (done.stdout, done.returncode) == ("done\n", 3)
        assert done.stderr == "strobe: the flight recorder could not write a trace: No space left on device\n"
        assert not list(disk.glob(".*")), "nothing half written is left"
        with strobe.open(workshop.trace) as trace:
            assert dict(trace.ask("info").rows())["lost"] == "nothing"


def test_a_flight_recorder_whose_folder_is_removed_changes_nothing(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.write("program.py", _REMOVES)
    done = workshop.recorded("--flight", "1h", "--trace", "python", "program.py", str(workshop.trace))
    assert (done.stdout, done.returncode) == ("done\n", 3)
    assert done.stderr == f"strobe: the trace '{workshop.trace}' was removed while the program ran\n"
