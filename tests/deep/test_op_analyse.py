"""MindSpore's op_analyse: its exact JSON by hand, and against plain arithmetic on a real profile."""

import gzip
import json
from collections import defaultdict

import pytest

import strobe
from strobe.api.imports import opened
from strobe.cli.main import main
from strobe.errors import UsageError
from tests.deep.kineto import call, copy, event, kernel, operator, profile, write
from tests.public import FOLDER
from tests.unit.hand_made import make_trace, span

CONV = [[32, 3, 224, 224], [64, 3, 7, 7]]
SMALL = [[1, 3, 8, 8], [64, 3, 7, 7]]
EVENTS = [
    # Three of one shape: 10.5 us and 2 us on the GPU (its inner convolution launched one), 1 us of a copy; the third
    # launches nothing.
    operator("aten::conv2d", 0, 30, Input_Dims=CONV),
    operator("aten::_convolution", 5, 20, Input_Dims=CONV),
    call(6, 1, correlation=1),
    call(27, 1, correlation=2),
    operator("aten::conv2d", 40, 5, Input_Dims=CONV),
    call(41, 1, correlation=3),
    operator("aten::conv2d", 50, 7.25, Input_Dims=CONV),
    operator("aten::conv2d", 60, 5, Input_Dims=SMALL),
    call(61, 1, correlation=4),
    operator("aten::relu", 70, 3),
    call(71, 1, correlation=5),
    kernel("implicit_gemm", 100, 10.5, correlation=1),
    kernel("bias", 111, 2, correlation=2),
    copy("Memcpy DtoD (Device -> Device)", 120, 1, correlation=3),
    kernel("implicit_gemm", 130, 4, correlation=4),
    kernel("relu", 140, 50, correlation=5),
]


def test_the_json_is_that_of_mindspore(tmp_path):
    trace = profile(tmp_path, *EVENTS)
    expected = (
        '{"Conv2D": ['
        '{"op_side": "gpu", "input_shape": "[32, 3, 224, 224],[64, 3, 7, 7]", "op_occurrences": 2, '
        '"op_total_time(us)": 13.5, "op_avg_time(us)": 6.75}, '
        '{"op_side": "gpu", "input_shape": "[1, 3, 8, 8],[64, 3, 7, 7]", "op_occurrences": 1, '
        '"op_total_time(us)": 4.0, "op_avg_time(us)": 4.0}, '
        '{"op_side": "cpu", "input_shape": "[32, 3, 224, 224],[64, 3, 7, 7]", "op_occurrences": 1, '
        '"op_total_time(us)": 7.25, "op_avg_time(us)": 7.25}'
        '], "device_id": 0}'
    )
    assert trace.op_analyse("Conv2D") == expected
    assert trace.op_analyze("Conv2D", device_id=0) == expected


def test_several_operators_and_full_names(tmp_path):
    trace = profile(tmp_path, *EVENTS)
    found = json.loads(trace.op_analyse(["aten::relu", "aten::_convolution"]))
    assert list(found) == ["aten::relu", "aten::_convolution", "device_id"]
    (relu,) = found["aten::relu"]
    assert (relu["op_side"], relu["input_shape"], relu["op_occurrences"], relu["op_total_time(us)"]) == (
        "gpu", "", 1, 50.0,
    )  # fmt: skip
    (inner,) = found["aten::_convolution"]
    assert (inner["op_occurrences"], inner["op_total_time(us)"]) == (1, 10.5)


def test_an_operator_inside_its_like_is_a_part_of_it(tmp_path):
    events = [operator("aten::to", 0, 10), operator("aten::to", 2, 5), operator("aten::to", 20, 4)]
    (entry,) = json.loads(profile(tmp_path, *events).op_analyse("to"))["to"]
    assert (entry["op_occurrences"], entry["op_total_time(us)"], entry["op_avg_time(us)"]) == (2, 14.0, 7.0)


def test_one_gpu_of_several(tmp_path):
    events = [
        operator("aten::mm", 0, 10),
        call(1, 1, correlation=1),
        operator("aten::mm", 20, 10),
        call(21, 1, correlation=2),
        kernel("gemm", 40, 7, device=0, correlation=1),
        kernel("gemm", 40, 9, device=1, correlation=2),
    ]
    trace = profile(tmp_path, *events)
    for device, time_us in ((None, 7.0), (0, 7.0), (1, 9.0)):
        found = json.loads(trace.op_analyse("mm", device))
        # What ran on the other GPU is nobody's time on the host.
        assert [(e["op_side"], e["op_occurrences"], e["op_total_time(us)"]) for e in found["mm"]] == [
            ("gpu", 1, time_us)
        ]
        assert found["device_id"] == (device or 0)
    with pytest.raises(UsageError, match="no GPU 3 in this trace") as caught:
        trace.op_analyse("mm", 3)
    assert "0, 1" in caught.value.do


def test_ranks_that_do_not_use_the_gpu_are_left_out(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in (0, 1):
        events = [operator("aten::mm", 0, 10), call(1, 1, correlation=1), operator("aten::item", 20, 1 + rank)]
        write(folder / f"{rank}.json", *events, kernel("gemm", 40, 7 + rank, device=rank, correlation=1), rank=rank)
    trace = strobe.open(opened(folder, cache=tmp_path, talk=False))
    found = json.loads(trace.op_analyse(["mm", "item"], device_id=1))
    assert [(e["op_occurrences"], e["op_total_time(us)"]) for e in found["mm"]] == [(1, 8.0)]
    assert [(e["op_side"], e["op_total_time(us)"]) for e in found["item"]] == [("cpu", 2.0)]


def test_a_recorded_run_without_a_gpu():
    trace = make_trace({"main": [span("f", 0, 9000, span("aten::mm", 0, 1000), span("aten::mm", 2000, 5000))]})
    assert json.loads(trace.op_analyse("mm")) == {
        "mm": [{"op_side": "cpu", "input_shape": "", "op_occurrences": 2, "op_total_time(us)": 4.0,
                "op_avg_time(us)": 2.0}],
        "device_id": 0,
    }  # fmt: skip


def test_what_is_no_operator_is_refused(tmp_path):
    events = [*EVENTS, event("python_function", "train.py(3): conv2dd", 300, 5, 100, 1)]
    trace = profile(tmp_path, *events)
    with pytest.raises(UsageError, match="no operator has the name or type 'conv2dd'") as caught:
        trace.op_analyse("conv2dd")
    assert "conv2d" in caught.value.do
    assert isinstance(caught.value, RuntimeError), "as scripts for MindSpore expect"
    for wrong in ("", [], [1], None, 3):
        with pytest.raises(TypeError):
            trace.op_analyse(wrong)
    with pytest.raises(TypeError):
        trace.op_analyse("conv2d", "0")


def test_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "trace.json"
    write(path, *EVENTS)
    assert main(["operators", str(path), "--op-analyse", "relu,conv2d", "--device-id", "0"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["relu", "conv2d", "device_id"]
    assert main(["operators", str(path), "--op-analyze", "nosuch"]) == 2
    assert "no operator has the name or type 'nosuch'" in capsys.readouterr().err


def test_convolutions_of_a_real_profile(public):
    name = "kineto/resnet50_loader_workers0.json.gz"
    whole = json.loads(gzip.decompress((FOLDER / name).read_bytes()))
    events = [e for e in whole["traceEvents"] if e.get("ph") == "X" and "cat" in e]
    on_gpu = defaultdict(int)
    for e in events:
        if e["cat"] in ("Kernel", "Memcpy", "Memset"):
            on_gpu[e["args"]["correlation"]] += e["dur"]
    calls = [e for e in events if e["cat"] == "Runtime" and e["args"]["correlation"] in on_gpu]
    expected = defaultdict(lambda: [0, 0])
    for e in events:
        if e["name"] == "aten::cudnn_convolution":
            shapes = ",".join(str(shape) for shape in e["args"]["Input Dims"])
            expected[shapes][0] += 1
            inside = (c for c in calls if c["tid"] == e["tid"] and e["ts"] <= c["ts"] < e["ts"] + e["dur"])
            expected[shapes][1] += sum(on_gpu[c["args"]["correlation"]] for c in inside)
    found = json.loads(public(name).op_analyse("cudnn_convolution"))["cudnn_convolution"]
    assert len(found) > 10
    assert {e["op_side"] for e in found} == {"gpu"}
    assert {e["input_shape"]: [e["op_occurrences"], e["op_total_time(us)"]] for e in found} == expected
