"""Programs without Python: what is sampled and waited for equals what they measured themselves."""

import subprocess
from pathlib import Path

import pytest

import strobe
from strobe.present.summary import summarise
from tests.record.workshop import Workshop

HERE = Path(__file__).parent / "threads"
# Of times that add up to some hundred ms: a sample's period (10 ms where the kernel ticks 100 times a second) for each
# of a few threads.
CLOSE_NS = 60e6


def compiled(workshop: Workshop, name: str) -> str:
    """The program NAME.c of this test's folder."""
    path = workshop.folder / name
    subprocess.run(["gcc", "-O2", "-g", "-pthread", str(HERE / f"{name}.c"), "-o", str(path)], check=True)
    return str(path)


def measured(stdout: str) -> dict[str, int]:
    """What a program printed of its own clocks, ns."""
    return {name: int(ns) for name, ns in map(str.split, stdout.splitlines())}


def recorded(workshop: Workshop, name: str, *arguments: str) -> tuple[strobe.Trace, dict[str, int]]:
    """Its trace, and what it knows itself."""
    done = workshop.recorded("--", compiled(workshop, name), *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return strobe.open(done.trace), measured(done.stdout)


def samples(trace: strobe.Trace, column: str) -> dict[str, int]:
    """A column of `strobe samples` by function."""
    return {row["name"]: row[column] for row in trace.samples().to_pylist()}


def test_functions_have_their_cpu_time_and_a_contended_lock_its_waits(workshop: Workshop) -> None:
    trace, known = recorded(workshop, "contended")
    ran, waited = samples(trace, "native_ns"), samples(trace, "lock_ns")
    # Which of them runs when the kernel's clock ticks is chance, and not quite: threads wake at ticks, too.
    assert ran["prepare"] + ran["update_table"] == pytest.approx(known["prepare"] + known["update_table"], abs=CLOSE_NS)
    assert ran["update_table"] > ran["prepare"] > 0
    assert waited["pthread_mutex_lock(table_lock)"] == pytest.approx(known["waited"], abs=5e6)
    verdict = summarise(trace).verdict
    assert verdict.kind == "lock-bound"
    assert "pthread_mutex_lock(table_lock), called by work (contended.c:21)" in verdict.text


def test_a_lock_that_many_hold_for_a_moment_is_named_with_its_caller_and_share(workshop: Workshop) -> None:
    trace, known = recorded(workshop, "short_holds", "shared")
    verdict = summarise(trace).verdict
    assert verdict.kind == "lock-bound"
    assert verdict.share == pytest.approx(known["waited"] / known["lasted"], abs=0.05)
    assert "pthread_mutex_lock(counts_lock), called by count_words (short_holds.c:28)" in verdict.text


def test_locks_that_are_free_are_not_named(workshop: Workshop) -> None:
    trace, _ = recorded(workshop, "short_holds", "own")
    assert "lock" not in summarise(trace).verdict.text


def test_a_serial_part_is_named(workshop: Workshop) -> None:
    trace, known = recorded(workshop, "serial")
    ran = samples(trace, "native_ns")
    for function in ("assemble", "solve"):
        assert ran[function] == pytest.approx(known[function], abs=CLOSE_NS)
    verdict = summarise(trace).verdict
    assert verdict.kind == "compute-bound"
    assert "in assemble (serial.c:10)" in verdict.text
    assert verdict.share is not None
    assert verdict.share == pytest.approx(known["serial"] / known["whole"], abs=0.1)


def test_a_thread_with_more_work_keeps_others_in_the_barrier(workshop: Workshop) -> None:
    trace, known = recorded(workshop, "imbalanced")
    waited = sum(known[f"waited{thread}"] for thread in range(3))
    assert samples(trace, "waiting_ns")["pthread_barrier_wait(barrier)"] == pytest.approx(waited, abs=5e6)
    threads = {row["location"]: row["native_ns"] for row in trace.samples(by="thread").to_pylist()}
    computed = sorted(known[f"computed{thread}"] for thread in range(3))
    assert sorted(threads.values())[-3:] == pytest.approx(computed, abs=2e6)
    verdict = summarise(trace).verdict
    assert verdict.kind == "imbalanced"
    assert "in pthread_barrier_wait(barrier), called by work (imbalanced.c:20)" in verdict.text
    assert "which computes most in relax_cells (imbalanced.c:11)" in verdict.text


def test_a_thread_that_is_joined_late_is_named_with_its_work(workshop: Workshop) -> None:
    trace, known = recorded(workshop, "uneven_parts")
    verdict = summarise(trace).verdict
    assert verdict.kind == "imbalanced"
    assert verdict.share == pytest.approx(1 - known["mean"] / known["most"], abs=0.05)
    assert "it is part3, which computes most in sort_rows (uneven_parts.c:15)" in verdict.text


def test_only_what_the_main_thread_joins_is_said_of_it(workshop: Workshop) -> None:
    trace, _ = recorded(workshop, "uneven_parts", "manager")
    text = summarise(trace).verdict.text
    assert "of its time in pthread_join" not in text, text


def test_a_thread_that_others_meet_late_is_named_whoever_is_joined_first(workshop: Workshop) -> None:
    """They meet by means of their own, of which nothing is recorded."""
    for _ in range(3):  # who gets no core for most of the time is not late by its own fault
        trace, known = recorded(workshop, "uneven_parts", "meet")
        verdict = summarise(trace).verdict
        if verdict.kind == "imbalanced":
            break
    assert verdict.kind == "imbalanced"
    assert verdict.share == pytest.approx(1 - known["mean"] / known["most"], abs=0.05)
    assert "it is part3, which computes most in sort_rows (uneven_parts.c:" in verdict.text


@pytest.mark.parametrize("way", ["cold", "mapped"])
def test_who_sleeps_until_pages_of_a_file_come_is_bound_by_io(way: str, workshop: Workshop) -> None:
    trace, known = recorded(workshop, "reads", way)
    if known["slept"] < 0.4 * known["lasted"]:
        pytest.skip("the file system has the pages in memory")
    verdict = summarise(trace).verdict
    assert verdict.kind == "io-bound"
    # Before that, main writes the file: on a busy disk this takes longer.
    places = "in fetch (reads.c:30), which calls pread64", "which calls write"
    assert way == "mapped" or any(place in verdict.text for place in places)


def test_a_read_from_memory_is_computing_of_the_kernel(workshop: Workshop) -> None:
    trace, known = recorded(workshop, "reads", "cached")
    assert known["slept"] < 0.1 * known["lasted"]
    verdict = summarise(trace).verdict
    assert verdict.kind == "compute-bound"
    assert "in fetch (reads.c:30), which calls pread64" in verdict.text


def test_the_program_notices_nothing(workshop: Workshop) -> None:
    program = compiled(workshop, "careful")
    plain, seen = workshop.plain("--", program), workshop.recorded("--", program)
    assert seen.visible == plain.visible
    assert "SIGPROF was free" in plain.stdout
    assert plain.returncode == 3
    assert sum(samples(strobe.open(seen.trace), "native_ns").values()) > 60e6  # before it took the signal


def test_a_shell_leaves_the_trace_to_the_program_that_it_starts(workshop: Workshop) -> None:
    program = compiled(workshop, "serial")
    done = workshop.recorded("--", "bash", "-c", f"true; {program}; true")
    trace = strobe.open(done.trace)
    assert len(trace.processes) == 1
    assert samples(trace, "native_ns")["assemble"] == pytest.approx(measured(done.stdout)["assemble"], abs=CLOSE_NS)
