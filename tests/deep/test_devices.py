"""GPUs of imported files: what the file says of those that worked."""

from tests.deep.kineto import kernel, operator, profile

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 84987740160}
OTHER = {"id": 3, "name": "NVIDIA T4", "totalGlobalMem": 15835660288}


def reading(name, ts, value):
    """One reading of a counter, as Chrome's format has it."""
    return {"ph": "C", "cat": "gpu", "name": name, "pid": 100, "tid": 0, "ts": ts, "args": {"value": value}}


def test_gpus_that_worked_are_known_by_what_the_profile_says_of_them(tmp_path):
    trace = profile(
        tmp_path, kernel("gemm", 0, 10, device=3), kernel("gemm", 20, 10), deviceProperties=[A100, OTHER, {"id": 5}]
    )
    table = trace.devices()
    rows = table.to_pylist()
    assert [(row["device"], row["name"], row["memory_bytes"]) for row in rows] == [
        (0, A100["name"], A100["totalGlobalMem"]),
        (3, OTHER["name"], OTHER["totalGlobalMem"]),
    ]
    assert {row["utilisation_share"] for row in rows} == {None}
    assert {row["readings"] for row in rows} == {0}
    assert "not how busy" in table.note


def test_readings_that_a_file_holds_are_summed_up(tmp_path):
    load = [reading("GPU 1: SMs Active", ts, value) for ts, value in ((0, 10), (10, 30), (20, 50))]
    power = [reading("GPU 1: power", ts, value) for ts, value in ((0, 100), (1_000_000, 300), (3_000_000, 300))]
    trace = profile(tmp_path, kernel("gemm", 0, 10, device=1), *load, *power)
    found = [row for row in trace.devices().to_pylist() if row["readings"]]
    (row,) = found
    assert row["sm_activity_share"] == 0.3
    # Watts between two readings are their mean: 200 W for 1 s, and 300 W for 2 s.
    assert row["energy_j"] == 800


def test_a_trace_without_gpus_says_why_there_is_nothing(tmp_path):
    table = profile(tmp_path, operator("aten::mm", 0, 5)).devices()
    assert not len(table)
    assert "strobe doctor" in table.note
