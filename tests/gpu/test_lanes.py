"""What the time of GPUs went into, step by step: added up while the program runs, by the reader, and by brute force."""

from __future__ import annotations

import itertools
import shutil
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import strobe
from strobe.gpu.devices import Device, devices
from strobe.gpu.lanes import Lanes, lanes
from strobe.gpu.launches import launches
from strobe.gpu.work import MASKS
from strobe.present.gpus import gpus
from strobe.steps.process_steps import ProcessSteps
from strobe.steps.steps import find_steps
from tests.gpu.recorded import CLOCK_NS, Recorded, record

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

# Iterations are recorded, and all of them stay in detail.
ALL_RECORDED = ("--keep", "all", "--min-duration", "1ns")

# Kernels on two streams, communication and copies beside them, and a second GPU that rests in every third step; every
# fifth step launches nothing, and some are slow.
MIXED = """
import strobe
gpu = fake_cuda.Gpu()
compute, more, reduce, copies = (gpu.stream(non_blocking=True) for _ in range(4))
other = fake_cuda.Gpu(1)
def work(number):
    if number % 5 == 4:
        return
    gpu.memcpy(1, 1024, stream=copies, ns=120_000)
    for _ in range(3):
        gpu.launch("gemm", stream=compute, ns=50_000 + number * 100)
    gpu.launch("relu", stream=more, ns=70_000)
    gpu.launch("ncclDevKernel_AllReduce_Sum_f32", stream=reduce, ns=220_000)
    gpu.memset(64, stream=more, ns=20_000)
    if number % 3:
        other.launch("gemm", ns=150_000)
def train():
    for number in range(120):
        strobe.step()
        work(number)
        time.sleep(0.004 if number % 20 == 7 else 0.0004)
train()
gpu.launch("at the end", stream=compute, ns=30_000)
gpu.synchronize()
other.synchronize()
"""
# A copy overtakes kernels of steps before on its own stream; the GPU falls behind its host by more and more.
BEHIND = """
import strobe
gpu = fake_cuda.Gpu()
copies = gpu.stream(non_blocking=True)
compute = gpu.stream(non_blocking=True)
def train():
    for number in range(150):
        strobe.step()
        if number % 4 == 1:
            gpu.memcpy(1, 1024, stream=copies, ns=100_000)
        gpu.launch("few", stream=compute, ns=2_000_000)
        time.sleep(0.0005)
train()
gpu.synchronize()
"""


def activities(trace: strobe.Trace, device: Device) -> list[tuple[int, int, int, int]]:
    """Launch, start, end and kind of everything that is in detail."""
    found = []
    for work, who in launches(trace, device):
        launched = np.where(who.call.row >= 0, who.call.start_ns, work.start_ns)
        found += list(zip(*(each.tolist() for each in (launched, work.start_ns, work.end_ns, work.kind)), strict=True))
    return found


def counted(steps: ProcessSteps, ran: list[tuple[int, int, int, int]]) -> Iterator[tuple[int, list[int]]]:
    """The lane of each step by the words of native/structure/gpu_lanes.h: its start, and its time by set of kinds."""
    begins, ends = steps.start_ns.tolist(), steps.end_ns.tolist()
    row_begin = row_end = 0

    def since(moment: int) -> int:
        first = min((start for launched, start, _, _ in ran if launched >= moment), default=row_end)
        return max(row_begin, min(row_end, first))

    for k in range(len(begins)):
        if k == 0 or ends[k - 1] != begins[k]:
            last = next(i for i in range(k, len(begins)) if i + 1 == len(begins) or ends[i] != begins[i + 1])
            row_begin = row_end
            row_end = max((end for launched, _, end, _ in ran if launched < ends[last]), default=row_begin)
        is_last = k + 1 == len(begins) or begins[k + 1] != ends[k]
        begin, until = since(begins[k]), row_end if is_last else since(begins[k + 1])
        here = [
            (max(start, begin), min(end, until), kind) for _, start, end, kind in ran if start < until and end > begin
        ]
        edges = sorted({begin, until, *(edge for start, end, _ in here for edge in (start, end))})
        sets = [0] * MASKS
        for one, next_one in itertools.pairwise(edges):
            sets[sum(1 << kind for kind in {k for start, end, k in here if start <= one < end})] += next_one - one
        yield begin, sets


def without_lanes(run: Recorded) -> strobe.Trace:
    """The trace as an older strobe would have recorded it."""
    shutil.copytree(run.folder / "t.strobe", run.folder / "old.strobe")
    for path in (run.folder / "old.strobe").glob("**/*.blocks"):
        bytes_, at, kept = path.read_bytes(), 0, b""
        while at < len(bytes_):
            magic, kind, _, _, payload = struct.unpack_from("<4sBBHI", bytes_, at)
            assert magic == b"SRBK"
            kept += b"" if kind == 17 else bytes_[at : at + 32 + payload]
            at += 32 + payload
        path.write_bytes(kept)
    return strobe.open(run.folder / "old.strobe")


def of_device(trace: strobe.Trace) -> Iterator[tuple[Device, ProcessSteps, Lanes]]:
    (steps,) = find_steps(trace).processes
    for device in devices(trace):
        yield device, steps, lanes(trace, device, steps)


def check(found: Lanes, expected: list[tuple[int, list[int]]], rows: range) -> None:
    for k in rows:
        start, sets = expected[k]
        assert found.known[k]
        assert found.set_ns[k].tolist() == sets, k
        assert not sum(sets) or found.start_ns[k] == start, k


@pytest.mark.parametrize(("program", "gpus_there"), [(MIXED, 2), (BEHIND, 1)])
def test_what_was_added_up_meanwhile_is_what_the_reader_finds_and_what_is_there(
    tmp_path: Path, program: str, gpus_there: int
) -> None:
    ran = record(tmp_path, program, options=ALL_RECORDED, DEVICES=2)
    trace, old = ran.trace, without_lanes(ran)
    assert len(trace.iterations(0)) > 90
    assert len(trace.gpu_lanes(0)) == gpus_there
    assert not old.gpu_lanes(0)
    for (device, steps, online), (_, _, offline) in zip(of_device(trace), of_device(old), strict=True):
        expected = list(counted(steps, activities(trace, device)))
        check(online, expected, range(len(steps)))
        check(offline, expected, range(len(steps)))
        # They follow each other.
        end = online.start_ns + online.set_ns.sum(axis=1)
        assert online.start_ns[1:].tolist() == end[:-1].tolist()
        idle = online.set_ns.sum(axis=1) == 0
        assert idle.sum() >= (20 if program == MIXED else 0)


@pytest.mark.parametrize("program", [MIXED, BEHIND])
def test_folded_steps_have_the_lanes_that_kept_ones_have(tmp_path: Path, program: str) -> None:
    ran = record(tmp_path, program, options=("--keep", "5"), DEVICES=2)
    trace = ran.trace
    did = [row for row in ran.did("kernel", "memcpy", "memset") if row["name"] != "at the end"]
    for device, steps, found in of_device(trace):
        assert 2 * steps.kept.sum() < len(steps)
        assert found.known.all()
        # The first iterations are kept, and all before them is in detail.
        (recorded,) = np.nonzero(steps.recorded.class_id >= 0)
        assert steps.kept[: recorded[3]].all()
        check(found, list(counted(steps, activities(trace, device))), range(int(recorded[2])))
        # Everything is in some lane, in the driver's words, too.
        told = [
            row
            for row in did
            if row["device"] == device.number and row["start_ns"] - trace.zero_ns >= found.start_ns[0]
        ]
        alone = {1: [], 2: [], 4: []}
        for row in told:
            kind = 4 if row["what"] != "kernel" else 2 if "nccl" in row["name"] else 1
            alone[kind].append((row["start_ns"], row["end_ns"]))
        for kind, times in alone.items():
            union, reach = 0, 0
            for start, end in sorted(times):
                union += max(0, end - max(start, reach))
                reach = max(reach, end)
            held = found.set_ns[:, [mask for mask in range(MASKS) if mask & kind]].sum()
            assert held == pytest.approx(union, rel=0.01, abs=CLOCK_NS)


def test_means_are_of_all_steps(tmp_path: Path) -> None:
    ran = record(tmp_path, MIXED, options=("--keep", "5"), DEVICES=2)
    trace = ran.trace
    rows = trace.overlap(by="lane").to_pylist()
    whole = {row["device"]: row for row in trace.overlap().to_pylist()}
    for (device, steps, found), gpu in zip(of_device(trace), gpus(trace), strict=True):
        mine = [row for row in rows if row["device"] == device.number]
        # Those of no length have no row.
        assert [row["step"] for row in mine] == (np.flatnonzero(found.set_ns.any(axis=1)) + steps.first_number).tolist()
        sums = found.set_ns.sum(axis=0)
        assert sum(row["duration_ns"] for row in mine) == sums.sum()
        assert sum(row["idle_ns"] for row in mine) == sums[0]
        steady = found.set_ns[steps.steady]
        assert gpu.duration_ns == steady.sum()
        assert gpu.computation == steady[:, 1::2].sum() / steady.sum()
        assert gpu.idle == steady[:, 0].sum() / steady.sum()
        # What the whole run has beside the lanes is in detail.
        row = whole[device.number]
        assert row["duration_ns"] >= sums.sum()
        assert row["communication_ns"] == sum(each["communication_ns"] for each in mine)
        assert row["exposed_communication_ns"] == sum(each["exposed_communication_ns"] for each in mine)
    assert not trace.overlap().note


def test_what_a_kill_leaves_is_right(tmp_path: Path) -> None:
    killed = MIXED.replace(
        "train()\ngpu.launch", "train()\ntime.sleep(1.5)\ntrain()\nos.kill(os.getpid(), 9)\ngpu.launch"
    )
    ran = record(
        tmp_path,
        killed.replace("range(120)", "range(400)"),
        options=("--keep", "5"),
        expected=-signal.SIGKILL,
        DEVICES=2,
    )
    trace = ran.trace
    for device, steps, found in of_device(trace):
        known = int(np.append(found.known, False).argmin())
        assert known > 400
        end = found.start_ns + found.set_ns.sum(axis=1)
        assert found.start_ns[1:known].tolist() == end[: known - 1].tolist()
        check(found, list(counted(steps, activities(trace, device))), range(2))
    for row in trace.overlap().to_pylist():
        assert row["busy_ns"] + row["idle_ns"] == row["duration_ns"]


def test_a_program_without_a_gpu_pays_no_byte(tmp_path: Path) -> None:
    ran = record(
        tmp_path,
        "import strobe\nfor _ in range(100):\n    strobe.step()\n    time.sleep(0.001)\n",
        options=("--keep", "5"),
    )
    assert len(ran.trace.iterations(0)) > 50
    assert ran.trace.gpu_lanes(0) == {}
    before = {path.name: path.stat().st_size for path in (ran.folder / "t.strobe").glob("**/*.blocks")}
    without_lanes(ran)
    assert before == {path.name: path.stat().st_size for path in (ran.folder / "old.strobe").glob("**/*.blocks")}
