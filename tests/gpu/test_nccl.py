"""Collectives of NCCL on GPUs: kernels, and what NCCL says of the calls that launched them; two ranks, the fake GPU.

The program's own numbers are what is expected, and the driver's log for times.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strobe
from strobe.ranks.collectives import collectives
from tests.gpu import fake_cuda
from tests.record.workshop import nvtx_headers

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

# The GPU's clock is converted between two readings of both: as exact as these are, on a busy machine.
CLOCK_NS = 200_000
COMMUNICATOR = "0x00000000c0ffee00"

# Ranges as NCCL pushes and pops them, with the names that its schemas give (src/include/nvtx_payload_schemas.h).
CALLS = """
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stddef.h>
#define ID(n) (NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + (n))
#define OF(type, name, at) {0, NVTX_PAYLOAD_ENTRY_TYPE_##type, name, NULL, 0, at, NULL, NULL}
static nvtxDomainHandle_t domain;
static void schema(int id, const nvtxPayloadSchemaEntry_t* entries, size_t count, size_t bytes) {
  nvtxPayloadSchemaAttr_t a = {0};
  a.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  a.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  a.entries = entries, a.numEntries = count, a.payloadStaticSize = bytes, a.schemaId = ID(id);
  nvtxPayloadSchemaRegister(domain, &a);
}
static void push(const char* function, nvtxPayloadData_t* data) {
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII, event.message.ascii = function;
  if (data) event.payloadType = NVTX_PAYLOAD_TYPE_EXT, event.reserved0 = 1, event.payload.ullValue = (uint64_t)data;
  nvtxDomainRangePushEx(domain, &event);
}
struct Made { uint64_t comm; int ranks, rank; };
struct Call { uint64_t comm; size_t bytes; int peer; };
void made(uint64_t comm, int rank, int ranks) {
  static const nvtxPayloadSchemaEntry_t of_made[] = {OF(UINT64, "NCCL communicator ID", 0),
      OF(INT, "No. of ranks", offsetof(struct Made, ranks)), OF(INT, "Rank", offsetof(struct Made, rank))};
  static const nvtxPayloadSchemaEntry_t of_call[] = {OF(UINT64, "NCCL communicator ID", 0),
      OF(SIZE, "Message size [bytes]", offsetof(struct Call, bytes)),
      OF(INT, "Peer rank", offsetof(struct Call, peer))};
  if (!domain) {
    domain = nvtxDomainCreateA("NCCL");
    schema(0, of_made, 3, sizeof(struct Made)), schema(1, of_call, 3, sizeof(struct Call));
  }
  struct Made values = {comm, ranks, rank};
  nvtxPayloadData_t data = {ID(0), sizeof values, &values};
  push("ncclCommInitRank", &data);
  nvtxDomainRangePop(domain);
}
void begin(const char* function, uint64_t comm, size_t bytes, int peer) {
  struct Call values = {comm, bytes, peer};
  nvtxPayloadData_t data = {ID(1), sizeof values, &values};
  push(function, comm ? &data : NULL);
}
void end(void) { nvtxDomainRangePop(domain); }
"""

PROGRAM = """
import ctypes, os
import fake_cuda
from strobe.native import core

calls = ctypes.CDLL(os.environ["CALLS"])
gpu = fake_cuda.Gpu()
rank = int(os.environ["RANK"])
COMM, OTHER = 0xc0ffee00, 0xbeef
core.note_rank(rank, 2)  # as MPI and torch.distributed have it noted

def launch(kernel):
    name = f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)" if kernel != "gemm" else kernel
    gpu.launch(name, ns=50_000 + 10_000 * rank)

def call(function, *kernels, comm=0, size=0, peer=-1):
    calls.begin(function.encode(), ctypes.c_uint64(comm), ctypes.c_size_t(size), peer)
    for kernel in kernels:
        launch(kernel)
    calls.end()

for comm in (COMM, OTHER):
    calls.made(ctypes.c_uint64(comm), rank, 2)
for number in range(4):
    launch("gemm")
    call("ncclAllReduce", "AllReduce_Sum_f32_RING_LL", comm=COMM, size=1000 * (number + 1))
# Asked for in a group of a group: one kernel when the outer one ends.
call("ncclGroupStart")
call("ncclGroupStart")
for _ in range(2):
    call("ncclAllReduce", comm=COMM, size=300)
call("ncclGroupEnd")
call("ncclGroupEnd", "AllReduce_Sum_f32_RING_LL")
# One call, two kernels.
call("ncclAllGather", "AllGather_RING_LL", "gemm", "AllGather_RING_LL", comm=COMM, size=500)
call("ncclGroupStart")
call("ncclSend", comm=COMM, size=70 if rank == 0 else 30, peer=1 - rank)
call("ncclRecv", comm=COMM, size=30 if rank == 0 else 70, peer=1 - rank)
call("ncclGroupEnd", "SendRecv")
# Nobody says which of these is whose.
call("ncclGroupStart")
for comm in (COMM, OTHER):
    call("ncclReduceScatter", comm=comm, size=90)
call("ncclGroupEnd", "ReduceScatter_Sum_f32_RING_LL", "ReduceScatter_Sum_f32_RING_LL")
launch("Broadcast_RING_LL")
gpu.synchronize()
"""


class Ranks:
    """Two ranks that were recorded, and what their drivers say."""

    def __init__(self, trace: strobe.Trace, truth: dict[int, list[dict[str, Any]]]) -> None:
        self.trace = trace
        self.truth = truth

    def kernels(self, rank: int, name: str) -> list[dict[str, Any]]:
        return [row for row in self.truth[rank] if f"ncclDevKernel_{name}_" in f"{row['name']}_".replace("(", "_")]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calls of NCCL, as a library for ctypes."""
    folder = tmp_path_factory.mktemp("calls")
    (folder / "calls.c").write_text(CALLS)
    flags = ["-shared", "-fPIC", "-O1", f"-I{nvtx_headers()}", "-o", "calls.so", "calls.c", "-ldl"]
    subprocess.run(["gcc", *flags], cwd=folder, check=True)
    return folder / "calls.so"


@pytest.fixture(scope="module")
def ranks(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    with recorded(tmp_path_factory.mktemp("nccl"), library, PROGRAM) as found:
        yield found


@contextmanager
def recorded(folder: Path, library: Path, program: str, *options: str) -> Iterator[Ranks]:
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", *options, "program.py"]
    started = []
    for rank in (0, 1):
        of_job = {"RANK": str(rank), "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none", "CALLS": str(library)}
        environment = fake_cuda.environment("13.0", folder / f"{rank}.jsonl") | of_job
        started.append(subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True))
    for each in started:
        _, said = each.communicate(timeout=60)
        assert each.returncode == 0, said
    truth = {rank: fake_cuda.read_truth(folder / f"{rank}.jsonl", "kernel") for rank in (0, 1)}
    with strobe.open(folder / "t.strobe") as trace:
        yield Ranks(trace, truth)


def test_kernels_move_what_the_calls_say_that_launched_them(ranks: Ranks) -> None:
    table = {(row["rank"], row["collective"]): row for row in ranks.trace.collectives().to_arrow().to_pylist()}
    assert len(table) == 2 * 5
    for rank in (0, 1):
        row = table[rank, "allreduce"]
        assert (row["group"], row["group_size"], row["calls"]) == (COMMUNICATOR, 2, 5)
        assert row["in_bytes"] == row["out_bytes"] == row["size_bytes"] == 1000 + 2000 + 3000 + 4000 + 2 * 300
        kernels = ranks.kernels(rank, "AllReduce_Sum_f32_RING_LL")
        time = sum(kernel["end_ns"] - kernel["start_ns"] for kernel in kernels)
        assert len(kernels) == 5
        assert row["total_ns"] == pytest.approx(time, rel=0.02)
        assert row["algbw_gb_s"] == pytest.approx(10_600 / row["total_ns"])
        assert row["busbw_gb_s"] == pytest.approx(10_600 / row["total_ns"] * 2 * (2 - 1) / 2)
        row = table[rank, "allgather"]
        first, last = ranks.kernels(rank, "AllGather_RING_LL")
        assert (row["group"], row["calls"], row["in_bytes"], row["out_bytes"]) == (COMMUNICATOR, 1, 500, 1000)
        assert row["total_ns"] == pytest.approx(last["end_ns"] - first["start_ns"], rel=0.02)
        row = table[rank, "sendrecv"]
        assert (row["group"], row["calls"], row["size_bytes"]) == (COMMUNICATOR, 1, 70)
        assert (row["in_bytes"], row["out_bytes"]) == ((70, 30) if rank == 0 else (30, 70))
        for kind, calls in (("reducescatter", 2), ("broadcast", 1)):
            row = table[rank, kind]
            assert (row["group"], row["calls"], row["in_bytes"], row["busbw_gb_s"]) == (None, calls, None, None)


def test_the_same_collective_of_both_ranks_is_found_by_communicator_and_number(ranks: Ranks) -> None:
    found = collectives(ranks.trace)
    assert all(party.on_gpu for party in found.parties)
    numbered = {
        (found.parties[found.party[i]].rank, found.lines[found.line[i]], int(found.sequence[i])): i
        for i in range(len(found))
        if found.sequence[i] >= 0
    }
    expected = [(("allreduce", COMMUNICATOR), number) for number in (1, 2, 3, 4, 5)]
    expected.append((("allgather", COMMUNICATOR), 7))
    assert set(numbered) == {(rank, *each) for rank in (0, 1) for each in expected}
    for line, number in expected:
        first, second = (numbered[rank, line, number] for rank in (0, 1))
        assert found.collective[first] == found.collective[second] >= 0
    same = found.collective[list(numbered.values())]
    assert len(np.unique(same)) == len(expected)
    # They arrive when their kernels start.
    starts = sorted(kernel["start_ns"] for kernel in ranks.kernels(0, "AllReduce_Sum_f32_RING_LL"))
    told = [int(found.start_ns[numbered[0, *expected[i]]]) + ranks.trace.zero_ns for i in range(5)]
    assert told == pytest.approx(starts, abs=CLOCK_NS)


def test_kernels_of_folded_steps_are_logged_with_their_calls(library: Path, tmp_path: Path) -> None:
    """Number, bytes, start and end of each, of both ranks, though most steps are statistics only."""
    steps = 300
    program = f"""
import strobe
for number in range({steps}):
    strobe.step()
    launch("gemm")
    call("ncclAllReduce", "AllReduce_Sum_f32_RING_LL", comm=COMM, size=1000 + number)
    gpu.synchronize()
"""
    head = PROGRAM[: PROGRAM.index("for number in range(4)")]
    with recorded(tmp_path, library, head + program, "--keep", "6") as ranks:
        trace, found = ranks.trace, collectives(ranks.trace)
        in_detail = trace.sql("select count(*) as n from spans where name like 'ncclDev%'").to_pylist()[0]["n"]
        assert 0 < in_detail < steps
        assert len(found) == 2 * steps  # also of a stream that has nothing in detail
        assert all(party.on_gpu for party in found.parties)
        assert {found.lines[line] for line in found.line} == {("allreduce", COMMUNICATOR)}
        for party in (0, 1):
            (own,) = np.nonzero(found.party == party)
            assert found.sequence[own].tolist() == list(range(1, steps + 1))
            assert found.sent_bytes[own].tolist() == [1000 + number for number in range(steps)]
            assert found.collective[own].tolist() == found.collective[found.party == 0].tolist()
            kernels = ranks.kernels(found.parties[party].rank, "AllReduce_Sum_f32_RING_LL")
            for name, columns in (("start_ns", found.start_ns), ("end_ns", found.end_ns)):
                told = (columns[own] + trace.zero_ns).tolist()
                assert told == pytest.approx(sorted(kernel[name] for kernel in kernels), abs=CLOCK_NS)


def test_sql_joins_kernels_and_calls(ranks: Ranks) -> None:
    rows = ranks.trace.sql(
        """
        select p.rank, c.collective, c."group", c.sequence, c.sent_bytes, k.duration_ns
        from collective_spans c
        join spans n on n.location = c.location and n.row = c.row
        join call_spans l on l.location = c.location
        join spans s on s.location = l.location and s.row = l.row
          and s.start_ns between n.start_ns and n.start_ns + n.duration_ns
        join kernel_spans g on g.correlation = l.correlation
        join spans k on k.location = g.location and k.row = g.row and k.process = s.process
        join processes p on p.process = s.process
        where c.collective = 'all_reduce' order by rank, sequence
        """
    ).to_pylist()
    for rank in (0, 1):
        own = [row for row in rows if row["rank"] == rank]
        assert [(row["group"], row["sequence"]) for row in own] == [(COMMUNICATOR, n) for n in (1, 2, 3, 4)]
        assert [row["sent_bytes"] for row in own] == [1000, 2000, 3000, 4000]
        assert [row["duration_ns"] for row in own] == pytest.approx([50_000 + 10_000 * rank] * 4, rel=0.02)


def test_kernels_of_pytorch_are_its_collectives(library: Path, tmp_path: Path) -> None:
    program = """
        import ctypes, os
        import fake_cuda
        from strobe.native import core

        calls = ctypes.CDLL(os.environ["CALLS"])
        gpu = fake_cuda.Gpu()
        calls.made(ctypes.c_uint64(7), 0, 2)
        # What the adapter of torch.distributed does around c10d's operators, and PyTorch's range inside of them.
        region = core.region("nccl:all_reduce", 2, 10, module="PyTorch")
        text, none = core.text, core.NOTHING_32
        for number in range(3):
            core.collective_begin(text("all_reduce"), text("Float"), text("0"), text("[0, 1]"), text("2,"), number + 1,
                                  none, none, 4000, 4000, region, none, False)
            calls.begin(b"ncclAllReduce", ctypes.c_uint64(7), ctypes.c_size_t(4000), -1)
            gpu.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ns=80_000)
            calls.end()
            core.collective_end()
        gpu.synchronize()
        """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "strobe", "run", "-o", "t.strobe", "program.py"]
    environment = fake_cuda.environment("13.0") | {"CALLS": str(library)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=60)
    with strobe.open(tmp_path / "t.strobe") as trace:
        (row,) = trace.collectives().to_arrow().to_pylist()
        found = collectives(trace)
    assert (row["group"], row["group_ranks"], row["dtype"], row["calls"]) == ("0", "[0, 1]", "Float", 3)
    assert (row["in_bytes"], row["out_bytes"], row["device"]) == (12000, 12000, 0)
    assert row["total_ns"] == pytest.approx(3 * 80_000, rel=0.02)
    assert row["busbw_gb_s"] == pytest.approx(12_000 / row["total_ns"])
    assert found.sequence.tolist() == [1, 2, 3]
