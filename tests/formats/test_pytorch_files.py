"""Execution traces, memory timelines and printed tables of PyTorch, against what PyTorch has in memory."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.errors import FormatError
from strobe.formats.reading import protobuf
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import by_path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def counts(trace: strobe.Trace) -> dict[str, int]:
    return dict(trace.sql("select name, sum(count)::bigint from statistics group by 1").rows())


def own_sums(trace: strobe.Trace) -> list[tuple[object, ...]]:
    query = "select l.name, s.name, count, self_ns from statistics s join locations l using (location) where count > 0"
    return sorted(trace.sql(query).rows())


# --- execution traces ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_operators_of_pytorch_are_counted_by_call_path(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    observer.start()
    for _ in range(3):
        with torch.autograd.profiler.record_function("## step ##"):
            model(torch.randn(3, 8)).sum().backward()
    observer.stop()
    observer.unregister_callback()
    nodes = json.loads((tmp_path / "t.json").read_text())["nodes"]
    expected = Counter(node["name"] for node in nodes if not node["name"].startswith("[pytorch|"))
    trace = strobe.open(tmp_path / "t.json")
    assert counts(trace) == expected
    assert expected["aten::linear"] == 6
    paths = by_path(trace, "count")
    assert paths["## step ##"] == 3
    assert paths["## step ##;aten::linear;aten::addmm"] == 6
    roles = dict(trace.sql("select name, role from regions where paradigm = 'torch'").rows())
    assert (roles["## step ##"], roles["aten::linear"]) == ("range", "operator")


def test_older_files_have_parents_and_linked_ones_have_durations(tmp_path: Path) -> None:
    nodes: list[Any] = [
        {"name": "aten::mm", "id": 3, "parent": 2, "tid": 7, "scope": 0, "exclusive_dur": 2.25, "inclusive_dur": 2.25},
        {"name": "aten::linear", "id": 2, "parent": 1, "tid": 7, "scope": 0, "exclusive_dur": 1, "inclusive_dur": 3.25},
        {"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "parent": 1, "tid": 0},
        {"name": "gemm<float>", "id": 4, "parent": 3, "cat": "kernel", "stream": 20, "exclusive_dur": 10},
        {"name": "lost", "id": 5, "parent": 99, "tid": 7, "exclusive_dur": True},
        {"name": "self", "id": 6, "parent": 6, "tid": 7, "exclusive_dur": 1e300},
        {"name": "round", "id": 7, "parent": 8, "tid": 7},
        {"name": "and round", "id": 8, "parent": 7, "tid": 7},
        {"name": "no number", "id": "x"},
        8,
    ]
    (tmp_path / "t.json").write_text(json.dumps({"schema": "1.0.1", "pid": 12, "nodes": nodes}))
    trace = strobe.open(tmp_path / "t.json")
    assert "aten::linear;aten::mm;gemm<float>" in by_path(trace)
    assert own_sums(trace) == [
        ("stream 20", "gemm<float>", 1, 10_000),
        ("thread 7", "and round", 1, 0),
        ("thread 7", "aten::linear", 1, 1000),
        ("thread 7", "aten::mm", 1, 2250),
        ("thread 7", "lost", 1, 0),
        ("thread 7", "round", 1, 0),
        ("thread 7", "self", 1, 0),
    ]
    assert quality(trace)["frames_not_understood"] == 2
    assert quality(trace)["callers_not_understood"] == 1
    assert trace.sql("select pid from processes").rows() == [(12,)]


def attribute(name: str, value: int | str | bool) -> bytes:
    field = 29 if isinstance(value, str) else 27 if isinstance(value, bool) else 9
    body = protobuf.text(field, value) if isinstance(value, str) else protobuf.number(field, int(value))
    return protobuf.text(1, name) + body


def node(number: int, name: str, kind: int, parents: list[int], us: int, **attributes: int | str | bool) -> bytes:
    body = protobuf.number(1, number) + protobuf.text(2, name) + protobuf.number(3, kind)
    body += protobuf.text(4, b"".join(map(protobuf.varint, parents))) + protobuf.number(7, us)
    return body + b"".join(protobuf.text(10, attribute(*each)) for each in attributes.items())


def chakra(path: Path, *nodes: bytes) -> Path:
    metadata = protobuf.text(1, "0.0.4") + protobuf.text(2, attribute("pid", 31))
    path.write_bytes(b"".join(protobuf.varint(len(each)) + each for each in (metadata, *nodes)))
    return path


def test_nodes_of_chakra_have_durations_and_bytes(tmp_path: Path) -> None:
    host = {"rf_id": 1, "tid": 5, "is_cpu_op": True}
    path = chakra(
        tmp_path / "t.et",
        node(3, "aten::mm", 4, [2], 4, **host),
        node(2, "aten::linear", 4, [1], 6, **host),
        node(1, "[pytorch|profiler|execution_trace|process]", 1, [], 0),
        node(4, "gemm", 4, [3], 100, rf_id=1, is_cpu_op=False, stream=7),
        node(5, "ncclDevKernel_AllReduce", 7, [3], 50, rf_id=1, is_cpu_op=False, stream=20, comm_size=4096),
        node(6, "made by hand", 4, [5], 1),  # an order, and no call
    )
    trace = strobe.open(path)
    assert own_sums(trace) == [
        ("stream 20", "ncclDevKernel_AllReduce", 1, 50_000),
        ("stream 7", "gemm", 1, 100_000),
        ("thread 0", "made by hand", 1, 1000),
        ("thread 5", "aten::linear", 1, 6000),
        ("thread 5", "aten::mm", 1, 4000),
    ]
    assert "made by hand" in by_path(trace)
    assert "aten::linear;aten::mm;gemm" in by_path(trace)
    bytes_of = trace.sql(
        "select self_value, unit from path_metrics where metric = 'communicated' and self_value > 0"
    ).rows()
    assert bytes_of == [(4096.0, "bytes")]
    assert trace.sql("select role from regions where name like 'nccl%'").rows() == [("collective",)]
    path.write_bytes(path.read_bytes()[:-9])
    assert quality(strobe.open(path))["truncated"] == 1


@pytest.mark.parametrize(
    "text", ['{"schema": "1.0.1", "nodes": 5}', '{"schema": "1.0.1", "nodes": []}', '{"schema": "1.0.1", "nodes": [']
)
def test_execution_traces_without_nodes_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(FormatError, match="execution trace"):
        strobe.open(tmp_path / "t.json")


# --- memory timelines ------------------------------------------------------------------------------------------------

CATEGORIES = (
    "parameters",
    "optimizer state",
    "inputs",
    "temporary",
    "activations",
    "gradients",
    "autograd details",
    "unknown",
)


@pytest.mark.filterwarnings("ignore")
def test_memory_timelines_of_pytorch_are_curves_by_category(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True
    ) as profile:
        for _ in range(2):
            model(torch.randn(3, 64)).sum().backward()
    for name in ("t.json", "t.raw.json.gz"):
        profile.export_memory_timeline(str(tmp_path / name), device="cpu")
    times, sizes = json.loads((tmp_path / "t.json").read_text())
    trace = strobe.open(tmp_path / "t.json")
    for place, category in enumerate(CATEGORIES):
        curve = [row[place + 1] for row in sizes]
        found = trace.sql(
            f"select time_ns, value from metrics where metric = 'memory: {category}' order by time_ns"
        ).rows()
        known = {time + trace.zero_ns: value for time, value in found}
        # A curve has the moments at which it changes; at the same moment, the last value counts.
        moments = {time * 1000: value for time, value in zip(times, curve, strict=True)}
        assert all(moments[time] == value for time, value in known.items())
        assert (found[-1][1] if found else 0) == curve[-1]
    raw = json.loads(gzip.decompress((tmp_path / "t.raw.json.gz").read_bytes()))
    trace = strobe.open(tmp_path / "t.raw.json.gz")
    rows = trace.sql("select memory_kind, sum(size_bytes)::bigint, count(*) from allocations group by 1").rows()
    expected: dict[int, list[int]] = {}
    for _, _, size, category in raw:
        entry = expected.setdefault(category, [0, 0])
        entry[0] += size
        entry[1] += 1
    assert sorted(rows) == sorted((CATEGORIES[category], *entry) for category, entry in expected.items())
    assert trace.zero_ns == min(time for time, *_ in raw if time >= 0), "nanoseconds are those of the file"
    peaks = {row["memory"]: row["peak_bytes"] for row in trace.memory().to_arrow().to_pylist()}
    level, highest = 0, 0
    for _, _, size, category in sorted(raw, key=lambda each: max(each[0], trace.zero_ns)):
        if category == 4:
            level += size
            highest = max(highest, level)
    assert peaks["activations"] == highest


def test_what_was_there_before_counts_from_the_first_moment(tmp_path: Path) -> None:
    events = [[-1, 1, 100, 0], [1795901941292537233, 2, 40, 3], [1795901941292537300, 4, -40, 3], [5, 2, 3, 99], "x"]
    (tmp_path / "t.json").write_text(json.dumps(events))
    trace = strobe.open(tmp_path / "t.json")
    assert trace.sql(
        "select time_ns, size_bytes, total_allocated_bytes, memory_kind from allocations order by 1, 2 desc"
    ).rows() == [
        (0, 100, 100, "parameters"),
        (0, 40, 40, "temporary"),
        (67, -40, 0, "temporary"),
    ]
    assert quality(trace)["events_not_understood"] == 2
