"""Trainings made by hand that remember when each of their steps really began and ended."""

from strobe.steps.process_steps import ProcessSteps
from tests.unit.streams import FORWARD, WORKERS_WAIT, Program, update


class Training(Program):
    """A training that remembers when each of its steps really began and ended."""

    def __init__(self) -> None:
        super().__init__()
        self.truth: list[tuple[int, int]] = []

    def step(self, *, wait_us: float = 50, wait: str | None = WORKERS_WAIT, ask_twice: bool = False) -> None:
        begin = self.now_ns
        if ask_twice and wait:
            self.run(wait, us=5)
            self.run("aten::empty", "aten::random_")  # the seed of the next epoch
        if wait:
            self.run(wait, us=wait_us)
        update(self)
        self.truth.append((begin, self.now_ns))

    def more(self) -> None:
        """Whatever ran since the last step belongs to it."""
        self.truth[-1] = (self.truth[-1][0], self.now_ns)


def assert_true(found: ProcessSteps, training: Training) -> None:
    assert found.start_ns.tolist() == [begin for begin, _ in training.truth]
    ends = (found.start_ns + found.duration_ns).tolist()
    assert ends == [end for _, end in training.truth]
    assert (found.parts_ns.sum(axis=1) == found.duration_ns).all()
    assert (found.parts_ns >= 0).all()


def validating(training: Training, wait: str, *, function: str | None) -> None:
    def batches() -> None:
        for _ in range(3):
            training.run(wait, us=30)
            training.run(*FORWARD[:3], "aten::argmax", us=100)
        training.run(wait, us=5)  # the end of the validation data

    if function is None:
        batches()
    else:
        with training.inside(function):
            batches()
    training.more()
