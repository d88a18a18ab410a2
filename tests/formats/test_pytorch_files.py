"""Execution traces, memory timelines and printed tables of PyTorch, against what PyTorch has in memory."""

import gzip
import json
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.errors import FormatError
from strobe.formats.reading import protobuf
from strobe.present.summary import summarise
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
    assert summarise(trace).verdict.text == "nothing that ran is in this file: `strobe memory` shows what is"
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


# --- printed averages ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def averages() -> Any:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4))
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_flops=True
    ) as profile:
        for _ in range(3):
            with torch.autograd.profiler.record_function(
                "## a step, whose name is longer than the column of names is ##"
            ):
                model(torch.randn(64, 128)).sum().backward()
    return profile


def printed_ns(us: float) -> int:
    """What is printed of a time: three decimals in its unit."""
    unit = 1e9 if us >= 1e6 else 1e6 if us >= 1e3 else 1e3
    return round(round(us * 1e3 / unit, 3) * unit)


@pytest.mark.parametrize("options", [{}, {"group_by_input_shape": True}])
def test_printed_averages_are_those_of_the_profiler(tmp_path: Path, averages: Any, options: dict[str, bool]) -> None:
    found = averages.key_averages(**options)
    text = found.table(row_limit=-1, max_name_column_width=200, header="of a run")
    (tmp_path / "t.txt").write_text(f"epoch 1\nloss 0.5\n{text}\n")
    expected: dict[str, list[int]] = {}
    for each in found:
        entry = expected.setdefault(each.key, [0, 0, 0])
        entry[0] += each.count
        entry[1] += printed_ns(each.cpu_time_total)
        entry[2] += printed_ns(each.self_cpu_time_total)
    trace = strobe.open(tmp_path / "t.txt")
    sums = "sum(count)::bigint, sum(total_ns)::bigint, sum(self_ns)::bigint"
    rows = trace.sql(f"select name, {sums} from statistics group by 1")
    # Python rounds halves of binary fractions, not of decimals: the last printed digit may be the other one.
    for name, count, total, own in rows.rows():
        assert count == expected[name][0]
        assert abs(total - expected[name][1]) <= 1000
        assert abs(own - expected[name][2]) <= 1000
    assert len(rows) == len(expected)
    memory = trace.sql("select sum(self_value) from path_metrics where metric = 'CPU memory' and unit = 'bytes'").rows()
    whole = sum(each.self_cpu_memory_usage for each in found)
    assert abs(memory[0][0] - whole) <= 0.005 * 1024 * len(found)
    assert quality(trace)["columns_not_kept"] == (2 if options else 1)
    assert "functions_not_understood" not in quality(trace)


def test_stacks_of_printed_averages_are_call_paths(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(64, 8)

    def twice(x: Any) -> Any:
        return layer(x), layer(x)

    options = {"with_stack": True, "experimental_config": torch._C._profiler._ExperimentalConfig(verbose=True)}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as profile:
        twice(torch.randn(4, 64))
        layer(torch.randn(4, 64))
    found = profile.key_averages(group_by_stack_n=4)
    (tmp_path / "t.txt").write_text(
        found.table(row_limit=-1, max_name_column_width=200, max_src_column_width=200), encoding="utf-8"
    )
    expected = Counter[str]()
    for each in found:
        functions = [frame.split("): ", 1)[-1] for frame in reversed(each.stack)]
        expected[re.sub(r" at 0x[0-9a-f]+", "", ";".join((*functions, each.key)))] += each.count
    trace = strobe.open(tmp_path / "t.txt")
    ours = by_path(trace, "count")
    operators = {path: count for path, count in expected.items() if path.rpartition(";")[2].startswith("aten::")}
    assert {path: count for path, count in ours.items() if path.rpartition(";")[2].startswith("aten::")} == operators
    assert [path.split(";")[-2:] for path in operators].count(["<built-in function linear>", "aten::addmm"]) >= 1
    assert "columns_not_kept" not in quality(trace)


def test_functions_above_operators_have_the_time_inside(tmp_path: Path) -> None:
    heads = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
    rows = [
        ("aten::linear", "1%", "2.000us", "1%", "10.000us", "5.000us", "2", "model.py(7): forward"),
        ("", "", "", "", "", "", "", "...packages/train.py(30): <module>"),
        ("",) * 8,
        ("aten::addmm", "1%", "8.000us", "1%", "8.000us", "4.000us", "2", "model.py(7): forward"),
        ("", "", "", "", "", "", "", "...packages/train.py(30): <module>"),
        ("",) * 8,
        ("aten::add", "1%", "1.000us", "1%", "1.000us", "1.000us", "1", ""),
        ("",) * 8,
    ]
    widths = (20, *[12] * 6, 75)
    rule = "  ".join("-" * width for width in widths) + "  "
    lines = ["  ".join(f"{cell:<75}" if i == 7 else f"{cell:>{widths[i]}}" for i, cell in enumerate(row)) + "  "
             for row in ((*heads, "Source Location"), *rows)]  # fmt: skip
    (tmp_path / "t.txt").write_text(
        "\n".join((rule, lines[0], rule, *lines[1:], rule, "Self CPU time total: 11us", ""))
    )
    trace = strobe.open(tmp_path / "t.txt")
    assert by_path(trace, "count, total_ns, self_ns") == {
        "<module>": [4, 10_000, 0],
        "<module>;forward": [4, 10_000, 0],
        "<module>;forward;aten::linear": [2, 10_000, 2_000],
        "<module>;forward;aten::addmm": [2, 8_000, 8_000],
        "aten::add": [1, 1_000, 1_000],
    }
    places = trace.sql("select name, paradigm, file, line from regions where paradigm = 'python' order by 1").rows()
    assert places == [("<module>", "python", "...packages/train.py", 30), ("forward", "python", "model.py", 7)]


HEADINGS = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %",
            "CUDA total", "CUDA time avg", "CUDA Mem", "# of Calls")  # fmt: skip
ROWS = """\
aten::mm|10.00%|20.500us|50.00%|1.250ms|625.000us|2.000ms|100.00%|2.000ms|1.000ms|1.50 Mb|2
step|90.00%|1.500s|100.00%|1.501s|1.501s|0.000us|0.00%|2.004ms|2.004ms|0 b|1
step|0.00%|0.000us|0.00%|0.000us|0.000us|2.100ms|100.00%|2.100ms|2.100ms|0 b|1
void gemm<float>()|0.00%|0.000us|0.00%|0.000us|0.000us|1.996ms|99.00%|1.996ms|998.000us|0 b|2
Memcpy HtoD (Pageable)|0.00%|0.000us|0.00%|0.000us|0.000us|4.000us|0.20%|4.000us|4.000us|0 b|1
aten::ab|?%|?us|1.00%|1.000us|1.000us|0.000us|0.00%|0.000us|0.000us|0 b|many
aten::wide|0.00%|1.000us|0.00%|1.000us|1.000us|0.000us|0.00%|0.000us|0.000us|1234567890123456 b|1"""


def of_cuda() -> str:
    """A table as profiler_util._build_table makes it for a GPU."""
    rule = "  ".join("-" * width for width in (24, *[12] * 11)) + "  "
    rows = [HEADINGS, *(tuple(row.split("|")) for row in ROWS.splitlines())]
    lines = ["  ".join(f"{cell:>{24 if i == 0 else 12}}" for i, cell in enumerate(row)) + "  " for row in rows]
    totals = ["Self CPU time total: 1.502s", "Self CUDA time total: 2.000ms"]
    return "\n".join((rule, lines[0], rule, *lines[1:], rule, *totals, ""))


CUDA = of_cuda()


def test_rows_of_the_gpu_are_kernels_and_copies(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(CUDA)
    trace = strobe.open(tmp_path / "t.txt")
    rows = trace.sql(
        """select l.name, r.name, r.role, count, total_ns, self_ns from statistics s join locations l using (location)
           join call_paths c using (call_path) join regions r on r.region = c.region"""
    ).rows()
    assert sorted(rows) == [
        ("table 1", "aten::mm", "operator", 2, 1_250_000, 20_500),
        ("table 1", "aten::wide", "operator", 1, 1_000, 1_000),
        ("table 1", "step", "operator", 1, 1_501_000_000, 1_500_000_000),
        ("table 1 CUDA", "Memcpy HtoD (Pageable)", "copy", 1, 4_000, 4_000),
        ("table 1 CUDA", "step", "range", 1, 2_100_000, 2_100_000),
        ("table 1 CUDA", "void gemm<float>()", "kernel", 2, 1_996_000, 1_996_000),
    ]
    metrics = trace.sql("select metric, self_value, total_value from path_metrics order by 1, 3").rows()
    assert metrics == [
        ("CUDA memory", None, 1.5 * 1024 * 1024),
        ("CUDA memory", None, 1234567890123456.0),
        ("CUDA time", 2e6, 2e6),
        ("CUDA time", 0.0, 2.004e6),
    ]
    assert quality(trace)["functions_not_understood"] == 1


def test_operators_of_which_only_sums_are_known_have_no_median(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(CUDA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = {each["name"]: each for each in strobe.open(tmp_path / "t.txt").operators().to_arrow().to_pylist()}
    assert (rows["aten::mm"]["calls"], rows["aten::mm"]["total_ns"]) == (2, 1_250_000)
    assert rows["aten::mm"]["median_ns"] is None


def test_several_tables_of_a_log_are_several_locations(tmp_path: Path) -> None:
    (tmp_path / "t.log").write_text(f"first\n{CUDA}\nsecond\n{CUDA}")
    trace = strobe.open(tmp_path / "t.log")
    assert trace.sql("select name from locations order by 1").rows() == [
        (name,) for name in ("table 1", "table 1 CUDA", "table 2", "table 2 CUDA")
    ]
    (tmp_path / "u.txt").write_text(CUDA[: CUDA.index("Memcpy")])
    assert quality(strobe.open(tmp_path / "u.txt"))["truncated"] == 1
