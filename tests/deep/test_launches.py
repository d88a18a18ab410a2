"""Who launched what a GPU did: by hand, against plain SQL and JSON of public traces, and whatever the stretches are."""

import gzip
import json
import sqlite3
from collections import Counter

import numpy as np
import pytest

import strobe
from strobe.api.imports import opened
from strobe.gpu.devices import devices
from strobe.gpu.launches import launches
from tests.deep.kineto import US, call, copy, kernel, operator, profile, write
from tests.public import FOLDER


def launched(trace, most=1 << 19):
    """Return what, who called it and which operator it belongs to, by activity: names and starts in microseconds."""
    names = trace.regions.to_arrow().column("name").to_pylist()

    def span(location, row, region):
        if row < 0:
            assert location == region == -1
            return None
        spans = trace.span_arrays(int(location))
        assert spans["region"][row] == region
        return names[region], int(spans["start_ns"][row]) // US

    out = []
    for device in devices(trace):
        for found, by in launches(trace, device, most):
            for k in range(len(found)):
                called = span(by.call.location[k], by.call.row[k], by.call.region[k])
                assert called is None or called[1] == by.call.start_ns[k] // US
                operator_of = span(by.operator.location[k], by.operator.row[k], by.operator.region[k])
                end = int(by.call.end_ns[k]) // US if called else None
                out.append((names[found.region[k]], int(found.start_ns[k]) // US, called, end, operator_of))
    return out


@pytest.mark.parametrize("most", [1, 3, 1 << 19])
def test_calls_are_found_by_correlation_and_operators_by_time(tmp_path, most):
    trace = profile(
        tmp_path,
        operator("aten::linear", 0, 50, External_id=1),
        operator("aten::addmm", 2, 40, External_id=2),
        call(5, 9, correlation=11),
        call(6, 7, "cuLaunchKernel", correlation=11),  # the driver's, inside the runtime's
        operator("aten::add", 44, 4, External_id=3),
        call(45, 2, correlation=12),
        call(60, 5, "cudaGraphLaunch", correlation=13),  # outside of every operator, launches two kernels
        operator("aten::copy_", 61, 20, thread=2, External_id=4),
        call(62, 3, "cudaMemcpyAsync", thread=2, correlation=14),
        call(70, 3, "cudaStreamSynchronize", correlation=15),
        kernel("gemm", 20, 10, correlation=11, External_id=2),
        kernel("add", 400, 10, correlation=12, External_id=3),
        kernel("first of graph", 500, 10, correlation=13),
        kernel("second of graph", 900, 10, correlation=13),
        copy("Memcpy HtoD (Pageable -> Device)", 70, 5, stream=9, correlation=14),
        kernel("call unknown", 950, 5, correlation=99, External_id=3),
        kernel("nothing known", 960, 5),
    )
    assert launched(trace, most) == [
        ("gemm", 20, ("cudaLaunchKernel", 5), 14, ("aten::addmm", 2)),
        ("Memcpy HtoD (Pageable -> Device)", 70, ("cudaMemcpyAsync", 62), 65, ("aten::copy_", 61)),
        ("add", 400, ("cudaLaunchKernel", 45), 47, ("aten::add", 44)),
        ("first of graph", 500, ("cudaGraphLaunch", 60), 65, None),
        ("second of graph", 900, ("cudaGraphLaunch", 60), 65, None),
        ("call unknown", 950, None, None, ("aten::add", 44)),
        ("nothing known", 960, None, None, None),
    ]


def test_a_flow_that_comes_before_the_work_of_its_gpu_leads_to_no_process_of_its_own(tmp_path):
    # As a serving engine's profile has it: the flows, in which GPU 9 is process 9, come before the kernels.
    flow = {"cat": "ac2g", "name": "ac2g", "id": 11}
    path = tmp_path / "profile.json"
    write(
        path,
        operator("aten::mm", 0, 50, External_id=1),
        call(5, 9, correlation=11),
        {**flow, "ph": "s", "pid": 100, "tid": 1, "ts": 5},
        {**flow, "ph": "f", "pid": 9, "tid": 3, "ts": 900, "bp": "e"},
        kernel("gemm", 900, 10, device=9, stream=3, correlation=11, External_id=1),
    )
    trace = strobe.open(opened(path, talk=False))
    assert launched(trace) == [("gemm", 900, ("cudaLaunchKernel", 5), 14, ("aten::mm", 0))]
    assert [row["kind"] for row in trace.locations.to_pylist()] == ["thread", "stream"]
    assert len(trace.processes) == 1


def test_a_kernel_that_inductor_made_has_its_operator(tmp_path):
    trace = profile(
        tmp_path,
        operator("Torch-Compiled Region: 0/0", 0, 100, External_id=1),
        operator("triton_poi_fused_add_3", 10, 20, External_id=2),
        call(15, 5, "hipModuleLaunchKernel", correlation=7),
        kernel("triton_poi_fused_add_3", 500, 140, correlation=7, External_id=2),
    )
    (row,) = trace.ask("kernels", by="operator").to_pylist()
    assert (row["operator"], row["calls"], row["total_ns"]) == ("triton_poi_fused_add_3", 1, 140_000)


def test_kernels_without_an_operator_are_counted_by_their_reason(tmp_path):
    trace = profile(
        tmp_path,
        operator("aten::mm", 0, 50, External_id=1),
        call(5, 9, correlation=11),
        call(60, 5, "cudaGraphLaunch", correlation=12),  # behind the operator, two kernels
        operator("aten::add", 60, 4, thread=2, External_id=2),  # on another thread
        kernel("gemm", 100, 10, correlation=11),
        kernel("first of graph", 200, 10, correlation=12),
        kernel("second of graph", 300, 10, correlation=12),
        kernel("launched before the profile", 400, 10, correlation=13),
    )
    found = {row["what"]: row["value"] for row in trace.quality.to_pylist()}
    assert (found["kernels_outside_operators"], found["orphan_kernels"]) == (2, 1)
    blank = sum(row["calls"] for row in trace.ask("kernels", by="operator").to_pylist() if not row["operator"])
    assert blank == 2 + 1


def test_a_call_launches_in_its_own_process_only(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        events = (call(0, 2, correlation=7 + rank), kernel("gemm", 30, 5, device=rank, correlation=7))
        write(folder / f"rank{rank}.json", *events, rank=rank)
    assert launched(strobe.open(opened(folder, talk=False))) == [
        ("gemm", 30, ("cudaLaunchKernel", 0), 2, None),
        ("gemm", 30, None, None, None),
    ]


def test_nsys_calls_are_those_of_plain_sql(public):
    name = "nsys/perlmutter-cloverleaf-cuda.sqlite"
    with sqlite3.connect(f"file:{FOLDER / name}?mode=ro", uri=True) as database:
        (expected,) = database.execute(
            "select count(*), sum(a.start - r.start), sum(a.end - r.end) from ("
            " select correlationId c, globalPid p, start, end from CUPTI_ACTIVITY_KIND_KERNEL union all"
            " select correlationId, globalPid, start, end from CUPTI_ACTIVITY_KIND_MEMCPY) a"
            " join CUPTI_ACTIVITY_KIND_RUNTIME r on r.correlationId = a.c"
            " and r.globalTid / 0x1000000 = a.p / 0x1000000"
        ).fetchall()
    trace = public(name)
    (device,) = devices(trace)
    for most in (500, 1 << 19):
        sums = np.zeros(3, dtype=np.int64)
        for found, by in launches(trace, device, most):
            known = by.call.row >= 0
            sums += (
                known.sum(),
                (found.start_ns - by.call.start_ns)[known].sum(),
                (found.end_ns - by.call.end_ns)[known].sum(),
            )
        assert tuple(sums.tolist()) == expected


@pytest.mark.parametrize("name", ["ns_resolution", "nccl_data"])
def test_kineto_operators_are_those_that_it_names_itself(public, name):
    # But for NCCL's kernels: Kineto names an operator that only describes the collective, and ends before the launch.
    with gzip.open(FOLDER / "kineto" / f"{name}.json.gz") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X" and "args" in e]
    calls = {e["args"].get("correlation") for e in events if e["cat"] == "cuda_runtime"}
    operators = {e["args"].get("External id"): e["name"] for e in events if e["cat"] == "cpu_op"}
    work = [e for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    expected = sorted(
        (e["name"], operators.get(e["args"].get("External id"), "")) for e in work if "nccl" not in e["name"]
    )
    trace = public(f"kineto/{name}.json.gz")
    names = trace.regions.to_arrow().column("name").to_pylist()
    found, known = [], 0
    for device in devices(trace):
        for done, by in launches(trace, device, 5000):
            known += int((by.call.row >= 0).sum())
            pairs = zip([names[k] for k in done.region], by.operator.region, strict=True)
            found += [
                (name, names[operator] if operator >= 0 else "") for name, operator in pairs if "nccl" not in name
            ]
    assert known == sum(e["args"]["correlation"] in calls for e in work)
    assert sorted(found) == expected


@pytest.mark.parametrize("workers", [0, 4])
def test_operators_have_the_device_time_that_the_tensorboard_plugin_gives_them(public, workers):
    told = json.loads((FOLDER / f"resnet50_loader_workers{workers}.tensorboard.json").read_text())["op_table_top"]
    trace = public(f"kineto/resnet50_loader_workers{workers}.json.gz")
    names = trace.regions.to_arrow().column("name").to_pylist()
    sums = np.zeros(len(names), dtype=np.int64)
    for device in devices(trace):
        for found, by in launches(trace, device):
            known = by.operator.region >= 0
            np.add.at(sums, by.operator.region[known], (found.end_ns - found.start_ns)[known])
    assert len(told) >= 10
    for row in told:
        assert sums[names.index(row["name"])] == row["device_self_duration"] * US, row["name"]


def operators_by_another_join(path):
    """How many kernels of a profile each operator has launched, None for those that none has: by correlation and time.

    The innermost operator of the launching thread at the start of the call; where the call is not in the profile, the
    one with the kernel's external id.
    """
    events = [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
    around, by_id, open_in = {}, {}, {}  # around: by correlation
    # Of what begins at one time, the longest is the outermost; calls come last.
    for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        category, name, ids = str(e.get("cat", "")).lower(), e["name"], e.get("args", {})
        stack = open_in.setdefault((e["pid"], e["tid"]), [])
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= e["ts"]:
            stack.pop()
        if category in ("cuda_runtime", "cuda_driver", "runtime"):
            around[ids.get("correlation")] = stack[-1]["name"] if stack else None
        elif category in ("cpu_op", "operator") and (
            "::" in name or name.startswith(("triton_", "nccl:")) or name == "record_param_comms"
        ):
            stack.append(e)
            by_id[ids.get("External id", ids.get("external id"))] = name
    found = Counter()
    for e in events:
        if str(e.get("cat", "")).lower() == "kernel":
            ids = e["args"]
            named = by_id.get(ids.get("External id", ids.get("external id")))
            found[around.get(ids.get("correlation"), named)] += 1
    return found


@pytest.mark.parametrize(
    "name",
    ["alexnet_critical_path", "diff_test", "nccl_data", "resnet50_loader_workers0", "resnet50_loader_workers4"],
)
def test_kernels_without_an_operator_are_those_of_which_the_profile_says_so(public, name):
    expected = operators_by_another_join(FOLDER / "kineto" / f"{name}.json.gz")
    found = Counter()
    for row in public(f"kineto/{name}.json.gz").kernels(by="operator").to_pylist():
        found[row["operator"]] += row["calls"]
    assert found[None] == expected[None]
    assert sum((found - expected).values()) <= 0.01 * expected.total()  # operators that begin in one microsecond


def test_calls_and_kernels_without_correlations_share_their_external_id(tmp_path):
    trace = profile(
        tmp_path,
        operator("aten::mm", 0, 20, External_id=1),
        call(5, 2, External_id=7),
        kernel("gemm", 30, 10, External_id=7),
    )
    (row,) = trace.kernels(by="operator").to_arrow().to_pylist()
    assert (row["operator"], row["launch_delay_avg_ns"]) == ("aten::mm", 25 * US)
