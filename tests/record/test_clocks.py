"""Ranks whose clocks are shifted by known amounts: where their events lie on the axis of the trace."""

import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe.record.launch import clock_server
from tests.record.test_mpi import Mpi
from tests.record.workshop import STROBE, Outcome, Workshop

# By rank: ns, parts per million of the time since the machine started. Rank 0 is of the trace's own node.
SHIFTS = {1: (250_000_000, 0), 2: (-3_000_000_000, 40), 3: (0, -100)}
_AS = "; ".join(
    f"{rank}) export STROBE_CLOCK_SHIFT_NS={ns} STROBE_CLOCK_DRIFT_PPM={ppm};" for rank, (ns, ppm) in SHIFTS.items()
)
SHIFTED = ["sh", "-c", f'case ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} in {_AS} esac; exec "$@"', "sh"]
ROUNDS = 120
CALLS = ("MPI_Barrier", "MPI_Send", "MPI_Recv")


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def shifted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Four ranks on nodes of their own, as far as strobe can know."""
    mpi = Mpi(request.param, Workshop(tmp_path_factory.mktemp(request.param)))
    program = mpi.build("clocks")
    done = mpi.recorded(*mpi.mpirun(4, *SHIFTED, program, str(ROUNDS)))
    assert (done.returncode, done.stderr) == (0, "")
    return done


def errors(trace: strobe.Trace) -> dict[int, int]:
    """By process, what the trace says about its clock."""
    return {row["process"]: row["value"] for row in trace.quality.to_pylist() if row["what"] == "clock_error_ns"}


def outside(trace: strobe.Trace, folder: Path) -> dict[int, int]:
    """By rank, by how much its calls begin before, or end after, what the program read from the clock around them."""
    names = trace.regions.column("name")
    found = {}
    for process in trace.processes.to_pylist():
        rank, worst = process["rank"], 0
        truth = [line.split() for line in (folder / f"truth-{rank}.txt").read_text().splitlines()]
        spans = [each for each in trace.locations.to_pylist() if each["process"] == process["process"]]
        arrays = trace.span_arrays(max(spans, key=lambda each: int(each["span_count"]))["location"])
        for call in CALLS:
            at = np.flatnonzero(np.array(names)[arrays["region"]] == call)
            at = at if call == "MPI_Barrier" else at[::2]  # the way back is not in the program's file
            told = np.array([[int(number) for number in line[1:]] for line in truth if line[0] == call])
            begin = arrays["start_ns"][at] + trace.zero_ns
            end = begin + arrays["duration_ns"][at]
            assert len(begin) == len(told) == ROUNDS
            worst = max(worst, int((told[:, 0] - begin).max()), int((end - told[:, 1]).max()))
        found[rank] = worst
    return found


def by_rank(trace: strobe.Trace) -> dict[int, int]:
    """Which process each rank is."""
    return {row["rank"]: row["process"] for row in trace.processes.to_pylist()}


def test_events_of_shifted_ranks_lie_where_they_were_within_the_error_that_is_stated(shifted: Outcome) -> None:
    trace = strobe.open(shifted.trace)
    process, stated = by_rank(trace), errors(trace)
    assert set(stated) == {process[rank] for rank in SHIFTS}  # nothing is said of the trace's own clock
    worst = outside(trace, shifted.trace.parent)
    assert worst[0] <= 1000  # TSC against clock_gettime
    repaired = {row["what"]: row["value"] for row in trace.quality.to_pylist()}.get("clock_violations_worst_ns", 0)
    for rank in SHIFTS:
        assert stated[process[rank]] < 20_000_000  # a busy machine answers late, and says so
        assert worst[rank] <= stated[process[rank]] + repaired + 1000, rank


def test_shift_and_drift_are_stated_as_they_were_set(shifted: Outcome) -> None:
    trace = strobe.open(shifted.trace)
    process = by_rank(trace)
    rows = {row["process"]: row for row in trace.quality.to_pylist() if row["what"] == "clock_error_ns"}
    for rank, (ns, ppm) in SHIFTS.items():
        row = rows[process[rank]]
        began = trace.zero_ns + int(trace.processes.to_pylist()[process[rank]]["started_ns"])
        times, measured, unit, way, drift = re.findall(
            r"measured (\d+) times: ([\d.,]+) (\w+) (ahead|behind).* drift (\S+) ppm", row["text"]
        )[0]
        assert int(times) >= 3  # at the start, after a second, at the end
        scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
        told = float(measured.replace(",", "")) * scale * (1 if way == "ahead" else -1)
        assert told == pytest.approx(ns + began * ppm / 1e6, rel=0.02, abs=row["value"])
        # Two readings a second apart, each wrong by the error.
        assert float(drift) == pytest.approx(ppm, abs=4 * row["value"] / 1e3)


def test_steps_pictures_and_sums_are_on_the_same_axis_as_spans(shifted: Outcome) -> None:
    trace = strobe.open(shifted.trace)
    for location in trace.locations.to_pylist():
        spans = trace.span_arrays(location["location"])
        if not len(spans["row"]):
            continue
        begin, end = int(spans["start_ns"].min()), int((spans["start_ns"] + spans["duration_ns"]).max())
        assert location["first_ns"] == begin
        region, _, _ = trace.pyramid.cells([location["location"]], begin - 2 * (end - begin), begin, 64)
        assert (region == 0xFFFFFFFF).all()
        region, _, _ = trace.pyramid.cells([location["location"]], begin, end, 16)
        assert (region != 0xFFFFFFFF).any()
        sums = trace.path_sums(location["location"])
        assert int(sums["calls"].sum()) == len(spans["row"])
        assert int(sums["total_ns"].sum()) == int(spans["duration_ns"].sum())
        moments = trace.side_table("messages").to_arrow()
        own = moments.filter(np.array(moments["location"]) == location["location"])["time_ns"].to_numpy()
        assert len(own) == 0 or (own.min() >= begin and own.max() <= end)


def test_parts_copies_and_workers_are_on_the_same_axis(shifted: Outcome, tmp_path: Path) -> None:
    trace = strobe.open(shifted.trace)
    trace.cut(tmp_path / "whole.strobe", anonymise=True)
    half = trace.part(time_ns=(0, trace.info.duration_ns // 2))
    half.cut(tmp_path / "half.strobe")
    whole, part = strobe.open(tmp_path / "whole.strobe"), strobe.open(tmp_path / "half.strobe")
    assert errors(whole) == errors(part) == errors(trace)
    with strobe.open(shifted.trace, jobs=2) as by_workers:
        assert by_workers.profile().to_pylist() == trace.profile().to_pylist()
    own, of_whole, of_part = trace.locations.to_pylist(), whole.locations.to_pylist(), part.locations.to_pylist()
    assert len(own) == len(of_whole)
    for number, location in enumerate(own):
        start = trace.span_arrays(number)["start_ns"] + trace.zero_ns
        assert (whole.span_arrays(number)["start_ns"] + whole.zero_ns).tolist() == start.tolist()
        (same,) = [n for n, each in enumerate(of_part) if (each["process"], each["name"]) ==
                   (location["process"], location["name"])] or [None]  # fmt: skip
        if same is not None and location["span_count"]:
            kept = half.span_arrays(number)["start_ns"] + half.zero_ns
            assert (part.span_arrays(same)["start_ns"] + part.zero_ns).tolist() == kept.tolist()


def blind(shifted: Outcome, to: Path) -> Path:
    """The same trace as if nobody had measured anything: the manifest does not say whose clock is the trace's."""
    shutil.copytree(shifted.trace, to, ignore=shutil.ignore_patterns("clocks.json", "*.tiles"))
    job = json.loads((to / "job.json").read_text())
    del job["node"], job["wall"], job["checksum"]
    (to / "job.json").write_text(json.dumps(job))
    return to


def clocks(trace: Path, *options: str) -> str:
    """What `strobe clocks` says."""
    return subprocess.run(
        [STROBE, "clocks", *options, str(trace)], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_without_measurements_messages_are_in_the_wrong_order_and_repair_puts_them_right(
    shifted: Outcome, tmp_path: Path
) -> None:
    folder = blind(shifted, tmp_path / "blind.strobe")
    said = clocks(folder)
    # Two messages a round between each of four neighbours; every barrier has ranks seconds apart.
    count, bad = re.findall(r"messages between clocks: ([\d,]+), in the wrong order: ([\d,]+)", said)[0]
    assert int(count.replace(",", "")) == 8 * ROUNDS
    # Of each pair of neighbours one way round is wrong, whatever the shifts: all that go to the clock that is behind.
    assert int(bad.replace(",", "")) == 4 * ROUNDS
    assert f"collectives between clocks: {ROUNDS}, in the wrong order: {ROUNDS}" in said

    said = clocks(folder, "--repair")
    assert re.search(r"messages between clocks: [\d,]+, in the wrong order: 0\n", said)
    assert f"collectives between clocks: {ROUNDS}, in the wrong order: 0\n" in said
    assert f"before, {5 * ROUNDS} were in the wrong order" in said

    repaired, before = strobe.open(folder), strobe.open(blind(shifted, tmp_path / "again.strobe"))
    for location in range(len(before.locations)):
        old, new = before.span_arrays(location), repaired.span_arrays(location)
        assert (np.diff(new["start_ns"]) >= 0).all()
        assert old["row"].tolist() == new["row"].tolist()
        # Nothing becomes shorter by more than 1 %, but for rounding.
        assert (new["duration_ns"] >= 0.99 * old["duration_ns"] - 3).all()
        assert (np.diff(new["start_ns"]) >= 0.99 * np.diff(old["start_ns"]) - 3).all()
    assert "wrong order: 0" not in clocks(folder, "--as-measured")
    assert strobe.open(folder).span_arrays(0)["start_ns"].tolist() == before.span_arrays(0)["start_ns"].tolist()


def test_ranks_with_a_recorder_each_ask_that_of_the_first_one(workshop: Workshop) -> None:
    mpi = Mpi("mpich", workshop)
    program = mpi.build("clocks")
    done = mpi.run(mpi.mpirun(2, *SHIFTED, *workshop.command("--", program, str(ROUNDS))))
    assert (done.returncode, done.stderr) == (0, "")
    trace = strobe.open(done.trace)
    stated, worst = errors(trace), outside(trace, workshop.folder)
    assert list(stated) == [by_rank(trace)[1]]
    assert worst[1] <= stated[by_rank(trace)[1]] + 1000
    assert not (done.trace / "clock-server").exists()


def test_only_who_knows_the_run_is_answered(tmp_path: Path) -> None:
    port, proof, _, *addresses = clock_server.start(str(tmp_path)).split()
    assert "127.0.0.1" in addresses
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(60)
        link.connect(("127.0.0.1", int(port)))
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        good = struct.pack("<4sI16sQ", b"SCLQ", 3, proof.encode(), 0)
        bad = struct.pack("<4sI16sQ", b"SCLQ", 2, proof.encode(), 0)
        for question in (bad.replace(b"SCLQ", b"xxxx"), bad[:-1], bad + b"1", bad.replace(proof.encode(), b"0" * 16)):
            link.send(question)
        link.send(good)
        magic, number, received, sent, _ = struct.unpack("<4sIqqQ", link.recv(100))
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert (magic, number) == (b"SCLA", 3)
    assert before <= received <= sent <= after
    clock_server.stop(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_of_another_node_keeps_the_reading_of_its_start(workshop: Workshop) -> None:
    workshop.write(
        "killed.py",
        """
        import os, signal, time
        import strobe
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            with strobe.region(f"at {time.clock_gettime_ns(time.CLOCK_MONOTONIC)}"):
                time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    done = workshop.recorded(
        "--trace", "+mpi", "killed.py", env={"STROBE_CLOCK_SHIFT_NS": "7000000000", "STROBE_CLOCK_DRIFT_PPM": "20"}
    )
    assert done.returncode == -signal.SIGKILL
    trace = strobe.open(done.trace)
    (error,) = errors(trace).values()
    names, seen = trace.regions.column("name"), 0
    for location in range(len(trace.locations)):
        spans = trace.span_arrays(location)
        for region, start in zip(spans["region"].tolist(), spans["start_ns"].tolist(), strict=True):
            if str(names[region]).startswith("at "):
                seen += 1
                late = start + trace.zero_ns - int(str(names[region])[3:])
                # One reading knows no drift: 20 us a second.
                assert -error - 20_000 <= late <= error + 20_000_000
    assert seen >= 5


def test_processes_of_one_node_open_no_socket_and_say_nothing_of_clocks(workshop: Workshop) -> None:
    workshop.write("plain.py", "import os; print(sorted(os.readlink(f'/proc/self/fd/{n}')[:6] for n in range(3, 40) "
                               "if os.path.exists(f'/proc/self/fd/{n}')))")  # fmt: skip
    done = workshop.recorded("--trace", "+mpi", "plain.py")
    assert "socket" not in done.stdout
    assert errors(strobe.open(done.trace)) == {}
