"""Rows and totals recorded through Python, as adapters do, read back as tables of a trace; after a kill, too."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import strobe

pytestmark = pytest.mark.every_python

MESSAGE, GROUP_COLLECTIVE = 1, 3
PROGRAM = """
import sys
from strobe.native import core

core.start(sys.argv[1], "{}")
nothing, half = core.NOTHING, core.NOTHING_32

def two(first, second):
    value = (second & 0xFFFFFFFF) << 32 | first & 0xFFFFFFFF
    return value - (1 << 64) if value >> 63 else value

def three(first, second, third):
    return sum((value & 0x1FFFFF) << 21 * place for place, value in enumerate((first, second, third)))

unknown = -(1 << 20)
send, world, reduce, dtype, group = (core.text(t) for t in ("send", "MPI_COMM_WORLD", "all_reduce", "float32", "dp"))
about = core.text(f"8,{core.text('mesh_dp')}")
outer, inner = core.region("outer", 5, 3), core.region("inner", 5, 10)
for step in range(1000):
    core.enter(outer)
    core.enter(inner)
    named, numbers = three(reduce, dtype, group), three(0, unknown, step % 5)
    core.row(3, named, numbers, two(step, about), step * 4, step * 8, nothing)
    core.leave(inner)
    core.row(1, two(send, world), two(step % 7, half), two(5, half), 100 + step, 77, nothing)
    core.total(inner, world, step % 7, -1, 1, 100 + step, 0, 10)
    core.leave(outer)
print("ready", flush=True)
sys.stdin.readline()
core.stop()
"""


def listed(table: Any) -> list[dict[str, Any]]:
    """The rows of a table, of whatever types."""
    return cast("list[dict[str, Any]]", table.to_pylist())


@pytest.fixture(scope="module", params=["closed", "killed"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> strobe.Trace:
    """A process that recorded rows and was stopped, or killed without a warning."""
    folder = tmp_path_factory.mktemp("rows") / "rows.strobe"
    folder.mkdir()
    environment = {**os.environ, "STROBE_CLOCK_WITHOUT_TSC": "1"}  # ticks, in which messages have their lengths, are ns
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if request.param == "killed":
        os.kill(process.pid, signal.SIGKILL)
    process.communicate("\n")
    return strobe.open(Path(folder))


def test_rows_of_spans_belong_to_the_span_that_was_open(trace: strobe.Trace) -> None:
    """Every collective is of the innermost span, and holds what the program said."""
    rows = listed(trace.side_table("collective_spans"))
    assert len(rows) == 1000
    spans = listed(trace.spans())
    names = trace.regions.column("name")
    assert {names[spans[row["row"]]["region"]] for row in rows} == {"inner"}
    assert rows[7] | {"sequence": 7, "sent_bytes": 28, "received_bytes": 56, "bucket": 2, "group_size": 8} == rows[7]
    assert (rows[7]["collective"], rows[7]["dtype"], rows[7]["group"]) == ("all_reduce", "float32", "dp")
    assert rows[7]["group_description"] == "mesh_dp"
    assert rows[7]["root"] is None
    assert rows[7]["group_ranks"] is None


def test_messages_have_times_and_totals_are_their_sums(trace: strobe.Trace) -> None:
    """Messages lie inside of their outer span; totals by peer are what summing the messages gives."""
    rows = listed(trace.side_table("messages"))
    outer = [span for span in listed(trace.spans()) if span["parent"] is None]
    assert len(rows) == len(outer) == 1000
    for row, span in zip(rows, outer, strict=True):
        assert span["start_ns"] <= row["time_ns"] <= span["start_ns"] + span["duration_ns"]
        assert (row["direction"], row["communicator"], row["request"]) == ("send", "MPI_COMM_WORLD", None)
        assert (row["tag"], row["in_call_ns"], row["call_path"]) == (5, 77, span["call_path"])
    totals = {row["peer_rank"]: row for row in listed(trace.side_table("message_totals"))}
    assert len(totals) == 7
    for peer, total in totals.items():
        of_peer = [row for row in rows if row["peer_rank"] == peer]
        assert total["calls"] == len(of_peer)
        assert total["sent_bytes"] == sum(row["size_bytes"] for row in of_peer)
        assert total["function"] == "inner"
        assert total["size_bytes"] is None


FOLDED = """
import sys, time
from strobe.native import core

core.start(sys.argv[1], "{}", metrics_period_ms=0xFFFFFFFF, keep=3)
stacks = [core.text(f"main (a.py:1)\\nf{i} (a.py:{i})") for i in range(3)]
python = core.text("python")
step, around = core.region("Optimizer.step#SGD.step", 2, 2), core.region("train", 5, 3)
core.enter(around)
for i in range(400):
    core.row(4, stacks[i % 3] << 32, python | (0x80000000 << 32) - (1 << 64), core.NOTHING, 0x80000000, 1000, 600)
    core.enter(step)
    time.sleep(0.001)
    core.leave(step)
core.leave(around)
core.stop()
"""


def test_samples_of_folded_steps_are_summed(tmp_path: Path) -> None:
    """Samples of kept steps and sums of the others are all that there were, by call stack."""
    folder = tmp_path / "folded.strobe"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", FOLDED, str(folder)], check=True)
    trace = strobe.open(folder)
    kept, sums = listed(trace.side_table("samples")), listed(trace.side_table("sample_totals"))
    assert 0 < len(kept) < 200
    for i in range(3):
        stack = f"main (a.py:1)\nf{i} (a.py:{i})"
        number = len([row for row in kept if row["call_stack"] == stack])
        number += sum(row["samples"] for row in sums if row["call_stack"] == stack)
        assert number == len(range(i, 400, 3))
    assert sum(r["period_ns"] for r in kept) + sum(r["total_ns"] for r in sums) == 400 * 1000
    by_name = {row["name"]: row for row in listed(trace.samples())}
    assert by_name["f0"]["python_ns"] == 134 * 600
    assert by_name["main"]["total_ns"] == 400 * 600


CONFIGURATIONS = """
import sys
from strobe.native import core

core.start(sys.argv[1], "{}", metrics_period_ms=0xFFFFFFFF)
regular = core.text("regular")
texts = [
    core.text(f"0,1,7,{640 + i},2,1,128,1,1,{'' if i % 2 else 32 + i},0,0,0,0,0,0,-2,{'' if i % 3 else regular},")
    for i in range(5)
]
nothing = (0x80000000 << 32) + 0x80000000 - (1 << 64)
kernel = core.region("kernel", 2, 2)
for i in range(5000):
    core.enter(kernel)
    core.row(6, texts[i * i % 5] << 32 | 100 + i, nothing, core.NOTHING, core.NOTHING, 0, 0)
    core.leave(kernel)
core.stop()
"""


def test_what_many_kernels_share_is_that_of_each(tmp_path: Path) -> None:
    """Configurations with and without a cell, more rows than fit into a chunk."""
    folder = tmp_path / "shapes.strobe"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", CONFIGURATIONS, str(folder)], check=True)
    rows = listed(strobe.open(folder).side_table("kernel_spans"))
    assert len(rows) == 5000
    for i, row in enumerate(rows):
        shape = i * i % 5
        assert (row["correlation"], row["grid_x"], row["grid_y"], row["priority"]) == (100 + i, 640 + shape, 2, -2)
        assert row["registers_per_thread"] == (None if shape % 2 else 32 + shape)
        assert row["launch_type"] == (None if shape % 3 else "regular")
        assert row["cache_config"] is None
