"""Rows and totals recorded through Python, as adapters do, read back as tables of a trace; after a kill, too."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import strobe

MESSAGE, GROUP_COLLECTIVE = 1, 3
PROGRAM = """
import sys
from strobe.native import core

core.start(sys.argv[1], "{}")
nothing, half = core.NOTHING, core.NOTHING_32

def two(first, second):
    value = (second & 0xFFFFFFFF) << 32 | first & 0xFFFFFFFF
    return value - (1 << 64) if value >> 63 else value

send, world, reduce, dtype, group = (core.text(t) for t in ("send", "MPI_COMM_WORLD", "all_reduce", "float32", "dp"))
outer, inner = core.region("outer", 5, 3), core.region("inner", 5, 10)
for step in range(1000):
    core.enter(outer)
    core.enter(inner)
    core.row(3, two(reduce, dtype), two(group, 0), two(2, 8), step * 4, step * 8, two(step, half))
    core.leave(inner)
    core.row(1, two(send, world), two(step % 7, half), step, 100 + step, nothing, 5)
    core.total(inner, world, step % 7, -1, 1, 100 + step, 0, 10)
    core.leave(outer)
print("ready", flush=True)
sys.stdin.readline()
core.stop()
"""


@pytest.fixture(scope="module", params=["closed", "killed"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> strobe.Trace:
    """A process that recorded rows and was stopped, or killed without a warning."""
    folder = tmp_path_factory.mktemp("rows") / "rows.strobe"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    if request.param == "killed":
        os.kill(process.pid, signal.SIGKILL)
    process.communicate("\n")
    return strobe.open(Path(folder))


def test_rows_of_spans_belong_to_the_span_that_was_open(trace: strobe.Trace) -> None:
    """Every collective is of the innermost span, and holds what the program said."""
    rows = trace.side_table("collective_spans").to_pylist()
    assert len(rows) == 1000
    spans = trace.spans.to_pylist()
    names = trace.regions.column("name")
    assert {names[spans[row["row"]]["region"]] for row in rows} == {"inner"}
    assert rows[7] | {"sequence": 7, "sent_bytes": 28, "received_bytes": 56, "rank": 2, "group_size": 8} == rows[7]
    assert (rows[7]["collective"], rows[7]["dtype"], rows[7]["group"]) == ("all_reduce", "float32", "dp")
    assert rows[7]["root"] is None and rows[7]["group_ranks"] is None


def test_messages_have_times_and_totals_are_their_sums(trace: strobe.Trace) -> None:
    """Messages lie inside of their outer span; totals by peer are what summing the messages gives."""
    rows = trace.side_table("messages").to_pylist()
    outer = [span for span in trace.spans.to_pylist() if span["parent"] is None]
    assert len(rows) == len(outer) == 1000
    for row, span in zip(rows, outer, strict=True):
        assert span["start_ns"] <= row["time_ns"] <= span["start_ns"] + span["duration_ns"]
        assert (row["direction"], row["communicator"], row["request"]) == ("send", "MPI_COMM_WORLD", None)
    totals = {row["peer_rank"]: row for row in trace.side_table("message_totals").to_pylist()}
    assert len(totals) == 7
    for peer, total in totals.items():
        of_peer = [row for row in rows if row["peer_rank"] == peer]
        assert total["calls"] == len(of_peer) and total["sent_bytes"] == sum(row["size_bytes"] for row in of_peer)
        assert total["function"] == "inner" and total["size_bytes"] is None
