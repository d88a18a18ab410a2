"""The communication matrix of MPI programs: what independent counters see, by both MPIs."""

import sys
from collections import Counter

import pytest

import strobe
from strobe.errors import UsageError
from tests.record.test_mpi import Mpi, bytes_counted, bytes_told
from tests.record.workshop import Workshop

pytestmark = pytest.mark.mpi
Matrix = dict[tuple[str, int, int], tuple[int | None, int]]
ONE_SIDED = {"Put": "put", "Get": "get", "Accumulate": "atomic", "Fetch_and_op": "atomic", "Compare_and_swap": "atomic"}


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, workshop: Workshop) -> Mpi:
    """Each MPI in turn."""
    return Mpi(request.param, workshop)


def matrix(trace: strobe.Trace, **options: str) -> Matrix:
    """By kind, sender and receiver: messages and bytes."""
    return {
        (row["kind"], row["sender"], row["receiver"]): (row["messages"], row["total_bytes"])
        for row in trace.messages(**options).to_arrow().to_pylist()
    }


def kind_of(function: str) -> str:
    """What a function with a peer makes: its name ends with that of a one-sided one, or it is a message."""
    word = function.removeprefix("MPI_").removeprefix("R").capitalize().replace("Get_acc", "Acc")
    return ONE_SIDED.get(word, "message")


def test_rows_are_what_each_rank_sent_and_columns_what_it_received(mpi: Mpi) -> None:
    program, counter = mpi.build("traffic"), mpi.build("bytes.so", "-shared", "-fPIC")
    mpi.run(mpi.mpirun(3, program), LD_PRELOAD=counter)
    trace = strobe.open(mpi.recorded(*mpi.mpirun(3, program)).trace)
    found = matrix(trace)
    for rank in range(3):
        # By name: whoever sends has "send" in it, and whoever receives "recv".
        counted = bytes_counted(mpi.workshop.folder, rank)
        sent = sum(each for name, (_, each, _) in counted.items() if "send" in name.lower())
        received = sum(each for name, (_, _, each) in counted.items() if "recv" in name.lower())
        assert sent > 1000
        assert (
            sum(size for (kind, sender, _), (_, size) in found.items() if (kind, sender) == ("message", rank)) == sent
        )
        got = (size for (kind, _, receiver), (_, size) in found.items() if (kind, receiver) == ("message", rank))
        assert sum(got) == received
        for kind in ("put", "get", "atomic"):
            moved = sum(sum(row[1:]) for name, row in counted.items() if kind_of(name) == kind)
            column = 2 if kind == "get" else 1  # a get goes to its origin
            assert sum(row[1] for key, row in found.items() if key[0] == kind and key[column] == rank) == moved > 0
    # From the source: MPI_Sendrecv with MPI_COMM_SELF, puts of 5 and 3 integers, a get of 6.
    assert [found["message", rank, rank] for rank in range(3)] == [(1, 8)] * 3
    assert (found["put", 2, 0], found["get", 2, 0]) == ((2, 32), (1, 24))
    assert trace.messages().note == ""


def test_collectives_as_data_are_those_of_the_source(mpi: Mpi) -> None:
    found = matrix(strobe.open(mpi.recorded(*mpi.mpirun(3, mpi.build("traffic"))).trace), collectives="as-data")
    expected = Counter[tuple[str, int, int]]()
    for other in range(3):
        # MPI_Bcast, MPI_Ibcast; MPI_Gather twice (the second in place), MPI_Gatherv, MPI_Igather; MPI_Scatter,
        # MPI_Scatterv in place; MPI_Reduce twice (the second in place), and that of the checksum.
        expected["broadcast", 2, other] += 40
        expected["broadcast", 0, other] += 28
        expected["gather", other, 1] += 12 + 12 * (other != 1)
        expected["gather", other, 0] += 4 * (other + 1) + 36
        expected["scatter", 0, other] += 16 + 4 * (other + 1) * (other != 0)
        expected["reduce", other, 0] += 44 + 48 * (other != 0) + 8
        # Not in place: MPI_Allgather of 5 integers, MPI_Allgatherv, MPI_Alltoall of 6; in place a third is missing.
        for sender in range(3):
            expected["allgather", sender, other] += 20 + 20 * 2 // 3 + 4 * (sender + 1)
            expected["alltoall", sender, other] += 24 + 24 * 2 // 3
    for root in (0, 1):
        expected["broadcast", 1, root] += 8  # in the communicator of ranks 0 and 1
    kinds = {kind for kind, _, _ in expected}
    assert {key: size for key, (_, size) in found.items() if key[0] in kinds} == expected
    assert not {kind for kind, _, _ in found} - kinds - {"message", "put", "get", "atomic"}


def test_a_program_that_keeps_its_own_account_has_the_same_by_pair(mpi: Mpi) -> None:
    trace = strobe.open(mpi.recorded(*mpi.mpirun(4, mpi.build("plate", "-w"), "plate.bin", "parts")).trace)
    account = Counter[tuple[str, int, int]]()
    for rank in range(4):
        for line in (mpi.workshop.folder / f"plate-{rank}.txt").read_text().splitlines():
            name, peer, _, sent, received = line.split()
            if peer == "-":
                continue
            kind = kind_of(name)
            if kind == "get":
                account[kind, int(peer), rank] += int(received)
            else:
                account[kind, rank, int(peer)] += int(sent) + int(received) * (kind == "atomic")
    sizes = {key: size for key, (_, size) in matrix(trace).items()}
    assert sizes == {key: size for key, size in account.items() if size or key in sizes}
    assert len(sizes) > 8


def test_messages_and_collectives_of_folded_steps_are_there_and_have_their_step(mpi: Mpi) -> None:
    program = mpi.workshop.write(
        "sizes.py",
        """
        from mpi4py import MPI
        import strobe

        comm = MPI.COMM_WORLD
        other, out, into = 1 - comm.rank, bytearray(300), bytearray(300)
        for n in range(200):
            comm.Sendrecv([out, n, MPI.BYTE], other, n % 3, [into, 300, MPI.BYTE], other, n % 3)
            comm.Gather([out, 8, MPI.BYTE], [into, 8, MPI.BYTE] if comm.rank == 0 else None)
            strobe.step()
        """,
    )
    trace = strobe.open(mpi.recorded(*mpi.mpirun(2, sys.executable, str(program)), STROBE_KEEP="4").trace)
    assert trace.steps().column("detail").count("none") > 200  # of 400
    assert matrix(trace) == {("message", rank, 1 - rank): (200, sum(range(200))) for rank in range(2)}
    by_step = {
        row["step"]: (row["messages"], row["max_bytes"]) for row in trace.messages(by="step").to_arrow().to_pylist()
    }
    assert by_step == {n: (2, n) for n in range(200)}
    with pytest.raises(UsageError, match="its steps are 0 to 199"):
        trace.messages(step="100000")
    two = matrix(trace, step="50..51", collectives="as-data")
    assert two == {
        **{("message", rank, 1 - rank): (2, 50 + 51) for rank in range(2)},
        **{("gather", rank, 0): (2, 16) for rank in range(2)},
    }


# Programs of tests/record/mpi/kin. Each runs with both MPIs, in turn by number of ranks.
KIN = ("cg", "transpose", "samplesort", "particles", "taskfarm", "wavefront")


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("name", KIN)
def test_programs_of_all_kinds_have_the_matrix_of_an_independent_counter(
    workshop: Workshop, name: str, ranks: int
) -> None:
    mpi = Mpi("mpich" if (KIN.index(name) + ranks // 4) % 2 else "openmpi", workshop)
    counters = [mpi.build(f"{each}.so", "-shared", "-fPIC") for each in ("bytes", "pairs")]
    recorded = mpi.recorded(*mpi.mpirun(ranks, mpi.build(f"kin/{name}")), LD_PRELOAD=" ".join(counters))
    assert recorded.returncode == 0
    assert bytes_told(recorded.trace) == {rank: bytes_counted(workshop.folder, rank) for rank in range(ranks)}
    pairs = {
        ("message", rank, int(to)): (int(messages), int(size))
        for rank in range(ranks)
        for to, messages, size in map(str.split, (workshop.folder / f"pairs-{rank}.txt").read_text().splitlines())
    }
    assert pairs
    assert matrix(strobe.open(recorded.trace)) == pairs
