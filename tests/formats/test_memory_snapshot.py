"""PyTorch's memory snapshots: pickles as `torch.cuda.memory._dump_snapshot` writes them, summed up by hand."""

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.errors import FormatError
from strobe.formats.reading.plain_pickle import plain_values
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import by_path

START_US = 1_700_000_000_000_000
KB = 1024
A, B, C, D = (0x7F0000000000 + i * 0x10000 for i in range(4))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def frames(*names: str) -> list[dict[str, Any]]:
    """Frames, innermost first, as PyTorch has them."""
    return [{"name": name, "filename": f"{name}.py", "line": 10 + i} for i, name in enumerate(reversed(names))]


FORWARD, BACKWARD = frames("train", "forward"), frames("train", "backward")


def event(action: str, at_us: int | None, addr: int = 0, size: int = 0, stack: object = None) -> dict[str, Any]:
    place = {"device_free" if action == "oom" else "addr": addr, "size": size, "stream": 0}
    time = {} if at_us is None else {"time_us": START_US + at_us}
    return {"action": action, **place, **time, "frames": FORWARD if stack is None else stack, "pool_id": (0, 0)}


def block(address: int, size: int, asked: int, state: str = "active_allocated", stack: object = None) -> dict[str, Any]:
    found = {"address": address, "size": size, "requested_size": asked, "state": state}
    return {**found, "frames": FORWARD if stack is None else stack}


def segment(address: int, total: int, *blocks: dict[str, Any], device: int = 0) -> dict[str, Any]:
    return {
        "device": device,
        "address": address,
        "total_size": total,
        "stream": 0,
        "segment_type": "small",
        "allocated_size": 0,
        "active_size": 0,
        "segment_pool_id": (0, 1),
        "blocks": list(blocks),
    }


EVENTS = [
    event("free_requested", 1, D, 700),  # allocated before the recording
    event("free_completed", 1, D, 700),
    event("segment_alloc", 2, B, 2 * KB),
    event("alloc", 3, A, 100),
    event("alloc", 4, B, 1500, BACKWARD),
    event("free_requested", 5, A, 100),
    event("oom", 6, 5 * KB, 99 * KB),
    event("alloc", 7, A, 300),
    event("snapshot", 8),
]
SNAPSHOT = {
    "segments": [
        segment(
            A, 4 * KB, block(A, 512, 300), block(A + 512, 512, 0, "inactive"), block(C, 2048, 2000, stack=BACKWARD)
        ),
        segment(B, 2 * KB, block(B, 1536, 1500, stack=BACKWARD)),
        segment(D, 8 * KB, block(D, 8192, 8000), device=1),
    ],
    "device_traces": [EVENTS, []],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False},
    "external_annotations": [{"device": 0, "time_us": START_US + 2, "name": "## forward ##", "stage": "START"}],
}


def dump(path: Path, body: object = SNAPSHOT, protocol: int | None = None) -> strobe.Trace:
    with path.open("wb") as out:
        pickle.dump(body, out, protocol=protocol)
    return strobe.open(path)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_events_are_allocations_with_exact_levels(tmp_path: Path, protocol: int) -> None:
    trace = dump(tmp_path / "t.pickle", protocol=protocol)
    columns = "time_ns, address, size_bytes, total_allocated_bytes, total_reserved_bytes, device_type, device"
    found = trace.sql(f"select {columns} from allocations order by time_ns, event_index").rows()
    # At the end 300 + 2000 + 1500 bytes are in use, and 6 KiB reserved, of which 2 KiB came with the recording.
    assert found == [
        (0, D, -700, 2000, 4 * KB, 1, 0),
        (1000, B, None, 2000, 6 * KB, 1, 0),
        (2000, A, 100, 2100, 6 * KB, 1, 0),
        (3000, B, 1500, 3600, 6 * KB, 1, 0),
        (4000, A, -100, 3500, 6 * KB, 1, 0),
        (6000, A, 300, 3800, 6 * KB, 1, 0),
    ]
    assert trace.zero_ns == (START_US + 1) * 1000
    (gpu,) = trace.memory().to_arrow().to_pylist()
    assert (gpu["memory"], gpu["device"], gpu["peak_bytes"], gpu["last_bytes"]) == ("GPU", 0, 3800, 3800)
    assert (gpu["first_bytes"], gpu["allocations"], gpu["exact"]) == (2700, 3, True)
    marks = trace.sql("select name, time_ns, arguments from marks order by 2").rows()
    assert [(name, time, json.loads(about)) for name, time, about in marks] == [
        ("## forward ##", 1000, {"stage": "START"}),
        ("out of memory", 5000, {"size_bytes": 99 * KB, "free_bytes": 5 * KB, "event_index": 6}),
        ("snapshot", 7000, {"size_bytes": 0}),
    ]


def test_call_stacks_have_bytes_at_the_peak_and_at_the_end(tmp_path: Path) -> None:
    trace = dump(tmp_path / "t.pickle")
    found = trace.sql(
        """select metric, name, sum(self_value) from path_metrics join call_paths using (call_path)
           join regions using (region) where self_value > 0 group by 1, 2 order by 1, 2"""
    ).rows()
    assert found == [
        ("allocated", "backward", 1500.0),
        ("allocated", "forward", 400.0),
        ("at the end", "backward", 3500.0),
        ("at the end", "forward", 8300.0),  # of both GPUs
        ("at the peak", "backward", 3500.0),
        ("at the peak", "forward", 300.0),
    ]
    assert trace.sql("select file, line from regions where name = 'forward'").rows() == [("forward.py", 10)]


def test_the_peak_may_be_what_was_there_before(tmp_path: Path) -> None:
    body = {"segments": [], "device_traces": [[event("free_requested", 1, D, 700), event("alloc", 2, A, 100),
                                               event("free_requested", 3, A, 100)]]}  # fmt: skip
    trace = dump(tmp_path / "t.pickle", body)
    assert by_path(trace)["<allocated before the recording>"] == 700
    assert trace.memory().to_arrow().to_pylist()[0]["peak_bytes"] == 700


def test_a_recording_that_stopped_early_has_no_exact_levels(tmp_path: Path) -> None:
    body = {**SNAPSHOT, "device_traces": [EVENTS[:4]]}
    trace = dump(tmp_path / "t.pickle", body)
    assert trace.sql("select count(*) from allocations where total_allocated_bytes is not null").rows() == [(0,)]
    assert trace.memory().to_arrow().to_pylist()[0]["exact"] is False


def test_without_events_the_blocks_are_a_profile(tmp_path: Path) -> None:
    trace = dump(tmp_path / "t.pickle", {**SNAPSHOT, "device_traces": [[], []]})
    assert trace.span_count == 0
    rows = trace.sql("select l.name, sum(self_ns)::bigint from statistics join locations l using (location) group by 1")
    assert sorted(rows.rows()) == [("GPU 0 memory", 3800), ("GPU 1 memory", 8000)]


def test_files_of_pytorch_2_0_have_histories_and_no_times(tmp_path: Path) -> None:
    old = {"size": 512, "state": "active_allocated", "history": [{"addr": A, "real_size": 300, "frames": BACKWARD}]}
    body = {"segments": [{"device": 0, "address": A, "total_size": KB, "blocks": [old]}],
            "device_traces": [[event("alloc", None, A, 300, BACKWARD)]]}  # fmt: skip
    trace = dump(tmp_path / "t.pickle", body)
    assert by_path(trace)["train;backward"] == 300
    assert quality(trace)["events_in_order_only"] == 1
    assert trace.sql("select time_ns, size_bytes from allocations").rows() == [(0, 300)]


class _Harmful:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch harmed",)


DEEP = b"\x80\x04}\x8c\x08segments]s" + b"K\x01" + b"\x85" * 200_000 + b"K\x02s."
HOSTILE = {
    "calls": pickle.dumps({"segments": [_Harmful()]}),
    "imports": b"\x80\x04}\x8c\x08segments\x8c\x02os\x8c\x06system\x93s.",
    "deep tuples as keys": DEEP,
    "far places of the memo": b"\x80\x02}X\x08\0\0\0segmentsr\xff\xff\xff\x7f]s.",
    "one value remembered for ever": b"\x80\x04}\x8c\x08segments]" + b"\x94" * 100_000 + b"s.",
    "empty dictionaries": b"\x80\x04}\x8c\x08segments](" + b"}" * 100_000 + b"es.",
    "large text": b"\x80\x04}\x8c\x08segments\x8d" + struct.pack("<Q", 1 << 62) + b"x",
    "cut off": pickle.dumps(SNAPSHOT)[:-20],
    "no mark": b"\x80\x04}\x8c\x08segmentsuuu.",
    "unhashable": b"\x80\x04}\x8c\x08segments]s]]s.",
    "not a dictionary of segments": pickle.dumps({"segments": 5}),
}


@pytest.mark.parametrize("which", HOSTILE)
def test_nothing_but_plain_values_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.pickle").write_bytes(HOSTILE[which])
    with pytest.raises(FormatError, match="PyTorch memory snapshot"):
        strobe.open(tmp_path / "t.pickle")
    assert not (tmp_path / "harmed").exists()


def test_shared_lists_cannot_be_walked_for_ever(tmp_path: Path) -> None:
    blocks = [block(A, 1, 1)] * 3000
    with pytest.raises(FormatError, match="more than it has bytes"):
        dump(tmp_path / "t.pickle", {"segments": [{**segment(A, 1), "blocks": blocks}] * 3000, "device_traces": []})


def test_wrong_types_are_counted(tmp_path: Path) -> None:
    events = [7, {"action": 5}, {"action": "alloc", "addr": "x", "size": -1, "time_us": 1 << 63, "frames": [3, {}]}]
    body = {"segments": [5, {"device": "x"}, segment(A, 5, 8, {"state": []})], "device_traces": [events, 7]}
    assert quality(dump(tmp_path / "t.pickle", body))["events_not_understood"] >= 4


def test_plain_values_are_as_they_were_written() -> None:
    value = {"a": [1, -5, 2**40, 2**62, 1.5, None, True, False, "é" * 300, (1, 2), ()], "b": {"c": [[]] * 3}}
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert plain_values(pickle.dumps(value, protocol=protocol)) == value


def test_of_cpp_frames_operators_and_backward_passes_are_kept(tmp_path: Path) -> None:
    def stack(*names: str) -> list[dict[str, object]]:
        return [
            {"name": name, "filename": "model.py" if name == "attention" else "??", "line": 7 * (name == "attention")}
            for name in reversed(names)
        ]

    machinery = ("torch::unwind::unwind()", "torch::CapturedTraceback::gather(bool, bool, bool)")
    forward = stack(
        *(
            "_start",
            "Py_RunMain",
            "attention",
            "_PyEval_EvalFrameDefault",
            "torch::autograd::THPVariable_matmul(_object*)",
        ),
        *("at::_ops::bmm::call(at::Tensor const&)", "at::_ops::bmm::redispatch(c10::DispatchKeySet)"),
        *("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)", *machinery[::-1]),
    )
    backward = stack(
        *("clone", "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)"),
        *(
            "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)",
            "at::_ops::mm::call(at::Tensor)",
        ),
    )
    native = stack("_start", "main", "draw()", "c10::cuda::CUDACachingAllocator::raw_alloc(unsigned long)", *machinery)
    events = [
        event("alloc", 1, A, 512, forward),
        event("alloc", 2, B, 512, backward),
        event("alloc", 3, C, 512, native),
    ]
    trace = dump(tmp_path / "t.pickle", {"segments": [], "device_traces": [events]})
    query = "select call_path, parent, name from call_paths join regions using (region)"
    paths = {path: (parent, name) for path, parent, name in trace.sql(query).rows()}

    def whole(path: int) -> list[str]:
        parent, name = paths[path]
        return [*(whole(parent) if parent in paths else []), name]

    leaves = set(paths) - {parent for parent, _ in paths.values()}
    assert {tuple(whole(path)) for path in leaves} >= {
        ("attention", "at::_ops::bmm"),
        ("torch::autograd::Engine::thread_main", "BmmBackward0", "at::_ops::mm"),
        ("main", "draw()"),
    }
