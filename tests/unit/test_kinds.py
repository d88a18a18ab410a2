"""What regions are, by their names."""

import shutil
import subprocess
from pathlib import Path

import pytest

from strobe.model.kinds import mpi_role

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_functions_of_mpi_have_the_roles_that_the_recorder_gives_them() -> None:
    source = """
        #include "adapters/mpi/mpi_calls.h"
        #define MPI_CALL(name, arity, role, ...) name:role
        MPI_CALLS(MPI_CALL) MPI_LATER_CALLS(MPI_CALL)
    """
    expand = ["g++", "-E", "-P", "-xc++", "-I", ROOT / "native", "-"]
    table = subprocess.run(expand, input=source, capture_output=True, text=True, check=True).stdout
    calls = [call.split(":") for call in table.split()]
    assert len(calls) > 300
    assert {name: mpi_role(name) for name, _ in calls} == {name: role.lower() for name, role in calls}
