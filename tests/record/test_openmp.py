"""OpenMP: what threads wait at barriers and for locks equals what they measured themselves (Intel's and GCC's)."""

import ctypes.util
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import strobe
from strobe.present.summary import summarise
from tests.record.workshop import Workshop

try:
    FILES = importlib.metadata.files("intel-openmp") or []
except importlib.metadata.PackageNotFoundError:
    pytest.skip("intel-openmp is not installed: uv pip install --group openmp", allow_module_level=True)
(RUNTIME,) = (Path(str(file.locate())).resolve() for file in FILES if file.name == "libiomp5.so")
HERE = Path(__file__).parent / "openmp"
STEPS, THREADS = 10, 4


def line_of(text: str, program: str = "threads.c") -> int:
    """The first line of a program with a text."""
    lines = (HERE / program).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs, built by GCC, and Intel's runtime under the name of GCC's."""
    return compile_programs(tmp_path_factory.mktemp("openmp"))


def compile_programs(folder: Path) -> Path:
    """Compile the programs into a folder; return it."""
    for name in ("threads", "tasks", "few_tasks", "busy"):
        subprocess.run(["gcc", "-g", "-O1", "-fopenmp", str(HERE / f"{name}.c"), "-o", str(folder / name)], check=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "libgomp.so.1").symlink_to(RUNTIME)
    (folder / "gomp").mkdir()  # the system's own
    return folder


def run(
    built: Path, folder: Path, *words: str, plain: bool = False, runtime: str = "lib", **variables: str
) -> tuple[Workshop, str]:
    """What a program prints, recorded or not; it exits with 3. runtime: lib (Intel's) or gomp (GCC's)."""
    workshop = Workshop(folder)
    command = ["--", str(built / words[0]), *words[1:]]
    if runtime == "gomp" and not ctypes.util.find_library("gomp"):
        pytest.skip("GCC's libgomp is not installed")
    env = {"LD_LIBRARY_PATH": str(built / runtime), **variables}
    done = workshop.plain(*command, env=env) if plain else workshop.recorded(*command, env=env)
    assert (done.returncode, done.stderr) == (3, "")
    return workshop, done.stdout


def rows(table: strobe.Table, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of some columns."""
    return [tuple(row[name] for name in columns) for row in table.to_pylist()]


def own_waits(printed: str, column: int) -> list[float]:
    """The medians of what each thread measured in a step, in order of size: barriers (1), critical section (2)."""
    found: dict[str, list[int]] = {}
    for line in printed.splitlines():
        words = line.split()
        found.setdefault(words[0], []).append(int(words[column]))
    return sorted(median(each) for each in found.values())


def waits_of(trace: strobe.Trace, state: str) -> list[float]:
    """The same of the trace: which worker is which thread is up to the runtime."""
    calls: dict[int, Counter[int]] = {location: Counter() for location in range(THREADS)}
    for each, location, start_ns, wait_ns in rows(trace.waits(by="wait"), "state", "location", "start_ns", "wait_ns"):
        if each == state:
            calls[location][start_ns] += wait_ns
    return sorted(median([*each.values(), *[0] * (STEPS - len(each))]) for each in calls.values())


PLANTED = [(name, runtime) for runtime in ("lib", "gomp") for name in ("imbalance", "critical", "serial")]


@pytest.fixture(scope="module", params=PLANTED, ids="-".join)
def planted(
    request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, strobe.Trace, str]]:
    """Each program's name, trace, and what it printed."""
    name, runtime = request.param
    workshop, printed = run(built, tmp_path_factory.mktemp("run"), "threads", name, str(STEPS), runtime=runtime)
    with strobe.open(workshop.trace) as trace:
        yield name, trace, printed


def test_waits_are_those_that_the_threads_measured(planted: tuple[str, strobe.Trace, str]) -> None:
    _, trace, printed = planted
    for state, column in (("thread_barrier", 1), ("lock_contention", 2)):
        for ours, theirs in zip(waits_of(trace, state), own_waits(printed, column), strict=True):
            assert abs(ours - theirs) <= 0.1 * theirs + 1_000_000


def test_waits_of_folded_steps_are_counted_as_all_others(built: Path, tmp_path: Path) -> None:
    workshop, printed = run(built, tmp_path, "threads", "imbalance", "2500", "4", STROBE_KEEP="1")
    own = sum(int(line.split()[1]) for line in printed.splitlines())
    with strobe.open(workshop.trace) as trace:
        (kept,) = rows(trace.sql("select count(*) as n from spans"), "n")
        waits = {row["state"]: row for row in trace.waits().to_pylist()}
    assert kept[0] < 2 * THREADS * 2500  # parallel and its barrier
    assert waits["thread_barrier"]["wait_ns"] == pytest.approx(own, rel=0.05)
    # The last one to come does not wait, and no worker is idle before the first region or behind the last.
    assert waits["thread_barrier"]["waits"] == (THREADS - 1) * 2500
    assert waits["idle_worker"]["waits"] == (THREADS - 1) * 2499


def test_the_factors_of_talp_are_made_of_what_the_threads_measured(planted: tuple[str, strobe.Trace, str]) -> None:
    """Of workers that are idle while one thread works, and of threads that wait for the longest part of a region."""
    name, trace, printed = planted
    rows_of = {row["factor"]: row for row in trace.efficiency(model="talp").to_pylist()}
    found = {factor: row["value"] for factor, row in rows_of.items()}
    steps, elapsed = rows_of["omp_load_balance"]["steps"], THREADS * rows_of["omp_load_balance"]["elapsed_ns"]
    waited = (
        sum(own_waits(printed, 1)) * steps
    )  # what the threads wait for the last one is D but for its own time there
    parts = [found[f"omp_{each}"] for each in ("scheduling_efficiency", "load_balance", "serialization_efficiency")]
    assert found["omp_parallel_efficiency"] == pytest.approx(parts[0] * parts[1] * parts[2], abs=1e-9)
    assert found["omp_load_balance"] == pytest.approx(1 - waited / (parts[0] * elapsed), abs=0.1)
    assert (found["omp_serialization_efficiency"] < 0.6) == (name == "serial")


def test_every_thread_has_a_region_for_each_step_with_its_place(planted: tuple[str, strobe.Trace, str]) -> None:
    name, trace, _ = planted
    regions = trace.sql(
        "select locations.name as thread, regions.file as place, count(*) as calls, sum(duration_ns) as ns from spans"
        " join regions using (region) join locations using (location) where regions.name = 'parallel' group by 1, 2"
    )
    found = rows(regions, "thread", "place", "calls", "ns")
    assert len({thread for thread, *_ in found}) == THREADS
    # The runtime gives its threads names, too, which they have at their end.
    assert sum(thread.startswith("OpenMP worker ") for thread, *_ in found) == THREADS - 1
    assert {calls for *_, calls, _ in found} == {STEPS}
    assert {place.partition(" (")[0] for _, place, *_ in found} == {name}
    # No worker's region goes on while there is none: it ends with that of its primary thread.
    assert max(found, key=lambda row: row[3])[0].startswith("OpenMP worker") is False


def test_the_verdict_has_the_planted_cause_and_its_place(planted: tuple[str, strobe.Trace, str]) -> None:
    name, trace, _ = planted
    verdict = summarise(trace).verdict
    kind = {"imbalance": "imbalanced", "critical": "lock-bound", "serial": "serial-bound"}[name]
    critical = {line_of("#pragma omp critical"), line_of("#pragma omp critical") + 1}
    inside = {line_of(f"static void {name}(") + offset for offset in range(4)}
    if verdict.kind == "starved":
        pytest.skip("other programs had the cores, and the verdict is about them")
    assert verdict.kind == kind
    assert any(f"threads.c:{line})" in verdict.text for line in (critical if name == "critical" else inside))


@pytest.mark.parametrize("runtime", ["lib", "gomp"])
def test_tasks_and_work_are_spans_and_no_wait_of_the_threads_that_run_them(
    built: Path, tmp_path: Path, runtime: str
) -> None:
    """One thread makes 40 tasks of 2 ms and the others run them at the barrier: that is not waiting."""
    workshop, printed = run(built, tmp_path, "tasks", runtime=runtime)
    tasks, ns, work, locks = (int(word) for word in printed.split())
    with strobe.open(workshop.trace) as trace:
        table = trace.sql(
            "select regions.name as name, count(*) as calls, sum(duration_ns) as ns from spans"
            " join regions using (region) where regions.paradigm = 'openmp' group by 1"
        )
        calls, lasted = dict(rows(table, "name", "calls")), dict(rows(table, "name", "ns"))
        waited = sum(ns for state, ns in rows(trace.waits(), "state", "wait_ns") if state == "thread_barrier")
    # The loop ends with a barrier, one is explicit, and one ends the region.
    assert calls["task"] == tasks
    if runtime == "lib":  # GCC's functions of loops and singles are left alone
        assert (calls["loop"], calls["single"]) == (work, 1)
    assert (calls["barrier"], calls["implicit barrier"]) == (2 * THREADS, THREADS)
    assert calls["lock"] == calls["wait for lock"] == locks
    assert abs(int(lasted["task"]) - ns) <= 0.1 * ns + 1_000_000
    assert waited <= lasted["barrier"] + lasted["implicit barrier"] - ns // 2


@pytest.mark.parametrize("runtime", ["lib", "gomp"])
def test_threads_without_a_task_while_others_run_theirs_are_named(built: Path, tmp_path: Path, runtime: str) -> None:
    workshop, printed = run(built, tmp_path, "few_tasks", runtime=runtime)
    with strobe.open(workshop.trace) as trace:
        (row,) = (row for row in trace.waits().to_pylist() if row["state"] == "no_task")
        verdict = summarise(trace).verdict
    # Who gets no core while a task is left to begin waits for the machine, and the program cannot tell.
    assert 0.7 * int(printed) <= row["wait_ns"] <= 1.1 * int(printed)
    assert verdict.kind == "imbalanced"
    lines = {line_of("static void step(", "few_tasks.c") + offset for offset in range(4)}
    assert "threads have no task" in verdict.text
    assert any(f"step (few_tasks.c:{line})" in verdict.text for line in lines)


@pytest.mark.parametrize("runtime", ["lib", "gomp"])
def test_regions_of_some_microseconds_cost_their_start_and_end(built: Path, tmp_path: Path, runtime: str) -> None:
    workshop, _ = run(built, tmp_path, "threads", "tiny", "20000", runtime=runtime, STROBE_KEEP="1")
    with strobe.open(workshop.trace) as trace:
        verdict = summarise(trace).verdict
    if verdict.kind == "starved":
        pytest.skip("other programs had the cores, and the verdict is about them")
    assert verdict.kind == "overhead-bound"
    (count,) = re.findall(r"([\d\u2009\u202f ]+) regions of ", verdict.text)
    assert 10_000 <= int(re.sub(r"\D", "", count)) <= 20_000  # without those in which a thread lost its core
    assert "tiny (threads.c:" in verdict.text


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Other programs want every core twice."""
    command = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(2 * len(os.sched_getaffinity(0)))]
    yield
    for each in others:
        each.kill()
        each.wait()


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.parametrize("name", ["even", "tasks", "uneven"])
def test_time_without_a_core_is_no_fault_of_the_program(name: str, built: Path, tmp_path: Path) -> None:
    workshop, _ = run(built, tmp_path, "busy", name)
    with strobe.open(workshop.trace) as trace:
        verdict = summarise(trace).verdict
        ((primary,),) = rows(trace.sql("select name from locations where location = 0"), "name")
    if name == "uneven":
        assert verdict.kind == "imbalanced"
        assert verdict.share == pytest.approx(0.5 / 1.5, abs=0.15)  # one waits for half of what the other computes
        assert verdict.text.endswith(f"most of it for {primary}")
    else:
        assert verdict.kind in ("compute-bound", "starved")
        assert f"in parallel regions, most in {name} (busy.c:" in verdict.text


def test_a_task_that_waits_for_another_one_is_open_meanwhile(built: Path, tmp_path: Path) -> None:
    """On whatever thread: in each step a task waits for the one that it has made."""
    workshop, _ = run(built, tmp_path, "few_tasks")
    with strobe.open(workshop.trace) as trace:
        table = trace.sql(
            "select count(*) as n, max(duration_ns) as longest from spans join regions using (region)"
            " where regions.name = 'task'"
        )
        ((calls, longest),) = rows(table, "n", "longest")
    assert calls == 4 * 10
    assert longest > 21_000_000


def test_what_the_program_prints_and_returns_is_its_own(built: Path, tmp_path: Path) -> None:
    plain, recorded = (run(built, tmp_path, "tasks", plain=plain)[1].split() for plain in (True, False))
    assert [plain[0], *plain[2:]] == [recorded[0], *recorded[2:]]  # all but what it measures


def test_a_tool_of_the_users_comes_first(built: Path, tmp_path: Path) -> None:
    """Tools named before stay in the list, and OMP_TOOL=disabled keeps every tool out, ours too."""
    done = Workshop(tmp_path).recorded("--", shutil.which("env") or "env", env={"OMP_TOOL_LIBRARIES": "/opt/a.so"})
    (listed,) = (line for line in done.stdout.splitlines() if line.startswith("OMP_TOOL_LIBRARIES="))
    first, *others = listed.partition("=")[2].split(os.pathsep)
    assert first == "/opt/a.so"
    assert [Path(other).name for other in others] == ["libstrobe_ompt.so"]
    other = tmp_path / "disabled"
    other.mkdir()
    workshop, _ = run(built, other, "tasks", OMP_TOOL="disabled")
    with strobe.open(workshop.trace) as trace:
        assert trace.sql("select count(*) as n from regions where paradigm = 'openmp'").to_pylist() == [{"n": 0}]
