"""Updates of several kinds in turn are one step, and so are the micro-batches of one."""

import numpy as np
import pytest

from strobe.native import core
from strobe.steps.finding.offline_search import steps_of
from strobe.steps.training_activities import DATA_WAIT
from tests.unit.streams import BACKWARD as BACKWARD_NAMES
from tests.unit.streams import FORWARD as FORWARD_NAMES
from tests.unit.streams import SINGLE_WAIT, STEP, WORKERS_WAIT, ZERO, update
from tests.unit.trainings import Training, assert_true, validating


def test_an_update_of_several_micro_batches_is_one_step() -> None:
    training = Training()
    for _ in range(12):
        begin = training.now_ns
        for _ in range(4):
            training.run(WORKERS_WAIT)
            training.run(*FORWARD_NAMES, us=100)
            training.run(*BACKWARD_NAMES, us=100)
        training.run(STEP, ZERO)
        training.truth.append((begin, training.now_ns))
    found = steps_of(training.stream())
    assert_true(found, training)
    assert found.parts_ns[3, DATA_WAIT] == 4 * 10_200


def test_two_updates_per_batch_are_one_step() -> None:
    training = Training()
    for _ in range(15):
        begin = training.now_ns
        training.run(WORKERS_WAIT)
        update(training)
        update(training)
        training.truth.append((begin, training.now_ns))
    assert_true(steps_of(training.stream()), training)


CRITIC = ("aten::randn", "aten::linear", "aten::detach", "aten::sub")
GENERATOR = ("aten::randn", "aten::linear", "aten::tanh", "aten::neg")


@pytest.mark.parametrize("critics", [1, 2, 5])
@pytest.mark.parametrize("loader", [False, True])
def test_updates_of_several_kinds_in_turn_are_one_step(critics: int, loader: bool) -> None:
    training = Training()
    for _ in range(12):
        begin = training.now_ns
        for operators in [CRITIC] * critics + [GENERATOR]:
            if loader and operators is CRITIC:
                training.run(WORKERS_WAIT)
            training.run(ZERO, *operators, *BACKWARD_NAMES, STEP)
        training.truth.append((begin, training.now_ns))
    found = steps_of(training.stream())
    assert_true(found, training)
    assert f"{critics + 1} updates" in found.reason


def test_the_first_update_makes_no_kind_of_its_own() -> None:
    """It makes what the others use: operators 8 and 9 run once; 7 runs in all others."""
    ids = [1, 2, 8, 9, 3]
    updates = [2]
    for _ in range(6):
        ids += [1, 2, 7, 3]
        updates.append(len(ids) - 2)
    for seen in range(2, 8):
        given_ids, given_updates, no_waits = (np.array(each, dtype=np.uint32) for each in (ids, updates[:seen], []))
        assert core.updates_per_step(given_ids, given_updates, no_waits) == 1


@pytest.mark.parametrize("loader", [False, True])
def test_a_validation_every_few_steps_does_not_make_updates_a_group(loader: bool) -> None:
    training = Training()
    for number in range(40):
        training.step(wait=WORKERS_WAIT if loader else None)
        if number % 5 == 4:
            validating(training, SINGLE_WAIT, function=None)
    assert len(steps_of(training.stream())) == 40
