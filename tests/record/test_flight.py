"""`strobe run --flight`: the last seconds of a run, in a bounded folder, written out when something happens."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import strobe
from tests.record.test_job import job
from tests.record.workshop import STROBE, Workshop, names_of_regions, quality_of

# Steps of known lengths; what they were goes into a file. One is slow.
PROGRAM = """
import sys, threading, time
import strobe

print("ready", flush=True)
seconds, slow_at = float(sys.argv[1]), float(sys.argv[2])
steps, began, slow = open(f"steps-{sys.argv[3]}", "w", buffering=1), time.monotonic(), False

def leaf(n):
    return n

def take(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for n in range(50):
            leaf(n)
        time.sleep(0.001)

number = 0
while time.monotonic() < began + seconds:
    due = not slow and slow_at and time.monotonic() > began + slow_at
    begin = time.monotonic_ns()
    take(1.0 if due else 0.01 + number % 5 * 0.002)
    end = time.monotonic_ns()
    print(begin, end, file=steps)
    slow = slow or due
    number += 1
    strobe.step()
"""
FLIGHT = ("--flight", "2s", "--trace", "python")


def steps_in(trace: Path) -> list[tuple[int, int]]:
    """Begin and end of the calls of `take` in a trace, ns of CLOCK_MONOTONIC."""
    opened = strobe.open(trace)
    zero = json.loads((trace / "job.json").read_text())["zero_ns"]
    (wanted,) = (number for number, name in names_of_regions(opened).items() if name == "take")
    found = []
    for location in range(len(opened.locations)):
        spans = opened.span_arrays(location)
        chosen = (spans["region"] == wanted) & spans["complete"]
        begin = spans["start_ns"][chosen] + zero
        found += zip(begin.tolist(), (begin + spans["duration_ns"][chosen]).tolist(), strict=True)
    return sorted(found)


def assert_holds_the_last_steps(trace: Path, truth: Path, seconds: float) -> None:
    """Every step that the program counted from the first one on that is kept is there, once, with its length."""
    found = steps_in(trace)
    counted = [tuple(map(int, line.split())) for line in truth.read_text().splitlines()]
    counted = [each for each in counted if found[0][0] <= each[1] and each[0] <= found[-1][1]]
    assert next(begin for begin, _ in counted) == counted[0][0]
    assert len(found) == len(counted)
    for (begin, end), (known_begin, known_end) in zip(found, counted, strict=True):
        # The call is within what the program measured around it, but for the call of the clock itself.
        assert known_begin <= begin <= end <= known_end
    assert found[-1][1] - found[0][0] >= seconds * 1e9


def test_a_slow_step_writes_the_last_seconds_and_the_program_goes_on(workshop: Workshop) -> None:
    workshop.write("program.py", PROGRAM)
    done = workshop.recorded(*FLIGHT, "--flight-on", "slow-step:20", "program.py", "7", "4", "0")
    assert done.visible == ("ready\n", "", 0)
    written = workshop.folder / "out-slow-step.strobe"
    for trace in (written, workshop.trace):
        assert_holds_the_last_steps(trace, workshop.folder / "steps-0", 1.5)
        assert not list(trace.glob("*.blocks.*"))
        assert not list(trace.glob("*.rings"))
        for what in ("spans_lost", "records_lost", "chunks_damaged", "bytes_lost"):
            assert quality_of(trace, what) == 0
        quality = {row["what"]: row["text"] for row in strobe.open(trace).quality.to_pylist()}
        assert quality["left_out"].startswith("a flight recorder left out the first ")
    longest = max(end - begin for begin, end in steps_in(written))
    assert longest >= 1e9  # the slow step is in it
    assert (
        "times the median"
        in strobe.open(written).sql("select text from quality where what = 'written_for'").to_pylist()[0]["text"]
    )
    assert strobe.open(written).info.ended.startswith("ran on when this trace was written")
    begins = [min(steps_in(trace))[0] for trace in (written, workshop.trace)]
    assert begins[1] - begins[0] > 0.3e9  # older steps have gone


def test_the_folder_stays_below_its_size_and_a_kill_leaves_a_sound_trace(workshop: Workshop) -> None:
    # About 3 MB a second, from two processes.
    workshop.write("program.py", PROGRAM.replace("range(50)", "range(6000)").replace("time.sleep(0.001)", "pass"))
    workshop.write(
        "two.py",
        """
        import subprocess, sys
        print("ready", flush=True)
        both = [subprocess.Popen([sys.executable, "program.py", "60", "0", str(each)]) for each in (0, 1)]
        for each in both:
            each.wait()
        """,
    )
    size = 12 << 20
    process = workshop.start("--flight", "1h", "--flight-size", str(size), "--trace", "python", "two.py")
    largest, parts, until = 0, set(), time.monotonic() + 15
    while time.monotonic() < until and (len(parts) < 24 or largest < size / 2):
        names = list(workshop.trace.iterdir())
        parts |= {path.name for path in names if ".blocks.0" in path.name}
        used = 0
        for path in names:
            try:
                used += path.stat().st_blocks * 512
            except FileNotFoundError:
                continue
        largest = max(largest, used)
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)  # strobe, too: nobody completes the trace
    process.wait()
    assert len(parts) >= 8
    assert size / 3 < largest <= size
    assert len(list(workshop.trace.glob("*.blocks.*"))) < len(parts)
    opened = strobe.open(workshop.trace)
    assert len(opened.processes) == 3
    for what in ("spans_lost", "chunks_damaged", "bytes_lost"):
        assert quality_of(workshop.trace, what) == 0
    assert opened.sql("select count(*) as n from spans where name = 'leaf'").to_pylist()[0]["n"] > 10_000


def test_a_trace_is_written_on_request_and_for_exceptions_of_threads(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        PROGRAM
        + """
    if number == 50:
        def fails():
            raise MemoryError("as if")
        threading.Thread(target=fails).start()
""",
    )
    process = workshop.start(*FLIGHT, "--signal", "USR1", "program.py", "200", "0", "0")
    oom = workshop.folder / "out-oom.strobe"
    until = time.monotonic() + 150
    while not oom.exists() and time.monotonic() < until:
        time.sleep(0.1)
    done = job(workshop.folder, "record")
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"strobe: the flight recorder wrote {workshop.folder}/out-request.strobe\n"
    process.send_signal(signal.SIGUSR1)
    by_signal = workshop.folder / "out-signal.strobe"
    while not by_signal.exists() and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "MemoryError: as if" in errors
    assert "KeyboardInterrupt" in errors
    for trace in (oom, workshop.folder / "out-request.strobe", by_signal):
        assert len(steps_in(trace)) > 10


def test_an_error_right_after_a_slow_step_has_a_trace_of_its_own(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        PROGRAM
        + """
    if due:
        def fails():
            raise MemoryError("as if")
        threading.Thread(target=fails).start()
""",
    )
    outcome = workshop.recorded("--flight", "30s", "--trace", "python", "program.py", "8", "1.5", "0")
    assert "MemoryError: as if" in outcome.stderr
    reasons = [f"out-{reason}.strobe" for reason in ("oom", "slow-step")]
    assert sorted(each.name for each in workshop.folder.glob("out-*.strobe")) == reasons


@pytest.mark.parametrize("option", ["--max-size=1G", "--min-duration=1ms", "--armed", "--max-overhead=5%"])
def test_what_needs_statistics_does_not_go_with_a_flight_recorder(tmp_path: Path, option: str) -> None:
    (tmp_path / "p.py").touch()
    command = [STROBE, "run", "--flight", "1min", option, "p.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--flight keeps everything in detail for its time" in done.stderr
