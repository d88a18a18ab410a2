"""Operators with what they launch on GPUs: by hand, against plain arithmetic on the JSON of real profiles, and against
the TensorBoard plugin's own table."""

import functools
import gzip
import json
from collections import Counter, defaultdict
from decimal import Decimal

import pytest

from strobe.gpu.launches import launches
from strobe.operators import sums as operator_sums
from strobe.operators.labels import is_users, line_of_stack
from tests.deep.kineto import US, call, copy, event, kernel, operator, profile, step, write
from tests.public import FOLDER

DEVICE = ("device_total_ns", "device_self_ns", "kernels")


def rows(table):
    return table.to_arrow().to_pylist()


def by_first(table, *columns):
    return {row[0]: tuple(dict(zip(table.columns, row, strict=True))[each] for each in columns) for row in table.rows()}


def python(name, start_us, duration_us):
    return event("python_function", name, start_us, duration_us, 100, 1)


# linear 0..30 holds addmm 5..20, and launches 2 kernels itself; addmm launches one kernel, after an empty 6..8.
LINEAR = [
    operator("aten::linear", 0, 30, Input_Dims=[[4, 8], [8, 8]]),
    operator("aten::addmm", 5, 15, Input_Dims=[[8], [4, 8], [8, 8]]),
    operator("aten::empty", 6, 2),
    call(1, 2, correlation=1),
    call(10, 4, correlation=2),
    call(22, 3, correlation=3),
    call(40, 2, correlation=4),
    kernel("a", 50, 7, correlation=1),
    kernel("b", 60, 11, correlation=2),
    copy("Memcpy HtoD (Pageable -> Device)", 80, 13, correlation=3),
    kernel("of no operator", 100, 100, correlation=4),
]


def test_work_of_a_gpu_belongs_to_the_operators_around_its_launch(tmp_path):
    table = profile(tmp_path, *LINEAR).operators()
    assert by_first(table, "calls", "total_ns", "self_ns", *DEVICE) == {
        # Of its own: 30 - 15 (addmm) - 2 - 3 (the launching calls).
        "aten::linear": (1, 30 * US, 10 * US, 31 * US, 20 * US, 3),
        "aten::addmm": (1, 15 * US, 9 * US, 11 * US, 11 * US, 1),
        "aten::empty": (1, 2 * US, 2 * US, 0, 0, 0),
    }


def test_by_shape(tmp_path):
    table = profile(tmp_path, *LINEAR, operator("aten::linear", 200, 4, Input_Dims=[[2, 8], [8, 8]])).operators(
        by="shape"
    )
    assert [(r["name"], r["shapes"], r["calls"], r["device_total_ns"]) for r in rows(table)] == [
        ("aten::linear", "[[4,8],[8,8]]", 1, 31 * US),
        ("aten::addmm", "[[8],[4,8],[8,8]]", 1, 11 * US),
        ("aten::linear", "[[2,8],[8,8]]", 1, 0),
        ("aten::empty", None, 1, 0),
    ]


def test_an_operator_inside_its_like_counts_its_device_time_once(tmp_path):
    events = [
        operator("aten::conv", 0, 30),
        operator("aten::_conv", 5, 20),
        call(10, 2, correlation=1),
        kernel("k", 40, 9, correlation=1),
    ]
    table = profile(tmp_path, *events).operators(by="type")
    assert by_first(table, "calls", *DEVICE) == {"conv": (2, 9 * US, 9 * US, 1)}


def test_a_range_of_pytorch_owns_what_it_launches_itself(tmp_path):
    events = [
        operator("MyFunctionBackward", 0, 30),
        operator("aten::mm", 20, 5),
        call(10, 2, correlation=1),
        call(21, 2, correlation=2),
        kernel("triton", 40, 9, correlation=1),
        kernel("gemm", 50, 4, correlation=2),
    ]
    assert by_first(profile(tmp_path, *events).operators(), *DEVICE) == {
        "MyFunctionBackward": (13 * US, 9 * US, 2),
        "aten::mm": (4 * US, 4 * US, 1),
    }


def test_ranges_on_the_gpu_are_no_executions_on_the_host(tmp_path):
    events = [
        event("user_annotation", "Optimizer.step#SGD.step", 0, 10, 100, 1),
        kernel("k", 5, 5),
        event("gpu_user_annotation", "Optimizer.step#SGD.step", 5, 5, 0, 7),
    ]
    assert by_first(profile(tmp_path, *events).operators(), "calls", "total_ns") == {
        "Optimizer.step#SGD.step": (1, 10 * US)
    }


NET = [
    python("train.py(40): main", 0, 200),
    python("nn.Module: Net_0", 10, 100),
    python("train.py(7): forward", 11, 98),
    python("nn.Module: Linear_0", 20, 40),
    python("torch/nn/modules/linear.py(130): forward", 21, 38),
    python("<built-in function linear>", 22, 36),
    operator("aten::linear", 25, 30),
    operator("aten::addmm", 30, 20),
    call(32, 2, correlation=1),
    operator("aten::relu", 70, 10),
    operator("aten::sum", 120, 5),
    operator("aten::item", 300, 1),
    kernel("gemm", 60, 12, correlation=1),
]


def test_by_module_and_by_line(tmp_path):
    trace = profile(tmp_path, *NET)
    assert by_first(trace.operators(by="module"), "calls", "total_ns", "self_ns", *DEVICE) == {
        "Linear_0": (2, 30 * US, 28 * US, 12 * US, 12 * US, 1),
        "Net_0": (1, 10 * US, 10 * US, 0, 0, 0),
        None: (2, 6 * US, 6 * US, 0, 0, 0),
    }
    assert by_first(trace.operators(by="line"), "function", "calls", "total_ns", "device_total_ns") == {
        "train.py:7": ("forward", 3, 40 * US, 12 * US),
        "train.py:40": ("main", 1, 5 * US, 0),
        None: (None, 1, 1 * US, 0),
    }


@pytest.mark.parametrize("spans", [2, 1 << 18])
def test_the_backward_pass_belongs_to_the_modules_of_the_forward_pass(tmp_path, monkeypatch, spans):
    monkeypatch.setattr(operator_sums, "_STRETCH", spans)
    monkeypatch.setattr(operator_sums, "launches", functools.partial(launches, most=spans))
    forward = {"Fwd_thread_id": 0}
    backward = {"Fwd_thread_id": 1, "thread": 2}
    events = [
        python("train.py(40): main", 0, 300),
        python("nn.Module: Net_0", 10, 60),
        python("nn.Module: Linear_0", 20, 20),
        operator("aten::linear", 22, 16, Sequence_number=7, **forward),
        operator("aten::addmm", 24, 10, Sequence_number=8, **forward),
        operator("aten::sum", 50, 10, Sequence_number=9, **forward),
        # The same numbers on another thread, which ran less of the forward pass: those are others.
        operator("aten::mul", 50, 3, Sequence_number=8, thread=3, **forward),
        operator("SumBackward0", 100, 10, Sequence_number=9, **backward),
        operator("AddmmBackward0", 120, 30, Sequence_number=8, **backward),
        operator("aten::mm", 125, 12, thread=2),
        call(126, 2, correlation=1, thread=2),
        kernel("gemm", 130, 40, correlation=1),
        operator("UnknownBackward", 160, 5, Sequence_number=100, **backward),
        operator("aten::add_", 200, 6),
    ]
    trace = profile(tmp_path, *events)
    assert by_first(trace.operators(by="module"), "calls", "total_ns", *DEVICE) == {
        "Linear_0": (4, 46 * US, 40 * US, 40 * US, 1),
        "Net_0": (2, 20 * US, 0, 0, 0),
        None: (3, 14 * US, 0, 0, 0),
    }


def test_call_stacks_and_module_hierarchies_of_older_profiles(tmp_path):
    library = "/opt/lib/python3.7/site-packages/torch/nn/functional.py(2263): batch_norm"
    said = {"Call_stack": f"{library};train.py(12): step;train.py(30): <module>", "Module_Hierarchy": "Net.bn1"}
    events = [
        operator("aten::batch_norm", 0, 20, **said),
        operator("aten::cudnn_batch_norm", 5, 10),  # says nothing of itself: as the one around it
        call(6, 2, correlation=1),
        kernel("bn", 30, 8, correlation=1),
        operator("aten::item", 40, 1),
    ]
    trace = profile(tmp_path, *events)
    found = by_first(trace.operators(by="line"), "function", "calls", "total_ns", *DEVICE)
    assert found == {"train.py:12": ("step", 2, 20 * US, 8 * US, 8 * US, 1), None: (None, 1, 1 * US, 0, 0, 0)}
    found = by_first(trace.operators(by="module"), "calls", "total_ns", "device_total_ns")
    assert found == {"Net.bn1": (2, 20 * US, 8 * US), None: (1, 1 * US, 0)}


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("train.py", True),
        ("/home/me/project/model/net.py", True),
        ("model/net.py", True),
        ("/home/me/torch/net.py", True),  # a folder of that name of the user's own
        ("torch/nn/modules/linear.py", False),
        ("threading.py", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("/venv/lib/python3.11/site-packages/lightning/trainer.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("", False),
    ],
)
def test_whose_a_file_is(file, users):
    assert is_users(file) is users


def test_a_stack_without_the_users_code_has_no_line():
    assert line_of_stack("threading.py(10): run;<built-in>") == (None, None)


def test_per_step_and_per_rank(tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in (0, 1):
        events = [
            event_
            for number in range(4)
            for event_ in (
                step(number, 1000 * number, 900),
                operator("aten::mm", 1000 * number + 10, 20 + number),
                call(1000 * number + 12, 2, correlation=1 + number),
                kernel("gemm", 1000 * number + 950, 5 + 10 * rank, correlation=1 + number),
            )
        ]
        write(folder / f"rank{rank}.json", *events, rank=rank)
    import strobe
    from strobe.api.imports import opened

    trace = strobe.open(opened(folder, cache=tmp_path, talk=False))
    (whole,) = rows(trace.operators())
    assert (whole["calls"], whole["device_total_ns"], whole["kernels"]) == (8, 4 * (5 + 15) * US, 8)
    per_rank = [(r["rank"], r["name"], r["calls"], r["device_total_ns"]) for r in rows(trace.operators(per="rank"))]
    assert sorted(per_rank) == [(0, "aten::mm", 4, 20 * US), (1, "aten::mm", 4, 60 * US)]
    # The kernel of a step runs after its mark; it counts where it was launched. Both ranks are in each row.
    per_step = [
        (r["step"], r["calls"], r["total_ns"], r["device_total_ns"], r["calls_per_step"])
        for r in rows(trace.operators(per="step"))
    ]
    assert sorted(per_step) == [(n, 2, 2 * (20 + n) * US, 20 * US, 2) for n in range(4)]
    assert [r["device_total_ns"] for r in rows(trace.operators(step="1..2"))] == [2 * 20 * US]


def test_search_finds_words_in_any_case(tmp_path):
    trace = profile(tmp_path, *LINEAR)
    assert trace.operators(search="MM").column("name") == ["aten::addmm"]
    assert trace.operators(search="aten L").column("name") == ["aten::linear"]
    (found,) = rows(trace.operators(search="addmm"))
    assert found["share"] == pytest.approx(9 / 21), "of all operators, whatever was searched for"
    assert trace.operators(search="nosuch").note == "nothing matches"


def test_the_top_by_average(tmp_path):
    found = profile(tmp_path, *LINEAR).operators(by="type").sort("avg").head(2)
    assert found.column("type") == ["linear", "addmm"]


def test_what_is_missing_is_said(tmp_path):
    trace = profile(tmp_path, operator("aten::mm", 0, 5))
    for by, said in (("shape", "record_shapes=True"), ("module", "with_stack=True"), ("line", "with_stack=True")):
        table = trace.operators(by=by)
        assert len(table) == 0
        assert said in table.note
    assert by_first(trace.operators(), "total_ns", *DEVICE) == {"aten::mm": (5 * US, None, None, None)}
    nothing = profile(tmp_path, python("train.py(1): f", 0, 5)).operators(by="shape")
    assert "--trace +torch" in nothing.note


# Real profiles


def truth(path, key_of):
    """By key of its operators (None for events that are none): calls, total, self, time of GPUs in all, of its own,
    activities. Plain arithmetic on the JSON: events inside each other by time, activities by correlation."""
    whole = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    events = [e for e in whole["traceEvents"] if e.get("ph") == "X" and "cat" in e]
    on_gpu = defaultdict(list)
    for e in events:
        if e["cat"].lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"):
            on_gpu[e["args"]["correlation"]].append(round(1000 * e["dur"]))
    threads = defaultdict(list)
    for e in events:
        if e["cat"].lower() in ("cpu_op", "operator", "cuda_runtime", "runtime", "user_annotation"):
            threads[e["pid"], e["tid"]].append(e)
    sums = defaultdict(lambda: [0] * 6)
    for thread in threads.values():
        thread.sort(key=lambda e: (e["ts"], -e["dur"]))
        stack = []  # end, key
        for e in thread:
            while stack and stack[-1][0] <= e["ts"]:
                stack.pop()
            duration, keys = round(1000 * e["dur"]), [key for _, key in stack if key is not None]
            if stack and stack[-1][1] is not None:
                sums[stack[-1][1]][2] -= duration
            for activity in on_gpu.get(e["args"].get("correlation"), ()) if "runtime" in e["cat"].lower() else ():
                if keys:
                    sums[keys[-1]][4] += activity
                for key in set(keys):
                    sums[key][3] += activity
                    sums[key][5] += 1
            key = key_of(e, stack[-1][1] if stack else None)
            if key is not None:
                sums[key][0] += 1
                sums[key][1] += duration if key not in keys else 0
                sums[key][2] += duration
            stack.append((e["ts"] + e["dur"], key))
    return {key: tuple(found) for key, found in sums.items()}


def found_in(table, *key):
    facts = ("calls", "total_ns", "self_ns", *DEVICE)
    return {tuple(r[each] for each in key): tuple(r[each] for each in facts) for r in rows(table)}


# What the program marked, waits for data, and communication are no operators.
OTHERS = ("ProfilerStep#", "enumerate(DataLoader)", "c10d::", "nccl:", "record_param_comms")


def name_of(e, _):
    operator = e["cat"].lower() in ("cpu_op", "operator") and not e["name"].startswith(OTHERS)
    return (e["name"],) if operator or e["name"].startswith("Optimizer.") else None


def shape_of(e, _):
    name = name_of(e, _)
    shapes = e["args"].get("Input Dims")
    return name and (*name, json.dumps(shapes, separators=(",", ":")) if shapes is not None else None)


def test_two_ranks_are_the_sums_of_both_files(public):
    files = sorted((FOLDER / "kineto" / "two_ranks").iterdir())
    trace = public("kineto/two_ranks")
    for key_of, by, columns in ((name_of, "name", ("name",)), (shape_of, "shape", ("name", "shapes"))):
        expected = Counter()
        for path in files:
            for key, sums in truth(path, key_of).items():
                expected[key] = tuple(map(sum, zip(expected[key] or (0,) * 6, sums, strict=True)))
        assert found_in(trace.operators(by=by, step="all"), *columns) == dict(expected)
    (alone,) = {r["rank"] for r in rows(trace.operators(per="rank", step="all"))} - {0}
    first = trace.operators(per="rank", step="all").filter("rank = 0")
    assert alone == 1
    assert found_in(first, "name") == truth(files[0], name_of)


@pytest.mark.parametrize("workers", [0, 4])
def test_the_plugin_of_tensorboard_has_the_same_table(public, workers):
    table = by_first(
        public(f"kineto/resnet50_loader_workers{workers}.json.gz").operators(step="all"),
        "calls", "device_self_ns", "device_total_ns", "self_ns", "total_ns",
    )  # fmt: skip
    told = json.loads((FOLDER / f"resnet50_loader_workers{workers}.tensorboard.json").read_text())["op_table_top"]
    facts = ("device_self_duration", "device_total_duration", "host_self_duration", "host_total_duration")
    for each in told:
        assert table[each["name"]] == (each["calls"], *(1000 * each[fact] for fact in facts)), each["name"]


def test_lines_of_a_real_profile(public):
    path = FOLDER / "kineto" / "resnet50_loader_workers0.json.gz"

    def line_of(e, around):
        if name_of(e, around) is None:
            return None
        for frame in filter(None, e["args"].get("Call stack", "").split(";")):
            if "site-packages" not in frame and "python3.7" not in frame:
                return (frame.replace("(", ":").partition(")")[0],)
        return around if around and not e["args"].get("Call stack") else (None,)

    expected = truth(path, line_of)
    assert len(expected) > 5
    table = public("kineto/resnet50_loader_workers0.json.gz").operators(by="line", step="all")
    assert found_in(table, "line") == expected


@pytest.mark.parametrize("by", ["name", "shape", "line"])
def test_stretches_change_nothing(public, monkeypatch, by):
    trace = public("kineto/resnet50_loader_workers4.json.gz")
    whole = rows(trace.operators(by=by, step="all"))
    monkeypatch.setattr(operator_sums, "_STRETCH", 100)
    monkeypatch.setattr(operator_sums, "launches", functools.partial(launches, most=1000))
    assert sorted(rows(trace.operators(by=by, step="all")), key=str) == sorted(whole, key=str)


def test_every_split_has_the_same_sums(public):
    trace = public("kineto/resnet50_loader_workers4.json.gz")
    tables = [rows(trace.operators(by=by, step="all")) for by in ("name", "type", "shape", "line")]
    tables.append(rows(trace.operators(per="rank", step="all")))
    sums = {tuple(sum(r[c] for r in table) for c in ("calls", "self_ns", "device_self_ns")) for table in tables}
    assert len(sums) == 1
    for table in tables:
        assert all(r["device_self_ns"] <= r["device_total_ns"] for r in table)
