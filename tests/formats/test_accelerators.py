"""Accelerators other than CUDA's and HIP's: what they ran is work of a device. Sums are computed from the events."""

import gzip
import json
from pathlib import Path

import pytest

import strobe
from tests.formats.test_xplane import event as xevent
from tests.formats.test_xplane import line, message, plane, space

Event = dict[str, object]


def meta(what: str, pid: object, tid: object, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def span(name: str, ts: object, dur: object, pid: object, tid: object, category: str | None = None, **args: object):
    found: Event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    if category is not None:
        found["cat"] = category
    return found | {"args": {key.replace("_", " "): value for key, value in args.items()}}


def opened(folder: Path, *events: Event, whole: bool = True) -> strobe.Trace:
    path = folder / "trace.json.gz"
    text = json.dumps({"schemaVersion": 1, "traceEvents": events} if whole else events)
    path.write_bytes(gzip.compress(text.encode()))
    return strobe.open(path)


def kernels(trace: strobe.Trace) -> dict[str, int]:
    return {row["name"]: row["total_ns"] for row in trace.kernels().to_pylist()}


def overlap(trace: strobe.Trace) -> dict[str, int]:
    (row,) = trace.overlap().to_pylist()
    return {name: row[f"{name}_ns"] for name in ("computation", "communication", "copy", "idle")}


@pytest.mark.parametrize("category", ["xpu_runtime", "privateuse1_runtime", "privateuse1_driver", "xpu_driver"])
def test_calls_of_other_runtimes_launch_kernels(tmp_path: Path, category: str) -> None:
    # As Kineto writes them for XPU (PTI) and PrivateUse1: kernels and copies have the categories of CUDA's.
    trace = opened(
        tmp_path,
        span("aten::mm", 0, 20, 100, 100, "cpu_op", External_id=5),
        span("urEnqueueKernelLaunch", 2, 4, 100, 100, category, External_id=5, correlation=41),
        span("urQueueSynchronize", 30, 40, 100, 100, category, External_id=6, correlation=43),
        span("gemm_kernel", 10, 25, 0, 3, "kernel", External_id=5, correlation=41, device=0),
        span("gemm_kernel", 40, 5, 0, 3, "kernel", External_id=5, correlation=42, device=0),
        span("Memcpy M2D", 50, 8, 0, 3, "gpu_memcpy", External_id=5, correlation=44, device=0),
    )
    assert kernels(trace) == {"gemm_kernel": 30_000}
    assert overlap(trace) == {"computation": 30_000, "communication": 0, "copy": 8_000, "idle": 10_000}
    paradigms = trace.sql("select distinct name, paradigm, role from regions where paradigm <> 'torch'").rows()
    assert sorted(paradigms) == [
        ("Memcpy M2D", "accelerator", "copy"),
        ("gemm_kernel", "accelerator", "kernel"),
        ("urEnqueueKernelLaunch", "accelerator", "function"),
        ("urQueueSynchronize", "accelerator", "sync"),
    ]
    (launch,) = [row for row in trace.launches().to_pylist() if row["kernel"] == "gemm_kernel"]
    assert (launch["call"], launch["launches"], launch["queue_avg_ns"]) == ("urEnqueueKernelLaunch", 1, 4_000)
    (row,) = [row for row in trace.kernels(by="operator").to_pylist() if row["operator"] == "aten::mm"]
    assert row["total_ns"] == 25_000 + 5_000


def test_an_mtia_runs_kernels_and_copies_for_them(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        meta("process_name", 9, 0, "MTIA 9"),
        meta("thread_name", 9, 4, "Stream 1 FW"),
        span("runFunction - job_prep_and_submit_for_execution", 0, 5, 310, 310, "mtia_runtime", correlation=7),
        span("fc-dtype_Float", 10.5, 20, 9, 4, "mtia_ccp_events", correlation=7, stream=1),
        span("dma_request", 12, 3, 9, 4, "mtia_ccp_events", direction="DEVICE_TO_HOST", size=4096, stream=1),
        span("event_wait", 40, 50, 9, 4, "mtia_ccp_events", stream=1) | {"args": {"stream": 1, "wait_on_stream": 104}},
        span("dma_request", 28, 6.25, 9, 4, "mtia_ccp_events", direction="HOST_TO_DEVICE", size=512, stream=1),
    )
    assert kernels(trace) == {"fc-dtype_Float": 20_000}
    # A stream that waits for another one does not compute.
    assert overlap(trace) == {"computation": 20_000, "communication": 0, "copy": 9_250, "idle": 0}
    waits = trace.sql("select stream, wait_on_stream from sync_spans").rows()
    assert waits == [(1, 104)]
    copies = {row["kind"]: (row["calls"], row["total_ns"], row["size_bytes"]) for row in trace.copies().to_pylist()}
    assert copies == {"DEVICE_TO_HOST": (1, 3_000, 4096), "HOST_TO_DEVICE": (1, 6_250, 512)}
    assert [row["stream"] for row in trace.streams().to_pylist()] == ["MTIA 9 Stream 1 FW"]
    assert not trace.sql("select 1 from quality where what = 'overlaps_on_streams' and value > 0").rows()
    (launch,) = trace.launches().to_pylist()
    assert launch["all_avg_ns"] == 30_500


def ascend(*, first_metadata: bool) -> list[Event]:
    """Return a trace_view.json of torch_npu: times are texts, and only the process tells what lies in it."""
    names = [
        meta("process_name", 1071, 0, "Python"),
        meta("process_name", 4139906273, 0, "CANN"),
        meta("process_name", 4139906465, 0, "Ascend Hardware"),
        meta("thread_name", 4139906465, 2, "Stream 2"),
        meta("process_name", 4139906497, 0, "Communication"),
        meta("thread_name", 4139906497, 2, "Group 0 Communication"),
        meta("process_name", 4139906593, 0, "Overlap Analysis"),
    ]
    cann, npu = 4139906273, 4139906465
    ids = {"connection_id": 9}
    events = [
        span("aten::mm", "1000.000", 50, 1071, 77, "cpu_op"),
        span("AscendCL@aclnnMatmul", "1010.250", 20, cann, 77) | {"args": {"Thread Id": 77, "level": "acl", **ids}},
        span("Node@launch", "1012.000", 4, cann, 77) | {"args": {"Thread Id": 77, "level": "node", **ids}},
        span("AscendCL@aclrtSynchronizeStream", "1100.000", 100, cann, 77) | {"args": {"connection_id": 12}},
        span("MatMulV2", "1050.500", 30, npu, 2) | {"args": {"Task Type": "AI_CORE", "Stream Id": 2, **ids}},
        span("MEMCPY_ASYNC", "1090.000", 5, npu, 2)
        | {"args": {"Task Type": "MEMCPY_ASYNC", "Stream Id": 2, "connection_id": 10}},
        span("EVENT_WAIT", "1100.000", 40, npu, 2) | {"args": {"Task Type": "EVENT_WAIT", "Stream Id": 2}},
        span("Cast", "1150.000", 2.5, npu, 3) | {"args": {"Task Type": "AI_VECTOR_CORE", "Stream Id": 3}},
        {"ph": "f", "id": "9", "name": "HostToDevice9", "cat": "HostToDevice", "pid": npu, "tid": 2, "ts": "1050.500"},
    ]
    others = [
        span("hcom_allReduce__503_0_1", "1070.000", 20, 4139906497, 2) | {"args": {"connection_id": 11}},
        span("Notify_Wait", "1070.000", 1, 4139906497, 4) | {"args": {"task type": "Notify Wait"}},
        span("Computing", "1050.500", 30, 4139906593, 0),
    ]
    return names + events + others if first_metadata else events + names


def test_tasks_of_an_npu_are_work_of_a_device(tmp_path: Path) -> None:
    trace = opened(tmp_path, *ascend(first_metadata=True), whole=False)
    assert kernels(trace) == {"MatMulV2": 30_000, "Cast": 2_500, "hcom_allReduce__503_0_1": 20_000}
    # Of 1050.5 to 1152.5, nothing runs from 1095 to 1150.
    assert overlap(trace) == {"computation": 32_500, "communication": 20_000, "copy": 5_000, "idle": 55_000}
    (row,) = trace.overlap().to_pylist()
    assert (row["device"], row["exposed_communication_ns"]) == (0, 9_500)
    streams = {row["stream"]: row["busy_ns"] for row in trace.streams().to_pylist()}
    assert streams == {
        "Ascend Hardware Stream 2": 35_000,
        "GPU 0 stream 3": 2_500,
        "Communication Group 0 Communication": 20_000,
    }
    (launch,) = [each for each in trace.launches().to_pylist() if each["kernel"] == "MatMulV2"]
    assert launch["call"] == "AscendCL@aclnnMatmul"
    assert (launch["all_avg_ns"], launch["queue_avg_ns"]) == (1080_500 - 1010_250, 1050_500 - 1030_250)
    (by_operator,) = [row for row in trace.kernels(by="operator").to_pylist() if row["operator"]]
    assert (by_operator["operator"], by_operator["kernel"]) == ("aten::mm", "MatMulV2")
    assert len(trace.processes) == 1
    roles = dict(trace.sql("select name, role from regions where paradigm = 'accelerator'").rows())
    assert roles["EVENT_WAIT"] == roles["AscendCL@aclrtSynchronizeStream"] == "sync"


def test_tasks_of_an_npu_are_known_before_the_name_of_their_process(tmp_path: Path) -> None:
    trace = opened(tmp_path, *ascend(first_metadata=False), whole=False)
    assert kernels(trace) == {"MatMulV2": 30_000, "Cast": 2_500}
    assert overlap(trace)["copy"] == 5_000


def test_operations_of_a_tpu_are_work_with_their_module_and_their_line(tmp_path: Path) -> None:
    texts = {1: "%fusion.1 = f32[8]{0} fusion(f32[8]{0} %all-reduce.2)", 2: "%all-reduce.2 = f32[8]{0} all-reduce()"}
    texts |= {3: "jit_step(123)"}
    stats = {1: "hlo_module", 2: "source", 3: "hlo_category"}
    where = [message((1, 1), (5, "jit_step")), message((1, 2), (5, "/home/me/train.py:41"))]
    lines = [
        line(1, "Steps", 1000, xevent(3, 0, 90_000)),
        line(2, "XLA Modules", 1000, xevent(3, 0, 90_000)),
        line(3, "XLA Ops", 1000, xevent(1, 0, 40_000, *where), xevent(2, 50_000, 30_000)),
    ]
    trace = strobe.open(space(plane("/device:TPU:0", lines, texts, stats), path=tmp_path / "x.xplane.pb"))
    assert kernels(trace) == {"fusion.1": 40, "all-reduce.2": 30}
    assert overlap(trace) == {"computation": 40, "communication": 30, "copy": 0, "idle": 10}
    rows = trace.sql("select name, paradigm, role, file, line, module from regions where name = 'fusion.1'").rows()
    assert rows == [("fusion.1", "accelerator", "kernel", "/home/me/train.py", 41, "jit_step")]
    hlo = trace.sql("select value from arguments where key = 'hlo' order by value").rows()
    assert [json.loads(text) for (text,) in hlo] == [texts[2], texts[1]]


def test_operations_beside_the_streams_of_a_gpu_are_operators(tmp_path: Path) -> None:
    texts = {1: "loop_fusion", 2: "fusion.7"}
    stats = {1: "kernel_details", 2: "source", 3: "hlo_module"}
    lines = [
        line(7, "Stream #7(Compute)", 0, xevent(1, 0, 5_000, message((1, 1), (5, "grid:1,1,1 block:32,1,1")))),
        line(8, "XLA Ops", 0, xevent(2, 0, 5_000, message((1, 2), (5, "model.py:9")), message((1, 3), (5, "jit_f")))),
    ]
    trace = strobe.open(space(plane("/device:GPU:0", lines, texts, stats), path=tmp_path / "x.xplane.pb"))
    assert kernels(trace) == {"loop_fusion": 5}
    rows = trace.sql("select role, file, line, module from regions where name = 'fusion.7'").rows()
    assert rows == [("operator", "model.py", 9, "jit_f")]
    assert [(row["name"], row["total_ns"]) for row in trace.operators().to_pylist()] == [("fusion.7", 5)]


def test_addresses_of_objects_are_no_part_of_names(tmp_path: Path) -> None:
    name = "<built-in method astype of numpy.ndarray object at {}>"
    trace = opened(
        tmp_path,
        span(name.format("0x7cbf780f01b0"), 0, 5, 100, 1, "python_function"),
        span(name.format("0x7CBF780F0200"), 10, 5, 100, 1, "python_function"),
        span("look at 0x10 and at 0x20: both", 20, 5, 100, 1, "python_function"),
        span("stay at 0", 30, 5, 100, 1, "python_function"),
    )
    names = trace.sql("select name, count(*) from spans group by 1 order by 1").rows()
    without = "<built-in method astype of numpy.ndarray object>"
    assert names == [(without, 2), ("look and: both", 1), ("stay at 0", 1)]
    # Profiles without a time axis go the same way.
    frames = [{"name": name.format("0x12ab")}, {"name": "main"}]
    profile = {"type": "sampled", "name": "", "unit": "none", "startValue": 0, "endValue": 2}
    whole = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames}}
    whole["profiles"] = [profile | {"samples": [[1, 0]], "weights": [2]}]
    path = tmp_path / "profile.speedscope.json"
    path.write_text(json.dumps(whole))
    assert without in strobe.open(path).sql("select name from regions").to_arrow().column("name").to_pylist()
