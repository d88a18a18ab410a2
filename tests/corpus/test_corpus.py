"""The steps of real programs, found from outside, against what each program itself says: one test a program."""

import re

import pytest

from tests.corpus.judge import judge
from tests.corpus.programs import MPICH, Program, programs, record

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

# Of all programs: the level that is chosen, and the first five that are offered. What a loop without an anchor takes
# depends on the machine's load, so that now and then another level of the nest is chosen.
RIGHT_FIRST, RIGHT_OF_FIVE = 0.9, 0.97


def skip_without_what_it_needs(program: Program) -> None:
    """Skip where a library or MPI is not installed (`./dev test` installs all of them)."""
    for library in ("accelerate", "mpi4py", "pytorch_lightning", "transformers"):
        if re.search(rf"^(import|from) {library}\b", program.path.read_text(), re.MULTILINE):
            pytest.importorskip(library, reason=f"{library} is not installed")
    if program.ranks and not MPICH.exists():
        pytest.skip("MPICH is not in .venv: ./dev record")


# Left to `./dev bench corpus`: the sets for judging only, `judged` and `sealed`, and programs that are near to others.
# This sees that nothing breaks, within the time that all tests may take.
NEAR_TO_OTHERS = {
    "amp_bf16", "cg_restart", "checkpointing", "epidemic", "forest_fire", "gauss_seidel", "heat_implicit",
    "jacobi_numpy", "kmeans", "lightning_module", "manual_sgd", "mixture_em", "monte_carlo_pi", "neighbours",
    "predator_prey", "reinforce", "short_epochs", "swarm", "tbptt", "trainer_class", "two_phases",
}  # fmt: skip
PROGRAMS = [program for program in programs("design") if program.name not in NEAR_TO_OTHERS]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.group}-{program.name}")
def test_steps_are_the_ones_that_the_program_wrote_down(program: Program) -> None:
    skip_without_what_it_needs(program)
    verdict = judge(record(program))
    assert verdict.processes
    told = "; ".join(f"{each.steps} for {each.true_steps} ({each.reason})" for each in verdict.processes)
    assert not verdict.misleading, told
    if not verdict.first and all(each.confidence != "high" for each in verdict.processes):
        pytest.xfail(f"told with {verdict.processes[0].confidence} confidence: {told}")
    assert verdict.first, told


def test_nearly_all_programs_are_right() -> None:
    for program in PROGRAMS:
        skip_without_what_it_needs(program)
    verdicts = [judge(record(program)) for program in PROGRAMS]
    wrong = [verdict.name for verdict in verdicts if not verdict.first]
    hidden = [verdict.name for verdict in verdicts if not verdict.any_of_five]
    assert len(wrong) <= (1 - RIGHT_FIRST) * len(verdicts), wrong
    assert len(hidden) <= (1 - RIGHT_OF_FIVE) * len(verdicts), hidden
