"""Which level of a nest is the step where no framework says so: one hand-made sequence for each rule."""

from dataclasses import replace

import numpy as np
import pytest

from strobe.steps.finding.offline_search import steps_of
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.thread_spans import Stream
from tests.unit.streams import Program


def holds_one_each(found: ProcessSteps, starts: list[int]) -> bool:
    """Whether nearly every true step holds the beginning of one that was found."""
    return bool((np.diff(np.searchsorted(found.start_ns, starts)) == 1).mean() >= 0.9)


@pytest.mark.parametrize("stalled", [0.0, 0.1, 0.3])
def test_load_does_not_make_a_step_of_what_is_done_every_so_often(stalled: float) -> None:
    rng, program, starts = np.random.default_rng(5), Program(), list[int]()
    with program.inside("main"):
        for number in range(200):
            starts.append(program.now_ns)
            with program.inside("sweep"):
                program.run("half_sweep", "half_sweep", us=50)
            if number % 5 == 4:
                program.run("magnetisation", "energy", us=20)
            if rng.random() < stalled:
                program.pause(4000)  # another process has the core
    assert holds_one_each(steps_of(program.stream()), starts)


def test_what_is_done_every_so_often_is_also_done_before_the_loop() -> None:
    program, starts = Program(), list[int]()
    with program.inside("main"):
        program.run("close_pairs", "forces")
        for number in range(300):
            starts.append(program.now_ns)
            program.run("bounce")
            if number % 10 == 0:
                program.run("close_pairs")
            program.run("forces")
            if number % 25 == 24:
                program.run("kinetic")
    assert holds_one_each(steps_of(program.stream()), starts)


@pytest.mark.parametrize("heavy_us", [20, 5000])
def test_iterations_left_over_tell_of_rare_work_however_long_it_takes(heavy_us: float) -> None:
    program, starts = Program(), list[int]()
    with program.inside("main"):
        for number in range(203):
            starts.append(program.now_ns)
            program.run("evolve", "count", us=50)
            if number % 4 == 0:
                program.run("snapshot", us=heavy_us)
    assert holds_one_each(steps_of(program.stream()), starts)


def test_work_before_the_inner_loop_and_behind_it_may_be_the_same_function() -> None:
    program, starts = Program(), list[int]()
    with program.inside("main"):
        for _ in range(200):
            starts.append(program.now_ns)
            program.run("potential")
            for _ in range(10):
                with program.inside("leapfrog"):
                    program.run("gradient", "gradient")
            program.run("potential", "accept")
    assert holds_one_each(steps_of(program.stream()), starts)


def test_an_outer_loop_goes_through_the_same_things_twice() -> None:
    """Every day all agents move, some meet, and all grow older."""
    rng, program, starts = np.random.default_rng(3), Program(), list[int]()
    with program.inside("main"):
        for _ in range(80):
            starts.append(program.now_ns)
            for _ in range(40):
                program.run("move", us=100)
            program.run(*["meet"] * int(rng.integers(0, 8)), us=1)
            program.run(*["age"] * 40, us=1)
            program.run("count", us=1)
    assert holds_one_each(steps_of(program.stream()), starts)


def test_a_population_is_looked_through_before_all_of_it_moves() -> None:
    """What moves does more, so that it is the better loop; but the next iteration looks at as many again."""
    rng, program, starts = np.random.default_rng(4), Program(), list[int]()
    with program.inside("main"):
        for _ in range(120):
            starts.append(program.now_ns)
            with program.inside("leader_of"):
                program.run(*["key"] * 20, us=1)
            for _ in range(20):
                with program.inside("move"):
                    program.run("pull", "push", us=10)
                with program.inside("look"):
                    program.run("value", us=10)
                    if rng.random() < 0.2:
                        program.run("keep", us=10)
    assert holds_one_each(steps_of(program.stream()), starts)


def test_functions_know_more_than_the_calls_of_mpi_among_them() -> None:
    program, starts = Program(), list[int]()
    with program.inside("main"):
        for number in range(150):
            starts.append(program.now_ns)
            program.run("gradient", us=50)
            program.run("MPI_Send", "MPI_Bcast", "MPI_Bcast")
            if number % 5 == 0:
                program.run("MPI_Send", "MPI_Send", "MPI_Bcast", "MPI_Bcast")
    assert holds_one_each(steps_of(program.stream()), starts)


@pytest.mark.parametrize("iterations", [5, 10, 100])
def test_little_but_one_call_of_mpi_is_its_loop(iterations: int) -> None:
    program, starts = Program(), list[int]()
    program.run("MPI_Init", us=100)
    for _ in range(iterations):
        program.pause(2000)
        starts.append(program.now_ns)
        program.run("MPI_Allreduce", us=50)
    program.run("MPI_Finalize", us=100)
    assert steps_of(program.stream()).start_ns.tolist() == starts


def test_calls_of_mpi_from_one_function_are_no_loop() -> None:
    program = Program()
    with program.inside("main"):  # in five lines, perhaps
        for _ in range(5):
            program.pause(2000)
            program.run("MPI_Bcast", us=50)
    assert len(steps_of(program.stream())) == 0


@pytest.mark.parametrize("waits_us", [20, 20_000])
def test_ranks_that_wait_for_each_other_every_so_often_do_not_work_then(waits_us: float) -> None:
    program, starts = Program(), list[int]()
    for number in range(60):
        starts.append(program.now_ns)
        program.pause(400)
        program.run("MPI_Send")
        if number % 6 == 5:
            program.run("MPI_Bcast", us=waits_us)
    assert holds_one_each(steps_of(program.stream()), starts)


def test_a_report_once_in_hundreds_of_iterations_is_no_step() -> None:
    rng, program, starts = np.random.default_rng(7), Program(), list[int]()
    with program.inside("main"):
        for number in range(1, 3001):
            starts.append(program.now_ns)
            program.run("find")
            if rng.random() < 0.25:
                program.run("alarm")
            program.run("count")
            if number % 200 == 0:
                with program.inside("report"):
                    program.run(*["key"] * 40, us=1)
    assert holds_one_each(steps_of(program.stream()), starts)


def test_the_branches_of_a_loop_are_no_loops() -> None:
    rng, program, starts = np.random.default_rng(6), Program(), list[int]()
    for _ in range(1000):
        starts.append(program.now_ns)
        with program.inside("next"):
            if rng.random() < 0.5:
                with program.inside("arrive"):
                    program.run("schedule", "serve")
            else:
                with program.inside("leave"):
                    program.run("serve")
    assert holds_one_each(steps_of(program.stream()), starts)


def master(workers: int, tasks: int) -> tuple[Stream, list[int]]:
    """A master that answers whoever has asked; calls to different peers have different regions."""
    rng, program, starts = np.random.default_rng(workers), Program(), list[int]()
    for _ in range(tasks):
        starts.append(program.now_ns)
        program.run("MPI_Recv from any", us=100)
        program.run(f"MPI_Send to {rng.integers(workers)}")
    stream = program.stream()
    calls = [name.partition(" ")[0] for name in stream.names]
    return replace(stream, call_of=np.array([calls.index(call) for call in calls])), starts


@pytest.mark.parametrize("workers", [2, 3, 7])
def test_a_master_does_the_same_whoever_has_asked(workers: int) -> None:
    stream, starts = master(workers, 200)
    found = steps_of(stream)
    assert abs(len(found) - 200) <= 1
    assert holds_one_each(found, starts)


def test_neighbours_are_told_apart_where_that_makes_the_better_loop() -> None:
    """Four calls of one place to four neighbours are one step, not four."""
    program, starts = Program(), list[int]()
    for _ in range(60):
        starts.append(program.now_ns)
        program.run(*(f"MPI_Sendrecv to {peer}" for peer in range(4)))
    stream = program.stream()
    found = steps_of(replace(stream, call_of=np.zeros(len(stream.names), dtype=np.int64)))
    assert holds_one_each(found, starts)


def test_a_loop_of_one_call_is_found_beside_many_events_of_no_time() -> None:
    program, starts = Program(), list[int]()
    with program.inside("main"):
        for number in range(30):
            program.run(f"prepare {number}", us=300)
        for _ in range(120):
            starts.append(program.now_ns)
            program.pause(200)
            program.run("residual")
        program.run(*["write_line"] * 122, us=0)
    found = steps_of(program.stream())
    assert holds_one_each(found, starts)
    assert found.confidence != "high"
