"""A disk that fills up, fails or becomes read-only, a trace that is removed or cut short while the program runs.

The program must not notice, whatever its processes are; the trace up to there opens; one sentence says what is missing.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import Outcome, Workshop, quality_of, spans_of

# What happens to the storage happens in the middle, by the program's own hand. Then it goes on in every way there is.
# Its only loops are those that call something: iterations of others would be recorded, and lost, too.
PROGRAM = """
import collections, functools, glob, os, shutil, subprocess, sys, threading, time
what, where = sys.argv[1:]
def early(n):
    return n
def late(n):
    return n
def many():
    for n in range(150_000):
        late(n)
for n in range(40_000):
    early(n)
if what == "full":
    late(0)  # so that its name is on the disk before
time.sleep(0.1)
traces = glob.glob(where + "/*.strobe")
for trace in traces:
    if what == "removed":
        shutil.rmtree(trace)
    for rings in glob.glob(trace + "/*.rings"):
        if what == "cut short":
            os.truncate(rings, 0)
    if what == "read-only":
        os.sync()  # what is written down already may be written again only through the disk
        with open(os.environ["BREAK_THE_DISK"], "w") as file:
            file.write("broken by the test")
    if what == "full":
        with open(where + "/filler", "wb", buffering=0) as file:
            try:
                collections.deque(iter(functools.partial(file.write, bytes(4096)), 0), maxlen=0)
            except OSError:
                pass
many()
one, other = threading.Thread(target=many), threading.Thread(target=many)
one.start(), other.start()
one.join(), other.join()
child = os.fork()
if child == 0:
    many()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(subprocess.run([sys.executable, "child.py"], capture_output=True, text=True))
sys.exit(3)
"""
CHILD = "def late(n): return n\nfor n in range(1000): late(n)\nprint('child')\n"


def told(outcome: Outcome) -> list[str]:
    """What strobe said on stderr; the program itself says nothing there."""
    lines = outcome.stderr.splitlines()
    assert all(line.startswith("strobe: ") for line in lines), outcome.stderr
    return lines


def recorded_on(workshop: Workshop, what: str, where: Path, env: dict[str, str] | None = None) -> Outcome:
    """Run the program with its trace at `where`; it must be what it is without strobe."""
    workshop.write("program.py", PROGRAM)
    workshop.write("child.py", CHILD)
    workshop.trace = where / "out.strobe"
    plain = workshop.plain("program.py", what, "/nowhere", env=env)
    outcome = workshop.recorded("program.py", what, str(where), env=env)
    assert (outcome.stdout, outcome.returncode) == (plain.stdout, plain.returncode) != ("", 0)
    assert plain.stderr == ""
    return outcome


def endings(trace: Path) -> list[str]:
    """What a trace says about the ends of its processes."""
    with strobe.open(trace) as opened:
        rows = opened.quality.to_arrow().to_pylist()
    return [str(row["text"]) for row in rows if row["what"] == "ended"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory that holds a few rings."""
    yield from mounted(tmp_path, "-t", "tmpfs", "-o", "size=3500k", "tmpfs")


@pytest.fixture
def real_disk(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A file system of its own that becomes read-only with its first error, and the file that causes one."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(24 << 20)
    for tool in ("mkfs.ext4", "losetup"):
        if shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
            pytest.skip(f"a file system that fails needs {tool}")
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", image], check=True)
    loop = subprocess.run(["/usr/sbin/losetup", "-f", "--show", image], capture_output=True, text=True)
    if loop.returncode:
        pytest.skip(f"a file system that fails needs a loop device: {loop.stderr.strip()}")
    device = loop.stdout.strip()
    try:
        for folder in mounted(tmp_path, "-o", "errors=remount-ro,nodelalloc", device):
            trigger = Path(f"/sys/fs/ext4/{Path(device).name}/trigger_fs_error")
            if not trigger.exists():
                pytest.skip("this kernel cannot make a file system fail")
            yield folder, str(trigger)
    finally:
        subprocess.run(["/usr/sbin/losetup", "-d", device], check=True)


def mounted(place: Path, *words: str) -> Iterator[Path]:
    """Mount something for as long as a test lasts."""
    folder = place / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", *words, folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting a file system needs root: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_ring_file_that_is_cut_short_ends_the_recording_and_not_the_program(workshop: Workshop) -> None:
    outcome = recorded_on(workshop, "cut short", workshop.folder)
    assert len(told(outcome)) == 1, outcome.stderr
    assert "it was cut short, or its disk failed" in outcome.stderr
    # All that was in the block file is there, nothing that was made of the lost ring; the children are whole.
    assert 0 <= spans_of(outcome.trace, "early") <= 40_000
    assert spans_of(outcome.trace, "late") == 150_000 + 1000
    (stopped,) = (text for text in endings(outcome.trace) if "had stopped" in text)
    assert stopped.startswith("ended with exit code 3; recording had stopped: cannot write ")


def test_a_disk_that_becomes_read_only_ends_the_recording_and_not_the_program(
    workshop: Workshop, real_disk: tuple[Path, str]
) -> None:
    folder, trigger = real_disk
    outcome = recorded_on(workshop, "read-only", folder, {"BREAK_THE_DISK": trigger})
    said = told(outcome)
    assert said[0].startswith("strobe: recording stopped, the program goes on: cannot write ")
    assert said[1:] == [f"strobe: the trace is not complete: Read-only file system ({outcome.trace})"][: len(said) - 1]
    assert spans_of(outcome.trace, "early") == 40_000
    assert spans_of(outcome.trace, "late") <= 450_000


def test_a_disk_that_fills_up_costs_what_did_not_fit(workshop: Workshop, small_disk: Path) -> None:
    outcome = recorded_on(workshop, "full", small_disk)
    said = told(outcome)
    assert "No space left on device" in said[0]
    assert "the trace is not complete" in " ".join(said[1:]) or len(said) == 1
    assert spans_of(outcome.trace, "early") == 40_000
    # Threads that begin later have no buffer; the main thread's calls are there, or stated as lost: two records each.
    late = spans_of(outcome.trace, "late")
    assert 1 < late < 150_000
    assert quality_of(outcome.trace, "records_lost") == 2 * (150_001 - late)
    (ended,) = endings(outcome.trace)
    assert "recording had stopped: cannot " in ended
    assert "No space left on device; complete up to " in ended


def test_a_trace_that_is_removed_is_missed_in_one_sentence(workshop: Workshop) -> None:
    outcome = recorded_on(workshop, "removed", workshop.folder)
    assert told(outcome) == [f"strobe: the trace '{outcome.trace}' was removed while the program ran"]
