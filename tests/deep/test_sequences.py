"""Sequences of kernels by operator: by hand, against plain Python over the JSON, and against HTA."""

import functools
import gzip
import json
from collections import Counter, defaultdict

import pytest

from strobe.gpu import launches, sequences
from tests.deep.kineto import US, call, copy, kernel, operator, profile
from tests.public import FOLDER


def rows(table):
    return table.to_arrow().to_pylist()


def launched(name, call_us, start_us, duration_us, correlation, **more):
    make = copy if name.startswith("Mem") else kernel
    return [
        call(call_us, 1, correlation=correlation, **{k: v for k, v in more.items() if k == "thread"}),
        make(name, start_us, duration_us, correlation=correlation, **{k: v for k, v in more.items() if k != "thread"}),
    ]


def test_sequences_by_hand(tmp_path):
    trace = profile(
        tmp_path,
        # Twice the same three, once in another order; the operator inside does not count by itself.
        operator("aten::linear", 0, 10), operator("aten::addmm", 1, 8),
        *launched("a<1>", 1, 100, 5, 1), *launched("a<1>", 2, 110, 6, 2), *launched("Memset (Device)", 3, 120, 1, 3),
        operator("aten::linear", 20, 12), operator("aten::addmm", 21, 8),
        *launched("a<1>", 21, 130, 7, 4), *launched("a<1>", 22, 140, 8, 5), *launched("Memset (Device)", 23, 150, 2, 6),
        operator("aten::linear", 40, 10), operator("aten::addmm", 41, 8),
        *launched("a<1>", 41, 160, 5, 7), *launched("Memset (Device)", 42, 170, 1, 8), *launched("a<1>", 43, 180, 5, 9),
        # The order on the GPU counts, not that of the calls; two are not enough; nobody launched `gap`.
        operator("aten::mm", 60, 20, thread=2), *launched("second", 61, 220, 5, 10, stream=9, thread=2),
        *launched("first", 63, 210, 5, 11, thread=2), *launched("third", 65, 230, 5, 12, thread=2),
        operator("aten::add", 90, 5), *launched("b", 91, 300, 5, 13), *launched("b", 92, 310, 5, 14),
        *launched("gap", 200, 400, 39, 15),
        rank=3,
    )  # fmt: skip
    whole = (5 + 6 + 1) + (7 + 8 + 2) + (5 + 1 + 5) + 15 + 10 + 39
    first, *others = rows(trace.sequences())
    assert {key: first[key] for key in ("rank", "device", "operator", "count", "length", "device_ns", "host_ns")} == {
        "rank": 3, "device": 0, "operator": "aten::linear", "count": 2, "length": 3, "device_ns": 29 * US,
        "host_ns": 22 * US,
    }  # fmt: skip
    assert (first["sequence"], first["names"]) == ("2x a | Memset (Device)", "a<1>|a<1>|Memset (Device)")
    assert first["share"] == 29 / whole
    spans = trace.span_arrays(first["location"])
    assert spans["start_ns"][spans["row"] == first["row"]].tolist() == [0]
    assert [(row["operator"], row["count"], row["sequence"]) for row in others] == [
        ("aten::mm", 1, "first | second | third"), ("aten::linear", 1, "a | Memset (Device) | a")
    ]  # fmt: skip
    assert {row["operator"] for row in rows(trace.sequences(operator="addmm"))} == {"aten::addmm"}
    assert ("aten::add", "2x b") in {(row["operator"], row["sequence"]) for row in rows(trace.sequences(least=2))}


def test_what_is_missing_is_said(tmp_path):
    assert "no GPU did anything" in profile(tmp_path, operator("aten::mm", 0, 5)).sequences().note
    trace = profile(tmp_path, operator("aten::mm", 0, 5), kernel("gemm", 10, 5))
    assert trace.sequences(operator="conv").note.startswith("no operator with 'conv' in its name launched 3 kernels")


@pytest.mark.parametrize("name", ["nccl_data", "resnet50_loader_workers4"])
def test_sequences_of_a_public_trace_are_those_of_plain_python(public, name):
    with gzip.open(FOLDER / f"kineto/{name}.json.gz") as file:
        whole = json.load(file, parse_float=str)["traceEvents"]
    events = [e for e in whole if e.get("ph") == "X"]

    def ns(text):
        micro, _, nano = str(text).partition(".")
        return int(micro) * US + int(nano.ljust(3, "0"))

    on_gpu = ("kernel", "gpu_memcpy", "gpu_memset")
    old = {
        "Kernel": "kernel",
        "Memcpy": "gpu_memcpy",
        "Memset": "gpu_memset",
        "Operator": "cpu_op",
        "Runtime": "cuda_runtime",
    }
    by_kind = defaultdict(list)
    for event in events:
        by_kind[old.get(event["cat"], event["cat"])].append(event)
    ran = defaultdict(list)
    for event in (e for kind in on_gpu for e in by_kind[kind]):
        ran[int(event["args"]["correlation"])].append((ns(event["ts"]), event["name"], ns(event["dur"])))
    calls = defaultdict(list)
    for event in by_kind["cuda_runtime"]:
        if work := ran.get(int(event["args"]["correlation"])):
            calls[event["tid"]].append((ns(event["ts"]), work))
    expected, time, host = Counter(), Counter(), Counter()
    for event in (e for e in by_kind["cpu_op"] if e["name"] == "aten::conv2d"):
        begin, end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
        work = sorted(each for at, works in calls[event["tid"]] if begin <= at < end for each in works)
        if len(work) >= 2:
            names = "|".join(name for _, name, _ in work)
            expected[names] += 1
            time[names] += sum(duration for *_, duration in work)
            host[names] += end - begin
    table = rows(public(f"kineto/{name}.json.gz").sequences(operator="aten::conv2d", least=2))
    assert sum(expected.values()) > 50
    assert {row["names"]: (row["count"], row["device_ns"], row["host_ns"]) for row in table} == {
        names: (expected[names], time[names], host[names]) for names in expected
    }


def test_sequences_do_not_depend_on_how_much_is_held_at_once(public, monkeypatch):
    trace = public("kineto/nccl_data.json.gz")
    expected = rows(trace.sequences(operator="aten::", least=2))
    assert sum(row["count"] for row in expected) > 200
    # Some hundred stretches, and operators are forgotten in most of them.
    monkeypatch.setattr(sequences, "launches", functools.partial(launches.launches, most=500))
    monkeypatch.setattr(launches, "_KEPT", 600)
    assert rows(trace.sequences(operator="aten::", least=2)) == expected


# What get_frequent_cuda_kernel_sequences of HTA (traceinsight 0.6.1, HTA_DISABLE_NS_ROUNDING=1) says of nccl_data:
# kernels, count, microseconds on the GPU and of the operators.
CONV2D = [
    (3, 12, 1721.096, 4067.421), (4, 12, 1074.165, 4130.601), (4, 10, 1158.386, 3451.2),
    (3, 6, 668.408, 2019.898), (3, 6, 821.713, 2044.815), (4, 2, 488.186, 679.968),
]  # fmt: skip
FOREACH = [(3, 4, 1016.597, 16546.733), (3, 2, 368.537, 7953.958)]


@pytest.mark.parametrize(("operator", "theirs"), [("aten::conv2d", CONV2D), ("aten::_foreach", FOREACH)])
def test_holistic_trace_analysis_says_the_same(as_hta_sees_it, operator, theirs):
    trace, _ = as_hta_sees_it("nccl_data")
    ours = [
        (row["length"], row["count"], row["device_ns"] / US, row["host_ns"] / US)
        for row in rows(trace.sequences(operator=operator))
    ]
    assert sorted(ours) == [pytest.approx(row) for row in sorted(theirs)]


def test_holistic_trace_analysis_says_the_same_of_linear_layers(as_hta_sees_it):
    trace, told = as_hta_sees_it("diff_control")
    (theirs,) = told["frequent_patterns:aten::linear"]["out"]["data"]
    (ours,) = rows(trace.sequences(operator="aten::linear"))
    assert (ours["count"], ours["device_ns"], ours["host_ns"]) == (
        theirs["count"], theirs["GPU kernel duration (us)"] * US, theirs["CPU op duration (us)"] * US
    )  # fmt: skip
    assert f"aten::linear|{ours['names']}".startswith(theirs["pattern"])
