"""What regions are, by their names."""

import re
from pathlib import Path

from strobe.model.kinds import mpi_role

ROOT = Path(__file__).parents[2]


def test_functions_of_mpi_have_the_roles_that_the_recorder_gives_them() -> None:
    table = (ROOT / "native/adapters/mpi/mpi_calls.h").read_text()
    calls = re.findall(r"MPI_CALL\((MPI_\w+), \d+, (\w+),", table.replace("##c,", "_c,") + table.replace("##c,", ","))
    assert len(calls) > 100
    assert {name: mpi_role(name) for name, _ in calls} == {name: role.lower() for name, role in calls}
