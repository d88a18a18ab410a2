"""Memory over time: by hand, and of public profiles against plain arithmetic over the JSON."""

import gzip
import json
from collections import defaultdict

import pytest

from strobe.advice.rank import findings
from strobe.gpu.memory import allocator_curves, steps_of
from tests.deep.kineto import US, kernel, operator, profile, step
from tests.public import FOLDER
from tests.unit.hand_made import HandMadeProcess, make_trace, span

GPU, HOST = {"Device Type": 1, "Device Id": 0}, {"Device Type": 0, "Device Id": -1}
V100 = {"id": 0, "name": "Tesla V100", "totalGlobalMem": 32_000}


def rows(table):
    return table.to_arrow().to_pylist()


def cells(row, *names):
    return tuple(row[name] for name in names)


def change(time_us, size, where=GPU, total=None, reserved=None, thread=1):
    totals = {} if total is None else {"Total Allocated": total, "Total Reserved": reserved}
    return {
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 100, "tid": thread, "ts": time_us,
        "args": {**where, "Addr": 1, "Bytes": size, **totals},
    }  # fmt: skip


def told(tmp_path):
    """Two steps of 100 us, 1000 bytes before; threads take turns; another GPU only frees."""
    return profile(
        tmp_path,
        step(0, 0, 100), step(1, 100, 100), operator("aten::mm", 1, 5, thread=2),
        change(10, 500, total=1500, reserved=4000), change(20, 300, total=1800, reserved=4000, thread=2),
        change(30, -500, total=1300, reserved=4000), change(90, -100, total=1200, reserved=5000),
        change(120, 50, total=1250, reserved=5000), change(130, -250, total=1000, reserved=5000, thread=2),
        change(240, 900, total=1900, reserved=4500),
        change(40, 8, HOST, 8, 0), change(50, -8, HOST, 0, 0),
        change(60, -7, {"Device Type": 1, "Device Id": 1}, 3, 64),
        rank=2, deviceProperties=[V100],
    )  # fmt: skip


def test_peaks_by_hand(tmp_path):
    gpu, other, host = rows(told(tmp_path).memory())
    assert cells(gpu, "rank", "device", "memory", "peak_bytes", "peak_time_ns", "peak_step", "peak_reserved_bytes") == (
        2, 0, "GPU", 1900, 240 * US, None, 5000
    )  # fmt: skip
    assert cells(gpu, "peak_share", "first_bytes", "last_bytes", "exact") == (1900 / 32_000, 1000, 1900, True)
    assert cells(gpu, "allocations", "allocated_bytes", "freed_bytes") == (4, 1750, 850)
    assert cells(other, "device", "peak_bytes", "peak_time_ns", "peak_step") == (1, 10, 60 * US, 0)
    assert cells(host, "device", "memory", "peak_bytes", "peak_step", "last_bytes") == (None, "host", 8, 0, 0)


def test_steps_by_hand(tmp_path):
    first, second, *others = rows(told(tmp_path).memory(by="step"))
    assert cells(first, "step", "start_bytes", "peak_bytes", "peak_time_ns", "peak_reserved_bytes", "end_bytes") == (
        0, 1000, 1800, 20 * US, 5000, 1200
    )  # fmt: skip
    # Nothing in the second step is above what was in use when it began, but for a moment.
    assert cells(second, "step", "start_bytes", "peak_bytes", "peak_time_ns", "peak_reserved_bytes", "end_bytes") == (
        1, 1200, 1250, 120 * US, 5000, 1000
    )  # fmt: skip
    assert cells(second, "allocations", "allocated_bytes", "freed_bytes") == (1, 50, 250)
    assert [cells(row, "memory", "device", "step", "start_bytes", "peak_bytes", "end_bytes") for row in others] == [
        ("GPU", 1, 0, 10, 10, 3), ("GPU", 1, 1, 3, 3, 3), ("host", None, 0, 0, 8, 0), ("host", None, 1, 0, 0, 0)
    ]  # fmt: skip


def test_curve_by_hand(tmp_path):
    trace = told(tmp_path)
    every = [row for row in rows(trace.memory(by="time", points=0)) if row["device"] == 0]
    assert [cells(row, "time_ns", "allocated_bytes", "reserved_bytes", "change_bytes", "step") for row in every] == [
        (10 * US, 1500, 4000, 500, 0), (20 * US, 1800, 4000, 300, 0), (30 * US, 1300, 4000, -500, 0),
        (90 * US, 1200, 5000, -100, 0), (120 * US, 1250, 5000, 50, 1), (130 * US, 1000, 5000, -250, 1),
        (240 * US, 1900, 4500, 900, None),
    ]  # fmt: skip
    # Three parts of 77 us from 10 us on: up to 87, up to 164, and the rest.
    few = [row for row in rows(trace.memory(by="time", points=3)) if row["device"] == 0]
    assert [cells(row, "time_ns", "allocated_bytes") for row in few] == [
        (20 * US, 1800), (120 * US, 1250), (240 * US, 1900)
    ]  # fmt: skip


def test_sizes_alone_say_what_was_in_use_at_least(tmp_path):
    trace = profile(
        tmp_path, operator("aten::mm", 0, 5),
        change(10, 100), change(20, -300), change(30, 50), change(40, 500), change(50, -20),
    )  # fmt: skip
    (row,) = rows(trace.memory())
    # 100, -200, -150, 350, 330 from the first event on: 200 must have been there.
    assert cells(row, "first_bytes", "peak_bytes", "peak_time_ns", "last_bytes", "exact", "peak_reserved_bytes") == (
        200, 550, 40 * US, 530, False, None
    )  # fmt: skip


def test_memory_of_a_recorded_process():
    readings = {"name": "resident memory", "unit": "bytes", "location": 0, "time_ns": [0, 50, 90], "value": [7, 9, 8]}
    process = HandMadeProcess({"main": [span("work", 0, 100)]}, metrics=[readings])
    (row,) = rows(make_trace(process).memory())
    assert cells(row, "memory", "peak_bytes", "peak_time_ns", "last_bytes") == ("resident", 9, 50, 8)


def test_what_is_missing_is_said(tmp_path):
    trace = profile(tmp_path, kernel("gemm", 0, 5))
    assert all("profile_memory=True" in trace.memory(by=by).note for by in ("device", "step", "time"))
    assert "no steps were found" in profile(tmp_path, operator("aten::mm", 0, 5), change(1, 9)).memory(by="step").note


@pytest.mark.parametrize("name", ["v100_train_rank1of2", "resnet50_loader_workers0", "resnet50_loader_workers4"])
def test_public_profiles_against_the_json(public, name):
    with gzip.open(FOLDER / f"kineto/{name}.json.gz") as file:
        events = json.load(file)["traceEvents"]
    zero = min(e["ts"] for e in events if e["ph"] in "Xi" and "ts" in e and e.get("cat") != "Trace")
    marks = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep") and "dur" in e)
    by_pool = defaultdict(list)
    for event in (e for e in events if e["name"] == "[memory]"):
        by_pool[event["args"]["Device Type"], event["args"]["Device Id"]].append(event)
    trace = public(f"kineto/{name}.json.gz")
    table, steps = rows(trace.memory()), rows(trace.memory(by="step"))
    assert len(table) == len(by_pool)
    for (of_type, device), made in by_pool.items():
        memory = {0: "host", 1: "GPU"}[of_type]
        made.sort(key=lambda e: (e["ts"], e["args"].get("Ev Idx", -1)))
        levels, level = [], 0
        for event in made:
            level = event["args"].get("Total Allocated", level + event["args"]["Bytes"])
            levels.append(level)
        up = -min(0, *levels)
        (row,) = [r for r in table if r["memory"] == memory and (r["device"] == device or of_type == 0)]
        assert row["peak_bytes"] == max(levels) + up
        sizes = [event["args"]["Bytes"] for event in made]
        assert cells(row, "allocations", "allocated_bytes", "freed_bytes") == (
            sum(size > 0 for size in sizes), sum(size for size in sizes if size > 0), -sum(s for s in sizes if s < 0)
        )  # fmt: skip
        peaks = [
            max(level + up for event, level in zip(made, levels, strict=True) if begin <= event["ts"] < end)
            for begin, end in marks
        ]
        assert [r["peak_bytes"] for r in steps if r["memory"] == memory] == peaks
        assert (row["peak_time_ns"] // US + zero) in {
            event["ts"] for event, level in zip(made, levels, strict=True) if level + up == row["peak_bytes"]
        }


def test_a_line_has_a_corner_at_each_change_and_of_too_many_the_extremes(tmp_path):
    """As the page draws it: what is in use stays until it changes, and until the end."""
    sizes = [100, -40, 200, -200, 300, -10, 5, -355]
    trace = profile(tmp_path, *(change(10 * at, size) for at, size in enumerate(sizes)))
    (curve,) = allocator_curves(trace)
    times, levels = steps_of(curve, 200 * US)
    assert levels.tolist() == [0, 100, 100, 60, 60, 260, 260, 60, 60, 360, 360, 350, 350, 355, 355, 0, 0]
    assert times.tolist() == [
        *(each for at in range(len(sizes)) for each in (10 * at * US - 1, 10 * at * US)),
        200 * US,
    ]
    times, levels = steps_of(curve, 0, most=4)
    # Halves of 35 us: the highest and the lowest of each.
    assert levels.tolist() == [100, 60, 60, 260, 60, 360, 355, 0, 0]
    assert times.tolist() == sorted(times.tolist())


def growth(tmp_path, in_use):
    """What `memory.growth` finds in 40 steps of 1 ms at whose ends so many MB are in use."""
    events = [step(n, 1000 * n, 1000) for n in range(40)] + [operator("aten::mm", 1000 * n + 10, 50) for n in range(40)]
    before = 0
    for n, now in enumerate(10**6 * round(mb) for mb in in_use):
        events.append(change(1000 * n + 500, now - before, total=now, reserved=now))
        before = now
    return [each for each in findings(profile(tmp_path, *events)) if each.rule == "memory.growth"]


def test_memory_that_grows_in_every_step_is_named_with_its_pace(tmp_path):
    (found,) = growth(tmp_path, [100 + 4 * n for n in range(40)])
    assert "memory of the GPU grows by 4.00 MB a step" in found.what, found.what
    assert found.informative


@pytest.mark.parametrize(
    "in_use",
    [
        [100 + 160 * (1 - 0.8**n) for n in range(40)],  # a cache that fills up
        [100 + 40 * (n % 8) for n in range(40)],
        [100 + 0.5 * n for n in range(40)],  # 20 MB in all
        [100 + 200 * (n > 20) for n in range(40)],  # once
    ],
    ids=["cache", "sawtooth", "little", "once"],
)
def test_memory_that_does_not_grow_throughout_is_no_finding(tmp_path, in_use):
    assert growth(tmp_path, in_use) == []
