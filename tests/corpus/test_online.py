"""Some programs as users record them: the loop is accepted while they run, early, and it is the true one."""

import pytest

from tests.corpus.online import judge_online
from tests.corpus.programs import programs, record

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

NAMES = ("amp_bf16", "cnn_epochs", "gpt_eval_every", "grad_accumulation", "lbfgs", "mlp", "trainer_class")
ACCEPTED_BY = 15  # true steps


@pytest.mark.parametrize("name", NAMES)
def test_the_true_loop_is_accepted_early_while_the_program_runs(name: str) -> None:
    (program,) = (each for each in programs("design") if each.name == name)
    verdict = judge_online(record(program, options=()))
    told = "; ".join(each.reason for each in verdict.processes)
    assert verdict.accepted, told
    assert verdict.right, told
    assert verdict.steps_right, told
    assert verdict.accepted_at is not None
    assert verdict.accepted_at <= ACCEPTED_BY
