"""What cannot work is answered with one clear sentence, and the program's own result is never lost."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from strobe.errors import TraceError
from tests.record.workshop import STROBE, Workshop, environment

PROGRAM = """
import random
def work(n):
    return sum(range(n))
for _ in range(400_000):
    work(random.randrange(100))
print("result", flush=True)
"""


def strobe_lines(text: str) -> list[str]:
    """What strobe itself said on stderr."""
    return [line for line in text.splitlines() if line.startswith("strobe: ")]


def test_a_script_that_does_not_exist_is_named_once(workshop: Workshop) -> None:
    outcome = workshop.recorded("missing.py")
    assert outcome.returncode == 2
    assert outcome.stderr.count("missing.py") == 1, outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_syntax_error_is_the_users_own_traceback_once(workshop: Workshop) -> None:
    workshop.write("program.py", "def f(:\n    pass\n")
    assert workshop.recorded("program.py").visible == workshop.plain("program.py").visible


def test_a_command_that_does_not_exist_is_named(workshop: Workshop) -> None:
    outcome = workshop.recorded("--", "no-such-command")
    assert outcome.returncode == 127
    assert len(strobe_lines(outcome.stderr)) == 1
    assert "no-such-command" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_what_is_no_python_script_is_refused_with_the_way_to_run_it(workshop: Workshop) -> None:
    program = workshop.folder / "program"
    shutil.copy("/bin/true", program)
    for refused, words in (
        (workshop.recorded("./program"), "strobe run -- ./program"),
        (workshop.recorded("torchrun.nowhere", "program.py"), "no such script or command: 'torchrun.nowhere'"),
    ):
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    assert workshop.recorded("--", "./program").returncode == 0
    workshop.write("script.py", "")
    reading = subprocess.run(
        [STROBE, "script.py"], cwd=workshop.folder, capture_output=True, text=True, env=environment()
    )
    assert (reading.returncode, "strobe run script.py" in reading.stderr) == (2, True), reading.stderr


def test_options_that_had_no_effect_are_told_at_the_end(workshop: Workshop) -> None:
    workshop.write("program.py", "print('result')")
    words = [STROBE, "run", "--lines", "nowhere.f", "program.py"]
    named = environment({"STROBE_SAMPEL": "100"})
    done = subprocess.run(words, cwd=workshop.folder, capture_output=True, text=True, env=named)
    assert (done.stdout, done.returncode) == ("result\n", 0)
    assert "STROBE_SAMPEL in the environment is not an option of strobe" in done.stderr
    shown = " ".join(done.stderr.split())
    assert "--lines nowhere.f: no line was counted, because no function of that name ran" in shown


def test_nothing_to_run_is_said(workshop: Workshop) -> None:
    done = subprocess.run([STROBE, "run"], cwd=workshop.folder, capture_output=True, text=True, env=environment())
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


@pytest.mark.parametrize("where", ["/proc/nowhere/out.strobe", "file.txt/out.strobe"])
def test_an_output_folder_that_cannot_be_made_is_said_in_one_sentence(workshop: Workshop, where: str) -> None:
    workshop.write("file.txt", "")
    workshop.write("program.py", "print('result')")
    workshop.trace = Path(where)
    outcome = workshop.recorded("program.py")
    assert len(strobe_lines(outcome.stderr)) == 1, outcome.stderr
    assert "out.strobe" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_an_existing_trace_is_never_overwritten(workshop: Workshop) -> None:
    workshop.write("program.py", "print('result')")
    for _ in range(3):
        assert workshop.recorded("program.py").returncode == 0
    assert sorted(path.name for path in workshop.folder.glob("*.strobe")) == [
        "out-2.strobe",
        "out-3.strobe",
        "out.strobe",
    ]


@pytest.mark.parametrize("verb", ["info", "summary", "steps", "operators", "profile"])
@pytest.mark.parametrize("what", ["missing", "a file", "an empty folder"])
def test_something_that_is_no_trace_is_said_in_one_sentence(workshop: Workshop, verb: str, what: str) -> None:
    path = workshop.folder / "thing.strobe"
    if what == "a file":
        path.write_bytes(b"\x89PNG\r\n")
    elif what == "an empty folder":
        path.mkdir()
    done = subprocess.run([STROBE, verb, str(path)], capture_output=True, text=True, env=environment())
    assert done.returncode not in (0, 1)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= 2
    assert "thing.strobe" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_truncated_block_file_opens_up_to_its_last_sound_block(workshop: Workshop, share: float) -> None:
    workshop.write("program.py", "def work(n): return n\nfor n in range(100_000): work(n)")
    workshop.recorded("program.py")
    (blocks,) = workshop.trace.glob("process-*.blocks")
    for tiles in workshop.trace.glob("*.tiles"):
        tiles.unlink()
    os.truncate(blocks, int(blocks.stat().st_size * share))
    done = subprocess.run([STROBE, "info", str(workshop.trace)], capture_output=True, text=True, env=environment())
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 3
    if share > 0:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("position", [0.1, 0.5, 0.9])
def test_a_damaged_block_file_never_crashes_the_reader(workshop: Workshop, position: float) -> None:
    workshop.write("program.py", "def work(n): return n\nfor n in range(100_000): work(n)")
    workshop.recorded("program.py")
    (blocks,) = workshop.trace.glob("process-*.blocks")
    content = bytearray(blocks.read_bytes())
    start = int(len(content) * position)
    content[start : start + 64] = os.urandom(64)
    blocks.write_bytes(content)
    done = subprocess.run([STROBE, "info", str(workshop.trace)], capture_output=True, text=True, env=environment())
    assert done.returncode >= 0, "the reader died by a signal"
    assert "Traceback" not in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that holds one ring and little more."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1300k", "tmpfs", folder], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"mounting a small tmpfs needs root: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_stops_the_recording_and_not_the_program(workshop: Workshop, small_disk: Path) -> None:
    workshop.write("program.py", PROGRAM)
    workshop.trace = small_disk / "out.strobe"
    outcome = workshop.recorded("program.py")
    assert (outcome.stdout, outcome.returncode) == ("result\n", 0)
    said = strobe_lines(outcome.stderr)
    assert len(said) == 1, outcome.stderr
    assert "No space left" in said[0] or "full" in said[0]


def fill(folder: Path) -> None:
    """Write until nothing fits any more."""
    with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_disk_that_is_full_from_the_start_stops_nothing(workshop: Workshop, small_disk: Path) -> None:
    fill(small_disk)
    workshop.write("program.py", "print('result', flush=True)")
    workshop.trace = small_disk / "out.strobe"
    outcome = workshop.recorded("program.py")
    assert "Traceback" not in outcome.stderr
    assert len(strobe_lines(outcome.stderr)) == 1, outcome.stderr
    assert outcome.stdout in ("result\n", ""), "either it runs, or strobe refuses before it starts"
    assert (outcome.returncode == 0) == (outcome.stdout == "result\n")


def test_a_full_disk_fills_up_while_many_threads_record(workshop: Workshop, small_disk: Path) -> None:
    """Every new thread maps a ring: a ring that does not fit must be no SIGBUS."""
    workshop.write(
        "program.py",
        """
        import threading
        def work(n):
            return n
        def run():
            for n in range(5000):
                work(n)
            barrier.wait()
        barrier = threading.Barrier(40)
        threads = [threading.Thread(target=run) for _ in range(40)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print("result", flush=True)
        """,
    )
    workshop.trace = small_disk / "out.strobe"
    outcome = workshop.recorded("program.py")
    assert (outcome.stdout, outcome.returncode) == ("result\n", 0)


def test_a_trace_folder_removed_while_recording_harms_nothing(workshop: Workshop) -> None:
    workshop.write("program.py", "import shutil\n" + PROGRAM.replace("print(", "shutil.rmtree('out.strobe')\nprint("))
    outcome = workshop.recorded("program.py")
    assert (outcome.stdout, outcome.returncode) == ("result\n", 0)
    assert "Traceback" not in outcome.stderr


def test_opening_names_the_problem_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        strobe.open(tmp_path / "nothing.strobe")
    assert "nothing.strobe" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2
