"""The steps of real programs, found from outside, against what each program itself says: one test a program."""

import re
from collections.abc import Mapping

import pytest

from tests.corpus.judge import judge
from tests.corpus.programs import MPICH, Program, programs, record

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

# Programs whose chosen steps are not the true ones, and why: a limit that is known, not a test that is off.
WRONG: Mapping[str, str] = {
    "game_of_life": "a level above the true one is chosen",
    "lanczos": "no loop stands out",
    "nbody": "a level above the true one is chosen",
}
MOST_WRONG = {"design": 0.05, "judged": 0.17}


def skip_without_what_it_needs(program: Program) -> None:
    """Skip where a library or MPI is not installed (`./dev test` installs all of them)."""
    for library in ("accelerate", "mpi4py", "pytorch_lightning", "transformers"):
        if re.search(rf"^(import|from) {library}\b", program.path.read_text(), re.MULTILINE):
            pytest.importorskip(library, reason=f"{library} is not installed")
    if program.ranks and not MPICH.exists():
        pytest.skip("MPICH is not in .venv: ./dev record")


@pytest.mark.parametrize("program", programs(), ids=lambda program: f"{program.group}-{program.name}")
def test_steps_are_the_ones_that_the_program_wrote_down(program: Program) -> None:
    skip_without_what_it_needs(program)
    verdict = judge(record(program))
    assert verdict.processes
    told = "; ".join(f"{each.steps} for {each.true_steps} ({each.reason})" for each in verdict.processes)
    assert not verdict.misleading, told
    assert verdict.any_of_five, told
    if not verdict.first and program.name in WRONG:
        pytest.xfail(WRONG[program.name])
    assert verdict.first, told


@pytest.mark.parametrize("group", ["design", "judged"])
def test_few_programs_are_known_to_be_wrong(group: str) -> None:
    names = [program.name for program in programs(group)]
    assert len(WRONG.keys() & set(names)) <= MOST_WRONG[group] * len(names)
