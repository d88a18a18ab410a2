"""A run that is being recorded: `strobe top`, the server's answers and its metrics grow with it."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

PROGRAM = """
import sys, time

def work():
    end = time.perf_counter() + 0.004
    while time.perf_counter() < end:
        pass

def step():
    work()
    time.sleep(0.002)

while not __import__("os").path.exists("stop"):
    step()
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """The trace of a program that runs steps of at least 6 ms until the test is over."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "strobe", "run", "--quiet", "-o", "t.strobe", "program.py"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        yield tmp_path / "t.strobe"
        (tmp_path / "stop").touch()
        assert process.wait(60) == 0


def top(trace: Path, *words: str) -> str:
    """What `strobe top` prints."""
    command = [sys.executable, "-m", "strobe", "top", str(trace), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def until_steps(trace: Path, least: int) -> dict[str, object]:
    """The state of the run, once it has so many steps."""
    for _ in range(200):
        if trace.is_dir() and any(trace.glob("*.blocks")):
            now: dict[str, object] = json.loads(top(trace, "--json", "--once"))
            paces = now["paces"]
            assert isinstance(paces, list)
            if paces and paces[0]["steps"] >= least:
                return now
        time.sleep(0.1)
    raise AssertionError(f"there were never {least} steps")


def test_top_shows_the_steps_of_a_run_while_it_is_being_recorded(running: Path) -> None:
    now = until_steps(running, 100)
    assert now["running"] is True
    (pace,) = now["paces"]  # type: ignore[misc]
    assert pace["median_ns"] >= 6_000_000
    assert 0 < pace["recent"] <= pace["steps"]
    later = until_steps(running, pace["steps"] + 50)
    assert later["duration_ns"] > now["duration_ns"]  # type: ignore[operator]
    text = top(running)
    assert "still running" in text
    assert re.search(r"step `.*step.*`: median \d", text)
    assert re.search(r"\d steps, [\d.]+ per second", text)


def test_top_goes_on_until_the_run_ends(running: Path) -> None:
    until_steps(running, 50)
    command = [sys.executable, "-m", "strobe", "top", str(running), "--json", "--every", "200ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        looks = [json.loads(process.stdout.readline()) for _ in range(3)]
        (running.parent / "stop").touch()
        looks += [json.loads(line) for line in process.stdout]
    assert process.returncode == 0
    counts = [look["paces"][0]["steps"] for look in looks]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert looks[-1]["running"] is False
    assert looks[-1]["ended"] == "ended with exit code 0"


def test_the_server_has_more_of_the_run_each_second(running: Path) -> None:
    until_steps(running, 50)
    command = [sys.executable, "-m", "strobe", "view", str(running), "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        address = next(
            word for stream in (server.stdout, server.stderr) for word in stream.readline().split() if "http:" in word
        )
        try:
            seen = []
            for _ in range(3):
                answer = httpx.get(f"{address}metrics")
                assert answer.headers["content-type"].startswith("application/openmetrics-text")
                assert answer.text.endswith("# EOF\n")
                seen.append(int(re.findall(r"^strobe_steps_total\{.*\} (\d+)$", answer.text, re.MULTILINE)[0]))
                time.sleep(1.2)
            assert seen[0] < seen[1] < seen[2]
            meta = httpx.get(f"{address}api/meta").json()
            assert meta["ended"].startswith("still running")
            time.sleep(1.2)
            assert httpx.get(f"{address}api/meta").json()["end_ns"] > meta["end_ns"]
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()


def test_metrics_of_a_run_are_openmetrics(running: Path) -> None:
    until_steps(running, 50)
    text = top(running, "--openmetrics")
    lines = text.splitlines()
    assert lines[-1] == "# EOF"
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    for line in lines[:-1]:
        assert re.fullmatch(r"# (TYPE|UNIT|HELP) \S+ .+|strobe_\w+\{(\w+=\"[^\"]*\",?)+\} [\d.e+-]+", line), line
    (median,) = re.findall(r'^strobe_step_seconds\{.*quantile="0.5"\} (.+)$', text, re.MULTILINE)
    assert float(median) >= 0.006
