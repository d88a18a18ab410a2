"""Classes of steps: the kernel finds, in spans, what the rules say of the program that made them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strobe.steps.finding.loop_steps import classes_of
from strobe.steps.finding.offline_search import steps_of_loop
from strobe.steps.finding.step_classes import label
from strobe.steps.loop_choice.main_loop import MainLoop
from tests.unit.streams import Program

# Of steps that take 1000 to 2200. Half of enough is above 2 % of the longest, a little below 1 % of the shortest.
LITTLE_US, ENOUGH_US, MUCH_US = 2, 100, 400
FUNCTIONS = ("tune", "save", "print_it")


@st.composite
def calls(draw: st.DrawFn) -> list[list[float]]:
    """By step, what each function costs in it, us; 0: it is not called. The last one calls nothing."""
    count = draw(st.integers(8, 60))
    columns = []
    for _ in FUNCTIONS:
        begin, end, every = draw(st.integers(0, count)), draw(st.integers(0, count)), draw(st.integers(1, 9))
        costs = draw(st.sampled_from([(LITTLE_US,), (ENOUGH_US,), (MUCH_US,), (LITTLE_US, MUCH_US)]))
        column = [0.0] * count
        for step in [*range(begin, end), *range(begin % every, count, every)]:
            column[step] = draw(st.sampled_from(costs))
        columns.append([*column[:-1], 0.0])
    return [list(row) for row in zip(*columns, strict=True)]


def twin(steps: list[list[float]], nested: set[int]) -> list[str]:
    """The rules, of steps whose first function calls another one in some of them: it takes half of the time there."""
    names = [*FUNCTIONS, "below"]
    cost = np.array([[*row, row[0] / 2 if n in nested else 0] for n, row in enumerate(steps)])
    usual = 1000.0 + 2
    called = cost > 0
    first = min(5, len(steps))
    extras = np.zeros(cost.shape, dtype=bool)
    for n in range(len(steps)):
        known = max(n + 1, first)
        calling = called[:known].sum(axis=0)
        extras[n] = called[n] & (10 * calling <= 7 * known) & (cost[n] >= 0.01 * usual)
        extras[n, 3] &= 2 * calling[0] > known + 1  # it lies in the first one
    of_all, worth = called.sum(axis=0), (cost >= 0.02 * usual).sum(axis=0)
    extras &= (2 * of_all <= len(steps) + 1) & (2 * worth >= of_all)
    extras &= extras[1:].sum(axis=0) >= 2
    extras[:, 3] &= ~extras[:, 0]
    order = [0, 3, 1, 2]
    return ["+".join(["step", *(names[at] for at in order if row[at])]) for row in extras]


@settings(max_examples=100, deadline=None)
@given(steps=calls(), data=st.data())
def test_the_kernel_finds_what_the_rules_say(steps: list[list[float]], data: st.DataObject) -> None:
    nested = data.draw(st.sets(st.integers(0, len(steps) - 1)))
    program = Program()
    with program.inside("main"):
        for number, costs in enumerate(steps):
            program.run("advance", us=1000)
            for name, us in zip(FUNCTIONS, costs, strict=True):
                if us and name == FUNCTIONS[0] and number in nested:
                    with program.inside(name):
                        program.pause(us / 2)
                        program.run("below", us=us / 2)
                elif us:
                    program.run(name, us=us)
    stream = program.stream()
    marks = np.flatnonzero([stream.names[region] == "advance" for region in stream.region])
    found = steps_of_loop(stream, MainLoop("structure", marks, "high", "", "advance"))
    assert classes_of(stream, [found]) == tuple(twin(steps, nested & {n for n, row in enumerate(steps) if row[0]}))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("nn.Module: Sequential", "Sequential"),
        ("nn.Module: Evaluator", "Evaluator"),
        ("Trainer.validate", "validation"),
    ],
)
def test_an_extra_is_named_after_its_function_or_its_module(function: str, name: str) -> None:
    assert label(function) == name
