"""Recordings of MPI for the tools of Score-P's users, as readers of others and an independent counter see them."""

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import strobe
from tests.formats.round_trip import contents
from tests.record.test_mpi import PROGRAMS, Mpi, bytes_counted
from tests.record.workshop import Workshop

pytest.importorskip("otf2", reason="the official otf2 package is not installed (there is no wheel after Python 3.11)")
import otf2

pytestmark = pytest.mark.mpi
# Events that begin something, and those that complete it.
PAIRS = {
    "MpiIsend": "MpiIsendComplete",
    "MpiIrecvRequest": "MpiIrecv",
    "NonBlockingCollectiveRequest": "NonBlockingCollectiveComplete",
}


PRELOADED = ("bytes", "late_clock")


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, workshop: Workshop) -> Mpi:
    """Each MPI in turn."""
    return Mpi(request.param, workshop)


@dataclass
class Seen:
    """The events of one rank: how many of each type, and of each type those that are outside of a call of MPI."""

    events: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)


def seen(folder: Path) -> dict[int, Seen]:
    """What an archive has of each rank. Times go forward, and each request is completed once, by its own kind."""
    found: dict[int, Seen] = {}
    stacks: dict[int, list[str]] = {}
    begun: dict[int, dict[int, str]] = {}
    last: dict[int, int] = {}
    with otf2.reader.open(str(folder / "traces.otf2")) as archive:
        for location, event in archive.events:
            what, here = type(event).__name__, location._ref
            assert event.time >= last.get(here, 0)
            last[here] = event.time
            rank = re.fullmatch(r"MPI Rank (\d+)", location.group.name)
            if rank is None:
                continue
            stack, open_requests = stacks.setdefault(here, []), begun.setdefault(here, {})
            if what == "Enter":
                stack.append(event.region.name)
            elif what == "Leave":
                stack.pop()
            elif what.startswith(("Mpi", "NonBlocking")):
                own = found.setdefault(int(rank[1]), Seen())
                own.events[what] += 1
                own.outside[what] += not (stack and stack[-1].startswith("MPI_"))
                if what in PAIRS:
                    assert event.request_id not in open_requests
                    open_requests[event.request_id] = what
                elif what in PAIRS.values():
                    assert PAIRS[open_requests.pop(event.request_id)] == what
    assert not any(begun.values())
    return found


def check_places(own: Seen) -> None:
    """Events lie in the call that they belong to. When a collective was asked for is known only nearly."""
    assert set(+own.outside) <= {"NonBlockingCollectiveRequest"}
    assert own.outside.total() <= own.events.total() // 50


def messages(trace: strobe.Trace) -> list[tuple[object, ...]]:
    """All rows, without call paths: these have other numbers in another trace."""
    return trace.sql("select * exclude (call_path) from messages order by all").rows()


def exported(trace: strobe.Trace, folder: Path) -> list[str]:
    """Write an archive; return what it lacks, without the sums."""
    return [note for note in trace.export(folder, "otf2") if " rows of " not in note and "executions" not in note]


@pytest.mark.parametrize(
    ("mpi", "program", "size"), [("mpich", "solver", 4), ("openmpi", "traffic", 3)], indirect=["mpi"]
)
def test_what_does_not_block_is_exported_as_such(mpi: Mpi, program: str, size: int, tmp_path: Path) -> None:
    binary, *preloaded = mpi.build(program), *(mpi.build(f"{name}.so", "-shared", "-fPIC") for name in PRELOADED)
    recorded = mpi.recorded(*mpi.mpirun(size, binary), LD_PRELOAD=" ".join(preloaded))
    trace = strobe.open(recorded.trace)
    assert exported(trace, tmp_path / "archive") == []
    archive = seen(tmp_path / "archive")
    assert sorted(archive) == list(range(size))
    for rank, own in archive.items():
        calls = Counter({name: count for name, (count, _, _) in bytes_counted(mpi.workshop.folder, rank).items()})
        if program == "solver":
            sends, receives = calls["MPI_Isend"] + 5, calls["MPI_Irecv"] + 5  # five starts of a pair of requests
            collectives = calls["MPI_Iallreduce"]
            assert own.events["MpiSend"] == calls["MPI_Send"]
            assert own.events["MpiRecv"] == calls["MPI_Recv"]
        else:
            # Four starts of each kind, others are of a collective. One receive was cancelled.
            sends = sum(calls[name] for name in ("MPI_Isend", "MPI_Ibsend", "MPI_Issend")) + 4
            receives = calls["MPI_Irecv"] - 1 + calls["MPI_Imrecv"] + 4
            names = ("Ibarrier", "Ibcast", "Iallreduce", "Igather", "Comm_idup")
            collectives = sum(calls[f"MPI_{name}"] for name in names) + calls["MPI_Start"] - 8
        expected = {"MpiIsend": sends, "MpiIrecvRequest": receives, "NonBlockingCollectiveRequest": collectives}
        assert {name: own.events[name] for name in PAIRS} == expected
        check_places(own)
    again = strobe.open(tmp_path / "archive")
    before, after = contents(trace), contents(again)
    for name in ("spans", "collective_spans", "totals"):
        assert after[name] == before[name], name
    assert messages(again) == messages(trace)
    assert sorted(again.profile().rows()) == sorted(trace.profile().rows())


def test_what_lies_in_folded_steps_is_left_out_and_counted(mpi: Mpi, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    recorded = mpi.recorded(*mpi.mpirun(2, sys.executable, str(PROGRAMS / "late.py")), STROBE_KEEP="5")
    assert recorded.returncode == 0
    trace = strobe.open(recorded.trace)
    assert trace.folded_count > 1000
    notes = exported(trace, tmp_path / "archive")
    archive = seen(tmp_path / "archive").values()
    events = sum((each.events for each in archive), Counter[str]())
    counts = {
        what: sum(int(note.split()[0]) for note in notes if what in note) for what in ("look like", "are left out")
    }
    # Of the send of the last step before folded ones, only the request is seen.
    assert events["MpiSend"] > 0
    assert counts["look like"] == events["MpiSend"] + events["MpiRecv"] + events["MpiCollectiveEnd"]
    written = sum(events[name] for name in ("MpiSend", "MpiIsend", "MpiRecv", "MpiIrecv"))
    assert len(trace.side_table("messages")) == written + counts["are left out"]
    assert counts["are left out"] > 0
    for own in archive:
        check_places(own)


def test_a_request_that_is_cut_off_is_a_blocking_message(mpi: Mpi, tmp_path: Path) -> None:
    recorded = mpi.recorded(*mpi.mpirun(2, mpi.build("solver")))
    trace = strobe.open(recorded.trace)
    rows = trace.sql("select direction, time_ns, pending_ns from messages where request is not null").rows()
    times = [(at, at + pending) if what == "send" else (at - pending, at) for what, at, pending in rows]
    kept = [what == "send" for what, _, _ in rows]  # by their request; receives by their completion
    begin, end = (sum(times[place]) // 2 for place in (len(times) // 5, len(times) * 4 // 5))
    expected = sum(
        begin <= (asked if sent else over) < end and not (begin <= asked and over <= end)
        for (asked, over), sent in zip(times, kept, strict=True)
    )
    assert expected > 0
    trace.part(time_ns=(begin, end)).cut(tmp_path / "cut.strobe")
    for name, part in ("part", trace.part(time_ns=(begin, end))), ("cut", strobe.open(tmp_path / "cut.strobe")):
        notes = exported(part, tmp_path / name)
        (note,) = [note for note in notes if "look like blocking" in note]
        assert int(note.split()[0]) == expected
        written = sum((each.events for each in seen(tmp_path / name).values()), Counter[str]())
        waited = sum(row is not None for row in part.side_table("messages").column("request"))
        assert written["MpiIsend"] + written["MpiIrecv"] == waited - expected
        assert messages(strobe.open(tmp_path / name)) == messages(part)


@pytest.mark.filterwarnings("ignore")
def test_a_cube4_profile_has_the_calls_and_all_the_time_of_each_rank(mpi: Mpi, tmp_path: Path) -> None:
    pycubexr = pytest.importorskip("pycubexr")
    binary, counter = mpi.build("solver"), mpi.build("bytes.so", "-shared", "-fPIC")
    trace = strobe.open(mpi.recorded(*mpi.mpirun(2, binary), LD_PRELOAD=counter).trace)
    assert trace.export(tmp_path / "profile.cubex") == []
    with pycubexr.CubexParser(tmp_path / "profile.cubex") as cube:
        visits, time = (cube.get_metric_values(cube.get_metric_by_name(name)) for name in ("visits", "time"))
        (program,) = cube.get_root_cnodes()
        names = [region.name for region in cube._anchor_result.regions]
        assert names.count("MPI_Irecv") == 1  # one function, whoever calls it
        places = [each.name for each in cube._anchor_result.system_tree_nodes[0].all_location_groups()]
        assert places == ["MPI Rank 0", "MPI Rank 1"]
        for rank in range(2):
            found = Counter[str]()
            for node in program.get_children():
                found[cube.get_region(node).name] += int(visits.cnode_values(node)[rank])
            calls = {name: count for name, (count, _, _) in bytes_counted(mpi.workshop.folder, rank).items()}
            assert {name: count for name, count in found.items() if count} == calls
            (lasted,) = trace.sql(f"select ended_ns - started_ns from processes where rank = {rank}").rows()[0]
            whole = time.cnode_values(program, convert_to_inclusive=True)[rank]
            assert round(whole * 10**9) == lasted


def test_files_of_ranks_are_those_that_the_ranks_wrote(mpi: Mpi, tmp_path: Path) -> None:
    recorded = mpi.recorded(*mpi.mpirun(2, mpi.build("files")), STROBE_TRACE="+io")
    assert recorded.returncode == 0
    trace = strobe.open(recorded.trace)
    assert exported(trace, tmp_path / "archive") == []
    found: Counter[tuple[str, str, str]] = Counter()
    moved: Counter[str] = Counter()
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        for location, event in archive.events:
            what = type(event).__name__
            if what.startswith("Io") and event.handle.file and "/rank-" in event.handle.file.name:
                name = Path(event.handle.file.name).name
                found[location.group.name, name, what] += 1
                moved[name] += event.bytes_result if what == "IoOperationComplete" else 0
    for rank in range(2):
        own = {what: count for (group, name, what), count in found.items() if name == f"rank-{rank}"}
        times = 10 + rank + 1
        assert own == {
            "IoCreateHandle": 1, "IoOperationBegin": times, "IoOperationComplete": times, "IoSeek": 1,
            "IoDestroyHandle": 1,
        }  # fmt: skip
        assert {group for group, name, _ in found if name == f"rank-{rank}"} == {f"MPI Rank {rank}"}
        assert moved[f"rank-{rank}"] == (10 + rank) * 100 + 5
