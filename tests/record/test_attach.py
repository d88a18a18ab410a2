"""`strobe attach`: programs that run already, in the middle of something, and who may not be attached to."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import strobe
from tests.record.moments.playing import MOMENTS, attached_faults, play
from tests.record.workshop import STROBE, TIMEOUT_S, environment

pytestmark = pytest.mark.every_python
can_be_attached_to = pytest.mark.skipif(sys.version_info < (3, 14), reason="PEP 768 came with 3.14")

WORKING = """
import sys, threading, time
import strobe
counts = {"spin": 0, "step": 0}
def spin(n):
    counts["spin"] += 1
    return sum(range(n))
def work():
    while not over.is_set():
        spin(100)
        time.sleep(0.001)
def train():
    while not over.is_set():
        spin(100)
        strobe.step()
        counts["step"] += 1
        time.sleep(0.002)
def wait():
    sys.stdin.readline()
    over.set()
over = threading.Event()
threads = [threading.Thread(target=work, name="a thread with a long name"), threading.Thread(target=wait, name="waits")]
for each in threads:
    each.start()
print("ready", flush=True)
train()
print("over", [name for name in sys.modules if name.startswith("strobe.record.program.attached")])
sys.exit(7)
"""


@contextmanager
def running(folder: Path, text: str = WORKING, *options: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A program that has printed its first line. Another line on its stdin lets it end."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    command = [sys.executable, *options, "program.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env={**environment(), **variables}, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def attach(folder: Path, *words: int | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [STROBE, "attach", *map(str, words)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


@can_be_attached_to
@pytest.mark.parametrize("name", ["loop", "threads", "child that lives on", "trace function", "exit"])
def test_a_program_does_not_notice_and_its_trace_is_sound(tmp_path: Path, name: str) -> None:
    alone = play(MOMENTS[name], tmp_path / "alone")
    assert attached_faults(MOMENTS[name], alone, tmp_path / "attached", 1_000_000_000) == []


@can_be_attached_to
def test_calls_that_were_open_and_threads_that_ran_are_there(tmp_path: Path) -> None:
    without_strobe = WORKING.replace("import strobe\n", "").replace("strobe.step()", "pass")
    with running(tmp_path, without_strobe) as process:
        done = attach(tmp_path, process.pid, "--for", "500ms", "--keep", "all")
        output, errors = process.communicate("\n", timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/program.strobe\n"), done.stderr
    assert "VERDICT" in done.stderr
    assert (output, errors, process.returncode) == ("over []\n", "", 7)
    trace = strobe.open(tmp_path / "program.strobe")
    assert {row["name"] for row in trace.sql("select name from locations where kind = 'thread'").to_pylist()} == {
        "main thread",
        "a thread with a long name",
        "waits",
    }
    open_calls = trace.sql(
        "select thread, name, start_ns, duration_ns from spans where name in ('<module>', 'train', 'work')"
    ).to_pylist()
    assert {(row["thread"], row["name"]) for row in open_calls} == {
        ("main thread", "<module>"),
        ("main thread", "train"),
        ("a thread with a long name", "work"),
    }
    # From the begin of the window to its end.
    assert len({row["start_ns"] for row in open_calls}) == 1
    assert all(row["duration_ns"] >= 450_000_000 for row in open_calls)
    inner = trace.sql("select distinct depth from spans where name = 'spin' and thread = 'main thread'").to_pylist()
    assert inner == [{"depth": 2}]


# Neither a call of a function nor a loop, so that nothing happens that is recorded.
CALLS_NOTHING = (
    """
import os, time
def work():
"""
    + """\
    if os.access("over", os.F_OK): return
    time.sleep(0.05)
"""
    * 2000
    + """
os.rename("ready.new", "ready")
work()
"""
)


@can_be_attached_to
def test_calls_that_last_longer_than_the_window_are_there(tmp_path: Path) -> None:
    (tmp_path / "ready.new").touch()
    (tmp_path / "program.py").write_text(CALLS_NOTHING)
    with subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, env=environment()) as process:
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        all_done = [attach(tmp_path, process.pid, "--for", f"{ms}ms", "-q", "-o", f"{ms}") for ms in (300, 1)]
        (tmp_path / "over").touch()
    for done, ms in zip(all_done, (300, 1), strict=True):
        assert done.returncode == 0, done.stderr
        calls = strobe.open(tmp_path / f"{ms}.strobe").sql("select name, duration_ns from spans").to_pylist()
        assert {row["name"] for row in calls} == {"<module>", "work"}
        assert all(row["duration_ns"] >= ms * 1_000_000 for row in calls)


TWO = """
import os, sys, time
def of_{number}():
    time.sleep(0.001)
print("ready", flush=True)
while not os.access("over", os.F_OK):
    of_{number}()
print("over")
"""


@can_be_attached_to
def test_several_processes_become_one_trace_and_ranks_have_their_numbers(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    programs = []
    for number in (0, 1):
        (tmp_path / f"program{number}.py").write_text(TWO.format(number=number))
        launched = {**environment(), "PMI_RANK": str(number), "PMI_SIZE": "2"}
        command = [sys.executable, f"program{number}.py"]
        programs.append(subprocess.Popen(command, cwd=tmp_path, env=launched, stdout=pipe, text=True))
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    numbers = [program.pid for program in programs]
    done = attach(tmp_path, *numbers, numbers[0], "--for", "300ms", "-q", "--keep", "all", "-o", "both")
    again = attach(tmp_path, numbers[0], os.getpid(), "--for", "300ms", "-q", "--wait", "300ms")
    (tmp_path / "over").touch()
    assert [program.communicate(timeout=TIMEOUT_S)[0] for program in programs] == ["over\n"] * 2
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/both.strobe\n"), done.stderr
    assert done.stderr == f"strobe: 2 processes are recorded into {tmp_path}/both.strobe\n"
    trace = strobe.open(tmp_path / "both.strobe")
    called = "select distinct p.rank, s.name from spans s join processes p using (process) where s.name like 'of_%'"
    assert {(row["rank"], row["name"]) for row in trace.sql(called).to_pylist()} == {(0, "of_0"), (1, "of_1")}
    # One waits in C code (pytest waits for `strobe attach`): the other is recorded, and what is missing is named.
    assert again.returncode == 0, again.stderr
    assert f"process {os.getpid()} has not come to a point" in again.stderr
    assert list((tmp_path / "program0.strobe").glob(f"process-{numbers[0]}.blocks"))


@can_be_attached_to
def test_whole_steps_are_recorded_and_it_can_be_done_again(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        for number in (7, 4):
            done = attach(tmp_path, process.pid, "--steps", str(number), "-q", "--keep", "all", "-o", f"{number}")
            assert done.returncode == 0, done.stderr
        process.communicate("\n", timeout=TIMEOUT_S)
    assert process.returncode == 7
    for number in (7, 4):
        trace = strobe.open(tmp_path / f"{number}.strobe")
        steps = trace.sql("select count(*) as n from totals where name = 'strobe.step'").to_pylist()
        spins = trace.sql("select count(*) as n from spans where name = 'spin' and thread = 'main thread'").to_pylist()
        assert steps
        # The step that ran when the window opened, and those that were asked for.
        assert number <= spins[0]["n"] <= number + 1


@can_be_attached_to
def test_the_window_ends_without_the_one_who_asked_for_it(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        command = [STROBE, "attach", str(process.pid), "--for", "1s", "-q", "-o", "t"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE) as attaching:
            assert attaching.stderr is not None
            assert b"is recorded into" in attaching.stderr.readline()
            attaching.kill()
        rings = tmp_path / "t.strobe" / f"process-{process.pid}.rings"
        assert rings.exists()
        end = time.monotonic() + TIMEOUT_S
        while rings.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert not rings.exists()
        process.communicate("\n", timeout=TIMEOUT_S)
    assert process.returncode == 7
    trace = strobe.open(tmp_path / "t.strobe")
    assert trace.sql("select end_state from processes").to_pylist() == [{"end_state": "closed"}]


@can_be_attached_to
def test_ctrl_c_ends_the_window(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        command = [STROBE, "attach", str(process.pid), "--for", "1h", "-q", "-o", "t"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE) as attaching:
            assert attaching.stderr is not None
            attaching.stderr.readline()
            attaching.send_signal(signal.SIGINT)
            assert attaching.wait(TIMEOUT_S) == 0
        process.communicate("\n", timeout=TIMEOUT_S)
    assert process.returncode == 7
    assert strobe.open(tmp_path / "t.strobe").sql("select end_state from processes").to_pylist() == [
        {"end_state": "closed"}
    ]


BLOCKED = """
import sys
print("ready", flush=True)
sys.stdin.readline()
print("goes on")
"""


@can_be_attached_to
def test_a_request_that_is_not_taken_is_withdrawn(tmp_path: Path) -> None:
    with running(tmp_path, BLOCKED) as process:
        done = attach(tmp_path, process.pid, "--wait", "300ms")
        assert "has not come to a point where Python code can run for 0.3 s" in done.stderr
        assert done.returncode == 125
        assert process.communicate("\n", timeout=TIMEOUT_S) == ("goes on\n", "")
    assert not list(tmp_path.glob("*.strobe"))


@can_be_attached_to
@pytest.mark.parametrize(
    ("text", "options", "variables", "why"),
    [
        (BLOCKED, ("-X", "disable-remote-debug"), {}, "was started with remote debugging off"),
        (BLOCKED, (), {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}, "was started with remote debugging off"),
        ("import concurrent.interpreters as c\none = c.create()" + BLOCKED + "one.close()", (), {}, "subinterpreters"),
        ("import strobe\nstrobe.start('own', quiet=True)\n" + WORKING, (), {}, "is recorded already"),
    ],
)
def test_who_cannot_be_attached_to(
    tmp_path: Path, text: str, options: tuple[str, ...], variables: dict[str, str], why: str
) -> None:
    with running(tmp_path, text, *options, **variables) as process:
        done = attach(tmp_path, process.pid, "--for", "100ms")
        assert why in done.stderr
        assert done.returncode == 125
        process.communicate("\n", timeout=TIMEOUT_S)
    assert [path.name for path in tmp_path.glob("*.strobe")] in ([], ["own.strobe"])


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="of Pythons that are too old")
def test_an_older_python_is_sampled_instead(tmp_path: Path) -> None:
    with running(tmp_path, BLOCKED) as process:
        done = attach(tmp_path, process.pid)
        name = os.path.basename(os.path.realpath(f"/proc/{process.pid}/exe"))
    minor = sys.version_info.minor
    assert done.stderr == (
        f"strobe: process {process.pid} cannot be attached to: {name} runs Python 3.{minor}, and only Python 3.14 and "
        f"later can be attached to\n  strobe sample {process.pid}\n"
    )
    assert done.returncode == 125


def test_what_is_not_a_python_and_what_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        time.sleep(0.1)  # until it has become that
        done = attach(tmp_path, process.pid)
        process.kill()
    assert done.stderr == f"strobe: process {process.pid} cannot be attached to: sleep is not CPython 3\n"
    assert attach(tmp_path, process.pid).stderr == f"strobe: there is no process {process.pid}\n"
