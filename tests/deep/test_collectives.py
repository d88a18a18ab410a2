"""What collectives move, and how fast: by hand for every kind, and a public trace by arithmetic on its JSON."""

import gzip
import json
import statistics
from decimal import Decimal

import pytest

import strobe
from strobe.api.imports import opened
from strobe.errors import UsageError
from strobe.ranks.collective_kinds import kind_of
from tests.deep.kineto import US, kernel, profile, write
from tests.public import FOLDER
from tests.unit.hand_made import HandMadeProcess, make_trace, span

NCCL_DATA = "kineto/nccl_data.json.gz"


def rows(table):
    return table.to_arrow().to_pylist()


def nccl(kind, start, duration, in_elements, out_elements, *, dtype="Float", size=4, group="0", name=None, **more):
    """A kernel of NCCL as PyTorch's profiler describes it."""
    return kernel(
        name or "ncclDevKernel_Generic(ncclDevKernelArgs)", start, duration, Collective_name=kind, dtype=dtype,
        In_msg_nelems=in_elements, Out_msg_nelems=out_elements, Group_size=size, Process_Group_Name=group,
        Process_Group_Description="default_pg", Process_Group_Ranks=str(list(range(size))), **more,
    )  # fmt: skip


# 4 ranks, 2 us: in and out in elements, bytes of an element; size in bytes and factor as nccl-tests has them.
KINDS = [
    ("allreduce", 1000, 1000, "Float", 4000, 1.5, "allreduce"),
    ("allreduce_coalesced", 1000, 1000, "Half", 2000, 1.5, "allreduce"),
    ("_allgather_base", 250, 1000, "BFloat16", 2000, 0.75, "allgather"),
    ("reduce_scatter_tensor_coalesced", 1000, 250, "Double", 8000, 0.75, "reducescatter"),
    ("all_to_allv", 1000, 1000, "Byte", 1000, 0.75, "alltoall"),
    ("broadcast", 1000, 1000, "Long", 8000, 1, "broadcast"),
    ("reduce", 1000, 1000, "Int", 4000, 1, "reduce"),
    ("send", 1000, 1000, "Float8_e4m3fn", 1000, 1, "send"),
]


@pytest.mark.parametrize(("name", "taken", "given", "dtype", "size", "factor", "kind"), KINDS)
def test_sizes_and_factors_are_those_of_nccl_tests(tmp_path, name, taken, given, dtype, size, factor, kind):
    (row,) = rows(profile(tmp_path, nccl(name, 0, 2, taken, given, dtype=dtype)).collectives())
    assert (row["collective"], row["dtype"], row["group_size"], row["size_bytes"]) == (kind, dtype, 4, size)
    assert row["algbw_gb_s"] == pytest.approx(size / 2000)  # bytes by nanoseconds are GB/s
    assert row["busbw_gb_s"] == pytest.approx(size / 2000 * factor)
    width = size // max(taken, given)
    assert (row["in_bytes"], row["out_bytes"]) == (taken * width, given * width)


def test_every_rank_group_kind_and_type_has_its_row(tmp_path):
    tensor = {"group": "1", "size": 2}
    ranks = [
        [
            nccl("allreduce", 0, 10, 1000, 1000, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"),
            nccl("allreduce", 20, 30, 5000, 5000),
            nccl("allreduce", 60, 5, 100, 100, dtype="Half"),
            nccl("allreduce", 70, 2, 100, 100, **tensor),
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 80, 1),  # says no more than its name
            kernel("gemm", 90, 40),
        ],
        [nccl("_allgather_base", 0, 4, 100, 400)],
    ]
    folder = tmp_path / "job"
    folder.mkdir()
    for rank, events in enumerate(ranks):
        write(folder / f"rank{rank}.json", *events, rank=rank)
    trace = strobe.open(opened(folder, talk=False))
    table = trace.collectives()
    columns = ("rank", "group", "collective", "dtype", "group_size", "calls", "total_ns")
    assert [tuple(row[each] for each in columns) for row in rows(table)] == [
        (0, "0", "allreduce", "Float", 4, 2, 40 * US),
        (0, "0", "allreduce", "Half", 4, 1, 5 * US),
        (1, "0", "allgather", "Float", 4, 1, 4 * US),
        (0, "1", "allreduce", "Float", 2, 1, 2 * US),
        (0, None, "allreduce", None, None, 1, 1 * US),
    ]
    first, last = rows(table)[0], rows(table)[-1]
    spread = {"avg_ns": 20 * US, "median_ns": 20 * US, "min_ns": 10 * US, "max_ns": 30 * US}
    assert {key: first[key] for key in spread} == spread
    assert first["stddev_ns"] == pytest.approx(statistics.stdev([10 * US, 30 * US]))
    # 4000 bytes in 10 us, 20000 in 30 us: together 24000 in 40 us.
    assert first["algbw_gb_s"] == pytest.approx(0.6)
    assert first["busbw_gb_s"] == pytest.approx(0.9)
    assert first["peak_busbw_gb_s"] == pytest.approx(20 / 30 * 1.5)
    nothing = ("in_bytes", "out_bytes", "size_bytes", "algbw_gb_s", "busbw_gb_s", "peak_busbw_gb_s")
    assert all(last[each] is None for each in nothing)
    assert table.about == "6 collectives"
    assert table.note.startswith("1 of 6 collectives have no bandwidth")
    alone = trace.collectives(rank=1)
    assert [row["collective"] for row in rows(alone)] == ["allgather"]
    assert (alone.about, alone.note) == ("1 collectives", "")
    with pytest.raises(UsageError, match="no rank 2 in this trace"):
        trace.collectives(rank=2)


def mpi(name, start, end, sent=None, received=None, *, role="collective", **more):
    said = {"sent_bytes": sent, "received_bytes": received, "communicator": "MPI_COMM_WORLD", "group_size": 4, **more}
    given = {key: value for key, value in said.items() if value is not None}
    return span(name, start, end, paradigm="mpi", role=role, tables={"collective_spans": given} if sent else {})


# What Score-P writes of 4 ranks (scorep_mpi_coll.c), and the size: 1000 bytes are each rank's own part.
SCORE_P = [
    ("MPI_Allreduce", 4000, 4000, 1000, 1.5),
    ("MPI_Allgather", 4000, 4000, 4000, 0.75),
    ("MPI_Allgatherv", 4000, 5000, 5000, 0.75),
    ("MPI_Reduce_scatter_block", 4000, 4000, 4000, 0.75),
    ("MPI_Alltoall", 4000, 4000, 4000, 0.75),
    ("MPI_Bcast", 4000, 1000, 1000, 1),  # of the root: to every rank, and what it has itself
    ("MPI_Reduce", 1000, 4000, 1000, 1),
    ("MPI_Gather", 1000, 4000, 4000, 0.75),
    ("MPI_Gather", 1000, 0, 4000, 0.75),  # of another rank
    ("MPI_Scatter", 4000, 1000, 4000, 0.75),
]


@pytest.mark.parametrize(("name", "sent", "received", "size", "factor"), SCORE_P)
def test_sizes_of_mpi_are_made_of_what_goes_to_all_ranks(name, sent, received, size, factor):
    (row,) = rows(make_trace({"main": [mpi(name, 100, 600, sent, received)]}).collectives())
    assert (row["in_bytes"], row["out_bytes"], row["size_bytes"]) == (sent, received, size)
    assert (row["group"], row["group_size"], row["total_ns"]) == ("MPI_COMM_WORLD", 4, 500)
    assert row["busbw_gb_s"] == pytest.approx(size / 500 * factor)


def test_calls_of_mpi_and_collectives_of_gloo():
    def rank(number, *spans):
        return HandMadeProcess({"main": spans}, pid=100 + number, main=number == 0, rank=number)

    trace = make_trace(
        rank(
            0,
            mpi("MPI_Iallreduce", 0, 10),  # only asks for it: 40 ns later it is done, in a wait
            mpi("MPI_Wait", 20, 50, 400, 400, role="wait", collective="allreduce", request=1, pending_ns=40),
            mpi("MPI_Barrier", 60, 80, role="sync"),
            mpi("MPI_Comm_split", 80, 90),
            mpi("MPI_Send", 90, 95, role="p2p"),
            mpi("MPI_Scan", 100, 110, 8, 8),
        ),
        rank(1, span("gloo:all_reduce", 0, 30, paradigm="torch", role="collective")),
    )
    table = trace.collectives()
    columns = ("rank", "collective", "calls", "total_ns", "size_bytes", "busbw_gb_s")
    assert [tuple(row[each] for each in columns) for row in rows(table)] == [
        (0, "allreduce", 1, 40, 100, pytest.approx(100 / 40 * 1.5)),
        (1, "allreduce", 1, 30, None, None),
        (0, "barrier", 1, 20, None, None),
        (0, "scan", 1, 10, None, None),
    ]
    assert table.note.startswith("1 of 4 collectives have no bandwidth")  # a barrier and a scan never have one


def test_sizes_of_mpi_need_the_size_of_the_group():
    (row,) = rows(make_trace({"main": [mpi("MPI_Allreduce", 0, 5, 8, 8, group_size=None)]}).collectives())
    assert (row["in_bytes"], row["out_bytes"]) == (8, 8)
    assert (row["size_bytes"], row["algbw_gb_s"], row["busbw_gb_s"]) == (None, None, None)


def test_what_is_missing_is_said(tmp_path):
    table = profile(tmp_path, kernel("gemm", 0, 5)).collectives()
    assert not len(table)
    assert table.note.startswith("no collectives in this trace")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclWorkElem)", "reducescatter"),
        ("ncclDevKernel_Reduce_Sum_bf16_RING_LL(x)", "reduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "sendrecv"),
        ("void vllm::cross_device_reduce_1stage<float, 2>(x)", "allreduce"),
        ("MPI_Neighbor_alltoallv", "neighboralltoall"),
        ("MPI_Exscan", "exscan"),
        ("reduce_scatter_block", "reducescatter"),
        ("ncclDevKernel_Generic(x)", None),
        (None, None),
    ],
)
def test_names_of_kernels_calls_and_records_mean_kinds(name, kind):
    assert kind_of(name) == kind


def test_a_public_trace_is_what_its_json_says(public):
    path = FOLDER / NCCL_DATA
    found = rows(public(NCCL_DATA).collectives())
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
    told = {}
    for event in events:
        if event.get("cat") == "kernel" and "Collective name" in event["args"]:
            told.setdefault((event["args"]["Collective name"], event["args"]["dtype"]), []).append(event)
    assert sorted((row["collective"], row["dtype"]) for row in found) == sorted(told)
    assert sum(map(len, told.values())) == 21
    for row in found:
        own = told[row["collective"], row["dtype"]]
        times = [int(event["dur"] * 1000) for event in own]
        width = {"Float": 4, "Long": 8}[row["dtype"]]
        moved = sum(event["args"]["In msg nelems"] for event in own) * width
        assert (row["calls"], row["total_ns"], row["max_ns"]) == (len(own), sum(times), max(times))
        assert row["median_ns"] == statistics.median(times)
        assert (row["group"], row["group_size"], row["in_bytes"], row["out_bytes"]) == ("0", 2, moved, moved)
        # Of two ranks all factors are 1: 2 * (2 - 1) / 2 for the all-reduces, 1 for the broadcasts.
        assert row["algbw_gb_s"] == row["busbw_gb_s"] == pytest.approx(moved / sum(times))
