"""Waits and messages are the same however many parts their logs are read in."""

from __future__ import annotations

import json
import tarfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe import native
from strobe.model.kinds import PARADIGMS
from strobe.ranks.waits import message_calls
from strobe.ranks.waits.wait_states import wait_parts
from strobe.sums import side_columns
from tests.golden.answers import TRACES
from tests.ranks import wait_archives
from tests.ranks.wait_case import Case
from tests.ranks.wait_cases import CASES
from tests.ranks.wait_cases_of_collectives import CASES_OF_COLLECTIVES

PARTS = (2, 3, 7)
ITERATIONS = 500
INTEGER, TEXT = 0, 2
COLUMNS = {
    "messages": ("time_ns", "direction", "peer_rank", "tag", "communicator", "size_bytes", "request", "pending_ns",
                 "in_call_ns", "call_path"),
    "folded_collectives": ("time_ns", "duration_ns", "call_path", "collective", "communicator", "rank", "group_size",
                           "sent_bytes", "received_bytes"),
}  # fmt: skip
TEXTS = ("direction", "communicator", "collective")


def answers(path: Path) -> list[object]:
    """Waits and messages in several ways in which they can be grouped, with what is written above them."""
    with strobe.open(path) as trace:
        tables = [trace.waits(by=by) for by in ("all", "wait")]
        tables += [trace.messages(by=by) for by in ("pair", "size", "call")]
        return [(table.to_pylist(), table.about, table.note) for table in tables]


def read_in_parts(path: Path, count: int, held_back: int, changed: pytest.MonkeyPatch) -> None:
    """From now on read the logs of a trace in so many parts, each row but so many of a location in the first one."""
    with strobe.open(path) as trace:
        rows = max(len(trace.side_table(name)) for name in COLUMNS)
    changed.setattr(side_columns, "PART_ROWS", max(1, -(-rows // count)))
    changed.setattr(message_calls, "_HELD_BACK", held_back)


@pytest.mark.parametrize("case", [*CASES, *CASES_OF_COLLECTIVES], ids=lambda case: case.name)
def test_hand_computed_cases_are_the_same_in_parts(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls whose messages lie in several parts, messages in wrong order, ends without a partner."""
    archive = wait_archives.write(case, tmp_path / "archive")
    whole = answers(archive)
    for count in PARTS:
        read_in_parts(archive, count, 1, monkeypatch)
        assert answers(archive) == whole


@pytest.mark.parametrize("name", ["mpi", "mpi-traffic", "gloo"])
def test_recordings_are_the_same_in_parts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers and exchanges, some of whose steps were folded."""
    with tarfile.open(TRACES / f"{name}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    path = tmp_path / f"{name}.strobe"
    whole = answers(path)
    for count in PARTS:
        read_in_parts(path, count, 3, monkeypatch)
        assert answers(path) == whole


def write_rank(folder: Path, rank: int, regions: tuple[str, ...], messages: list, collectives: list) -> None:
    """Write the process of a rank: rows of messages and collectives as in COLUMNS, calls as numbers of regions."""
    out = native.ImportedProcess(str(folder / f"process-{rank + 1}.blocks"), 1 << 20)
    main = out.region("main", PARADIGMS.index("compiler"), 0)
    outer = out.path(0xFFFFFFFF, main)
    paths = [out.path(outer, out.region(name, PARADIGMS.index("mpi"), 0)) for name in regions]
    location = out.location("main thread", 1000 + rank)
    for (name, columns), rows in zip(COLUMNS.items(), (messages, collectives), strict=True):
        table = out.table(name, [(column, TEXT if column in TEXTS else INTEGER) for column in columns], False)
        cells = []
        for at, column in enumerate(columns):
            values = [row[at] for row in rows]
            if column in TEXTS:
                values = [out.text(value) for value in values]
            if column == "call_path":
                values = [paths[value] for value in values]
            known = np.array([value is not None for value in values], dtype=np.uint8)
            cells.append((at, np.array([value or 0 for value in values], dtype=np.int64), known))
        out.rows(table, np.full(len(rows), location, dtype=np.uint32), cells)
    where, region = (np.full(1, number, dtype=np.uint32) for number in (location, main))
    out.spans(where, np.zeros(1, dtype=np.int64), np.full(1, 1_000_000), region)
    description = {"argv": ["./exchange"], "host": "node", "main": rank == 0}
    note = {"rank": rank, "ranks": 2}
    out.finish(10_000 + rank, 0, json.dumps(description), json.dumps(note), "closed")


def write_exchange(folder: Path) -> dict[str, tuple[int, int]]:
    """Write a run of two ranks, and return how many waits of each kind there are and how long they are.

    In each of its iterations of 1000 ns, rank 0 sends A, B and C with one tag. Rank 1 asks for all three, waits for B
    from 300 on, then for C, then for A until 700. Then both meet in an all-reduce.
    """
    random = np.random.default_rng(7)
    sends, receives, meetings, expected = [], [], ([], []), {name: [] for name in ("late_sender", "wait_at_nxn")}
    for number in range(ITERATIONS):
        begin = 1000 * number
        a, b, c = (10 * at for at in sorted(random.choice(58, 3, replace=False).tolist()))
        sends += [(begin + t, "send", 1, 5, "MPI_COMM_WORLD", 8, None, None, 1, 0) for t in (a, b, c)]
        of_b = max(301, b) + 5
        of_c = max(of_b, c) + 5
        receives += [
            (begin + of_b, "receive", 0, 5, "MPI_COMM_WORLD", 8, 3 * number + 1, of_b - 2, of_b - 300, 1),
            (begin + of_c, "receive", 0, 5, "MPI_COMM_WORLD", 8, 3 * number + 2, of_c - 3, of_c - of_b, 1),
            (begin + 700, "receive", 0, 5, "MPI_COMM_WORLD", 8, 3 * number, 700 - 1, 700 - of_c, 1),
        ]
        expected["late_sender"] += [b - 300] * (b > 300) + [c - of_b] * (c > of_b)
        came = random.integers(720, 900, 2).tolist()
        for rank, meeting in enumerate(meetings):
            length = max(came) + 10 - came[rank]
            meeting.append((begin + came[rank], length, 2, "MPI_Allreduce", "MPI_COMM_WORLD", rank, 2, 8, 8))
        expected["wait_at_nxn"] += [max(came) - min(came)] * (came[0] != came[1])
    folder.mkdir()
    regions = ("MPI_Bsend", "MPI_Wait", "MPI_Allreduce")
    write_rank(folder, 0, regions, sends, meetings[0])
    write_rank(folder, 1, regions, receives, meetings[1])
    ended = {"exit_code": 0, "ended_ns": 1_000_000}
    job = {"format_version": 1, "zero_ns": 0, "command": ["./exchange"], "ended": ended}
    (folder / "job.json").write_text(json.dumps(job))
    return {state: (len(waits), sum(waits)) for state, waits in expected.items()}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000])
def test_parts_of_a_table_have_all_its_cells(count: int, tmp_path: Path) -> None:
    """The same numbers and nulls as when it is read at once."""
    write_exchange(tmp_path / "job.strobe")
    with strobe.open(tmp_path / "job.strobe") as trace:
        for reader, (name, columns) in product(trace.readers, COLUMNS.items()):
            parts = [reader.numbers(name, [*columns, "no such column"], number, count) for number in range(count)]
            whole = reader.table(name)
            assert np.concatenate([location for location, _ in parts]).tolist() == whole["location"].tolist()
            for column in columns:
                missing = np.zeros(len(whole["location"]), dtype=np.int64)
                kind, values, valid = whole["columns"].get(column, ("", missing, missing))
                found = np.concatenate([cells[column][1] for _, cells in parts])
                assert found.tolist() == np.where(valid, values, -1).tolist()
                assert {cells[column][0] for location, cells in parts if len(location)} == {kind == "text"}
            assert all((cells["no such column"][1] == -1).all() for _, cells in parts)


@pytest.mark.parametrize("held_back", [1, 20])
def test_receives_that_end_in_another_order_match_across_parts(
    held_back: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part may end between the receives of B or C and that of A, which was asked for before them."""
    expected = write_exchange(tmp_path / "job.strobe")
    whole = answers(tmp_path / "job.strobe")
    for count in PARTS:
        read_in_parts(tmp_path / "job.strobe", count, held_back, monkeypatch)
        assert answers(tmp_path / "job.strobe") == whole
        with strobe.open(tmp_path / "job.strobe") as trace:
            found = {row["state"]: (row["waits"], row["wait_ns"]) for row in trace.waits().to_pylist()}
            assert {state: found[state] for state in expected} == expected
            assert [row["messages"] for row in trace.messages().to_pylist()] == [3 * ITERATIONS]


def test_no_part_has_much_more_than_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What memory grows with: the waits of a part."""
    write_exchange(tmp_path / "job.strobe")
    read_in_parts(tmp_path / "job.strobe", 7, 20, monkeypatch)
    with strobe.open(tmp_path / "job.strobe") as trace:
        waits = [len(found.waits) for found in wait_parts(trace)]
        assert max(waits) < sum(waits) / 5
