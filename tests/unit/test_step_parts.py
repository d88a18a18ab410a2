"""What steps are made of: hand-made trainings in the orders in which people write them, and the parts on paper."""

from collections import Counter
from collections.abc import Callable

import pytest

from strobe.steps.finding.offline_search import steps_of
from strobe.steps.training_activities import PARTS
from tests.unit.streams import BACKWARD, FORWARD, SINGLE_WAIT, STEP, WORKERS_WAIT, ZERO, Program


class Told(Program):
    """A program that keeps what each thing it does is: microseconds by part."""

    def __init__(self) -> None:
        super().__init__()
        self.told: Counter[str] = Counter()

    def do(self, part: str, *names: str, us: float = 1000) -> None:
        self.run(*names, us=us)
        self.told[part] += len(names) * us

    def wait(self, us: float = 2000) -> None:
        self.do("data_wait", WORKERS_WAIT, us=us)

    def forward(self) -> None:
        self.do("forward", *FORWARD)

    def backward(self) -> None:
        self.do("backward", *BACKWARD)

    def think(self, part: str, us: float) -> None:
        self.pause(us)
        self.told[part] += us


def zeroed_first(program: Told) -> None:
    program.wait()
    program.do("optimizer", ZERO)
    program.forward()
    program.backward()
    program.do("optimizer", STEP)


def zeroed_between(program: Told) -> None:
    program.wait()
    program.forward()
    program.do("optimizer", ZERO)
    program.backward()
    program.do("optimizer", STEP)


def zeroed_last(program: Told) -> None:
    program.wait()
    program.forward()
    program.backward()
    program.do("optimizer", STEP, ZERO)


def zeroed_before_the_data(program: Told) -> None:
    program.do("optimizer", ZERO)
    program.wait()
    program.forward()
    program.backward()
    program.do("optimizer", STEP)


def loss_after_zeroing(program: Told) -> None:
    program.wait()
    program.do("forward", *FORWARD[:3])
    program.do("optimizer", ZERO)
    program.do("forward", FORWARD[3])
    program.backward()
    program.do("optimizer", STEP)


def teacher_without_a_loader(program: Told) -> None:
    program.do("forward", "aten::randn", "aten::linear", "aten::relu", us=3000)  # no gradients
    program.forward()
    program.do("optimizer", ZERO)
    program.backward()
    program.do("optimizer", STEP)


def generator_and_discriminator(program: Told) -> None:
    program.wait()
    program.do("optimizer", ZERO)
    program.forward()
    program.backward()  # of what is real
    program.forward()
    program.backward()  # of what is made
    program.do("optimizer", STEP)
    program.do("optimizer", "Optimizer.zero_grad#Adam.zero_grad")
    program.forward()
    program.backward()
    program.do("optimizer", "Optimizer.step#Adam.step")


def accumulation(program: Told) -> None:
    for _ in range(3):
        program.wait()
        program.forward()
        program.backward()
    program.do("optimizer", STEP, ZERO)


def python_in_forward(program: Told) -> None:
    program.wait()
    with program.inside("Net.forward"):
        program.do("forward", *FORWARD[:2])
        program.think("forward", 5000)
        program.do("forward", *FORWARD[2:])
    program.backward()
    program.do("optimizer", STEP)


def python_between_operators(program: Told) -> None:
    program.wait()
    program.do("forward", *FORWARD[:2])
    with program.inside("Game.play"):
        program.think("rest", 5000)
    program.do("forward", *FORWARD[2:])
    program.backward()
    program.do("optimizer", STEP)


def short_python_between_operators(program: Told) -> None:
    program.wait()
    program.do("forward", *FORWARD[:2])
    with program.inside("Game.play"):
        program.think("rest", 800)
    program.do("forward", *FORWARD[2:])
    program.backward()
    program.do("optimizer", STEP)


def a_hook_in_the_pass(program: Told) -> None:
    program.wait()
    program.forward()
    program.do("backward", *BACKWARD[:2])
    program.think("backward", 5000)
    program.do("backward", *BACKWARD[2:])
    program.do("optimizer", STEP)


def clipping(program: Told) -> None:
    program.wait()
    program.forward()
    program.backward()
    program.do("optimizer", "aten::linalg_vector_norm", "aten::stack", "aten::_foreach_mul_", STEP)


def averages_of_weights(program: Told) -> None:
    program.wait()
    program.forward()
    program.backward()
    program.do("optimizer", STEP, "aten::lerp_", "aten::lerp_")
    program.do("rest", "aten::item", "aten::argmax")


def averages_without_a_loader(program: Told) -> None:
    program.forward()
    program.backward()
    program.do("optimizer", STEP, "aten::mul_", "aten::add_", "aten::mul_", "aten::add_")


def update_by_hand(program: Told) -> None:
    program.wait()
    program.forward()
    program.backward()
    for _ in range(3):
        program.do("optimizer", "aten::mul", "aten::sub_")
    program.do("rest", "aten::item")


def update_by_hand_without_a_loader(program: Told) -> None:
    program.run("strobe.step", us=0)
    program.forward()
    program.backward()
    for _ in range(3):
        program.do("optimizer", "aten::mul", "aten::sub_")


def closure(program: Told) -> None:
    program.wait()
    with program.inside("Optimizer.step#LBFGS.step"):
        for _ in range(3):
            program.do("optimizer", ZERO)
            program.forward()
            program.backward()
            program.do("optimizer", "aten::dot", "aten::mul")


def closure_without_zeroing(program: Told) -> None:
    program.do("optimizer", ZERO)
    program.wait()
    with program.inside("Optimizer.step#Adam.step"):
        program.forward()
        program.backward()
        program.do("optimizer", "aten::mul", "aten::dot")


def batch_made_in_the_loop(program: Told) -> None:
    program.do("data_wait", "aten::randn", "aten::mul")
    with program.inside("collect"):
        program.think("data_wait", 3000)
    with program.inside("Net.forward"):
        program.do("forward", *FORWARD[:3])
    program.do("forward", FORWARD[3])
    program.backward()
    program.do("optimizer", STEP, ZERO)


def batch_changed_behind_the_loader(program: Told) -> None:
    program.wait()
    with program.inside("augment"):
        program.think("data_wait", 5000)
    program.do("optimizer", ZERO)
    with program.inside("nn.Module: Sequential"):
        program.think("forward", 400)
        program.forward()
    program.backward()
    program.do("optimizer", STEP)


def module_as_loss(program: Told) -> None:
    program.wait()
    program.do("forward", *FORWARD[:3])
    with program.inside("CrossEntropyLoss.forward"):
        program.do("forward", FORWARD[3])
    program.backward()
    program.do("optimizer", STEP)


ORDERS = (
    *(batch_made_in_the_loop, batch_changed_behind_the_loader, module_as_loss),
    *(zeroed_first, zeroed_between, zeroed_last, zeroed_before_the_data, loss_after_zeroing),
    *(teacher_without_a_loader, generator_and_discriminator, accumulation),
    *(python_in_forward, python_between_operators, short_python_between_operators, a_hook_in_the_pass),
    *(clipping, averages_of_weights, averages_without_a_loader, update_by_hand, update_by_hand_without_a_loader),
    *(closure, closure_without_zeroing),
)


def shares_of(program: Told) -> tuple[dict[str, float], dict[str, float]]:
    """The parts of all steps but the first and the last, in per cent, and those that were told."""
    found = steps_of(program.stream()).parts_ns[1:-1].sum(axis=0)
    told = sum(program.told.values())
    return (
        dict(zip(PARTS, (100 * found / found.sum()).tolist(), strict=True)),
        {part: 100 * program.told[part] / told for part in PARTS},
    )


@pytest.mark.parametrize("step", ORDERS, ids=lambda step: step.__name__)
def test_parts_follow_from_the_order_and_not_from_where_a_helper_stands(step: Callable[[Told], None]) -> None:
    program = Told()
    for _ in range(20):
        step(program)
    found, told = shares_of(program)
    assert found == pytest.approx(told, abs=0.3)


def test_of_the_data_only_the_loader_is_waited_for() -> None:
    program = Told()
    for _ in range(20):
        batch_changed_behind_the_loader(program)
    steps = steps_of(program.stream())
    assert steps.cells.waiting_ns[1:-1] == pytest.approx(2_000_000, rel=0.001)
    assert steps.parts_ns[1:-1, PARTS.index("data_wait")] == pytest.approx(7_000_000, rel=0.001)


def test_a_batch_for_scoring_is_made_until_the_model_is_called() -> None:
    program = Told()
    for _ in range(20):
        with program.inside("tokenise"):
            program.think("data_wait", 4000)
        program.do("data_wait", "aten::lift_fresh")
        with program.inside("Scorer.forward"):
            program.forward()
        program.do("forward", "aten::max")
    found, told = shares_of(program)
    assert found == pytest.approx(told, abs=0.3)


def test_what_only_some_steps_do_before_the_model_is_called_is_no_data() -> None:
    program = Told()
    for number in range(40):
        program.wait()
        if number % 10 == 5:
            with program.inside("save"):
                program.think("rest", 9000)
        with program.inside("Net.forward"):
            program.forward()
        program.backward()
        program.do("optimizer", STEP)
    found, told = shares_of(program)
    assert found == pytest.approx(told, abs=0.5)


def test_data_that_run_forward_without_a_pass_are_a_validation() -> None:
    program = Told()
    with program.inside("main"):
        for number in range(40):
            zeroed_first(program)
            if number % 10 == 5:
                with program.inside("evaluate"):
                    for _ in range(6):
                        program.do("validation", SINGLE_WAIT, "aten::conv2d", "aten::argmax")
    found = steps_of(program.stream())
    parts = dict(zip(PARTS, found.parts_ns[15].tolist(), strict=True))
    usual = dict(zip(PARTS, found.parts_ns[14].tolist(), strict=True))
    assert parts["validation"] == pytest.approx(18_000_000, rel=0.01)
    assert usual["validation"] == 0
    for part in ("data_wait", "forward", "backward", "optimizer"):
        assert parts[part] == pytest.approx(usual[part], rel=0.01)


def test_what_only_some_steps_do_after_the_update_is_not_forward() -> None:
    program = Told()
    for number in range(40):
        averages_without_a_loader(program)
        if number % 10 == 5:
            with program.inside("draw_samples"):
                program.do("validation", *FORWARD, *FORWARD)
    found, told = shares_of(program)
    assert found == pytest.approx(told, abs=0.5)


def test_a_loss_that_only_some_steps_have_is_forward() -> None:
    program = Told()
    for number in range(40):
        program.wait()
        program.forward()
        if number % 4 == 3:
            with program.inside("auxiliary_loss"):
                program.forward()
        program.backward()
        program.do("optimizer", STEP)
    found, told = shares_of(program)
    assert found == pytest.approx(told, abs=0.3)


def test_without_a_backward_pass_nothing_is_a_validation() -> None:
    program = Told()
    for _ in range(20):
        program.wait()
        program.forward()
    found, told = shares_of(program)
    assert found == pytest.approx(told, abs=0.3)
