"""MPI calls under the recorder, with MPICH and Open MPI: the same preloaded library, real launchers, 2 and 4 ranks."""

import atexit
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import strobe
from strobe import native
from strobe.record.launch import parallel_jobs, trace_folder
from strobe.sums.samples import sample_sums
from tests.record.workshop import STROBE, TIMEOUT_S, Outcome, Workshop, environment, quality_of

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("mpi")
pytestmark = pytest.mark.mpi


@functools.cache
def built(compiler: Path, name: str, *options: str) -> Path:
    """A program of tests/record/mpi, compiled once in a session of tests."""
    made = Path(tempfile.mkdtemp(prefix="mpi_")) / Path(name).name
    atexit.register(shutil.rmtree, made.parent, ignore_errors=True)
    source = PROGRAMS / f"{name.removesuffix('.so')}.c"
    command = [compiler, "-g", "-O1", "-fno-inline", *options, source, "-o", made, "-pthread", "-ldl", "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)
    return made


class Mpi:
    """One MPI from PyPI, and a folder to run its programs in."""

    compiler, launcher = "mpicc", "mpirun"

    def __init__(self, name: str, workshop: Workshop) -> None:
        self.name, self.workshop = name, workshop
        self.home = ROOT / ".venv" / name
        if not (self.home / "bin/mpicc").exists():
            pytest.skip(f"{name} is not in .venv: ./dev record")

    def build(self, name: str, *options: str) -> str:
        """Compile a program of tests/record/mpi; return its path."""
        made = self.workshop.folder / Path(name).name
        shutil.copy(built(self.home / "bin" / self.compiler, name, *options), made)
        return str(made)

    def mpirun(self, count: int, *words: str) -> list[str]:
        """The command that starts so many ranks."""
        return [str(self.home / "bin" / self.launcher), "-n", str(count), *words]

    def run(self, command: Sequence[str], **variables: str) -> Outcome:
        """Run a command to its end, on few cores and whoever we are."""
        settings = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            # Ranks that wait leave the few cores to those that work.
            "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
            "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "256",
            "OMPI_MCA_mpi_yield_when_idle": "1",
            # Without libfabric, which looks for networks for 1.7 s.
            "OMPI_MCA_btl": "^ofi",
            "OMPI_MCA_mtl": "^ofi",
            "MPI4PY_LIBMPI": next(map(str, (self.home / "lib").glob("libmpi.so.*")), ""),
            "TMPDIR": "/tmp",  # names of sockets are short
        }
        done = subprocess.run(
            command,
            cwd=self.workshop.folder,
            env=environment({**settings, **variables}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        return Outcome(done.stdout, done.stderr, done.returncode, self.workshop.trace)

    def recorded(self, *words: str, **variables: str) -> Outcome:
        """What `strobe run -- WORDS` does."""
        return self.run(self.workshop.command("--", *words), **variables)


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, workshop: Workshop) -> Mpi:
    """Each MPI in turn."""
    return Mpi(request.param, workshop)


def calls(trace: Path, column: str = "name") -> dict[int, dict[str, int]]:
    """For each rank, how many spans each MPI function (or each place of `column`) has."""
    table = strobe.open(trace).sql(
        f"""select p.rank as rank, r.{column} as what, count(*)::bigint as n from spans s
        join regions r on r.region = s.region join locations l on l.location = s.location
        join processes p on p.process = l.process where r.paradigm = 'mpi' group by all"""
    )
    found: dict[int, dict[str, int]] = {}
    for row in table.to_pylist():
        found.setdefault(row["rank"], {})[row["what"]] = row["n"]
    return found


def counted(folder: Path, rank: int) -> dict[str, int]:
    """What the independent counter wrote."""
    lines = (folder / f"calls-{rank}.txt").read_text().splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines}


POLLS = {"MPI_Test", "MPI_Testsome", "MPI_Iprobe"}


@pytest.mark.parametrize(("mpi", "size"), [("mpich", 2), ("openmpi", 4)], indirect=["mpi"])
def test_every_call_of_a_c_program_is_recorded_as_an_independent_counter_sees_it(mpi: Mpi, size: int) -> None:
    solver, counter = mpi.build("solver"), mpi.build("counter.so", "-shared", "-fPIC")
    plain = mpi.run(mpi.mpirun(size, solver))
    recorded = mpi.recorded(*mpi.mpirun(size, solver), LD_PRELOAD=counter)
    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)
    assert plain.returncode == 3
    assert f"{size} ranks: " in plain.stdout

    found = calls(recorded.trace)
    assert sorted(found) == list(range(size))
    nothing = 0
    for rank in range(size):
        truth = counted(mpi.workshop.folder, rank)
        polls = sum(found[rank].pop(name, 0) for name in POLLS)
        assert polls == truth.pop("found") == (0 if rank % 2 == 0 else 120)  # a Test and an Iprobe a step
        nothing += truth.pop("nothing")
        assert found[rank] == truth
    assert nothing >= 120 * (size // 2)  # a Test and a Testsome a step that came too early
    assert quality_of(recorded.trace, "mpi_polls_that_found_nothing") == nothing


def bytes_told(trace: Path) -> dict[int, dict[str, tuple[int, int, int]]]:
    """By rank and function: calls, bytes sent, bytes received, as `message_totals` has them."""
    table = strobe.open(trace).sql(
        """select p.rank as rank, t.function as name, sum(t.calls)::bigint as calls, sum(t.sent_bytes)::bigint as sent,
        sum(t.received_bytes)::bigint as received from message_totals t join locations l on l.location = t.location
        join processes p on p.process = l.process group by all"""
    )
    found: dict[int, dict[str, tuple[int, int, int]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["rank"], {})[row["name"]] = (row["calls"], row["sent"], row["received"])
    return found


def bytes_counted(folder: Path, rank: int) -> dict[str, tuple[int, int, int]]:
    """What the independent counter of bytes wrote."""
    lines = [line.split() for line in (folder / f"bytes-{rank}.txt").read_text().splitlines()]
    return {name: (int(calls), int(sent), int(received)) for name, calls, sent, received in lines}


def messages(trace: Path) -> dict[str, list[tuple[object, ...]]]:
    """By direction: communicator, world ranks of sender and receiver, tag, bytes."""
    table = strobe.open(trace).sql(
        """select m.*, p.rank as own from messages m join locations l on l.location = m.location
        join processes p on p.process = l.process order by own, time_ns"""
    )
    found: dict[str, list[tuple[object, ...]]] = {"send": [], "receive": []}
    for row in table.to_pylist():
        ends = (row["own"], row["peer_rank"]) if row["direction"] == "send" else (row["peer_rank"], row["own"])
        if row["direction"] in found:
            found[row["direction"]].append((row["communicator"], *ends, row["tag"], row["size_bytes"]))
    return found


def test_every_byte_is_told_as_an_independent_counter_sees_it(mpi: Mpi) -> None:
    size, program, counter = 3, mpi.build("traffic"), mpi.build("bytes.so", "-shared", "-fPIC")
    plain = mpi.run(mpi.mpirun(size, program), LD_PRELOAD=counter)
    recorded = mpi.recorded(*mpi.mpirun(size, program))
    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)
    assert plain.stdout == "3 ranks: 1759513\n"

    told, spans = bytes_told(recorded.trace), calls(recorded.trace)
    for rank in range(size):
        truth = bytes_counted(mpi.workshop.folder, rank)
        assert told[rank] == truth
        assert spans[rank] == {name: calls for name, (calls, _, _) in truth.items()}
    assert min(len(each) for each in told.values()) > 80

    # Every message that was sent is the one that came, but for that of a request that was freed: nobody saw its end.
    both = messages(recorded.trace)
    assert sorted(both["send"]) == sorted(both["receive"])
    assert sum(1 for each in both["send"] if each[0] == "MPI_COMM_WORLD") > 60
    # The ranks of a communicator meet in as many collectives, and call it by one name.
    table = strobe.open(recorded.trace).sql(
        """select communicator, collective, group_size, count(distinct rank) as ranks, count(*) as n
        from collective_spans group by all"""
    )
    rows = table.to_pylist()
    between = [row for row in rows if row["communicator"].startswith("between.tag5") and row["group_size"] != 3]
    assert between  # its two groups count on their own
    for row in rows:
        if row not in between:
            assert row["ranks"] == row["group_size"], row
            assert row["n"] % row["ranks"] == 0, row
    names = {row["communicator"]: row["group_size"] for row in rows}
    expected = {"MPI_COMM_WORLD": 3, "MPI_COMM_WORLD.1.r2": 2, "MPI_COMM_WORLD.1.r1": 1, "MPI_COMM_WORLD.5": 3}
    assert {name: names.get(name) for name in expected} == expected


def test_a_solver_of_four_ranks_moves_what_an_independent_counter_sees(mpi: Mpi) -> None:
    program, counter = mpi.build("heat"), mpi.build("bytes.so", "-shared", "-fPIC")
    plain = mpi.run(mpi.mpirun(4, program), LD_PRELOAD=counter)
    recorded = mpi.recorded(*mpi.mpirun(4, program))
    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)
    assert recorded.stdout.endswith("step 9: -1.948671 after 155 iterations\n")
    told = bytes_told(recorded.trace)
    assert told == {rank: bytes_counted(mpi.workshop.folder, rank) for rank in range(4)}
    # By hand: 2 x 2 ranks have two neighbours each, and a halo is 24 doubles.
    exchanges = told[0]["MPI_Waitall"][0]
    assert told[0]["MPI_Isend"] == (4 * exchanges, 2 * 24 * 8 * exchanges, 0)
    assert told[0]["MPI_Irecv"] == (4 * exchanges, 0, 2 * 24 * 8 * exchanges)
    # Every row lies in a call, that of a send in the one that began it, however long it was pending.
    outside = strobe.open(recorded.trace).sql(
        """select count(*) as n from messages m where not exists (select 1 from spans s where s.location = m.location
        and s.paradigm = 'mpi' and m.time_ns between s.start_ns and s.start_ns + s.duration_ns)"""
    )
    assert outside.to_pylist() == [{"n": 0}]


def test_a_solver_that_keeps_its_own_account_is_told_the_same_by_peer(mpi: Mpi) -> None:
    # Walls (MPI_PROC_NULL), derived types, a task farm, graphs, windows, file views, partitioned messages.
    recorded = mpi.recorded(*mpi.mpirun(4, mpi.build("plate", "-w"), "plate.bin", "parts"))
    assert (recorded.stdout, recorded.returncode) == ("4 ranks\n", 0)
    table = strobe.open(recorded.trace).sql(
        """select p.rank as rank, t.function as name, t.peer_rank as peer, sum(t.calls)::bigint as calls,
        sum(t.sent_bytes)::bigint as sent, sum(t.received_bytes)::bigint as received from message_totals t
        join locations l on l.location = t.location join processes p on p.process = l.process group by all"""
    )
    told = {(row["rank"], row["name"], row["peer"]): tuple(row.values())[3:] for row in table.to_pylist()}
    account = {}
    for rank in range(4):
        for line in (mpi.workshop.folder / f"plate-{rank}.txt").read_text().splitlines():
            name, peer, *numbers = line.split()
            account[rank, name, None if peer == "-" else int(peer)] = tuple(map(int, numbers))
    assert told == account
    both = messages(recorded.trace)
    assert sorted(both["send"]) == sorted(both["receive"])
    assert {tag for communicator, *_, tag, _ in both["send"] if communicator == "MPI_COMM_WORLD.2"} == set(range(41))


def test_a_world_that_was_spawned_is_not_taken_for_that_of_its_parents(mpi: Mpi) -> None:
    recorded = mpi.recorded(*mpi.mpirun(2, mpi.build("spawn")))
    assert (recorded.stdout, recorded.returncode) == ("2\n", 0)
    table = strobe.open(recorded.trace).sql(
        """select t.communicator as communicator, t.function as name, count(*)::bigint as ranks,
        sum(t.calls)::bigint as calls, sum(t.sent_bytes)::bigint as sent, sum(t.received_bytes)::bigint as received
        from message_totals t where t.function in ('MPI_Barrier', 'MPI_Send', 'MPI_Recv', 'MPI_Allreduce')
        group by all"""
    )
    assert {tuple(row.values()) for row in table.to_pylist()} == {
        ("MPI_COMM_WORLD", "MPI_Barrier", 2, 4, 0, 0),
        ("MPI_COMM_WORLD of spawned", "MPI_Barrier", 2, 6, 0, 0),
        ("between groups.r0", "MPI_Send", 1, 2, 40, 0),
        ("between groups.r0", "MPI_Recv", 2, 2, 0, 40),
        ("between groups.r0", "MPI_Allreduce", 4, 4, 64, 64),
    }


def lines_of(code: str) -> list[int]:
    """The lines of solver.c that contain this code."""
    return [n for n, line in enumerate((PROGRAMS / "solver.c").read_text().splitlines(), 1) if code in line]


# One line of the source, called from two: two call paths, each once a step. Inlined functions are in the path, too.
@pytest.mark.parametrize("options", [["-fno-inline"], ["-O2", "-finline"]])
def test_places_are_peers_and_the_source_lines_of_the_callers(mpi: Mpi, options: list[str]) -> None:
    places = calls(mpi.recorded(*mpi.mpirun(4, mpi.build("solver", *options))).trace, "file")
    (send,), (receive,), (any_source,) = map(lines_of, ("MPI_Isend", "MPI_Irecv(&halo", "MPI_ANY_SOURCE"))
    (reduce,), (residual,), (poll,), (null,) = map(
        lines_of, ("MPI_Allreduce", "= residual(", "neighbour(step)", "PROC_NULL")
    )
    for rank in range(4):
        right, left = ("+1" if rank < 3 else "-3"), ("-1" if rank > 0 else "+3")
        expected = {
            **{
                f"{what}; exchange (solver.c:{line}) < main (solver.c:{caller})": 60
                for what, line in ((f"to {right}", send), (f"from {left}", receive))
                for caller in lines_of(" exchange(&cell")
            },
            f"residual (solver.c:{reduce}) < main (solver.c:{residual})": 60,
            f"to null from null; main (solver.c:{null})": 1,
            f"from any; poll_neighbour (solver.c:{any_source}) < main (solver.c:{poll})": 60 * (rank % 2 == 0),
        }
        assert {place: places[rank].get(place, 0) for place in expected} == expected


def test_places_of_a_stripped_program_are_offsets(mpi: Mpi) -> None:
    places = calls(mpi.recorded(*mpi.mpirun(2, mpi.build("solver", "-s"))).trace, "file")
    for own in places.values():
        assert all(re.search(r"solver\+0x[0-9a-f]+$", place) for place in own)
        assert [n for place, n in own.items() if place.startswith("to null from null; solver+")] == [1]


def test_a_function_is_one_row_of_the_profile_whoever_calls_it(mpi: Mpi) -> None:
    trace = strobe.open(mpi.recorded(*mpi.mpirun(2, mpi.build("solver"))).trace)
    sums: dict[str, int] = {}
    for own in calls(trace.path).values():
        for name, n in own.items():
            sums[name] = sums.get(name, 0) + n
    flat = trace.profile(form="flat", step="all").to_arrow().to_pylist()
    assert sorted((row["name"], row["calls"]) for row in flat) == sorted(sums.items())
    inverted = trace.profile(form="inverted", step="all").to_arrow().to_pylist()
    assert sorted((row["name"], row["calls"]) for row in inverted) == sorted(sums.items())


def test_the_loop_of_a_solver_is_found_from_its_calls(mpi: Mpi) -> None:
    trace = strobe.open(mpi.recorded(*mpi.mpirun(2, mpi.build("solver"))).trace)
    steps = trace.steps().to_arrow()
    assert steps.num_rows > 0
    for process in set(steps["process"].to_pylist()):
        assert abs(steps["process"].to_pylist().count(process) - 60) <= 1
    met = {row["rank"]: row["collectives"] for row in trace.stragglers().to_pylist()}
    assert met[0] == met[1] > 0


def test_calls_of_mpi4py_lie_under_the_python_functions_that_make_them(mpi: Mpi) -> None:
    script = str(PROGRAMS / "solver.py")
    command = mpi.mpirun(2, sys.executable, script)
    plain, recorded = mpi.run(command), mpi.recorded(*command)
    lines = [sorted(re.findall(r"rank \d of 2: \d+", each.stdout)) for each in (plain, recorded)]  # launchers mix them
    assert lines == [["rank 0 of 2: 780", "rank 1 of 2: 780"]] * 2
    assert recorded.returncode == plain.returncode == 4

    found = calls(recorded.trace)
    assert sorted(found) == [0, 1]
    mpi.run(command, LD_PRELOAD=mpi.build("bytes.so", "-shared", "-fPIC"))
    told = bytes_told(recorded.trace)
    assert told == {rank: bytes_counted(mpi.workshop.folder, rank) for rank in (0, 1)}
    assert told[0]["MPI_Isend"] == (80, 40 + 80, 0)
    for rank, own in found.items():
        assert own["MPI_Irecv"] == own["MPI_Isend"] == own["MPI_Waitall"] == 80, rank
        assert own["MPI_Init_thread"] == own["MPI_Finalize"] == 1
    table = strobe.open(recorded.trace).sql(
        """select r.name as name, r.file as file, above.name as function, count(*)::bigint as n from spans s
        join regions r on r.region = s.region join call_paths p on p.call_path = s.call_path
        join call_paths q on q.call_path = p.parent join regions above on above.region = q.region
        where r.name in ('MPI_Isend', 'MPI_Waitall') group by all"""
    )
    rows = {(row["name"], row["file"], row["function"].rpartition(".")[2]): row["n"] for row in table.to_pylist()}
    assert rows == {
        ("MPI_Isend", "to +1", "exchange"): 80,
        ("MPI_Isend", "to -1", "exchange"): 80,
        ("MPI_Waitall", "", "exchange"): 160,
    }


@pytest.mark.parametrize("again", [0, *(pytest.param(number, marks=pytest.mark.nightly) for number in (1, 2))])
def test_ranks_start_while_threads_of_the_recorder_wait_for_the_loader(mpi: Mpi, again: int) -> None:
    """A library calls functions of pthreads as it is loaded, and so does a thread beside it: the loader finds both."""
    libraries = {"OMPI_MCA_btl": "^none", "OMPI_MCA_mtl": "^none"}  # all of them
    command = mpi.mpirun(8, sys.executable, str(PROGRAMS / "solver.py"))
    assert mpi.recorded(*command, STROBE_TRACE="+native", **libraries).returncode == 4


@pytest.mark.parametrize("program", ["solver", "solver.py"])
def test_ranks_that_each_run_strobe_share_one_trace_and_one_speaks(mpi: Mpi, program: str) -> None:
    command = [str(PROGRAMS / program)] if program.endswith(".py") else ["--", mpi.build(program)]
    done = mpi.run(mpi.mpirun(2, STROBE, "run", "-o", str(mpi.workshop.trace), *command))
    assert done.returncode == (4 if program.endswith(".py") else 3)
    assert done.stderr.count("Saved") == 1
    assert "strobe: " not in done.stderr
    assert [each.name for each in mpi.workshop.folder.glob("*.strobe")] == ["out.strobe"]
    found = calls(done.trace)
    assert sorted(found) == [0, 1]
    assert all(own["MPI_Isend"] > 0 for own in found.values())
    processes = strobe.open(done.trace).processes.to_arrow().to_pylist()
    assert [(each["process"], each["rank"], each["main"]) for each in processes] == [(0, 0, True), (1, 1, True)]
    assert not list(done.trace.glob("rank-*"))


def test_two_jobs_one_after_the_other_get_a_trace_each(mpi: Mpi) -> None:
    solver = mpi.build("solver")
    for _ in range(2):
        mpi.run(mpi.mpirun(2, STROBE, "run", "--quiet", "-o", str(mpi.workshop.trace), "--", solver))
    folders = sorted(mpi.workshop.folder.glob("*.strobe"))
    assert [folder.name for folder in folders] == ["out-2.strobe", "out.strobe"]
    assert all(sorted(calls(folder)) == [0, 1] for folder in folders)


@pytest.mark.parametrize("how", ["kill", "abort"])
def test_what_a_rank_did_before_it_died_is_in_the_trace(mpi: Mpi, how: str) -> None:
    program = mpi.build("ends")
    plain, recorded = mpi.run(mpi.mpirun(2, program, how)), mpi.recorded(*mpi.mpirun(2, program, how))
    assert recorded.returncode == plain.returncode != 0
    own = calls(recorded.trace)[1]
    assert own["MPI_Barrier"] == 701
    assert own["MPI_Init"] == 1
    assert own.get("MPI_Abort", 0) == (how == "abort")


@pytest.mark.parametrize("dies", [0, 1])
def test_a_rank_that_dies_ends_the_job_as_without_strobe(mpi: Mpi, dies: int) -> None:
    """The other one waits for it: the launcher ends the job when `strobe run` of the dead one has ended."""
    program = mpi.workshop.write(
        "dies.py",
        f"""
        import os, signal
        from mpi4py import MPI

        for n in range(100):
            if n == 50 and MPI.COMM_WORLD.rank == {dies}:
                os.kill(os.getpid(), signal.SIGSEGV)
            MPI.COMM_WORLD.allreduce(n)
        """,
    )
    plain = mpi.run(mpi.mpirun(2, sys.executable, str(program)))
    began = time.monotonic()
    done = mpi.run(mpi.mpirun(2, STROBE, "run", "-o", str(mpi.workshop.trace), str(program)))
    assert time.monotonic() - began < 30
    assert done.returncode == plain.returncode != 0
    assert calls(done.trace)[dies]["MPI_Init_thread"] == 1


def test_threads_call_at_once(mpi: Mpi) -> None:
    program = mpi.build("threads")
    done = mpi.recorded(*mpi.mpirun(2, program))
    assert done.returncode == 0
    if "level 1" not in done.stdout:
        pytest.skip("this MPI has no MPI_THREAD_MULTIPLE")
    assert {rank: own["MPI_Sendrecv"] for rank, own in calls(done.trace).items()} == {0: 600, 1: 600}


def test_what_threads_of_ranks_wait_for_beside_mpi_is_known_where_it_is_asked_for(mpi: Mpi) -> None:
    """Only the program's own waits: its calls of MPI take locks, too, and MPI has threads that wait."""
    done = mpi.recorded(*mpi.mpirun(2, mpi.build("locks")), STROBE_TRACE="+native")
    if done.returncode == 5:
        pytest.skip("this MPI has no MPI_THREAD_MULTIPLE")
    assert done.returncode == 0
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    known = {(rank, state): ns for rank, *both in rows for state, ns in zip(("lock", "join"), both, strict=True)}
    found = Counter[tuple[int, str]]()
    for row in strobe.open(done.trace).waits(by="all").to_pylist():
        if row["function"].startswith(("pthread_", "sem_")):
            state = {"pthread_mutex_lock(board)": "lock", "pthread_join": "join"}[row["function"]]
            found[row["rank"], state] += row["wait_ns"]
    assert len(known) == 4
    assert dict(found) == pytest.approx(known, rel=0.05, abs=2e6)


def test_the_library_is_harmless_without_a_session(mpi: Mpi) -> None:
    solver = mpi.build("solver")
    plain = mpi.run(mpi.mpirun(2, solver))
    preloaded = mpi.run(mpi.mpirun(2, solver), LD_PRELOAD=native.adapter_library("mpi"))
    assert (preloaded.stdout, preloaded.returncode) == (plain.stdout, plain.returncode)
    assert "strobe" not in preloaded.stderr
    killed = mpi.recorded(*mpi.mpirun(2, solver), STROBE_DISABLE="1")
    assert (killed.stdout, killed.returncode) == (plain.stdout, plain.returncode)
    assert not list(mpi.workshop.folder.glob("*.strobe"))


def test_a_program_without_mpi_leaves_no_file_behind(workshop: Workshop) -> None:
    done = workshop.recorded("--trace", "+mpi", "--", "bash", "-c", "echo $((6 * 7)); exit 5")
    assert done.visible == ("42\n", "", 5)
    assert not list(done.trace.glob("process-*"))


def test_when_mpi_is_recorded_without_being_asked(mpi: Mpi) -> None:
    solver = mpi.build("solver")
    assert parallel_jobs.calls_mpi({}, ["mpirun", "-n", "2", "x"]) is (parallel_jobs.shutil.which("mpirun") is not None)
    assert parallel_jobs.calls_mpi({}, [str(mpi.home / "bin/mpirun"), "-n", "2", "x"])
    assert parallel_jobs.calls_mpi({}, [solver])
    assert not parallel_jobs.calls_mpi({}, [sys.executable, "x.py"])
    assert parallel_jobs.calls_mpi({"PMI_RANK": "1", "PMI_SIZE": "2"}, [sys.executable, "x.py"])
    assert not parallel_jobs.calls_mpi({"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}, [sys.executable])  # a batch script


def test_a_launcher_is_found_behind_what_runs_it(mpi: Mpi) -> None:
    mpirun = str(mpi.home / "bin/mpirun")
    script = mpi.workshop.write("job.sh", f"#!/bin/sh\n# srun\nexport A=1; exec {mpirun} -n 2 ./x\n")
    script.chmod(0o755)
    for command in (
        ["env", "-u", "B", "A=1", mpirun, "-n", "2", "x"],
        ["nice", "-n", "1", "timeout", "60", mpirun, "x"],
        ["sh", "-c", f"cd /tmp && exec {mpirun} -n 2 x"],
        ["env", "A=1", "bash", "-c", 'exec "$@"', "bash", mpirun, "x"],
        ["sh", str(script)],
        [str(script)],
    ):
        assert parallel_jobs.calls_mpi({}, command), command
    other = mpi.workshop.write("other.sh", f"#!/bin/sh\n# exec {mpirun} -n 2 ./x\n")
    for command in (["env", "A=1"], ["env", "true", mpirun], ["sh", "-c", "true"], ["sh", str(other)], ["nice"]):
        assert not parallel_jobs.calls_mpi({}, command), command


def test_ranks_behind_env_and_a_shell_are_recorded(mpi: Mpi) -> None:
    text = "exec " + " ".join(mpi.mpirun(2, mpi.build("solver")))
    found = calls(mpi.recorded("env", "OMP_NUM_THREADS=1", "sh", "-c", text).trace)
    assert [found[rank]["MPI_Allreduce"] for rank in sorted(found)] == [60, 60]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_JOBID": "a"}, (3, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "b", "PMIX_RANK": "1"}, (1, 2)),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "9"}, (5, 8)),
        ({"PMI_RANK": "x", "PMI_SIZE": "4"}, None),
        ({"RANK": "3", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}, (3, 4)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, None),  # of a job script
        ({}, None),
    ],
)
def test_the_launcher_says_which_rank_we_are(variables: dict[str, str], expected: tuple[int, int] | None) -> None:
    rank = parallel_jobs.rank_of(variables)
    assert (None if rank is None else (rank.number, rank.size)) == expected


def test_torchruns_of_one_job_on_several_nodes_have_one_name() -> None:
    meeting = {"MASTER_ADDR": "node1", "MASTER_PORT": "29400", "TORCHELASTIC_RUN_ID": "a", "WORLD_SIZE": "4"}
    jobs = []
    for number in ("0", "3"):
        for again in ("0", "1"):
            own = {"LOCAL_WORLD_SIZE": "2", "RANK": number, "TORCHELASTIC_RESTART_COUNT": again}
            rank = parallel_jobs.rank_of({**meeting, **own})
            assert rank is not None
            jobs.append(rank.job)
    assert jobs[0] == jobs[2] != jobs[1] == jobs[3]
    assert not parallel_jobs.calls_mpi({**meeting, "RANK": "0"}, [sys.executable])


def test_a_trace_that_is_complete_takes_no_more_ranks(tmp_path: Path) -> None:
    trace = trace_folder.create(tmp_path / "out", ["solver"], {"job": "a"})
    assert trace_folder.job_of(trace) == "a"
    trace_folder.finish(trace, {"exit_code": 0})
    assert trace_folder.job_of(trace) == ""


def test_eight_ranks_of_a_launcher_on_the_path_are_one_trace(mpi: Mpi) -> None:
    path = f"{mpi.home / 'bin'}:/usr/bin:/bin"
    done = mpi.run(mpi.workshop.command("mpirun", "-n", "8", sys.executable, str(PROGRAMS / "solver.py")), PATH=path)
    assert done.returncode == 4
    assert sorted(re.findall(r"rank \d of 8", done.stdout)) == [f"rank {rank} of 8" for rank in range(8)]
    assert [each.name for each in mpi.workshop.folder.glob("*.strobe")] == ["out.strobe"]
    found = calls(done.trace)
    assert sorted(found) == list(range(8))
    assert all(own["MPI_Isend"] == 80 for own in found.values())


def test_ranks_of_one_launch_have_one_job_and_other_launches_another(mpi: Mpi) -> None:
    code = "import os; from strobe.record.launch import parallel_jobs; print(parallel_jobs.rank_of(os.environ).job)"
    jobs = [set(mpi.run(mpi.mpirun(2, sys.executable, "-c", code)).stdout.split()) for _ in range(2)]
    assert all(len(job) == 1 for job in jobs)
    assert jobs[0] != jobs[1]
    assert os.environ.get("PMI_RANK") is None


def test_ranks_of_a_compiled_program_are_sampled_as_they_measure_themselves(mpi: Mpi) -> None:
    polling = {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "0"}  # as without tests: samples are of processor time
    done = mpi.recorded(*mpi.mpirun(2, mpi.build("planted")), STROBE_TRACE="+native", **polling)
    assert (done.returncode, done.stderr) == (0, "")
    known = {int(rank): list(map(int, times)) for rank, *times in map(str.split, done.stdout.splitlines())}
    trace = strobe.open(done.trace)
    assert [process["rank"] for process in trace.processes.to_pylist()] == [0, 1]  # and neither of the launcher
    ran: dict[int, Counter[str]] = {0: Counter(), 1: Counter()}
    for each in sample_sums(trace):
        if each.state == "native":
            ran[trace.home(each.location).process][each.stack[-1]] += each.ran_ns
    for rank in (0, 1):
        found = {
            name: sum(ns for frame, ns in ran[rank].items() if re.fullmatch(rf"{name} \(.*/planted\.c:\d+\)", frame))
            for name in ("assemble", "relax")
        }
        computed = sum(known[rank])
        for name, ns in zip(found, known[rank], strict=True):
            assert found[name] / computed == pytest.approx(ns / computed, abs=0.05), (rank, name)
